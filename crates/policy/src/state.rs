//! Variables by which the shell finds folders. What they are in the session's shell no later line tells, so a line may give
//! them to one command but not change them for the shell.

use lathe_bash::{Command, Piece, Script, Word};
use lathe_protocol::{Decision, Verdict};

use crate::gate::decision;

/// `~`, `~-` and `cd -`, and where `cd` looks.
const KEPT: [&str; 3] = ["HOME", "OLDPWD", "CDPATH"];

/// Commands that change the variables they name.
const NAMING: [&str; 5] = ["unset", "read", "mapfile", "readarray", "getopts"];

/// Commands that set the variables behind them for another command.
const LENDING: [&str; 3] = ["env", "sudo", "doas"];

/// Why a line that changes one of these variables for the shell is not run for a model.
pub(crate) fn denied(script: &Script) -> Option<Decision> {
    let name = KEPT.iter().find(|name| changes(script, name))?;
    let why = format!(
        "{name} decides which folder later lines mean, so it stays as it is; `{name}=… command` sets it for one command"
    );
    Some(decision(Verdict::Deny, "guard.home-variable", &why))
}

fn changes(script: &Script, name: &str) -> bool {
    let named = |command: &Command| {
        let is_naming = command.program_name().is_some_and(|program| NAMING.contains(&program));
        is_naming && command.words.iter().skip(1).any(|word| word.literal() == Some(name))
    };
    if script.commands.iter().any(named) {
        return true;
    }
    let Some(values) = script.values.get(name) else { return false };
    let lent: usize = script.commands.iter().map(|command| lent(command, name)).sum();
    lent == 0 || values.len() > lent
}

/// How many values a command is given for itself alone.
fn lent(command: &Command, name: &str) -> usize {
    let front = command.assignments.iter().filter(|assignment| assignment.name == name).count();
    let sets = |word: &&Word| {
        let text = match word.pieces.first() {
            Some(Piece::Text(text)) => text,
            _ => return false,
        };
        text.strip_prefix(name).is_some_and(|rest| rest.starts_with('='))
    };
    let is_lending = command.program_name().is_some_and(|program| LENDING.contains(&program));
    let behind = command.words.iter().skip(1).filter(|_| is_lending).filter(sets).count();
    if command.words.is_empty() { 0 } else { front + behind }
}
