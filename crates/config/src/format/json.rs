//! JSON, with the line of each value.
//!
//! `serde_json` keeps no places, but a raw value is a slice of the text, and where a slice begins is
//! its place. The text is checked as a whole first, which also bounds the depth.

use std::fmt;

use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Misread, line_at};
use crate::tree::{Node, TreeEntry, TreeValue};

pub(crate) fn parse(text: &str) -> Result<Node, Misread> {
    let syntax = |error: serde_json::Error| {
        let line = u32::try_from(error.line()).ok().filter(|line| *line > 0);
        let message = error.to_string();
        // The line is reported separately from the message.
        let end = message.find(" at line ").unwrap_or(message.len());
        Misread::syntax(line, &message[..end])
    };
    serde_json::from_str::<serde_json::Value>(text).map_err(syntax)?;
    let raw: &RawValue = serde_json::from_str(text).map_err(syntax)?;
    node(text, raw).map_err(syntax)
}

fn node(text: &str, raw: &RawValue) -> Result<Node, serde_json::Error> {
    let slice = raw.get();
    let line = line_at(text, (slice.as_ptr() as usize).saturating_sub(text.as_ptr() as usize));
    let value = match slice.as_bytes().first() {
        Some(b'{') => {
            let members = serde_json::Deserializer::from_str(slice).deserialize_map(Members)?;
            let entries = members.into_iter().map(|(key, raw)| Ok(TreeEntry::new(key, node(text, raw)?)));
            TreeValue::Table(entries.collect::<Result<_, serde_json::Error>>()?)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(slice)?;
            TreeValue::List(items.into_iter().map(|raw| node(text, raw)).collect::<Result<_, _>>()?)
        }
        _ => Node::from(&serde_json::from_str::<serde_json::Value>(slice)?).value,
    };
    Ok(Node::of(value).at(line))
}

/// Every member, also one that is given twice.
struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}
