//! Files that were restored from an entry of a session, and the undo of that.
//!
//! An undo restores what a call removed; the undo of that undo removes it again. So an entry that was restored stays
//! as a note of the path and the look of each file or folder. The undo moves each one that still has this look into
//! the entry, which is then an ordinary one again; those that others changed meanwhile are left alone. The note is
//! written before the first one is moved, so that a killed process leaves nothing without a record.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lathe_blobs::{Blobs, Durable, replace};
use lathe_protocol::Digest;
use serde::{Deserialize, Serialize};

use crate::ChangesError;
use crate::anypath;
use crate::quarantine::{ENTRY, Quarantine, QuarantineEntry};
use crate::refs::{self, KeptRef};
use crate::restore_files::{RestoreReport, move_into_entry, redirected};

const RETURNED: &str = "returned.json";

/// An entry that was restored.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RestoredEntry {
    pub kept: QuarantineEntry,
    moved: Vec<Moved>,
    refs: Vec<KeptRef>,
}

/// One file or folder that was moved to its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Moved {
    /// Its location in the entry.
    #[serde(with = "anypath::one")]
    slot: PathBuf,
    #[serde(with = "anypath::one")]
    path: PathBuf,
    /// The look of the file, or of a folder with all its content.
    look: Digest,
}

impl RestoredEntry {
    /// The paths, and names of git, that an undo of the restore removes.
    pub fn names(&self) -> Vec<String> {
        let paths = self.moved.iter().map(|moved| moved.path.display().to_string());
        let names = self.refs.iter().filter(|kept| kept.name != "HEAD").map(|kept| kept.name.clone());
        paths.chain(names).collect()
    }
}

impl Quarantine {
    /// Entries that were restored and can be removed again.
    pub fn restored(&self) -> Vec<RestoredEntry> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut all: Vec<RestoredEntry> = folders.filter_map(|folder| read(&folder.path())).collect();
        all.sort_by(|a, b| (a.kept.at, &a.kept.id).cmp(&(b.kept.at, &b.kept.id)));
        all
    }

    /// Restores an entry of a session, by an act that comes after the event `by`. The act may continue an interrupted
    /// one.
    pub fn restore_undoably(&self, id: &str, by: u64, blobs: &Blobs) -> Result<RestoreReport, ChangesError> {
        let folder = self.folder.join(id);
        let failed = |error| ChangesError::io("note what is put back from", &folder, error);
        let Some(mut kept) = self.entries().into_iter().find(|kept| kept.id == id) else {
            return Ok(RestoreReport::default());
        };
        if kept.acts.last() != Some(&by) {
            kept.acts.push(by);
        }
        let mut moved = read(&folder).map_or_else(Vec::new, |earlier| earlier.moved);
        moved.retain(|moved| !folder.join(&moved.slot).exists());
        let (earlier, refs) = (moved.clone(), kept.refs.clone());
        moved.extend(
            self.slots(&kept).into_iter().filter_map(|(ours, path)| note_move(&folder, &ours, &ours, path)),
        );
        write(&folder, &RestoredEntry { kept: kept.clone(), moved, refs: refs.clone() }).map_err(failed)?;
        let mut back = self.restore_keeping(&kept, blobs)?;
        let mut moved = earlier;
        for (ours, path) in &back.moved {
            match note_move(&folder, ours, path, path.clone()) {
                Some(one) => moved.push(one),
                None => back.stays.push(path.display().to_string()),
            }
        }
        let is_left = |kept: &KeptRef| back.left.iter().any(|(name, _)| *name == kept.name);
        let refs: Vec<KeptRef> = refs.into_iter().filter(|kept| !is_left(kept)).collect();
        write(&folder, &RestoredEntry { kept: kept.clone(), moved, refs }).map_err(failed)?;
        if back.left.is_empty() {
            refs::unpin_all(&kept);
            fs::remove_file(folder.join(ENTRY)).map_err(failed)?;
        }
        Ok(back)
    }

    /// Removes again what was restored, by an act that comes after the event `by`.
    pub fn undo_restore(&self, id: &str, by: u64) -> io::Result<RestoreReport> {
        let folder = self.folder.join(id);
        let Some(RestoredEntry { mut kept, moved, refs }) = read(&folder) else {
            return Ok(RestoreReport::default());
        };
        if kept.acts.last() != Some(&by) {
            kept.acts.push(by);
        }
        // From here on it is an entry, even if a later step fails.
        replace(
            &folder.join(ENTRY),
            &serde_json::to_vec_pretty(&kept).map_err(io::Error::other)?,
            Durable::Content,
        )?;
        let mut back = RestoreReport::default();
        let (done, left) = refs::remove_restored(&kept.folder, &kept.id, &refs);
        back.done.extend(done);
        back.left.extend(left);
        for one in moved.iter().rev() {
            let slot = folder.join(&one.slot);
            let shown = one.path.display().to_string();
            // An earlier attempt moved it, or it was removed by others.
            if slot.symlink_metadata().is_ok() || one.path.symlink_metadata().is_err() {
                continue;
            }
            let why = match redirected(&one.path) {
                Some(why) => Some(why),
                None if fingerprint(&one.path, is_git(&one.path)) != one.look => {
                    Some("somebody changed it meanwhile".to_owned())
                }
                None => move_into_entry(&one.path, &slot).err().map(|error| error.to_string()),
            };
            match why {
                None => back.done.push(shown),
                Some(why) => back.left.push((shown, why)),
            }
        }
        fs::remove_file(folder.join(RETURNED))?;
        if back.done.is_empty() && self.slots(&kept).is_empty() && refs.is_empty() {
            // Nothing of the entry is left.
            self.remove(&kept)?;
        }
        Ok(back)
    }
}

/// The note of one file or folder, with the look of it at `now`.
fn note_move(folder: &Path, ours: &Path, now: &Path, path: PathBuf) -> Option<Moved> {
    let slot = ours.strip_prefix(folder).ok()?.to_owned();
    Some(Moved { look: fingerprint(now, is_git(&path)), slot, path })
}

/// The look of a file or folder: its content by name, size, time and inode. The times of folders are left out, and so
/// is git's index, which git writes even when it only reads a repository.
fn fingerprint(path: &Path, is_repository: bool) -> Digest {
    let mut lines = Vec::new();
    let mut open = vec![(path.to_owned(), PathBuf::new())];
    while let Some((at, rel)) = open.pop() {
        let Ok(found) = at.symlink_metadata() else { continue };
        if is_repository && rel == Path::new("index") {
            continue;
        }
        let name = rel.as_os_str().as_encoded_bytes().to_vec();
        if found.is_dir() {
            lines.push((name, format!("folder {:o}", found.mode() & 0o7777)));
            let inside = fs::read_dir(&at).into_iter().flatten().flatten();
            open.extend(inside.map(|entry| (entry.path(), rel.join(entry.file_name()))));
        } else {
            let times = format!("{}.{}", found.mtime(), found.mtime_nsec());
            lines.push((name, format!("{} {} {:o} {times}", found.ino(), found.len(), found.mode())));
        }
    }
    lines.sort();
    let mut text = Vec::new();
    for (name, words) in lines {
        text.extend(name);
        text.extend(format!("\0{words}\0").into_bytes());
    }
    Digest::of(&text)
}

fn is_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == ".git")
}

fn read(folder: &Path) -> Option<RestoredEntry> {
    serde_json::from_slice(&fs::read(folder.join(RETURNED)).ok()?).ok()
}

fn write(folder: &Path, returned: &RestoredEntry) -> io::Result<()> {
    replace(
        &folder.join(RETURNED),
        &serde_json::to_vec(returned).map_err(io::Error::other)?,
        Durable::Content,
    )
}
