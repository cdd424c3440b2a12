//! Lathe run by a model in a line of its own session: a command of Lathe that only reads is a program like any other;
//! all others are for the user only. A second agent in another mode, a server, a key, trust in a project: each of
//! them would lift this gate.

use lathe_bash::{Piece, Script, SimpleCommand, Word};
use lathe_protocol::{Decision, Verdict};

use crate::gate::decision;
use crate::guard::Spellings;
use crate::losses::fits;
use crate::places::{UNKNOWN, Values};
use crate::possible_commands::{PossibleCommands, base};
use crate::runtime_names::possible_names;

const PROGRAM: &str = "lathe";

/// Commands that only show something; with a second word, only these of a group.
const READS: [(&str, &[&str]); 15] = [
    ("help", &[]),
    ("sessions", &[]),
    ("show", &[]),
    ("diff", &[]),
    ("watch", &[]),
    ("tools", &[]),
    ("graph", &[]),
    ("cost", &[]),
    ("config", &[]),
    ("show-config", &[]),
    ("models", &[]),
    ("doctor", &[]),
    ("completions", &[]),
    ("policy", &["check", "list", "replay", "help"]),
    ("trust", &["list", "help"]),
];

/// The other commands, which are recognised by these names in any text.
const CHANGES: [&str; 15] = [
    "run",
    "demo",
    "interactive",
    "resume",
    "fork",
    "rewind",
    "undo",
    "replay",
    "tool",
    "shell",
    "serve",
    "connect",
    "gc",
    "auth",
    "quarantine",
];

/// Variables that are given each other's values in a longer chain than this are not followed.
const DEEPEST: usize = 8;

/// Tells whether a line has the name of Lathe in it, with any quotes between its letters.
pub(crate) fn is_named(line: &str) -> bool {
    let plain: String = line.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    plain.contains(PROGRAM)
}

/// The denial of a command that runs Lathe to do more than show something; with `guesses`, also of one that has such a
/// command in its words and may run it.
pub(crate) fn denied(
    script: &Script,
    command: &SimpleCommand,
    values: &Values<'_>,
    behind: &PossibleCommands,
    guesses: bool,
) -> Option<Decision> {
    let spellings = Spellings::of(command, values);
    let mut programs = spellings.each();
    let hidden = command.words.first().is_some_and(|first| may_print(script, first, 0));
    let runs = programs.iter_mut().any(|spelled| {
        let is_lathe = hidden || is_lathe(spelled.name, command);
        is_lathe && !reads(&spelled.words, is_fed(script, command))
    });
    let named = || {
        behind.copied.iter().any(|program| program == PROGRAM) || behind.rows.iter().any(|row| in_row(row))
    };
    (runs || (guesses && named())).then(|| {
        let why = "this command of Lathe starts a session or a server, or changes what Lathe keeps; only the user runs it";
        decision(Verdict::Deny, "guard.lathe", why)
    })
}

/// Tells whether a program is Lathe by its name, by a pattern, or as the program of a process.
fn is_lathe(name: &str, command: &SimpleCommand) -> bool {
    let program = command.words.first().map(Word::show).unwrap_or_default();
    name == PROGRAM || fits(name, PROGRAM, false) || (name == "exe" && program.contains("/proc/"))
}

/// Tells whether a word may become the name of Lathe when it runs: `$(which lathe)`, `l=$(command -v lathe); $l`.
fn may_print(script: &Script, word: &Word, depth: usize) -> bool {
    word.pieces.iter().any(|piece| match piece {
        Piece::Substitution(Some(text)) => {
            possible_names(text).any(|part| base(part) == PROGRAM || part.ends_with("/exe"))
        }
        Piece::Variable { name, .. } | Piece::Operator { name, .. } if depth < DEEPEST => {
            let values = script.values.get(name.trim_start_matches('!')).into_iter().flatten();
            values
                .into_iter()
                .any(|value| base(&value.show()) == PROGRAM || may_print(script, value, depth + 1))
        }
        Piece::Substitution(None)
        | Piece::Variable { .. }
        | Piece::Operator { .. }
        | Piece::Text(_)
        | Piece::Glob(_)
        | Piece::Tilde(_)
        | Piece::Process(_)
        | Piece::Arithmetic { .. }
        | Piece::Brace { .. } => false,
    })
}

/// Tells whether more words come to a command through a pipe.
fn is_fed(script: &Script, command: &SimpleCommand) -> bool {
    let wrapper = command.wrapper.and_then(|behind| script.commands.get(behind)?.program_name());
    matches!(wrapper, Some("xargs" | "parallel"))
}

/// Tells whether these words of Lathe only show something. `fed` is true if others follow that are not known.
fn reads(words: &[&str], fed: bool) -> bool {
    let is_help = |word: &&str| matches!(*word, "-h" | "--help");
    let Some((sub, rest)) = words.split_first() else { return !fed };
    if is_help(sub) || matches!(*sub, "-V" | "--version") {
        return true;
    }
    let known = READS.iter().find(|(name, _)| name == sub);
    let second = rest.first().copied();
    match known {
        Some((_, [])) => true,
        Some((_, subs)) => match second {
            Some(second) => subs.contains(&second) || is_help(&second),
            None => !fed,
        },
        None => {
            // `lathe quarantine list`; `lathe serve --help`
            let listed = *sub == "quarantine" && second == Some("list");
            let asked =
                !sub.contains(UNKNOWN) && !sub.starts_with('-') && second.is_some_and(|word| is_help(&word));
            listed || asked
        }
    }
}

/// Tells whether a command of Lathe that changes something stands in a row of words.
fn in_row(row: &[String]) -> bool {
    row.iter().enumerate().filter(|(_, word)| base(word) == PROGRAM).any(|(index, _)| {
        let words: Vec<&str> = row.iter().skip(index + 1).map(String::as_str).collect();
        let first = words.first().copied().unwrap_or_default();
        let group = matches!(first, "policy" | "trust") && words.len() > 1;
        (CHANGES.contains(&first) || group) && !reads(&words, false)
    })
}
