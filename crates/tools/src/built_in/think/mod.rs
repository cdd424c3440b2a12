//! `sequentialthinking`: thoughts, numbered, with revisions and branches. Its only effect is that they are recorded.
//!
//! The tool itself keeps nothing. The number of thoughts is in its memory, which the session hands back at the next
//! call, so a resumed session counts on.

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, Lane, Raw, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, FaceArguments, Parameters, TypedCall};
use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::outcome::{Data, Outcome, ThoughtData};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "think";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(Face::lathe::<ThinkArguments>("think", "Think", ToolKind::Think, include_str!("lathe.md"))),
    command: Some(
        AgentCommand::of::<ThinkArguments>(
            "think",
            ID,
            ToolKind::Think,
            "Write a thought down. It changes nothing.",
        )
        .with_positions(&["thought"], None)
        .input("thought"),
    ),
    only_if: None,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ThinkArguments {
    /// The thought.
    thought: String,
}

/// Each thought is the next number; no other parameter is needed.
impl FaceArguments for ThinkArguments {
    fn call(self) -> Result<TypedCall, Problem> {
        Ok(TypedCall::new(ThinkParameters { thought: self.thought, ..ThinkParameters::default() }))
    }
}

/// The parameters of the tool, checked by the face that makes them.
#[derive(Default, Serialize)]
pub(crate) struct ThinkParameters {
    pub(crate) thought: String,
    pub(crate) thought_number: Option<i64>,
    pub(crate) total_thoughts: Option<i64>,
    pub(crate) next_thought_needed: bool,
    pub(crate) branch_from_thought: Option<i64>,
    pub(crate) branch_id: Option<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct Memory {
    thoughts: usize,
    branches: Vec<String>,
}

impl Parameters for ThinkParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, _: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        Ok(Box::new(Thought { arguments: self }))
    }
}

struct Thought {
    arguments: ThinkParameters,
}

impl Invocation for Thought {
    fn describe(&self) -> String {
        self.arguments.thought.clone()
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    /// Thoughts run in order, because each counts on from the last.
    fn lane(&self) -> Lane {
        Lane::Alone
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let remembered =
                context.memory.as_ref().and_then(|memory| serde_json::from_str(memory.get()).ok());
            let mut memory: Memory = remembered.unwrap_or_default();
            let ThinkParameters {
                thought_number,
                total_thoughts,
                next_thought_needed,
                branch_from_thought,
                branch_id,
                ..
            } = self.arguments;
            memory.thoughts += 1;
            if let (Some(_), Some(id)) = (branch_from_thought, branch_id)
                && !memory.branches.contains(&id)
            {
                memory.branches.push(id);
            }
            let counted = i64::try_from(memory.thoughts).unwrap_or(i64::MAX);
            let number = thought_number.unwrap_or(counted);
            let thought = ThoughtData {
                number,
                total: total_thoughts.unwrap_or(number).max(number),
                next_needed: next_thought_needed,
                branches: memory.branches.clone(),
                history: memory.thoughts,
            };
            let kept = Raw::from_serialize(&memory).ok();
            Outcome { memory: kept, ..Ok(Data::Thought(thought)).into() }
        })
    }
}
