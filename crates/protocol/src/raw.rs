//! JSON kept as it was written.
//!
//! `serde_json::Value` would change `1e2`, large integers and duplicate keys. JSON from a provider must go back as it
//! came, so it is held as text. Every [`Raw`] is compact: white space between tokens is removed when it is made,
//! because events are printed one to a line.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// One JSON value as compact text.
#[derive(Clone)]
pub struct Raw(Box<RawValue>);

impl Raw {
    /// Parses JSON text; fails if it is not one JSON value.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        RawValue::from_string(compact(text)).map(Self)
    }

    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    pub fn get(&self) -> &str {
        self.0.get()
    }

    pub fn to_value(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_str(self.get())
    }
}

/// Removes white space outside strings and nothing else.
fn compact(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    for c in text.chars() {
        if in_string {
            out.push(c);
            match c {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => in_string = false,
                _ => {}
            }
        } else if !matches!(c, ' ' | '\n' | '\r' | '\t') {
            in_string = c == '"';
            out.push(c);
        }
    }
    out
}

impl PartialEq for Raw {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Raw {}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.get())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().contains(['\n', '\r', '\t', ' ']) {
            return RawValue::from_string(compact(raw.get())).map(Self).map_err(serde::de::Error::custom);
        }
        Ok(Self(raw))
    }
}

impl JsonSchema for Raw {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "AnyJson".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_numbers_order_and_duplicates_and_drops_only_white_space() {
        let raw =
            Raw::parse("{ \"b\" : 1e2,\n \"a\": 123456789012345678901234567890, \"b\": \" x \\\" y \" }")
                .unwrap();
        assert_eq!(raw.get(), r#"{"b":1e2,"a":123456789012345678901234567890,"b":" x \" y "}"#);
    }

    #[test]
    fn read_back_inside_another_value_is_compact_too() {
        let list: Vec<Raw> = serde_json::from_str("[ {\"a\" : [1, 2]} ]").unwrap();
        assert_eq!(serde_json::to_string(&list).unwrap(), r#"[{"a":[1,2]}]"#);
    }

    #[test]
    fn refuses_what_is_not_json() {
        assert!(Raw::parse("{\"a\":").is_err());
    }
}
