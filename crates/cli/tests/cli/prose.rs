//! The language of the house: names that mean one thing, comments that name a thing, messages in one catalogue.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::house::{files, root};

/// Rust files of the crates, below `src` only or tests included.
fn sources(also_tests: bool) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    files(&root().join("crates"), ".rs", &mut found);
    found.sort();
    let is_source = |path: &Path| path.components().any(|part| part.as_os_str() == "src");
    found.retain(|path| also_tests || is_source(path));
    assert!(found.len() > 500, "only {} files were found", found.len());
    found.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

/// The type that a line defines, and whether code outside of its file may use it.
fn defined_type(line: &str) -> Option<(&str, bool)> {
    let rest = line.trim_start();
    let unqualified = match rest.strip_prefix("pub(") {
        Some(after) => after.split_once(") ")?.1,
        None => rest.strip_prefix("pub ").unwrap_or(rest),
    };
    let is_public = unqualified.len() < rest.len();
    let name = ["struct ", "enum ", "trait ", "type ", "union "]
        .iter()
        .find_map(|keyword| unqualified.strip_prefix(keyword))?;
    let end = name.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(name.len());
    let name = &name[..end];
    name.starts_with(|first: char| first.is_uppercase()).then_some((name, is_public))
}

/// Names that stood for four to nine things each. A name here may be used for one thing, and nothing else.
const OVERLOADED: [&str; 21] = [
    "Said", "Asked", "Kept", "Entry", "Place", "Kind", "Answer", "Call", "Found", "Command", "Line", "Event",
    "Request", "Shown", "Asking", "Given", "Item", "Source", "Wanted", "Job", "How",
];

/// Names that three or more public types have, with the reason.
const SHARED_NAMES: [(&str, &str); 1] =
    [("Assembling", "each wire of `model` has the same parts under the same names, and each is read alone")];

#[test]
fn no_public_type_name_stands_for_three_things() {
    let mut public: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in sources(false) {
        for (number, line) in (1..).zip(text.lines()) {
            let Some((name, is_public)) = defined_type(line) else { continue };
            let place = format!("{}:{number}", path.strip_prefix(root()).unwrap().display());
            all.entry(name.to_owned()).or_default().push(place.clone());
            if is_public {
                public.entry(name.to_owned()).or_default().push(place);
            }
        }
    }
    assert!(public.len() > 900, "only {} public types were found", public.len());
    let is_shared = |name: &str| SHARED_NAMES.iter().any(|(shared, _)| *shared == name);
    let tripled: BTreeMap<_, _> =
        public.iter().filter(|(name, places)| places.len() > 2 && !is_shared(name)).collect();
    assert!(tripled.is_empty(), "{tripled:#?}");
    for (name, reason) in SHARED_NAMES {
        assert!(
            public.get(name).is_some_and(|places| places.len() > 2),
            "{name} is no longer shared: {reason}"
        );
    }
    let overloaded: BTreeMap<_, _> = OVERLOADED
        .iter()
        .filter_map(|name| Some((name, all.get(*name)?)))
        .filter(|(_, places)| places.len() > 1)
        .collect();
    assert!(overloaded.is_empty(), "{overloaded:#?}");
}

/// Doc comments that name no thing cannot be searched for.
#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    const QUESTIONS: [&str; 5] = ["What", "Who", "Whether", "How", "Where"];
    let mut found = Vec::new();
    let mut comments = 0;
    for (path, text) in sources(true) {
        let mut before = "";
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim_start();
            let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
            if is_doc(line) && !is_doc(before) {
                comments += 1;
                let first = line[3..].split_whitespace().next().unwrap_or_default();
                if QUESTIONS.contains(&first) {
                    found.push(format!("{}:{number}: {line}", path.strip_prefix(root()).unwrap().display()));
                }
            }
            before = line;
        }
    }
    assert!(comments > 4000, "only {comments} doc comments were found");
    assert!(
        found.len() <= 20,
        "{} doc comments begin with a question word:\n{}",
        found.len(),
        found.join("\n")
    );
}

#[test]
fn no_file_is_called_words() {
    let named: Vec<PathBuf> =
        sources(true).into_iter().map(|(path, _)| path).filter(|path| path.ends_with("words.rs")).collect();
    assert_eq!(named, Vec::<PathBuf>::new(), "say what kind of words");
}

#[test]
fn the_glossary_defines_each_word_once() {
    let text = std::fs::read_to_string(root().join("docs/GLOSSARY.md")).unwrap();
    let mut seen = BTreeMap::new();
    let rows =
        text.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" |")).map(|(words, _)| words);
    for words in rows.filter(|words| *words != "word" && !words.starts_with('-')) {
        for word in words.split(',') {
            *seen.entry(word.trim().to_lowercase()).or_insert(0) += 1;
        }
    }
    assert!(seen.len() > 90, "only {} words were found", seen.len());
    let doubled: Vec<&String> = seen.iter().filter(|(_, times)| **times > 1).map(|(word, _)| word).collect();
    assert_eq!(doubled, Vec::<&String>::new());
}

/// Chinese text outside of the catalogue: answers that a user types, and words of the wire that the seed documents fix.
const CHINESE_ELSEWHERE: [(&str, &str); 4] = [
    ("cli/src/commands/trust.rs", "yes and no, as a user types them"),
    ("views/src/console/asked.rs", "yes and no, as a user types them"),
    ("views/src/wire/bubbles.rs", "the bubble of a summary, in the words of the seed documents"),
    ("server/src/routes/tools.rs", "the Chinese names of tools, which are data of the server fork's wire"),
];

#[test]
fn messages_for_people_are_in_the_catalogue() {
    let is_chinese = |sign: char| ('\u{4e00}'..='\u{9fff}').contains(&sign);
    let mut odd = Vec::new();
    for (path, text) in sources(false) {
        let name = path.strip_prefix(root().join("crates")).unwrap().to_string_lossy().into_owned();
        let is_catalogue = name.starts_with("views/src/messages");
        if is_catalogue
            || name.starts_with("testkit/")
            || CHINESE_ELSEWHERE.iter().any(|(known, _)| *known == name)
        {
            continue;
        }
        // Tests of a file stand at its end.
        let code = text.split("#[cfg(test)]").next().unwrap();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        odd.extend(lines.filter(|line| line.contains(is_chinese)).map(|line| format!("{name}: {line}")));
    }
    assert_eq!(odd, Vec::<String>::new(), "a message in two languages belongs into views/src/messages");
}

/// Texts that the program prints by `terminal::out` and `terminal::err`. Errors and warnings are English by design.
#[test]
fn the_binary_prints_no_message_outside_the_catalogue() {
    let mut odd = Vec::new();
    let mut calls = 0;
    for (path, text) in sources(false) {
        let name = path.strip_prefix(root().join("crates")).unwrap().to_string_lossy().into_owned();
        if !name.starts_with("cli/src") {
            continue;
        }
        for call in ["terminal::out(", "terminal::err("] {
            for (at, _) in text.match_indices(call) {
                calls += 1;
                let arguments = &text[at..at + text[at..].find(';').unwrap_or(text.len() - at)];
                for literal in arguments.split('"').skip(1).step_by(2) {
                    let is_error = ["error", "warning", "note"].iter().any(|word| literal.starts_with(word));
                    if !is_error && has_sentence(literal) {
                        odd.push(format!("{name}: {literal}"));
                    }
                }
            }
        }
    }
    assert!(calls > 40, "only {calls} calls were found");
    assert_eq!(odd, Vec::<String>::new(), "a message for people belongs into views/src/messages");
}

/// True for a text with two English words in a row, outside of `{…}`.
fn has_sentence(text: &str) -> bool {
    let mut plain = String::new();
    let mut depth = 0_usize;
    for sign in text.chars() {
        match sign {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(sign),
            _ => {}
        }
    }
    let words: Vec<&str> = plain.split_whitespace().collect();
    let is_word = |word: &str| word.len() > 2 && word.chars().all(|sign| sign.is_ascii_lowercase());
    words.windows(2).any(|pair| is_word(pair[0]) && is_word(pair[1]))
}
