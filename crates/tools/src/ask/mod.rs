//! Questions to the user.

use std::path::Path;

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects, Lane, Question, QuestionKind};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::face::Adapted;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext, Tool, arguments};

pub(crate) const ID: &str = "ask";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LatheArguments {
    /// The question, with all the user must know to answer it.
    question: String,
    /// Two to four answers to choose from, if there are such.
    #[serde(default)]
    options: Option<Vec<String>>,
}

pub(crate) fn adapt_lathe(value: Value) -> Result<Adapted, Problem> {
    let LatheArguments { question, options } = arguments(value)?;
    let options = options.unwrap_or_default();
    let kind = if options.is_empty() { "text" } else { "choice" };
    let options: Vec<Value> = options.into_iter().map(|label| json!({ "label": label })).collect();
    Ok((ID, json!({ "questions": [{ "question": question, "type": kind, "options": options }] })))
}

#[derive(Deserialize)]
struct Arguments {
    questions: Vec<Question>,
}

pub(crate) struct AskTool;

impl Tool for AskTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, _: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { questions } = arguments(value)?;
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

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
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
