//! Groups between brackets: all of JSON, and parts of TOML and YAML.

use serde_json::Value;

use super::lines::{begins_line, indent, line_end, line_start, newline, next_line, rest_of_line, unit};
use super::tree::{Group, GroupForm, Node, NodeShape, PathStep, Style, TextPatch, TreeItem};
use super::write::{inline, key, pretty, scalar};
use super::{DataError, DataLanguage, Layout};

pub(super) struct Flow<'a> {
    pub kind: DataLanguage,
    pub text: &'a str,
    pub layout: Layout,
    pub newline: &'static str,
    /// The indentation that one level adds.
    pub unit: &'a str,
    /// True if the file is written over several lines.
    lines: bool,
}

impl<'a> Flow<'a> {
    pub fn new(kind: DataLanguage, text: &'a str, layout: Layout) -> Self {
        let lines = text.trim().contains('\n');
        Self { kind, text, layout, newline: newline(text), unit: unit(text), lines }
    }

    /// Replaces a value by another.
    pub fn set(&self, node: &Node, new: &Value) -> Result<Vec<TextPatch>, DataError> {
        let style = match node.shape {
            NodeShape::Scalar(_, style) => style,
            NodeShape::Map(_) | NodeShape::List(_) => Style::Double,
        };
        let text = match new {
            Value::Array(_) | Value::Object(_) => self.value(new, indent(self.text, node.span.start))?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                scalar(self.kind, new, style)?
            }
        };
        Ok(vec![(node.span.clone(), text)])
    }

    /// The text of a new value for a line with this indentation.
    pub fn value(&self, new: &Value, indent: &str) -> Result<String, DataError> {
        let lines = self.kind == DataLanguage::Json && self.layout == Layout::Fitting && self.lines;
        if lines {
            return pretty(new, indent, self.unit, self.newline);
        }
        inline(self.kind, new, self.layout == Layout::Compact)
    }

    /// The text of a new part of a group: its key, written like its neighbours', and its value.
    fn part(&self, group: &Group, step: &PathStep, new: &Value, indent: &str) -> Result<String, DataError> {
        let value = self.value(new, indent)?;
        let PathStep::Key(name) = step else {
            return Ok(value);
        };
        let usual = match (self.kind, self.layout) {
            (DataLanguage::Toml, _) => " = ",
            (DataLanguage::Json, Layout::Compact) => ":",
            (DataLanguage::Json | DataLanguage::Yaml, _) => ": ",
        };
        let between = group.items.last().and_then(|item| {
            let (_, end) = item.key.as_ref()?;
            let between = self.text.get(*end..item.node.span.start)?;
            let plain = between.chars().all(|c| matches!(c, ' ' | '\t' | ':' | '='));
            // YAML needs the blank, and an empty value has none to copy.
            (plain && (self.kind != DataLanguage::Yaml || between.ends_with(' '))).then_some(between)
        });
        Ok(format!("{}{}{value}", key(self.kind, name), between.unwrap_or(usual)))
    }

    pub fn insert(&self, group: &Group, step: &PathStep, new: &Value) -> Result<Vec<TextPatch>, DataError> {
        let GroupForm::Flow(inside) = &group.form else {
            return Err(DataError::unsupported("the group is not written between brackets"));
        };
        let text = self.text;
        let at = match step {
            PathStep::Index(index) => *index,
            PathStep::Key(_) => group.items.len(),
        };
        if let Some(item) = group.items.get(at) {
            let own_line = begins_line(text, item.start);
            let indent = indent(text, item.start);
            let part = self.part(group, step, new, if own_line { indent } else { "" })?;
            let between = if own_line { format!("{}{indent}", self.newline) } else { self.blank(group) };
            return Ok(vec![(item.start..item.start, format!("{part},{between}"))]);
        }
        let Some(last) = group.items.last() else {
            return self.first(inside.start, inside.end, group, step, new);
        };
        let own_line = begins_line(text, last.start);
        let indent = indent(text, last.start);
        let part = self.part(group, step, new, indent)?;
        let between = if own_line { format!("{}{indent}", self.newline) } else { self.blank(group) };
        let end = last.comma.map_or(last.end(), |comma| comma + 1);
        // A comment after the last part stays next to it.
        let place = match rest_of_line(text, end, self.kind) {
            Some(place) if own_line && place <= inside.end => place,
            Some(_) | None => end,
        };
        Ok(match last.comma {
            Some(_) => vec![(place..place, format!("{between}{part},"))],
            None if place == last.end() => vec![(place..place, format!(",{between}{part}"))],
            None => {
                vec![(last.end()..last.end(), ",".to_owned()), (place..place, format!("{between}{part}"))]
            }
        })
    }

    /// The first part of an empty group.
    fn first(
        &self,
        open: usize,
        close: usize,
        group: &Group,
        step: &PathStep,
        new: &Value,
    ) -> Result<Vec<TextPatch>, DataError> {
        let text = self.text;
        let outer = indent(text, open);
        let inside = &text[open..close];
        let lines = self.kind == DataLanguage::Json
            && self.layout == Layout::Fitting
            && (inside.contains('\n') || self.lines);
        if !lines {
            let part = self.part(group, step, new, outer)?;
            let pad =
                if self.kind == DataLanguage::Toml && matches!(step, PathStep::Key(_)) && inside.is_empty() {
                    " "
                } else {
                    ""
                };
            return Ok(vec![(open..open, format!("{pad}{part}{pad}"))]);
        }
        let deeper = format!("{outer}{}", self.unit);
        let part = self.part(group, step, new, &deeper)?;
        let end = if inside.contains('\n') { String::new() } else { format!("{}{outer}", self.newline) };
        Ok(vec![(open..open, format!("{}{deeper}{part}{end}", self.newline))])
    }

    /// The text between two parts on one line.
    fn blank(&self, group: &Group) -> String {
        let usual = if self.layout == Layout::Compact && self.kind == DataLanguage::Json { "" } else { " " };
        let mut pairs = group.items.iter().zip(group.items.iter().skip(1));
        let seen = pairs.find_map(|(item, next)| {
            let between = self.text.get(item.comma? + 1..next.start)?;
            between.chars().all(|c| c == ' ').then(|| between.to_owned())
        });
        seen.unwrap_or_else(|| usual.to_owned())
    }

    /// Removes parts, each with one comma. A part alone on its lines takes these lines and the comment at their end
    /// along; other comments stay.
    pub fn remove(&self, group: &Group, indexes: &[usize]) -> Result<Vec<TextPatch>, DataError> {
        let mut patches: Vec<TextPatch> = Vec::new();
        let survivor = (0..group.items.len()).rev().find(|index| indexes.binary_search(index).is_err());
        let last = group.items.len().saturating_sub(1);
        let dangling =
            indexes.contains(&last) && group.items.get(last).is_some_and(|item| item.comma.is_none());
        let mut taken = None;
        if let (true, Some(survivor)) = (dangling, survivor)
            && let Some(comma) = group.items[survivor].comma
        {
            // The comma after the remaining part goes, with the blanks up to a neighbour on the line.
            let next = group.items[survivor + 1].start;
            let gap = &self.text[comma + 1..next];
            let blank = gap.chars().all(|c| c == ' ' || c == '\t');
            patches.push((comma..if blank { next } else { comma + 1 }, String::new()));
            taken = blank.then_some(survivor + 1);
        }
        let mut done = 0;
        for &index in indexes {
            let item = &group.items[index];
            let (start, end) = self.extent(item, taken == Some(index));
            let start = start.max(done);
            done = end;
            patches.push((start..end.max(start), String::new()));
        }
        Ok(patches)
    }

    fn extent(&self, item: &TreeItem, joined: bool) -> (usize, usize) {
        let text = self.text;
        let end = item.comma.map_or(item.end(), |comma| comma + 1);
        let blank = |c: char| c == ' ' || c == '\t';
        if begins_line(text, item.start)
            && let Some(rest) = rest_of_line(text, end, self.kind)
            && rest < text.len()
        {
            return (line_start(text, item.start), next_line(text, rest));
        }
        let after = end + text[end..].len() - text[end..].trim_start_matches(blank).len();
        let ends_line = after == line_end(text, end);
        if item.comma.is_none() && (joined || !ends_line) {
            return (item.start, end);
        }
        if joined {
            return (item.start, after);
        }
        if ends_line && !begins_line(text, item.start) {
            let before = text[..item.start].trim_end_matches(blank).len();
            return (before, end);
        }
        (item.start, after)
    }
}
