//! JSON without what looks like a secret.
//!
//! Texts are masked as values, before they are written: in written JSON a line break is two letters, and what begins after it
//! looks like the middle of a word.

use std::borrow::Cow;
use std::fmt;

use lathe_protocol::{Event, escape_unseen, json_text};
use lathe_redact::{is_secret_name, mask_shapes, mask_words, secrets_in};
use serde::Serialize;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::trajectory::lay_out;

/// The placeholder of something that was masked.
const HIDDEN: &str = "«secret»";

/// JSON without what looks like a secret: in each text, in each name, and in each value whose name says that it is one. None
/// where it may stay as it is, numbers and all, and where it is not JSON.
pub(crate) fn masked_json(json: &str) -> Option<String> {
    masked(json).ok().flatten()
}

/// The error says that the text is not JSON.
fn masked(json: &str) -> Result<Option<String>, serde_json::Error> {
    let (mut value, is_repeated) = read(json)?;
    // Of a name that occurs twice only the last value was inspected.
    Ok((mask(&mut value) | is_repeated).then(|| json_text(&value)))
}

/// A value as JSON for the wire, without what looks like a secret.
pub fn wire_json(value: &impl Serialize) -> String {
    let json = json_text(value);
    masked_json(&json).unwrap_or(json)
}

/// Events without what looks like a secret, for pages. An event that cannot be masked is left out.
pub(crate) fn masked_events(events: &[Event]) -> Vec<Event> {
    let masked = events.iter().filter_map(|event| match masked(&json_text(event)).ok()? {
        Some(masked) => serde_json::from_str(&masked).ok(),
        None => Some(event.clone()),
    });
    masked.collect()
}

/// Masks by shape each member called `reason`, at any depth.
pub(super) fn mask_reasons(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(mask_reasons),
        Value::Object(members) => members.iter_mut().for_each(|(name, value)| match name.as_str() {
            "reason" => drop(mask(value)),
            _ => mask_reasons(value),
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A file of JSON, one value or one a line, as it goes over the wire.
pub fn masked_file(text: &str, lines: bool) -> String {
    // A line that is not JSON is text.
    let one = |json: &str| masked(json).unwrap_or_else(|_| Some(mask_shapes(json).into_owned()));
    if lines {
        return text
            .lines()
            .map(|line| escape_unseen(one(line).unwrap_or_else(|| line.to_owned())) + "\n")
            .collect();
    }
    match one(text) {
        Some(masked) => {
            let mut out = String::with_capacity(text.len());
            lay_out(&masked, 0, &mut out);
            out
        }
        None => escape_unseen(text.to_owned()),
    }
}

/// Bytes as they go over the wire: text without anything that looks like a secret, all other bytes as they are.
pub fn masked_bytes(bytes: Vec<u8>) -> Vec<u8> {
    let masked = match std::str::from_utf8(&bytes) {
        Ok(text) => match mask_shapes(text) {
            Cow::Owned(masked) => masked,
            Cow::Borrowed(_) => return bytes,
        },
        Err(_) => return bytes,
    };
    masked.into_bytes()
}

/// Masks a value, and tells whether something was masked.
pub(super) fn mask(value: &mut Value) -> bool {
    match value {
        Value::String(text) => mask_text(text),
        Value::Array(values) => {
            // A list of texts may be the words of a command, where one says what the next one is.
            let words: Option<Vec<&str>> = values.iter().map(Value::as_str).collect();
            let masked = words.filter(|words| words.len() > 1).map(mask_words).unwrap_or_default();
            let mut any = false;
            for (value, clean) in values.iter_mut().zip(masked) {
                if value.as_str() != Some(&clean) {
                    (any, *value) = (true, Value::String(clean));
                }
            }
            values.iter_mut().fold(any, |any, value| mask(value) | any)
        }
        Value::Object(members) => {
            let any = members.iter_mut().fold(false, |any, (name, value)| mask_member(name, value) | any);
            mask_names(members) | any
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn mask_member(name: &str, value: &mut Value) -> bool {
    if let Value::String(text) = value
        && is_secret_name(name)
        && !text.contains('«')
        && !secrets_in(name, text).is_empty()
    {
        *text = HIDDEN.to_owned();
        return true;
    }
    mask(value)
}

/// Masks names, which stay in their order and different from each other.
fn mask_names(members: &mut Map<String, Value>) -> bool {
    if !members.keys().any(|name| matches!(mask_shapes(name), Cow::Owned(_))) {
        return false;
    }
    for (name, value) in std::mem::take(members) {
        let masked = mask_shapes(&name).into_owned();
        let numbered = (2..).map(|number| format!("{masked} {number}"));
        let free = std::iter::once(masked.clone()).chain(numbered).find(|name| !members.contains_key(name));
        members.insert(free.unwrap_or(masked), value);
    }
    true
}

/// Masks a text. One that is JSON itself, as arguments of calls are on some wires, is masked as what it says.
fn mask_text(text: &mut String) -> bool {
    let shaped = match mask_shapes(text) {
        Cow::Owned(shaped) => Some(shaped),
        Cow::Borrowed(_) => None,
    };
    let inner = match text.trim_start().starts_with(['{', '[', '"']) {
        // Where the shape took a number away it is not JSON any more.
        true => match masked(shaped.as_ref().unwrap_or(text)) {
            Ok(inner) => inner,
            Err(_) => masked_json(text).map(|inner| mask_shapes(&inner).into_owned()),
        },
        false => None,
    };
    match inner.or(shaped) {
        Some(masked) => {
            *text = masked;
            true
        }
        None => false,
    }
}

/// The value that JSON says, and whether a name stands twice in one of its objects.
fn read(json: &str) -> Result<(Value, bool), serde_json::Error> {
    let mut is_repeated = false;
    let mut from = serde_json::Deserializer::from_str(json);
    let value = RepeatSeed { is_repeated: &mut is_repeated }.deserialize(&mut from)?;
    from.end()?;
    Ok((value, is_repeated))
}

struct RepeatSeed<'a> {
    is_repeated: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for RepeatSeed<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for RepeatSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = from.next_element_seed(RepeatSeed { is_repeated: &mut *self.is_repeated })? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(name) = from.next_key::<String>()? {
            let value = from.next_value_seed(RepeatSeed { is_repeated: &mut *self.is_repeated })?;
            *self.is_repeated |= members.insert(name, value).is_some();
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "ghp_aB3dE6gH9aB3dE6gH9aB3dE6gH9aB3dE6gH9";

    #[test]
    fn texts_names_and_json_in_json_are_masked() {
        let inner = |text: &str| serde_json::to_string(text).unwrap();
        for (json, wanted) in [
            (format!(r#"{{"a":"x\n{TOKEN}\ny"}}"#), r#"{"a":"x\n«secret»\ny"}"#.to_owned()),
            (format!(r#"{{"{TOKEN}":1,"b":2}}"#), r#"{"«secret»":1,"b":2}"#.to_owned()),
            (
                format!(r#"{{"{TOKEN}":1,"x":0,"{TOKEN}9":2}}"#),
                r#"{"«secret»":1,"x":0,"«secret» 2":2}"#.to_owned(),
            ),
            (
                format!(
                    r#"{{"function":{{"arguments":{}}}}}"#,
                    inner(&format!(r#"{{"z":"A\n{TOKEN}","api_key":"abc-12"}}"#))
                ),
                format!(
                    r#"{{"function":{{"arguments":{}}}}}"#,
                    inner(r#"{"z":"A\n«secret»","api_key":"«secret»"}"#)
                ),
            ),
            (
                inner(&inner(&format!(r#"{{"{TOKEN}":["--token","x1"]}}"#))),
                inner(&inner(r#"{"«secret»":["--token","«secret»"]}"#)),
            ),
            // The number is taken away with its shape, the rest is masked as what it says.
            (
                inner(r#"{"token":1234567,"api_key":"abc-12"}"#),
                inner(r#"{"token":«secret»,"api_key":"«secret»"}"#),
            ),
            // Of a name that occurs twice, the value that was not inspected is removed.
            (format!(r#"{{"a":"{TOKEN}","a":"x"}}"#), r#"{"a":"x"}"#.to_owned()),
        ] {
            assert_eq!(masked_json(&json).as_deref(), Some(wanted.as_str()), "{json}");
        }
        for json in [r#"{"a":1.50,"b":"{\"c\": 1e2}","max_tokens":4096,"d":["x","y"]}"#, "[ 1 ]", "no JSON"] {
            assert_eq!(masked_json(json), None);
        }
    }

    #[test]
    fn a_line_of_a_file_that_is_not_json_is_masked_as_text() {
        let file = format!("{{\"a\":\"{TOKEN}\"}}\nnot json {TOKEN}\n[1.50]\n");
        assert_eq!(masked_file(&file, true), "{\"a\":\"«secret»\"}\nnot json «secret»\n[1.50]\n");
    }
}
