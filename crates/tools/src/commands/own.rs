//! The commands of the session's shell, as the gate has to know them: each with every name of the tool behind it.

use lathe_policy::OwnCommand;
use lathe_protocol::Kind;

use super::AgentCommands;
use super::table::Command;
use crate::built_in::commands;

/// Every built-in command of the agent, for the gate.
pub fn built_in_commands() -> Vec<OwnCommand> {
    commands().flat_map(own_commands).chain(SHELLS_OWN.map(shells_own)).collect()
}

/// Commands by which the shell tells of itself.
pub(super) const SHELLS_OWN: [&str; 3] = ["commands", "jobs", "field"];

fn shells_own(name: &str) -> OwnCommand {
    OwnCommand { name: name.to_owned(), tool: "commands".to_owned(), also: Vec::new(), kind: Kind::Other }
}

/// A command by each of its names.
fn own_commands(command: &Command) -> impl Iterator<Item = OwnCommand> {
    let (tool, kind) = (command.tool, command.kind);
    let names = [command.name].into_iter().chain(command.aliases.iter().copied());
    names.map(move |name| OwnCommand { name: name.to_owned(), tool: tool.to_owned(), also: Vec::new(), kind })
}

impl AgentCommands {
    /// The commands for the gate, which wants every name of each.
    pub(crate) fn own(&self) -> Vec<OwnCommand> {
        let built_in = self.offered().flat_map(own_commands);
        built_in.chain(SHELLS_OWN.map(shells_own)).chain(self.field.own()).collect()
    }
}
