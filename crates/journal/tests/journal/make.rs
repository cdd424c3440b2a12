//! Small makers for the tests.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lathe_blobs::Blobs;
use lathe_journal::{Journal, SessionReader};
use lathe_protocol::{
    Actor, Arguments, Block, CallFinished, CallId, CallStarted, CommandId, Draft, Ending, EndingRule, Event,
    EventPlace, Fact, Limits, Mode, ModelAnswered, ModelChoice, Raw, Reflected, Rewound, RunNo, Sandbox,
    SessionId, SessionOpened, SessionOptions, StepNo, StopReason, TaskFinished, TaskGiven, Timestamp,
    ToolCall, ToolErrorKind, Toolset, Usage,
};

/// A home folder of its own.
pub struct Home {
    pub dir: tempfile::TempDir,
}

impl Home {
    pub fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn sessions(&self) -> PathBuf {
        self.path().join("sessions")
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.sessions().join(name)
    }

    pub fn blobs(&self) -> Blobs {
        Blobs::open(self.path().join("blobs")).unwrap()
    }

    pub fn create(&self, id: &str) -> Journal {
        Journal::create(&self.sessions(), &SessionId::new(id), self.blobs()).unwrap()
    }

    pub fn open(&self, id: &str) -> Journal {
        Journal::open(&self.sessions(), &SessionId::new(id), self.blobs()).unwrap()
    }

    pub fn reader(&self, id: &str) -> SessionReader {
        SessionReader::open(&self.sessions(), &SessionId::new(id), self.blobs()).unwrap()
    }
}

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

pub fn draft(fact: impl Into<Fact>) -> Draft {
    Draft { place: EventPlace::in_run(RunNo(1)), fact: fact.into() }
}

pub fn at_step(step: u32, fact: impl Into<Fact>) -> Draft {
    Draft { place: EventPlace::in_run(RunNo(1)).at_step(StepNo(step)), fact: fact.into() }
}

pub fn at_call(step: u32, call: &str, fact: impl Into<Fact>) -> Draft {
    Draft {
        place: EventPlace::in_run(RunNo(1)).at_step(StepNo(step)).at_call(CallId::new(call)),
        fact: fact.into(),
    }
}

/// An event that is only there to be there.
pub fn note(text: impl Into<String>) -> Draft {
    draft(Reflected { text: text.into() })
}

pub fn opened(id: &str) -> SessionOpened {
    SessionOpened {
        session: SessionId::new(id),
        workspace: "/work/repo".into(),
        folder: None,
        options: SessionOptions {
            model: ModelChoice { provider: "p".into(), model: "m".into(), base_url: None, key: None },
            mode: Mode::Default,
            sandbox: Sandbox::Off,
            walls: lathe_protocol::SandboxWalls::default(),
            toolset: Toolset::Lathe,
            limits: Limits::default(),
            ending: EndingRule::Remind,
            patch: None,
            tools: Default::default(),
            review: None,
            persona: None,
            online: false,
            own_model: false,
        },
        parent: None,
        forked: None,
        surroundings: None,
        lathe: "0.1.0".into(),
    }
}

pub fn task(text: &str) -> TaskGiven {
    TaskGiven { text: text.into(), images: Vec::new(), command: CommandId::new("c"), actor: Actor::Person }
}

pub fn answer(calls: &[&str]) -> ModelAnswered {
    let call = |id: &&str| {
        Block::Call(ToolCall {
            id: CallId::new(*id),
            name: format!("tool_{id}"),
            arguments: Arguments::Json(Raw::parse("{}").unwrap()),
            raw: None,
        })
    };
    ModelAnswered {
        blocks: calls.iter().map(call).collect(),
        stop: StopReason::ToolCalls,
        usage: Usage { input_tokens: 10, output_tokens: 3, ..Usage::default() },
        model: "m".into(),
        took_ms: 1,
    }
}

pub fn started() -> CallStarted {
    CallStarted {}
}

pub fn finished(name: &str) -> CallFinished {
    CallFinished::failed(name, ToolErrorKind::ExecutionFailed, "no")
}

pub fn rewound(to: u32) -> Rewound {
    Rewound { to: StepNo(to) }
}

pub fn ended(ending: Ending) -> TaskFinished {
    TaskFinished { ending, result: "r".into() }
}

/// Appends all and returns the events.
pub fn append_all(journal: &mut Journal, drafts: impl IntoIterator<Item = Draft>) -> Vec<Event> {
    drafts.into_iter().map(|draft| journal.append(at(0), draft).unwrap()).collect()
}

/// Text that cannot be packed.
pub fn noise(len: usize, seed: u64) -> String {
    let mut x = seed | 1;
    (0..len)
        .map(|_| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            char::from(b'!' + (x % 90) as u8)
        })
        .collect()
}

pub fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}
