//! Variables of a line whose values are in its text: `for i in 1 2; do echo $i > n$i; done`.
//!
//! Only the simplest loops are understood, with literal values. A variable that might have another value counts as
//! unknown.

use std::collections::BTreeMap;

/// Values that a loop may name.
const MOST: usize = 1000;

/// Text that may give a variable another value, or hide a loop from this parser.
const DOUBTFUL: [&str; 18] = [
    "read ",
    "let ",
    "((",
    "declare",
    "typeset",
    "local ",
    "export ",
    "printf -v",
    "eval",
    "unset",
    "mapfile",
    "getopts",
    "source ",
    "<<",
    "select ",
    "IFS",
    "'",
    "\\",
];

/// Variables with all the values that they can have.
#[derive(Debug, Default)]
pub(super) struct LoopVariables(BTreeMap<String, Vec<String>>);

impl LoopVariables {
    /// The loops in the text of a line.
    pub(super) fn of(text: &str) -> Self {
        let mut found = BTreeMap::new();
        if DOUBTFUL.iter().any(|words| text.contains(words)) {
            return Self(found);
        }
        for (at, _) in text.match_indices("for ") {
            let (before, rest) = text.split_at(at);
            // Inside quotes, a comment or a substitution it has another meaning.
            if before.contains(['"', '#', '`', '(', '{']) || !is_command_position(before) {
                continue;
            }
            let Some((name, values)) = head(rest) else { continue };
            let is_set_again = ["=", "+", "["].iter().any(|mark| text.contains(&format!("{name}{mark}")))
                || text.matches(&format!("for {name} ")).count() > 1
                || before.contains(&format!("${name}"))
                || text.contains(&format!("${{{name}:"));
            if !is_set_again {
                found.insert(name, values);
            }
        }
        Self(found)
    }

    /// Tells whether a word contains something whose value is unknown.
    pub(super) fn is_open(&self, word: &str) -> bool {
        self.values(word).iter().any(|value| value.contains(['$', '`', '…']))
            || (word.starts_with('$') && self.values(word).iter().any(|value| value.starts_with('-')))
    }

    /// Every value that a word can have.
    pub(super) fn values(&self, word: &str) -> Vec<String> {
        let mut all = vec![word.to_owned()];
        for (name, values) in &self.0 {
            if !all.iter().any(|word| mentions(word, name)) {
                continue;
            }
            let with = |word: &String| values.iter().map(|value| put(word, name, value)).collect::<Vec<_>>();
            all = all.iter().flat_map(with).take(MOST + 1).collect();
            if all.len() > MOST {
                return vec![word.to_owned()];
            }
        }
        all
    }
}

fn is_command_position(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '\t']);
    before.is_empty()
        || before.ends_with([';', '\n', '&'])
        || before.ends_with(" do")
        || before.ends_with(";do")
}

/// The variable and the values of the loop that this text begins with.
fn head(text: &str) -> Option<(String, Vec<String>)> {
    let end = text.find([';', '\n'])?;
    let mut words = text.get(..end)?.split_whitespace().skip(1);
    let name =
        words.next().filter(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))?;
    words.next().filter(|word| *word == "in")?;
    let is_literal = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "._-/+@:".contains(c));
    let mut values = Vec::new();
    for word in words {
        match word.strip_prefix('{').and_then(|word| word.strip_suffix('}')?.split_once("..")) {
            Some((from, to)) => {
                // Bash pads `{01..10}`.
                let number =
                    |text: &str| text.parse::<u32>().ok().filter(|number| number.to_string() == text);
                let (from, to) = (number(from)?, number(to)?);
                if from > to || to - from > 999 {
                    return None;
                }
                values.extend((from..=to).map(|number| number.to_string()));
            }
            None if is_literal(word) => values.push(word.to_owned()),
            None => return None,
        }
    }
    (!values.is_empty() && values.len() <= MOST).then(|| (name.to_owned(), values))
}

fn mentions(word: &str, name: &str) -> bool {
    put(word, name, "") != word
}

/// A word with `$name` and `${name}` replaced by the value.
fn put(word: &str, name: &str, value: &str) -> String {
    let word = word.replace(&format!("${{{name}}}"), value);
    let mut out = String::new();
    let mut rest = word.as_str();
    let spelled = format!("${name}");
    while let Some(at) = rest.find(&spelled) {
        let (before, found) = rest.split_at(at);
        let after = found.get(spelled.len()..).unwrap_or_default();
        let is_longer = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        out.push_str(before);
        out.push_str(if is_longer { &spelled } else { value });
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_over_literal_words_says_what_its_variable_can_be() {
        for (line, word, expected) in [
            ("for i in 1 2; do echo $i > n$i; done", "n$i", &["n1", "n2"][..]),
            ("cd d; for f in a.txt b; do touch ${f}.x; done", "${f}.x", &["a.txt.x", "b.x"]),
            ("for i in {1..3}; do echo > $i; done", "$i", &["1", "2", "3"]),
            ("for i in a; do for j in b c; do echo > $i$j; done; done", "$i$j", &["ab", "ac"]),
            ("for i in 1; do echo > $item; done", "$item", &["$item"]),
        ] {
            assert_eq!(LoopVariables::of(line).values(word), expected, "{line}");
        }
    }

    #[test]
    fn a_variable_that_may_be_something_else_is_not_known() {
        for line in [
            "for i in *.txt; do echo > $i; done",
            "for i in $(ls); do echo > $i; done",
            "echo 'x; for i in 1 2; do'; echo > $i",
            "for i in 1 2; do i=../p; echo > $i; done",
            "for i in 1; do :; done; read i; echo > $i",
            "echo > $i; for i in 1; do :; done",
            "for i in 1; do :; done; for i in *; do echo > $i; done",
            "# for\nx; echo > $i",
        ] {
            assert_eq!(LoopVariables::of(line).values("$i"), ["$i"], "{line}");
            assert!(LoopVariables::of(line).is_open("$i"), "{line}");
        }
        assert!(LoopVariables::of("for i in -rf x; do rm $i; done").is_open("$i"), "an option");
    }
}
