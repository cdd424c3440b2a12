//! A text that is used and never shown.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};

/// Keys shorter than this show nothing of themselves: four characters would be too large a part.
const LONG_ENOUGH: usize = 12;
const SHOWN: usize = 4;

/// An API key or similar text. Only [`Secret::expose`] reveals it; every other way to read it, including
/// serialisation, shows the mask.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the client and the redactor.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// `set (…last four)`, or `set` if the text is short.
    pub fn mask(&self) -> String {
        let length = self.0.chars().count();
        if length < LONG_ENOUGH {
            return "set".to_owned();
        }
        let end: String = self.0.chars().skip(length - SHOWN).collect();
        format!("set (…{end})")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.mask())
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.mask())
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "x-secret": true})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_way_of_looking_shows_more_than_four_characters() {
        let long = Secret::new("sk-abcdefgh1234");
        assert_eq!(long.to_string(), "set (…1234)");
        assert_eq!(format!("{long:?}"), "Secret");
        assert_eq!(serde_json::to_string(&long).unwrap(), "\"set (…1234)\"");
        assert_eq!(Secret::new("12345678901").mask(), "set");
        assert_eq!(Secret::new("123456789012").mask(), "set (…9012)");
        assert_eq!(Secret::new("钥匙钥匙钥匙钥匙一二三四").mask(), "set (…一二三四)");
        assert_eq!(Secret::new("").mask(), "set");
        assert_eq!(long.expose(), "sk-abcdefgh1234");
    }
}
