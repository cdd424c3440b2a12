//! Git commands that only read, in a repository whose own configuration makes git run a program.

use lathe_bash::{Command, FloorRule};
use lathe_protocol::{Decision, Verdict};

use crate::gate::{Gate, decision};

/// Subcommands of git that run no program of a repository's, whatever its configuration says. Those that sort or format may
/// check signatures, by a setting alone (`tag.sort`, `pretty.x`), and a reflog has diffs.
const GIT_PLAIN: [&str; 12] = [
    "rev-parse",
    "remote",
    "config",
    "version",
    "show-ref",
    "merge-base",
    "name-rev",
    "count-objects",
    "ls-tree",
    "check-ignore",
    "worktree",
    "--version",
];

/// A repository whose own configuration makes git run a program: even what only reads is asked about.
pub(crate) fn git_asks(gate: &Gate, command: &Command, decided: &Decision) -> Option<Decision> {
    let setting = gate.git_runs.as_ref()?;
    if decided.verdict != Verdict::Allow || command.program_name() != Some("git") {
        return None;
    }
    let normal = lathe_bash::normal_words(&command.words);
    if normal.get(1).is_some_and(|sub| GIT_PLAIN.contains(&sub.as_str())) {
        return None;
    }
    let why = format!("the repository's own configuration makes git run a program ({setting})");
    Some(decision(Verdict::Ask, FloorRule::Option.as_str(), &why))
}
