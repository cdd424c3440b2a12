//! Questions to the user.

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, Lane, Question, QuestionKind, QuestionOption, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, FaceArguments, Parameters, TypedCall};
use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "ask";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(Face::lathe::<AskArguments>(
        "ask_user",
        "Ask",
        ToolKind::Communicate,
        include_str!("lathe.md"),
    )),
    command: Some(
        AgentCommand::of::<AskWords>(
            "ask",
            ID,
            ToolKind::Communicate,
            "Ask the user a question; the answer is printed.",
        )
        .with_aliases(&["ask_user"])
        .with_positions(&["question"], Some("options"))
        .input("question"),
    ),
    only_if: None,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AskArguments {
    /// The question, with all the user must know to answer it.
    question: String,
    /// Two to four answers to choose from, if there are such.
    #[serde(default)]
    options: Option<Vec<String>>,
}

impl FaceArguments for AskArguments {
    fn call(self) -> Result<TypedCall, Problem> {
        let labels = self.options.unwrap_or_default();
        let kind = if labels.is_empty() { QuestionKind::Text } else { QuestionKind::Choice };
        let option = |label| QuestionOption { label, description: String::new() };
        let question = Question {
            question: self.question,
            header: String::new(),
            kind,
            options: labels.into_iter().map(option).collect(),
            multi_select: false,
            placeholder: String::new(),
        };
        Ok(TypedCall::new(AskParameters { questions: vec![question] }))
    }
}

/// The parameters of the tool, made by a face.
#[derive(Serialize)]
pub(crate) struct AskParameters {
    pub(crate) questions: Vec<Question>,
}

/// The words of the command in the shell.
#[derive(Deserialize, JsonSchema)]
struct AskWords {
    /// The question, with all the user must know to answer it.
    question: String,
    /// Two to four answers to choose from, if there are such.
    options: Option<Vec<String>>,
}

impl CommandWords for AskWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let Self { question, options } = self;
        AskArguments { question, options }.calls()
    }
}

impl Parameters for AskParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, _: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let AskParameters { questions } = self;
        if questions.is_empty() || questions.len() > 4 {
            return Err(Problem::Arguments("questions: give 1 to 4".to_owned()));
        }
        for (at, question) in questions.iter().enumerate() {
            if question.question.trim().is_empty() {
                return Err(Problem::Arguments(format!("questions/{at}: the question is empty")));
            }
            if question.kind == QuestionKind::Choice && !(2..=4).contains(&question.options.len()) {
                return Err(Problem::Arguments(format!("questions/{at}: a choice has 2 to 4 options")));
            }
        }
        Ok(Box::new(Ask { questions }))
    }
}

struct Ask {
    questions: Vec<Question>,
}

impl Invocation for Ask {
    fn describe(&self) -> String {
        let asked: Vec<&str> = self.questions.iter().map(|question| question.question.as_str()).collect();
        format!("ask: {}", asked.join(" / "))
    }

    fn effects(&self) -> Effects {
        Effects::default()
    }

    /// One dialog at a time.
    fn lane(&self) -> Lane {
        Lane::Alone
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let Some(asker) = &context.asker else {
                return Err(Problem::Nobody).into();
            };
            let answers = tokio::select! {
                answers = asker.ask(&context.call, self.questions) => answers,
                () = context.cancel.cancelled() => {
                    return Err(Problem::Cancelled("Cancelled by the user.".to_owned())).into();
                }
            };
            answers.map(Data::Answers).ok_or(Problem::Dismissed).into()
        })
    }
}
