//! A data file as a tree of values with their positions in the text.

use std::ops::Range;

use serde_json::{Map, Value};

use super::DataError;

/// One step from a value to one inside it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum PathStep {
    Key(String),
    Index(usize),
}

#[derive(Debug, Clone)]
pub(super) struct Node {
    /// The value itself, without key, tag, anchor or comment.
    pub span: Range<usize>,
    pub shape: NodeShape,
    /// The reason why it must stay as it is.
    pub fixed: Option<&'static str>,
}

#[derive(Debug, Clone)]
pub(super) enum NodeShape {
    Scalar(Value, Style),
    Map(Group),
    List(Group),
}

/// The spelling of a scalar, so that another can be written alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    /// Over several lines, with a header before its span.
    Block,
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    pub form: GroupForm,
    pub items: Vec<TreeItem>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GroupForm {
    /// Between brackets, with commas. The bounds are those of the inside.
    Flow(Range<usize>),
    /// By lines and indentation, as in YAML.
    Block,
    /// A table of TOML: its header; `Some` if keys can be put under it.
    Section(Option<Range<usize>>),
}

#[derive(Debug, Clone)]
pub(super) struct TreeItem {
    /// The key and its end, in a map.
    pub key: Option<(String, usize)>,
    /// The beginning of the item: its key, its dash or its value.
    pub start: usize,
    pub node: Node,
    /// The comma after it.
    pub comma: Option<usize>,
}

impl TreeItem {
    pub fn end(&self) -> usize {
        self.node.span.end
    }
}

impl Node {
    pub fn value(&self) -> Value {
        match &self.shape {
            NodeShape::Scalar(value, _) => value.clone(),
            NodeShape::List(group) => group.items.iter().map(|item| item.node.value()).collect(),
            NodeShape::Map(group) => {
                let mut map = Map::new();
                for item in &group.items {
                    if let Some((key, _)) = &item.key {
                        map.insert(key.clone(), item.node.value());
                    }
                }
                Value::Object(map)
            }
        }
    }

    pub fn group(&self) -> Option<&Group> {
        match &self.shape {
            NodeShape::Map(group) | NodeShape::List(group) => Some(group),
            NodeShape::Scalar(..) => None,
        }
    }

    /// The index of a child, refused where the key occurs twice: which one is meant?
    pub fn child(&self, step: &PathStep) -> Result<usize, DataError> {
        let found = match (&self.shape, step) {
            (NodeShape::List(group), PathStep::Index(index)) => {
                (*index < group.items.len()).then_some(*index)
            }
            (NodeShape::Map(group), PathStep::Key(key)) => {
                let mut places = (0..group.items.len())
                    .filter(|at| group.items[*at].key.as_ref().is_some_and(|(found, _)| found == key));
                let place = places.next();
                if places.next().is_some() {
                    return Err(DataError::unsupported(format!("the key {key:?} stands there twice")));
                }
                place
            }
            (NodeShape::List(_) | NodeShape::Map(_) | NodeShape::Scalar(..), _) => None,
        };
        found.ok_or_else(|| DataError::unsupported("the place was not found in the text"))
    }

    /// The node at the end of some steps, refused where one on the way is fixed.
    pub fn at(&self, steps: &[PathStep]) -> Result<&Node, DataError> {
        let mut node = self;
        for step in steps {
            if let Some(reason) = node.fixed {
                return Err(DataError::unsupported(reason));
            }
            let place = node.child(step)?;
            let group = node.group().ok_or_else(|| DataError::unsupported("the place was not found"))?;
            node = &group.items[place].node;
        }
        Ok(node)
    }
}

/// New text for a range of the old.
pub(super) type TextPatch = (Range<usize>, String);

/// Applies patches that do not overlap.
pub(super) fn apply(text: &str, mut patches: Vec<TextPatch>) -> Result<String, DataError> {
    patches.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, new) in patches {
        let (Some(kept), true) = (text.get(done..range.start), range.start <= range.end) else {
            return Err(DataError::unsupported("the places overlap"));
        };
        out.push_str(kept);
        out.push_str(&new);
        done = range.end;
    }
    out.push_str(text.get(done..).ok_or_else(|| DataError::unsupported("the places overlap"))?);
    Ok(out)
}

/// The edit on values: the new text must read as this.
pub(super) fn set(root: &mut Value, steps: &[PathStep], new: &Value) {
    if let Some(place) = at_mut(root, steps) {
        *place = new.clone();
    }
}

pub(super) fn insert(root: &mut Value, parent: &[PathStep], step: &PathStep, new: &Value) {
    match (at_mut(root, parent), step) {
        (Some(Value::Object(map)), PathStep::Key(key)) => {
            map.insert(key.clone(), new.clone());
        }
        (Some(Value::Array(list)), PathStep::Index(index)) => {
            list.insert((*index).min(list.len()), new.clone())
        }
        (_, _) => {}
    }
}

pub(super) fn remove(root: &mut Value, steps: &[PathStep]) {
    let Some((last, parent)) = steps.split_last() else {
        return;
    };
    match (at_mut(root, parent), last) {
        (Some(Value::Object(map)), PathStep::Key(key)) => {
            map.shift_remove(key);
        }
        (Some(Value::Array(list)), PathStep::Index(index)) if *index < list.len() => {
            list.remove(*index);
        }
        (_, _) => {}
    }
}

fn at_mut<'a>(root: &'a mut Value, steps: &[PathStep]) -> Option<&'a mut Value> {
    let mut value = root;
    for step in steps {
        value = match step {
            PathStep::Key(key) => value.get_mut(key.as_str())?,
            PathStep::Index(index) => value.get_mut(*index)?,
        };
    }
    Some(value)
}
