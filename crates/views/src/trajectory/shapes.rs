//! The objects of a trajectory, key by key in Trae's order.

use lathe_protocol::{Arguments, CallFinished, Raw, StopReason, ToolCall, Usage};
use serde::Serialize;

use crate::session::exit_code;

#[derive(Serialize)]
pub(super) struct TrajectoryMessage<'a> {
    pub role: &'a str,
    pub content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_result: Option<&'a ToolResult>,
}

#[derive(Serialize)]
pub(super) struct Interaction<'a> {
    pub timestamp: String,
    pub provider: &'a str,
    pub model: &'a str,
    pub input_messages: &'a [Raw],
    pub response: Response<'a, Usage>,
    pub tools_available: Option<&'a [String]>,
}

/// The model's answer. An interaction has all counts of tokens, a step only two.
#[derive(Serialize)]
pub(super) struct Response<'a, U> {
    pub content: &'a str,
    pub model: &'a str,
    pub finish_reason: &'a str,
    pub usage: U,
    pub tool_calls: Option<&'a [TrajectoryCall]>,
}

#[derive(Serialize)]
pub(super) struct StepUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
}

#[derive(Serialize)]
pub(super) struct TrajectoryStep<'a> {
    pub step_number: u32,
    pub timestamp: String,
    pub state: &'a str,
    pub llm_messages: &'a [Raw],
    pub llm_response: Option<Response<'a, StepUsage>>,
    pub tool_calls: Option<&'a [TrajectoryCall]>,
    pub tool_results: Option<&'a [&'a ToolResult]>,
    pub reflection: Option<&'a str>,
    pub error: Option<&'a str>,
}

/// Trae's `id` is that of OpenAI's Responses items; no wire of ours has one.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct TrajectoryCall {
    pub call_id: String,
    pub name: String,
    pub arguments: Arguments,
    pub id: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct ToolResult {
    pub call_id: String,
    pub name: String,
    /// Trae's meaning: a command that exited with another code than 0 had no success either.
    pub success: bool,
    /// The text the model sees.
    pub result: String,
    pub error: Option<String>,
    pub id: Option<String>,
    /// True if the call itself failed, which is what makes an agent reflect.
    #[serde(skip)]
    pub failed: bool,
}

impl TrajectoryCall {
    pub fn of(call: &ToolCall) -> Self {
        Self {
            call_id: call.id.to_string(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            id: None,
        }
    }
}

impl ToolResult {
    pub fn of(call: &str, finished: &CallFinished) -> Self {
        let failed_with = exit_code(finished).filter(|code| *code != 0);
        let error = finished.error.as_ref().map(|error| error.message.clone());
        Self {
            call_id: call.to_owned(),
            name: finished.name.clone(),
            success: error.is_none() && failed_with.is_none(),
            result: finished.text.clone(),
            error: error.or_else(|| failed_with.map(|code| format!("exit code {code}"))),
            id: None,
            failed: finished.error.is_some(),
        }
    }
}

pub(crate) fn finish_reason(stop: &StopReason) -> &str {
    match stop {
        StopReason::EndTurn => "end_turn",
        StopReason::ToolCalls => "tool_calls",
        StopReason::Length => "length",
        StopReason::ContentFilter => "content_filter",
        StopReason::Other(other) => other,
    }
}
