//! A session made of events, without an actor.

use lathe_agent::{Action, State, next};
use lathe_protocol::{
    Actor, ApprovalAnswer, ApprovalAsked, ApprovalGiven, Arguments, Block, CallDecided, CallFinished, CallId,
    CallStarted, CancelAsked, CommandId, Decision, Effects, EndingRule, EpochCause, EpochStarted, Event,
    EventPlace, Fact, Lane, Limits, Mode, ModelAnswered, ModelAsked, ModelChoice, ModelFailed, ModelFailure,
    Proposal, Raw, Reflected, Reminded, RunNo, Sandbox, Seq, SessionId, SessionOpened, SessionOptions,
    StepNo, StopReason, TaskFinished, TaskGiven, ToolCall, ToolErrorKind, Toolset, Usage, Verdict,
};

pub(crate) struct Conversation {
    pub(crate) state: State,
    pub(crate) events: Vec<Event>,
}

pub(crate) fn options() -> SessionOptions {
    SessionOptions {
        model: ModelChoice { provider: "p".into(), model: "m".into(), base_url: None, key: None },
        mode: Mode::FullAuto,
        sandbox: Sandbox::Off,
        walls: lathe_protocol::SandboxWalls::default(),
        toolset: Toolset::Lathe,
        limits: Limits { max_steps: 5, line_seconds: 1, ..Limits::default() },
        ending: EndingRule::Remind,
        patch: None,
        tools: Default::default(),
        review: None,
        persona: None,
        online: false,
        own_model: false,
    }
}

fn event(seq: u64, place: EventPlace, fact: impl Into<Fact>) -> Event {
    Event { seq: Seq(seq), at: "2026-11-15T08:00:00Z".parse().unwrap(), place, fact: fact.into() }
}

impl Conversation {
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: SessionOptions) -> Self {
        let opened = SessionOpened {
            session: SessionId::new("s"),
            workspace: "/w".into(),
            folder: None,
            options,
            parent: None,
            forked: None,
            surroundings: None,
            lathe: "test".into(),
        };
        let first = event(1, EventPlace::in_run(RunNo(0)), opened);
        Self { state: State::from_opening(&first).unwrap(), events: vec![first] }
    }

    /// With a task, a head and the first question asked.
    pub(crate) fn asked() -> Self {
        let mut conversation = Self::new();
        conversation.task("t1");
        conversation.epoch();
        conversation.ask();
        conversation
    }

    pub(crate) fn add(&mut self, place: EventPlace, fact: impl Into<Fact>) {
        let event = event(self.state.seq.0 + 1, place, fact);
        self.state.apply(&event);
        self.events.push(event);
    }

    fn here(&self) -> EventPlace {
        EventPlace::in_run(self.state.run).at_step(self.state.step)
    }

    fn at(&self, call: &str) -> EventPlace {
        self.here().at_call(CallId::new(call))
    }

    pub(crate) fn task(&mut self, command: &str) {
        let given = TaskGiven {
            text: "do it".into(),
            images: Vec::new(),
            command: CommandId::new(command),
            actor: Actor::Person,
        };
        self.add(EventPlace::in_run(self.state.run.next()), given);
    }

    pub(crate) fn epoch(&mut self) {
        let epoch = EpochStarted { cause: EpochCause::SessionOpened, system: "s".into(), tools: Vec::new() };
        self.add(EventPlace::in_run(self.state.run), epoch);
    }

    pub(crate) fn ask(&mut self) {
        let asked = ModelAsked { digest: lathe_protocol::Digest::of(b""), messages: 1 };
        let place = EventPlace::in_run(self.state.run).at_step(self.state.next_step());
        self.add(place, asked);
    }

    pub(crate) fn answer(&mut self, text: &str, calls: &[&str]) {
        let mut blocks = if text.is_empty() { Vec::new() } else { vec![Block::text(text)] };
        blocks.extend(calls.iter().map(|id| {
            let arguments = Arguments::from_text("{}");
            Block::Call(ToolCall { id: CallId::new(*id), name: "tool".into(), arguments, raw: None })
        }));
        let answered = ModelAnswered {
            blocks,
            stop: StopReason::EndTurn,
            usage: Usage::default(),
            model: "m".into(),
            took_ms: 1,
        };
        self.add(self.here(), answered);
    }

    pub(crate) fn failed(&mut self, kind: ModelFailure) {
        self.add(self.here(), ModelFailed { kind, message: "why".into(), lost: Default::default() });
    }

    pub(crate) fn decide(&mut self, call: &str, tool: &str, lane: Lane, verdict: Verdict) {
        let decided = CallDecided {
            tool: tool.into(),
            about: "about".into(),
            effects: Effects::default(),
            decision: Decision { verdict, rule: "r".into(), reason: "because".into() },
            lane,
            each: Vec::new(),
        };
        self.add(self.at(call), decided);
    }

    /// Puts the question about a call; its number.
    pub(crate) fn question(&mut self, call: &str) -> Seq {
        let asked = ApprovalAsked {
            what: Proposal::Other { about: "about".into() },
            rule: "r".into(),
            reason: "because".into(),
            remember: Vec::new(),
        };
        self.add(self.at(call), asked);
        self.state.seq
    }

    pub(crate) fn say(&mut self, call: &str, question: Seq, answer: ApprovalAnswer, reason: Option<&str>) {
        let given = ApprovalGiven {
            answer,
            reason: reason.map(str::to_owned),
            by: Actor::Person,
            command: CommandId::new("k"),
            edited: None,
        };
        self.add(EventPlace { cause: Some(question), ..self.at(call) }, given);
    }

    pub(crate) fn start(&mut self, call: &str) {
        self.add(self.at(call), CallStarted {});
    }

    pub(crate) fn finish(&mut self, call: &str, error: Option<ToolErrorKind>) {
        let mut finished =
            CallFinished::failed("tool", ToolErrorKind::ExecutionFailed, format!("result of {call}"));
        finished.error = error.map(|kind| lathe_protocol::ToolError { kind, message: "full".into() });
        finished.data = Raw::parse(r#"{"summary":"all good"}"#).ok();
        self.add(self.at(call), finished);
    }

    /// A call that goes through.
    pub(crate) fn go(&mut self, call: &str, tool: &str) {
        self.decide(call, tool, if tool == "done" { Lane::Last } else { Lane::Alone }, Verdict::Allow);
        self.start(call);
        self.finish(call, None);
    }

    pub(crate) fn cancel(&mut self) {
        self.add(
            self.here(),
            CancelAsked { command: CommandId::new("stop"), actor: Actor::Person, interrupted: false },
        );
    }

    /// Plays what `next` wants, where it needs nothing from outside.
    pub(crate) fn act(&mut self) -> Vec<Action> {
        let actions = next(&self.state);
        for action in &actions {
            match action {
                Action::StartEpoch(_) => self.epoch(),
                Action::Ask(step) => {
                    assert_eq!(*step, self.state.next_step());
                    self.ask();
                }
                Action::Close { call, kind, message } => {
                    let closed = CallFinished::failed("tool", *kind, message.clone());
                    self.add(self.at(call.as_str()), closed);
                }
                Action::Reflect(text) => self.add(self.here(), Reflected { text: text.clone() }),
                Action::Remind(text) => self.add(self.here(), Reminded { text: text.clone() }),
                Action::Finish { ending, result } => {
                    self.add(
                        EventPlace::in_run(self.state.run),
                        TaskFinished { ending: *ending, result: result.clone() },
                    );
                }
                Action::Decide(_)
                | Action::AskApproval(_)
                | Action::Run(_)
                | Action::TakeBaseline
                | Action::Judge { .. } => {}
            }
        }
        actions
    }

    pub(crate) fn next(&self) -> Vec<Action> {
        next(&self.state)
    }

    pub(crate) fn step(&self) -> StepNo {
        self.state.step
    }
}
