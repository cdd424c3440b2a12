//! Trae's files in terms of Lathe's keys: `trae_config.yaml` and the older `trae_config.json`.
//!
//! They are mapped to our keys, each with the line and the spelling of the file, and then checked like every other
//! tree. So a Trae file is checked as thoroughly as our own, but a key that we do not know is never an error, and
//! neither is one that is missing where Trae's own sample misses it.

mod legacy;
mod shown;
mod yaml;

use std::path::{Path, PathBuf};

use lathe_protocol::nearest;

pub(crate) use self::legacy::map as map_legacy;
pub use self::shown::{TraeValue, TraeValueKind, trae_values};
pub(crate) use self::yaml::map as map_yaml;
use crate::problem::{ConfigFault, Problem, ValueSource};
use crate::tree::{Node, TreeEntry, TreeValue, under};

/// A Trae file as a tree of our keys.
pub(crate) struct Mapped {
    pub(crate) tree: Node,
    pub(crate) errors: Vec<Problem>,
    pub(crate) warnings: Vec<Problem>,
    /// The kind of the provider of the agent's model.
    pub(crate) made_for: Option<String>,
}

/// The older JSON file that may be in the place of a missing YAML file.
pub(crate) fn older_form(path: &Path) -> Option<PathBuf> {
    let yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
    yaml.then(|| path.with_extension("json"))
}

/// The maximum number of steps of a run, in Trae's files and in Lathe's.
const STEPS: &str = "max_steps";

/// Pairs of a key of theirs and one of ours.
type KeyNames = &'static [(&'static str, &'static str)];

const PROVIDER: KeyNames = &[
    ("provider", "provider"),
    ("api_key", "api_key"),
    ("base_url", "base_url"),
    ("api_version", "api_version"),
];

const PARAMETERS: KeyNames = &[
    ("model", "name"),
    ("max_tokens", "max_tokens"),
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("top_k", "top_k"),
    ("parallel_tool_calls", "parallel_tool_calls"),
    ("max_retries", "max_retries"),
    ("supports_tool_calling", "supports_tool_calling"),
    ("candidate_count", "candidate_count"),
    ("stop_sequences", "stop_sequences"),
    ("max_completion_tokens", "max_completion_tokens"),
];

const SERVER: KeyNames = &[
    ("command", "command"),
    ("args", "args"),
    ("env", "env"),
    ("cwd", "cwd"),
    ("url", "url"),
    ("http_url", "http_url"),
    ("headers", "headers"),
    ("tcp", "tcp"),
    ("timeout", "timeout"),
    ("trust", "trust"),
    ("description", "description"),
];

/// The common part of both formats: sections read leniently, and the problems they gave.
struct Mapper<'a> {
    source: &'a ValueSource,
    errors: Vec<Problem>,
    warnings: Vec<Problem>,
}

impl<'a> Mapper<'a> {
    fn new(source: &'a ValueSource) -> Self {
        Self { source, errors: Vec::new(), warnings: Vec::new() }
    }

    fn problem(&self, line: Option<u32>, fault: ConfigFault) -> Problem {
        Problem { source: self.source.clone(), line, fault }
    }

    fn error(&mut self, line: Option<u32>, message: impl Into<String>) {
        self.errors.push(self.problem(line, ConfigFault::Trae(message.into())));
    }

    fn warn(&mut self, line: Option<u32>, message: impl Into<String>) {
        self.warnings.push(self.problem(line, ConfigFault::Trae(message.into())));
    }

    /// The entries of a table, each key once. A table without a value is empty.
    fn table(&mut self, node: &Node, spelling: &str) -> Vec<TreeEntry> {
        let mut once: Vec<TreeEntry> = Vec::new();
        match &node.value {
            TreeValue::Null => {}
            TreeValue::Table(entries) => {
                for entry in entries {
                    if let Some(known) = once.iter_mut().find(|known| known.key == entry.key) {
                        *known = entry.clone();
                        let fault = ConfigFault::GivenTwice(under(spelling, &entry.key));
                        self.warnings.push(self.problem(entry.line, fault));
                    } else {
                        once.push(entry.clone());
                    }
                }
            }
            _ => {
                let fault = ConfigFault::WrongValue {
                    key: spelling.to_owned(),
                    expected: "a table".to_owned(),
                    found: node.kind().to_owned(),
                    suggestion: None,
                };
                self.warnings.push(self.problem(node.line, fault));
            }
        }
        once
    }

    fn unknown(&mut self, entry: &TreeEntry, spelling: &str, known: impl IntoIterator<Item = &'static str>) {
        let fault = ConfigFault::UnknownKey {
            key: under(spelling, &entry.key),
            suggestion: nearest(&entry.key, known).map(str::to_owned),
        };
        self.warnings.push(self.problem(entry.line, fault));
    }

    /// The entries under our names. An empty text counts as missing: Trae's sample has empty keys.
    fn renamed(&mut self, entries: &[TreeEntry], spelling: &str, names: &[KeyNames]) -> Vec<TreeEntry> {
        let names = || names.iter().copied().flatten();
        let mut renamed = Vec::new();
        for entry in entries {
            match names().find(|(theirs, _)| *theirs == entry.key) {
                Some(_) if is_nothing(&entry.node) => {}
                Some((_, ours)) => {
                    let mut entry = entry.clone().with_spelling(under(spelling, &entry.key));
                    entry.key = (*ours).to_owned();
                    renamed.push(entry);
                }
                None => self.unknown(entry, spelling, names().map(|(theirs, _)| *theirs)),
            }
        }
        renamed
    }

    /// A map of tables that have the same keys with us, such as `mcp_servers`.
    fn entries_of(&mut self, section: &TreeEntry, names: KeyNames) -> TreeEntry {
        let spelling = section.key.clone();
        let mut inner = Vec::new();
        for entry in self.table(&section.node, &spelling) {
            let spelling = under(&spelling, &entry.key);
            let members = self.table(&entry.node, &spelling);
            let members = self.renamed(&members, &spelling, &[names]);
            inner.push(TreeEntry::new(entry.key, Node::table(members)).at(entry.line));
        }
        TreeEntry::new(&spelling, Node::table(inner)).at(section.line)
    }

    fn finish(self, entries: Vec<TreeEntry>, made_for: Option<String>) -> Mapped {
        Mapped { tree: Node::table(entries), errors: self.errors, warnings: self.warnings, made_for }
    }
}

fn is_nothing(node: &Node) -> bool {
    match &node.value {
        TreeValue::Null => true,
        TreeValue::Text(text) => text.is_empty(),
        _ => false,
    }
}

fn member<'a>(entries: &'a [TreeEntry], key: &str) -> Option<&'a TreeEntry> {
    entries.iter().find(|entry| entry.key == key && !is_nothing(&entry.node))
}

/// The text of a member; a name may look like a number.
fn text_of(entries: &[TreeEntry], key: &str) -> Option<String> {
    match &member(entries, key)?.node.value {
        TreeValue::Text(text) => Some(text.clone()),
        TreeValue::Integer(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The members of a named entry.
fn members_of<'a>(entries: &'a [TreeEntry], name: &str) -> &'a [TreeEntry] {
    match entries.iter().find(|entry| entry.key == name).map(|entry| &entry.node.value) {
        Some(TreeValue::Table(members)) => members,
        _ => &[],
    }
}
