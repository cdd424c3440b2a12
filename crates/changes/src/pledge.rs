//! Records of the files that a tool is about to change, written before it changes them.
//!
//! A tool that edits a file knows which one, so no tree is scanned: the old content goes into one file per call. The
//! file is durable before the first change, and removed once the journal has the call's result. If the process is
//! killed in between, the recorded content is compared with the current one.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lathe_blobs::Blobs;
use lathe_protocol::Digest;

use crate::beneath::{Root, read_into};
use crate::change::PathState;
use crate::frame::{self, Cursor};
use crate::stat::PathKind;
use crate::{ChangesError, Compared, NotUndoable, NotUndoableReason, TreeChange};

/// The state of a path that is about to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PledgedFile {
    pub path: PathBuf,
    /// Mode and content; none if nothing is at the path.
    pub was: Option<(u32, Vec<u8>)>,
}

/// The pledges of one session, in a folder of their own.
#[derive(Debug, Clone)]
pub struct Pledges {
    folder: PathBuf,
}

impl Pledges {
    /// The pledges kept in a session's `scratch`.
    pub fn of(scratch: &Path) -> Self {
        Self { folder: scratch.join("edits") }
    }

    /// Removes all pledges.
    pub(crate) fn discard(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// Makes the current state of files durable before a call changes them.
    pub fn pledge(&self, call: &str, files: &[PledgedFile]) -> io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.folder)?;
        let mut out = Vec::new();
        for before in files {
            let mut payload = Vec::new();
            frame::push_bytes(&mut payload, before.path.as_os_str().as_bytes());
            if let Some((mode, content)) = &before.was {
                payload.extend_from_slice(&mode.to_le_bytes());
                frame::push_bytes(&mut payload, content);
            }
            frame::push(&mut out, &payload)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).mode(0o600).open(self.file(call))?;
        file.write_all(&out)?;
        file.sync_data()
    }

    /// Removes the pledge of a call whose result is in the journal.
    pub fn settle(&self, call: &str) {
        let _ = std::fs::remove_file(self.file(call));
    }

    /// The changes of a call whose process was killed. If the call changed a file more than once, the first recorded
    /// content counts.
    pub fn recover(&self, call: &str, root: &Path, blobs: &Blobs) -> Result<Compared, ChangesError> {
        let file = self.file(call);
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Compared::default()),
            Err(error) => return Err(ChangesError::io("read", &file, error)),
        };
        let mut first: BTreeMap<PathBuf, Option<(u32, &[u8])>> = BTreeMap::new();
        let mut rest = bytes.as_slice();
        while let Some((payload, after)) = frame::next(rest) {
            let mut cursor = Cursor(payload);
            if let Some(path) = cursor.bytes() {
                let was = cursor.take().map(u32::from_le_bytes).zip(cursor.bytes());
                first.entry(std::ffi::OsString::from_vec(path.to_vec()).into()).or_insert(was);
            }
            rest = after;
        }
        let root = Root::open_or_gone(root)?;
        let mut compared = Compared::default();
        if !rest.is_empty() {
            // The damaged rest cannot be assigned to a file.
            compared
                .not_undoable
                .push(NotUndoable { path: root.path.clone(), why: NotUndoableReason::CopyGone });
        }
        for (path, was) in first {
            match current_state(&root, &path, blobs)? {
                Err(why) => compared.not_undoable.push(NotUndoable { path, why }),
                Ok(now) => {
                    let keep = |(mode, content): (u32, &[u8])| {
                        Ok::<_, ChangesError>(PathState::new(blobs.put(content)?, mode))
                    };
                    let was = was.map(keep).transpose()?;
                    compared.changes.extend((was != now).then(|| TreeChange::new(path, was, now)));
                }
            }
        }
        Ok(compared)
    }

    fn file(&self, call: &str) -> PathBuf {
        self.folder.join(Digest::of(call.as_bytes()).short())
    }
}

/// The current state of a path, with its content stored in the blobs.
fn current_state(
    root: &Root,
    path: &Path,
    blobs: &Blobs,
) -> Result<Result<Option<PathState>, NotUndoableReason>, ChangesError> {
    let Ok(below) = path.strip_prefix(&root.path) else { return Ok(Err(NotUndoableReason::Excluded)) };
    let rel = below.as_os_str().as_bytes();
    let stat = match root.lstat(rel) {
        Ok(Some(stat)) => stat,
        Ok(None) => return Ok(Ok(None)),
        Err(_) => return Ok(Err(NotUndoableReason::Unreadable)),
    };
    let mut content = Vec::new();
    match stat.kind() {
        PathKind::Folder => {}
        PathKind::Special => return Ok(Err(NotUndoableReason::Special)),
        PathKind::Link => match root.read_link(rel) {
            Ok(target) => content = target,
            Err(_) => return Ok(Err(NotUndoableReason::Unreadable)),
        },
        PathKind::File => {
            match root.open_file(rel).map(|(file, _)| read_into(file, u64::MAX - 1, &mut content)) {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Ok(Err(NotUndoableReason::Unreadable)),
            }
        }
    }
    Ok(Ok(Some(PathState::new(blobs.put(&content)?, stat.mode))))
}
