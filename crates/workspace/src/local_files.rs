//! Files on this machine.
//!
//! Reading never opens a FIFO, socket or device, so it cannot block on one.
//! Writing is the transaction in `apply`.

mod apply;

use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::fcntl::OFlag;

use crate::{Applied, Boxed, Entry, FileKind, FileOp, Files, Named, Stat, WorkspaceError};

/// Up to this size a file is read where the caller is: handing the work to
/// another thread would take longer than the work.
const READ_INLINE: u64 = 256 * 1024;
const PERMISSIONS: u32 = 0o7777;

/// The files of this machine. A relative path is taken from the root.
#[derive(Debug, Clone)]
pub struct LocalFiles {
    root: PathBuf,
    /// One `apply` at a time: two that undo each other could restore a state that
    /// never was.
    writing: Arc<Mutex<()>>,
}

impl LocalFiles {
    pub fn new(root: PathBuf) -> Self {
        Self { root, writing: Arc::default() }
    }
}

impl Files for LocalFiles {
    fn stat<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<Stat, WorkspaceError>> {
        Box::pin(async move {
            let found =
                fs::metadata(self.root.join(path)).map_err(|error| WorkspaceError::io(path, error))?;
            Ok(Stat { kind: kind(&found), bytes: found.len(), mode: found.mode() & PERMISSIONS })
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a Path,
        range: Option<Range<u64>>,
    ) -> Boxed<'a, Result<Vec<u8>, WorkspaceError>> {
        Box::pin(async move {
            let (file, found) = open(&self.root.join(path)).map_err(|error| error.at(path))?;
            let range = range.unwrap_or(0..u64::MAX);
            if found.len().min(range.end).saturating_sub(range.start) <= READ_INLINE {
                return read_range(&file, &found, range).map_err(|error| WorkspaceError::io(path, error));
            }
            blocking(path, {
                let path = path.to_owned();
                move || read_range(&file, &found, range).map_err(|error| WorkspaceError::io(path, error))
            })
            .await
        })
    }

    fn walk<'a>(&'a self, path: &'a Path, depth: usize) -> Boxed<'a, Result<Vec<Entry>, WorkspaceError>> {
        Box::pin(async move {
            let folder = self.root.join(path);
            let given = path.to_owned();
            blocking(path, move || {
                let mut entries = Vec::new();
                walk(&folder, Path::new(""), depth, &mut entries)
                    .map_err(|error| WorkspaceError::io(given, error))?;
                Ok(entries)
            })
            .await
        })
    }

    fn list<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<Vec<Named>, WorkspaceError>> {
        Box::pin(async move {
            let folder = self.root.join(path);
            let given = path.to_owned();
            blocking(path, move || list(&folder).map_err(|error| WorkspaceError::io(given, error))).await
        })
    }

    /// Once begun it runs to its end, also when the caller stops waiting.
    fn apply<'a>(&'a self, ops: Vec<FileOp>) -> Boxed<'a, Result<Vec<Applied>, WorkspaceError>> {
        Box::pin(async move {
            let (root, writing) = (self.root.clone(), Arc::clone(&self.writing));
            blocking(&self.root, move || {
                let _one = writing.lock().unwrap_or_else(PoisonError::into_inner);
                apply::apply(&root, ops)
            })
            .await
        })
    }

    fn real<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>> {
        Box::pin(async move {
            let real =
                self.root.join(path).canonicalize().map_err(|error| WorkspaceError::io(path, error))?;
            if real.starts_with(&self.root) {
                Ok(real)
            } else {
                Err(WorkspaceError::Outside(path.to_owned()))
            }
        })
    }

    fn local_root(&self) -> Option<&Path> {
        Some(&self.root)
    }
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, WorkspaceError> + Send + 'static,
) -> Result<T, WorkspaceError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(gone) => Err(WorkspaceError::io(path, io::Error::other(gone))),
    }
}

fn kind(found: &Metadata) -> FileKind {
    if found.is_file() {
        FileKind::File
    } else if found.is_dir() {
        FileKind::Directory
    } else {
        FileKind::Special
    }
}

/// Why a file was not opened, before it has the name the caller knows it by.
enum NotOpened {
    Directory,
    Special,
    Io(io::Error),
}

impl NotOpened {
    fn at(self, path: &Path) -> WorkspaceError {
        match self {
            Self::Directory => WorkspaceError::IsDirectory(path.to_owned()),
            Self::Special => WorkspaceError::Special(path.to_owned()),
            Self::Io(error) => WorkspaceError::io(path, error),
        }
    }

    fn is_absent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

impl From<io::Error> for NotOpened {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Opens a regular file. Looking first keeps devices untouched; opening without
/// blocking and looking again covers a file that became something else between.
fn open(path: &Path) -> Result<(File, Metadata), NotOpened> {
    only_regular(&fs::metadata(path)?)?;
    let flags = OFlag::O_NONBLOCK | OFlag::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path)?;
    let found = file.metadata()?;
    only_regular(&found)?;
    Ok((file, found))
}

fn only_regular(found: &Metadata) -> Result<(), NotOpened> {
    match kind(found) {
        FileKind::File => Ok(()),
        FileKind::Directory => Err(NotOpened::Directory),
        FileKind::Special => Err(NotOpened::Special),
    }
}

/// The bytes of the range that exist. Files of /proc say they are empty and are
/// not, so the size is only a hint for the memory to take, which may be refused.
fn read_range(mut file: &File, found: &Metadata, range: Range<u64>) -> io::Result<Vec<u8>> {
    let wanted = range.end.saturating_sub(range.start);
    let hint = found.len().min(range.end).saturating_sub(range.start);
    let mut bytes = Vec::new();
    let refused = |_| io::Error::from(io::ErrorKind::OutOfMemory);
    bytes.try_reserve_exact(usize::try_from(hint).unwrap_or(usize::MAX)).map_err(refused)?;
    file.seek(SeekFrom::Start(range.start))?;
    file.take(wanted).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn list(folder: &Path) -> io::Result<Vec<Named>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let found = fs::metadata(entry.path());
        let (kind, bytes) = found.map_or((FileKind::Special, 0), |found| (kind(&found), found.len()));
        names.push(Named { name: entry.file_name(), kind, bytes });
    }
    names.sort_by(|a, b| a.name.as_encoded_bytes().cmp(b.name.as_encoded_bytes()));
    Ok(names)
}

/// Entries in the order of a tree: names of a folder by their bytes, what a folder
/// holds right after it. A link is listed as what it leads to and never entered; a
/// link that leads nowhere is special. Folders that cannot be read are listed
/// without content, except the first.
fn walk(folder: &Path, below: &Path, depth: usize, entries: &mut Vec<Entry>) -> io::Result<()> {
    if depth == 0 {
        return Ok(());
    }
    let mut found = Vec::new();
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        // An entry without a type is gone by now.
        let Ok(file_type) = entry.file_type() else {
            continue;
        };
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            found.push((entry.file_name(), file_type));
        }
    }
    found.sort_by(|(name, _), (other, _)| name.as_encoded_bytes().cmp(other.as_encoded_bytes()));
    for (name, file_type) in found {
        let path = below.join(name);
        let kind = if file_type.is_dir() {
            FileKind::Directory
        } else if file_type.is_file() {
            FileKind::File
        } else if file_type.is_symlink() {
            fs::metadata(folder.join(&path)).map_or(FileKind::Special, |found| kind(&found))
        } else {
            FileKind::Special
        };
        entries.push(Entry { path: path.clone(), kind });
        if file_type.is_dir() {
            // A subfolder that cannot be read, or is gone by now, hides nothing else.
            let _ = walk(folder, &path, depth - 1, entries);
        }
    }
    Ok(())
}
