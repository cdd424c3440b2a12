//! YAML's groups of lines: values written by indentation.

use std::ops::Range;

use serde_json::Value;

use super::flow::Flow;
use super::lines::{begins_line, line_end, line_start, next_line};
use super::tree::{Group, GroupForm, Node, NodeShape, PathStep, Style, TextPatch};
use super::write::{inline, key, scalar};
use super::{DataError, DataLanguage, Layout};

/// Replaces the value at the end of the steps.
pub(super) fn set(
    flow: &Flow<'_>,
    root: &Node,
    steps: &[PathStep],
    new: &Value,
) -> Result<Vec<TextPatch>, DataError> {
    let node = root.at(steps)?;
    let style = match node.shape {
        NodeShape::Scalar(_, style) => style,
        NodeShape::Map(_) | NodeShape::List(_) => Style::Plain,
    };
    let Some((last, parent)) = steps.split_last() else {
        let text = written(flow, new, style, column(flow.text, node.span.start))?;
        return Ok(vec![(node.span.clone(), text)]);
    };
    let parent = root.at(parent)?;
    let index = parent.child(last)?;
    let Some(group) = parent.group() else {
        return Err(DataError::unsupported("the place has no parts"));
    };
    if group.form != GroupForm::Block {
        let text = match new {
            Value::Array(_) | Value::Object(_) => inline(DataLanguage::Yaml, new, false)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                scalar(DataLanguage::Yaml, new, style)?
            }
        };
        let blank = if node.span.is_empty() { " " } else { "" };
        return Ok(vec![(node.span.clone(), format!("{blank}{text}"))]);
    }
    Ok(vec![place(flow, group, index, new, style)?])
}

/// The patch that gives one part of a group of lines another value.
fn place(
    flow: &Flow<'_>,
    group: &Group,
    index: usize,
    new: &Value,
    style: Style,
) -> Result<TextPatch, DataError> {
    let text = flow.text;
    let item = &group.items[index];
    let span = &item.node.span;
    let Some((_, key_end)) = &item.key else {
        let at = column(text, item.start) + 2;
        return Ok(if span.is_empty() {
            (span.clone(), format!(" {}", written(flow, new, style, at)?))
        } else {
            (span.clone(), written(flow, new, style, column(text, span.start))?)
        });
    };
    let colon = text[*key_end..].find(':').map_or(*key_end, |at| key_end + at + 1);
    let gap = text.get(colon..span.start).unwrap_or_default();
    let deeper = column(text, item.start) + step(flow);
    if gap.trim().is_empty() && (block(new) || !gap.is_empty() || span.is_empty()) {
        // The value may move between the line of its key and the lines below it.
        let moved = if block(new) && flow.layout == Layout::Fitting {
            format!("{}{}{}", flow.newline, " ".repeat(deeper), written(flow, new, style, deeper)?)
        } else {
            let blanks = if gap.is_empty() || gap.contains('\n') { " " } else { gap };
            format!("{blanks}{}", written(flow, new, style, deeper)?)
        };
        return Ok((colon..span.end, moved));
    }
    // A comment, tag or anchor stands in between and stays.
    if gap.contains('\n') {
        return Ok((span.clone(), written(flow, new, style, column(text, span.start))?));
    }
    Ok((span.clone(), inline_or_scalar(new, style)?))
}

pub(super) fn insert(
    flow: &Flow<'_>,
    node: &Node,
    step: &PathStep,
    new: &Value,
) -> Result<Vec<TextPatch>, DataError> {
    let text = flow.text;
    let Some((first, last, group)) =
        node.group().and_then(|group| Some((group.items.first()?, group.items.last()?, group)))
    else {
        return Err(DataError::unsupported("the group has no lines to insert next to"));
    };
    let at = column(text, first.start);
    let margin = " ".repeat(at);
    let part = match step {
        PathStep::Index(_) => format!("- {}", written(flow, new, Style::Plain, at + 2)?),
        PathStep::Key(name) => format!("{}:{}", key(DataLanguage::Yaml, name), after_colon(flow, new, at)?),
    };
    let before = match step {
        PathStep::Index(index) => group.items.get(*index),
        PathStep::Key(_) => None,
    };
    Ok(vec![match before {
        Some(item) => (item.start..item.start, format!("{part}{}{margin}", flow.newline)),
        None => {
            let end = line_end(text, last.end());
            (end..end, format!("{}{margin}{part}", flow.newline))
        }
    }])
}

pub(super) fn remove(
    flow: &Flow<'_>,
    root: &Node,
    parent: &[PathStep],
    indexes: &[usize],
) -> Result<Vec<TextPatch>, DataError> {
    let text = flow.text;
    let node = root.at(parent)?;
    let Some(group) = node.group() else {
        return Ok(Vec::new());
    };
    if indexes.len() == group.items.len() {
        let empty = match node.shape {
            NodeShape::List(_) => Value::Array(Vec::new()),
            NodeShape::Map(_) | NodeShape::Scalar(..) => Value::Object(serde_json::Map::new()),
        };
        return set(flow, root, parent, &empty);
    }
    let mut patches: Vec<(Range<usize>, String)> = Vec::new();
    let mut rest = indexes;
    // The first part may be in one line with the dash of a list.
    if indexes.first() == Some(&0) && !begins_line(text, group.items[0].start) {
        let run = indexes.iter().enumerate().take_while(|(at, index)| at == *index).count();
        let (start, end) = (group.items[0].start, group.items[run].start);
        if text[group.items[run - 1].end()..end].contains('#') {
            return Err(DataError::unsupported("a comment stands between what goes and what stays"));
        }
        patches.push((start..end, String::new()));
        rest = &indexes[run..];
    }
    for &index in rest {
        let item = &group.items[index];
        let (start, end) = (line_start(text, item.start), next_line(text, item.end()));
        let last = end == text.len() && !text.ends_with('\n');
        // The end of the file stays as it was.
        let start = if last { text[..start].trim_end_matches(['\n', '\r']).len() } else { start };
        patches.push((start..end, String::new()));
    }
    Ok(patches)
}

/// The text of a value for the column where it begins.
fn written(flow: &Flow<'_>, new: &Value, style: Style, column: usize) -> Result<String, DataError> {
    if let (Value::String(text), Style::Plain | Style::Block, Layout::Fitting) = (new, style, flow.layout)
        && let Some(literal) = literal(text, column, flow.newline)
    {
        return Ok(literal);
    }
    if !block(new) || flow.layout == Layout::Compact {
        return inline_or_scalar(new, style);
    }
    let margin = format!("{}{}", flow.newline, " ".repeat(column));
    let mut parts = Vec::new();
    match new {
        Value::Array(list) => {
            for item in list {
                parts.push(format!("- {}", written(flow, item, Style::Plain, column + 2)?));
            }
        }
        Value::Object(map) => {
            for (name, value) in map {
                parts.push(format!(
                    "{}:{}",
                    key(DataLanguage::Yaml, name),
                    after_colon(flow, value, column)?
                ));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    Ok(parts.join(&margin))
}

fn after_colon(flow: &Flow<'_>, new: &Value, column: usize) -> Result<String, DataError> {
    let deeper = column + step(flow);
    if !block(new) || flow.layout == Layout::Compact {
        return Ok(format!(" {}", written(flow, new, Style::Plain, deeper)?));
    }
    Ok(format!("{}{}{}", flow.newline, " ".repeat(deeper), written(flow, new, Style::Plain, deeper)?))
}

/// A text of several lines as a literal block, if every line can be shown as it is.
fn literal(text: &str, column: usize, newline: &str) -> Option<String> {
    let (lines, chomp) = match text.strip_suffix('\n') {
        Some(lines) => (lines, ""),
        None => (text, "-"),
    };
    let odd = |c: char| {
        c.is_control() && c != '\n' && c != '\t' || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
    };
    if !text.contains('\n')
        || lines.ends_with('\n')
        || lines.starts_with([' ', '\t', '\n'])
        || text.contains(odd)
    {
        return None;
    }
    let margin = " ".repeat(column.max(1));
    let shown =
        |line: &str| if line.is_empty() { newline.to_owned() } else { format!("{newline}{margin}{line}") };
    Some(format!("|{chomp}{}", lines.split('\n').map(shown).collect::<String>()))
}

fn inline_or_scalar(new: &Value, style: Style) -> Result<String, DataError> {
    match new {
        Value::Array(_) | Value::Object(_) => inline(DataLanguage::Yaml, new, false),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            scalar(DataLanguage::Yaml, new, style)
        }
    }
}

/// Tells whether a value is written on lines of its own.
fn block(value: &Value) -> bool {
    match value {
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn step(flow: &Flow<'_>) -> usize {
    let unit = flow.unit;
    if unit.contains('\t') { 2 } else { unit.len().clamp(1, 8) }
}

fn column(text: &str, at: usize) -> usize {
    text[line_start(text, at)..at].chars().count()
}
