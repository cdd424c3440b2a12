//! The decision about a shell line, as data.

use lathe_protocol::{Decision, Effects, Verdict};

use crate::agent_commands::AgentCommandRequest;

/// The decisions about a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineDecision {
    pub decision: Decision,
    /// The decision about every command that can run.
    pub commands: Vec<CommandDecision>,
    /// The effects of the whole line.
    pub effects: Effects,
    /// The commands that a standing approval ("always") would allow: exactly those that were asked about. Empty if no
    /// rule can allow the line.
    pub approvable: Vec<ApprovableCommand>,
}

/// A command as narrow as it was shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovableCommand {
    pub words: Vec<String>,
    /// The folder it runs in; `None` if its words mean the same everywhere.
    pub folder: Option<String>,
}

/// The decision about one command of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandDecision {
    /// As people read them; a part that is known only when the line runs is in its usual spelling.
    pub words: Vec<String>,
    pub decision: Decision,
    pub effects: Effects,
    /// The wrapper in front of it, as an index into the list.
    pub wrapper: Option<usize>,
    /// The request to a command of the agent, which is decided when it runs.
    pub agent_command: Option<AgentCommandRequest>,
}

impl LineDecision {
    /// The command that a refusal or question is about, for its reason.
    pub(crate) fn culprit(&self, said: &Decision, last: &Decision) -> String {
        let guilty = |each: &&CommandDecision| match last.rule.as_str() {
            "mode.plan" => each.effects.change_something(),
            _ => each.decision == *said,
        };
        let found = match last.verdict {
            Verdict::Allow => None,
            Verdict::Ask | Verdict::Deny => self.commands.iter().find(guilty),
        };
        let Some(found) = found.filter(|found| !found.words.is_empty()) else { return String::new() };
        let words = lathe_protocol::visible(&found.words.join(" "));
        match words.char_indices().nth(NAMED) {
            Some((at, _)) => format!("`{}…`: ", words.get(..at).unwrap_or_default()),
            None => format!("`{words}`: "),
        }
    }
}

/// The most characters of a command that a reason repeats.
const NAMED: usize = 120;
