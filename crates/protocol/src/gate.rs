//! What an act would do, who wants it, and what the gate said.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Who wants something done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    Model,
    Person,
    Project,
}

/// How much may be done without asking. The order is that of how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Nothing may change.
    Plan,
    /// Whatever changes something is asked about.
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

/// What sort of act a tool is, in the words of Gemini CLI. For people and for rules in files; the gate itself looks at effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
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

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Edit => "edit",
            Kind::Delete => "delete",
            Kind::Move => "move",
            Kind::Search => "search",
            Kind::Execute => "execute",
            Kind::Think => "think",
            Kind::Fetch => "fetch",
            Kind::Communicate => "communicate",
            Kind::Other => "other",
        }
    }

    /// Kinds whose tools change something by their nature.
    pub fn is_mutator(self) -> bool {
        match self {
            Kind::Edit | Kind::Delete | Kind::Move | Kind::Execute => true,
            Kind::Read | Kind::Search | Kind::Think | Kind::Fetch | Kind::Communicate | Kind::Other => false,
        }
    }
}

/// What an invocation would touch. The gate and the scheduler look at this, never at a tool's name.
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
    /// More may happen than is listed here: a shell line, before it is understood.
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

    /// Whether anything may be different afterwards.
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

/// What was decided about one command of a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandDecided {
    /// As a person reads them; what is only known later is in its usual spelling.
    pub words: Vec<String>,
    pub decision: Decision,
    #[serde(default)]
    pub effects: Effects,
}

/// The gate's answer, with the rule that decided.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Decision {
    pub verdict: Verdict,
    pub rule: String,
    pub reason: String,
}
