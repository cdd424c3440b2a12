//! A file as values, each with its line: the form that the three formats share.
//!
//! None of these types can be printed, because they hold keys before it is known which values are keys.

#[derive(Clone)]
pub(crate) struct Node {
    pub(crate) line: Option<u32>,
    pub(crate) value: TreeValue,
}

#[derive(Clone)]
pub(crate) enum TreeValue {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    Date,
    List(Vec<Node>),
    Table(Vec<TreeEntry>),
}

#[derive(Clone)]
pub(crate) struct TreeEntry {
    pub(crate) key: String,
    pub(crate) line: Option<u32>,
    /// The whole key as the file spells it, if that is not our name for it.
    pub(crate) spelling: Option<String>,
    pub(crate) node: Node,
}

impl TreeEntry {
    pub(crate) fn new(key: impl Into<String>, node: Node) -> Self {
        Self { key: key.into(), line: node.line, spelling: None, node }
    }

    pub(crate) fn at(mut self, line: Option<u32>) -> Self {
        self.line = line;
        self
    }

    pub(crate) fn with_spelling(mut self, spelling: impl Into<String>) -> Self {
        self.spelling = Some(spelling.into());
        self
    }
}

impl Node {
    pub(crate) fn of(value: TreeValue) -> Self {
        Self { line: None, value }
    }

    pub(crate) fn table(entries: Vec<TreeEntry>) -> Self {
        Self::of(TreeValue::Table(entries))
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::of(TreeValue::Text(text.into()))
    }

    pub(crate) fn at(mut self, line: Option<u32>) -> Self {
        self.line = line;
        self
    }

    /// Tells whether it is empty.
    pub(crate) fn is_empty(&self) -> bool {
        match &self.value {
            TreeValue::Null => true,
            TreeValue::Text(text) => text.is_empty(),
            TreeValue::List(nodes) => nodes.is_empty(),
            TreeValue::Table(entries) => entries.is_empty(),
            TreeValue::Bool(_) | TreeValue::Integer(_) | TreeValue::Float(_) | TreeValue::Date => false,
        }
    }

    /// The value without lines. The keys of a table are sorted, so that their order in a file does not matter.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            TreeValue::Null => serde_json::Value::Null,
            TreeValue::Bool(value) => (*value).into(),
            TreeValue::Integer(value) => (*value).into(),
            TreeValue::Float(value) => (*value).into(),
            TreeValue::Text(text) => text.clone().into(),
            TreeValue::Date => "a date".into(),
            TreeValue::List(nodes) => nodes.iter().map(Node::to_json).collect(),
            TreeValue::Table(entries) => {
                let mut entries: Vec<&TreeEntry> = entries.iter().collect();
                entries.sort_by(|a, b| a.key.cmp(&b.key));
                let members = entries.into_iter().map(|entry| (entry.key.clone(), entry.node.to_json()));
                serde_json::Value::Object(members.collect())
            }
        }
    }

    /// For messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            TreeValue::Null => "empty",
            TreeValue::Bool(_) => "true or false",
            TreeValue::Integer(_) => "a whole number",
            TreeValue::Float(_) => "a number",
            TreeValue::Text(_) => "text",
            TreeValue::Date => "a date",
            TreeValue::List(_) => "a list",
            TreeValue::Table(_) => "a table",
        }
    }
}

impl From<&serde_json::Value> for Node {
    fn from(json: &serde_json::Value) -> Self {
        Node::of(match json {
            serde_json::Value::Null => TreeValue::Null,
            serde_json::Value::Bool(value) => TreeValue::Bool(*value),
            serde_json::Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(integer), _) => TreeValue::Integer(integer),
                (None, float) => TreeValue::Float(float.unwrap_or(f64::NAN)),
            },
            serde_json::Value::String(text) => TreeValue::Text(text.clone()),
            serde_json::Value::Array(items) => TreeValue::List(items.iter().map(Node::from).collect()),
            serde_json::Value::Object(map) => TreeValue::Table(
                map.iter().map(|(key, value)| TreeEntry::new(key, Node::from(value))).collect(),
            ),
        })
    }
}

/// The parts of a key.
pub(crate) type KeyPath = Vec<String>;

/// A key as TOML would write it: a part that is not plain is quoted.
pub(crate) fn spell(path: &[String]) -> String {
    path.iter().fold(String::new(), |spelled, part| under(&spelled, part))
}

pub(crate) fn under(table: &str, part: &str) -> String {
    let plain = !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let part = if plain { part.to_owned() } else { format!("{part:?}") };
    if table.is_empty() { part } else { format!("{table}.{part}") }
}
