//! From events to frames.

use std::borrow::Cow;
use std::sync::Arc;

use lathe_protocol::{
    CallFinished, CallState, Change, EditsReviewed, Ending, Event, Fact, ModelFailure, RunNo, Seq, SessionId,
    SessionOptions, StepNo, TaskFinished, Timestamp,
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::bubbles::{self, Bubble};
use super::cursor::Cursor;
use super::data::{asked_data, expired_data, given_data, review_data, tools};
use super::frames::{RunEdge, WireFrame, raw, raw_text, text};
use super::mask::{mask_reasons, masked_json};
use super::runs::{Run, Runs, StepNumbers};
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
    runs: Runs,
    /// The rules that edits are reviewed by.
    rules: Arc<str>,
    run: RunNo,
    open: Option<OpenStep>,
    /// The kinds of frames that are made; all of them if none is named.
    only: &'static [&'static str],
    /// The payload that was sent last, so that nothing is sent again that did not change.
    sent: String,
    last: Seq,
}

/// The frames of one event, numbered as they come.
struct Out {
    seq: Seq,
    run: RunNo,
    /// The step that the frames belong to.
    step: Option<StepNumbers>,
    only: &'static [&'static str],
    /// The number of frames so far, also of kinds that are not made.
    count: u32,
    frames: Vec<WireFrame>,
}

impl Out {
    fn push(&mut self, kind: &'static str, data: &impl Serialize) {
        self.push_made(kind, || raw(data));
    }

    fn push_made(&mut self, kind: &'static str, data: impl FnOnce() -> Box<RawValue>) {
        self.count = self.count.saturating_add(1).min(u32::MAX - 1);
        if !self.only.is_empty() && !self.only.contains(&kind) {
            return;
        }
        let data = data();
        let masked = masked_json(data.get());
        let data = masked.and_then(|masked| RawValue::from_string(masked).ok()).unwrap_or(data);
        let cursor = Cursor { seq: self.seq, part: self.count };
        let edge = match kind {
            "start" => Some(RunEdge::Begin),
            "end" => Some(RunEdge::End),
            _ => None,
        };
        self.frames.push(WireFrame { kind, data, exact: None, cursor, run: self.run, step: self.step, edge });
    }

    /// A question that may be answered. Its exact form shows what will run byte for byte; only reasons are masked in it, and
    /// the id of the call, which is the same in every frame.
    fn push_question(&mut self, mut data: Value) {
        self.push("approval", &data);
        mask_reasons(&mut data);
        if let Some(Value::String(call)) = data.get_mut("call_id") {
            *call = lathe_redact::mask_shapes(call).into_owned();
        }
        let exact = raw(&data);
        if let Some(frame) = self.frames.last_mut().filter(|frame| frame.cursor.part == self.count)
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
        let bubble = Bubble { id, role, content, timestamp: at.to_string(), call_id, edited: false };
        self.push("bubble", &bubble);
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
            runs: Runs::default(),
            rules: "".into(),
            run: RunNo(0),
            open: None,
            only: &[],
            sent: String::new(),
            last: Seq(0),
        }
    }

    /// Makes frames of these kinds only. They have the cursors that they have among all frames.
    pub fn only(mut self, kinds: &'static [&'static str]) -> Self {
        self.only = kinds;
        self
    }

    /// The last event taken.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// Sets the position: everything up to this event counts as taken.
    pub fn skip_to(&mut self, seq: Seq) {
        self.last = seq;
    }

    /// The run that is under way, or was last.
    pub fn run(&self) -> RunNo {
        self.run
    }

    /// Both numbers of a step.
    pub fn numbers(&self, run: RunNo, step: Option<StepNo>) -> Option<StepNumbers> {
        self.runs.get(run).zip(step).map(|(run, step)| run.numbers(step))
    }

    /// A text as bubbles show it: without what looks like a secret.
    pub fn shown(text: &str) -> Cow<'_, str> {
        lathe_redact::mask_shapes(text)
    }

    /// Takes the next event and gives its frames.
    pub fn take(&mut self, event: &Event, past: PastSteps<'_>) -> Vec<WireFrame> {
        self.last = event.seq;
        let step = self.numbers(event.place.run, event.place.step);
        let (seq, run, only) = (event.seq, event.place.run, self.only);
        let mut out = Out { seq, run, step, only, count: 0, frames: Vec::new() };
        let before = self.open.as_ref().filter(|step| step.is(event)).and_then(|step| step.call_state(event));
        match &event.fact {
            Fact::SessionOpened(opened) => {
                self.session = opened.session.clone();
                self.workspace = opened.workspace.as_str().into();
                self.rules = rules(&opened.options);
            }
            Fact::OptionsChanged(changed) => self.rules = rules(&changed.options),
            Fact::EpochStarted(epoch) => self.tools = Some(tools(&epoch.tools).into()),
            Fact::TaskGiven(given) => {
                self.run = event.place.run;
                self.open = None;
                self.runs.insert(event.place.run, Run::new(event.at, &given.text));
            }
            Fact::RunResumed(_) => {
                self.run = event.place.run;
                if let Some(run) = self.runs.get_mut(event.place.run) {
                    run.ended = None;
                }
                out.push("resumed", &json!({ "run": event.place.run.0 }));
            }
            Fact::Steered(steered) => {
                out.push("input", &json!({ "text": steered.text, "timestamp": event.at.to_string() }));
            }
            Fact::SessionNamed(named) => {
                out.push("session", &json!({ "title": lathe_redact::mask_shapes(&named.title) }));
            }
            Fact::EditsReviewed(EditsReviewed { path, hunks, accepted, command: _ }) => {
                out.push("reviewed", &json!({ "path": path, "hunks": hunks, "accepted": accepted }));
            }
            Fact::CancelAsked(_) => out.push("cancelling", &json!({})),
            Fact::ModelAsked(_) => self.step_asked(event, &mut out),
            Fact::ModelAnswered(_) => self.step_answered(event, &mut out),
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
                    let text = bubbles::clip(step.reflection.as_deref().unwrap_or_default());
                    let text = bubbles::thought(step.numbers.in_run, &text);
                    let id = format!("seq-reflect-{}", step.numbers.in_run);
                    out.bubble(event.at, id, "agent", bubbles::marked(&text, Some(true)), None);
                }
            }
            Fact::StepSummarised(_) => self.summarised(event, past, &mut out),
            Fact::TaskFinished(finished) => self.finished(event, finished, &mut out),
            Fact::ApprovalAsked(asked) => out.push_question(asked_data(event, asked)),
            Fact::ApprovalGiven(given) => {
                out.push("approval", &given_data(event, given));
                // The user's version of a call is what runs, so it is shown from here on.
                if given.edited.is_some() {
                    self.with_step(event, &mut out);
                    self.send_calls(event, event.place.call.as_ref(), &mut out);
                }
            }
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
                let place = restored.to.map(|to| self.runs.place_of(to));
                out.push(
                    "restored",
                    &json!({ "to": restored.to, "place": place, "undoes": restored.undoes, "conflicts": restored.conflicts }),
                );
            }
            Fact::Rewound(rewound) => {
                self.open = None;
                self.runs.rewind(event.seq, rewound.to);
                self.run = self.runs.last().unwrap_or_default();
                let place = self.runs.place_of(rewound.to);
                let at = event.at.to_string();
                out.push("rewound", &json!({ "to": rewound.to, "place": place, "timestamp": at }));
            }
            Fact::RewindUndone(undone) => {
                self.open = None;
                self.runs.undo_rewind(undone.rewind);
                self.run = self.runs.last().unwrap_or_default();
                out.push("rewind_undone", &json!({ "rewind": undone.rewind }));
            }
            Fact::CallDecided(_)
            | Fact::CallStarted(_)
            | Fact::BaselineTaken(_)
            | Fact::ReplayDrifted(_)
            | Fact::Reminded(_)
            | Fact::CommandRan(_)
            | Fact::CommandTaken(_)
            | Fact::Unknown(_) => {}
        }
        self.call_state(event, before, &mut out);
        out.frames
    }

    /// Sends the state of a call, if it has changed.
    fn call_state(&mut self, event: &Event, before: Option<CallState>, out: &mut Out) {
        let Some(step) = self.open.as_mut().filter(|step| step.is(event)) else { return };
        if matches!(
            event.fact,
            Fact::CallDecided(_) | Fact::CallStarted(_) | Fact::ApprovalAsked(_) | Fact::ApprovalGiven(_)
        ) {
            step.take(event);
        }
        if let Some(state) =
            step.call_state(event).filter(|state| before.is_some_and(|before| before != *state))
        {
            let (call, at) = (&event.place.call, event.at.to_string());
            out.push("call_state", &json!({ "call_id": call, "state": state, "timestamp": at }));
        }
    }

    fn trajectory_file(&self, run: RunNo) -> String {
        let first = self.runs.first().unwrap_or(run);
        let later = run.0.saturating_sub(first.0);
        let ending = if later == 0 { String::new() } else { format!("-{}", later + 1) };
        format!("{}/{}{ending}.json", self.trajectories, self.session)
    }

    fn start(&mut self, at: RunNo, out: &mut Out) {
        let trajectory_file = self.trajectory_file(at);
        let Some(run) = self.runs.get_mut(at).filter(|run| run.start_due) else { return };
        run.start_due = false;
        #[derive(Serialize)]
        struct Start<'a> {
            trajectory_file: String,
            working_dir: &'a str,
            tools: Option<&'a RawValue>,
            task: &'a str,
            timestamp: String,
        }
        // It belongs to the run, not to the step that it comes with.
        let step = out.step.take();
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
        out.step = step;
    }

    fn step_asked(&mut self, event: &Event, out: &mut Out) {
        let step = event.place.step.unwrap_or_default();
        self.start(event.place.run, out);
        let Some(run) = self.runs.get_mut(event.place.run) else { return };
        // After a rewind the steps of a run begin again at a smaller number.
        run.first = Some(run.first.map_or(step, |first| first.min(step)));
        run.last = Some(step);
        let numbers = run.numbers(step);
        out.step = Some(numbers);
        self.open = Some(OpenStep::begun(numbers, event.at));
        self.sent.clear();
        self.send_step(out);
    }

    fn step_answered(&mut self, event: &Event, out: &mut Out) {
        let Fact::ModelAnswered(answered) = &event.fact else { return };
        let interaction = match self.runs.get_mut(event.place.run) {
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
        let number = step.numbers.in_run;
        // Both bubbles of the answer show the same text.
        let text = Some(step.text()).filter(|text| !text.trim().is_empty()).map(bubbles::clip);
        let session_step = step.numbers.in_session;
        out.push(
            "usage",
            &json!({ "step": number, "session_step": session_step, "model": answered.model, "usage": answered.usage }),
        );
        if let Some(text) = &text {
            out.bubble(event.at, format!("llm-{interaction}"), "agent", text.clone(), None);
        }
        self.send_step(out);
        if let Some(text) = text {
            let text = bubbles::marked(&bubbles::thought(number, &text), Some(true));
            out.bubble(event.at, format!("seq-{number}"), "agent", text, None);
        }
        self.send_calls(event, None, out);
    }

    /// The bubbles of calls: of all, when they are made, or of one, with its mark.
    fn send_calls(&self, event: &Event, only: Option<&lathe_protocol::CallId>, out: &mut Out) {
        let Some(step) = &self.open else { return };
        let number = step.numbers.in_run;
        for made in step.calls().filter(|made| only.is_none_or(|only| *only == made.call.id)) {
            let id = made.shown_id(number);
            let content = bubbles::marked(&bubbles::call(&made.what_runs(), &self.workspace), made.mark());
            let timestamp = event.at.to_string();
            let (edited, call_id) = (made.edited.is_some(), Some(id.clone()));
            let id = format!("tc-{number}-{id}");
            out.push("bubble", &Bubble { id, role: "agent", content, timestamp, call_id, edited });
        }
    }

    fn call_finished(&mut self, event: &Event, finished: &CallFinished, out: &mut Out) {
        if let Some(step) = self.open.as_mut().filter(|step| step.is(event)) {
            step.take(event);
        }
        // Like a trajectory, the step holds its results once all are there; marks of bubbles report each as it
        // arrives. Otherwise a step with many calls would be sent with every one of them.
        if self.open.as_ref().is_some_and(|step| step.calls().all(|made| made.result.is_some())) {
            self.send_step(out);
        }
        self.send_calls(event, event.place.call.as_ref(), out);
        self.reviewed(event, finished, out);
        if let (Some(step), Some(error), "task_done") = (&self.open, &finished.error, finished.name.as_str())
            && let Some(run) = self.runs.get_mut(event.place.run)
        {
            let id = run.error_id(step.numbers.in_run);
            out.bubble(event.at, id, "error", bubbles::clip(&error.message), None);
        }
        self.changed(event, &finished.changes, out);
        if let Some(data) = finished.data.as_ref().filter(|data| data.get().starts_with("{\"todos\":")) {
            out.push("todo", data);
        }
    }

    /// The verdict of a judge, for programs; and for people, where the call itself is not the review.
    fn reviewed(&self, event: &Event, finished: &CallFinished, out: &mut Out) {
        let Some(review) = &finished.review else { return };
        let edited = finished.changes.iter().find(|change| !change.is_folder());
        let target = edited.map(|change| change.path.as_str());
        out.push("quality_review", &review_data(event, target, review));
        let made =
            event.place.call.as_ref().and_then(|id| {
                self.open.as_ref()?.calls().find(|made| made.call.id == *id && !made.is_review())
            });
        if let (Some(made), Some(step)) = (made, &self.open) {
            let (number, passes) =
                (step.numbers.in_run, review.verdict.as_ref().is_some_and(|verdict| verdict.pass));
            let id = made.shown_id(number);
            let content = bubbles::marked(&bubbles::review(&self.rules, target), Some(passes));
            out.bubble(event.at, format!("tc-{number}-{id}-review"), "agent", content, Some(id));
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
        let Some(run) = self.runs.get_mut(event.place.run) else { return };
        run.ended = Some((success, finished.result.as_str().into()));
        let (began, steps) = (run.began, run.steps());
        out.step = run.last.map(|last| run.numbers(last));
        let error_id = (!success).then(|| run.error_id(steps));
        if let Some(step) = &mut self.open {
            step.end(success, &finished.result);
        }
        self.send_step(out);
        let text = bubbles::clip(&finished.result);
        match (error_id, finished.ending) {
            (Some(id), _) => out.bubble(event.at, id, "error", text, None),
            (None, Ending::Done) => {
                out.bubble(event.at, format!("taskdone-{steps}"), "agent", text, None);
            }
            // The answer itself is the last text, which has its bubble.
            (None, _) => {}
        }
        out.step = None;
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
        if let Some(step) = self.open.as_mut().filter(|step| step.is(event)) {
            step.take(event);
        }
        self.send_step(out);
    }

    fn send_step(&mut self, out: &mut Out) {
        let Some(step) = &self.open else { return };
        let count = self.runs.get(out.run).map_or(0, Run::steps);
        let payload = text(&step.payload(count));
        if payload != self.sent {
            out.push_made("step", || raw_text(payload.clone()));
            self.sent = payload;
        }
    }

    /// A step got its summary, perhaps long after it: it is sent once more, whole.
    fn summarised(&mut self, event: &Event, past: PastSteps<'_>, out: &mut Out) {
        let (run, Some(step)) = (event.place.run, event.place.step) else { return };
        if self.run == run && self.open.as_ref().is_some_and(|open| open.numbers.in_session == step) {
            self.with_step(event, out);
            return;
        }
        let Some(known) = self.runs.get(run) else { return };
        let mut again = OpenStep::begun(known.numbers(step), event.at);
        let events = past(run, step);
        events.iter().filter(|known| known.seq <= event.seq).for_each(|known| again.take(known));
        again.take(event);
        if let (Some((success, result)), true) = (&known.ended, known.last == Some(step)) {
            again.end(*success, result);
        }
        out.push("step", &again.payload(known.steps()));
    }
}

fn rules(options: &SessionOptions) -> Arc<str> {
    options.review.as_ref().map_or("", |review| &review.rules).into()
}
