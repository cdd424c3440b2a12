//! Search for the repository of a folder, upwards from the folder.
//!
//! Git accepts more as a repository: a folder with such a layout (which can be committed to any ordinary repository),
//! and any folder that a `.git` file names. Git's own limit to the search is a list separated by colons, which a
//! colon in a path breaks. So git is given the location of the repository and does not search.

use std::ffi::OsStr;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use lathe_workspace::{open_regular, read_regular};
use nix::unistd::{AccessFlags, access};

use crate::GitError;

/// The maximum size of a file with one path, the same as git's.
const LONGEST_PATH: u64 = 1 << 20;

/// The folders in which a repository and all of its parts must lie.
#[derive(Debug, Clone)]
pub enum Boundary {
    /// For the user of this machine, whose linked work trees and shared objects may lie anywhere.
    Anywhere,
    /// Only below these folders, which are canonical, and not through symbolic links.
    Roots(Vec<PathBuf>),
}

impl Boundary {
    pub(crate) fn holds(&self, real: &Path) -> bool {
        match self {
            Self::Anywhere => true,
            Self::Roots(_) => self.root_of(real).is_some(),
        }
    }

    /// The outermost root that contains a folder. None for a path with `..` in it.
    pub(crate) fn root_of(&self, real: &Path) -> Option<&Path> {
        match self {
            Self::Anywhere => None,
            Self::Roots(_) if real.components().any(|part| part == Component::ParentDir) => None,
            Self::Roots(roots) => {
                let around = roots.iter().filter(|root| real.starts_with(root));
                around.min_by_key(|root| root.as_os_str().len()).map(PathBuf::as_path)
            }
        }
    }
}

/// A repository with its work tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRepository {
    /// The folder that holds `.git`.
    pub top: PathBuf,
    /// The folder with HEAD and index.
    pub git_dir: PathBuf,
    /// The folder with objects and references. It differs from `git_dir` only for a linked work tree.
    pub common: PathBuf,
}

impl FoundRepository {
    /// Tells whether the repository consists only of the folder `.git` in the work tree.
    pub(crate) fn is_plain(&self) -> bool {
        self.git_dir == self.top.join(".git") && self.common == self.git_dir
    }
}

/// Finds the repository around a folder.
pub fn find_repository(folder: &Path, boundary: &Boundary) -> Result<FoundRepository, GitError> {
    let start = folder.canonicalize().map_err(|_| GitError::NoRepository)?;
    let device = |path: &Path| path.metadata().map(|found| found.dev()).ok();
    let within = device(&start);
    for at in start.ancestors() {
        // Like git, the search does not leave the file system.
        if !boundary.holds(at) || device(at) != within {
            break;
        }
        if let Some(found) = dot_git(at, boundary)? {
            // Inside of the repository's own folder no work tree exists.
            let inside = start.starts_with(&found.git_dir) || start.starts_with(&found.common);
            return if inside { Err(GitError::NoRepository) } else { Ok(found) };
        }
    }
    Err(GitError::NoRepository)
}

/// The repository whose `.git` is in this folder. A `.git` that leads out of the boundary, or nowhere, is an error.
pub fn dot_git(top: &Path, boundary: &Boundary) -> Result<Option<FoundRepository>, GitError> {
    let dot = top.join(".git");
    let Ok(kind) = dot.symlink_metadata() else { return Ok(None) };
    let (git_dir, is_named) = if kind.is_dir() {
        (dot.clone(), false)
    } else if kind.is_symlink() && matches!(boundary, Boundary::Roots(_)) {
        return Err(GitError::refused(dot, "is a symbolic link"));
    } else if dot.is_dir() {
        (real(&dot, &dot)?, true)
    } else {
        let Some(named) = one_path(&dot, b"gitdir:")? else { return Ok(None) };
        (real(&top.join(named), &dot)?, true)
    };
    inside(&git_dir, &dot, boundary)?;
    let common = common_dir(&git_dir, boundary)?;
    if !is_repository(&git_dir, &common) {
        return match is_named {
            // An empty `.git` is not a repository, for git neither.
            false => Ok(None),
            true => Err(GitError::refused(dot, "names a folder that is not a repository")),
        };
    }
    Ok(Some(FoundRepository { top: top.to_owned(), git_dir, common }))
}

/// The repository in a folder of its own, without a work tree.
pub(crate) fn in_folder(git_dir: &Path) -> Result<FoundRepository, GitError> {
    let common = common_dir(git_dir, &Boundary::Anywhere)?;
    if !is_repository(git_dir, &common) {
        return Err(GitError::NoRepository);
    }
    Ok(FoundRepository { top: git_dir.to_owned(), git_dir: git_dir.to_owned(), common })
}

/// The folder of objects and references: elsewhere for a linked work tree.
fn common_dir(git_dir: &Path, boundary: &Boundary) -> Result<PathBuf, GitError> {
    let file = git_dir.join("commondir");
    let Some(named) = one_path(&file, b"")? else { return Ok(git_dir.to_owned()) };
    let common = real(&git_dir.join(named), &file)?;
    inside(&common, &file, boundary)?;
    Ok(common)
}

/// Tells whether git accepts a folder as a repository. Git only checks the permission to enter `objects` and `refs`,
/// which a file can have as well.
fn is_repository(git_dir: &Path, common: &Path) -> bool {
    let may_enter = |part: &str| access(&common.join(part), AccessFlags::X_OK).is_ok();
    is_head(&git_dir.join("HEAD")) && may_enter("objects") && may_enter("refs")
}

/// Tells whether git accepts a file as HEAD: it names a branch, or a commit.
fn is_head(file: &Path) -> bool {
    // The number of bytes that git reads.
    const READ: u64 = 255;
    if let Ok(named) = file.read_link() {
        return named.as_os_str().as_bytes().starts_with(b"refs/");
    }
    let mut text = Vec::new();
    let read = open_regular(file).and_then(|opened| opened.take(READ).read_to_end(&mut text));
    let is_branch = |rest: &[u8]| rest.trim_ascii_start().starts_with(b"refs/");
    let is_commit = || text.get(..40).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit));
    read.is_ok() && (text.strip_prefix(b"ref:").is_some_and(is_branch) || is_commit())
}

fn real(path: &Path, named_by: &Path) -> Result<PathBuf, GitError> {
    path.canonicalize().map_err(|_| GitError::refused(named_by, "names a folder that does not exist"))
}

fn inside(path: &Path, named_by: &Path, boundary: &Boundary) -> Result<(), GitError> {
    if boundary.holds(path) {
        return Ok(());
    }
    Err(GitError::refused(
        named_by,
        "leads out of the folders that may be used; a `--root` can add the other folder",
    ))
}

/// The path that a file of one line names after `begin`. None if the file does not exist. As for git, only the end of
/// the line is not part of the path.
fn one_path(file: &Path, begin: &[u8]) -> Result<Option<PathBuf>, GitError> {
    let content = match read_regular(file, LONGEST_PATH) {
        Ok(Some(content)) => content,
        Ok(None) => return Ok(None),
        // A part of the path is a file, not a folder: then the file does not exist.
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(GitError::refused(file, format!("cannot be read: {error}"))),
    };
    let Some(mut path) = content.strip_prefix(begin) else {
        return Err(GitError::refused(file, "does not begin with `gitdir:`"));
    };
    if !begin.is_empty() {
        path = path.strip_prefix(b" ").unwrap_or(path);
    }
    let path = without_newline(path);
    if path.is_empty() || path.contains(&0) {
        return Err(GitError::refused(file, "names no folder"));
    }
    Ok(Some(PathBuf::from(OsStr::from_bytes(path))))
}

/// The content without trailing ends of lines.
fn without_newline(mut text: &[u8]) -> &[u8] {
    while let Some(shorter) = text.strip_suffix(b"\n").or_else(|| text.strip_suffix(b"\r")) {
        text = shorter;
    }
    text
}
