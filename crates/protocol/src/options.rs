//! The options of a session. They are data of its first event, separate from configuration files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Budget, Mode, ReviewRule};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionOptions {
    pub model: ModelChoice,
    pub mode: Mode,
    pub sandbox: Sandbox,
    /// The walls that were found for the sandbox.
    #[serde(default, skip_serializing_if = "SandboxWalls::are_none")]
    pub walls: SandboxWalls,
    pub toolset: Toolset,
    pub limits: Limits,
    pub ending: EndingRule,
    /// Set if each run is to make a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchRule>,
    /// The tools of the toolset that are available.
    #[serde(default, skip_serializing_if = "ToolChoice::is_all")]
    pub tools: ToolChoice,
    /// The rule by which edits are judged, if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewRule>,
    /// The persona of the agent, if it is not Lathe's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<Persona>,
    /// True if there are documents next to the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub online: bool,
    /// True if a request of an admin, or flags at the terminal, gave this session a model's address, key or
    /// configuration file of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_model: bool,
}

/// An agent mode: texts of the user's that replace, or add to, Lathe's own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Persona {
    /// Its name, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The whole system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// Sent with the first task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl Persona {
    /// A task as the model gets it: the first of a session is followed by the instructions.
    pub fn task_text(persona: Option<&Persona>, task: &str, is_first: bool) -> String {
        match persona.and_then(|persona| persona.instructions.as_deref()).filter(|_| is_first) {
            Some(instructions) => format!("{task}\n\n[Special instructions]\n{instructions}"),
            None => task.to_owned(),
        }
    }
}

/// Lists of tools: names, or `Tool(arg)` for commands of the shell.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolChoice {
    /// If not empty: only these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub core: Vec<String>,
    /// Never these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
}

impl ToolChoice {
    pub fn is_all(&self) -> bool {
        self.core.is_empty() && self.exclude.is_empty()
    }
}

/// The rule for a run's patch.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PatchRule {
    /// True if a run without a change outside of tests is not done.
    pub must: bool,
    /// A commit to compare with, instead of the tree at the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
}

/// The model that answers. The key is never part of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModelChoice {
    pub provider: String,
    pub model: String,
    /// Scheme, host, port and path; passwords and queries are not part of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The mark of the key that was sent to that address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyMark>,
}

/// The source of a key, and a keyed hash of it and its address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeyMark {
    /// In words, such as `environment OPENAI_API_KEY`; `none` if no key was sent.
    pub source: String,
    pub mark: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sandbox {
    Off,
    Workspace,
    ReadOnly,
}

impl Sandbox {
    pub fn as_str(self) -> &'static str {
        match self {
            Sandbox::Off => "off",
            Sandbox::Workspace => "workspace",
            Sandbox::ReadOnly => "read-only",
        }
    }
}

/// The walls around the processes of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxWalls {
    /// From 0, none, to 3, the strongest.
    pub level: u8,
    /// The reasons why the level is not 3, and what to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// Services that the processes can reach although they are outside of the walls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reachable: Vec<String>,
}

impl SandboxWalls {
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }
}

/// The set of names, schemas and texts of tools that the model gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Toolset {
    Lathe,
    Trae,
    Gemini,
    // One tool, and all the others as commands in its shell.
    Bash,
}

impl Toolset {
    pub const ALL: [Toolset; 4] = [Toolset::Lathe, Toolset::Trae, Toolset::Gemini, Toolset::Bash];

    /// True if the tools are also commands in the session's shell. Trae's and Gemini's models do not know such
    /// commands, and their shells stay as they know them.
    pub fn has_commands(self) -> bool {
        match self {
            Toolset::Lathe | Toolset::Bash => true,
            Toolset::Trae | Toolset::Gemini => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Toolset::Lathe => "lathe",
            Toolset::Trae => "trae",
            Toolset::Gemini => "gemini",
            Toolset::Bash => "bash",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Steps of one run.
    pub max_steps: u32,
    /// Seconds a shell line may take unless the call says otherwise.
    pub line_seconds: u32,
    /// Seconds for which a shell line may print nothing; no such limit if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub silent_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Budget::is_none")]
    pub budget: Budget,
}

/// Limits that a session gets when it is opened again; one that is left out stays as it was.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LimitChanges {
    pub max_steps: Option<u32>,
    pub budget: Budget,
}

impl Limits {
    /// The usual limits, with another number of steps.
    pub fn with_steps(steps: u32) -> Self {
        Self { max_steps: steps, ..Self::default() }
    }

    /// The most steps of one run.
    pub fn steps(&self) -> u32 {
        self.max_steps
    }

    /// These limits after a change. Prices belong to a model and are looked up again.
    pub fn with_changes(self, changes: LimitChanges) -> Self {
        let budget = Budget { price: None, ..changes.budget.or(self.budget) };
        Self { max_steps: changes.max_steps.unwrap_or(self.max_steps), budget, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_steps: 100, line_seconds: 120, silent_seconds: None, budget: Budget::default() }
    }
}

/// The meaning of an answer without calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndingRule {
    /// A headless run: remind the model once that a call ends the task, then take the text as the result.
    Remind,
    /// A conversation: it ends the turn.
    EndTurn,
}
