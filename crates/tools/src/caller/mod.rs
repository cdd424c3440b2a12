//! The tool that calls other tools by name.
//!
//! The list a model was told of is frozen, because its bytes are the beginning of every request. A tool that is found or
//! offered later can still be called: by this one, which is in the list whenever there are tools that are not Lathe's own.

use lathe_protocol::Raw;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::problem::Problem;
use crate::schema::schema_of;
use crate::tool::arguments;

pub(crate) const NAME: &str = "call_tool";

pub(crate) const DESCRIPTION: &str = include_str!("lathe.md");

#[derive(Deserialize, JsonSchema)]
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
pub(crate) fn named(value: Value) -> Result<(String, Value), Problem> {
    let Arguments { name, arguments } = arguments(value)?;
    Ok((name, Value::Object(arguments.unwrap_or_default())))
}
