//! The step that may still change, and its payload on the wire.

use std::borrow::Cow;

use lathe_protocol::{
    Arguments, CallState, Event, Fact, Raw, Reviewed, StepNo, StepState, StepSummarised, StopReason,
    Timestamp, ToolCall, Usage, calls_of, text_of,
};
use serde::Serialize;

use super::runs::StepNumbers;
use crate::session::Progress;
use crate::trajectory::shapes::{ToolResult, finish_reason};

/// Characters of the excerpt of an answer.
const EXCERPT: usize = 400;
/// Characters of the first line of a result.
const SUMMARY: usize = 200;

#[derive(Debug, Clone)]
pub(super) struct OpenStep {
    pub numbers: StepNumbers,
    at: Timestamp,
    answer: Option<FrameAnswer>,
    failure: Option<String>,
    calls: Vec<MadeCall>,
    pub reflection: Option<String>,
    summary: Option<String>,
    /// The state that stayed when the run ended, with how it ended.
    ended: Option<(StepState, String)>,
}

/// A call of the answer, with its result.
#[derive(Debug, Clone)]
pub(super) struct MadeCall {
    /// As the model made it.
    pub call: ToolCall,
    /// The arguments that the user put in the place of the model's.
    pub edited: Option<Raw>,
    pub result: Option<ToolResult>,
    review: Option<Reviewed>,
    state: CallState,
}

impl MadeCall {
    /// The call with the arguments that count.
    pub fn what_runs(&self) -> Cow<'_, ToolCall> {
        match &self.edited {
            None => Cow::Borrowed(&self.call),
            Some(edited) => {
                Cow::Owned(ToolCall { arguments: Arguments::Json(edited.clone()), ..self.call.clone() })
            }
        }
    }

    /// Its id; made from its step and name where the model gave none.
    pub fn shown_id(&self, step: u32) -> String {
        match self.call.id.as_str() {
            "" => format!("{step}_{}", self.call.name),
            id => id.to_owned(),
        }
    }

    /// Tells whether the model asked for a review.
    pub fn is_review(&self) -> bool {
        matches!(self.call.name.as_str(), "quality_review" | "quality_review_tool")
    }

    /// Tells whether it went well; none before its end. A review that does not pass did not.
    pub fn mark(&self) -> Option<bool> {
        let fails =
            self.review.as_ref().and_then(|review| review.verdict.as_ref()).is_some_and(|said| !said.pass);
        self.result.as_ref().map(|result| result.success && !(self.is_review() && fails))
    }
}

#[derive(Debug, Clone)]
struct FrameAnswer {
    content: String,
    model: String,
    stop: StopReason,
    usage: Usage,
}

impl OpenStep {
    pub fn begun(numbers: StepNumbers, at: Timestamp) -> Self {
        Self {
            numbers,
            at,
            answer: None,
            failure: None,
            calls: Vec::new(),
            reflection: None,
            summary: None,
            ended: None,
        }
    }

    /// Takes an event of this step. What says nothing about a step is skipped.
    pub fn take(&mut self, event: &Event) {
        if let Some(made) = self.open_call(event) {
            made.state = made.state.after_event(&event.fact);
        }
        match &event.fact {
            Fact::ModelAsked(_) => *self = Self::begun(self.numbers, event.at),
            Fact::ModelAnswered(answered) => {
                let made = |call: &ToolCall| MadeCall {
                    call: call.clone(),
                    edited: None,
                    result: None,
                    review: None,
                    state: CallState::Validating,
                };
                self.calls = calls_of(&answered.blocks).map(made).collect();
                self.answer = Some(FrameAnswer {
                    content: text_of(&answered.blocks),
                    model: answered.model.clone(),
                    stop: answered.stop.clone(),
                    usage: answered.usage,
                });
            }
            Fact::ModelFailed(failed) => self.failure = Some(failed.message.clone()),
            Fact::ApprovalGiven(given) => match (self.open_call(event), &given.edited) {
                (Some(made), Some(edited)) => made.edited = Some(edited.clone()),
                _ => return,
            },
            Fact::CallFinished(finished) => {
                if let Some(made) = self.open_call(event) {
                    made.result = Some(ToolResult::of(made.call.id.as_str(), finished));
                    made.review.clone_from(&finished.review);
                }
            }
            Fact::Reflected(reflected) => self.reflection = Some(reflected.text.clone()),
            Fact::StepSummarised(summary) => {
                self.summary = Some(lakeview_line(summary));
                return; // It may come long after the step.
            }
            _ => return,
        }
        self.at = event.at;
    }

    /// The state of the call of an event.
    pub fn call_state(&self, event: &Event) -> Option<CallState> {
        let call = event.place.call.as_ref()?;
        self.calls.iter().rfind(|made| made.call.id == *call).map(|made| made.state)
    }

    /// Tells whether an event is of this step.
    pub fn is(&self, event: &Event) -> bool {
        event.place.step == Some(self.numbers.in_session)
    }

    /// The call of an event that has no result yet.
    fn open_call(&mut self, event: &Event) -> Option<&mut MadeCall> {
        let call = event.place.call.as_ref();
        self.calls.iter_mut().find(|made| Some(&made.call.id) == call && made.result.is_none())
    }

    /// Ends the step: it was the last one of its run.
    pub fn end(&mut self, success: bool, result: &str) {
        self.ended = Some((self.progress().state_at_end(success), result.to_owned()));
    }

    pub fn text(&self) -> &str {
        self.answer.as_ref().map_or("", |answer| &answer.content)
    }

    pub fn calls(&self) -> impl Iterator<Item = &MadeCall> {
        self.calls.iter()
    }

    fn progress(&self) -> Progress {
        let failed = |made: &MadeCall| made.result.as_ref().is_some_and(|result| result.failed);
        Progress {
            model_failed: self.failure.is_some(),
            answered: self.answer.is_some(),
            calls_open: self.calls.iter().any(|made| made.result.is_none()),
            calls_failed: self.calls.iter().any(failed),
            reflected: self.reflection.is_some(),
        }
    }

    pub fn payload(&self, steps_count: u32) -> Payload<'_> {
        let (state, ending) = match &self.ended {
            Some((state, ending)) => (*state, Some(ending.as_str())),
            None => (self.progress().state(), None),
        };
        let calls: Vec<CallView<'_>> = self.calls.iter().map(CallView::of).collect();
        let calls = (!calls.is_empty()).then_some(calls);
        let results: Vec<ResultView<'_>> = self.calls.iter().filter_map(ResultView::of).collect();
        let good = results.iter().filter(|result| result.success).count();
        let units = self.units();
        Payload {
            steps_count,
            step_number: self.numbers.in_run,
            session_step: self.numbers.in_session,
            timestamp: self.at.to_string(),
            state: state.as_str(),
            phase: state.as_str(),
            error: self.failure.as_deref().or(ending.filter(|_| state == StepState::Error)),
            reflection: self.reflection.as_deref(),
            lakeview_summary: self.summary.as_deref(),
            llm_response: self.answer.as_ref().map(|answer| Response {
                model: &answer.model,
                finish_reason: finish_reason(&answer.stop),
                usage: answer.usage,
                content: &answer.content,
                content_excerpt: first_chars(&answer.content, EXCERPT),
                tool_calls: calls.clone(),
            }),
            tool_calls: calls,
            call_states: self.calls.iter().map(|made| made.state).collect(),
            tool_results_summary: Counts {
                count: results.len(),
                success_count: good,
                error_count: results.len() - good,
            },
            tool_results: results,
            message_units: (!units.is_empty()).then_some(units),
        }
    }

    fn units(&self) -> Vec<Unit<'_>> {
        let think = self.reflection.as_deref().map(|content| Unit::Think { content });
        let calls = self.calls.iter().map(|made| Unit::ToolCall {
            call_id: made.call.id.as_str(),
            name: &made.call.name,
            arguments: &made.call.arguments,
            edited_arguments: made.edited.as_ref(),
        });
        let results = self.calls.iter().filter_map(|made| {
            let success = made.result.as_ref()?.success;
            Some(Unit::ToolResult { call_id: made.call.id.as_str(), success })
        });
        let said =
            Some(self.text()).filter(|text| !text.is_empty()).map(|markdown| Unit::AgentOutput { markdown });
        think.into_iter().chain(calls).chain(results).chain(said).collect()
    }
}

/// `[tags] task — details`, as the trajectory of the server fork has it.
pub fn lakeview_line(summary: &StepSummarised) -> String {
    let tags: Vec<String> = summary.tags.iter().map(|tag| format!("{}{tag}", emoji(tag))).collect();
    format!("[{}] {} — {}", tags.join(" · "), summary.task, summary.details)
}

fn emoji(tag: &str) -> &'static str {
    match tag {
        "WRITE_TEST" => "☑️",
        "VERIFY_TEST" => "✅",
        "EXAMINE_CODE" => "👁️",
        "WRITE_FIX" => "📝",
        "VERIFY_FIX" => "🔥",
        "REPORT" => "📣",
        "THINK" => "🧠",
        "OUTLIER" => "⁉️",
        _ => "",
    }
}

/// The beginning of a text without what looks like a secret: half of one would not look like it.
fn first_chars(text: &str, most: usize) -> String {
    lathe_redact::masked_beginning(text, most).0.into_owned()
}

#[derive(Serialize)]
pub(super) struct Payload<'a> {
    steps_count: u32,
    step_number: u32,
    session_step: StepNo,
    timestamp: String,
    state: &'a str,
    phase: &'a str,
    error: Option<&'a str>,
    reflection: Option<&'a str>,
    lakeview_summary: Option<&'a str>,
    llm_response: Option<Response<'a>>,
    tool_calls: Option<Vec<CallView<'a>>>,
    /// The state of each call, in their order and in Gemini CLI's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    call_states: Vec<CallState>,
    tool_results_summary: Counts,
    tool_results: Vec<ResultView<'a>>,
    message_units: Option<Vec<Unit<'a>>>,
}

#[derive(Serialize)]
struct Response<'a> {
    model: &'a str,
    finish_reason: &'a str,
    usage: Usage,
    content: &'a str,
    content_excerpt: String,
    tool_calls: Option<Vec<CallView<'a>>>,
}

/// A call as the model made it, with the user's change of it.
#[derive(Clone, Serialize)]
struct CallView<'a> {
    call_id: &'a str,
    name: &'a str,
    arguments: &'a Arguments,
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    edited_arguments: Option<&'a Raw>,
}

impl<'a> CallView<'a> {
    fn of(made: &'a MadeCall) -> Self {
        let MadeCall { call, edited, .. } = made;
        let edited_arguments = edited.as_ref();
        Self {
            call_id: call.id.as_str(),
            name: &call.name,
            arguments: &call.arguments,
            id: None,
            edited_arguments,
        }
    }
}

#[derive(Serialize)]
struct Counts {
    count: usize,
    success_count: usize,
    error_count: usize,
}

#[derive(Serialize)]
struct ResultView<'a> {
    name: &'a str,
    call_id: &'a str,
    success: bool,
    result: &'a str,
    error: Option<&'a str>,
    summary: String,
    /// The verdict of a judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    review: Option<ReviewView<'a>>,
}

/// The verdict of a judge; `pass` is null where there is none, and `failure` says why.
#[derive(Serialize)]
struct ReviewView<'a> {
    pass: Option<bool>,
    reasons: &'a [String],
    suggestions: &'a [String],
    failure: Option<&'a str>,
}

impl<'a> ReviewView<'a> {
    fn of(review: &'a Reviewed) -> Self {
        let verdict = review.verdict.as_ref();
        Self {
            pass: verdict.map(|verdict| verdict.pass),
            reasons: verdict.map_or(&[], |verdict| &verdict.reasons),
            suggestions: verdict.map_or(&[], |verdict| &verdict.suggestions),
            failure: review.failure.as_deref(),
        }
    }
}

impl<'a> ResultView<'a> {
    fn of(made: &'a MadeCall) -> Option<Self> {
        let result = made.result.as_ref()?;
        let first = result.result.lines().next().unwrap_or_default();
        Some(Self {
            name: &result.name,
            call_id: &result.call_id,
            success: result.success,
            result: &result.result,
            error: result.error.as_deref(),
            summary: first_chars(first, SUMMARY),
            review: made.review.as_ref().map(ReviewView::of),
        })
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Unit<'a> {
    Think {
        content: &'a str,
    },
    ToolCall {
        call_id: &'a str,
        name: &'a str,
        arguments: &'a Arguments,
        #[serde(skip_serializing_if = "Option::is_none")]
        edited_arguments: Option<&'a Raw>,
    },
    ToolResult {
        call_id: &'a str,
        success: bool,
    },
    AgentOutput {
        markdown: &'a str,
    },
}
