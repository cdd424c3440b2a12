//! A user's workbench: files, searches, git and changes of a folder, for surfaces that show them.
//!
//! Everything here works below folders that the surface was given, under the same guard as the tools, and never in
//! Lathe's own folder. No part of it knows a session.

mod browse;
mod git;
mod own;
mod slot;
mod watching;

use lathe_host::Home;

pub use browse::{
    Browser, Download, FileContent, FileItem, Listing, READ_MAX, Saved, SearchFound, SearchHit, SearchWish,
    UPLOAD_MAX, Upload,
};
pub use git::{CommitWish, GitCommit, GitFile, GitPlace, GitStatus};
pub use slot::{keeping_slot, with_slot};
pub use watching::{FolderChange, WatchedFolder};

/// The workbench of one home, whose folder it keeps closed.
#[derive(Debug, Clone)]
pub struct Workbench {
    home: Home,
}

impl Workbench {
    pub fn new(home: Home) -> Self {
        Self { home }
    }

    fn home(&self) -> &Home {
        &self.home
    }
}
