//! The folder of blobs: `ab/cdef…`, one lz4 block with its size in front per file.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_protocol::Digest;
use lz4_flex::block::{compress_prepend_size, decompress, uncompressed_size};
use tempfile::NamedTempFile;

use crate::replace::{Durable, replace};
use crate::{Batch, BlobError};

/// From this size on, a separate thread for the hash pays off.
const LARGE: usize = 256 * 1024;

/// A handle on the store. Cheap to clone; any number of threads and processes may use one folder at once,
/// because blobs are only ever added, and two writers of one blob write the same bytes.
#[derive(Debug, Clone)]
pub struct Blobs {
    dir: Arc<Path>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardState {
    Made,
    WasThere,
}

impl Blobs {
    /// The folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Names the folder. It is made when the first blob is put.
    pub fn open(dir: PathBuf) -> Result<Self, BlobError> {
        match fs::metadata(&dir) {
            Ok(found) if !found.is_dir() => {
                let source = io::ErrorKind::NotADirectory.into();
                return Err(BlobError::from_io("use as the blob folder", &dir, source));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(BlobError::from_io("look at", &dir, error)),
        }
        Ok(Self { dir: dir.into() })
    }

    /// Stores bytes durably and returns their name. For bytes that are already stored, this costs a hash and a
    /// lookup, unless they are many.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, BlobError> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(BlobError::TooLarge { len: bytes.len() });
        }
        if bytes.len() > LARGE {
            return self.put_large(bytes);
        }
        let digest = Digest::of(bytes);
        let path = self.path_of(&digest)?;
        if is_there(&path) {
            return Ok(digest);
        }
        let shard = self.shard_of(&path);
        if self.make_shard(shard)? == ShardState::Made {
            sync_folder(&self.dir)?;
        }
        write_whole(&path, &compress_prepend_size(bytes))?;
        Ok(digest)
    }

    /// Writes before the name is known, which is computed while the disk works: hashing takes as long as syncing, and
    /// the user waits for a change of a large file. A large content is rarely stored twice.
    fn put_large(&self, bytes: &[u8]) -> Result<Digest, BlobError> {
        let written = self
            .make_folder()
            .and_then(|()| write_unsynced(&self.dir, &self.dir, &compress_prepend_size(bytes)));
        let (digest, written) = in_parallel(
            || Digest::of(bytes),
            || written.and_then(|file| sync(file.as_file(), &self.dir).map(|()| file)),
        );
        let path = self.path_of(&digest)?;
        if is_there(&path) {
            return Ok(digest);
        }
        let (written, shard) = (written?, self.shard_of(&path));
        let made = self.make_shard(shard)?;
        written.persist(&path).map_err(|error| BlobError::from_io("write the blob", &path, error.error))?;
        match made {
            ShardState::WasThere => sync_folder(shard)?,
            // Together they cost a file system with a log one write of it.
            ShardState::Made => {
                let (above, inside) = in_parallel(|| sync_folder(&self.dir), || sync_folder(shard));
                above.and(inside)?;
            }
        }
        Ok(digest)
    }

    /// Starts a batch: many blobs that become durable together.
    pub fn batch(&self) -> Batch {
        Batch::new(self.clone())
    }

    /// Tells whether there is a blob of that name, without reading it.
    pub fn has(&self, digest: &Digest) -> Result<bool, BlobError> {
        let path = self.path_of(digest)?;
        match fs::metadata(&path) {
            Ok(found) => Ok(found.is_file() && found.len() > 0),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(BlobError::from_io("look at", &path, error)),
        }
    }

    /// The bytes of that name; `None` if the store does not have them (any more).
    pub fn get(&self, digest: &Digest) -> Result<Option<Vec<u8>>, BlobError> {
        let path = self.path_of(digest)?;
        let packed = match fs::read(&path) {
            Ok(packed) => packed,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(BlobError::from_io("read the blob", &path, error)),
        };
        let damaged = |why| BlobError::Damaged { digest: digest.clone(), path: path.clone(), why };
        let bytes = unpack(&packed).map_err(damaged)?;
        if Digest::of(&bytes) != *digest {
            return Err(damaged("its content has another hash"));
        }
        Ok(Some(bytes))
    }

    pub(crate) fn path_of(&self, digest: &Digest) -> Result<PathBuf, BlobError> {
        let text = digest.as_str();
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        match text.split_at_checked(2) {
            Some((shard, rest)) if text.len() == 64 && text.bytes().all(is_hex) => {
                Ok(self.dir.join(shard).join(rest))
            }
            _ => Err(BlobError::BadDigest { text: text.chars().take(80).collect() }),
        }
    }

    pub(crate) fn shard_of<'a>(&'a self, path: &'a Path) -> &'a Path {
        path.parent().unwrap_or(&self.dir)
    }

    /// Makes the folder of a blob, and the store's own. The caller syncs the store's if one was made in it: a file
    /// whose folder is lost is lost.
    pub(crate) fn make_shard(&self, shard: &Path) -> Result<ShardState, BlobError> {
        let make = || DirBuilder::new().mode(0o700).create(shard);
        let made = match make() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.make_folder()?;
                make()
            }
            made => made,
        };
        match made {
            Ok(()) => Ok(ShardState::Made),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(ShardState::WasThere),
            Err(error) => Err(BlobError::from_io("make the folder", shard, error)),
        }
    }

    /// Makes the store's own folder with all folders for blobs in it, durably. They cost a few milliseconds once; a
    /// folder made when it is first needed would cost a sync of the store's folder, while the user waits for a change
    /// of a file.
    fn make_folder(&self) -> Result<(), BlobError> {
        if self.dir.is_dir() {
            return Ok(());
        }
        let failed = |error| BlobError::from_io("make the folder", &self.dir, error);
        DirBuilder::new().mode(0o700).recursive(true).create(&self.dir).map_err(failed)?;
        for shard in 0..=u8::MAX {
            match DirBuilder::new().mode(0o700).create(self.dir.join(format!("{shard:02x}"))) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
                Ok(()) | Err(_) => {}
            }
        }
        sync_folder(&self.dir)?;
        match self.dir.parent().filter(|above| !above.as_os_str().is_empty()) {
            Some(above) => sync_folder(above),
            None => Ok(()),
        }
    }
}

/// Tells whether a blob is stored. A name means that the file was synced. Only its folder may not be synced yet, for
/// the moment in which another process is between its rename and its sync; that is not worth a sync for every stored
/// blob.
fn is_there(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), BlobError> {
    replace(path, bytes, Durable::Name).map_err(|error| BlobError::from_io("write the blob", path, error))
}

/// Writes all bytes under a temporary name. `path` is for error messages, here and below.
fn write_unsynced(dir: &Path, path: &Path, bytes: &[u8]) -> Result<NamedTempFile, BlobError> {
    let failed = |error| BlobError::from_io("write the blob", path, error);
    // tempfile makes it 0600, and removes it when it is dropped without being persisted.
    let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(dir).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    Ok(file)
}

fn sync(file: &File, path: &Path) -> Result<(), BlobError> {
    file.sync_all().map_err(|error| BlobError::from_io("write the blob", path, error))
}

/// Runs two functions in parallel, the first on a thread of its own.
fn in_parallel<A: Send, B>(one: impl Fn() -> A + Sync, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let running = scope.spawn(&one);
        let other = other();
        // A thread that panicked did not finish its work.
        (running.join().unwrap_or_else(|_| one()), other)
    })
}

fn sync_folder(dir: &Path) -> Result<(), BlobError> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(|error| BlobError::from_io("sync the folder", dir, error))
}

/// The size in front is not trusted: lz4 packs at most 255 to 1, so a damaged size cannot claim gigabytes.
fn unpack(packed: &[u8]) -> Result<Vec<u8>, &'static str> {
    let (size, block) = uncompressed_size(packed).map_err(|_| "its file is cut short")?;
    if size / 255 > block.len() {
        return Err("its stated size is impossible");
    }
    decompress(block, size).map_err(|_| "it cannot be unpacked")
}
