//! Questions of the gate about the disk: where links lead, and what a pattern or a folder holds now.
//!
//! The gate itself opens nothing. It gets this interface, so that it decides by real places and its tests need no
//! files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Answers questions about names on a disk. No method changes anything.
pub trait Disk: Send + Sync {
    /// The path with all links resolved, as far as it exists.
    fn real(&self, path: &Path) -> PathBuf;

    /// The names that a pattern of bash matches now; `None` where there are too many to list.
    fn expand(&self, pattern: &str) -> Option<Vec<PathBuf>>;

    /// Tells whether something has this name, links followed.
    fn exists(&self, _: &Path) -> bool {
        true
    }

    /// The names of [`Disk::expand`] and hidden ones too, as bash finds them with `dotglob`.
    fn expand_with_hidden(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        self.expand(pattern)
    }

    /// Tells whether anything in a folder, at any depth, passes the test, by its own name or by the place a link
    /// leads to. A folder too large to search counts as one that holds it.
    fn holds_any(&self, folder: &Path, test: &mut dyn FnMut(&Path) -> bool) -> bool;

    /// Tells whether git tracks a file, so that git may print its content along with others. Where that cannot be found
    /// out, it does.
    fn is_tracked(&self, path: &Path) -> bool;

    /// Tells whether a name in the index of git, for the repository that a folder lies in, passes the test. Where the
    /// names cannot be known, one does.
    fn tracks_any(&self, _: &Path, _: &mut dyn FnMut(&str) -> bool) -> bool {
        true
    }

    /// Tells whether an ignore file of the repository names a file, so that git does not add it by itself. Where that
    /// cannot be found out, none does.
    fn is_ignored_by_git(&self, path: &Path) -> bool;

    /// The top folder of the repository that a folder lies in, links resolved.
    fn repository(&self, folder: &Path) -> Option<PathBuf>;

    /// Git's acts beyond reading the workspace, because of the repositories that it reads in one of its folders.
    fn git(&self, _folder: &Path, _workspace: &Path) -> GitReach {
        GitReach::default()
    }

    /// The identity of a file that has more than one name; `None` for any other.
    fn hard_link_id(&self, path: &Path) -> Option<FileId>;

    /// The places that the name of a program leads to, link by link, the file itself last. Empty where nothing is
    /// there.
    fn link_chain(&self, _path: &Path) -> Vec<PathBuf> {
        Vec::new()
    }

    /// The programs of a bare name in the folders that the shell searches, the one that it runs first. A later one is
    /// the same program where a version manager stands before it.
    fn on_path(&self, _name: &str) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// Git's acts besides reading the workspace, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitReach {
    /// The program that a repository makes git run, as its configuration names it.
    pub runs: Option<String>,
    /// The places outside of the workspace that git reads from.
    pub leads: Vec<Lead>,
}

/// A place that git reads from because of what is in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// The file or setting that leads there, for people.
    pub shown: String,
    /// The real place. `None` where it cannot be found out.
    pub place: Option<PathBuf>,
}

/// A file by its device and number, whatever its names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

/// The disk that a gate decides for; none where a line is judged without any particular place.
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
