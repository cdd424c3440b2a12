//! The note that tells `ax` how to enclose a process: a file in memory, which the process inherits.
//!
//! Parts of one kind byte, a length and a value; `crates/ax/src/wall.rs` reads them.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::WorkspaceError;

/// A note that is being written.
#[derive(Default)]
pub(super) struct Note(Vec<u8>);

impl Note {
    fn part(&mut self, kind: u8, value: &[u8]) {
        self.0.push(kind);
        // A longer value would not fit into memory twice.
        self.0.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.0.extend_from_slice(value);
    }

    fn path(&mut self, kind: u8, path: &Path) {
        self.part(kind, path.as_os_str().as_bytes());
    }

    pub(super) fn folder(&mut self, path: &Path) {
        self.path(b'D', path);
    }

    pub(super) fn word(&mut self, word: &std::ffi::OsStr) {
        self.part(b'A', word.as_bytes());
    }

    pub(super) fn variable(&mut self, name: &std::ffi::OsStr, value: &std::ffi::OsStr) {
        self.part(b'E', &[name.as_bytes(), b"=", value.as_bytes()].concat());
    }

    pub(super) fn umask(&mut self, umask: u32) {
        self.part(b'U', &umask.to_le_bytes());
    }

    pub(super) fn readable(&mut self, path: &Path) {
        self.path(b'R', path);
    }

    pub(super) fn writable(&mut self, path: &Path) {
        self.path(b'W', path);
    }

    pub(super) fn device(&mut self, path: &Path) {
        self.path(b'V', path);
    }

    pub(super) fn limit(&mut self, resource: u32, most: u64) {
        self.part(b'L', &[&resource.to_le_bytes()[..], &most.to_le_bytes()].concat());
    }

    pub(super) fn filter(&mut self, filter: &[u8]) {
        self.part(b'F', filter);
    }

    pub(super) fn kept(&mut self, descriptor: i32) {
        self.part(b'K', &descriptor.to_le_bytes());
    }

    /// Has the kernel limit files, and with `network` refuse connections.
    pub(super) fn landlock(&mut self, network: bool) {
        self.part(b'G', &u32::from(network).to_le_bytes());
    }

    pub(super) fn layer(&mut self, folder: &Path, upper: &Path, work: &Path) {
        let parts = [folder, upper, work].map(|path| path.as_os_str().as_bytes());
        self.part(b'O', &parts.join(&0));
    }

    /// A folder that is the real one in spite of a layer over it.
    pub(super) fn real(&mut self, path: &Path) {
        self.path(b'B', path);
    }

    /// A listener at this port, to be sent over this socket.
    pub(super) fn listener(&mut self, port: u16, socket: i32) {
        self.part(b'N', &[&u32::from(port).to_le_bytes()[..], &socket.to_le_bytes()].concat());
    }

    pub(super) fn into_file(self) -> Result<OwnedFd, WorkspaceError> {
        in_memory(&self.0)
    }
}

/// A file in memory with this content, at its beginning.
pub(super) fn in_memory(content: &[u8]) -> Result<OwnedFd, WorkspaceError> {
    let failed = |error: std::io::Error| WorkspaceError::Jail(format!("a file in memory: {error}"));
    let file = memfd_create("lathe", MemfdFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
    let mut file = std::fs::File::from(file);
    file.write_all(content).map_err(failed)?;
    std::io::Seek::rewind(&mut file).map_err(failed)?;
    Ok(file.into())
}
