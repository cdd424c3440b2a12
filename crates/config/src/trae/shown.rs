//! A Trae file as the user sees it before trusting it: every value, but no key.

use std::path::Path;

use lathe_protocol::plain_address;

use crate::format::{parse_json, parse_yaml};
use crate::problem::ConfigFault;
use crate::tree::{Node, TreeEntry, TreeValue, under};

/// The meaning of a value for the user who is asked to trust it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraeValueKind {
    /// The place something is sent to.
    Address,
    /// A program, or words that it gets.
    Program,
    /// A key or other secret. Its value is not shown.
    Key,
    Other,
}

/// A value of a Trae file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraeValue {
    pub kind: TraeValueKind,
    /// The whole key as the file spells it.
    pub key: String,
    /// The words of a list, or the one value. Empty for a key.
    pub words: Vec<String>,
}

/// Parts of a name that mark its value as a secret.
const SECRET: [&str; 6] = ["key", "token", "secret", "password", "passwd", "credential"];

/// Tables whose values are all kept as secrets.
const SECRET_TABLES: [&str; 2] = ["env", "headers"];

const ADDRESSES: [&str; 4] = ["base_url", "url", "http_url", "tcp"];

const PROGRAMS: [&str; 3] = ["command", "args", "cwd"];

/// Every value of a Trae file in the order of the file, or the reason why it cannot be read.
pub fn trae_values(path: &Path, text: &str) -> Result<Vec<TraeValue>, String> {
    let parsed = match path.extension().is_some_and(|end| end == "json") {
        true => parse_json(text),
        false => parse_yaml(text),
    };
    let root = parsed.map_err(|misread| match (misread.line, misread.fault) {
        (Some(line), fault) => format!("line {line}: {fault}"),
        (None, fault) => fault.to_string(),
    })?;
    let TreeValue::Table(entries) = &root.value else {
        return Err(ConfigFault::Trae("it is not a table".to_owned()).to_string());
    };
    let mut values = Vec::new();
    for entry in entries {
        add(entry, "", false, &mut values);
    }
    Ok(values)
}

fn add(entry: &TreeEntry, table: &str, in_secrets: bool, values: &mut Vec<TraeValue>) {
    let key = under(table, &entry.key);
    let name = entry.key.to_ascii_lowercase();
    if let TreeValue::Table(inner) = &entry.node.value {
        let in_secrets = in_secrets || SECRET_TABLES.contains(&name.as_str());
        for entry in inner {
            add(entry, &key, in_secrets, values);
        }
        return;
    }
    let words = words(&entry.node);
    if words.is_empty() {
        return;
    }
    let is_address = ADDRESSES.contains(&name.as_str()) || words.iter().any(|word| word.contains("://"));
    let is_text = matches!(entry.node.value, TreeValue::Text(_) | TreeValue::List(_));
    let kind = if in_secrets || (is_text && SECRET.iter().any(|part| name.contains(part))) {
        TraeValueKind::Key
    } else if PROGRAMS.contains(&name.as_str()) {
        TraeValueKind::Program
    } else if is_address {
        TraeValueKind::Address
    } else {
        TraeValueKind::Other
    };
    let words = match kind {
        TraeValueKind::Key => Vec::new(),
        TraeValueKind::Address => words.iter().map(|word| plain_address(word)).collect(),
        TraeValueKind::Program | TraeValueKind::Other => words,
    };
    values.push(TraeValue { kind, key, words });
}

fn words(node: &Node) -> Vec<String> {
    match &node.value {
        TreeValue::Null => Vec::new(),
        TreeValue::Text(text) if text.is_empty() => Vec::new(),
        TreeValue::Text(text) => vec![text.clone()],
        TreeValue::Bool(value) => vec![value.to_string()],
        TreeValue::Integer(value) => vec![value.to_string()],
        TreeValue::Float(value) => vec![value.to_string()],
        TreeValue::Date => vec!["a date".to_owned()],
        TreeValue::List(nodes) => nodes.iter().flat_map(words).collect(),
        TreeValue::Table(entries) => entries.iter().flat_map(|entry| words(&entry.node)).collect(),
    }
}
