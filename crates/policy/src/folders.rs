//! The folders in which the commands of a line run, as far as they are certain: an approval of `touch k` is one for
//! `k` in that folder.
//!
//! The guard wants every folder that a line may come to, and guesses; a standing approval may not rest on a guess. A
//! line that leaves its folder is asked about anyway (R4), so nothing is lost by remembering nothing for it.

use std::path::Path;

use lathe_bash::{Script, SimpleCommand, Word};
use lathe_protocol::Effects;

use crate::gate::{Gate, normal};

/// Commands by which a line leaves its folder.
const MOVES: [&str; 3] = ["cd", "pushd", "popd"];

/// The folder that every command of a line runs in; `None` where that is not certain.
pub(crate) fn certain_folder(here: Option<&Path>, script: &Script) -> Option<String> {
    let mut programs = script.commands.iter().filter_map(|command| command.program_name());
    if programs.any(|program| MOVES.contains(&program)) {
        return None;
    }
    here?.to_str().map(str::to_owned)
}

/// The folder that each command surely runs in, for a line whose commands are joined by `&&` alone and which changes
/// folders more than once: a later command runs only where each one before it succeeded. `None` for any other line.
pub(crate) fn certain_folders(gate: &Gate, line: &str, script: &Script) -> Option<Vec<String>> {
    if script.commands.iter().filter(|command| goes(command)).count() < 2 || line.contains([';', '\n']) {
        return None;
    }
    followed_folders(gate, line, script, |_, _| true)
}

/// The folder that each command runs in if every `cd` succeeds, for a line of commands one after the other. Unless they
/// are joined by `&&`, a `cd` must lead to a folder that is there, or that the line makes. `None` for any other line.
pub(crate) fn likely_folders(gate: &Gate, line: &str, script: &Script) -> Option<Vec<String>> {
    let made = |to: &str| {
        let makers = script.commands.iter().filter(|command| command.program_name() == Some("mkdir"));
        let mut made = makers.flat_map(|command| command.words.iter().skip(1)).filter_map(Word::literal);
        made.any(|made| Path::new(made).starts_with(to))
    };
    let goes_on = line.contains([';', '\n']);
    let is_there = |to: &str, folder: &Path| {
        !goes_on || made(to) || gate.disk.get().is_none_or(|disk| disk.exists(folder))
    };
    script.commands.iter().any(goes).then(|| followed_folders(gate, line, script, is_there))?
}

fn goes(command: &SimpleCommand) -> bool {
    command.program_name().is_some_and(|name| MOVES.contains(&name))
}

/// The folder of each command, for commands that are joined by `&&`, `;` or a line feed.
fn followed_folders(
    gate: &Gate,
    line: &str,
    script: &Script,
    is_there: impl Fn(&str, &Path) -> bool,
) -> Option<Vec<String>> {
    let plain = line.replace("&&", "").replace("2>&1", "").replace("&>", "");
    let signs = plain.contains(['&', '`', '(', ')', '{', '}', '!', '\\']) || line.contains("||");
    if signs || gate.switched.folder_variables {
        return None;
    }
    let (mut folder, mut folders, mut commands) =
        (gate.here.as_ref()?.to_str()?.to_owned(), Vec::new(), Vec::new());
    for part in line.split("&&").flat_map(|part| part.split([';', '\n'])) {
        let part = lathe_bash::read(part);
        part.floors.is_empty().then_some(())?;
        folders.extend(part.commands.iter().map(|_| folder.clone()));
        if part.commands.iter().any(goes) {
            let [command] = part.commands.as_slice() else { return None };
            let words: Vec<&str> = command.words.iter().map(Word::literal).collect::<Option<_>>()?;
            let ["cd", to] = words.as_slice() else { return None };
            if to.is_empty() || to.starts_with(['-', '~']) || !command.redirects.is_empty() {
                return None;
            }
            folder = if to.starts_with('/') { (*to).to_owned() } else { format!("{folder}/{to}") };
            // After a link, `..` has two meanings.
            let (real, named) = (Path::new(&folder), normal(Path::new(&folder)));
            let is_one = gate.disk.get().is_none_or(|disk| disk.real(real) == disk.real(&named));
            (is_one && is_there(to, &named)).then_some(())?;
            folder = named.to_str()?.to_owned();
        }
        commands.extend(part.commands);
    }
    let same = |(one, other): (&SimpleCommand, &SimpleCommand)| {
        one.words == other.words && !one.broken && !other.broken
    };
    let whole = commands.len() == script.commands.len();
    (whole && commands.iter().zip(&script.commands).all(same)).then_some(folders)
}

/// Tells whether the effects of a command depend on the folder it runs in.
pub(crate) fn depends_on_folder(effects: &Effects) -> bool {
    let mut paths = effects.reads.iter().chain(&effects.writes);
    effects.opaque || !effects.programs.is_empty() || paths.any(|path| !path.starts_with('/'))
}
