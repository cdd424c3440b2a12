//! Plans of sessions: the plan of a new one, and the overrides of a resumed one.

use std::path::PathBuf;

use lathe_protocol::{
    EndingRule, LimitChanges, Limits, Mode, PatchRule, ReplayPace, ReplayStrictness, Sandbox, ToolChoice,
    Toolset,
};

use crate::models::request::ModelRequest;
use crate::session::extras::Extras;

/// The source of a model's answers.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // There is one per session; a box would only be one more word at every use.
pub enum ModelSource {
    Ask(ModelRequest),
    Replay {
        cassette: PathBuf,
        pace: ReplayPace,
        strictness: ReplayStrictness,
    },
    /// A cassette held in memory.
    Given {
        cassette: String,
        strictness: ReplayStrictness,
    },
    /// A cassette that is part of the program.
    BuiltIn {
        cassette: &'static str,
        pace: ReplayPace,
    },
}

/// The plan of a new session.
#[derive(Debug, Clone)]
pub struct SessionPlan {
    pub folder: PathBuf,
    pub source: ModelSource,
    pub mode: ModeWish,
    /// The sandbox that the user asked for. Without one it is that of the mode.
    pub sandbox: Option<Sandbox>,
    /// Lathe's own, or a cassette's, unless one is named.
    pub toolset: Option<Toolset>,
    pub limits: Limits,
    pub ending: EndingRule,
    pub patch: Option<PatchRule>,
    pub tools: ToolChoice,
    /// File to write a cassette to.
    pub record: Option<PathBuf>,
    pub attended: Attended,
    pub extras: Extras,
    /// See [`SessionOptions::own_model`].
    pub own_model: bool,
}

/// The mode of a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModeWish {
    Given(Mode),
    /// The user set none: the walls decide.
    ByWalls,
}

impl ModeWish {
    /// The mode with the most rights that this can become.
    pub fn strongest(self) -> Mode {
        match self {
            Self::Given(mode) => mode,
            Self::ByWalls => Mode::FullAuto,
        }
    }
}

/// The user's presence while a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attended {
    Nobody,
    /// A user who answers the model's questions, but is not asked for approvals.
    Answers,
    /// A user at a terminal.
    Person,
}

/// Overrides for a resumed session.
#[derive(Debug, Clone)]
pub struct Overrides {
    pub source: ModelSource,
    pub mode: Option<Mode>,
    pub sandbox: Option<Sandbox>,
    pub limits: LimitChanges,
    pub record: Option<PathBuf>,
    pub attended: Attended,
    pub extras: Extras,
    /// True if the session now gets its own model address or key. What it had before stays recorded.
    pub own_model: bool,
}

/// The settings of a replay with real tools.
#[derive(Debug, Clone)]
pub struct ReplayPlan {
    pub mode: Mode,
    /// The sandbox that the user's settings name.
    pub sandbox: Option<Sandbox>,
    /// Additions of the present configuration. Only those that limit a call are used: its checks, programs and texts
    /// do not belong to the recorded session.
    pub extras: Extras,
}
