//! Reads a rule file, and checks that every rule does what its examples say.

use lathe_protocol::{Actor, Mode, ToolKind, Verdict};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::PolicyError;
use crate::names::{self, KnownNames, ToolNameKind};
use crate::regexes::Pattern;
use crate::rules::Rule;

/// The rules of one file, and its decision about everything else.
#[derive(Debug, Clone, Default)]
pub(crate) struct RuleFile {
    pub(crate) default: Option<Verdict>,
    pub(crate) rules: Vec<Rule>,
}

/// A value with its position in the file.
type Value<'a> = Spanned<DeValue<'a>>;

struct RuleSource<'a> {
    name: &'a str,
    text: &'a str,
    /// The names that rules may give.
    names: &'a KnownNames,
}

impl RuleSource<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or("").matches('\n').count() + 1
    }

    fn syntax(&self, at: usize, why: impl Into<String>) -> PolicyError {
        PolicyError::Syntax { file: self.name.to_owned(), line: self.line(at), why: why.into() }
    }
}

pub(crate) fn parse(name: &str, text: &str, names: &KnownNames) -> Result<RuleFile, PolicyError> {
    let source = RuleSource { name, text, names };
    let table = DeTable::parse(text)
        .map_err(|error| source.syntax(error.span().map_or(0, |span| span.start), error.message()))?;
    let mut file = RuleFile::default();
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "default" => {
                let word = string(&source, value)?;
                file.default = Some(verdict(word).ok_or_else(|| {
                    source.syntax(value.span().start, "`default` is one of allow, ask, deny")
                })?);
            }
            "rule" => {
                let DeValue::Array(rules) = value.get_ref() else {
                    return Err(source.syntax(value.span().start, "a rule begins with [[rule]]"));
                };
                for (index, rule) in rules.iter().enumerate() {
                    file.rules.push(one(&source, index + 1, rule)?);
                }
            }
            other => {
                return Err(source.syntax(key.span().start, format!("there is no `{other}` in a rule file")));
            }
        }
    }
    for rule in &file.rules {
        rule.check(names)?;
    }
    Ok(file)
}

fn one(source: &RuleSource<'_>, number: usize, value: &Value<'_>) -> Result<Rule, PolicyError> {
    let line = source.line(value.span().start);
    let wrong = |at: usize, why: String| PolicyError::Rule {
        file: source.name.to_owned(),
        line: source.line(at),
        rule: number,
        why,
    };
    let DeValue::Table(table) = value.get_ref() else {
        return Err(wrong(value.span().start, "a rule begins with [[rule]]".to_owned()));
    };
    let mut rule = Rule { file: source.name.to_owned(), line, number, ..Rule::default() };
    let mut decided = false;
    for (key, value) in table {
        let at = value.span().start;
        match key.get_ref().as_ref() {
            "decision" => {
                rule.decision = verdict(string(source, value)?)
                    .ok_or_else(|| wrong(at, "`decision` is one of allow, ask, deny".to_owned()))?;
                decided = true;
            }
            "command" => {
                for prefix in strings(source, value)? {
                    let words: Vec<String> = prefix.split_whitespace().map(str::to_owned).collect();
                    if words.is_empty()
                        || prefix.contains(['\'', '"', '\\', '$', '`', ';', '|', '&', '<', '>'])
                    {
                        return Err(wrong(at, format!("`{prefix}` is not a list of plain words")));
                    }
                    rule.command.push(words);
                }
            }
            "words" => rule.words = lists(source, value)?,
            "command_regex" | "args_pattern" => {
                let texts = strings(source, value)?;
                let patterns: Result<Vec<Pattern>, String> =
                    texts.iter().map(|text| Pattern::new(text)).collect();
                let patterns = patterns.map_err(|why| wrong(at, why))?;
                match key.get_ref().as_ref() {
                    "command_regex" => rule.command_regex = patterns,
                    _ => rule.args_pattern = patterns,
                }
            }
            "allow_redirection" => match value.get_ref() {
                DeValue::Boolean(said) => rule.redirects = *said,
                _ => return Err(wrong(at, "`allow_redirection` is true or false".to_owned())),
            },
            "workspace" => rule.workspace = strings(source, value)?,
            "folder" => rule.folder = strings(source, value)?,
            "tool" => {
                rule.tool = strings(source, value)?;
                let unknown = |name: &&String| names::classify(name, source.names) == ToolNameKind::Unknown;
                if let Some(name) = rule.tool.iter().find(unknown) {
                    return Err(wrong(at, names::unknown_name(name, source.names)));
                }
            }
            "path" => {
                rule.path = strings(source, value)?;
                if let Some(why) = rule.path.iter().find_map(|path| unmatched(path)) {
                    return Err(wrong(at, why));
                }
            }
            "host" => {
                rule.host = strings(source, value)?;
                if rule.host.iter().any(|host| host.trim().is_empty()) {
                    return Err(wrong(at, "the name of a host is empty".to_owned()));
                }
            }
            "kind" => {
                for word in strings(source, value)? {
                    rule.kind.push(kind(&word).ok_or_else(|| wrong(at, names::unknown_kind(&word, &KINDS)))?);
                }
            }
            "mode" => {
                for word in strings(source, value)? {
                    let mode = Mode::ALL.into_iter().find(|mode| mode.as_str() == word);
                    rule.mode.push(mode.ok_or_else(|| wrong(at, format!("there is no mode `{word}`")))?);
                }
            }
            "actor" => {
                for word in strings(source, value)? {
                    rule.actor.push(match word.as_str() {
                        "model" => Actor::Model,
                        "person" => Actor::Person,
                        "project" => Actor::Project,
                        _ => return Err(wrong(at, format!("there is no actor `{word}`"))),
                    });
                }
            }
            "reason" => rule.reason = string(source, value)?.to_owned(),
            "match" => rule.matches = strings(source, value)?,
            "not_match" => rule.not_matches = strings(source, value)?,
            other => {
                let ours = GEMINI.iter().find(|(theirs, _)| *theirs == other);
                let hint = ours.map_or(String::new(), |(_, ours)| format!("; Lathe's word is `{ours}`"));
                return Err(wrong(key.span().start, format!("a rule has no `{other}`{hint}")));
            }
        }
    }
    if !decided {
        return Err(wrong(value.span().start, "`decision` is missing".to_owned()));
    }
    if rule.is_empty() {
        return Err(wrong(
            value.span().start,
            "it names nothing: give command, words, command_regex, tool, kind, path or host".to_owned(),
        ));
    }
    if let Some(why) = contradiction(&rule) {
        return Err(wrong(value.span().start, why.to_owned()));
    }
    Ok(rule)
}

/// Fields of Gemini CLI's rules, each with Lathe's name for it.
const GEMINI: [(&str, &str); 7] = [
    ("toolName", "tool"),
    ("commandPrefix", "command"),
    ("commandRegex", "command_regex"),
    ("argsPattern", "args_pattern"),
    ("allowRedirection", "allow_redirection"),
    ("denyMessage", "reason"),
    ("modes", "mode"),
];

/// Says why a path pattern can match nothing as it is written.
fn unmatched(path: &str) -> Option<String> {
    let what = match path {
        _ if path.trim().is_empty() => return Some("a `path` is empty".to_owned()),
        _ if path.contains(['{', '}']) => "braces",
        _ if path.contains(['[', ']']) => "sets in brackets",
        _ if path.starts_with('!') => "a leading `!`",
        _ if path.split_once(':').is_some_and(|(scheme, _)| scheme.eq_ignore_ascii_case("file")) => "`file:`",
        _ => return None,
    };
    Some(format!(
        "`{path}`: {what} is not understood in a `path`; write a name with `*`, `**` and `?`, one entry for each"
    ))
}

/// Says which fields of a rule do not go together.
fn contradiction(rule: &Rule) -> Option<&'static str> {
    let of_words = !rule.command.is_empty() || !rule.words.is_empty();
    if of_words && !rule.command_regex.is_empty() {
        return Some("give `command` and `words`, or `command_regex`, not both");
    }
    if !rule.args_pattern.is_empty() && rule.is_of_commands() {
        return Some("`args_pattern` is about the call of a tool: give `tool`, and no command");
    }
    if !rule.args_pattern.is_empty() && rule.tool.is_empty() && rule.kind.is_empty() {
        return Some("`args_pattern` needs `tool` or `kind`");
    }
    let allows = rule.decision == Verdict::Allow && rule.is_of_commands();
    (rule.redirects && !allows).then_some("`allow_redirection` belongs to a rule that allows a command")
}

fn verdict(word: &str) -> Option<Verdict> {
    Some(match word {
        "allow" => Verdict::Allow,
        "ask" => Verdict::Ask,
        "deny" => Verdict::Deny,
        _ => return None,
    })
}

const KINDS: [ToolKind; 10] = [
    ToolKind::Read,
    ToolKind::Edit,
    ToolKind::Delete,
    ToolKind::Move,
    ToolKind::Search,
    ToolKind::Execute,
    ToolKind::Think,
    ToolKind::Fetch,
    ToolKind::Communicate,
    ToolKind::Other,
];

fn kind(word: &str) -> Option<ToolKind> {
    KINDS.into_iter().find(|kind| kind.as_str() == word)
}

fn string<'v>(source: &RuleSource<'_>, value: &'v Value<'_>) -> Result<&'v str, PolicyError> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text),
        _ => Err(source.syntax(value.span().start, "a text in quotes is expected here")),
    }
}

/// A list of texts; a single text will do.
fn strings(source: &RuleSource<'_>, value: &Value<'_>) -> Result<Vec<String>, PolicyError> {
    match value.get_ref() {
        DeValue::String(text) => Ok(vec![text.to_string()]),
        DeValue::Array(items) => items.iter().map(|item| string(source, item).map(str::to_owned)).collect(),
        _ => Err(source.syntax(value.span().start, "a list of texts is expected here")),
    }
}

/// A list of lists of texts.
fn lists(source: &RuleSource<'_>, value: &Value<'_>) -> Result<Vec<Vec<String>>, PolicyError> {
    match value.get_ref() {
        DeValue::Array(items) => {
            items
                .iter()
                .map(|item| match item.get_ref() {
                    DeValue::Array(words) if !words.is_empty() => strings(source, item),
                    _ => Err(source
                        .syntax(item.span().start, "a list of the words of one command is expected here")),
                })
                .collect()
        }
        _ => Err(source.syntax(value.span().start, "a list of lists of words is expected here")),
    }
}
