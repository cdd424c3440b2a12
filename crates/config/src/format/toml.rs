//! TOML, with every syntax error of the file at once.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Misread, line_at};
use crate::tree::{Node, TreeEntry, TreeValue};

pub(crate) fn parse(text: &str) -> Result<Node, Vec<Misread>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(Node::table(entries(text, table.get_ref())));
    }
    let mut misreads: Vec<Misread> = errors
        .iter()
        .map(|error| {
            let line = error.span().and_then(|span| line_at(text, span.start));
            Misread::syntax(line, error.message())
        })
        .collect();
    misreads.sort_by_key(|misread| misread.line);
    Err(misreads)
}

fn entries(text: &str, table: &DeTable<'_>) -> Vec<TreeEntry> {
    let mut entries: Vec<(usize, TreeEntry)> = table
        .iter()
        .map(|(key, value)| {
            let start = key.span().start;
            let entry = TreeEntry::new(key.get_ref().as_ref(), node(text, value));
            (start, entry.at(line_at(text, start)))
        })
        .collect();
    // The map is sorted by key; problems are reported in the order of the file.
    entries.sort_by_key(|(start, _)| *start);
    entries.into_iter().map(|(_, entry)| entry).collect()
}

fn node(text: &str, spanned: &Spanned<DeValue<'_>>) -> Node {
    let value = match spanned.get_ref() {
        DeValue::String(value) => TreeValue::Text(value.to_string()),
        DeValue::Integer(value) => match i64::from_str_radix(value.as_str(), value.radix()) {
            Ok(integer) => TreeValue::Integer(integer),
            Err(_) => TreeValue::Float(f64::INFINITY),
        },
        DeValue::Float(value) => TreeValue::Float(value.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => TreeValue::Bool(*value),
        DeValue::Datetime(_) => TreeValue::Date,
        DeValue::Array(items) => TreeValue::List(items.iter().map(|item| node(text, item)).collect()),
        DeValue::Table(table) => TreeValue::Table(entries(text, table)),
    };
    Node::of(value).at(line_at(text, spanned.span().start))
}
