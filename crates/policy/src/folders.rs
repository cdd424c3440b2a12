//! Where the commands of a line run, as far as that is certain: an answer for `touch k` is one for `k` in that folder.
//!
//! The guard wants every folder that a line may come to, and guesses; what is remembered may not rest on a guess. A line
//! that leaves its folder is asked about anyway (R4), so nothing is lost by remembering nothing for it.

use std::path::Path;

use lathe_bash::Script;
use lathe_protocol::Effects;

/// Commands by which a line leaves its folder.
const MOVES: [&str; 3] = ["cd", "pushd", "popd"];

/// The folder that every command of a line runs in. None where that is not certain.
pub(crate) fn of(here: Option<&Path>, script: &Script) -> Option<String> {
    let mut programs = script.commands.iter().filter_map(|command| command.program_name());
    if programs.any(|program| MOVES.contains(&program)) {
        return None;
    }
    here?.to_str().map(str::to_owned)
}

/// Whether what a command does depends on the folder it runs in.
pub(crate) fn matter(effects: &Effects) -> bool {
    let mut paths = effects.reads.iter().chain(&effects.writes);
    effects.opaque || !effects.programs.is_empty() || paths.any(|path| !path.starts_with('/'))
}
