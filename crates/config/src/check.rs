//! The check of a tree against the schema: the values that fit, and the problems of the rest.

use std::collections::BTreeMap;

use lathe_protocol::nearest;
use serde_json::Value as Json;

use crate::part::ConfigPart;
use crate::problem::{ConfigFault, Origin, Problem, ValueSource};
use crate::schema::{Field, ValueShape, fields, fixed_keys};
use crate::secret::Secret;
use crate::tree::{KeyPath, Node, TreeEntry, TreeValue, spell, under};

/// A value and its origin. It may be a key in clear, so it cannot be printed.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) value: Json,
    pub(crate) origin: Origin,
}

pub(crate) type Leaves = BTreeMap<KeyPath, Leaf>;

/// The strictness with which a value is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadingStrictness {
    /// Our own files: a value has exactly its type.
    Exact,
    /// All other sources: variables are all text, and Python takes `1` for true.
    Lenient,
}

/// The author of a tree.
#[derive(Clone, Copy)]
pub(crate) enum TreeAuthor<'a> {
    User,
    /// A project, which may not set every key.
    Project {
        /// The advice about what to do instead.
        instead: &'static str,
        /// Entries that it may set all the same.
        trusted: &'a [ConfigPart],
    },
}

impl TreeAuthor<'_> {
    pub(crate) fn is_user(self) -> bool {
        matches!(self, TreeAuthor::User)
    }

    /// The advice for a project that may not set a key.
    pub(crate) fn instead(self) -> Option<&'static str> {
        match self {
            TreeAuthor::User => None,
            TreeAuthor::Project { instead, .. } => Some(instead),
        }
    }
}

pub(crate) struct Checked {
    pub(crate) leaves: Leaves,
    pub(crate) problems: Vec<Problem>,
    /// Entries that count only with trust.
    pub(crate) parts: Vec<ConfigPart>,
    /// Secrets in values that are left out, each with its name. They are hidden all the same.
    pub(crate) unread: Vec<(String, Secret)>,
}

pub(crate) fn check(
    tree: &Node,
    source: &ValueSource,
    reading: ReadingStrictness,
    speaker: TreeAuthor<'_>,
) -> Checked {
    let mut checker = Checker {
        source,
        reading,
        speaker,
        path: Vec::new(),
        checked: Checked {
            leaves: Leaves::new(),
            problems: Vec::new(),
            parts: Vec::new(),
            unread: Vec::new(),
        },
    };
    match &tree.value {
        TreeValue::Table(entries) => checker.table(entries, fields(), ""),
        TreeValue::Null => {}
        _ => checker.wrong("the file", "a table", tree.kind(), None, tree.line),
    }
    checker.checked
}

struct Checker<'a> {
    source: &'a ValueSource,
    reading: ReadingStrictness,
    speaker: TreeAuthor<'a>,
    path: KeyPath,
    checked: Checked,
}

impl Checker<'_> {
    /// `spelling` is the table as the file spells it.
    fn table(&mut self, entries: &[TreeEntry], fields: &'static [Field], spelling: &str) {
        for entry in entries {
            let key = spelled_key(entry, spelling);
            let Some(field) = fields.iter().find(|field| field.key == entry.key) else {
                let suggestion = suggestion(&entry.key, fields);
                self.problem(ConfigFault::UnknownKey { key, suggestion }, entry.line);
                continue;
            };
            if field.not_yet {
                // Foreign files list keys that they do not use.
                if self.reading == ReadingStrictness::Exact || !entry.node.is_empty() {
                    self.problem(ConfigFault::NotYet(key), entry.line);
                }
                unread_secrets(&entry.node, &field.shape, &entry.key, &mut self.checked.unread);
                continue;
            }
            if let (TreeAuthor::Project { instead, trusted }, Some(reason)) = (self.speaker, &field.user_only)
            {
                if let (true, ValueShape::Map(values), TreeValue::Table(entries)) =
                    (field.by_trust, &field.shape, &entry.node.value)
                {
                    self.by_trust(&entry.key, entries, values, trusted);
                    continue;
                }
                let reason = format!("{reason}; {instead}");
                self.problem(ConfigFault::Refused { key, reason }, entry.line);
                continue;
            }
            self.value(entry, &field.shape, &key);
        }
    }

    /// Entries of a project's file, of which only the trusted ones count.
    fn by_trust(
        &mut self,
        table: &str,
        entries: &[TreeEntry],
        values: &'static ValueShape,
        trusted: &[ConfigPart],
    ) {
        for entry in entries {
            let part = ConfigPart {
                table: table.to_owned(),
                name: entry.key.clone(),
                value: entry.node.to_json(),
                line: entry.line,
            };
            if trusted.iter().any(|known| known.is_same(&part)) {
                self.path.push(table.to_owned());
                self.value(entry, values, &spelled_key(entry, table));
                self.path.pop();
            }
            self.checked.parts.push(part);
        }
    }

    fn value(&mut self, entry: &TreeEntry, shape: &'static ValueShape, spelling: &str) {
        if matches!(entry.node.value, TreeValue::Null) && self.reading == ReadingStrictness::Lenient {
            return;
        }
        self.path.push(entry.key.clone());
        match (shape, &entry.node.value) {
            (ValueShape::Table(fields), TreeValue::Table(entries)) => self.table(entries, fields, spelling),
            (ValueShape::Map(values), TreeValue::Table(entries)) => {
                for inner in entries {
                    self.value(inner, values, &spelled_key(inner, spelling));
                }
            }
            (ValueShape::Table(_) | ValueShape::Map(_), _) => {
                self.wrong(spelling, &shape.expected(), entry.node.kind(), None, entry.line);
            }
            (
                ValueShape::Text { .. }
                | ValueShape::Bool
                | ValueShape::Integer { .. }
                | ValueShape::Number { .. }
                | ValueShape::Choice(_)
                | ValueShape::List(_),
                _,
            ) => match fit(shape, &entry.node, self.reading) {
                Ok(value) => {
                    let origin = Origin { source: self.source.clone(), line: entry.line };
                    self.checked.leaves.insert(self.path.clone(), Leaf { value, origin });
                }
                Err(misfit) => {
                    let line = misfit.line.or(entry.line);
                    self.wrong(spelling, &shape.expected(), &misfit.found, misfit.suggestion, line);
                }
            },
        }
        self.path.pop();
    }

    fn wrong(
        &mut self,
        key: &str,
        expected: &str,
        found: &str,
        suggestion: Option<String>,
        line: Option<u32>,
    ) {
        let fault = ConfigFault::WrongValue {
            key: key.to_owned(),
            expected: expected.to_owned(),
            found: found.to_owned(),
            suggestion,
        };
        self.problem(fault, line);
    }

    fn problem(&mut self, fault: ConfigFault, line: Option<u32>) {
        self.checked.problems.push(Problem { source: self.source.clone(), line, fault });
    }
}

/// Collects the secrets of a value that nothing reads.
fn unread_secrets(node: &Node, shape: &ValueShape, name: &str, found: &mut Vec<(String, Secret)>) {
    match (shape, &node.value) {
        (ValueShape::Text { secret: true }, TreeValue::Text(text)) => {
            found.push((name.to_uppercase(), Secret::new(text.clone())));
        }
        (ValueShape::Map(values), TreeValue::Table(entries)) => {
            for entry in entries {
                unread_secrets(&entry.node, values, &entry.key, found);
            }
        }
        (ValueShape::Table(fields), TreeValue::Table(entries)) => {
            for entry in entries {
                if let Some(field) = fields.iter().find(|field| field.key == entry.key) {
                    unread_secrets(&entry.node, &field.shape, &entry.key, found);
                }
            }
        }
        _ => {}
    }
}

fn spelled_key(entry: &TreeEntry, table: &str) -> String {
    match &entry.spelling {
        Some(spelling) => spelling.clone(),
        None => under(table, &entry.key),
    }
}

/// The key that was probably meant: one of this table, or the same key in its own table.
fn suggestion(key: &str, fields: &[Field]) -> Option<String> {
    if let Some(near) = nearest(key, fields.iter().map(|field| field.key.as_str())) {
        return Some(near.to_owned());
    }
    let elsewhere = fixed_keys().into_iter().find(|(path, _)| path.last().is_some_and(|last| last == key));
    elsewhere.map(|(path, _)| spell(&path))
}

struct Misfit {
    line: Option<u32>,
    found: String,
    suggestion: Option<String>,
}

fn fit(shape: &ValueShape, node: &Node, reading: ReadingStrictness) -> Result<Json, Misfit> {
    let lenient = reading == ReadingStrictness::Lenient;
    let misfit = |found: String, suggestion: Option<String>| Misfit { line: node.line, found, suggestion };
    let wrong_type = || misfit(node.kind().to_owned(), None);
    match shape {
        ValueShape::Text { .. } => match &node.value {
            TreeValue::Text(text) => Ok(Json::String(text.clone())),
            TreeValue::Integer(number) if lenient => Ok(Json::String(number.to_string())),
            TreeValue::Float(number) if lenient => Ok(Json::String(number.to_string())),
            _ => Err(wrong_type()),
        },
        ValueShape::Bool => match &node.value {
            TreeValue::Bool(value) => Ok(Json::Bool(*value)),
            TreeValue::Integer(number @ 0..=1) if lenient => Ok(Json::Bool(*number == 1)),
            TreeValue::Text(text) if lenient => match boolean(text) {
                Some(value) => Ok(Json::Bool(value)),
                None => {
                    let suggestion = nearest(text, ["true", "false"]).map(str::to_owned);
                    Err(misfit(format!("{text:?}"), suggestion))
                }
            },
            _ => Err(wrong_type()),
        },
        ValueShape::Integer { least, most } => match integer(&node.value, lenient) {
            Some(number) if (*least..=*most).contains(&number) => Ok(number.into()),
            Some(number) => Err(misfit(number.to_string(), None)),
            None => Err(wrong_type()),
        },
        ValueShape::Number { least, most } => match number(&node.value, lenient) {
            Some(number) if (*least..=*most).contains(&number) => Ok(number.into()),
            Some(number) => Err(misfit(number.to_string(), None)),
            None if matches!(&node.value, TreeValue::Float(_)) => Err(misfit("not finite".to_owned(), None)),
            None => Err(wrong_type()),
        },
        ValueShape::Choice(words) => {
            let TreeValue::Text(text) = &node.value else {
                return Err(wrong_type());
            };
            let same = |word: &&String| *word == text || (lenient && word.eq_ignore_ascii_case(text));
            match words.iter().find(same) {
                Some(word) => Ok(Json::String(word.clone())),
                None => {
                    let near = nearest(text, words.iter().map(String::as_str));
                    Err(misfit(format!("{text:?}"), near.map(str::to_owned)))
                }
            }
        }
        ValueShape::List(items) => match &node.value {
            TreeValue::List(nodes) => {
                let fitted: Result<Vec<Json>, Misfit> =
                    nodes.iter().map(|node| fit(items, node, reading)).collect();
                fitted.map(Json::Array).map_err(|misfit| Misfit {
                    found: format!("a list with {} in it", misfit.found),
                    ..misfit
                })
            }
            _ => Err(wrong_type()),
        },
        ValueShape::Map(_) | ValueShape::Table(_) => Err(wrong_type()),
    }
}

/// Words of YAML 1.1, and common words in variables.
fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "y" | "1" => Some(true),
        "false" | "no" | "off" | "n" | "0" => Some(false),
        _ => None,
    }
}

fn integer(value: &TreeValue, lenient: bool) -> Option<i64> {
    match value {
        TreeValue::Integer(number) => Some(*number),
        TreeValue::Float(number) if lenient && number.fract() == 0.0 && number.abs() < 1e15 => {
            Some(*number as i64)
        }
        TreeValue::Text(text) if lenient => text.trim().parse().ok(),
        _ => None,
    }
}

fn number(value: &TreeValue, lenient: bool) -> Option<f64> {
    let number = match value {
        TreeValue::Integer(number) => Some(*number as f64),
        TreeValue::Float(number) => Some(*number),
        TreeValue::Text(text) if lenient => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(json: serde_json::Value, reading: ReadingStrictness) -> (Vec<(String, Json)>, Vec<String>) {
        let source = ValueSource::Flag("--x".to_owned());
        let checked = check(&Node::from(&json), &source, reading, TreeAuthor::User);
        (
            checked.leaves.iter().map(|(path, leaf)| (spell(path), leaf.value.clone())).collect(),
            checked.problems.iter().map(|problem| problem.fault.to_string()).collect(),
        )
    }

    fn one(key: &str, value: serde_json::Value, reading: ReadingStrictness) -> Result<Json, String> {
        let (table, key) = key.split_once('.').unwrap();
        let (leaves, problems) = said(serde_json::json!({table: {key: value}}), reading);
        match problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(leaves[0].1.clone()),
        }
    }

    #[test]
    fn our_files_say_exactly_what_they_mean() {
        use ReadingStrictness::Exact;
        assert_eq!(one("run.line_seconds", 3.into(), Exact), Ok(3.into()));
        assert_eq!(one("model.temperature", 1.into(), Exact), Ok(1.0.into()));
        for (key, value, problem) in [
            (
                "run.line_seconds",
                Json::from("3"),
                "`run.line_seconds` must be a whole number of at least 1, but is text",
            ),
            (
                "run.line_seconds",
                0.into(),
                "`run.line_seconds` must be a whole number of at least 1, but is 0",
            ),
            (
                "run.line_seconds",
                1.0.into(),
                "`run.line_seconds` must be a whole number of at least 1, but is a number",
            ),
            (
                "run.line_seconds",
                5_000_000_000_i64.into(),
                "`run.line_seconds` must be a whole number of at least 1, but is 5000000000",
            ),
            ("run.must_patch", "yes".into(), "`run.must_patch` must be true or false, but is text"),
            ("run.must_patch", 1.into(), "`run.must_patch` must be true or false, but is a whole number"),
            ("model.name", 4.into(), "`model.name` must be text, but is a whole number"),
            ("model.temperature", 3.into(), "`model.temperature` must be a number from 0 to 2, but is 3"),
            ("model.api_key", 12345.into(), "`model.api_key` must be text, but is a whole number"),
            (
                "run.mode",
                "ful-auto".into(),
                "`run.mode` must be one of plan, default, auto-edit, full-auto, but is \"ful-auto\"; did you mean `full-auto`?",
            ),
            (
                "run.mode",
                "Plan".into(),
                "`run.mode` must be one of plan, default, auto-edit, full-auto, but is \"Plan\"; did you mean `plan`?",
            ),
            (
                "run.tools",
                serde_json::json!(["bash", 3]),
                "`run.tools` must be a list (text each), but is a list with a whole number in it",
            ),
        ] {
            assert_eq!(one(key, value, Exact), Err(problem.to_owned()), "{key}");
        }
    }

    #[test]
    fn others_are_understood_where_it_is_clear() {
        use ReadingStrictness::Lenient;
        for (key, value, read) in [
            ("run.line_seconds", Json::from("3"), Json::from(3)),
            ("run.line_seconds", 40.0.into(), 40.into()),
            ("run.must_patch", "yes".into(), true.into()),
            ("run.must_patch", "Off".into(), false.into()),
            ("run.must_patch", 1.into(), true.into()),
            ("model.name", 4.into(), "4".into()),
            ("model.temperature", "0.5".into(), 0.5.into()),
            ("run.mode", "PLAN".into(), "plan".into()),
        ] {
            assert_eq!(one(key, value, Lenient), Ok(read), "{key}");
        }
        assert_eq!(
            one("run.must_patch", "flase".into(), Lenient).unwrap_err(),
            "`run.must_patch` must be true or false, but is \"flase\"; did you mean `false`?"
        );
        assert_eq!(said(serde_json::json!({"run": {"mode": null}}), Lenient), (vec![], vec![]));
    }

    #[test]
    fn unknown_keys_get_a_suggestion_near_or_elsewhere() {
        let tree = serde_json::json!({
            "modle": {},
            "line_seconds": 3,
            "run": {"line_second": 1, "colour": 2},
            "models": {"gpt 4.1": {"nam": "x"}},
            "model": 3,
        });
        assert_eq!(
            said(tree, ReadingStrictness::Exact).1,
            [
                "unknown key `modle`; did you mean `model`?",
                "unknown key `line_seconds`; did you mean `run.line_seconds`?",
                "unknown key `run.line_second`; did you mean `line_seconds`?",
                "unknown key `run.colour`",
                "unknown key `models.\"gpt 4.1\".nam`; did you mean `name`?",
                "`model` must be a table, but is a whole number",
            ]
        );
    }
}
