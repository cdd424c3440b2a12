//! Commands that are decided as their parts where the gate knows the folder it judges for: `cd` to a folder of the
//! workspace, and `xargs` and `find -exec` in front of commands of the agent and of readers that are given names (see
//! [`crate::handed_names`]). Judged for no folder, they ask (R4, R5).

use lathe_bash::{FloorRule, Script, SimpleCommand, Word};
use lathe_protocol::{Decision, Effects, Verdict};

use crate::gate::{Gate, decision};
use crate::handed_names::{HandedNames, is_own_run};
use crate::name_sources;
use crate::reading::Region;
use crate::rules::Rulebook;
use crate::touch::{Touch, TouchTarget};

/// A command without the question that its kind brings.
pub(crate) struct EasedCommand {
    pub(crate) command: SimpleCommand,
    /// The decision where no rule makes another.
    pub(crate) decision: Decision,
}

/// The command, if its kind needs no question. Its effects become those of its parts.
pub(crate) fn eased(
    rules: &Rulebook,
    gate: &Gate,
    (script, index): (&Script, usize),
    fed: &HandedNames,
    touches: &[Touch],
    effects: &mut Effects,
) -> Option<EasedCommand> {
    let command = script.commands.get(index)?;
    gate.here.as_ref().filter(|_| !command.broken)?;
    let name = command.program()?;
    let (rule, reason) = match name {
        "cd" if goes_inside(gate, script, command, touches) => {
            (FloorRule::State, "it goes to a folder of the workspace")
        }
        "xargs" if runs_our_own(rules, script, index, command) => {
            (FloorRule::Wrapper, "what it runs is decided when it runs")
        }
        "xargs" if fed.name_sign(index).is_some() => {
            (FloorRule::Wrapper, "what it runs is decided by itself")
        }
        "jobs" if only_reads_jobs(command) => {
            (FloorRule::State, "it only looks at what runs in the background")
        }
        "find" => {
            let (runs, left) = name_sources::run_by_find(command)?;
            let own = || runs.iter().all(|run| is_own_run(rules, run));
            (command.assignments.is_empty() && (own() || fed.name_sign(index).is_some())).then_some(())?;
            let reads = std::mem::take(&mut effects.reads);
            *effects = SimpleCommand { words: left, ..command.clone() }.effects();
            effects.reads = reads;
            (FloorRule::Wrapper, "what it runs is decided by itself")
        }
        _ => return None,
    };
    effects.programs.retain(|program| program != name);
    effects.environment.clear();
    let runs = |word: usize| {
        let word = command.words.get(word).and_then(Word::literal);
        name == "find" && matches!(word, Some("-exec" | "-execdir"))
    };
    let mut command = command.clone();
    let floors = std::mem::take(&mut command.floors);
    let left = floors.into_iter().filter(|floor| floor.rule != rule && !floor.word.is_some_and(runs));
    command.floors = left.collect();
    Some(EasedCommand { command, decision: decision(Verdict::Allow, "builtin.parts", reason) })
}

/// Tells whether a `cd` surely ends in a folder of the workspace, by its real place too. Where git runs in the same
/// line, only the workspace itself will do: another folder may be a repository that was not inspected.
fn goes_inside(gate: &Gate, script: &Script, command: &SimpleCommand, touches: &[Touch]) -> bool {
    let words: Option<Vec<&str>> = command.words.iter().skip(1).map(Word::literal).collect();
    let words = words.unwrap_or_default();
    let rest = words.strip_prefix(&["--"][..]).unwrap_or(&words);
    let [folder] = rest else { return false };
    if folder.is_empty() || folder.starts_with(['-', '~']) || !command.assignments.is_empty() {
        return false;
    }
    let inside = |touch: &Touch| {
        matches!(touch.target, TouchTarget::Path { .. })
            && touch.regions(gate).iter().all(|(region, _)| *region == Region::Inside)
    };
    // With `cdable_vars`, a name that is not a folder leads wherever a variable says.
    let is_there = |touch: &Touch| match (&touch.target, gate.disk.get()) {
        (TouchTarget::Path { names, .. }, Some(disk)) if !folder.contains('/') => {
            names.iter().any(|name| disk.exists(std::path::Path::new(name)))
        }
        (TouchTarget::Path { .. }, _) => folder.contains('/') || !gate.switched.folder_variables,
        (TouchTarget::Pattern { .. } | TouchTarget::Unknown | TouchTarget::Ending { .. }, _) => false,
    };
    let is_root = |touch: &Touch| match &touch.target {
        TouchTarget::Path { names, .. } => names.iter().all(|name| std::path::Path::new(name) == gate.root),
        TouchTarget::Pattern { .. } | TouchTarget::Unknown | TouchTarget::Ending { .. } => false,
    };
    let git = script.commands.iter().any(|command| command.program_name().is_none_or(|name| name == "git"));
    let fits = |touch: &Touch| inside(touch) && is_there(touch) && (!git || is_root(touch));
    !touches.is_empty() && touches.iter().all(fits)
}

/// Tells whether `jobs`, the agent's or bash's own, only lists or prints.
fn only_reads_jobs(command: &SimpleCommand) -> bool {
    let words: Option<Vec<&str>> = command.words.iter().skip(1).map(Word::literal).collect();
    match words.as_deref() {
        Some([] | ["list" | "-l" | "-p" | "-r" | "-s" | "-rp" | "-pr" | "-lr" | "-h" | "--help"]) => true,
        Some(["read", _]) => true,
        Some(_) | None => false,
    }
}

/// Tells whether an `xargs` has plain options and a command of the agent after it. Where the names it is sent are
/// known, the script lists the command once more with them.
fn runs_our_own(rules: &Rulebook, script: &Script, index: usize, command: &SimpleCommand) -> bool {
    let mut behind = script.commands.iter().filter(|other| other.wrapper == Some(index)).peekable();
    let Some(run) = name_sources::run_by_xargs(command).filter(|_| behind.peek().is_some()) else {
        return false;
    };
    is_own_run(rules, &run)
        && behind.all(|other| {
            rules.is_own_command(other) && other.program() == run.words.first().map(String::as_str)
        })
}
