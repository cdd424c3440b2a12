//! Notes about transactions that have begun, so that a death in the middle leaves no mixture of old and new files.
//!
//! A note lies in a folder that the host names, outside of the workspace, and is locked while its writer lives. It is
//! written before the first private file, and gets the line `go` before the first name changes; with several files
//! that is synced. The next process that opens the workspace finds the note unlocked and checks each file. If all are
//! new, the transaction was complete except for the cleanup. Otherwise the new ones get their old content back, from
//! the old file itself. Rolling back was chosen over finishing because no caller was ever told that the change was
//! made.
//!
//! A file that others changed since is neither old nor new; it is left alone and its old content stays next to it.
//! Notes of other roots are left to the processes that open those.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_protocol::Digest;

use super::read_range;
use super::transaction_folder::{Hold, TransactionFolder, private_name};
use crate::WorkspaceError;
use crate::guard::{Guard, GuardedPath};

const HEAD: &str = "lathe intent 1";
const GO: &str = "go";
const ENDING: &str = "intent";
/// The age after which an unfinished note is abandoned.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// One file of a transaction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) root: PathBuf,
    pub(super) below: PathBuf,
    pub(super) new_name: OsString,
    pub(super) old_name: OsString,
    /// Content before and after; unknown for a single file.
    pub(super) old: Option<Digest>,
    pub(super) new: Option<Digest>,
    pub(super) had: bool,
    pub(super) has: bool,
    /// The number of folders above it that are made for it.
    pub(super) folders: usize,
}

/// A note on the disk. It is removed with this value.
pub(super) struct Intent {
    file: File,
    path: PathBuf,
    folder: PathBuf,
    several: bool,
}

impl Intent {
    pub(super) fn begin(folder: &Path, noted: &[Noted]) -> Result<Self, WorkspaceError> {
        let mut text = format!("{HEAD}\n");
        for one in noted {
            text.push_str(&line(one));
        }
        let path = folder.join(private_name(ENDING));
        let draft = path.with_extension("draft");
        let write = || {
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&draft)?;
            // The lock is taken before the file gets the name by which others find it.
            file.lock()?;
            file.write_all(text.as_bytes())?;
            fs::rename(&draft, &path)?;
            Ok(file)
        };
        let file = write().map_err(|error| {
            let _ = fs::remove_file(&draft);
            WorkspaceError::io(folder, error)
        })?;
        Ok(Self { file, path, folder: folder.to_owned(), several: noted.len() > 1 })
    }

    /// Records that from now on names change. A single file changes in one step and needs no such record.
    pub(super) fn commit(&mut self) -> Result<(), WorkspaceError> {
        if !self.several {
            return Ok(());
        }
        let go = format!("{GO}\n");
        let write = self.file.write_all(go.as_bytes()).and_then(|()| self.file.sync_all());
        let synced = write.and_then(|()| File::open(&self.folder)?.sync_all());
        synced.map_err(|error| WorkspaceError::io(&self.folder, error))
    }
}

impl Drop for Intent {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Rolls back or finishes transactions that others left unfinished in these roots. Returns the files whose old
/// content was restored.
pub(super) fn recover(guard: &Arc<Guard>, folder: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let failed = |error| WorkspaceError::io(folder, error);
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    let mut put_back = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path.extension().and_then(OsStr::to_str) {
            Some(ENDING) => {
                // A note that cannot be followed now is left for the next time.
                if let Ok(Some(files)) = follow(guard, &path) {
                    put_back.extend(files);
                    let _ = fs::remove_file(&path);
                }
            }
            Some("draft") => {
                let age = fs::metadata(&path).ok().and_then(|found| found.modified().ok()?.elapsed().ok());
                if age.is_some_and(|age| age > FORGOTTEN) {
                    let _ = fs::remove_file(&path);
                }
            }
            Some(_) | None => {}
        }
    }
    Ok(put_back)
}

/// None if the note is not ours to follow.
fn follow(guard: &Arc<Guard>, path: &Path) -> io::Result<Option<Vec<PathBuf>>> {
    let mut file = File::options().read(true).write(true).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // Its writer may have finished while we opened it.
    if file.metadata()?.nlink() == 0 {
        return Ok(None);
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let Some((noted, go)) = parse(&text) else {
        // Torn by a crash of the machine, so it never got the line `go`.
        return Ok(Some(Vec::new()));
    };
    let mut left = Vec::with_capacity(noted.len());
    for one in &noted {
        match Left::look(guard, one)? {
            Some(found) => left.push(found),
            None => return Ok(None),
        }
    }
    let over = left.iter().all(|left| left.state != State::Old);
    let mut put_back = Vec::new();
    if go && !over {
        for left in left.iter().rev().filter(|left| left.state == State::New) {
            left.roll_back()?;
            put_back.push(guard.real(&left.place));
        }
    }
    for left in left.iter().rev() {
        left.tidy(go && over)?;
    }
    Ok(Some(put_back))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Old,
    New,
    /// Changed by others since.
    Foreign,
}

/// The remains of a dead transaction for one file.
struct Left<'a> {
    noted: &'a Noted,
    place: GuardedPath,
    name: OsString,
    /// None if the folder itself is missing.
    folder: Option<TransactionFolder>,
    state: State,
    guard: &'a Arc<Guard>,
}

impl<'a> Left<'a> {
    /// None if the file lies in none of our roots.
    fn look(guard: &'a Arc<Guard>, noted: &'a Noted) -> io::Result<Option<Self>> {
        let Some(place) = guard.path_from_note(&noted.root, noted.below.clone()) else {
            return Ok(None);
        };
        let Some((parent, name)) = place.parent() else {
            return Ok(None);
        };
        let name = name.to_owned();
        let folder = match TransactionFolder::open(guard, parent, Hold::Closed) {
            Ok(folder) => Some(folder),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let state = folder.as_ref().map_or(State::Old, |folder| state(folder, &name, noted));
        Ok(Some(Self { noted, place, name, folder, state, guard }))
    }

    fn roll_back(&self) -> io::Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        if !self.noted.had {
            return folder.unlink(&self.name);
        }
        if !self.noted.has {
            return folder.rename_new(&self.noted.new_name, &self.name);
        }
        for old in [&self.noted.old_name, &self.noted.new_name] {
            if digest(folder, old) == self.noted.old {
                folder.rename(old, &self.name)?;
                return folder.sync();
            }
        }
        Err(io::Error::from(io::ErrorKind::NotFound))
    }

    /// Removes private files, and folders that were made for nothing.
    fn tidy(&self, over: bool) -> io::Result<()> {
        let Some(folder) = &self.folder else { return self.tidy_folders(over) };
        for name in [&self.noted.new_name, &self.noted.old_name] {
            let holds_old =
                self.noted.has && self.noted.old.is_some() && digest(folder, name) == self.noted.old;
            let only_one = self.state == State::Foreign && (holds_old || !self.noted.has);
            if !only_one && folder.found(name).is_ok() {
                folder.unlink(name)?;
            }
        }
        self.tidy_folders(over)
    }

    fn tidy_folders(&self, over: bool) -> io::Result<()> {
        let mut at = self.place.clone();
        for _ in 0..self.noted.folders {
            let Some((parent, _)) = at.parent() else { break };
            let Some((above, name)) = parent.parent() else { break };
            if !over && let Ok(above) = TransactionFolder::open(self.guard, above, Hold::Closed) {
                // A folder that is not empty stays.
                let _ = above.remove_folder(name);
            }
            at = parent;
        }
        Ok(())
    }
}

fn state(folder: &TransactionFolder, name: &OsStr, noted: &Noted) -> State {
    let there = folder.found(name).is_ok();
    let private = folder.found(&noted.new_name).is_ok();
    match (noted.had, noted.has) {
        // A file where none was: its private name became its own.
        (false, _) if private || !there => State::Old,
        (false, _) if digest(folder, name) == noted.new => State::New,
        (false, _) => State::Foreign,
        // A removal: its own name became a private one.
        (true, false) if private && there => State::Foreign,
        (true, false) if there => State::Old,
        (true, false) => State::New,
        (true, true) => match digest(folder, name) {
            now if now == noted.old => State::Old,
            now if now == noted.new => State::New,
            Some(_) | None => State::Foreign,
        },
    }
}

fn digest(folder: &TransactionFolder, name: &OsStr) -> Option<Digest> {
    let (file, found) = folder.file(name).ok()?;
    Some(Digest::of(&read_range(&file, &found, 0..u64::MAX).ok()?))
}

fn line(noted: &Noted) -> String {
    let digest = |digest: &Option<Digest>| digest.as_ref().map_or("-", |digest| digest.as_str()).to_owned();
    let fields = [
        hex(noted.root.as_os_str()),
        hex(noted.below.as_os_str()),
        hex(&noted.new_name),
        hex(&noted.old_name),
        digest(&noted.old),
        digest(&noted.new),
        u8::from(noted.had).to_string(),
        u8::from(noted.has).to_string(),
        noted.folders.to_string(),
    ];
    fields.join(" ") + "\n"
}

/// The files of a note; true if names may have changed.
fn parse(text: &str) -> Option<(Vec<Noted>, bool)> {
    let mut lines = text.strip_suffix('\n')?.split('\n');
    if lines.next()? != HEAD {
        return None;
    }
    let mut noted = Vec::new();
    for line in lines {
        if line == GO {
            return Some((noted, true));
        }
        let fields: Vec<&str> = line.split(' ').collect();
        let [root, below, new_name, old_name, old, new, had, has, folders] = fields.as_slice() else {
            return None;
        };
        noted.push(Noted {
            root: unhex(root)?.into(),
            below: unhex(below)?.into(),
            new_name: unhex(new_name)?,
            old_name: unhex(old_name)?,
            old: Digest::parse(old),
            new: Digest::parse(new),
            had: *had == "1",
            has: *has == "1",
            folders: folders.parse().ok()?,
        });
    }
    Some((noted, false))
}

fn hex(text: &OsStr) -> String {
    text.as_bytes().iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn unhex(text: &str) -> Option<OsString> {
    let byte = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(byte).collect();
    Some(OsString::from_vec(bytes?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_read_as_it_was_written_and_a_torn_one_is_none() {
        let noted = Noted {
            root: "/w".into(),
            below: PathBuf::from(OsString::from_vec(b"a b\n\xff".to_vec())),
            new_name: ".lathe-1.tmp".into(),
            old_name: ".lathe-2.old".into(),
            old: Some(Digest::of(b"old")),
            new: None,
            had: true,
            has: false,
            folders: 2,
        };
        let text = format!("{HEAD}\n{}", line(&noted));
        for cut in 0..text.len() {
            let parsed = parse(&text[..cut]);
            assert!(parsed.is_none_or(|(noted, go)| noted.is_empty() && !go), "{cut}");
        }
        let text = format!("{text}{GO}\n");
        assert_eq!(parse(&text), Some((vec![noted], true)));
    }
}
