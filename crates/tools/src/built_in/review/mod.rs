//! `quality_review`: a judge reviews an edit by the rules of the session, because the model asks for it or because a
//! file was edited.
//!
//! The judge is behind a trait: no tool knows a model. A verdict belongs to the result of the call that it is about,
//! so it is recorded once and never asked for again.

use std::path::Path;

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Change, Effects, Lane, Reviewed, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, Parameters};
use crate::faces::Face;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::services::Services;
use crate::tool::{Invocation, RunContext};

pub const ID: &str = "review";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<ReviewParameters>(
            "quality_review",
            "Review",
            ToolKind::Think,
            include_str!("lathe.md"),
        )
        .with_aliases(&["quality_review_tool"]),
    ),
    command: None,
    only_if: Some(|services| services.reviewer.is_some()),
};

/// Bytes of a diff that are shown to the judge.
const SHOWN: usize = 60_000;

/// A request to the judge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReviewRequest {
    pub path: String,
    /// The edit: a piece of the file, or a diff.
    pub snippet: String,
    /// The text of the call, and its result, if they are known.
    pub call_text: Option<String>,
    pub result_text: Option<String>,
    pub rules: String,
}

/// Judges edits.
pub trait Reviewer: Send + Sync {
    /// The rules of the session.
    fn rules(&self) -> &str;

    fn review<'a>(&'a self, ask: ReviewRequest, cancel: &'a CancellationToken) -> BoxFuture<'a, Reviewed>;
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewParameters {
    /// The file that was edited.
    file_path: String,
    /// The edited part of the file, as it is now.
    edited_snippet: String,
    /// What the edit was given: the text of the call.
    #[serde(default)]
    tool_calls_file_text: Option<String>,
    /// What the edit answered.
    #[serde(default)]
    tool_results_result: Option<String>,
    /// The rules to judge by.
    quality_review_rules: String,
}

impl Parameters for ReviewParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, _: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let ReviewParameters {
            file_path,
            edited_snippet,
            tool_calls_file_text,
            tool_results_result,
            quality_review_rules,
        } = self;
        Ok(Box::new(ReviewCall {
            ask: ReviewRequest {
                path: file_path,
                snippet: edited_snippet,
                call_text: tool_calls_file_text,
                result_text: tool_results_result,
                rules: quality_review_rules,
            },
        }))
    }
}

struct ReviewCall {
    ask: ReviewRequest,
}

impl Invocation for ReviewCall {
    fn describe(&self) -> String {
        format!("review {}", self.ask.path)
    }

    /// It reads nothing but its arguments, and the session calls the judge's model anyway.
    fn effects(&self) -> Effects {
        Effects::default()
    }

    /// Reviews run one after the other, because each is counted.
    fn lane(&self) -> Lane {
        Lane::Alone
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let Some(reviewer) = context.services.reviewer.clone() else {
                return Err(Problem::Arguments("this session has no review rules".to_owned())).into();
            };
            let mut ask = self.ask;
            // The model may not have itself judged by weaker rules than the session's.
            if !ask.rules.contains(reviewer.rules()) {
                ask.rules = format!("{}\n{}", reviewer.rules(), ask.rules);
            }
            Ok(Data::Reviewed(reviewer.review(ask, &context.cancel).await)).into()
        })
    }
}

/// The part that a call has in reviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewRole {
    /// The call is a review that the model asked for.
    Asked(ReviewsLeft),
    /// The changes of the call are reviewed.
    AfterEdit(ReviewsLeft),
}

/// The budget that reviews of a run may still use, this one included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReviewsLeft {
    pub reviews: u32,
    pub tokens: u64,
}

impl ReviewsLeft {
    /// The text that a review adds to a result.
    pub(crate) fn result_text(self, reviewed: &Reviewed) -> String {
        let last = self.reviews <= 1 || reviewed.tokens >= self.tokens;
        let note = if last {
            "\nThis was the last review of this run: their budget is used up. Go on without."
        } else {
            ""
        };
        format!("{}{note}", words(reviewed))
    }
}

/// Has the judge review the changes of a call. None if no change can be shown as a diff.
pub async fn review_changes(
    services: &Services,
    changes: &[Change],
    cancel: &CancellationToken,
) -> Option<Reviewed> {
    let reviewer = services.reviewer.clone()?;
    let mut paths = Vec::new();
    let mut snippet = String::new();
    for change in changes {
        let blob = |digest: &Option<lathe_protocol::Digest>| {
            digest.as_ref().and_then(|digest| services.blobs.get(digest).ok().flatten())
        };
        let path = Path::new(&change.path);
        let shown = crate::tool::display_path(services.workspace.root(), path);
        let (before, after) = (blob(&change.before), blob(&change.after));
        let diff = lathe_edit::unified_diff(before.as_deref(), after.as_deref(), &shown);
        if !diff.is_empty() {
            snippet.push_str(&diff);
            paths.push(shown);
        }
    }
    if paths.is_empty() {
        return None;
    }
    let snippet = crate::view::clip(&services.redactor.redact_text(&snippet), SHOWN).to_owned();
    let ask = ReviewRequest {
        path: paths.join(", "),
        snippet,
        call_text: None,
        result_text: None,
        rules: reviewer.rules().to_owned(),
    };
    Some(reviewer.review(ask, cancel).await)
}

/// The review in words for the model.
pub fn words(reviewed: &Reviewed) -> String {
    match (&reviewed.verdict, &reviewed.failure) {
        (Some(verdict), _) => format!("Quality review: {}", verdict.description()),
        (None, Some(reason)) => format!("Quality review: could not be made ({reason})."),
        (None, None) => "Quality review: could not be made.".to_owned(),
    }
}
