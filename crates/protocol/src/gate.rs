//! The effects of an act, its actor, and the gate's decision.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The initiator of an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    Model,
    Person,
    Project,
}

/// The modes: the acts that need no question. Ordered from few to many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing may change.
    Plan,
    /// Every change is asked about.
    Default,
    /// Edits inside the workspace are allowed, the rest is asked about.
    AutoEdit,
    /// No questions.
    FullAuto,
}

impl Mode {
    pub const ALL: [Mode; 4] = [Mode::Plan, Mode::Default, Mode::AutoEdit, Mode::FullAuto];

    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Plan => "plan",
            Mode::Default => "default",
            Mode::AutoEdit => "auto-edit",
            Mode::FullAuto => "full-auto",
        }
    }
}

/// The kinds of acts of tools, in the words of Gemini CLI. For people and for rules in files; the gate itself uses
/// effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    Read,
    Edit,
    Delete,
    Move,
    Search,
    Execute,
    Think,
    Fetch,
    /// A question to the user.
    Communicate,
    Other,
}

impl ToolKind {
    pub fn as_str(self) -> &'static str {
        match self {
            ToolKind::Read => "read",
            ToolKind::Edit => "edit",
            ToolKind::Delete => "delete",
            ToolKind::Move => "move",
            ToolKind::Search => "search",
            ToolKind::Execute => "execute",
            ToolKind::Think => "think",
            ToolKind::Fetch => "fetch",
            ToolKind::Communicate => "communicate",
            ToolKind::Other => "other",
        }
    }

    /// True for kinds whose tools change something by their nature.
    pub fn is_mutator(self) -> bool {
        match self {
            ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Execute => true,
            ToolKind::Read
            | ToolKind::Search
            | ToolKind::Think
            | ToolKind::Fetch
            | ToolKind::Communicate
            | ToolKind::Other => false,
        }
    }
}

/// The effects of an invocation. The gate and the scheduler use these, never a tool's name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Effects {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reads: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<String>,
    /// True if more may happen than is listed here: a shell line, before it is understood.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opaque: bool,
}

impl Effects {
    pub fn reading(path: impl Into<String>) -> Self {
        Self { reads: vec![path.into()], ..Self::default() }
    }

    pub fn writing(path: impl Into<String>) -> Self {
        Self { writes: vec![path.into()], ..Self::default() }
    }

    /// True if anything may be different afterwards.
    pub fn change_something(&self) -> bool {
        self.opaque
            || !self.writes.is_empty()
            || !self.programs.is_empty()
            || !self.hosts.is_empty()
            || !self.environment.is_empty()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// The decision about one command of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandDecided {
    /// As people read them; a part that is known only later is in its usual spelling.
    pub words: Vec<String>,
    pub decision: Decision,
    #[serde(default)]
    pub effects: Effects,
}

/// The gate's decision, with the rule that made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    pub verdict: Verdict,
    pub rule: String,
    pub reason: String,
}
