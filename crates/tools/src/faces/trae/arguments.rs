//! Trae's parameters, turned into those of Lathe's tools.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{EDIT_TOOL, check};
use crate::call::{FaceArguments, TypedCall};
use crate::data::Operation;
use crate::faces::{Soft, with_null};
use crate::problem::Problem;
use crate::{bash, data, done, edit, think, view, write};

// The code below reports wrong parameters, in Trae's words and order, so these types accept any value.

#[derive(Deserialize, JsonSchema)]
pub(super) struct TraeBash {
    /// The bash command to run.
    #[schemars(required)]
    command: Option<String>,
    /// Set to true to restart the bash session.
    restart: Option<bool>,
    #[serde(default)]
    #[schemars(skip)]
    timeout: Option<u32>,
    #[serde(flatten)]
    #[schemars(skip)]
    others: BTreeMap<String, IgnoredAny>,
}

impl FaceArguments for TraeBash {
    fn call(self) -> Result<TypedCall, Problem> {
        if let Some(name) = self.others.keys().next() {
            return wrong(format!("there is no parameter `{name}`"));
        }
        let Self { command, restart, timeout, others: _ } = self;
        Ok(TypedCall::new(bash::BashParameters { command, restart, timeout, folder: None }))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum EditCommand {
    View,
    Create,
    StrReplace,
    Insert,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TraeEdit {
    /// What to do: `view`, `create`, `str_replace` or `insert`.
    #[schemars(with = "EditCommand")]
    command: Soft<String>,
    /// Required by `create`: the content of the new file.
    #[serde(default)]
    file_text: Soft<String>,
    /// Required by `insert`: the line after which `new_str` is inserted.
    #[serde(default)]
    insert_line: Soft<i64>,
    /// For `str_replace`: the replacement, nothing if left out. Required by `insert`: the text to insert.
    #[serde(default)]
    new_str: Soft<String>,
    /// Required by `str_replace`: the text to replace.
    #[serde(default)]
    old_str: Soft<String>,
    /// Absolute path of a file or folder, for example `/repo/file.py`.
    path: Soft<String>,
    /// For `view` of a file: first and last line to show, from 1; last -1 means the end.
    #[serde(default)]
    view_range: Soft<Vec<i64>>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TraeThinking {
    /// The current thought.
    thought: Soft<String>,
    /// True if another thought is needed.
    next_thought_needed: Soft<bool>,
    /// Number of this thought, from 1.
    thought_number: Soft<i64>,
    /// How many thoughts are expected.
    total_thoughts: Soft<i64>,
    /// True if this thought revises an earlier one.
    #[serde(default, rename = "is_revision")]
    _is_revision: Soft<bool>,
    /// Which thought is revised.
    #[serde(default)]
    revises_thought: Soft<i64>,
    /// From which thought this one branches.
    #[serde(default)]
    branch_from_thought: Soft<i64>,
    /// Name of the branch.
    #[serde(default)]
    branch_id: Soft<String>,
    /// Whether more thoughts are needed than expected.
    #[serde(default, rename = "needs_more_thoughts")]
    _needs_more_thoughts: Soft<bool>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct TraeJsonEdit {
    /// What to do: `view`, `set`, `add` or `remove`.
    #[schemars(with = "Operation")]
    operation: Soft<String>,
    /// Absolute path of the file.
    file_path: Soft<String>,
    /// JSONPath of the value; needed for all but `view`.
    #[serde(default)]
    json_path: Soft<String>,
    /// For `set` and `add`: the new value, any JSON.
    #[serde(default, deserialize_with = "with_null")]
    value: Option<Value>,
    /// Whether what is shown and added is laid out over several lines; true if left out.
    #[serde(default)]
    pretty_print: Soft<bool>,
}

/// The parameters of a tool that has none. What is given all the same is passed over, as Trae does.
#[derive(Deserialize, JsonSchema)]
pub(super) struct TraeDone {}

impl FaceArguments for TraeDone {
    fn call(self) -> Result<TypedCall, Problem> {
        Ok(TypedCall::new(done::DoneParameters { summary: None }))
    }
}

fn wrong<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Arguments(text.into()))
}

impl FaceArguments for TraeEdit {
    fn call(mut self) -> Result<TypedCall, Problem> {
        let Some(command) = std::mem::take(&mut self.command).get() else {
            return wrong(format!("No command provided for the {EDIT_TOOL} tool"));
        };
        let Some(path) = std::mem::take(&mut self.path).get() else {
            return wrong(format!("No path provided for the {EDIT_TOOL} tool"));
        };
        if !path.starts_with('/') {
            return wrong(format!(
                "The path {path} is not an absolute path, it should start with `/`. Maybe you meant /{path}?"
            ));
        }
        match self.command_call(&command, path.clone()) {
            // Trae checks the path before it checks the other parameters.
            Err(Problem::Arguments(problem)) => Ok(TypedCall::new(check::PathCheckParameters {
                path,
                create: command == "create",
                view: command == "view",
                problem,
            })),
            call => call,
        }
    }
}

impl TraeEdit {
    fn command_call(self, command: &str, path: String) -> Result<TypedCall, Problem> {
        match command {
            "view" => {
                let (first, last) = lines(self.view_range)?;
                Ok(TypedCall::new(view::ViewParameters {
                    path,
                    first,
                    last,
                    ..view::ViewParameters::default()
                }))
            }
            "create" => {
                let Some(content) = self.file_text.get() else {
                    return wrong(
                        "Parameter `file_text` is required and must be a string for command: create",
                    );
                };
                Ok(TypedCall::new(write::WriteParameters {
                    path,
                    content: write::Content::Text(content),
                    overwrite: write::Overwrite::Never,
                    as_is: false,
                }))
            }
            "str_replace" => {
                let Some(old) = self.old_str.get() else {
                    return wrong(
                        "Parameter `old_str` is required and should be a string for command: str_replace",
                    );
                };
                let new_str = match self.new_str {
                    Soft::Missing => String::new(),
                    Soft::Given(new) => new,
                    Soft::Wrong => {
                        return wrong(
                            "Parameter `new_str` should be a string or null for command: str_replace",
                        );
                    }
                };
                Ok(TypedCall::new(edit::EditParameters {
                    path,
                    old_str: Some(old),
                    new_str,
                    ..edit::EditParameters::default()
                }))
            }
            "insert" => {
                let Some(line) = self.insert_line.get() else {
                    return wrong(
                        "Parameter `insert_line` is required and should be integer for command: insert",
                    );
                };
                let Some(new_str) = self.new_str.get() else {
                    return wrong("Parameter `new_str` is required for command: insert");
                };
                Ok(TypedCall::new(edit::EditParameters {
                    path,
                    new_str,
                    insert_line: Some(line),
                    ..edit::EditParameters::default()
                }))
            }
            other => wrong(format!(
                "Unrecognized command {other}. The allowed commands for the {EDIT_TOOL} tool are: view, create, str_replace, insert"
            )),
        }
    }
}

/// The first and the last line of a view. No last line means the end.
fn lines(range: Soft<Vec<i64>>) -> Result<(Option<i64>, Option<i64>), Problem> {
    match range {
        Soft::Missing => Ok((None, None)),
        Soft::Wrong => wrong("Parameter `view_range` should be a list of integers."),
        Soft::Given(range) => match range.as_slice() {
            // Models that think every parameter is required send an empty list.
            [] => Ok((None, None)),
            [first, -1] => Ok((Some(*first), None)),
            [first, last] => Ok((Some(*first), Some(*last))),
            _ => wrong("Invalid `view_range`. It should be a list of two integers."),
        },
    }
}

impl FaceArguments for TraeThinking {
    fn call(self) -> Result<TypedCall, Problem> {
        let failed = |text| Err(Problem::Thinking(text));
        let Some(thought) = self.thought.get() else {
            return failed("Invalid thought: must be a string");
        };
        let Some(number) = self.thought_number.get() else {
            return failed("Invalid thought_number: must be a number");
        };
        let Some(total) = self.total_thoughts.get() else {
            return failed("Invalid total_thoughts: must be a number");
        };
        let Some(needed) = self.next_thought_needed.get() else {
            return failed("Invalid next_thought_needed: must be a boolean");
        };
        if number < 1 {
            return failed("thought_number must be at least 1");
        }
        if total < 1 {
            return failed("total_thoughts must be at least 1");
        }
        let Ok(_) = earlier(&self.revises_thought) else {
            return failed("revises_thought must be a positive integer");
        };
        let Ok(branch_from_thought) = earlier(&self.branch_from_thought) else {
            return failed("branch_from_thought must be a positive integer");
        };
        Ok(TypedCall::new(think::ThinkParameters {
            thought,
            thought_number: Some(number),
            total_thoughts: Some(total),
            next_thought_needed: needed,
            branch_from_thought,
            branch_id: self.branch_id.get().filter(|id| !id.is_empty()),
        }))
    }
}

/// The number of an earlier thought; 0 and null mean none.
fn earlier(number: &Soft<i64>) -> Result<Option<i64>, ()> {
    match number {
        Soft::Missing | Soft::Given(0) => Ok(None),
        Soft::Given(number) if *number > 0 => Ok(Some(*number)),
        Soft::Given(_) | Soft::Wrong => Err(()),
    }
}

impl FaceArguments for TraeJsonEdit {
    fn call(self) -> Result<TypedCall, Problem> {
        let Some(name) = self.operation.get() else {
            return wrong("Operation parameter is required");
        };
        let Some(path) = self.file_path.get() else {
            return wrong("file_path parameter is required");
        };
        let json_path = match self.json_path {
            Soft::Missing => None,
            // As with Trae, an empty path counts as not given.
            Soft::Given(path) => Some(path).filter(|path| !path.trim().is_empty()),
            Soft::Wrong => return wrong("json_path parameter must be a string."),
        };
        let pretty = match self.pretty_print {
            Soft::Missing => true,
            Soft::Given(pretty) => pretty,
            Soft::Wrong => return wrong("pretty_print parameter must be a boolean."),
        };
        if !path.starts_with('/') {
            return wrong(format!("File path must be absolute: {path}"));
        }
        let operation = match name.as_str() {
            "view" => Operation::View,
            "set" => Operation::Set,
            "add" => Operation::Add,
            "remove" => Operation::Remove,
            _ => {
                return wrong(format!(
                    "Unknown operation: {name}. Supported operations: view, set, add, remove"
                ));
            }
        };
        if operation != Operation::View && json_path.is_none() {
            return wrong(format!(
                "json_path parameter is required and must be a string for the '{name}' operation."
            ));
        }
        // Null is a value too if it is given: only a value that was left out is missing.
        if matches!(operation, Operation::Set | Operation::Add) && self.value.is_none() {
            return wrong(format!("A 'value' parameter is required for the '{name}' operation."));
        }
        let value = self.value.unwrap_or_default();
        Ok(TypedCall::new(data::DataParameters { operation, path, json_path, value, pretty }))
    }
}
