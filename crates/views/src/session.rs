//! A session as runs, steps and calls: a fold of its live branch that only borrows.
//!
//! Nothing is interpreted here that the journal does not say. A step that was asked for again after an interruption is one
//! step; the failure before it is forgotten, as the agent forgets it.

use lathe_protocol::{
    ApprovalAnswer, CallDecided, CallFinished, CallId, Event, Fact, ModelAnswered, ModelFailed, RunNo,
    SessionId, SessionOpened, SessionOptions, StepNo, StepState, TaskFinished, Timestamp, ToolCall, Usage,
    Verdict, calls_of,
};

use crate::time::between_ms;

/// The runs of a session.
#[derive(Debug, Default)]
pub struct SessionView<'a> {
    pub opened: Option<&'a SessionOpened>,
    /// The title it was given last.
    pub title: Option<&'a str>,
    pub runs: Vec<RunView<'a>>,
}

/// One task and its result.
#[derive(Debug)]
pub struct RunView<'a> {
    pub run: RunNo,
    pub task: &'a str,
    /// The options of the session at the end of the run.
    pub options: Option<&'a SessionOptions>,
    pub began: Timestamp,
    /// The time of the run's last event.
    pub last: Timestamp,
    /// None while the run continues, or after it was interrupted.
    pub finished: Option<&'a TaskFinished>,
    pub steps: Vec<StepView<'a>>,
}

/// One model answer and the results of its calls.
#[derive(Debug)]
pub struct StepView<'a> {
    pub step: StepNo,
    pub asked: Timestamp,
    pub last: Timestamp,
    /// The model that was asked for; what answered is in the answer.
    pub model: &'a str,
    pub answer: Option<&'a ModelAnswered>,
    pub failure: Option<&'a ModelFailed>,
    pub calls: Vec<CallView<'a>>,
    pub reflection: Option<&'a str>,
    pub reminder: Option<&'a str>,
    /// The state that stayed when the run ended.
    ended: Option<StepState>,
}

/// One call of an answer.
#[derive(Debug)]
pub struct CallView<'a> {
    pub call: &'a ToolCall,
    pub decided: Option<&'a CallDecided>,
    /// The user's answer when the gate asked about this call.
    pub answer: Option<ApprovalAnswer>,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    pub finished: Option<&'a CallFinished>,
}

/// The progress of a step, from which its state is made.
pub(crate) struct Progress {
    pub model_failed: bool,
    pub answered: bool,
    pub calls_open: bool,
    pub calls_failed: bool,
    pub reflected: bool,
}

impl Progress {
    /// The state of a step of a run that continues.
    pub(crate) fn state(&self) -> StepState {
        if self.model_failed {
            StepState::Error
        } else if !self.answered {
            StepState::Thinking
        } else if self.calls_open {
            StepState::CallingTool
        } else if self.calls_failed && !self.reflected {
            StepState::Reflecting
        } else {
            StepState::Completed
        }
    }

    /// The state that stays when the run ends. A step that was not complete then was cut off, except that an accepted
    /// `task_done` completes its step even if a sibling call failed.
    pub(crate) fn state_at_end(&self, success: bool) -> StepState {
        match self.state() {
            StepState::Completed => StepState::Completed,
            StepState::Reflecting if success => StepState::Completed,
            StepState::Thinking | StepState::CallingTool | StepState::Reflecting | StepState::Error => {
                StepState::Error
            }
        }
    }
}

impl<'a> SessionView<'a> {
    /// Folds the events of a live branch.
    pub fn of(events: &'a [Event]) -> Self {
        let mut view = Self::default();
        let mut options = None;
        for event in events {
            match &event.fact {
                Fact::SessionOpened(opened) => {
                    view.opened = Some(opened);
                    options = Some(&opened.options);
                }
                Fact::SessionNamed(named) => view.title = Some(&named.title),
                Fact::OptionsChanged(changed) => {
                    options = Some(&changed.options);
                    if let Some(run) = view.runs.last_mut().filter(|run| run.finished.is_none()) {
                        run.options = options;
                    }
                }
                Fact::TaskGiven(given) => view.runs.push(RunView {
                    run: event.place.run,
                    task: &given.text,
                    options,
                    began: event.at,
                    last: event.at,
                    finished: None,
                    steps: Vec::new(),
                }),
                _ => {
                    if let Some(run) = view.runs.last_mut().filter(|run| run.run == event.place.run) {
                        run.take(event);
                    }
                }
            }
        }
        view
    }

    pub fn id(&self) -> Option<&'a SessionId> {
        self.opened.map(|opened| &opened.session)
    }

    pub fn steps(&self) -> impl Iterator<Item = &StepView<'a>> {
        self.runs.iter().flat_map(|run| &run.steps)
    }

    /// Tokens of all answers.
    pub fn usage(&self) -> Usage {
        let mut usage = Usage::default();
        self.steps().for_each(|step| usage += step.usage());
        usage
    }
}

impl<'a> RunView<'a> {
    fn take(&mut self, event: &'a Event) {
        // Later acts on a run do not count as its time.
        let is_beside = matches!(
            event.fact,
            Fact::StepSummarised(_)
                | Fact::EditsReviewed(_)
                | Fact::FilesRestored(_)
                | Fact::CommandTaken(_)
                | Fact::Rewound(_)
                | Fact::RewindUndone(_)
                | Fact::SessionNamed(_)
        );
        if !is_beside {
            self.last = event.at;
        }
        match &event.fact {
            Fact::ModelAsked(_) => self.take_request(event),
            Fact::TaskFinished(finished) => {
                self.finished = Some(finished);
                if let Some(step) = self.steps.last_mut() {
                    step.ended = Some(step.progress().state_at_end(finished.ending.is_success()));
                }
            }
            _ => {
                if let Some(step) = self.steps.last_mut() {
                    step.take(event);
                }
            }
        }
    }

    fn take_request(&mut self, event: &'a Event) {
        let step = event.place.step.unwrap_or_default();
        if self.steps.last().is_some_and(|last| last.step == step && last.answer.is_none()) {
            self.steps.pop();
        }
        self.steps.push(StepView {
            step,
            asked: event.at,
            last: event.at,
            model: self.options.map_or("", |options| &options.model.model),
            answer: None,
            failure: None,
            calls: Vec::new(),
            reflection: None,
            reminder: None,
            ended: None,
        });
    }

    /// Milliseconds from the task to the run's last event.
    pub fn duration_ms(&self) -> u64 {
        between_ms(self.began, self.last)
    }
}

impl<'a> StepView<'a> {
    fn take(&mut self, event: &'a Event) {
        match &event.fact {
            Fact::ModelAnswered(answered) => {
                self.answer = Some(answered);
                self.calls = calls_of(&answered.blocks)
                    .map(|call| CallView {
                        call,
                        decided: None,
                        answer: None,
                        started: None,
                        ended: None,
                        finished: None,
                    })
                    .collect();
            }
            Fact::ModelFailed(failed) => self.failure = Some(failed),
            Fact::CallDecided(decided) => {
                self.with_call(event, |call| call.decided = Some(decided));
            }
            // A question that comes while the call runs is about a command inside it.
            Fact::ApprovalGiven(given) => self.with_call(event, |call| {
                if call.started.is_none() {
                    call.answer = Some(given.answer);
                }
            }),
            Fact::CallStarted(_) => self.with_call(event, |call| call.started = Some(event.at)),
            Fact::CallFinished(finished) => self.with_call(event, |call| {
                call.finished = Some(finished);
                call.ended = Some(event.at);
            }),
            Fact::Reflected(reflected) => self.reflection = Some(&reflected.text),
            Fact::Reminded(reminded) => self.reminder = Some(&reminded.text),
            // Like a kind from a newer Lathe, a fact that says nothing about a step is skipped.
            _ => return,
        }
        self.last = event.at;
    }

    fn with_call(&mut self, event: &Event, change: impl FnOnce(&mut CallView<'a>)) {
        let id: Option<&CallId> = event.place.call.as_ref();
        if let Some(call) = self.calls.iter_mut().find(|call| Some(&call.call.id) == id) {
            change(call);
        }
    }

    fn progress(&self) -> Progress {
        Progress {
            model_failed: self.failure.is_some(),
            answered: self.answer.is_some(),
            calls_open: self.calls.iter().any(|call| call.finished.is_none()),
            calls_failed: self.calls.iter().any(CallView::failed),
            reflected: self.reflection.is_some(),
        }
    }

    pub fn state(&self) -> StepState {
        self.ended.unwrap_or_else(|| self.progress().state())
    }

    pub fn usage(&self) -> Usage {
        self.answer.map(|answer| answer.usage).unwrap_or_default()
    }

    /// Milliseconds the model took.
    pub fn model_ms(&self) -> u64 {
        match (self.answer, self.failure) {
            (Some(answer), _) => answer.took_ms,
            (None, Some(_)) => between_ms(self.asked, self.last),
            (None, None) => 0,
        }
    }

    /// Milliseconds from the start of the first call to the last result: calls that ran together count once.
    pub fn tool_ms(&self) -> u64 {
        let from = self.calls.iter().filter_map(|call| call.started).min();
        let to = self.calls.iter().filter_map(|call| call.ended).max();
        match (from, to) {
            (Some(from), Some(to)) => between_ms(from, to),
            (None, _) | (_, None) => 0,
        }
    }
}

impl CallView<'_> {
    pub fn failed(&self) -> bool {
        self.finished.is_some_and(|finished| finished.error.is_some())
    }

    /// Tells whether the gate, or the user it asked, denied the call.
    pub fn denied(&self) -> bool {
        let verdict = self.decided.map(|decided| decided.decision.verdict);
        verdict == Some(Verdict::Deny) || self.answer == Some(ApprovalAnswer::No)
    }

    /// The exit code of a command, where the result has one.
    pub fn exit_code(&self) -> Option<i64> {
        exit_code(self.finished?)
    }
}

pub(crate) fn exit_code(finished: &CallFinished) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Exit {
        exit_code: Option<i64>,
    }
    let exit: Exit = serde_json::from_str(finished.data.as_ref()?.get()).ok()?;
    exit.exit_code
}
