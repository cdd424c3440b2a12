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

/// Names that stood for four to nine things each. Such a name may be used for one thing only.
const OVERLOADED: [&str; 21] = [
    "Said", "Asked", "Kept", "Entry", "Place", "Kind", "Answer", "Call", "Found", "Command", "Line", "Event",
    "Request", "Shown", "Asking", "Given", "Item", "Source", "Wanted", "Job", "How",
];

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
    let tripled: BTreeMap<_, _> = public.iter().filter(|(_, places)| places.len() > 2).collect();
    assert!(tripled.is_empty(), "{tripled:#?}");
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
    ("views/src/console/questions.rs", "yes and no, as a user types them"),
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
            || name.ends_with("_tests.rs")
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

/// The string literals of a source file outside of comments, attributes and tests, each with the code before it.
fn literals(text: &str) -> Vec<(String, String)> {
    // Tests of a file stand at its end.
    let code = text.split("#[cfg(test)]").next().unwrap();
    let code =
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let (mut found, mut before) = (Vec::new(), String::new());
    let mut rest = code.as_str();
    while let Some(at) = rest.find(['"', '\'']) {
        before.push_str(&rest[..at]);
        let is_text = rest[at..].starts_with('"');
        rest = &rest[at + 1..];
        if !is_text {
            // A sign in quotes, or a lifetime.
            let length = if rest.starts_with('\\') { rest[2..].find('\'').map(|end| end + 3) } else { None };
            let sign = rest.chars().next().map_or(0, char::len_utf8);
            let length = length.or_else(|| rest[sign..].starts_with('\'').then_some(sign + 1));
            rest = &rest[length.unwrap_or(0)..];
            continue;
        }
        let mut end = 0;
        while !rest[end..].starts_with('"') {
            end += if rest[end..].starts_with('\\') {
                2
            } else {
                rest[end..].chars().next().unwrap().len_utf8()
            };
        }
        // Help stands in attributes.
        let is_attribute = before.rfind("#[").is_some_and(|open| {
            let inside = &before[open + 2..];
            inside.matches('[').count() >= inside.matches(']').count()
        });
        if !is_attribute {
            found.push((before.clone(), rest[..end].to_owned()));
        }
        before.push('_');
        rest = &rest[end + 1..];
    }
    found
}

/// The text without its `{values}` and without the commands of Lathe that it names.
fn plain(text: &str) -> String {
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
    plain.split("lathe ").next().unwrap().replace("\\n", " ")
}

/// The English words of a text that people would have to read.
fn words(text: &str) -> Vec<String> {
    let is_word = |word: &&str| word.len() > 2 && word.chars().all(|sign| sign.is_ascii_lowercase());
    plain(text).split(|sign: char| !sign.is_alphanumeric()).filter(is_word).map(str::to_owned).collect()
}

/// True for a text with two English words in a row.
fn has_sentence(text: &str) -> bool {
    let plain = plain(text);
    let words: Vec<&str> = plain.split_whitespace().collect();
    let is_word = |word: &str| word.len() > 2 && word.chars().all(|sign| sign.is_ascii_lowercase());
    words.windows(2).any(|pair| is_word(pair[0]) && is_word(pair[1]))
}

fn is_error_text(text: &str) -> bool {
    ["error", "Error", "warning", "note"].iter().any(|word| text.starts_with(word))
}

/// The functions that print.
const PRINTS: [&str; 4] = ["terminal::out(", "terminal::out_line(", "terminal::err(", "terminal::err_line("];

/// True for an argument of a function that prints, at any depth of calls.
fn is_printed(before: &str) -> bool {
    let Some(call) = PRINTS.iter().filter_map(|name| before.rfind(name)).max() else { return false };
    let mut depths = before[call..].chars().scan(0_i32, |depth, sign| {
        *depth += i32::from(sign == '(') - i32::from(sign == ')');
        Some((sign, *depth))
    });
    !depths.any(|(sign, depth)| sign == ')' && depth == 0)
}

/// Texts that the program prints. Errors and warnings are English by design.
#[test]
fn the_binary_prints_no_message_outside_the_catalogue() {
    let mut odd = Vec::new();
    let mut calls = 0;
    for (path, text) in sources(false) {
        let name = path.strip_prefix(root().join("crates")).unwrap().to_string_lossy().into_owned();
        if !name.starts_with("cli/src") {
            continue;
        }
        calls += PRINTS.iter().map(|name| text.matches(name).count()).sum::<usize>();
        for (before, literal) in literals(&text) {
            if is_printed(&before) && !is_error_text(&literal) && !words(&literal).is_empty() {
                odd.push(format!("{name}: {literal}"));
            }
        }
    }
    assert!(calls > 100, "only {calls} calls were found");
    assert_eq!(odd, Vec::<String>::new(), "a message for people belongs into views/src/messages");
}

/// Code that makes an error of a text.
const MAKES_ERRORS: [&str; 9] = [
    "Err(",
    "map_err(",
    "ok_or(",
    "ok_or_else(",
    "Exit::failed(",
    "Exit::wrong_usage(",
    "Exit::limits(",
    ".unwrap_or(",
    ".unwrap_or_else(",
];

/// Files whose sentences are errors, advice about errors, or help.
const OF_ERRORS: [&str; 3] = ["cli/src/advice.rs", "cli/src/exit.rs", "cli/src/args/mod.rs"];

/// Other sentences outside of the catalogue, with the reason.
const NO_MESSAGES: [(&str, &str); 19] = [
    ("the configuration cannot be used", "the detail of a check, like the others, which the host words"),
    ("not needed", "a word of JSON"),
    ("is neither a JSON text nor", "a part of an error"),
    ("the configuration", "a part of an error"),
    ("unexpected end of file", "the words of bash"),
    ("; {} is used there", "a part of an error"),
    ("no question can be asked here", "an error"),
    ("give the address as", "an error"),
    ("the server cannot be reached", "an error"),
    ("\\n\\n[The image {name} goes", "a text for the model"),
    ("nobody is there any more", "a reason for the model"),
    ("exit code ", "the words of a tool"),
    ("timed out after ", "the words of a tool"),
    ("the shell itself was killed", "the words of a tool"),
    ("cancelled by the user", "the words of a tool"),
    ("The status page", "the documentation of the HTTP interface"),
    ("What the page needs", "the documentation of the HTTP interface"),
    ("prose said", "classes of a style sheet"),
    ("call bad", "classes of a style sheet"),
];

/// A text may be made in one place and printed in another: every sentence is an error, a command or a message.
#[test]
fn a_sentence_outside_the_catalogue_is_an_error() {
    let mut odd = Vec::new();
    let mut sentences = 0;
    for (path, text) in sources(false) {
        let name = path.strip_prefix(root().join("crates")).unwrap().to_string_lossy().into_owned();
        let is_surface = ["cli/src", "views/src/console", "views/src/html", "server/src/page"]
            .iter()
            .any(|folder| name.starts_with(folder));
        if !is_surface || OF_ERRORS.contains(&name.as_str()) {
            continue;
        }
        for (before, literal) in literals(&text).into_iter().filter(|(_, literal)| has_sentence(literal)) {
            sentences += 1;
            let near: String = before.chars().rev().take(120).collect::<Vec<_>>().into_iter().rev().collect();
            let statement = near.rsplit(';').next().unwrap();
            let is_error =
                is_error_text(&literal) || MAKES_ERRORS.iter().any(|code| statement.contains(code));
            if !is_error && !NO_MESSAGES.iter().any(|(known, _)| literal.starts_with(known)) {
                odd.push(format!("{name}: {literal}"));
            }
        }
    }
    assert!(sentences > 30, "only {sentences} sentences were found");
    assert_eq!(odd, Vec::<String>::new(), "a message for people belongs into views/src/messages");
}

/// A message that nothing prints is translated for nothing.
#[test]
fn every_message_of_the_catalogue_is_used() {
    let is_catalogue = |path: &Path| path.starts_with(root().join("crates/views/src/messages"));
    let (catalogue, others): (Vec<_>, Vec<_>) =
        sources(false).into_iter().partition(|(path, _)| is_catalogue(path) && !path.ends_with("mod.rs"));
    let mut unused = Vec::new();
    let mut messages = 0;
    for (_, text) in &catalogue {
        for line in text.lines().map(str::trim_start) {
            let end = line.find(|sign: char| !sign.is_alphanumeric()).unwrap_or(line.len());
            let (id, rest) = line.split_at(end);
            let kind = match rest {
                _ if !id.starts_with(|first: char| first.is_ascii_uppercase()) => continue,
                rest if rest.starts_with(": ") => "Say",
                rest if rest.starts_with(" {") => "Tell",
                _ => continue,
            };
            messages += 1;
            let name = format!("{kind}::{id}");
            let names_it = |text: &str| {
                text.match_indices(&name)
                    .any(|(at, _)| !text[at + name.len()..].starts_with(|sign: char| sign.is_alphanumeric()))
            };
            if !others.iter().any(|(_, text)| names_it(text)) {
                unused.push(name);
            }
        }
    }
    assert!(messages > 250, "only {messages} messages were found");
    assert_eq!(unused, Vec::<String>::new());
}
