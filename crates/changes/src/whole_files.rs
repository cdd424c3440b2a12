//! Files that are too large for the store of blobs.
//!
//! A small file that becomes a large one can be restored, because the small content is stored. The large content is
//! not: only its digest is. So a restore that replaces such a file first gives it a second name below the store,
//! which costs no copy on one file system. The undo of that restore moves it to its path again. A second name shares
//! later writes through a name or a descriptor that is still open, so a kept file counts only while it has the digest
//! of its name.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read as _, Seek as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::PathBuf;

use lathe_blobs::Blobs;
use lathe_protocol::Digest;
use nix::errno::Errno;
use nix::fcntl::{AT_FDCWD, AtFlags, OFlag, openat};
use nix::sys::stat::Mode;
use nix::unistd::linkat;
use sha2::{Digest as _, Sha256};

/// The folder of whole files in the folder of blobs.
const FOLDER: &str = "whole";

/// The maximum size of a file whose digest covers its content. Hashing more would take too long, and a sparse file
/// may have any length.
const HASHED: u64 = 512 << 20;

/// The number of bytes at the beginning and at the end of a larger file that its digest covers.
const ENDS: u64 = 1 << 20;

/// The digest of a file: of its content, or for a very large file of its length, its time and both its ends.
pub(crate) fn digest_of(mut file: File) -> io::Result<Digest> {
    let found = file.metadata()?;
    let mut hasher = Sha256::new();
    if found.len() > HASHED {
        hasher.update(format!("a file of {} bytes, {}.{}", found.len(), found.mtime(), found.mtime_nsec()));
        hash(&mut (&mut file).take(ENDS), &mut hasher)?;
        file.seek(io::SeekFrom::Start(found.len() - ENDS))?;
    }
    hash(&mut file, &mut hasher)?;
    let hex: String = hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Digest::parse(&hex).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn hash(from: &mut dyn io::Read, hasher: &mut Sha256) -> io::Result<()> {
    let mut chunk = vec![0; 1 << 16];
    loop {
        match from.read(&mut chunk)? {
            0 => return Ok(()),
            len => hasher.update(chunk.get(..len).unwrap_or_default()),
        }
    }
}

/// The kept files, each under its digest.
pub(crate) struct Whole {
    folder: PathBuf,
}

impl Whole {
    pub fn of(blobs: &Blobs) -> Self {
        Self { folder: blobs.dir().join(FOLDER) }
    }

    /// The path of a kept file. Its first digits are a folder, as in the store of blobs, so files that no session
    /// names are removed together with the blobs.
    fn path_of(&self, digest: &Digest) -> PathBuf {
        let (shard, rest) = digest.as_str().split_at_checked(2).unwrap_or(("", digest.as_str()));
        self.folder.join(shard).join(rest)
    }

    /// Tells whether a file is kept, without reading it.
    pub fn has(&self, digest: &Digest) -> bool {
        self.path_of(digest).is_file()
    }

    /// Tells whether the kept file is unchanged.
    fn is_sound(&self, digest: &Digest) -> bool {
        File::open(self.path_of(digest)).and_then(digest_of).is_ok_and(|found| found == *digest)
    }

    /// Keeps a file of an open folder: as a second name, or as a copy if that is not possible.
    pub fn keep(&self, folder: BorrowedFd<'_>, name: &[u8], digest: &Digest) -> io::Result<()> {
        let (path, name) = (self.path_of(digest), OsStr::from_bytes(name));
        if self.is_sound(digest) {
            return Ok(());
        }
        let _ = fs::remove_file(&path);
        DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap_or(&self.folder))?;
        match linkat(folder, name, AT_FDCWD, &path, AtFlags::empty()) {
            Ok(()) => Ok(()),
            Err(Errno::EXDEV | Errno::EPERM | Errno::EMLINK | Errno::EOPNOTSUPP) => {
                let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let from = File::from(openat(folder, name, flags, Mode::empty())?);
                let copied = File::create(&path).and_then(|to| copy(from, to));
                copied.inspect_err(|_| drop(fs::remove_file(&path)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the kept file a new name in an open folder. Returns false if it is gone or changed.
    pub fn link_into(&self, digest: &Digest, folder: impl AsFd, name: &str) -> Result<bool, Errno> {
        if !self.is_sound(digest) {
            return Ok(false);
        }
        let (path, folder) = (self.path_of(digest), folder.as_fd());
        match linkat(AT_FDCWD, &path, folder, name, AtFlags::empty()) {
            Err(Errno::EXDEV | Errno::EPERM | Errno::EMLINK | Errno::EOPNOTSUPP) => {
                let flags =
                    OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
                let to = File::from(openat(folder, name, flags, Mode::from_bits_truncate(0o600))?);
                let copied = File::open(&path).and_then(|from| copy(from, to));
                copied.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(Errno::EIO as i32)))?;
            }
            linked => linked?,
        }
        Ok(true)
    }

    /// Removes a file that is at its path again.
    pub fn forget(&self, digest: &Digest) {
        let _ = fs::remove_file(self.path_of(digest));
    }
}

/// Copies a file durably, with its time, which the digest of a very large one covers.
fn copy(mut from: File, mut to: File) -> io::Result<()> {
    let modified = from.metadata()?.modified()?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(modified)?;
    to.sync_all()
}
