//! From events to the trajectory of one run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use lathe_protocol::{
    CallFinished, CallId, Event, Fact, ModelAnswered, Persona, Raw, RunNo, SessionOptions, StepNo,
    StopReason, TaskFinished, Timestamp, Toolset, Usage, calls_of, text_of,
};
use serde::Serialize;

use super::layout::lay_out;
use super::shapes::{
    Interaction, Response, StepUsage, ToolResult, TrajectoryCall, TrajectoryMessage, TrajectoryStep,
    finish_reason,
};
use crate::session::Progress;
use crate::time::iso_without_zone;
use crate::wire::lakeview_line;
use lathe_protocol::StepState;

/// Depth of an interaction and of a step: root, list.
const ITEM_DEPTH: usize = 2;

/// Builds the trajectory of one run from the events of a live branch, one at a time. It ignores `Rewound`: after a
/// rewind the caller starts again with a new builder.
pub struct TrajectoryBuilder {
    wanted: Option<RunNo>,
    time: Box<dyn Fn(Timestamp) -> String + Send + Sync>,
    options: Option<SessionOptions>,
    workspace: String,
    system: Option<String>,
    tools: Option<Vec<String>>,
    run: Option<Run>,
}

struct Run {
    no: RunNo,
    task: String,
    began: Timestamp,
    options: Option<SessionOptions>,
    /// The head of the prompt was not shown in this run yet.
    head_due: bool,
    /// Messages since the last answer.
    pending: Vec<Raw>,
    interactions: Joined,
    steps: Joined,
    /// The summaries of steps. One may arrive long after its step.
    summaries: BTreeMap<StepNo, String>,
    open: Option<OpenStep>,
    finished: Option<(Timestamp, TaskFinished)>,
}

/// The step that may still change. Only this one is serialised when a file is written.
struct OpenStep {
    step: StepNo,
    number: u32,
    at: Timestamp,
    answer: Option<StepAnswer>,
    failure: Option<String>,
    results: Vec<(CallId, Option<ToolResult>)>,
    /// The messages that the step adds for the model's next request.
    messages: Vec<Raw>,
    reflection: Option<String>,
    /// The state that stayed when the run ended, with how it ended.
    ended: Option<(StepState, String)>,
}

struct StepAnswer {
    content: String,
    model: String,
    stop: StopReason,
    usage: Usage,
    calls: Option<Vec<TrajectoryCall>>,
}

/// Finished items as text, with what stands between them.
#[derive(Default)]
struct Joined {
    text: String,
    count: u32,
    /// The end of the text of each step, without its closing brace.
    ends: Vec<(StepNo, usize)>,
}

/// The text between two items, and the end of an item.
const BETWEEN: &str = ",\n    ";
const CLOSING: &str = "\n    }";

impl Default for TrajectoryBuilder {
    fn default() -> Self {
        Self::for_run(None)
    }
}

impl TrajectoryBuilder {
    /// The trajectory of the last run.
    pub fn new() -> Self {
        Self::default()
    }

    /// The trajectory of the given run, or of the last.
    pub fn for_run(wanted: Option<RunNo>) -> Self {
        Self {
            wanted,
            time: Box::new(iso_without_zone),
            options: None,
            workspace: String::new(),
            system: None,
            tools: None,
            run: None,
        }
    }

    /// Writes times with this function instead of in UTC. Trae's are local, ISO 8601, without a zone.
    pub fn with_time(mut self, time: impl Fn(Timestamp) -> String + Send + Sync + 'static) -> Self {
        self.time = Box::new(time);
        self
    }

    /// The run that is being built; none before its task.
    pub fn run(&self) -> Option<RunNo> {
        self.run.as_ref().map(|run| run.no)
    }

    /// Tells whether that run is over: only a new task changes the trajectory then.
    pub fn is_finished(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.finished.is_some())
    }

    pub fn take(&mut self, event: &Event) {
        match &event.fact {
            Fact::SessionOpened(opened) => {
                self.options = Some(opened.options.clone());
                self.workspace.clone_from(&opened.workspace);
            }
            Fact::OptionsChanged(changed) => {
                self.options = Some(changed.options.clone());
                if let Some(run) = self.current(event).filter(|run| run.finished.is_none()) {
                    run.options = Some(changed.options.clone());
                }
            }
            Fact::EpochStarted(epoch) => {
                self.system = Some(epoch.system.clone());
                self.tools = Some(epoch.tools.iter().map(|tool| tool.name.clone()).collect());
                if let Some(run) = self.current(event) {
                    run.head_due = true;
                }
            }
            Fact::TaskGiven(given) if self.wanted.is_none_or(|wanted| wanted == event.place.run) => {
                let persona = self.options.as_ref().and_then(|options| options.persona.as_ref());
                // The first task of a session is its first run.
                let task = Persona::task_text(persona, &given.text, event.place.run == RunNo(1));
                let message = user_message(&self.task_text(&task));
                self.run = Some(Run {
                    no: event.place.run,
                    task: given.text.clone(),
                    began: event.at,
                    options: self.options.clone(),
                    head_due: true,
                    pending: vec![message],
                    interactions: Joined::default(),
                    steps: Joined::default(),
                    summaries: BTreeMap::new(),
                    open: None,
                    finished: None,
                });
            }
            Fact::ModelAsked(_) => self.take_request(event),
            Fact::ModelAnswered(answered) => self.take_answer(event, answered),
            Fact::TaskFinished(finished) => self.take_finish(event, finished),
            Fact::ModelFailed(failed) => self.with_step(event, |step, _| {
                step.failure = Some(failed.message.clone());
            }),
            Fact::CallFinished(finished) => self.with_step(event, |step, pending| {
                step.result(event.place.call.as_ref(), finished, pending);
            }),
            Fact::Reflected(reflected) => self.with_step(event, |step, pending| {
                step.reflection = Some(reflected.text.clone());
                step.add_message(user_message(&reflected.text), pending);
            }),
            Fact::Reminded(reminded) => self.with_step(event, |step, pending| {
                step.add_message(user_message(&reminded.text), pending);
            }),
            Fact::StepSummarised(summary) => {
                let words = lakeview_line(summary);
                if let Some((run, step)) = self.current(event).zip(event.place.step) {
                    run.summaries.insert(step, words);
                }
            }
            // Trae's format has no place for the other facts.
            _ => {}
        }
    }

    fn current(&mut self, event: &Event) -> Option<&mut Run> {
        self.run.as_mut().filter(|run| run.no == event.place.run)
    }

    fn with_step(&mut self, event: &Event, change: impl FnOnce(&mut OpenStep, &mut Vec<Raw>)) {
        if let Some(run) = self.current(event)
            && let Some(step) = &mut run.open
        {
            step.at = event.at;
            change(step, &mut run.pending);
        }
    }

    fn take_request(&mut self, event: &Event) {
        self.close_step(event);
        let Some(run) = self.current(event) else { return };
        run.open = Some(OpenStep {
            step: event.place.step.unwrap_or_default(),
            number: run.steps.count + 1,
            at: event.at,
            answer: None,
            failure: None,
            results: Vec::new(),
            messages: Vec::new(),
            reflection: None,
            ended: None,
        });
    }

    fn take_answer(&mut self, event: &Event, answered: &ModelAnswered) {
        let (system, tools, at) = (self.system.clone(), self.tools.clone(), (self.time)(event.at));
        let Some(run) = self.current(event) else { return };
        let calls: Vec<TrajectoryCall> = calls_of(&answered.blocks).map(TrajectoryCall::of).collect();
        let content = text_of(&answered.blocks);
        let calls = (!calls.is_empty()).then_some(calls);
        let mut messages = std::mem::take(&mut run.pending);
        if std::mem::take(&mut run.head_due)
            && let Some(system) = &system
        {
            messages.insert(0, message("system", system));
        }
        let (provider, model) = named(run.options.as_ref());
        run.interactions.push(&Interaction {
            timestamp: at,
            provider,
            model,
            input_messages: &messages,
            response: Response {
                content: &content,
                model: &answered.model,
                finish_reason: finish_reason(&answered.stop),
                usage: answered.usage,
                tool_calls: calls.as_deref(),
            },
            tools_available: tools.as_deref(),
        });
        if let Some(step) = &mut run.open {
            step.at = event.at;
            step.results = calls_of(&answered.blocks).map(|call| (call.id.clone(), None)).collect();
            step.answer = Some(StepAnswer {
                content,
                model: answered.model.clone(),
                stop: answered.stop.clone(),
                usage: answered.usage,
                calls,
            });
        }
    }

    fn take_finish(&mut self, event: &Event, finished: &TaskFinished) {
        let Some(run) = self.current(event) else { return };
        run.finished = Some((event.at, finished.clone()));
        if let Some(step) = &mut run.open {
            let state = step.progress().state_at_end(finished.ending.is_success());
            step.ended = Some((state, finished.result.clone()));
        }
        self.close_step(event);
    }

    /// Turns the open step into text. A step that is asked for again is not another step.
    fn close_step(&mut self, event: &Event) {
        let Self { run, time, .. } = self;
        let Some(run) = run.as_mut().filter(|run| run.no == event.place.run) else {
            return;
        };
        let again = |step: &OpenStep| step.answer.is_none() && event.place.step == Some(step.step);
        if let Some(step) = run.open.take().filter(|step| !again(step)) {
            run.steps.push_step(&step, &**time);
        }
    }

    fn task_text(&self, task: &str) -> String {
        // The text the model was given, which for Trae's toolset has Trae's frame. The agent's history makes the same.
        match self.options.as_ref().map(|options| options.toolset) {
            Some(Toolset::Trae) => format!(
                "[Project root path]:\n{}\n\n[Problem statement]: We're currently solving the following issue within our repository. Here's the issue text:\n{task}\n",
                self.workspace
            ),
            Some(Toolset::Lathe | Toolset::Gemini | Toolset::Bash) | None => task.to_owned(),
        }
    }

    /// The trajectory as it is now.
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8(out).unwrap_or_default()
    }

    /// Appends the trajectory as it is now. Only the step that may still change is serialised.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        let run = self.run.as_ref();
        let options = run.map_or(self.options.as_ref(), |run| run.options.as_ref());
        let (provider, model) = named(options);
        let finished = run.and_then(|run| run.finished.as_ref());
        let mut head = String::from("{");
        field(&mut head, "task", &run.map_or("", |run| &run.task));
        field(&mut head, "start_time", &run.map(|run| (self.time)(run.began)));
        field(&mut head, "end_time", &finished.map(|(at, _)| (self.time)(*at)));
        field(&mut head, "provider", &provider);
        field(&mut head, "model", &model);
        field(&mut head, "max_steps", &options.map_or(0, |options| options.limits.max_steps));
        out.extend_from_slice(head.as_bytes());
        let nothing = Joined::default();
        let (interactions, steps) = run.map_or((&nothing, &nothing), |run| (&run.interactions, &run.steps));
        let mut open = Joined::default();
        if let Some(step) = run.and_then(|run| run.open.as_ref()) {
            open.push_step(step, &*self.time);
        }
        out.reserve(interactions.text.len() + steps.text.len() + open.text.len() + 4096);
        list(out, "llm_interactions", &[interactions]);
        match run.map(|run| &run.summaries).filter(|summaries| !summaries.is_empty()) {
            None => list(out, "agent_steps", &[steps, &open]),
            Some(summaries) => {
                list(
                    out,
                    "agent_steps",
                    &[&steps.with_summaries(summaries), &open.with_summaries(summaries)],
                );
            }
        }
        let mut tail = String::new();
        field(&mut tail, "success", &finished.map(|(_, done)| done.ending.is_success()));
        field(&mut tail, "final_result", &finished.map(|(_, done)| &done.result));
        let seconds = run.zip(finished).map(|(run, (at, _))| seconds(run.began, *at));
        field(&mut tail, "execution_time", &seconds);
        tail.pop();
        tail.push_str("\n}");
        out.extend_from_slice(tail.as_bytes());
    }
}

impl OpenStep {
    /// Takes a result. Once each call has one, the results are sent to the model, in the order of the calls.
    fn result(&mut self, call: Option<&CallId>, finished: &CallFinished, pending: &mut Vec<Raw>) {
        let Some((id, slot)) = self.results.iter_mut().find(|(id, slot)| Some(id) == call && slot.is_none())
        else {
            return;
        };
        *slot = Some(ToolResult::of(id.as_str(), finished));
        if self.results.iter().all(|(_, result)| result.is_some()) {
            let messages: Vec<Raw> = self.results_so_far().into_iter().map(result_message).collect();
            messages.into_iter().for_each(|message| self.add_message(message, pending));
        }
    }

    fn add_message(&mut self, message: Raw, pending: &mut Vec<Raw>) {
        self.messages.push(message.clone());
        pending.push(message);
    }

    fn results_so_far(&self) -> Vec<&ToolResult> {
        self.results.iter().filter_map(|(_, result)| result.as_ref()).collect()
    }

    fn progress(&self) -> Progress {
        Progress {
            model_failed: self.failure.is_some(),
            answered: self.answer.is_some(),
            calls_open: self.results.iter().any(|(_, result)| result.is_none()),
            calls_failed: self.results_so_far().iter().any(|result| result.failed),
            reflected: self.reflection.is_some(),
        }
    }

    fn shape<'a>(
        &'a self,
        time: &dyn Fn(Timestamp) -> String,
        results: &'a [&'a ToolResult],
    ) -> TrajectoryStep<'a> {
        let (state, ending) = match &self.ended {
            Some((state, ending)) => (*state, Some(ending.as_str())),
            None => (self.progress().state(), None),
        };
        // A step that the end of the run cut off has that end for its error.
        let cut_off = ending.filter(|_| state == StepState::Error);
        let answer = self.answer.as_ref();
        TrajectoryStep {
            step_number: self.number,
            timestamp: time(self.at),
            state: state.as_str(),
            llm_messages: &self.messages,
            llm_response: answer.map(|answer| Response {
                content: &answer.content,
                model: &answer.model,
                finish_reason: finish_reason(&answer.stop),
                usage: StepUsage {
                    input_tokens: answer.usage.input_tokens,
                    output_tokens: answer.usage.output_tokens,
                },
                tool_calls: answer.calls.as_deref(),
            }),
            tool_calls: answer.and_then(|answer| answer.calls.as_deref()),
            tool_results: (!results.is_empty()).then_some(results),
            reflection: self.reflection.as_deref(),
            error: self.failure.as_deref().or(cut_off),
        }
    }
}

impl Joined {
    fn push(&mut self, item: &impl Serialize) {
        if self.count > 0 {
            self.text.push_str(BETWEEN);
        }
        self.count += 1;
        lay_out(&json(item), ITEM_DEPTH, &mut self.text);
    }

    fn push_step(&mut self, step: &OpenStep, time: &dyn Fn(Timestamp) -> String) {
        self.push(&step.shape(time, &step.results_so_far()));
        self.ends.push((step.step, self.text.len() - CLOSING.len()));
    }

    /// The same steps, with their summaries.
    fn with_summaries(&self, summaries: &BTreeMap<StepNo, String>) -> Self {
        let mut text = String::with_capacity(self.text.len() + 200 * summaries.len());
        let mut from = 0;
        for (step, end) in &self.ends {
            text.push_str(self.text.get(from..*end).unwrap_or_default());
            if let Some(summary) = summaries.get(step) {
                let _ = write!(text, ",\n      \"lakeview_summary\": {}", json(summary));
            }
            from = *end;
        }
        text.push_str(self.text.get(from..).unwrap_or_default());
        Self { text, count: self.count, ends: Vec::new() }
    }
}

/// A list of the root, from items that are text already.
fn list(out: &mut Vec<u8>, key: &str, parts: &[&Joined]) {
    let parts: Vec<&str> =
        parts.iter().filter(|part| part.count > 0).map(|part| part.text.as_str()).collect();
    out.extend_from_slice(format!("\n  \"{key}\": [").as_bytes());
    for (at, part) in parts.iter().enumerate() {
        out.extend_from_slice(if at == 0 { b"\n    " } else { b",\n    " });
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(if parts.is_empty() { b"]," } else { b"\n  ]," });
}

fn field(out: &mut String, key: &str, value: &impl Serialize) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\n  \"{key}\": {},", json(value));
}

/// Nothing in a trajectory can fail to be written as JSON: no map has keys that are not text.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| "null".to_owned())
}

fn raw(value: &impl Serialize) -> Raw {
    Raw::from_serialize(value).unwrap_or_else(|_| Raw::null())
}

fn message(role: &str, content: &str) -> Raw {
    raw(&TrajectoryMessage { role, content: Some(content), tool_result: None })
}

fn user_message(content: &str) -> Raw {
    message("user", content)
}

/// Trae gives results as user messages without content.
fn result_message(result: &ToolResult) -> Raw {
    raw(&TrajectoryMessage { role: "user", content: None, tool_result: Some(result) })
}

fn named(options: Option<&SessionOptions>) -> (&str, &str) {
    options.map_or(("", ""), |options| (&options.model.provider, &options.model.model))
}

fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    (to.as_microsecond() - from.as_microsecond()) as f64 / 1e6
}
