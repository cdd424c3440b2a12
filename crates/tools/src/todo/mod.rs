//! A list of steps the model keeps for itself and shows to the user.

use std::path::Path;

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects, Raw};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

/// `1. [status] text`, one line each.
pub(crate) fn rows(todos: &[Todo]) -> String {
    let row =
        |(at, todo): (usize, &Todo)| format!("{}. [{}] {}", at + 1, todo.status.as_str(), todo.description);
    todos.iter().enumerate().map(row).collect::<Vec<_>>().join("\n")
}
