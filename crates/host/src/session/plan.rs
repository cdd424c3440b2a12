//! Plans of sessions: the plan of a new one, and what changes of one that is opened again.

use std::path::PathBuf;

use lathe_protocol::{
    EndingRule, LimitChanges, Limits, Mode, PatchRule, ReplayPace, ReplayStrictness, ToolChoice, Toolset,
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
    pub mode: Mode,
    /// Lathe's own, or a cassette's, if nothing is said.
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

/// The person who is there while a session works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attended {
    Nobody,
    /// A person who answers the model's questions, but cannot be asked for an approval.
    Answers,
    /// A person at a terminal.
    Person,
}

/// Overrides for a resumed session.
#[derive(Debug, Clone)]
pub struct Overrides {
    pub source: ModelSource,
    pub mode: Option<Mode>,
    pub limits: LimitChanges,
    pub record: Option<PathBuf>,
    pub attended: Attended,
    pub extras: Extras,
    /// True if the session gets a model's address or key of its own now. What it had before stays recorded.
    pub own_model: bool,
}
