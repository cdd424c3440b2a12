//! TOML, read into the tree, and its tables with headers.

use std::ops::Range;

use serde_json::{Number, Value};
use toml_edit::{Document, InlineTable, Item as TomlItem, Table, Value as TomlValue};

use super::flow::Flow;
use super::json::find_commas;
use super::lines::{indent, line_end, line_start, next_line};
use super::tree::{Group, GroupForm, Node, NodeShape, PathStep, Style, TextPatch, TreeItem};
use super::write::{inline, key};
use super::{DataError, DataLanguage, position};

pub(super) fn parse(text: &str) -> Result<Node, DataError> {
    let document = Document::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        DataError::Invalid { line, column, reason: error.message().to_owned() }
    })?;
    Ok(table(text, document.as_table(), Some(0..0)))
}

fn table(text: &str, table: &Table, header: Option<Range<usize>>) -> Node {
    let mut items = Vec::new();
    for (name, item) in table.iter() {
        let place = table.key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
        let node = match item {
            TomlItem::None => continue,
            TomlItem::Value(value) => self::value(text, value),
            TomlItem::Table(inner) => {
                let header = (!inner.is_implicit() && !inner.is_dotted()).then(|| inner.span()).flatten();
                self::table(text, inner, header)
            }
            TomlItem::ArrayOfTables(tables) => {
                let items = tables.iter().map(|inner| {
                    let node = self::table(text, inner, inner.span());
                    TreeItem { key: None, start: node.span.start, node, comma: None }
                });
                let group = Group { form: GroupForm::Section(None), items: items.collect() };
                Node { span: tables.span().unwrap_or(0..0), shape: NodeShape::List(group), fixed: None }
            }
        };
        items.push(TreeItem {
            key: Some((name.to_owned(), place.end)),
            start: place.start,
            node,
            comma: None,
        });
    }
    let span = header.clone().unwrap_or(0..0);
    Node { span, shape: NodeShape::Map(Group { form: GroupForm::Section(header), items }), fixed: None }
}

fn value(text: &str, value: &TomlValue) -> Node {
    let span = value.span().unwrap_or(0..0);
    let inside = (span.start + 1).min(span.end)..span.end.saturating_sub(1).max(span.start + 1);
    let style = if text[span.clone()].starts_with('\'') { Style::Single } else { Style::Double };
    let scalar = |value: Value| NodeShape::Scalar(value, style);
    let shape = match value {
        TomlValue::String(string) => scalar(Value::String(string.value().clone())),
        TomlValue::Integer(number) => scalar(Value::from(*number.value())),
        TomlValue::Float(number) => scalar(
            // JSON has no infinity: such values are shown as they are written.
            Number::from_f64(*number.value())
                .map_or_else(|| Value::String(text[span.clone()].to_owned()), Value::Number),
        ),
        TomlValue::Boolean(boolean) => scalar(Value::Bool(*boolean.value())),
        TomlValue::Datetime(datetime) => scalar(Value::String(datetime.value().to_string())),
        TomlValue::Array(array) => {
            let items = array.iter().map(|item| {
                let node = self::value(text, item);
                TreeItem { key: None, start: node.span.start, node, comma: None }
            });
            NodeShape::List(Group { form: GroupForm::Flow(inside), items: items.collect() })
        }
        TomlValue::InlineTable(table) => NodeShape::Map(inline_table(text, table, inside)),
    };
    let mut node = Node { span, shape, fixed: None };
    find_commas(text, &mut node, DataLanguage::Toml);
    node
}

fn inline_table(text: &str, table: &InlineTable, inside: Range<usize>) -> Group {
    let items = table.iter().map(|(name, value)| {
        let place = table.key(name).and_then(toml_edit::Key::span).unwrap_or(0..0);
        TreeItem {
            key: Some((name.to_owned(), place.end)),
            start: place.start,
            node: self::value(text, value),
            comma: None,
        }
    });
    let form = if table.is_dotted() { GroupForm::Section(None) } else { GroupForm::Flow(inside) };
    Group { form, items: items.collect() }
}

pub(super) fn set(flow: &Flow<'_>, node: &Node, new: &Value) -> Result<Vec<TextPatch>, DataError> {
    if node.group().is_some_and(|group| matches!(group.form, GroupForm::Section(_))) {
        return Err(DataError::unsupported("a table with lines of its own is set key by key"));
    }
    flow.set(node, new)
}

pub(super) fn insert(
    flow: &Flow<'_>,
    root: &Node,
    node: &Node,
    step: &PathStep,
    new: &Value,
) -> Result<Vec<TextPatch>, DataError> {
    let text = flow.text;
    let (group, name) = match (&node.shape, step) {
        (NodeShape::Map(group), PathStep::Key(name)) => (group, name),
        (NodeShape::List(group), PathStep::Index(index)) => {
            return insert_table(flow, root, group, *index, new);
        }
        (NodeShape::Map(_) | NodeShape::List(_) | NodeShape::Scalar(..), _) => {
            return Err(DataError::unsupported("the place has no such parts"));
        }
    };
    let GroupForm::Section(Some(header)) = &group.form else {
        return Err(DataError::unsupported("the table has no header of its own to put a key under"));
    };
    let line = format!("{} = {}", key(DataLanguage::Toml, name), inline(DataLanguage::Toml, new, false)?);
    if let Some((start, end)) = last_line(group) {
        let place = line_end(text, end);
        return Ok(vec![(place..place, format!("{}{}{line}", flow.newline, indent(text, start)))]);
    }
    if !header.is_empty() {
        let place = line_end(text, header.end);
        return Ok(vec![(place..place, format!("{}{}{line}", flow.newline, indent(text, header.start)))]);
    }
    // The first key of the file: before the first header and the comment above it.
    let first = sections(text, root).into_iter().next();
    Ok(vec![match first {
        Some((section, _)) => (section.start..section.start, format!("{line}{0}{0}", flow.newline)),
        None => {
            let gap = if text.is_empty() || text.ends_with('\n') { "" } else { flow.newline };
            (text.len()..text.len(), format!("{gap}{line}{}", flow.newline))
        }
    }])
}

/// Inserts a new table of an array of tables, under a header like the others'.
fn insert_table(
    flow: &Flow<'_>,
    root: &Node,
    group: &Group,
    index: usize,
    new: &Value,
) -> Result<Vec<TextPatch>, DataError> {
    let (Value::Object(map), Some(last)) = (new, group.items.last()) else {
        return Err(DataError::unsupported("an array of tables holds only tables"));
    };
    let text = flow.text;
    let mut lines = vec![text[last.node.span.clone()].to_owned()];
    for (name, value) in map {
        lines.push(format!(
            "{} = {}",
            key(DataLanguage::Toml, name),
            inline(DataLanguage::Toml, value, false)?
        ));
    }
    let lines = lines.join(flow.newline);
    let sections = sections(text, root);
    let section = |header: usize| sections.iter().find(|(_, at)| *at == header).map(|(section, _)| section);
    if let Some(section) = group.items.get(index).and_then(|item| section(item.start)) {
        return Ok(vec![(section.start..section.start, format!("{lines}{0}{0}", flow.newline))]);
    }
    let mut headers = Vec::new();
    collect(&last.node, &mut headers);
    let end = headers.into_iter().filter_map(section).map(|section| section.end).max().unwrap_or(text.len());
    let before = &text[..end];
    let (gap, tail) = match (before.ends_with('\n'), end == text.len()) {
        (false, _) => (flow.newline.repeat(2), String::new()),
        (true, true) => (flow.newline.to_owned(), flow.newline.to_owned()),
        (true, false) => (String::new(), flow.newline.repeat(2)),
    };
    Ok(vec![(end..end, format!("{gap}{lines}{tail}"))])
}

/// Start and end of the last value written directly under a header.
fn last_line(group: &Group) -> Option<(usize, usize)> {
    let ends = group.items.iter().filter_map(|item| match item.node.group() {
        // Dotted keys are written here too.
        Some(Group { form: GroupForm::Section(None), .. }) => item.node.group().and_then(last_line),
        Some(Group { form: GroupForm::Section(Some(_)), .. }) => None,
        Some(Group { form: GroupForm::Flow(_) | GroupForm::Block, .. }) | None => {
            Some((item.start, item.end()))
        }
    });
    ends.max_by_key(|(_, end)| *end)
}

pub(super) fn remove(
    flow: &Flow<'_>,
    root: &Node,
    group: &Group,
    indexes: &[usize],
) -> Result<Vec<TextPatch>, DataError> {
    let sections = sections(flow.text, root);
    let mut patches = Vec::new();
    for &index in indexes {
        lines_of(flow.text, &group.items[index], &sections, &mut patches);
    }
    patches.sort_by_key(|(range, _)| range.start);
    patches.dedup();
    Ok(patches)
}

/// Adds patches that remove all text of an item: its line, or the sections of its tables.
fn lines_of(text: &str, item: &TreeItem, sections: &[(Range<usize>, usize)], patches: &mut Vec<TextPatch>) {
    let Some(Group { form: GroupForm::Section(header), items }) = item.node.group() else {
        let range = line_start(text, item.start)..next_line(text, item.end());
        patches.push((range, String::new()));
        return;
    };
    if let Some(header) = header
        && let Some((section, _)) = sections.iter().find(|(_, at)| *at == header.start)
    {
        patches.push((line_start(text, header.start)..section.end, String::new()));
    }
    for inner in items {
        // The keys under the header are already removed with it.
        let section = inner.node.group().is_some_and(|group| matches!(group.form, GroupForm::Section(_)));
        if section || header.is_none() {
            lines_of(text, inner, sections, patches);
        }
    }
}

/// The sections of a file in order, each from the comment above its header to the
/// comment above the next, with the start of the header.
fn sections(text: &str, root: &Node) -> Vec<(Range<usize>, usize)> {
    let mut headers = Vec::new();
    collect(root, &mut headers);
    headers.sort_unstable();
    let above = |header: usize| {
        let mut start = line_start(text, header);
        while start > 0 {
            let before = line_start(text, start - 1);
            if !text[before..start].trim_start().starts_with('#') {
                break;
            }
            start = before;
        }
        start
    };
    let starts: Vec<usize> = headers.iter().map(|header| above(*header)).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).zip(headers).collect()
}

fn collect(node: &Node, headers: &mut Vec<usize>) {
    let Some(group) = node.group() else {
        return;
    };
    if let GroupForm::Section(Some(header)) = &group.form
        && !header.is_empty()
    {
        headers.push(header.start);
    }
    for item in &group.items {
        collect(&item.node, headers);
    }
}
