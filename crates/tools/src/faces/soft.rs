//! Parameters that accept any value.
//!
//! Trae and Gemini CLI report a wrong parameter in their own words, and in their own order. So their types never fail
//! to read: a value of another type is kept as wrong, and the face reports it.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A parameter that may be missing or of a wrong type.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Soft<T> {
    /// Left out, or null.
    #[default]
    Missing,
    Given(T),
    /// Something of another type.
    Wrong,
}

impl<T> Soft<T> {
    /// The value, if there is one of the right type.
    pub(crate) fn get(self) -> Option<T> {
        match self {
            Self::Given(value) => Some(value),
            Self::Missing | Self::Wrong => None,
        }
    }
}

impl Soft<bool> {
    pub(crate) fn is_set(&self) -> bool {
        *self == Self::Given(true)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Soft<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Option::<Value>::deserialize(deserializer)? {
            None => Self::Missing,
            Some(value) => serde_json::from_value(value).map_or(Self::Wrong, Self::Given),
        })
    }
}

/// The schema is that of the right type.
impl<T: JsonSchema> JsonSchema for Soft<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> std::borrow::Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// Reads a value for which null counts, so that only a parameter that was left out is missing.
pub(crate) fn with_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
