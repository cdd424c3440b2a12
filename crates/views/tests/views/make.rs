//! Journals made by hand, as an agent would write them.

use std::collections::HashMap;

use lathe_protocol::{
    Actor, AgentId, Arguments, Block, CallDecided, CallFinished, CallId, CallStarted, Change, CommandId,
    Decision, Digest, Effects, Ending, EpochCause, EpochStarted, Event, EventPlace, Fact, Forked, Lane,
    ModelAnswered, ModelAsked, ModelFailed, ModelFailure, Raw, Reflected, Reminded, RunNo, Seq, SessionId,
    SessionOpened, SessionOptions, StepNo, StopReason, TaskFinished, TaskGiven, TextBlock, Timestamp,
    ToolCall, ToolErrorKind, ToolSpec, Usage, Verdict,
};

pub const WORKSPACE: &str = "/home/mira/till";

pub fn options(model: &str) -> SessionOptions {
    // From JSON, as an older Lathe would have written it: options that came later have their defaults.
    let options = serde_json::json!({
        "model": {"provider": "anthropic", "model": model},
        "mode": "full-auto",
        "sandbox": "off",
        "toolset": "lathe",
        "limits": {"max_steps": 20, "line_seconds": 120},
        "ending": "remind",
    });
    serde_json::from_value(options).unwrap()
}

pub fn usage(input: u64, output: u64, cached: u64) -> Usage {
    Usage { input_tokens: input, output_tokens: output, cache_read_input_tokens: cached, ..Usage::default() }
}

pub fn text(text: &str) -> Block {
    Block::text(text)
}

pub fn thinking(text: &str) -> Block {
    Block::Thinking(TextBlock { text: text.into(), raw: None })
}

pub fn call(id: &str, name: &str, arguments: &str) -> Block {
    Block::Call(ToolCall {
        id: CallId::new(id),
        name: name.into(),
        arguments: Arguments::from_text(arguments),
        raw: None,
    })
}

pub fn result(name: &str, text: &str) -> CallFinished {
    CallFinished {
        error: None,
        took_ms: 40,
        ..CallFinished::failed(name, ToolErrorKind::ExecutionFailed, text)
    }
}

pub fn exited(code: i32, text: &str) -> CallFinished {
    CallFinished {
        data: Some(Raw::parse(&format!("{{\"exit_code\":{code}}}")).unwrap()),
        ..result("bash", text)
    }
}

/// A journal that grows. Every event comes 100 ms after the one before.
pub struct Journal {
    pub events: Vec<Event>,
    pub blobs: HashMap<Digest, Vec<u8>>,
    pub model: String,
    run: RunNo,
    step: StepNo,
    now: Timestamp,
}

impl Journal {
    pub fn opened(options: SessionOptions, forked: Option<Forked>) -> Self {
        let mut journal = Self {
            events: Vec::new(),
            blobs: HashMap::new(),
            model: options.model.model.clone(),
            run: RunNo(0),
            step: StepNo(0),
            now: "2026-11-15T08:59:59.9Z".parse().unwrap(),
        };
        journal.add(
            None,
            SessionOpened {
                session: SessionId::new("20261115-090000-b774"),
                workspace: WORKSPACE.into(),
                folder: None,
                options,
                parent: None,
                forked,
                surroundings: None,
                lathe: "0.1.0".into(),
            },
        );
        journal
    }

    pub fn new(model: &str) -> Self {
        Self::opened(options(model), None)
    }

    pub fn pass(&mut self, ms: i64) -> &mut Self {
        self.now = Timestamp::from_millisecond(self.now.as_millisecond() + ms).unwrap();
        self
    }

    pub fn add(&mut self, call: Option<&str>, fact: impl Into<Fact>) -> &mut Self {
        self.pass(100);
        let fact = fact.into();
        let in_step = !matches!(
            fact,
            Fact::SessionOpened(_) | Fact::TaskGiven(_) | Fact::TaskFinished(_) | Fact::EpochStarted(_)
        );
        self.events.push(Event {
            seq: Seq(self.events.len() as u64 + 1),
            at: self.now,
            place: EventPlace {
                run: self.run,
                agent: AgentId::main(),
                step: in_step.then_some(self.step),
                call: call.map(CallId::new),
                cause: None,
            },
            fact,
        });
        self
    }

    pub fn task(&mut self, text: &str) -> &mut Self {
        self.run = self.run.next();
        self.add(
            None,
            TaskGiven {
                text: text.into(),
                images: Vec::new(),
                command: CommandId::new("k"),
                actor: Actor::Person,
            },
        )
    }

    pub fn epoch(&mut self, system: &str, tools: &[&str]) -> &mut Self {
        let tools = tools.iter().map(|name| ToolSpec {
            name: (*name).into(),
            description: String::new(),
            schema: Raw::parse("{}").unwrap(),
        });
        let epoch =
            EpochStarted { cause: EpochCause::SessionOpened, system: system.into(), tools: tools.collect() };
        self.add(None, epoch)
    }

    pub fn asked(&mut self) -> &mut Self {
        self.step = self.step.next();
        self.asked_again()
    }

    pub fn asked_again(&mut self) -> &mut Self {
        let asked = ModelAsked { digest: Digest::of(b""), messages: 1 };
        self.add(None, asked)
    }

    pub fn answered(&mut self, blocks: Vec<Block>, usage: Usage) -> &mut Self {
        let calls = blocks.iter().any(|block| matches!(block, Block::Call(_)));
        let model = self.model.clone();
        self.pass(2_900).add(
            None,
            ModelAnswered {
                blocks,
                stop: if calls { StopReason::ToolCalls } else { StopReason::EndTurn },
                usage,
                model,
                took_ms: 3_000,
            },
        )
    }

    pub fn failed(&mut self, kind: ModelFailure, message: &str) -> &mut Self {
        self.add(None, ModelFailed { kind, message: message.into(), lost: Default::default() })
    }

    pub fn decided(&mut self, call: &str, verdict: Verdict, rule: &str, reason: &str) -> &mut Self {
        self.add(
            Some(call),
            CallDecided {
                tool: "bash".into(),
                about: "bash".into(),
                effects: Effects::default(),
                decision: Decision { verdict, rule: rule.into(), reason: reason.into() },
                lane: Lane::Alone,
                each: Vec::new(),
            },
        )
    }

    /// A call that was allowed, began, and has this result.
    pub fn ran(&mut self, call: &str, finished: CallFinished) -> &mut Self {
        self.decided(call, Verdict::Allow, "mode.full-auto", "mode full-auto allows changes")
            .add(Some(call), CallStarted {})
            .add(Some(call), finished)
    }

    /// Keeps both contents and gives the change between them.
    pub fn change(&mut self, path: &str, before: Option<&str>, after: Option<&str>, by: &str) -> Change {
        let mut keep = |content: Option<&str>| {
            content.map(|content| {
                let digest = Digest::of(content.as_bytes());
                self.blobs.insert(digest.clone(), content.as_bytes().to_vec());
                digest
            })
        };
        Change {
            path: format!("{WORKSPACE}/{path}"),
            before: keep(before),
            after: keep(after),
            mode: 0o644,
            mode_before: None,
            attributes: None,
            attributes_before: None,
            links: None,
            links_before: None,
            raw_path: None,
            by: CallId::new(by),
        }
    }

    pub fn reflected(&mut self, text: &str) -> &mut Self {
        self.add(None, Reflected { text: text.into() })
    }

    pub fn reminded(&mut self, text: &str) -> &mut Self {
        self.add(None, Reminded { text: text.into() })
    }

    pub fn finished(&mut self, ending: Ending, result: &str) -> &mut Self {
        self.add(None, TaskFinished { ending, result: result.into() })
    }
}

/// A small run with everything in it that a good run has.
pub fn demo() -> Journal {
    let mut journal = Journal::new("claude-sonnet-4-5-20250929");
    journal
        .task("A test of this project fails. Find the cause and fix it.")
        .epoch("You are Lathe.", &["bash", "view", "edit", "task_done"])
        .asked()
        .answered(
            vec![
                thinking("First the failure."),
                text("I want to see the failure."),
                call("c1", "bash", r#"{"command":"bash tests/run.sh","timeout":1e2}"#),
                call("c2", "view", r#"{"path":"lib/money.sh"}"#),
            ],
            usage(1830, 57, 0),
        )
        .decided("c1", Verdict::Allow, "mode.full-auto", "mode full-auto allows changes")
        .decided("c2", Verdict::Allow, "builtin.reads", "it only reads")
        .add(Some("c2"), CallStarted {})
        .add(Some("c2"), result("view", "     1\techo 1\n"))
        .add(Some("c1"), CallStarted {})
        .add(
            Some("c1"),
            exited(1, "exit code 1\n<stdout>\nFAIL  one decimal: expected 250, got 205 ¢\n</stdout>"),
        );
    let change = journal.change("lib/money.sh", Some("a\nb\nc\n"), Some("a\nB\nc\nd\n"), "c3");
    let edited = CallFinished { changes: vec![change], ..result("edit", "Edited lib/money.sh.") };
    journal
        .asked()
        .answered(
            vec![
                text("One line is wrong."),
                call("c3", "edit", r#"{"path":"lib/money.sh","old_str":"b","new_str":"B"}"#),
                call("c4", "bash", r#"{"command":"rm -rf /"}"#),
            ],
            usage(2107, 140, 1807),
        )
        .ran("c3", edited)
        .decided("c4", Verdict::Deny, "floor.R4", "it deletes outside the workspace")
        .add(
            Some("c4"),
            CallFinished::failed(
                "bash",
                ToolErrorKind::PolicyViolation,
                "Tool execution denied by policy. it deletes outside the workspace",
            ),
        )
        .reflected("Failed in this step: bash.")
        .asked()
        .answered(vec![text("It is mended.")], usage(2500, 12, 2100))
        .reminded("Call `task_done`.")
        .asked()
        .answered(vec![call("c5", "task_done", "{}")], usage(2600, 20, 2500))
        .ran("c5", result("task_done", "Task done."))
        .finished(Ending::Done, "Padded the decimals; all tests pass.");
    journal
}

/// A long run: each step calls twice, every seventh fails.
pub fn long(steps: u32) -> Journal {
    let mut journal = Journal::new("claude-sonnet-4-5");
    journal.task("Do much.").epoch("You are Lathe.", &["bash"]);
    for step in 1..=steps {
        let (first, second) = (format!("a{step}"), format!("b{step}"));
        journal.asked().answered(
            vec![
                text(&format!("Step {step} says this.")),
                call(&first, "bash", r#"{"command":"true"}"#),
                call(&second, "bash", r#"{"command":"false"}"#),
            ],
            usage(1000 + 50 * u64::from(step), 80, 900),
        );
        journal.ran(&first, exited(0, &format!("exit code 0 of {step}")));
        if step.is_multiple_of(7) {
            journal
                .ran(&second, CallFinished::failed("bash", ToolErrorKind::TimedOut, "timed out"))
                .reflected("Failed in this step: bash.");
        } else {
            journal.ran(&second, exited(1, "exit code 1"));
        }
    }
    journal.finished(Ending::StepsUsedUp, "Task execution exceeded maximum steps without completion.");
    journal
}
