//! Small parsers of source text: names, types, documentation, signatures.

use std::borrow::Cow;

/// Tells whether a text consists of names joined by `.`, `::`, `->`, `?.` and nothing else.
pub fn is_path(text: &str) -> bool {
    text.len() <= 120
        && text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphabetic() || b"_$@".contains(&byte) || byte >= 128)
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.:$@?!>-#\\".contains(&byte) || byte >= 128)
        && !text.contains(".-")
        && text.matches('>').count() == text.matches("->").count()
        && text.matches('-').count() == text.matches("->").count()
}

/// The path with dots as its only separators.
pub fn dotted(text: &str) -> Cow<'_, str> {
    if !text.contains([':', '>', '?', '!', '$', '\\', '@']) {
        return Cow::Borrowed(text);
    }
    // Ruby's instance variables belong to the object.
    let text = if text.starts_with('@') { format!("self.{text}") } else { text.to_owned() };
    let text =
        text.replace("::", ".").replace("->", ".").replace('\\', ".").replace([':', '?', '!', '$', '@'], "");
    Cow::Owned(text.trim_matches('.').to_owned())
}

fn is_operator(text: &str) -> bool {
    (1..=4).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_punctuation() && byte != b'_' && byte != b'$')
}

/// Tells whether a name is that of an operator in C++: `operator==`, `K::operator bool`, but not `operator.add` or
/// `operator_table`.
pub fn names_operator(text: &str) -> bool {
    text.match_indices("operator").any(|(at, word)| {
        let next = text[at + word.len()..].chars().next();
        let apart = |c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | ':');
        (at == 0 || text[..at].ends_with(':')) && next.is_some_and(apart)
    })
}

/// The text before the last separator, and the text after it.
pub fn split_path(text: &str) -> (&str, &str) {
    if is_operator(text) {
        return ("", text);
    }
    let cut = text
        .rmatch_indices(['.', ':', '>', '\\'])
        .map(|(at, _)| at)
        .find(|&at| at + 1 < text.len())
        .map_or(0, |at| at + 1);
    (text[..cut].trim_end_matches(['.', ':', '>', '-', '?', '!', '\\']), &text[cut..])
}

/// A name in the form that is looked up: without quotes, sigils and type arguments.
pub fn clean_name(text: &str) -> Option<Cow<'_, str>> {
    // Ruby's operators are methods.
    if is_operator(text) {
        return Some(Cow::Borrowed(text));
    }
    let text = text.trim().trim_start_matches(['$', '@', '&', '*']).trim_matches(['"', '\'', '`']);
    if text.is_empty() || text.len() > 200 || text.contains('\n') {
        return None;
    }
    if names_operator(text) || !text.contains(['<', '[']) {
        return Some(Cow::Borrowed(text));
    }
    if text.starts_with('[') {
        return None;
    }
    Some(Cow::Owned(without_brackets(text)))
}

fn without_brackets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut depth = 0i32;
    for c in text.chars() {
        match c {
            '<' | '[' => depth += 1,
            '>' | ']' => depth -= 1,
            _ if depth <= 0 => out.push(c),
            _ => {}
        }
    }
    out.trim().to_owned()
}

/// Types that stand for their type argument when a member is called.
const TRANSPARENT: [&str; 20] = [
    "Optional",
    "Box",
    "Arc",
    "Rc",
    "unique_ptr",
    "shared_ptr",
    "std.unique_ptr",
    "std.shared_ptr",
    "Promise",
    "Readonly",
    "Annotated",
    "typing.Optional",
    "Awaitable",
    "Type",
    "Result",
    "Option",
    "io.Result",
    "std.io.Result",
    "Task",
    "ValueTask",
];

/// The type that a declared type names, as a dotted path. Empty if it names none.
pub fn type_name(text: &str) -> String {
    let mut text = text.trim().trim_start_matches("->").trim_start_matches(':').trim();
    for _ in 0..4 {
        if let Some(reference) = text.strip_prefix('&') {
            text = reference.trim_start();
            if text.starts_with('\'') {
                text = text.split_once(' ').map_or(text, |(_, rest)| rest);
            }
        }
        text = text.trim_start_matches(['*', '(', '?', '"', '\'']).trim_start();
        for word in [
            "mut ",
            "const ",
            "dyn ",
            "impl ",
            "final ",
            "readonly ",
            "volatile ",
            "struct ",
            "enum ",
            "class ",
        ] {
            text = text.strip_prefix(word).unwrap_or(text).trim_start();
        }
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || "_.:\\".contains(c))).unwrap_or(text.len());
    let head = dotted(text[..end].trim_end_matches(['.', ':'])).into_owned();
    if TRANSPARENT.contains(&head.as_str()) && text[end..].starts_with(['<', '[']) {
        return type_name(&text[end + 1..]);
    }
    if !head.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        return String::new();
    }
    head
}

/// One line: white space collapsed, cut to a length, without the mark that opens the body.
pub fn one_line(text: &str, limit: usize) -> String {
    let mut out = String::with_capacity(text.len().min(limit) + 4);
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > limit {
            break;
        }
    }
    if out.len() > limit {
        let mut cut = limit;
        while !out.is_char_boundary(cut) {
            cut -= 1;
        }
        out.truncate(cut);
        out.push('…');
        return out;
    }
    loop {
        let kept = out.trim_end_matches([' ', ';', ',']).len();
        out.truncate(kept);
        let operator = out.contains("operator");
        match out.strip_suffix("=>").or_else(|| out.strip_suffix('{')).or_else(|| out.strip_suffix('=')) {
            Some(rest) if !operator => out.truncate(rest.len()),
            _ => break,
        }
    }
    if out.ends_with(':') && !out.ends_with("::") {
        out.pop();
    }
    out
}

/// The first paragraph of a comment or docstring, without its marks.
pub fn doc(text: &str) -> String {
    let mut out = String::new();
    let text = text.trim();
    let text = text
        .trim_start_matches(['r', 'R', 'u', 'U', 'b', 'f'])
        .strip_prefix("\"\"\"")
        .map_or(text, |inside| inside.trim_end_matches('"'));
    for line in text.lines() {
        let line = line
            .trim()
            .trim_start_matches(['/', '*', '#', '!', '-', '"', '\''])
            .trim_end_matches(['*', '/', '"', '\''])
            .trim_end_matches("*/")
            .trim();
        if line.is_empty() || line.starts_with("---") || line.starts_with("===") {
            if out.is_empty() {
                continue;
            }
            break;
        }
        if line.starts_with('@') && !out.is_empty() {
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(line);
        if out.len() > 300 {
            break;
        }
    }
    one_line(&out, 300)
}

/// Appends a text in lower case.
pub fn push_lower(all: &mut String, text: &str) {
    if text.is_ascii() {
        let from = all.len();
        all.push_str(text);
        all[from..].make_ascii_lowercase();
    } else {
        all.push_str(&text.to_lowercase());
    }
}

/// The head of a Python definition without the comments between it and the body.
pub fn without_comment(head: &str) -> &str {
    let mut head = head.trim_end();
    while let Some((before, line)) = head.rsplit_once('\n')
        && line.trim_start().starts_with('#')
    {
        head = before.trim_end();
    }
    let line_start = head.rfind('\n').map_or(0, |at| at + 1);
    match head[line_start..].find(":  #").or_else(|| head[line_start..].find(": #")) {
        Some(at) => &head[..line_start + at],
        None => head,
    }
}
