//! Commands that are decided as their parts where the gate knows the folder it judges for: going to a folder of the
//! workspace, and `xargs` in front of a command of the agent. Judged for no folder, both ask (R4, R5).

use lathe_bash::{Command, FloorRule, Script, Word};
use lathe_protocol::{Decision, Effects, Verdict};

use crate::gate::{Gate, decision};
use crate::reading::Region;
use crate::rules::Rulebook;
use crate::touch::{Touch, What};

/// Options of `xargs` that run and read nothing, and whether a value follows.
const XARGS: [(&str, bool); 14] = [
    ("-0", false),
    ("--null", false),
    ("-r", false),
    ("--no-run-if-empty", false),
    ("-t", false),
    ("--verbose", false),
    ("-n", true),
    ("-L", true),
    ("-P", true),
    ("-I", true),
    ("-d", true),
    ("-s", true),
    ("-n1", false),
    ("-I{}", false),
];

/// A command without the question that its kind brings.
pub(crate) struct Eased {
    pub(crate) command: Command,
    /// The decision where no rule says another.
    pub(crate) decision: Decision,
}

/// The command, if it needs no question for its kind. Its effects are those of its parts.
pub(crate) fn eased(
    rules: &Rulebook,
    gate: &Gate,
    script: &Script,
    index: usize,
    touches: &[Touch],
    effects: &mut Effects,
) -> Option<Eased> {
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
        _ => return None,
    };
    effects.programs.retain(|program| program != name);
    effects.environment.clear();
    let mut command = command.clone();
    command.floors.retain(|floor| floor.rule != rule);
    Some(Eased { command, decision: decision(Verdict::Allow, "builtin.parts", reason) })
}

/// Tells whether a `cd` surely ends in a folder of the workspace, by its real place too. Where git runs in the same
/// line, only the workspace itself will do: another folder may be a repository that nobody looked into.
fn goes_inside(gate: &Gate, script: &Script, command: &Command, touches: &[Touch]) -> bool {
    let words: Option<Vec<&str>> = command.words.iter().skip(1).map(Word::literal).collect();
    let words = words.unwrap_or_default();
    let rest = words.strip_prefix(&["--"][..]).unwrap_or(&words);
    let [folder] = rest else { return false };
    if folder.is_empty() || folder.starts_with(['-', '~']) || !command.assignments.is_empty() {
        return false;
    }
    let inside = |touch: &Touch| {
        matches!(touch.what, What::Path { .. })
            && touch.regions(gate).iter().all(|(region, _)| *region == Region::Inside)
    };
    let is_root = |touch: &Touch| match &touch.what {
        What::Path { names, .. } => names.iter().all(|name| std::path::Path::new(name) == gate.root),
        What::Pattern { .. } | What::Unknown | What::Ending { .. } => false,
    };
    let git = script.commands.iter().any(|command| command.program_name().is_none_or(|name| name == "git"));
    !touches.is_empty() && touches.iter().all(|touch| inside(touch) && (!git || is_root(touch)))
}

/// Tells whether an `xargs` has plain options, and a command of the agent behind it. Where it is known what it is sent,
/// the command stands there once more with that.
fn runs_our_own(rules: &Rulebook, script: &Script, index: usize, command: &Command) -> bool {
    let behind = || script.commands.iter().filter(|other| other.behind == Some(index));
    let Some(inner) = behind().next() else { return false };
    if !behind().all(|other| rules.is_own(other) && other.program() == inner.program()) {
        return false;
    }
    let words: Option<Vec<&str>> = command.words.iter().skip(1).map(Word::literal).collect();
    let Some(words) = words else { return false };
    let Some(name) = inner.program() else { return false };
    let mut rest = words.as_slice();
    while let Some((word, after)) = rest.split_first() {
        if *word == name {
            return true;
        }
        let Some((_, valued)) = XARGS.iter().find(|(option, _)| option == word) else { return false };
        rest = if *valued { after.get(1..).unwrap_or_default() } else { after };
    }
    false
}
