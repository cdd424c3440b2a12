//! Members of an answer that are taken if they are what they should be, and passed over if not: a server that counts
//! wrongly has answered all the same, and asking again would cost as much again.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// For `deserialize_with`: the value, or nothing where it is of another kind.
pub(crate) fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let value = Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}
