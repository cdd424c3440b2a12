//! `task_done`: the model says that the task is done. It is judged after all calls beside it.

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects, Kind, Lane};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{Ground, Parameters};
use crate::commands::Command;
use crate::face::Face;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "done";

/// The tool in the list of all.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(Face::lathe::<Arguments>("task_done", "Done", Kind::Other, include_str!("lathe.md"))),
    command: Some(
        Command::of::<Arguments>(
            "task_done",
            ID,
            Kind::Other,
            "Say that the task is done, with what was done and how it was verified.",
        )
        .or(&["done"])
        .noted(include_str!("notes.md"))
        .reading(&["summary"], None)
        .input("summary"),
    ),
    only_if: None,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// What was done and how it was verified, for the user: a few sentences.
    #[serde(default)]
    pub(crate) summary: Option<String>,
}

impl Parameters for Arguments {
    const TOOL: &'static str = ID;

    fn invocation(self, _: &Ground<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { summary } = self;
        Ok(Box::new(Done { summary: summary.unwrap_or_default() }))
    }
}

struct Done {
    summary: String,
}

impl Invocation for Done {
    fn describe(&self) -> String {
        "task done".to_owned()
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    fn lane(&self) -> Lane {
        Lane::Last
    }

    fn run(self: Box<Self>, _: Permit, _: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move { Ok(Data::Done { summary: self.summary }).into() })
    }
}
