//! YAML, with the line of each value. Anchors and merge keys are resolved; `yes` stays a text, which
//! the schema takes for true where a boolean is wanted.

use std::fmt;

use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::{DuplicateKeyPolicy, Location, Spanned};

use super::Misread;
use crate::tree::{Node, TreeEntry, TreeValue};

/// Levels of a file. Each takes about 40 KB of the stack in a build without optimisation, and a worker of a server has 2 MB;
/// a Trae file has five.
const DEEPEST: usize = 16;

pub(crate) fn parse(text: &str) -> Result<Node, Misread> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: DEEPEST },
        // Far more aliases than any real file has, and few enough to be refused at once.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 20_000 },
        // As in Python, for which a Trae file was written.
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        // Whether `no` is a boolean depends on the key: a model may have that name.
        strict_booleans: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Option<Spanned<Raw>>>(text, options) {
        Ok(Some(root)) => Ok(node(root)),
        Ok(None) => Ok(Node::of(TreeValue::Null)),
        Err(error) => {
            let line = error.location().as_ref().and_then(line_of);
            let message = error.without_snippet().to_string();
            // The line is reported separately from the message.
            let end = message.find(" at line ").unwrap_or(message.len());
            Err(Misread::syntax(line, &message[..end]))
        }
    }
}

fn node(spanned: Spanned<Raw>) -> Node {
    let line = line_of(&spanned.referenced);
    Node::of(spanned.value.0).at(line)
}

fn line_of(location: &Location) -> Option<u32> {
    u32::try_from(location.line()).ok().filter(|line| *line > 0)
}

struct Raw(TreeValue);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Anything).map(Raw)
    }
}

struct Anything;

impl<'de> Visitor<'de> for Anything {
    type Value = TreeValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<TreeValue, E> {
        Ok(TreeValue::Null)
    }

    fn visit_none<E>(self) -> Result<TreeValue, E> {
        Ok(TreeValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<TreeValue, D::Error> {
        deserializer.deserialize_any(Anything)
    }

    fn visit_bool<E>(self, value: bool) -> Result<TreeValue, E> {
        Ok(TreeValue::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<TreeValue, E> {
        Ok(TreeValue::Integer(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<TreeValue, E> {
        Ok(match i64::try_from(value) {
            Ok(integer) => TreeValue::Integer(integer),
            Err(_) => TreeValue::Float(value as f64),
        })
    }

    fn visit_f64<E>(self, value: f64) -> Result<TreeValue, E> {
        Ok(TreeValue::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<TreeValue, E> {
        Ok(TreeValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<TreeValue, E> {
        Ok(TreeValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<TreeValue, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Spanned<Raw>>()? {
            list.push(node(item));
        }
        Ok(TreeValue::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TreeValue, A::Error> {
        let mut entries = Vec::new();
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            let line = line_of(&key.referenced);
            let value = node(map.next_value::<Spanned<Raw>>()?);
            entries.push(TreeEntry::new(key.value, value).at(line));
        }
        Ok(TreeValue::Table(entries))
    }
}
