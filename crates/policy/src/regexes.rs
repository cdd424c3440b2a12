//! Regular expressions in rules: about the text of a command, and about the arguments of a call.
//!
//! A rule allows only a text that matches as a whole; to ask or deny, it is enough that the expression is found in
//! it. A word that is known only when the line runs has no text, so a command that must be denied in every spelling
//! is better named by `command`.

use lathe_bash::{Word, normal_words};
use lathe_protocol::Verdict;
use regex::{Regex, RegexBuilder};
use serde_json::Value;

use crate::names;
use crate::rules::GateCommand;

/// The most characters of an expression.
const LONGEST: usize = 2048;

/// The most bytes that a compiled expression may take.
const LARGEST: usize = 1 << 20;

/// One expression, in a form that is searched for and in a form that matches a whole text.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    found: Regex,
    whole: Regex,
}

impl Pattern {
    pub(crate) fn new(text: &str) -> Result<Self, String> {
        if text.is_empty() || text.chars().count() > LONGEST {
            return Err(format!("a regular expression has 1 to {LONGEST} characters"));
        }
        let build = |text: &str| {
            let built = RegexBuilder::new(text).size_limit(LARGEST).build();
            built.map_err(|error| format!("`{text}` is not a regular expression: {error}"))
        };
        Ok(Self { found: build(text)?, whole: build(&format!(r"\A(?:{text})\z"))? })
    }

    /// Tells whether a rule with this decision means the text.
    fn matches(&self, text: &str, decision: Verdict) -> bool {
        match decision {
            Verdict::Allow => self.whole.is_match(text),
            Verdict::Ask | Verdict::Deny => self.found.is_match(text),
        }
    }
}

/// Tells whether one of the expressions is about a command: by its words, by their expansion, and by the commands it
/// may run besides.
pub(crate) fn match_command(patterns: &[Pattern], act: GateCommand<'_>, decision: Verdict) -> bool {
    let given = &act.command.words;
    let means = |text: &str| patterns.iter().any(|pattern| pattern.matches(text, decision));
    if decision == Verdict::Allow {
        // A word that is not plain is quoted: a blank in a word is not one between two.
        let literal: Option<Vec<String>> = given.iter().map(|word| word.literal().map(spelled)).collect();
        return literal.is_some_and(|words| !words.is_empty() && means(&words.join(" ")));
    }
    // In full-auto, no question is asked about the program that a word becomes.
    let unknown = !act.asks && given.first().is_some_and(|word| word.literal().is_none());
    let texts = || {
        let normal = names::plain_words(&normal_words(given));
        let shown: Vec<String> = given.iter().map(Word::show).collect();
        let literal: Vec<&str> = given.iter().filter_map(Word::literal).collect();
        [normal.join(" "), shown.join(" "), literal.join(" ")]
    };
    unknown
        || texts().iter().any(|text| means(text))
        || act.possible.rows.iter().any(|row| means(&row.join(" ")))
}

/// Tells whether one of the expressions is about a line as it is written. No rule allows a line by that.
pub(crate) fn match_line(patterns: &[Pattern], line: &str, decision: Verdict) -> bool {
    decision != Verdict::Allow && patterns.iter().any(|pattern| pattern.matches(line, decision))
}

/// Tells whether one of the expressions is about arguments: each by itself as `"name":value`, in one of the forms
/// that they have.
pub(crate) fn match_arguments(patterns: &[Pattern], forms: &[Value], decision: Verdict) -> bool {
    let means = |text: &str| patterns.iter().any(|pattern| pattern.matches(text, decision));
    forms.iter().any(|arguments| match arguments {
        Value::Object(members) => {
            members.iter().any(|(name, value)| means(&format!("{}:{value}", Value::from(name.as_str()))))
        }
        other => means(&other.to_string()),
    })
}

/// A word in single quotes, unless it is plain.
fn spelled(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./:=,+@%^".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
