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
    let goes = |command: &&SimpleCommand| command.program_name().is_some_and(|name| MOVES.contains(&name));
    if script.commands.iter().filter(goes).count() < 2 || gate.switched.folder_variables {
        return None;
    }
    let plain = line.replace("&&", "").replace("2>&1", "").replace("&>", "");
    if plain.contains(['&', ';', '\n', '`', '(', ')', '{', '}', '!', '\\']) || line.contains("||") {
        return None;
    }
    let (mut folder, mut folders, mut commands) =
        (gate.here.as_ref()?.to_str()?.to_owned(), Vec::new(), Vec::new());
    for part in line.split("&&") {
        let part = lathe_bash::read(part);
        part.floors.is_empty().then_some(())?;
        folders.extend(part.commands.iter().map(|_| folder.clone()));
        if part.commands.iter().any(|command| goes(&command)) {
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
            is_one.then_some(())?;
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
