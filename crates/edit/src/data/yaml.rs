//! YAML, read into the tree.
//!
//! Plain scalars are resolved by the core schema of YAML 1.2. An alias has the value of its anchor and is fixed:
//! changing it would change another node.

use std::collections::HashMap;
use std::iter::Peekable;

use granit_parser::{Event, Options, Parser, ScalarStyle, Span, StrInput, StructureStyle, Tag};
use serde_json::{Number, Value};

use super::json::find_commas;
use super::tree::{Group, GroupForm, Node, NodeShape, Style, TreeItem};
use super::{DataError, DataLanguage, position};

/// The most values that aliases may stand for, all together.
const MOST: usize = 1_000_000;
/// The deepest nesting of values.
const DEEPEST: usize = 200;

pub(super) fn parse(text: &str) -> Result<Node, DataError> {
    let mut options = Options::default();
    options.set_emit_comments(false);
    let events = Parser::new_from_str_with_options(text, options).peekable();
    let mut reader = YamlReader { text, events, anchors: HashMap::new(), last: 0, expanded: 0 };
    let mut root = None;
    while let Some((event, span)) = reader.next()? {
        match event {
            Event::StreamStart | Event::StreamEnd | Event::DocumentEnd | Event::Comment(..) => {}
            Event::DocumentStart(..) if root.is_some() => {
                return Err(DataError::unsupported("the file holds several documents"));
            }
            Event::DocumentStart(..) => reader.last = range(&span).end,
            other => root = Some(reader.node(other, &span, 0)?),
        }
    }
    root.ok_or(DataError::Empty)
}

struct YamlReader<'a> {
    text: &'a str,
    events: Peekable<Parser<'a, StrInput<'a>>>,
    /// The value of each anchor and the number of values in it.
    anchors: HashMap<usize, (Value, usize)>,
    /// The end of the last part that was read.
    last: usize,
    expanded: usize,
}

impl<'a> YamlReader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, DataError> {
        match self.events.next() {
            None => Ok(None),
            Some(Ok(next)) => Ok(Some(next)),
            Some(Err(error)) => {
                let marker = error.marker();
                Err(DataError::Invalid {
                    line: marker.line(),
                    column: marker.col() + 1,
                    reason: error.info(),
                })
            }
        }
    }

    /// The next event of a group, or its end.
    fn inner(&mut self) -> Result<(Event<'a>, Span), DataError> {
        self.next()?.ok_or_else(|| self.wrong(self.text.len(), "the file ends too early"))
    }

    fn wrong(&self, at: usize, reason: &str) -> DataError {
        let (line, column) = position(self.text, at);
        DataError::Invalid { line, column, reason: reason.to_owned() }
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, DataError> {
        let span = range(span);
        if depth > DEEPEST {
            return Err(self.wrong(span.start, "values lie too deeply in each other"));
        }
        let (mut node, anchor) = match event {
            Event::Alias(id) => {
                let Some((value, size)) = self.anchors.get(&id).cloned() else {
                    return Err(self.wrong(span.start, "the alias has no anchor before it"));
                };
                self.expanded += size;
                if self.expanded > MOST {
                    return Err(self.wrong(span.start, "aliases stand for too many values"));
                }
                let fixed = Some("it is an alias of another value");
                (Node { span, shape: NodeShape::Scalar(value, Style::Plain), fixed }, 0)
            }
            Event::Scalar(value, style, anchor, tag) => {
                (self.scalar(&value, style, tag.as_deref(), span), anchor)
            }
            Event::SequenceStart(style, anchor, tag) => {
                (self.list(style, tag.is_some(), span, depth)?, anchor)
            }
            Event::MappingStart(style, anchor, tag) => (self.map(style, tag.is_some(), span, depth)?, anchor),
            _ => return Err(self.wrong(span.start, "a value was expected")),
        };
        find_commas(self.text, &mut node, DataLanguage::Yaml);
        self.last = self.last.max(node.span.end);
        if anchor != 0 {
            let value = node.value();
            let size = count(&value);
            self.anchors.insert(anchor, (value, size));
        }
        Ok(node)
    }

    fn scalar(
        &self,
        value: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        span: std::ops::Range<usize>,
    ) -> Node {
        let fixed = tag.is_some_and(|tag| !tag.is_yaml_core_schema()).then_some("it has a tag of its own");
        let string = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
        let text = || Value::String(value.to_owned());
        let (value, style) = match style {
            // The parser gives an absent value as a null of no length.
            ScalarStyle::Plain if span.is_empty() && !string => (Value::Null, Style::Plain),
            ScalarStyle::Plain if string => (text(), Style::Plain),
            ScalarStyle::Plain => (resolve(value), Style::Plain),
            ScalarStyle::SingleQuoted => (text(), Style::Single),
            ScalarStyle::DoubleQuoted => (text(), Style::Double),
            ScalarStyle::Literal | ScalarStyle::Folded => (text(), Style::Block),
        };
        let mut span = span;
        if style == Style::Block {
            // The span begins with the first line; the header stands before it.
            let between = &self.text[self.last.min(span.start)..span.start];
            let header = between.rfind(['|', '>']).map_or(span.start, |at| span.start - between.len() + at);
            let end = self.text[..span.end].trim_end_matches(['\n', '\r', ' ']).len();
            span = header..end.max(header + 1);
        }
        Node { span, shape: NodeShape::Scalar(value, style), fixed }
    }

    fn list(
        &mut self,
        style: StructureStyle,
        tagged: bool,
        open: std::ops::Range<usize>,
        depth: usize,
    ) -> Result<Node, DataError> {
        let mut items: Vec<TreeItem> = Vec::new();
        if style == StructureStyle::Flow {
            self.last = open.end;
        }
        loop {
            let (event, span) = self.inner()?;
            if matches!(event, Event::SequenceEnd) {
                let fixed = tagged.then_some("it has a tag of its own");
                return Ok(self.close(style, open, &range(&span), items, fixed, NodeShape::List));
            }
            let before = self.last;
            let mut node = self.node(event, &span, depth + 1)?;
            let mut start = node.span.start;
            if style == StructureStyle::Block {
                let dash = if node.span.is_empty() {
                    self.text[before..].find('-').map(|at| before + at)
                } else {
                    self.text[before.min(start)..start].rfind('-').map(|at| before.min(start) + at)
                };
                match dash {
                    Some(dash) => start = dash,
                    None => node.fixed = node.fixed.or(Some("its dash was not found")),
                }
                if node.span.is_empty() {
                    node.span = start + 1..start + 1;
                    self.last = self.last.max(start + 1);
                }
            }
            items.push(TreeItem { key: None, start, node, comma: None });
        }
    }

    fn map(
        &mut self,
        style: StructureStyle,
        tagged: bool,
        open: std::ops::Range<usize>,
        depth: usize,
    ) -> Result<Node, DataError> {
        let mut items: Vec<TreeItem> = Vec::new();
        if style == StructureStyle::Flow {
            self.last = open.end;
        }
        loop {
            let (event, span) = self.inner()?;
            if matches!(event, Event::MappingEnd) {
                let fixed = tagged.then_some("it has a tag of its own");
                return Ok(self.close(style, open, &range(&span), items, fixed, NodeShape::Map));
            }
            let key_span = range(&span);
            let name = match event {
                Event::Scalar(name, ..) => name.into_owned(),
                _ => return Err(DataError::unsupported("a key is not a plain text")),
            };
            self.last = self.last.max(key_span.end);
            let (event, span) = self.inner()?;
            let mut node = self.node(event, &span, depth + 1)?;
            if node.span.is_empty() {
                // The parser places an absent value before its colon.
                let rest = &self.text[key_span.end..];
                let blanks = rest.len() - rest.trim_start().len();
                if rest.trim_start().starts_with(':') {
                    let at = key_span.end + blanks + 1;
                    node.span = at..at;
                    self.last = self.last.max(at);
                } else {
                    node.fixed = node.fixed.or(Some("the key has no value to change"));
                }
            }
            items.push(TreeItem {
                key: Some((name, key_span.end)),
                start: key_span.start,
                node,
                comma: None,
            });
        }
    }

    fn close(
        &mut self,
        style: StructureStyle,
        open: std::ops::Range<usize>,
        close: &std::ops::Range<usize>,
        items: Vec<TreeItem>,
        fixed: Option<&'static str>,
        shape: fn(Group) -> NodeShape,
    ) -> Node {
        // A pair in a list of brackets (`[a: 1]`) has no brackets of its own.
        let bare = style == StructureStyle::Flow && !self.text[open.start..].starts_with(['{', '[']);
        let fixed = fixed.or(bare.then_some("the pair has no braces of its own"));
        let (span, form) = match style {
            StructureStyle::Flow if bare => {
                let end = items.last().map_or(open.end, TreeItem::end);
                (open.start..end, GroupForm::Flow(open.start..end))
            }
            StructureStyle::Flow => {
                self.last = close.end;
                (open.start..close.end, GroupForm::Flow(open.end..close.start))
            }
            StructureStyle::Block => {
                let start = items.first().map_or(open.start, |item| item.start);
                (start..items.last().map_or(start, TreeItem::end), GroupForm::Block)
            }
        };
        Node { span, shape: shape(Group { form, items }), fixed }
    }
}

fn range(span: &Span) -> std::ops::Range<usize> {
    span.byte_range().unwrap_or(0..0)
}

fn count(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(count).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(count).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
    }
}

fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let other = || Value::String(text.to_owned());
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            return u64::from_str_radix(digits, radix).map_or_else(|_| other(), Value::from);
        }
    }
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let numeric = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && digits.chars().any(|c| c.is_ascii_digit())
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    if !numeric {
        return other();
    }
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = unsigned.parse::<i64>() {
        return Value::from(number);
    }
    if let Ok(number) = unsigned.parse::<u64>() {
        return Value::from(number);
    }
    unsigned.parse::<f64>().ok().and_then(Number::from_f64).map_or_else(other, Value::Number)
}
