//! The tool that calls other tools by name.
//!
//! The list a model was told of is frozen, because its bytes are the beginning of every request. A tool that is found or
//! offered later can still be called: by this one, which is in the list whenever there are tools that are not Lathe's own.

use lathe_protocol::Raw;
use schemars::JsonSchema;
use serde_json::{Map, Value};

use crate::schema::schema_of;

pub(crate) const NAME: &str = "call_tool";

pub(crate) const DESCRIPTION: &str = include_str!("lathe.md");

// Only read for its schema, by which the arguments are checked.
#[derive(JsonSchema)]
#[allow(dead_code)]
struct Arguments {
    /// The name of the tool.
    name: String,
    /// Its arguments.
    arguments: Option<Map<String, Value>>,
}

pub(crate) fn schema() -> Raw {
    schema_of::<Arguments>()
}

/// The tool that is called, and its arguments.
pub(crate) fn named(mut value: Value) -> (String, Value) {
    let name = value.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let arguments = value.get_mut("arguments").map(Value::take);
    (name, arguments.unwrap_or_else(|| Value::Object(Map::new())))
}
