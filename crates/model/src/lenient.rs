//! Lenient members of an answer, which are ignored if they have the wrong type: a server that counts wrongly has
//! answered all the same, and another request would cost as much again.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// For `deserialize_with`: the value, or None if it has another type.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}
