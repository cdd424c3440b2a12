//! Files that were put back from an entry of a session, and the way to take it away again.
//!
//! An undo puts back what a call took away; the way back of that undo takes it away once more. So an entry that was put back
//! stays as a note of where each thing went and how it looked there. Taking it away again moves each thing that still looks
//! so into the entry, which is one like any other then; what somebody changed meanwhile is left alone. The note is written
//! before the first thing is moved, so that a killed process leaves nothing that nobody knows of.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lathe_blobs::{Blobs, Durable, replace};
use lathe_protocol::Digest;
use serde::{Deserialize, Serialize};

use crate::ChangesError;
use crate::anypath;
use crate::putback::{PutBack, behind_link, take_from};
use crate::quarantine::{ENTRY, Kept, Quarantine};
use crate::refs::{self, KeptRef};

const RETURNED: &str = "returned.json";

/// An entry that was put back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Returned {
    pub kept: Kept,
    moved: Vec<Moved>,
    refs: Vec<KeptRef>,
}

/// One thing that went back to its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Moved {
    /// Its place in the entry.
    #[serde(with = "anypath::one")]
    slot: PathBuf,
    #[serde(with = "anypath::one")]
    path: PathBuf,
    /// The look of it, with all that is in it.
    look: Digest,
}

impl Returned {
    /// The paths, and names of git's, that are taken away again.
    pub fn names(&self) -> Vec<String> {
        let paths = self.moved.iter().map(|moved| moved.path.display().to_string());
        let names = self.refs.iter().filter(|kept| kept.name != "HEAD").map(|kept| kept.name.clone());
        paths.chain(names).collect()
    }
}

impl Quarantine {
    /// Entries that were put back and can be taken away again.
    pub fn returned(&self) -> Vec<Returned> {
        let folders = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut all: Vec<Returned> = folders.filter_map(|folder| read(&folder.path())).collect();
        all.sort_by(|a, b| (a.kept.at, &a.kept.id).cmp(&(b.kept.at, &b.kept.id)));
        all
    }

    /// Puts an entry of a session back, by an act that comes after this event. The act may be one that was cut off.
    pub fn give_back(&self, id: &str, by: u64, blobs: &Blobs) -> Result<PutBack, ChangesError> {
        let folder = self.folder.join(id);
        let failed = |error| ChangesError::io("note what is put back from", &folder, error);
        let Some(mut kept) = self.entries().into_iter().find(|kept| kept.id == id) else {
            return Ok(PutBack::default());
        };
        if kept.acts.last() != Some(&by) {
            kept.acts.push(by);
        }
        let mut moved = read(&folder).map_or_else(Vec::new, |earlier| earlier.moved);
        moved.retain(|moved| !folder.join(&moved.slot).exists());
        let (earlier, refs) = (moved.clone(), kept.refs.clone());
        moved.extend(
            self.places(&kept).into_iter().filter_map(|(ours, path)| noted(&folder, &ours, &ours, path)),
        );
        write(&folder, &Returned { kept: kept.clone(), moved, refs: refs.clone() }).map_err(failed)?;
        let mut back = self.put_back(&kept, blobs)?;
        let mut moved = earlier;
        for (ours, path) in &back.moved {
            match noted(&folder, ours, path, path.clone()) {
                Some(one) => moved.push(one),
                None => back.stays.push(path.display().to_string()),
            }
        }
        let is_left = |kept: &KeptRef| back.left.iter().any(|(name, _)| *name == kept.name);
        let refs: Vec<KeptRef> = refs.into_iter().filter(|kept| !is_left(kept)).collect();
        write(&folder, &Returned { kept: kept.clone(), moved, refs }).map_err(failed)?;
        if back.left.is_empty() {
            refs::unpin_all(&kept);
            fs::remove_file(folder.join(ENTRY)).map_err(failed)?;
        }
        Ok(back)
    }

    /// Takes away again what was put back, by an act that comes after this event.
    pub fn take_again(&self, id: &str, by: u64) -> io::Result<PutBack> {
        let folder = self.folder.join(id);
        let Some(Returned { mut kept, moved, refs }) = read(&folder) else { return Ok(PutBack::default()) };
        if kept.acts.last() != Some(&by) {
            kept.acts.push(by);
        }
        // From here on it is an entry, whatever happens.
        replace(
            &folder.join(ENTRY),
            &serde_json::to_vec_pretty(&kept).map_err(io::Error::other)?,
            Durable::Content,
        )?;
        let mut back = PutBack::default();
        let (done, left) = refs::take_again(&kept.folder, &kept.id, &refs);
        back.done.extend(done);
        back.left.extend(left);
        for one in moved.iter().rev() {
            let slot = folder.join(&one.slot);
            let shown = one.path.display().to_string();
            // An earlier try has it, or somebody took it away.
            if slot.symlink_metadata().is_ok() || one.path.symlink_metadata().is_err() {
                continue;
            }
            let why = match behind_link(&one.path) {
                Some(why) => Some(why),
                None if look(&one.path, is_git(&one.path)) != one.look => {
                    Some("somebody changed it meanwhile".to_owned())
                }
                None => take_from(&one.path, &slot).err().map(|error| error.to_string()),
            };
            match why {
                None => back.done.push(shown),
                Some(why) => back.left.push((shown, why)),
            }
        }
        fs::remove_file(folder.join(RETURNED))?;
        if back.done.is_empty() && self.places(&kept).is_empty() && refs.is_empty() {
            // Nothing of it is ours any more.
            self.remove(&kept)?;
        }
        Ok(back)
    }
}

/// The note of one thing, by its look where it is now.
fn noted(folder: &Path, ours: &Path, now: &Path, path: PathBuf) -> Option<Moved> {
    let slot = ours.strip_prefix(folder).ok()?.to_owned();
    Some(Moved { look: look(now, is_git(&path)), slot, path })
}

/// The look of a file or folder: what is in it, by name, size, time and number. Times of folders and git's index, which a
/// mere look at a repository writes, are left out.
fn look(path: &Path, is_repository: bool) -> Digest {
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

fn read(folder: &Path) -> Option<Returned> {
    serde_json::from_slice(&fs::read(folder.join(RETURNED)).ok()?).ok()
}

fn write(folder: &Path, returned: &Returned) -> io::Result<()> {
    replace(
        &folder.join(RETURNED),
        &serde_json::to_vec(returned).map_err(io::Error::other)?,
        Durable::Content,
    )
}
