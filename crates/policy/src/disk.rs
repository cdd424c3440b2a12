//! What the gate asks of the disk: where links lead, and what a pattern or a folder holds now.
//!
//! The gate itself opens nothing. It is handed this seam, so that it decides by real places and its tests need no files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Answers about names on a disk. Nothing is changed by asking.
pub trait Disk: Send + Sync {
    /// The path with all links resolved, as far as it exists.
    fn real(&self, path: &Path) -> PathBuf;

    /// What a pattern of bash stands for now; `None` where that is too much to tell.
    fn expand(&self, pattern: &str) -> Option<Vec<PathBuf>>;

    /// Tells whether something has this name, links followed.
    fn exists(&self, _: &Path) -> bool {
        true
    }

    /// Names of [`Disk::expand`] and hidden ones besides, as bash finds them with `dotglob`.
    fn expand_with_hidden(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        self.expand(pattern)
    }

    /// Whether anything in a folder, at any depth, passes the test, by its own name or by the place a link leads to. A folder
    /// too large to look through counts as one that holds it.
    fn holds(&self, folder: &Path, test: &mut dyn FnMut(&Path) -> bool) -> bool;

    /// Whether git knows a file, so that its content may be printed with others. Where that cannot be told it does.
    fn is_tracked(&self, path: &Path) -> bool;

    /// Tells whether a name in the index of git, for the repository that a folder lies in, passes the test. Where the names cannot
    /// be told, one does.
    fn tracks(&self, _: &Path, _: &mut dyn FnMut(&str) -> bool) -> bool {
        true
    }

    /// Whether an ignore file of the repository names a file, so that git does not take it in by itself. Where that cannot be
    /// told it does not.
    fn is_ignored_by_git(&self, path: &Path) -> bool;

    /// The top folder of the repository that a folder lies in, links resolved.
    fn repository(&self, folder: &Path) -> Option<PathBuf>;

    /// The effects of the repositories that git reads from in a folder of a workspace.
    fn git(&self, _folder: &Path, _workspace: &Path) -> GitHere {
        GitHere::default()
    }

    /// The identity of a file that has more than one name; `None` for any other.
    fn linked(&self, path: &Path) -> Option<FileId>;

    /// The places that a name of a program leads to, link by link, and the file itself last. Empty where nothing is there.
    fn led_to(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The programs of a bare name in the folders in which the shell looks for them, the one that it runs first. A later one
    /// is the same program where a manager of versions stands before it.
    fn on_path(&self, _name: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// The doings of git beyond reading the workspace, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitHere {
    /// The program that a repository makes it run, as its configuration names it.
    pub runs: Option<String>,
    /// The places outside of the workspace that it reads from.
    pub leads: Vec<Lead>,
}

/// A place that git reads from because of what is in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// The file or setting that leads there, for people.
    pub shown: String,
    /// The real place. None where it cannot be told.
    pub place: Option<PathBuf>,
}

/// A file by its device and number, whatever its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// The disk that a gate decides for; none where a line is judged for no place in particular.
#[derive(Clone, Default)]
pub struct OnDisk(Option<Arc<dyn Disk>>);

impl OnDisk {
    pub fn new(disk: impl Disk + 'static) -> Self {
        Self(Some(Arc::new(disk)))
    }

    pub(crate) fn get(&self) -> Option<&dyn Disk> {
        self.0.as_deref()
    }
}

impl std::fmt::Debug for OnDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "OnDisk" } else { "NoDisk" })
    }
}
