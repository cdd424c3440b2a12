//! A file as values, each with the line it stands on: what the three formats have in common.
//!
//! None of these types can be printed, because they hold keys before it is known which they are.

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) line: Option<u32>,
    pub(crate) value: Value,
}

#[derive(Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Date,
    List(Vec<Node>),
    Table(Vec<Entry>),
}

#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) line: Option<u32>,
    /// The whole key as the file spells it, where that is not our name for it.
    pub(crate) said: Option<String>,
    pub(crate) node: Node,
}

impl Entry {
    pub(crate) fn new(key: impl Into<String>, node: Node) -> Self {
        Self { key: key.into(), line: node.line, said: None, node }
    }

    pub(crate) fn at(mut self, line: Option<u32>) -> Self {
        self.line = line;
        self
    }

    pub(crate) fn said(mut self, said: impl Into<String>) -> Self {
        self.said = Some(said.into());
        self
    }
}

impl Node {
    pub(crate) fn of(value: Value) -> Self {
        Self { line: None, value }
    }

    pub(crate) fn table(entries: Vec<Entry>) -> Self {
        Self::of(Value::Table(entries))
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::of(Value::Text(text.into()))
    }

    pub(crate) fn at(mut self, line: Option<u32>) -> Self {
        self.line = line;
        self
    }

    /// Tells whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.value {
            Value::Null => true,
            Value::Text(text) => text.is_empty(),
            Value::List(nodes) => nodes.is_empty(),
            Value::Table(entries) => entries.is_empty(),
            Value::Bool(_) | Value::Integer(_) | Value::Float(_) | Value::Date => false,
        }
    }

    /// The value without lines; the keys of a table in order, so that their place in a file says nothing.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            Value::Null => serde_json::Value::Null,
            Value::Bool(value) => (*value).into(),
            Value::Integer(value) => (*value).into(),
            Value::Float(value) => (*value).into(),
            Value::Text(text) => text.clone().into(),
            Value::Date => "a date".into(),
            Value::List(nodes) => nodes.iter().map(Node::to_json).collect(),
            Value::Table(entries) => {
                let mut entries: Vec<&Entry> = entries.iter().collect();
                entries.sort_by(|a, b| a.key.cmp(&b.key));
                let members = entries.into_iter().map(|entry| (entry.key.clone(), entry.node.to_json()));
                serde_json::Value::Object(members.collect())
            }
        }
    }

    /// For messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "empty",
            Value::Bool(_) => "true or false",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Text(_) => "text",
            Value::Date => "a date",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}

impl From<&serde_json::Value> for Node {
    fn from(json: &serde_json::Value) -> Self {
        Node::of(match json {
            serde_json::Value::Null => Value::Null,
            serde_json::Value::Bool(value) => Value::Bool(*value),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => Value::Integer(integer),
                (None, float) => Value::Float(float.unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => Value::Text(text.clone()),
            serde_json::Value::Array(items) => Value::List(items.iter().map(Node::from).collect()),
            serde_json::Value::Object(map) => {
                Value::Table(map.iter().map(|(key, value)| Entry::new(key, Node::from(value))).collect())
            }
        })
    }
}

/// The parts of a key.
pub(crate) type Path = Vec<String>;

/// A key as TOML would write it: a part that is not plain is quoted.
pub(crate) fn spell(path: &[String]) -> String {
    path.iter().fold(String::new(), |spelled, part| under(&spelled, part))
}

pub(crate) fn under(table: &str, part: &str) -> String {
    let plain = !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let part = if plain { part.to_owned() } else { format!("{part:?}") };
    if table.is_empty() { part } else { format!("{table}.{part}") }
}
