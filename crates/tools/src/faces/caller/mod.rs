//! The tool that calls other tools by name.
//!
//! The list that a model was given is frozen, because its bytes are the beginning of every request. A tool that is
//! found or offered later can still be called through this one, which is in the list whenever there are outside
//! tools.

use lathe_protocol::Raw;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::faces::schema_of;
use crate::problem::Problem;
use crate::tool::read_arguments;

pub(crate) const NAME: &str = "call_tool";

pub(crate) const DESCRIPTION: &str = include_str!("lathe.md");

#[derive(Deserialize, JsonSchema)]
struct CallerArguments {
    /// The name of the tool.
    name: String,
    /// Its arguments.
    arguments: Option<Map<String, Value>>,
}

pub(crate) fn schema() -> Raw {
    schema_of::<CallerArguments>()
}

/// The tool that is called, and its arguments.
pub(crate) fn called_tool(value: Value) -> Result<(String, Value), Problem> {
    let CallerArguments { name, arguments } = read_arguments(value)?;
    Ok((name, Value::Object(arguments.unwrap_or_default())))
}
