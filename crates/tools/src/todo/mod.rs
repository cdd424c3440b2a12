//! A list of steps the model keeps for itself and shows to the user.

use std::path::Path;

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects, Raw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext, Tool, arguments};

pub(crate) const ID: &str = "todo";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Pending,
    InProgress,
    Completed,
    Cancelled,
    Blocked,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::InProgress => "in_progress",
            Status::Completed => "completed",
            Status::Cancelled => "cancelled",
            Status::Blocked => "blocked",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Todo {
    /// What is to be done.
    pub(crate) description: String,
    /// How far it is.
    pub(crate) status: Status,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The whole list, in its order; it replaces the last one.
    todos: Vec<Todo>,
}

pub(crate) struct TodoTool;

impl Tool for TodoTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, _: &Path) -> Result<Box<dyn Invocation>, Problem> {
        if value.get("show").is_some() {
            return Ok(Box::new(Show));
        }
        let Arguments { todos } = arguments(value)?;
        if todos.iter().any(|todo| todo.description.trim().is_empty()) {
            return Err(Problem::Arguments("Each todo must have a non-empty description string".to_owned()));
        }
        if todos.iter().filter(|todo| todo.status == Status::InProgress).count() > 1 {
            return Err(Problem::Arguments(
                "Invalid parameters: Only one task can be \"in_progress\" at a time.".to_owned(),
            ));
        }
        Ok(Box::new(Write { todos }))
    }
}

struct Write {
    todos: Vec<Todo>,
}

impl Invocation for Write {
    fn describe(&self) -> String {
        let done = self.todos.iter().filter(|todo| todo.status == Status::Completed).count();
        format!("todo list: {done} of {} done", self.todos.len())
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn run(self: Box<Self>, _: Permit, _: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move {
            let memory = Raw::from_serialize(&self.todos).ok();
            Outcome { memory, ..Ok(Data::Todos(self.todos)).into() }
        })
    }
}

/// The list as it is.
struct Show;

impl Invocation for Show {
    fn describe(&self) -> String {
        "todo list".to_owned()
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move {
            let todos = context.memory.and_then(|memory| memory.to_value().ok());
            let todos = todos.and_then(|todos| serde_json::from_value(todos).ok()).unwrap_or_default();
            Ok(Data::Todos(todos)).into()
        })
    }
}

/// The words of the command: a JSON list, or one step a line with its mark.
pub(crate) fn adapt_words(given: &Map<String, Value>) -> Result<Value, Problem> {
    let lines: Vec<&str> = match given.get("todos") {
        None => return Ok(json!({ "show": true })),
        Some(Value::Array(todos)) if todos.iter().all(Value::is_object) => {
            return Ok(json!({ "todos": described(todos.clone()) }));
        }
        Some(Value::Array(todos)) => todos.iter().filter_map(Value::as_str).flat_map(str::lines).collect(),
        Some(Value::String(text)) if text.trim_start().starts_with(['{', '"']) || text.contains("[{") => {
            return match serde_json::from_str(text) {
                Ok(Value::Object(object)) => Ok(Value::Object(object)),
                Ok(Value::Array(list)) => Ok(json!({ "todos": described(list) })),
                Ok(_) => Err(Problem::Arguments("todos: a JSON list is wanted".to_owned())),
                Err(error) => Err(Problem::Arguments(format!("todos: {error}"))),
            };
        }
        Some(Value::String(text)) => text.lines().collect(),
        Some(_) => return Err(Problem::Arguments("todos: a list is wanted".to_owned())),
    };
    let lines = lines.into_iter().map(str::trim).filter(|line| !line.is_empty());
    let todos: Result<Vec<Value>, Problem> = lines.map(step).collect();
    Ok(json!({ "todos": todos? }))
}

/// Steps as other agents write them: `content` is the description, and there is no second form of it.
fn described(mut todos: Vec<Value>) -> Vec<Value> {
    for todo in todos.iter_mut().filter_map(Value::as_object_mut) {
        if !todo.contains_key("description")
            && let Some(content) = todo.remove("content")
        {
            todo.remove("activeForm");
            todo.insert("description".to_owned(), content);
        }
    }
    todos
}

/// `[x] text`, with or without a dash or a number before it.
fn step(line: &str) -> Result<Value, Problem> {
    let bare = line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '*' | ' '));
    let marked = bare.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (status, text) = match marked {
        Some((" " | "" | "pending", text)) => ("pending", text),
        Some(("x" | "X" | "completed", text)) => ("completed", text),
        Some((">" | "~" | "in_progress", text)) => ("in_progress", text),
        Some(("-" | "cancelled", text)) => ("cancelled", text),
        Some(("!" | "blocked", text)) => ("blocked", text),
        Some((mark, _)) => {
            let words = format!("todos: `[{mark}]` is none of `[ ]`, `[x]`, `[>]`, `[-]`, `[!]`");
            return Err(Problem::Arguments(words));
        }
        None => ("pending", line),
    };
    Ok(json!({ "description": text.trim(), "status": status }))
}

/// `1. [status] text`, one line each.
pub(crate) fn rows(todos: &[Todo]) -> String {
    let row =
        |(at, todo): (usize, &Todo)| format!("{}. [{}] {}", at + 1, todo.status.as_str(), todo.description);
    todos.iter().enumerate().map(row).collect::<Vec<_>>().join("\n")
}
