//! The step that may still change, and its payload on the wire.

use lathe_protocol::{
    CallFinished, Event, Fact, StepNo, StepState, StepSummarised, StopReason, Timestamp, ToolCall, Usage,
    calls_of, text_of,
};
use serde::Serialize;

use crate::session::Progress;
use crate::trajectory::shapes::{Call, ToolResult, finish_reason};

/// Characters of the excerpt of an answer.
const EXCERPT: usize = 400;
/// Characters of the first line of a result.
const SUMMARY: usize = 200;

#[derive(Debug, Clone)]
pub(super) struct OpenStep {
    pub step: StepNo,
    /// Counted from the beginning of the run.
    pub number: u32,
    at: Timestamp,
    answer: Option<Answer>,
    failure: Option<String>,
    results: Vec<(ToolCall, Option<ToolResult>)>,
    pub reflection: Option<String>,
    summary: Option<String>,
    /// The state that stayed when the run ended, with how it ended.
    ended: Option<(StepState, String)>,
}

#[derive(Debug, Clone)]
struct Answer {
    content: String,
    model: String,
    stop: StopReason,
    usage: Usage,
}

impl OpenStep {
    pub fn asked(step: StepNo, number: u32, at: Timestamp) -> Self {
        Self {
            step,
            number,
            at,
            answer: None,
            failure: None,
            results: Vec::new(),
            reflection: None,
            summary: None,
            ended: None,
        }
    }

    /// Takes an event of this step. What says nothing about a step is skipped.
    pub fn take(&mut self, event: &Event) {
        match &event.fact {
            Fact::ModelAsked(_) => *self = Self::asked(self.step, self.number, event.at),
            Fact::ModelAnswered(answered) => {
                self.results = calls_of(&answered.blocks).map(|call| (call.clone(), None)).collect();
                self.answer = Some(Answer {
                    content: text_of(&answered.blocks),
                    model: answered.model.clone(),
                    stop: answered.stop.clone(),
                    usage: answered.usage,
                });
            }
            Fact::ModelFailed(failed) => self.failure = Some(failed.message.clone()),
            Fact::CallFinished(finished) => self.result(event, finished),
            Fact::Reflected(reflected) => self.reflection = Some(reflected.text.clone()),
            Fact::StepSummarised(summary) => {
                self.summary = Some(lakeview_line(summary));
                return; // It may come long after the step.
            }
            _ => return,
        }
        self.at = event.at;
    }

    fn result(&mut self, event: &Event, finished: &CallFinished) {
        let call = event.place.call.as_ref();
        let slot =
            self.results.iter_mut().find(|(known, result)| Some(&known.id) == call && result.is_none());
        if let Some((known, slot)) = slot {
            *slot = Some(ToolResult::of(known.id.as_str(), finished));
        }
    }

    /// The run ended with this as its last step.
    pub fn end(&mut self, success: bool, result: &str) {
        self.ended = Some((self.progress().state_at_end(success), result.to_owned()));
    }

    pub fn text(&self) -> &str {
        self.answer.as_ref().map_or("", |answer| &answer.content)
    }

    pub fn calls(&self) -> impl Iterator<Item = (&ToolCall, Option<bool>)> {
        self.results.iter().map(|(call, result)| (call, result.as_ref().map(|result| result.success)))
    }

    fn progress(&self) -> Progress {
        let failed = |(_, result): &(ToolCall, Option<ToolResult>)| {
            result.as_ref().is_some_and(|result| result.failed)
        };
        Progress {
            model_failed: self.failure.is_some(),
            answered: self.answer.is_some(),
            calls_open: self.results.iter().any(|(_, result)| result.is_none()),
            calls_failed: self.results.iter().any(failed),
            reflected: self.reflection.is_some(),
        }
    }

    pub fn payload(&self, steps_count: u32) -> Payload<'_> {
        let (state, ending) = match &self.ended {
            Some((state, ending)) => (*state, Some(ending.as_str())),
            None => (self.progress().state(), None),
        };
        let calls: Vec<Call> = self.results.iter().map(|(call, _)| Call::of(call)).collect();
        let calls = (!calls.is_empty()).then_some(calls);
        let results: Vec<ResultView<'_>> =
            self.results.iter().filter_map(|(_, result)| result.as_ref()).map(ResultView::of).collect();
        let good = results.iter().filter(|result| result.success).count();
        let units = self.units();
        Payload {
            steps_count,
            step_number: self.number,
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
        let calls = self.results.iter().map(|(call, _)| Unit::ToolCall {
            call_id: call.id.as_str(),
            name: &call.name,
            arguments: &call.arguments,
        });
        let results = self.results.iter().filter_map(|(call, result)| {
            let success = result.as_ref()?.success;
            Some(Unit::ToolResult { call_id: call.id.as_str(), success })
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
    let text = lathe_redact::shape(text);
    match text.char_indices().nth(most) {
        Some((at, _)) => text[..at].to_owned(),
        None => text.into_owned(),
    }
}

#[derive(Serialize)]
pub(super) struct Payload<'a> {
    steps_count: u32,
    step_number: u32,
    timestamp: String,
    state: &'a str,
    phase: &'a str,
    error: Option<&'a str>,
    reflection: Option<&'a str>,
    lakeview_summary: Option<&'a str>,
    llm_response: Option<Response<'a>>,
    tool_calls: Option<Vec<Call>>,
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
    tool_calls: Option<Vec<Call>>,
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
}

impl<'a> ResultView<'a> {
    fn of(result: &'a ToolResult) -> Self {
        let first = result.result.lines().next().unwrap_or_default();
        Self {
            name: &result.name,
            call_id: &result.call_id,
            success: result.success,
            result: &result.result,
            error: result.error.as_deref(),
            summary: first_chars(first, SUMMARY),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Unit<'a> {
    Think { content: &'a str },
    ToolCall { call_id: &'a str, name: &'a str, arguments: &'a lathe_protocol::Arguments },
    ToolResult { call_id: &'a str, success: bool },
    AgentOutput { markdown: &'a str },
}
