//! Support for the tests: a folder, short forms of operations, small mounts.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_protocol::Digest;
use lathe_workspace::{Applied, Expect, FileOp, Files as _, LocalFiles, WorkspaceError};
use tempfile::TempDir;

pub struct Folder {
    pub dir: TempDir,
    pub files: LocalFiles,
}

impl Folder {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = LocalFiles::new(dir.path().to_owned());
        Self { dir, files }
    }

    pub fn path(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.dir.path().join(name.as_ref())
    }

    /// Makes a file and returns its path.
    pub fn with(&self, name: impl AsRef<OsStr>, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub async fn apply(&self, ops: Vec<FileOp>) -> Result<Vec<Applied>, WorkspaceError> {
        self.files.apply(ops).await
    }
}

pub use crate::paths_world::picture;

pub fn hash(content: &str) -> Expect {
    Expect::Hash(Digest::of(content.as_bytes()))
}

pub fn write(path: &Path, expect: Expect, content: &str) -> FileOp {
    FileOp::Write { path: path.to_owned(), expect, content: content.as_bytes().to_vec().into() }
}

pub fn remove(path: &Path, expect: Expect) -> FileOp {
    FileOp::Remove { path: path.to_owned(), expect }
}

/// Something mounted for one test.
pub struct Mount(PathBuf);

impl Mount {
    /// `None`, with the reason printed, where mounting is not permitted.
    pub fn new(options: &[&str], what: &Path, at: &Path) -> Option<Self> {
        let output = Command::new("mount").args(options).arg(what).arg(at).output().unwrap();
        if output.status.success() {
            return Some(Self(at.to_owned()));
        }
        eprintln!("not tested, mount refused: {}", String::from_utf8_lossy(&output.stderr));
        None
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
