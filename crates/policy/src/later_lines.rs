//! The meaning of later lines: variables by which the shell finds folders and programs, functions and aliases. A
//! later line does not show their values in the session's shell, so a line may set a variable for one command but not
//! change it for the shell, and may not give another meaning to a name that rules allow or deny.

use std::path::Path;

use lathe_bash::{Piece, Script, SimpleCommand, Word};
use lathe_protocol::{Decision, Verdict};

use crate::gate::{Gate, decision};
use crate::places::UNKNOWN;
use crate::rules::Rulebook;

/// The variables of `~`, `~-` and `cd -`, and of the search path of `cd`.
const KEPT: [&str; 3] = ["HOME", "OLDPWD", "CDPATH"];

/// Commands that change the variables they name.
const NAMING: [&str; 5] = ["unset", "read", "mapfile", "readarray", "getopts"];

/// Commands that set the variables after them for another command.
const LENDING: [&str; 3] = ["env", "sudo", "doas"];

/// The tables of programs that bash runs for a name.
const MEANINGS: [&str; 2] = ["BASH_ALIASES", "BASH_CMDS"];

/// Variables by which later programs run another one first, find other settings or take names of files for others.
const RUNNING: [&str; 12] = [
    "BASH_ENV",
    "PROMPT_COMMAND",
    "LD_PRELOAD",
    "LD_AUDIT",
    "GIT_EXEC_PATH",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_ICASE_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_LITERAL_PATHSPECS",
];

/// Variables whose text bash expands by itself, or that name a file that a shell runs first.
const EXPANDED: [&str; 6] = ["PS0", "PS1", "PS2", "PS4", "ENV", "GIT_CONFIG_COUNT"];

/// Functions that bash and zsh call by themselves, for a word that is not a program or around each line.
const CALLED: [&str; 7] = [
    "command_not_found_handle",
    "command_not_found_handler",
    "precmd",
    "preexec",
    "chpwd",
    "TRAPDEBUG",
    "TRAPEXIT",
];

/// Names of the shell's own on which the reading of a line depends: a line that changes one changes what the gate
/// saw.
const SHELLS_OWN: [&str; 34] = [
    "cd",
    "pushd",
    "popd",
    "builtin",
    "command",
    "eval",
    "exec",
    "source",
    ".",
    "export",
    "declare",
    "typeset",
    "readonly",
    "local",
    "unset",
    "set",
    "shopt",
    "trap",
    "alias",
    "unalias",
    "hash",
    "enable",
    "read",
    "mapfile",
    "readarray",
    "printf",
    "echo",
    "test",
    "[",
    "true",
    "false",
    ":",
    "return",
    "exit",
];

/// The denial of a model's line that changes the meaning of later lines.
///
/// Behind walls, a folder of the workspace may come into the search path: what is found there runs inside.
pub(crate) fn denied(script: &Script, rules: &Rulebook, gate: Option<&Gate>) -> Option<Decision> {
    let (root, walled) = (gate.map(|gate| gate.root.as_path()), gate.is_some_and(Gate::has_walls));
    folders(script)
        .or_else(|| if walled { None } else { programs(script, root) })
        .or_else(|| running(script))
        .or_else(|| meanings(script, rules))
}

fn meaning(why: &str) -> Option<Decision> {
    Some(decision(Verdict::Deny, "guard.meaning", why))
}

/// The denial of a line that decides what the shell or git runs before or instead of later commands.
fn running(script: &Script) -> Option<Decision> {
    let nothing = |value: &Word| matches!(value.literal(), Some("" | "/dev/null" | "0"));
    let shown = |value: &Word| value.show().contains(['$', '`', '/']) || value.literal().is_none();
    let values = |name: &str| script.values.get(name).into_iter().flatten();
    let runs = |name: &&&str| changes(script, name) && !values(name).all(nothing);
    let expands =
        |name: &&&str| changes(script, name) && values(name).any(|value| !nothing(value) && shown(value));
    let counts =
        |name: &&&str| **name == "GIT_CONFIG_COUNT" && changes(script, name) && !values(name).all(nothing);
    let found = RUNNING.iter().find(runs);
    let found = found.or_else(|| EXPANDED.iter().find(|name| expands(name) || counts(name)));
    if let Some(name) = found {
        return meaning(&format!(
            "{name} decides what runs with later lines, so it stays as it is; `{name}=… command` sets it for one command"
        ));
    }
    let debugs = |command: &&SimpleCommand| {
        let mut words = command.words.iter().skip(1).filter(|word| word.literal() != Some("--"));
        let resets =
            words.next().and_then(Word::literal).is_some_and(|word| word.is_empty() || word.starts_with('-'));
        let signal = |word: &Word| {
            let name = word.show().to_ascii_uppercase();
            name.strip_prefix("SIG").unwrap_or(&name) == "DEBUG"
        };
        command.program_name() == Some("trap") && !resets && words.any(signal)
    };
    if script.commands.iter().any(|command| debugs(&command)) {
        return meaning("a trap on DEBUG runs before every later command, so none is set");
    }
    let name = script.functions.iter().find(|name| CALLED.contains(&name.as_str()))?;
    meaning(&format!(
        "the shell calls `{name}` by itself in later lines, so it is not defined; give the function another name"
    ))
}

/// The denial of functions, aliases and entries of bash's own tables for names that rules are about.
fn meanings(script: &Script, rules: &Rulebook) -> Option<Decision> {
    if let Some(name) = MEANINGS.iter().find(|name| changes(script, name)) {
        return meaning(&format!("{name} decides which program later lines run, so it stays as it is"));
    }
    let known = rules.known_programs();
    let is_known = |name: &String| known.contains(name.as_str()) || SHELLS_OWN.contains(&name.as_str());
    let renames =
        |command: &&SimpleCommand| matches!(command.program_name(), Some("alias" | "hash" | "enable"));
    let words = script.commands.iter().filter(renames).flat_map(|command| command.words.iter().skip(1));
    let aliases = words.map(|word| word.show().split('=').next().unwrap_or_default().to_owned());
    let hashes = |command: &SimpleCommand| {
        let has = |word: &Word| {
            word.literal().is_some_and(|word| word.starts_with('-') && word.contains(['p', 'f']))
        };
        command.program_name() == Some("alias") || command.words.iter().any(has)
    };
    let aliases = aliases.filter(|_| script.commands.iter().any(hashes));
    if let Some(name) = script.functions.iter().cloned().chain(aliases).find(|name| is_known(name)) {
        return meaning(&format!(
            "later lines mean the program by `{name}`, so it gets no other meaning; give the function or alias another name"
        ));
    }
    // `x() { git "$@"; }`: which command it runs is known only where the function is called.
    let denied = rules.denied_programs();
    let open = |command: &&SimpleCommand| {
        let given = |piece: &Piece| {
            let name = match piece {
                Piece::Variable { name, .. } | Piece::Operator { name, .. } => name,
                _ => return false,
            };
            matches!(&**name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit())
        };
        command.program_name().is_some_and(|name| denied.contains(name))
            && command.words.iter().flat_map(|word| word.pieces.iter()).any(given)
    };
    let open = script.commands.iter().filter(|_| !script.functions.is_empty()).find(open)?;
    let name = open.program_name().unwrap_or_default();
    meaning(&format!(
        "a function that runs {name} with the words it is given could run what rules deny; write the command out"
    ))
}

/// The denial of a change of the folders in which the shell searches for programs: further folders of the system or
/// the user may be added.
fn programs(script: &Script, root: Option<&Path>) -> Option<Decision> {
    if !changes(script, "PATH") {
        return None;
    }
    let unsafe_folder = |folder: &str| {
        let passing =
            ["/tmp", "/var/tmp", "/dev/shm"].iter().any(|passing| Path::new(folder).starts_with(passing));
        let inside = root.is_some_and(|root| Path::new(folder).starts_with(root));
        !folder.starts_with(['/', '~'])
            || folder.contains(UNKNOWN)
            || folder.contains("..")
            || passing
            || inside
    };
    let values = script.values.get("PATH").into_iter().flatten().map(folders_of);
    let mut all: Vec<String> =
        values.flat_map(|value| value.split(':').map(str::to_owned).collect::<Vec<_>>()).collect();
    all.retain(|folder| folder != KEEPS);
    if !all.is_empty() && !all.iter().any(|folder| unsafe_folder(folder)) {
        return None;
    }
    let why = "PATH decides which program later lines run, so no folder of the workspace comes into it; `PATH=… command` sets it for one command";
    meaning(why)
}

/// Stands for the earlier value of PATH.
const KEEPS: &str = "$PATH";

/// A value of PATH, with the home folder as `~`.
fn folders_of(value: &Word) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) => text.to_string(),
        Piece::Variable { name, .. } if &**name == "PATH" => KEEPS.to_owned(),
        Piece::Variable { name, .. } if &**name == "HOME" => "~".to_owned(),
        Piece::Tilde(user) if user.is_empty() => "~".to_owned(),
        _ => UNKNOWN.to_string(),
    };
    value.pieces.iter().map(piece).collect()
}

fn folders(script: &Script) -> Option<Decision> {
    let name = KEPT.iter().find(|name| changes(script, name))?;
    let why = format!(
        "{name} decides which folder later lines mean, so it stays as it is; `{name}=… command` sets it for one command"
    );
    Some(decision(Verdict::Deny, "guard.home-variable", &why))
}

fn changes(script: &Script, name: &str) -> bool {
    let named = |command: &SimpleCommand| {
        let is_naming = command.program_name().is_some_and(|program| NAMING.contains(&program));
        is_naming && command.words.iter().skip(1).any(|word| word.literal() == Some(name))
    };
    if script.commands.iter().any(named) {
        return true;
    }
    let Some(values) = script.values.get(name) else { return false };
    let lent: usize = script.commands.iter().map(|command| lent_count(command, name)).sum();
    lent == 0 || values.len() > lent
}

/// The number of values that a command is given for itself alone.
fn lent_count(command: &SimpleCommand, name: &str) -> usize {
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
