//! Trae's parameters, turned into those of Lathe's tools.

use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::{EDIT_TOOL, check};
use crate::data::Operation;
use crate::face::Adapted;
use crate::problem::Problem;
use crate::{data, edit, think, view, write};

// These types are only read for their schemas: Trae's checks come with Trae's words, below.

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Bash {
    /// The bash command to run.
    command: String,
    /// Set to true to restart the bash session.
    restart: Option<bool>,
}

#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
#[allow(dead_code)]
pub(super) enum EditCommand {
    View,
    Create,
    StrReplace,
    Insert,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Edit {
    /// What to do: `view`, `create`, `str_replace` or `insert`.
    command: EditCommand,
    /// Required by `create`: the content of the new file.
    file_text: Option<String>,
    /// Required by `insert`: the line after which `new_str` is inserted.
    insert_line: Option<i64>,
    /// For `str_replace`: the replacement, nothing if left out. Required by `insert`: the text to insert.
    new_str: Option<String>,
    /// Required by `str_replace`: the text to replace.
    old_str: Option<String>,
    /// Absolute path of a file or folder, for example `/repo/file.py`.
    path: String,
    /// For `view` of a file: first and last line to show, from 1; last -1 means the end.
    view_range: Option<Vec<i64>>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct Thinking {
    /// The current thought.
    thought: String,
    /// Whether another thought is needed.
    next_thought_needed: bool,
    /// Number of this thought, from 1.
    thought_number: i64,
    /// How many thoughts are expected.
    total_thoughts: i64,
    /// Whether this thought revises an earlier one.
    is_revision: Option<bool>,
    /// Which thought is revised.
    revises_thought: Option<i64>,
    /// From which thought this one branches.
    branch_from_thought: Option<i64>,
    /// Name of the branch.
    branch_id: Option<String>,
    /// Whether more thoughts are needed than expected.
    needs_more_thoughts: Option<bool>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(super) struct JsonEdit {
    /// What to do: `view`, `set`, `add` or `remove`.
    operation: Operation,
    /// Absolute path of the file.
    file_path: String,
    /// JSONPath of the value; needed for all but `view`.
    json_path: Option<String>,
    /// For `set` and `add`: the new value, any JSON.
    value: Option<Value>,
    /// Whether what is shown and added is laid out over several lines; true if left out.
    pretty_print: Option<bool>,
}

fn wrong<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Arguments(text.into()))
}

pub(super) fn adapt_edit(value: Value) -> Result<Adapted, Problem> {
    let given = value.as_object().cloned().unwrap_or_default();
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    let Some(command) = text("command") else {
        return wrong(format!("No command provided for the {EDIT_TOOL} tool"));
    };
    let Some(path) = text("path") else {
        return wrong(format!("No path provided for the {EDIT_TOOL} tool"));
    };
    if !path.starts_with('/') {
        return wrong(format!(
            "The path {path} is not an absolute path, it should start with `/`. Maybe you meant /{path}?"
        ));
    }
    match adapt_command(command, path, &given) {
        // Trae looks at the path before it looks at the other parameters.
        Err(Problem::Arguments(text)) => Ok((
            check::ID,
            json!({ "path": path, "create": command == "create", "view": command == "view", "problem": text }),
        )),
        adapted => adapted,
    }
}

fn adapt_command(command: &str, path: &str, given: &Map<String, Value>) -> Result<Adapted, Problem> {
    let text = |key: &str| given.get(key).and_then(Value::as_str);
    match command {
        "view" => Ok((view::ID, view_arguments(given, path)?)),
        "create" => {
            let Some(content) = text("file_text") else {
                return wrong("Parameter `file_text` is required and must be a string for command: create");
            };
            Ok((write::ID, json!({ "path": path, "content": content, "overwrite": "never" })))
        }
        "str_replace" => {
            let Some(old) = text("old_str") else {
                return wrong(
                    "Parameter `old_str` is required and should be a string for command: str_replace",
                );
            };
            let new = match given.get("new_str") {
                None | Some(Value::Null) => "",
                Some(Value::String(new)) => new,
                Some(_) => {
                    return wrong("Parameter `new_str` should be a string or null for command: str_replace");
                }
            };
            Ok((edit::ID, json!({ "path": path, "old_str": old, "new_str": new })))
        }
        "insert" => {
            let Some(line) = given.get("insert_line").and_then(Value::as_i64) else {
                return wrong(
                    "Parameter `insert_line` is required and should be integer for command: insert",
                );
            };
            let Some(new) = text("new_str") else {
                return wrong("Parameter `new_str` is required for command: insert");
            };
            Ok((edit::ID, json!({ "path": path, "new_str": new, "insert_line": line })))
        }
        other => wrong(format!(
            "Unrecognized command {other}. The allowed commands for the {EDIT_TOOL} tool are: view, create, str_replace, insert"
        )),
    }
}

fn view_arguments(given: &Map<String, Value>, path: &str) -> Result<Value, Problem> {
    let range = match given.get("view_range") {
        None | Some(Value::Null) => return Ok(json!({ "path": path })),
        Some(Value::Array(range)) => range.iter().map(Value::as_i64).collect::<Option<Vec<i64>>>(),
        Some(_) => None,
    };
    match range.as_deref() {
        None => wrong("Parameter `view_range` should be a list of integers."),
        // Models that were told every parameter is required send an empty list.
        Some([]) => Ok(json!({ "path": path })),
        Some([first, -1]) => Ok(json!({ "path": path, "first": first })),
        Some([first, last]) => Ok(json!({ "path": path, "first": first, "last": last })),
        Some(_) => wrong("Invalid `view_range`. It should be a list of two integers."),
    }
}

pub(super) fn adapt_thinking(value: Value) -> Result<Adapted, Problem> {
    let given = value.as_object().cloned().unwrap_or_default();
    let failed = |text| Err(Problem::Thinking(text));
    let Some(thought) = given.get("thought").and_then(Value::as_str) else {
        return failed("Invalid thought: must be a string");
    };
    let Some(number) = given.get("thought_number").and_then(Value::as_i64) else {
        return failed("Invalid thought_number: must be a number");
    };
    let Some(total) = given.get("total_thoughts").and_then(Value::as_i64) else {
        return failed("Invalid total_thoughts: must be a number");
    };
    let Some(needed) = given.get("next_thought_needed").and_then(Value::as_bool) else {
        return failed("Invalid next_thought_needed: must be a boolean");
    };
    if number < 1 {
        return failed("thought_number must be at least 1");
    }
    if total < 1 {
        return failed("total_thoughts must be at least 1");
    }
    let Ok(_) = earlier(given.get("revises_thought")) else {
        return failed("revises_thought must be a positive integer");
    };
    let Ok(branch_from) = earlier(given.get("branch_from_thought")) else {
        return failed("branch_from_thought must be a positive integer");
    };
    let branch = given.get("branch_id").and_then(Value::as_str).filter(|id| !id.is_empty());
    Ok((
        think::ID,
        json!({
            "thought": thought,
            "thought_number": number,
            "total_thoughts": total,
            "next_thought_needed": needed,
            "branch_from_thought": branch_from,
            "branch_id": branch,
        }),
    ))
}

/// The number of an earlier thought; 0 and null mean none.
fn earlier(value: Option<&Value>) -> Result<Option<i64>, ()> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_i64() {
            Some(0) => Ok(None),
            Some(number) if number > 0 => Ok(Some(number)),
            Some(_) | None => Err(()),
        },
    }
}

pub(super) fn adapt_json(value: Value) -> Result<Adapted, Problem> {
    let given = value.as_object().cloned().unwrap_or_default();
    let Some(operation) = given.get("operation").and_then(Value::as_str) else {
        return wrong("Operation parameter is required");
    };
    let Some(path) = given.get("file_path").and_then(Value::as_str) else {
        return wrong("file_path parameter is required");
    };
    let json_path = match given.get("json_path") {
        None | Some(Value::Null) => None,
        // As with Trae, an empty path is none.
        Some(Value::String(path)) => Some(path.as_str()).filter(|path| !path.trim().is_empty()),
        Some(_) => return wrong("json_path parameter must be a string."),
    };
    let pretty = match given.get("pretty_print") {
        None | Some(Value::Null) => true,
        Some(Value::Bool(pretty)) => *pretty,
        Some(_) => return wrong("pretty_print parameter must be a boolean."),
    };
    if !path.starts_with('/') {
        return wrong(format!("File path must be absolute: {path}"));
    }
    if !matches!(operation, "view" | "set" | "add" | "remove") {
        return wrong(format!(
            "Unknown operation: {operation}. Supported operations: view, set, add, remove"
        ));
    }
    if operation != "view" && json_path.is_none() {
        return wrong(format!(
            "json_path parameter is required and must be a string for the '{operation}' operation."
        ));
    }
    // Null is a value too, where it is given: only one that is left out is missing.
    if matches!(operation, "set" | "add") && !given.contains_key("value") {
        return wrong(format!("A 'value' parameter is required for the '{operation}' operation."));
    }
    let arguments = json!({
        "operation": operation,
        "path": path,
        "json_path": json_path,
        "value": given.get("value"),
        "pretty": pretty,
    });
    Ok((data::ID, arguments))
}
