//! Lines that only say that code was left out.
//!
//! A model that avoids repeating code writes `// rest of the file ...` in its place, and the code would be lost. Such
//! a line is a comment, or is in brackets, or has an ellipsis, and consists of the few words that are used for it; a
//! line with any other word is text. `...` by itself is text too: Python and YAML have it.

/// Comment signs before a line, longer ones first.
const BEFORE: [&str; 16] =
    ["<!--", "{/*", "<%--", "{{!--", "{#", "(*", "/**", "/*", "///", "//", "--", "##", "#", ";", "%", "*"];
/// Comment signs after it.
const AFTER: [&str; 8] = ["-->", "**/", "*/}", "--%>", "--}}", "#}", "*)", "*/"];
/// Every such line that has words contains one of these.
const TELLING: [&str; 12] = [
    "rest",
    "existing",
    "unchanged",
    "remaining",
    "remainder",
    "remains",
    "remain",
    "omitted",
    "same",
    "truncated",
    "elided",
    "previous",
];
/// Words that mean an omission only next to an ellipsis.
const DOTTED: [&str; 4] = ["other", "more", "original", "similar"];
/// Further words that such a line may contain.
const PLAIN: &[&str] = &[
    "a",
    "above",
    "all",
    "and",
    "are",
    "as",
    "at",
    "be",
    "before",
    "below",
    "body",
    "brevity",
    "class",
    "classes",
    "clarity",
    "code",
    "component",
    "components",
    "config",
    "configuration",
    "constants",
    "content",
    "contents",
    "css",
    "declarations",
    "definitions",
    "document",
    "element",
    "elements",
    "entries",
    "exactly",
    "exports",
    "few",
    "field",
    "fields",
    "file",
    "files",
    "for",
    "from",
    "function",
    "functions",
    "goes",
    "handlers",
    "helpers",
    "here",
    "html",
    "identical",
    "implementation",
    "implementations",
    "imports",
    "in",
    "is",
    "it",
    "its",
    "items",
    "keep",
    "kept",
    "left",
    "lines",
    "logic",
    "markup",
    "method",
    "methods",
    "module",
    "not",
    "of",
    "omitted",
    "out",
    "page",
    "part",
    "parts",
    "program",
    "properties",
    "query",
    "reasons",
    "remains",
    "rules",
    "same",
    "script",
    "section",
    "sections",
    "settings",
    "setup",
    "shown",
    "statements",
    "stay",
    "stays",
    "still",
    "stuff",
    "styles",
    "stylesheet",
    "table",
    "template",
    "test",
    "tests",
    "text",
    "that",
    "the",
    "their",
    "these",
    "things",
    "this",
    "to",
    "types",
    "untouched",
    "variables",
    "was",
    "were",
    "will",
    "with",
    "your",
];
/// The most words of a line with an ellipsis on both sides.
const MOST_WORDS: usize = 8;

/// The first line of `new` that only says that code was left out and is not a line of `old`.
pub fn omission_line(old: &str, new: &str) -> Option<String> {
    let mut lines = new.lines().map(str::trim).filter(|line| omission_of(line).is_some());
    lines.find(|line| !old.lines().any(|kept| kept.trim() == *line)).map(str::to_owned)
}

/// The first such line of a text that replaces nothing; there, a comment of dots alone does not leave anything out.
pub fn omission_in_new(new: &str) -> Option<String> {
    new.lines().map(str::trim).find(|line| omission_of(line) == Some(Omission::InWords)).map(str::to_owned)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Omission {
    /// `// ...`
    ByDots,
    InWords,
}

fn omission_of(line: &str) -> Option<Omission> {
    // A cheap check that excludes nearly all other lines.
    if line.len() > 160 || !line.is_ascii() && !line.contains('\u{2026}') {
        return None;
    }
    let (text, comment) = uncommented(line);
    let (text, bracketed) = unbracketed(text);
    let (text, dots) = undotted(text);
    let (text, inner) = unbracketed(text);
    let (text, more) = undotted(text);
    let dots = Dots { before: dots.before || more.before, after: dots.after || more.after };
    let dotted = dots.before || dots.after;
    if !comment && !dotted && !bracketed && !inner {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '\'')
        .filter(|word| !word.is_empty())
        .collect();
    if words.is_empty() {
        let nothing = text.trim().is_empty();
        return (comment && dotted && nothing).then_some(Omission::ByDots);
    }
    // Code in a comment has signs that prose does not have.
    if text.contains([
        '=', '{', '}', '<', '>', '(', ')', '[', ']', ';', '"', '`', '$', '/', '\\', '_', '@', '|', '*',
    ]) {
        return None;
    }
    let telling = words.iter().any(|word| TELLING.contains(word) || dotted && DOTTED.contains(word));
    let other = words
        .iter()
        .filter(|word| !TELLING.contains(word) && !DOTTED.contains(word) && !PLAIN.contains(word))
        .count();
    // `[...rest]` is code.
    if !telling || words.len() > MOST_WORDS || !comment && words.len() < 2 {
        return None;
    }
    let both = dots.before && dots.after;
    let only = match (comment, dotted) {
        (_, true) if both => other <= 3,
        (true, true) => other <= 1,
        (false, true) => other == 0,
        (_, false) => other == 0 && without_dots(&words),
    };
    only.then_some(Omission::InWords)
}

/// Tells whether words without an ellipsis mean an omission: "remaining items" names things, "rest of the page" and
/// "unchanged" leave them out.
fn without_dots(words: &[&str]) -> bool {
    let has = |wanted: &[&str]| words.windows(wanted.len()).any(|run| run == wanted);
    let last = words.last().copied().unwrap_or_default();
    has(&["rest", "of"])
        || has(&["same", "as", "before"])
        || has(&["same", "as", "above"])
        || has(&["existing", "code"])
        || words.contains(&"unchanged")
        || words.contains(&"omitted")
        || words.contains(&"elided")
        || (words.contains(&"remains") || words.contains(&"remain") || words.contains(&"existing"))
            && last == "same"
        || words.first() == Some(&"existing") && last == "here"
}

/// The place of an ellipsis.
struct Dots {
    before: bool,
    after: bool,
}

fn undotted(text: &str) -> (&str, Dots) {
    let is_dot = |c: char| c == '.' || c == '\u{2026}';
    let text = text.trim();
    let is_ellipsis = |run: &str| run.contains('\u{2026}') || run.len() >= 2;
    let bare = text.trim_start_matches(is_dot);
    let before = is_ellipsis(&text[..text.len() - bare.len()]);
    let inner = bare.trim_end_matches(is_dot);
    let after = is_ellipsis(&bare[inner.len()..]) || before && inner.is_empty();
    (inner.trim(), Dots { before, after })
}

fn uncommented(line: &str) -> (&str, bool) {
    let Some(text) = BEFORE.iter().find_map(|sign| line.strip_prefix(sign)) else {
        return (line, false);
    };
    let text = AFTER.iter().find_map(|sign| text.trim_end().strip_suffix(sign)).unwrap_or(text);
    (text.trim(), true)
}

fn unbracketed(text: &str) -> (&str, bool) {
    for (open, close) in [('(', ')'), ('[', ']'), ('<', '>'), ('{', '}')] {
        if let Some(inner) = text.strip_prefix(open).and_then(|text| text.strip_suffix(close)) {
            return (inner.trim(), true);
        }
    }
    (text, false)
}
