//! Entries of the quarantine whose line was never finished, because its process was killed.
//!
//! Before a line runs, what is kept for it is written down in its entry, and the file stays locked for as long as the
//! process lives. An entry with such a file that nobody holds is finished by the next look, as its own process would have
//! done: what is still there is let go, the rest is an entry like any other. Names of git's (branches, stashes) that the
//! line dropped are not looked for then; their commits stay pinned under `refs/lathe/kept`.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::quarantine::{Keeping, Note};

/// The file that says what a line that has not ended may take away.
const BEGUN: &str = "begun.json";

#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    note: Note,
    trees: Vec<PathBuf>,
    only_gone: bool,
    /// The folder beneath `baselines` with the copies of the tracker, where no session has them.
    scratch: Option<String>,
}

/// Writes down what is kept for a line. The file is locked until it is dropped.
pub(crate) fn write(
    folder: &Path,
    note: &Note,
    (trees, only_gone): (&[PathBuf], bool),
    scratch: Option<String>,
) -> io::Result<File> {
    let begun = Begun { note: note.clone(), trees: trees.to_vec(), only_gone, scratch };
    let mut file = File::options().write(true).create_new(true).open(folder.join(BEGUN))?;
    file.try_lock().map_err(io::Error::other)?;
    file.write_all(&serde_json::to_vec(&begun).map_err(io::Error::other)?)?;
    file.sync_data()?;
    Ok(file)
}

/// Removes the note of a line that has ended.
pub(crate) fn remove(folder: &Path) {
    let _ = fs::remove_file(folder.join(BEGUN));
}

/// A line that was begun by a process that is gone.
#[derive(Debug)]
pub struct Unfinished {
    pub keeping: Keeping,
    pub note: Note,
    pub scratch: Option<String>,
    /// Held while it is finished.
    _lock: File,
}

/// What is left in the folder of an entry, if its process is gone.
pub(crate) fn left(folder: &Path) -> Option<Unfinished> {
    let path = folder.join(BEGUN);
    let file = File::open(&path).ok()?;
    file.try_lock().ok()?;
    // Another process may have finished it before the lock was had.
    let Begun { note, trees, only_gone, scratch } = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let id = folder.file_name()?.to_str()?.to_owned();
    let keeping = Keeping::left(folder.to_owned(), id, trees, only_gone);
    Some(Unfinished { keeping, note, scratch, _lock: file })
}
