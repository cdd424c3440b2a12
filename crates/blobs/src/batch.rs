//! Many blobs made durable at once.
//!
//! [`Blobs::put`] syncs a file and its folder for every blob, which is right for one and ruinous for thousands: on an
//! ordinary disk each sync waits for a commit of the file system's journal. A batch writes the files under temporary
//! names, and [`Batch::finish`] makes them durable together, gives them their names, and makes the names durable. The
//! order keeps the store's invariant: a file under its final name was synced before it got the name.
//!
//! Few files are synced one by one, which costs only their own bytes, about a third of a millisecond each here. From
//! [`MANY`] files on, one `syncfs` for all is cheaper: for 5,000 files 0.05 s instead of 0.8 s on an idle disk. It
//! also writes the dirty data of other programs on that file system, and so is not worth the risk for a few. `cargo
//! run --release -p lathe-changes --example timings` prints the times.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use lathe_protocol::Digest;
use lz4_flex::block::compress_prepend_size;
use parking_lot::Mutex;
use tempfile::TempPath;

use crate::{BlobError, Blobs};

/// From this many files on, the whole file system is synced instead of each file, where there is a call for that.
const MANY: usize = 64;

/// Blobs that are being added to the store. Threads may share one. Dropped without [`finish`](Self::finish), it
/// leaves no files.
#[derive(Debug)]
pub struct Batch {
    blobs: Blobs,
    /// `None`: it was in the store already, or another thread is writing it.
    waiting: Mutex<HashMap<Digest, Option<TempPath>>>,
}

impl Batch {
    pub(crate) fn new(blobs: Blobs) -> Self {
        Self { blobs, waiting: Mutex::default() }
    }

    /// Takes bytes and returns their name. They are durable, and can be read, once the batch is finished.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, BlobError> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(BlobError::TooLarge { len: bytes.len() });
        }
        let digest = Digest::of(bytes);
        if self.waiting.lock().contains_key(&digest) {
            return Ok(digest);
        }
        let path = self.blobs.path_of(&digest)?;
        let there = fs::metadata(&path).is_ok_and(|found| found.is_file() && found.len() > 0);
        let file = if there { None } else { Some(self.write(&path, bytes)?) };
        // Two threads may have written the same bytes: one file is dropped, and removed by that.
        self.waiting.lock().insert(digest.clone(), file);
        Ok(digest)
    }

    /// Makes all blobs of the batch durable, under their names.
    pub fn finish(self) -> Result<(), BlobError> {
        let waiting = self.waiting.into_inner();
        let mut named: Vec<(TempPath, PathBuf)> = Vec::new();
        for (digest, file) in waiting {
            if let Some(file) = file {
                named.push((file, self.blobs.path_of(&digest)?));
            }
        }
        sync_all(named.iter().map(|(file, _)| &**file))?;
        if named.is_empty() {
            return Ok(());
        }
        let mut folders = vec![self.blobs.dir().to_owned()];
        for (file, path) in named {
            folders.extend(path.parent().map(Path::to_owned));
            file.persist(&path).map_err(|error| BlobError::from_io("name the blob", &path, error.error))?;
        }
        folders.sort();
        folders.dedup();
        sync_all(folders.iter().map(PathBuf::as_path))
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> Result<TempPath, BlobError> {
        let failed = |error| BlobError::from_io("write the blob", path, error);
        let shard = self.blobs.shard_of(path);
        self.blobs.make_shard(shard)?;
        let mut file = tempfile::Builder::new().prefix(".tmp-").tempfile_in(shard).map_err(failed)?;
        file.write_all(&compress_prepend_size(bytes)).map_err(failed)?;
        Ok(file.into_temp_path())
    }
}

/// Makes files or folders of one file system durable.
fn sync_all<'a>(paths: impl ExactSizeIterator<Item = &'a Path>) -> Result<(), BlobError> {
    let many = cfg!(target_os = "linux") && paths.len() >= MANY;
    for path in paths {
        let failed = |error| BlobError::from_io("sync", path, error);
        let file = File::open(path).map_err(failed)?;
        #[cfg(target_os = "linux")]
        if many {
            return nix::unistd::syncfs(&file).map_err(|error| failed(error.into()));
        }
        file.sync_all().map_err(failed)?;
    }
    Ok(())
}
