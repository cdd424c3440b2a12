//! `task_done`: the model says that the task is done. It is handled after all other calls of its answer.

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, Lane, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, Parameters};
use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "done";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(Face::lathe::<DoneParameters>("task_done", "Done", ToolKind::Other, include_str!("lathe.md"))),
    command: Some(
        AgentCommand::of::<DoneParameters>(
            "task_done",
            ID,
            ToolKind::Other,
            "Say that the task is done, with what was done and how it was verified.",
        )
        .with_aliases(&["done"])
        .with_notes(include_str!("notes.md"))
        .with_positions(&["summary"], None)
        .input("summary"),
    ),
    only_if: None,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DoneParameters {
    /// What was done and how it was verified, for the user: a few sentences.
    #[serde(default)]
    pub(crate) summary: Option<String>,
}

impl Parameters for DoneParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, _: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let DoneParameters { summary } = self;
        Ok(Box::new(FinishTask { summary: summary.unwrap_or_default() }))
    }
}

struct FinishTask {
    summary: String,
}

impl Invocation for FinishTask {
    fn describe(&self) -> String {
        "task done".to_owned()
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn lane(&self) -> Lane {
        Lane::Last
    }

    fn run(self: Box<Self>, _: Permit, _: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { Ok(Data::Done { summary: self.summary }).into() })
    }
}
