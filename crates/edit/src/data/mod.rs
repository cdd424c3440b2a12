//! Data files changed by path: JSON with comments, TOML and YAML.
//!
//! A file is read into a tree of values with their positions in the text, and a change replaces those pieces of the
//! text and nothing else. So comments, spacing, the spelling of numbers and the order of keys stay as they are. Where
//! the text cannot be changed without changing another part (an anchor that others refer to, a dotted table), the
//! change is refused with a reason; nothing is ever reformatted to make it possible. Before a change is accepted, the
//! new text is read again and must have exactly the requested meaning: a mistake in this code ends as a refusal, not
//! as a broken file.
//!
//! Rejected: the editing interfaces of `jsonc-parser` and `toml_edit`. The first moves comments and spaces around the
//! parts it removes and inserts; the second writes every CRLF as LF. Both are used to read.

mod flow;
mod json;
mod lines;
mod path;
mod toml;
mod tree;
mod write;
mod yaml;
mod yaml_block;

use std::collections::BTreeMap;

use serde_json::Value;
use tree::{Node, NodeShape, PathStep, TextPatch};

/// The language of a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataLanguage {
    /// With comments and trailing commas, which are kept where they are.
    Json,
    Toml,
    Yaml,
}

impl DataLanguage {
    /// The language for the extension of a file's name.
    pub fn of_path(path: &str) -> Option<Self> {
        let (_, ending) = path.rsplit_once('.')?;
        match ending.to_ascii_lowercase().as_str() {
            "json" | "jsonc" | "webmanifest" | "geojson" | "ipynb" => Some(Self::Json),
            "toml" => Some(Self::Toml),
            "yaml" | "yml" => Some(Self::Yaml),
            _ => None,
        }
    }
}

/// The layouts of new values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Like their surroundings: over several lines where those are.
    Fitting,
    /// On one line, without blanks where the language needs none.
    Compact,
}

/// The reasons why a data file could not be read or changed. The text is unchanged in every case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    #[error("the file is empty")]
    Empty,
    /// Counted from 1.
    #[error("line {line}, column {column}: {reason}")]
    Invalid { line: usize, column: usize, reason: String },
    #[error("the path {path} is not valid: {reason}")]
    Path { path: String, reason: String },
    #[error("nothing matches {path}")]
    NoMatches { path: String },
    #[error("nothing matches {parent}, where the value would go")]
    NoParent { parent: String },
    #[error("{parent} is not an object, so it has no keys")]
    NotAnObject { parent: String },
    #[error("{parent} is not an array, so it has no elements")]
    NotAnArray { parent: String },
    /// The last segment of a path that names no single key or index.
    #[error("a value can be added at a key or an index, not at {segment}")]
    Target { segment: String },
    #[error("the root itself cannot be added or removed")]
    Root,
    /// It cannot be done without changing more than was requested.
    #[error("not possible in this file: {reason}")]
    Unsupported { reason: String },
}

impl DataError {
    fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported { reason: reason.into() }
    }
}

/// A match of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct DataMatch {
    pub value: Value,
    /// The text of the value in the file: numbers too large or too exact for `value` are complete here. Empty for a
    /// table of TOML, which is written in several places.
    pub text: String,
}

/// A data file.
#[derive(Debug, Clone)]
pub struct DataDocument {
    kind: DataLanguage,
    text: String,
    root: Node,
    value: Value,
    layout: Layout,
}

impl DataDocument {
    pub fn parse(kind: DataLanguage, text: &str) -> Result<Self, DataError> {
        // An empty TOML file is an empty table; empty files of the others have no value.
        if kind != DataLanguage::Toml && text.trim().is_empty() {
            return Err(DataError::Empty);
        }
        let root = match kind {
            DataLanguage::Json => json::parse(text)?,
            DataLanguage::Toml => toml::parse(text)?,
            DataLanguage::Yaml => yaml::parse(text)?,
        };
        let value = root.value();
        Ok(Self { kind, text: text.to_owned(), root, value, layout: Layout::Fitting })
    }

    /// Sets the layout of values written from now on.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// The whole text in its current state.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The whole value in its current state.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The values that a path matches, in its order, including repeated ones.
    pub fn view(&self, path: &str) -> Result<Vec<Value>, DataError> {
        let query = path::parse(path)?;
        Ok(query.query(&self.value).all().into_iter().cloned().collect())
    }

    /// The matches with their text, each place once.
    pub fn find(&self, path: &str) -> Result<Vec<DataMatch>, DataError> {
        let query = path::parse(path)?;
        let places = path::locate(&query, &self.value);
        let found = places.iter().filter_map(|steps| self.root.at(steps).ok());
        Ok(found.map(|node| DataMatch { value: node.value(), text: self.written(node) }).collect())
    }

    fn written(&self, node: &Node) -> String {
        let section = node.group().is_some_and(|group| matches!(group.form, tree::GroupForm::Section(_)));
        if section { String::new() } else { self.text.get(node.span.clone()).unwrap_or_default().to_owned() }
    }

    /// Gives every place that a path matches a new value, and returns the number of places. Where one match lies
    /// inside another, the outer one counts.
    pub fn set(&mut self, path: &str, new: &Value) -> Result<usize, DataError> {
        let query = path::parse(path)?;
        let places = path::outermost(path::locate(&query, &self.value));
        if places.is_empty() {
            return Err(DataError::NoMatches { path: path.to_owned() });
        }
        let (flow, mut wanted) = (self.flow(), self.value.clone());
        let mut patches = Vec::new();
        for steps in &places {
            tree::set(&mut wanted, steps, new);
            patches.extend(self.set_patches(&flow, steps, new)?);
        }
        self.accept(patches, wanted)?;
        Ok(places.len())
    }

    /// Adds a value at the key or index that a path ends with, in every place that the rest of it matches, and
    /// returns the number of places. An existing key gets the new value; an index past the end appends.
    pub fn add(&mut self, path: &str, new: &Value) -> Result<usize, DataError> {
        path::parse(path)?;
        let (parent, target) = path::split(path)?;
        let parents = path::locate(&path::parse(parent)?, &self.value);
        if parents.is_empty() {
            return Err(DataError::NoParent { parent: parent.to_owned() });
        }
        let (flow, mut wanted) = (self.flow(), self.value.clone());
        let mut patches = Vec::new();
        for steps in &parents {
            let node = self.root.at(steps)?;
            if let Some(reason) = node.fixed {
                return Err(DataError::unsupported(reason));
            }
            let step = match (&target, &node.shape) {
                (path::AddTarget::Key(key), NodeShape::Map(_)) => PathStep::Key(key.clone()),
                (path::AddTarget::Index(index), NodeShape::List(group)) => {
                    let length = group.items.len();
                    let from_end =
                        || length.saturating_sub(usize::try_from(index.unsigned_abs()).unwrap_or(length));
                    PathStep::Index(usize::try_from(*index).unwrap_or_else(|_| from_end()).min(length))
                }
                (path::AddTarget::Key(_), NodeShape::List(_) | NodeShape::Scalar(..)) => {
                    return Err(DataError::NotAnObject { parent: parent.to_owned() });
                }
                (path::AddTarget::Index(_), NodeShape::Map(_) | NodeShape::Scalar(..)) => {
                    return Err(DataError::NotAnArray { parent: parent.to_owned() });
                }
            };
            let there = matches!(&step, PathStep::Key(key) if wanted_has(&wanted, steps, key));
            if there {
                let place: Vec<PathStep> = steps.iter().cloned().chain([step]).collect();
                tree::set(&mut wanted, &place, new);
                patches.extend(self.set_patches(&flow, &place, new)?);
            } else {
                tree::insert(&mut wanted, steps, &step, new);
                patches.extend(self.add_patches(&flow, steps, &step, new)?);
            }
        }
        self.accept(patches, wanted)?;
        Ok(parents.len())
    }

    /// Removes every place that a path matches, and returns their number.
    pub fn remove(&mut self, path: &str) -> Result<usize, DataError> {
        let query = path::parse(path)?;
        let places = path::locate(&query, &self.value);
        if places.is_empty() {
            return Err(DataError::NoMatches { path: path.to_owned() });
        }
        let count = places.len();
        let places = path::outermost(places);
        if places.iter().any(Vec::is_empty) {
            return Err(DataError::Root);
        }
        let mut wanted = self.value.clone();
        for steps in places.iter().rev() {
            tree::remove(&mut wanted, steps);
        }
        let patches = self.remove_patches(&places)?;
        self.accept(patches, wanted)?;
        Ok(count)
    }

    fn set_patches(
        &self,
        flow: &flow::Flow<'_>,
        steps: &[PathStep],
        new: &Value,
    ) -> Result<Vec<TextPatch>, DataError> {
        let node = self.root.at(steps)?;
        if let Some(reason) = node.fixed {
            return Err(DataError::unsupported(reason));
        }
        match self.kind {
            DataLanguage::Json => flow.set(node, new),
            DataLanguage::Toml => toml::set(flow, node, new),
            DataLanguage::Yaml => yaml_block::set(flow, &self.root, steps, new),
        }
    }

    fn add_patches(
        &self,
        flow: &flow::Flow<'_>,
        parent: &[PathStep],
        step: &PathStep,
        new: &Value,
    ) -> Result<Vec<TextPatch>, DataError> {
        let node = self.root.at(parent)?;
        let Some(group) = node.group() else {
            return Err(DataError::unsupported("the place has no parts"));
        };
        match group.form {
            tree::GroupForm::Flow(_) => flow.insert(group, step, new),
            tree::GroupForm::Block => yaml_block::insert(flow, node, step, new),
            tree::GroupForm::Section(_) => toml::insert(flow, &self.root, node, step, new),
        }
    }

    fn remove_patches(&self, places: &[Vec<PathStep>]) -> Result<Vec<TextPatch>, DataError> {
        let mut parents: BTreeMap<&[PathStep], Vec<usize>> = BTreeMap::new();
        for place in places {
            let Some((last, parent)) = place.split_last() else {
                return Err(DataError::Root);
            };
            let node = self.root.at(parent)?;
            if let Some(reason) = node.fixed {
                return Err(DataError::unsupported(reason));
            }
            parents.entry(parent).or_default().push(node.child(last)?);
        }
        let flow = self.flow();
        let mut patches = Vec::new();
        for (parent, mut indexes) in parents {
            indexes.sort_unstable();
            let node = self.root.at(parent)?;
            let Some(group) = node.group() else {
                continue;
            };
            patches.extend(match group.form {
                tree::GroupForm::Flow(_) => flow.remove(group, &indexes)?,
                tree::GroupForm::Block => yaml_block::remove(&flow, &self.root, parent, &indexes)?,
                tree::GroupForm::Section(_) => toml::remove(&flow, &self.root, group, &indexes)?,
            });
        }
        Ok(patches)
    }

    fn flow(&self) -> flow::Flow<'_> {
        flow::Flow::new(self.kind, &self.text, self.layout)
    }

    /// Accepts the new text if it has the wanted value.
    fn accept(&mut self, patches: Vec<TextPatch>, wanted: Value) -> Result<(), DataError> {
        let text = tree::apply(&self.text, patches)?;
        let same = |document: &Self| document.value == wanted;
        match Self::parse(self.kind, &text) {
            Ok(document) if same(&document) => {
                let layout = self.layout;
                *self = Self { layout, ..document };
                Ok(())
            }
            Ok(_) => Err(DataError::unsupported("other values would change with it")),
            Err(error) => {
                Err(DataError::unsupported(format!("the file would not be valid after it ({error})")))
            }
        }
    }
}

fn wanted_has(value: &Value, steps: &[PathStep], key: &str) -> bool {
    let mut at = Some(value);
    for step in steps {
        at = at.and_then(|value| match step {
            PathStep::Key(key) => value.get(key.as_str()),
            PathStep::Index(index) => value.get(*index),
        });
    }
    at.is_some_and(|value| value.get(key).is_some())
}

/// Line and column of an offset, counted from 1, the column in characters.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (line, before[start..].chars().count() + 1)
}
