//! The commands of the session's shell for the gate, each under all of its names and with its tool.

use lathe_policy::OwnCommand;
use lathe_protocol::ToolKind;

use super::AgentCommands;
use super::agent_command::AgentCommand;
use crate::built_in::commands;

/// Every built-in command of the agent, for the gate.
pub fn built_in_commands() -> Vec<OwnCommand> {
    commands().flat_map(own_commands).chain(SHELLS_OWN.map(shell_command)).collect()
}

/// Commands about the shell itself.
pub(super) const SHELLS_OWN: [&str; 3] = ["commands", "jobs", "field"];

fn shell_command(name: &str) -> OwnCommand {
    OwnCommand { name: name.to_owned(), tool: "commands".to_owned(), also: Vec::new(), kind: ToolKind::Other }
}

/// A command by each of its names.
fn own_commands(command: &AgentCommand) -> impl Iterator<Item = OwnCommand> {
    let (tool, kind) = (command.tool, command.kind);
    let names = [command.name].into_iter().chain(command.aliases.iter().copied());
    names.map(move |name| OwnCommand { name: name.to_owned(), tool: tool.to_owned(), also: Vec::new(), kind })
}

impl AgentCommands {
    /// The commands for the gate, which needs every name of each.
    pub(crate) fn gate_commands(&self) -> Vec<OwnCommand> {
        let built_in = self.offered().flat_map(own_commands);
        built_in.chain(SHELLS_OWN.map(shell_command)).chain(self.field.own()).collect()
    }
}
