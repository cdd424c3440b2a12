//! From events to frames.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use lathe_protocol::{
    ApprovalAsked, ApprovalExpired, ApprovalGiven, CallFinished, Change, Event, Fact, ModelFailure, RunNo,
    Seq, SessionId, StepNo, TaskFinished, Timestamp, ToolSpec,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::bubbles::{self, Bubble};
use super::cursor::Cursor;
use super::frames::{WireFrame, mask_reasons, masked_json, raw, text};
use super::step::OpenStep;

/// The events of a past step, in order. Those of the last time the step was asked for are enough.
pub type PastSteps<'a> = &'a dyn Fn(RunNo, StepNo) -> Vec<Event>;

/// Makes the frames of a session, one event after the other, from the first.
#[derive(Debug, Clone)]
pub struct Projector {
    /// The beginning of the names of trajectory files.
    trajectories: Arc<str>,
    session: SessionId,
    workspace: Arc<str>,
    tools: Option<Arc<RawValue>>,
    runs: BTreeMap<RunNo, Run>,
    run: RunNo,
    open: Option<OpenStep>,
    /// The payload that was sent last, so that nothing is sent again that did not change.
    sent: String,
    last: Seq,
}

#[derive(Debug, Clone)]
struct Run {
    began: Timestamp,
    task: Arc<str>,
    /// The first frame of the run is still due: it names the tools, which come with the first request.
    start_due: bool,
    first: Option<StepNo>,
    last: Option<StepNo>,
    interactions: u32,
    ended: Option<(bool, Arc<str>)>,
}

impl Run {
    fn number(&self, step: StepNo) -> u32 {
        step.0.saturating_sub(self.first.unwrap_or(step).0) + 1
    }

    fn steps(&self) -> u32 {
        self.last.map_or(0, |last| self.number(last))
    }
}

/// The frames of one event, numbered as they come.
struct Out {
    seq: Seq,
    run: RunNo,
    frames: Vec<WireFrame>,
}

impl Out {
    fn push(&mut self, kind: &'static str, data: &impl Serialize) {
        self.push_raw(kind, raw(data));
    }

    fn push_raw(&mut self, kind: &'static str, data: Box<RawValue>) {
        let masked = masked_json(data.get());
        let data = masked.and_then(|masked| RawValue::from_string(masked).ok()).unwrap_or(data);
        let part = u32::try_from(self.frames.len()).unwrap_or(u32::MAX - 2) + 1;
        let cursor = Cursor { seq: self.seq, part };
        self.frames.push(WireFrame { kind, data, exact: None, cursor, run: self.run });
    }

    /// A question that may be answered. Its exact form shows what will run byte for byte; only reasons are masked in it.
    fn push_question(&mut self, mut data: Value) {
        self.push("approval", &data);
        mask_reasons(&mut data);
        let exact = raw(&data);
        if let Some(frame) = self.frames.last_mut()
            && exact.get() != frame.data.get()
        {
            frame.exact = Some(exact);
        }
    }

    fn bubble(
        &mut self,
        at: Timestamp,
        id: String,
        role: &'static str,
        content: String,
        call_id: Option<String>,
    ) {
        self.push("bubble", &Bubble { id, role, content, timestamp: at.to_string(), call_id });
    }
}

impl Projector {
    /// Begins before the first event of a session. Trajectory files are `<trajectories>/<session>.json`, and with the
    /// number of the run for later ones.
    pub fn new(session: SessionId, trajectories: &str) -> Self {
        Self {
            trajectories: trajectories.into(),
            session,
            workspace: "".into(),
            tools: None,
            runs: BTreeMap::new(),
            run: RunNo(0),
            open: None,
            sent: String::new(),
            last: Seq(0),
        }
    }

    /// The last event taken.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// Everything up to this event was taken, as far as it matters.
    pub fn stands_at(&mut self, seq: Seq) {
        self.last = seq;
    }

    /// The run that is under way, or was last.
    pub fn run(&self) -> RunNo {
        self.run
    }

    /// A text as bubbles show it: without what looks like a secret.
    pub fn shown(text: &str) -> Cow<'_, str> {
        lathe_redact::shape(text)
    }

    /// Takes the next event and gives its frames.
    pub fn take(&mut self, event: &Event, past: PastSteps<'_>) -> Vec<WireFrame> {
        self.last = event.seq;
        let mut out = Out { seq: event.seq, run: event.place.run, frames: Vec::new() };
        match &event.fact {
            Fact::SessionOpened(opened) => {
                self.session = opened.session.clone();
                self.workspace = opened.workspace.as_str().into();
            }
            Fact::EpochStarted(epoch) => self.tools = Some(tools(&epoch.tools).into()),
            Fact::TaskGiven(given) => {
                self.run = event.place.run;
                self.open = None;
                let run = Run {
                    began: event.at,
                    task: given.text.as_str().into(),
                    start_due: true,
                    first: None,
                    last: None,
                    interactions: 0,
                    ended: None,
                };
                self.runs.insert(event.place.run, run);
            }
            Fact::RunResumed(_) => {
                self.run = event.place.run;
                if let Some(run) = self.runs.get_mut(&event.place.run) {
                    run.ended = None;
                }
                out.push("resumed", &json!({ "run": event.place.run.0 }));
            }
            Fact::Steered(steered) => {
                out.push("input", &json!({ "text": steered.text, "timestamp": event.at.to_string() }));
            }
            Fact::SessionNamed(named) => {
                out.push("session", &json!({ "title": lathe_redact::shape(&named.title) }));
            }
            Fact::EditsReviewed(reviewed) => out.push("reviewed", reviewed),
            Fact::CancelAsked(_) => out.push("cancelling", &json!({})),
            Fact::ModelAsked(_) => self.asked(event, &mut out),
            Fact::ModelAnswered(_) => self.answered(event, &mut out),
            Fact::ModelFailed(failed) => {
                self.with_step(event, &mut out);
                if !matches!(failed.kind, ModelFailure::Interrupted | ModelFailure::Cancelled) {
                    out.push("error", &json!({ "message": failed.message, "kind": failed.kind }));
                }
            }
            Fact::CallFinished(finished) => self.call_finished(event, finished, &mut out),
            Fact::Reflected(_) => {
                self.with_step(event, &mut out);
                if let Some(step) = &self.open {
                    let said = bubbles::thought(step.number, step.reflection.as_deref().unwrap_or_default());
                    let id = format!("seq-reflect-{}", step.number);
                    out.bubble(event.at, id, "agent", bubbles::marked(&said, Some(true)), None);
                }
            }
            Fact::StepSummarised(_) => self.summarised(event, past, &mut out),
            Fact::TaskFinished(finished) => self.finished(event, finished, &mut out),
            Fact::ApprovalAsked(asked) => out.push_question(asked_data(event, asked)),
            Fact::ApprovalGiven(given) => out.push("approval", &given_data(event, given)),
            Fact::ApprovalExpired(expired) => out.push("approval", &expired_data(event, expired)),
            Fact::QuestionAsked(asked) => out.push(
                "question",
                &json!({
                    "question": event.seq,
                    "call_id": event.place.call,
                    "questions": asked.questions,
                    "timestamp": event.at.to_string(),
                }),
            ),
            Fact::FilesRestored(restored) => {
                self.changed(event, &restored.changes, &mut out);
                out.push(
                    "restored",
                    &json!({ "to": restored.to, "undoes": restored.undoes, "conflicts": restored.conflicts }),
                );
            }
            Fact::Rewound(rewound) => {
                self.open = None;
                out.push("rewound", &json!({ "to": rewound.to, "timestamp": event.at.to_string() }));
            }
            Fact::RewindUndone(undone) => {
                self.open = None;
                out.push("rewind_undone", &json!({ "rewind": undone.rewind }));
            }
            Fact::OptionsChanged(_)
            | Fact::BaselineTaken(_)
            | Fact::ReplayDrifted(_)
            | Fact::CallDecided(_)
            | Fact::CallStarted(_)
            | Fact::Reminded(_)
            | Fact::CommandRan(_)
            | Fact::Unknown(_) => {}
        }
        out.frames
    }

    fn trajectory_file(&self, run: RunNo) -> String {
        let first = self.runs.keys().next().copied().unwrap_or(run);
        let later = run.0.saturating_sub(first.0);
        let ending = if later == 0 { String::new() } else { format!("-{}", later + 1) };
        format!("{}/{}{ending}.json", self.trajectories, self.session)
    }

    fn start(&mut self, at: RunNo, out: &mut Out) {
        let trajectory_file = self.trajectory_file(at);
        let Some(run) = self.runs.get_mut(&at).filter(|run| run.start_due) else { return };
        run.start_due = false;
        #[derive(Serialize)]
        struct Start<'a> {
            trajectory_file: String,
            working_dir: &'a str,
            tools: Option<&'a RawValue>,
            task: &'a str,
            timestamp: String,
        }
        out.push(
            "start",
            &Start {
                trajectory_file,
                working_dir: &self.workspace,
                tools: self.tools.as_deref(),
                task: &run.task,
                timestamp: run.began.to_string(),
            },
        );
    }

    fn asked(&mut self, event: &Event, out: &mut Out) {
        let step = event.place.step.unwrap_or_default();
        self.start(event.place.run, out);
        let Some(run) = self.runs.get_mut(&event.place.run) else { return };
        // After a rewind the steps of a run begin again at a smaller number.
        run.first = Some(run.first.map_or(step, |first| first.min(step)));
        run.last = Some(step);
        self.open = Some(OpenStep::asked(step, run.number(step), event.at));
        self.sent.clear();
        self.send_step(out);
    }

    fn answered(&mut self, event: &Event, out: &mut Out) {
        let Fact::ModelAnswered(answered) = &event.fact else { return };
        let interaction = match self.runs.get_mut(&event.place.run) {
            Some(run) => {
                run.interactions += 1;
                run.interactions
            }
            None => return,
        };
        if let Some(step) = &mut self.open {
            step.take(event);
        }
        let Some(step) = &self.open else { return };
        let (number, said) = (step.number, step.text().to_owned());
        out.push("usage", &json!({ "step": number, "model": answered.model, "usage": answered.usage }));
        if !said.trim().is_empty() {
            out.bubble(event.at, format!("llm-{interaction}"), "agent", bubbles::clip(&said), None);
        }
        self.send_step(out);
        if !said.trim().is_empty() {
            let said = bubbles::marked(&bubbles::thought(number, &said), Some(true));
            out.bubble(event.at, format!("seq-{number}"), "agent", said, None);
        }
        self.send_calls(event, None, out);
    }

    /// The bubbles of calls: of all, when they are made, or of one, with its mark.
    fn send_calls(&self, event: &Event, only: Option<&lathe_protocol::CallId>, out: &mut Out) {
        let Some(step) = &self.open else { return };
        for (call, success) in step.calls().filter(|(call, _)| only.is_none_or(|only| *only == call.id)) {
            let id = match call.id.as_str() {
                "" => format!("{}_{}", step.number, call.name),
                id => id.to_owned(),
            };
            let said = bubbles::marked(&bubbles::call(call, &self.workspace), success);
            out.bubble(event.at, format!("tc-{}-{id}", step.number), "agent", said, Some(id));
        }
    }

    fn call_finished(&mut self, event: &Event, finished: &CallFinished, out: &mut Out) {
        if let Some(step) = self.open.as_mut().filter(|step| Some(step.step) == event.place.step) {
            step.take(event);
        }
        // Like a trajectory, the step tells results once all are there; marks of bubbles tell each as it comes. A step with
        // many calls would else be sent with every one of them.
        if self.open.as_ref().is_some_and(|step| step.calls().all(|(_, result)| result.is_some())) {
            self.send_step(out);
        }
        self.send_calls(event, event.place.call.as_ref(), out);
        if let (Some(step), Some(error), "task_done") = (&self.open, &finished.error, finished.name.as_str())
        {
            let id = format!("taskdone-{}-error", step.number);
            out.bubble(event.at, id, "error", bubbles::clip(&error.message), None);
        }
        self.changed(event, &finished.changes, out);
        if let Some(data) = finished.data.as_ref().filter(|data| data.get().starts_with("{\"todos\":")) {
            out.push("todo", data);
        }
    }

    fn changed(&self, event: &Event, changes: &[Change], out: &mut Out) {
        for change in changes.iter().filter(|change| !change.is_folder()) {
            let whole = match change.path.starts_with('/') {
                true => change.path.clone(),
                false => format!("{}/{}", self.workspace, change.path),
            };
            let what = match (&change.before, &change.after) {
                (None, _) => "created",
                (Some(_), None) => "deleted",
                (Some(_), Some(_)) => "changed",
            };
            let at = event.at.to_string();
            let call = &event.place.call;
            out.push(
                "file_changed",
                &json!({ "path": whole, "timestamp": at, "change": what, "call_id": call }),
            );
        }
    }

    fn finished(&mut self, event: &Event, finished: &TaskFinished, out: &mut Out) {
        let success = finished.ending.is_success();
        self.start(event.place.run, out);
        let trajectory_file = self.trajectory_file(event.place.run);
        let Some(run) = self.runs.get_mut(&event.place.run) else { return };
        run.ended = Some((success, finished.result.as_str().into()));
        let (began, steps) = (run.began, run.steps());
        if let Some(step) = &mut self.open {
            step.end(success, &finished.result);
        }
        self.send_step(out);
        let said = bubbles::clip(&finished.result);
        match (success, finished.ending) {
            (true, lathe_protocol::Ending::Done) => {
                out.bubble(event.at, format!("taskdone-{steps}"), "agent", said, None);
            }
            // The answer itself is the last text, which has its bubble.
            (true, _) => {}
            (false, _) => out.bubble(event.at, format!("taskdone-{steps}-error"), "error", said, None),
        }
        let seconds = (event.at.as_microsecond() - began.as_microsecond()) as f64 / 1e6;
        out.push(
            "completed",
            &json!({
                "trajectory_file": trajectory_file,
                "working_dir": &*self.workspace,
                "success": success,
                "final_result": finished.result,
                "agent_state": if success { "completed" } else { "error" },
                "execution_time": seconds,
                "steps_count": steps,
                "ending": finished.ending,
            }),
        );
        out.push("end", &"done");
        self.open = None;
    }

    /// The open step takes the event and is sent if that changed it.
    fn with_step(&mut self, event: &Event, out: &mut Out) {
        if let Some(step) = self.open.as_mut().filter(|step| Some(step.step) == event.place.step) {
            step.take(event);
        }
        self.send_step(out);
    }

    fn send_step(&mut self, out: &mut Out) {
        let Some(step) = &self.open else { return };
        let count = self.runs.get(&out.run).map_or(0, Run::steps);
        let payload = text(&step.payload(count));
        if payload != self.sent {
            if let Ok(data) = RawValue::from_string(payload.clone()) {
                out.push_raw("step", data);
            }
            self.sent = payload;
        }
    }

    /// A step got its summary, perhaps long after it: it is sent once more, whole.
    fn summarised(&mut self, event: &Event, past: PastSteps<'_>, out: &mut Out) {
        let (run, Some(step)) = (event.place.run, event.place.step) else { return };
        if self.run == run && self.open.as_ref().is_some_and(|open| open.step == step) {
            self.with_step(event, out);
            return;
        }
        let Some(known) = self.runs.get(&run) else { return };
        let mut again = OpenStep::asked(step, known.number(step), event.at);
        let events = past(run, step);
        events.iter().filter(|told| told.seq <= event.seq).for_each(|told| again.take(told));
        again.take(event);
        if let (Some((success, result)), true) = (&known.ended, known.last == Some(step)) {
            again.end(*success, result);
        }
        out.push("step", &again.payload(known.steps()));
    }
}

fn tools(specs: &[ToolSpec]) -> Box<RawValue> {
    #[derive(Serialize)]
    struct Tool<'a> {
        name: &'a str,
        description: &'a str,
        parameters: &'a lathe_protocol::Raw,
    }
    let tools: Vec<Tool<'_>> = specs
        .iter()
        .map(|spec| Tool { name: &spec.name, description: &spec.description, parameters: &spec.schema })
        .collect();
    raw(&tools)
}

fn asked_data(event: &Event, asked: &ApprovalAsked) -> Value {
    json!({
        "question": event.seq,
        "state": "asked",
        "call_id": event.place.call,
        "what": asked.what,
        "rule": asked.rule,
        "reason": asked.reason,
        "remember": asked.remember,
        "timestamp": event.at.to_string(),
    })
}

fn given_data(event: &Event, given: &ApprovalGiven) -> Value {
    json!({
        "question": event.place.cause,
        "state": "given",
        "call_id": event.place.call,
        "answer": given.answer,
        "reason": given.reason,
        "by": given.by,
        "command": given.command.spoken(),
    })
}

fn expired_data(event: &Event, expired: &ApprovalExpired) -> Value {
    json!({
        "question": event.place.cause,
        "state": "expired",
        "call_id": event.place.call,
        "reason": expired.reason,
    })
}
