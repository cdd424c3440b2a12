//! Keeps a list of steps, for the model itself and for the user to see.

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, Raw, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, Parameters, TypedCall};
use crate::commands::{AgentCommand, InputForm};
use crate::faces::Face;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext, read_arguments};

pub(crate) const ID: &str = "todo";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(Face::lathe::<TodoParameters>("todo", "Todo", ToolKind::Think, include_str!("lathe.md"))),
    command: Some(
        AgentCommand::of::<TodoWords>(
            "todo",
            ID,
            ToolKind::Think,
            "Keep the list of steps: show it, or replace it by a new one.",
        )
        .with_aliases(&["TodoWrite"])
        .with_notes(include_str!("notes.md"))
        .with_positions(&[], Some("todos"))
        .input_as("todos", InputForm::Exact),
    ),
    only_if: None,
};

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
    /// The step.
    pub(crate) description: String,
    /// Its progress.
    pub(crate) status: Status,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TodoParameters {
    /// The whole list, in its order; it replaces the last one.
    pub(crate) todos: Vec<Todo>,
}

impl Parameters for TodoParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, _: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let TodoParameters { todos } = self;
        if todos.iter().any(|todo| todo.description.trim().is_empty()) {
            return Err(Problem::Arguments("Each todo must have a non-empty description string".to_owned()));
        }
        if todos.iter().filter(|todo| todo.status == Status::InProgress).count() > 1 {
            return Err(Problem::Arguments(
                "Invalid parameters: Only one task can be \"in_progress\" at a time.".to_owned(),
            ));
        }
        Ok(Box::new(WriteTodos { todos }))
    }
}

struct WriteTodos {
    todos: Vec<Todo>,
}

impl Invocation for WriteTodos {
    fn describe(&self) -> String {
        let done = self.todos.iter().filter(|todo| todo.status == Status::Completed).count();
        format!("todo list: {done} of {} done", self.todos.len())
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn run(self: Box<Self>, _: Permit, _: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let memory = Raw::from_serialize(&self.todos).ok();
            Outcome { memory, ..Ok(Data::Todos(self.todos)).into() }
        })
    }
}

/// The parameters for showing the list.
#[derive(Serialize)]
struct ShowTodosParameters {}

impl Parameters for ShowTodosParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, _: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        Ok(Box::new(ShowTodos))
    }
}

/// Shows the list as it is.
struct ShowTodos;

impl Invocation for ShowTodos {
    fn describe(&self) -> String {
        "todo list".to_owned()
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let todos = context.memory.and_then(|memory| memory.to_value().ok());
            let todos = todos.and_then(|todos| serde_json::from_value(todos).ok()).unwrap_or_default();
            Ok(Data::Todos(todos)).into()
        })
    }
}

/// The words of the command: a JSON list, or one step a line with its mark.
#[derive(Deserialize, JsonSchema)]
struct TodoWords {
    /// The whole list, in its order, as JSON or as one step a word: `[x] done`, `[>] in progress`, `[ ] to do`. Left out,
    /// it is read from standard input, one step a line; without that the list is shown.
    #[schemars(with = "Option<Vec<String>>")]
    todos: Option<Value>,
}

impl CommandWords for TodoWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let lines: Vec<&str> = match &self.todos {
            None => return Ok(vec![TypedCall::new(ShowTodosParameters {})]),
            Some(Value::Array(todos)) if todos.iter().all(Value::is_object) => {
                return listed(described(todos.clone()));
            }
            Some(Value::Array(todos)) => {
                todos.iter().filter_map(Value::as_str).flat_map(str::lines).collect()
            }
            Some(Value::String(text)) if text.trim_start().starts_with(['{', '"']) || text.contains("[{") => {
                return match serde_json::from_str(text) {
                    Ok(Value::Object(object)) => {
                        read_arguments::<TodoParameters>(Value::Object(object))?.calls()
                    }
                    Ok(Value::Array(list)) => listed(described(list)),
                    Ok(_) => Err(Problem::Arguments("todos: a JSON list is wanted".to_owned())),
                    Err(error) => Err(Problem::Arguments(format!("todos: {error}"))),
                };
            }
            Some(Value::String(text)) => text.lines().collect(),
            Some(_) => return Err(Problem::Arguments("todos: a list is wanted".to_owned())),
        };
        let lines = lines.into_iter().map(str::trim).filter(|line| !line.is_empty());
        let todos: Result<Vec<Todo>, Problem> = lines.map(step).collect();
        TodoParameters { todos: todos? }.calls()
    }
}

/// Makes a call of steps that came as JSON.
fn listed(todos: Vec<Value>) -> Result<Vec<TypedCall>, Problem> {
    read_arguments::<TodoParameters>(json!({ "todos": todos }))?.calls()
}

/// Steps in the form of other agents: `content` is the description. Its second form, `activeForm`, is dropped.
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

/// Parses `[x] text`, with or without a dash or a number before it.
fn step(line: &str) -> Result<Todo, Problem> {
    let bare = line.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '*' | ' '));
    let marked = bare.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (status, text) = match marked {
        Some((" " | "" | "pending", text)) => (Status::Pending, text),
        Some(("x" | "X" | "completed", text)) => (Status::Completed, text),
        Some((">" | "~" | "in_progress", text)) => (Status::InProgress, text),
        Some(("-" | "cancelled", text)) => (Status::Cancelled, text),
        Some(("!" | "blocked", text)) => (Status::Blocked, text),
        Some((mark, _)) => {
            let words = format!("todos: `[{mark}]` is none of `[ ]`, `[x]`, `[>]`, `[-]`, `[!]`");
            return Err(Problem::Arguments(words));
        }
        None => (Status::Pending, line),
    };
    Ok(Todo { description: text.trim().to_owned(), status })
}

/// Formats the steps as `1. [status] text`, one line each.
pub(crate) fn rows(todos: &[Todo]) -> String {
    let row =
        |(at, todo): (usize, &Todo)| format!("{}. [{}] {}", at + 1, todo.status.as_str(), todo.description);
    todos.iter().enumerate().map(row).collect::<Vec<_>>().join("\n")
}
