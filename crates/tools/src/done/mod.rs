//! `task_done`: the model says that the task is done. It is judged after all calls beside it.

use std::path::Path;

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects, Lane};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext, Tool, arguments};

pub(crate) const ID: &str = "done";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// What was done and how it was verified, for the user: a few sentences.
    #[serde(default)]
    summary: Option<String>,
}

pub(crate) struct DoneTool;

impl Tool for DoneTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, _: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { summary } = arguments(value)?;
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
