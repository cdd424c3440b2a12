//! What file tools are about to change, written down before they do.
//!
//! A tool that edits a file knows which one, so no tree is looked at: the old content goes into one file per call, durable
//! before the first change, and away once the journal has the call's result. If the process is killed in between, what
//! the files held then is compared with what they hold now.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use lathe_blobs::Blobs;
use lathe_protocol::Digest;

use crate::beneath::{Root, read_into};
use crate::change::State;
use crate::frame::{self, Cursor};
use crate::stat::Kind;
use crate::{ChangesError, Compared, NotUndoable, TreeChange, Why};

/// A path that is about to change, and what is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Before {
    pub path: PathBuf,
    /// Mode and content; none where nothing is.
    pub was: Option<(u32, Vec<u8>)>,
}

/// The pledges of one session, in a folder of their own.
#[derive(Debug, Clone)]
pub struct Pledges {
    folder: PathBuf,
}

impl Pledges {
    /// Those that are kept in a session's `scratch`.
    pub fn of(scratch: &Path) -> Self {
        Self { folder: scratch.join("edits") }
    }

    /// Takes all of them away.
    pub(crate) fn discard(&self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }

    /// Makes durable what a call is about to change.
    pub fn pledge(&self, call: &str, files: &[Before]) -> io::Result<()> {
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.folder)?;
        let mut out = Vec::new();
        for before in files {
            let mut payload = Vec::new();
            frame::bytes(&mut payload, before.path.as_os_str().as_bytes());
            if let Some((mode, content)) = &before.was {
                payload.extend_from_slice(&mode.to_le_bytes());
                frame::bytes(&mut payload, content);
            }
            frame::push(&mut out, &payload)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options.create(true).append(true).mode(0o600).open(self.file(call))?;
        file.write_all(&out)?;
        file.sync_data()
    }

    /// The journal has the result of a call.
    pub fn settled(&self, call: &str) {
        let _ = std::fs::remove_file(self.file(call));
    }

    /// What a call had changed when its process was killed. Where it changed a file more than once, it is the first
    /// content that counts.
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
            // Of what is damaged here nobody knows which file it was.
            compared.not_undoable.push(NotUndoable { path: root.path.clone(), why: Why::CopyGone });
        }
        for (path, was) in first {
            match now(&root, &path, blobs)? {
                Err(why) => compared.not_undoable.push(NotUndoable { path, why }),
                Ok(now) => {
                    let keep = |(mode, content): (u32, &[u8])| {
                        Ok::<_, ChangesError>(State::new(blobs.put(content)?, mode))
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

/// What is at a path now, kept in the blobs.
fn now(root: &Root, path: &Path, blobs: &Blobs) -> Result<Result<Option<State>, Why>, ChangesError> {
    let Ok(below) = path.strip_prefix(&root.path) else { return Ok(Err(Why::Excluded)) };
    let rel = below.as_os_str().as_bytes();
    let stat = match root.lstat(rel) {
        Ok(Some(stat)) => stat,
        Ok(None) => return Ok(Ok(None)),
        Err(_) => return Ok(Err(Why::Unreadable)),
    };
    let mut content = Vec::new();
    match stat.kind() {
        Kind::Folder => {}
        Kind::Special => return Ok(Err(Why::Special)),
        Kind::Link => match root.read_link(rel) {
            Ok(target) => content = target,
            Err(_) => return Ok(Err(Why::Unreadable)),
        },
        Kind::File => {
            match root.open_file(rel).map(|(file, _)| read_into(file, u64::MAX - 1, &mut content)) {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return Ok(Err(Why::Unreadable)),
            }
        }
    }
    Ok(Ok(Some(State::new(blobs.put(&content)?, stat.mode))))
}
