//! A pinned file: a program as it was when the user trusted it.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use lathe_protocol::{Digest, DigestBuilder};

use crate::{LocalTree, WorkspaceError, content_of, open_regular};

/// Largest file that can be pinned.
const LARGEST: u64 = 64 << 20;

/// A file of a project that a trusted command names, by its real path and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The word of the command.
    pub word: String,
    pub path: PathBuf,
    pub digest: Digest,
}

impl Pin {
    /// Pins the file that a word names, relative to the root. None if it names no file of the project.
    pub fn take(tree: &LocalTree, root: &Path, word: &str) -> Result<Option<Self>, WorkspaceError> {
        let Ok(path) = root.join(word).canonicalize() else { return Ok(None) };
        let Ok(file) = tree.open(&path) else { return Ok(None) };
        let digest = digest(file, &path)?;
        Ok(Some(Self { word: word.to_owned(), path, digest }))
    }

    /// The reason why the file may not be run any more, if its content differs from the trusted content.
    pub fn why_changed(&self) -> Option<String> {
        let now = open_regular(&self.path).map_err(|error| WorkspaceError::io(&self.path, error));
        match now.and_then(|file| digest(file, &self.path)) {
            Ok(now) if now == self.digest => None,
            Ok(_) => Some(format!("{} changed since it was trusted", self.path.display())),
            Err(error) => Some(format!("what was trusted cannot be read any more: {error}")),
        }
    }

    /// The text that was pinned, or the reason why it cannot be shown.
    pub fn text(&self) -> Result<String, String> {
        let file = open_regular(&self.path).map_err(|error| error.to_string())?;
        let bytes = content_of(file, LARGEST).map_err(|error| error.to_string())?;
        match () {
            () if Digest::of(&bytes) != self.digest => Err("it changed while it was read".to_owned()),
            () if bytes.contains(&0) => Err(format!("it is not text; it has {} bytes", bytes.len())),
            () => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }
}

fn digest(file: File, path: &Path) -> Result<Digest, WorkspaceError> {
    let (mut digesting, mut source) = (DigestBuilder::default(), file.take(LARGEST + 1));
    let (mut buffer, mut size) = (vec![0; 64 * 1024], 0);
    loop {
        let read = source.read(&mut buffer).map_err(|error| WorkspaceError::io(path, error))?;
        if read == 0 {
            return Ok(digesting.finish());
        }
        size += read as u64;
        if size > LARGEST {
            let why = format!("it is larger than {} MiB", LARGEST >> 20);
            return Err(WorkspaceError::io(path, std::io::Error::other(why)));
        }
        digesting.add(buffer.get(..read).unwrap_or_default());
    }
}
