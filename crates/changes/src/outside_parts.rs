//! Copies of files outside of a repository that count as parts of it: the folder of hooks and the configuration files
//! that its configuration names, and the folder that replaces its own hooks. For links in place of a single file see
//! `linked_parts`.
//!
//! They are kept next to the copy of the repository, with a list of them, so that a scan after a line, or after a
//! crash, follows the configuration from before it. Only files below the work tree are kept, and of a folder only its
//! direct files: git runs no others, and the folder may be one of the project's sources.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use lathe_git::{ConfiguredPaths, HOOKS};
use serde::{Deserialize, Serialize};

use crate::layout::repository_of;
use crate::linked_parts::end_of;
use crate::programs::{SetAside, entries, look_at_config, look_at_hooks, set_aside};
use crate::quarantine::remove_tree;
use crate::repository::is_same;

/// The folder of these copies, next to the copy of the repository, and their list.
const FOLDER: &str = "named";
const LIST: &str = "named.json";

/// The maximum number of entries of a folder that is for hooks alone, and the maximum size of each.
const FEW: usize = 100;
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct OutsidePart {
    path: PathBuf,
    kind: OutsidePartKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OutsidePartKind {
    /// A folder of hooks.
    Hooks,
    /// A folder with other files in it, of which only the hooks count.
    HooksAmongOthers,
    Config,
    /// A link in place of one of these.
    Link,
}

/// Keeps what the `.git` of a work tree names.
pub(crate) fn keep(dot: &Path, folder: &Path) -> io::Result<()> {
    let named = match dot.file_name().is_some_and(|name| name == ".git") {
        true => outside_parts(dot),
        false => Vec::new(),
    };
    let copies = folder.join(FOLDER);
    if copies.symlink_metadata().is_ok() {
        remove_tree(&copies)?;
    }
    if named.is_empty() {
        return match fs::remove_file(folder.join(LIST)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    fs::DirBuilder::new().mode(0o700).create(&copies)?;
    for (at, one) in named.iter().enumerate() {
        let to = copies.join(at.to_string());
        match one.kind {
            OutsidePartKind::Hooks | OutsidePartKind::HooksAmongOthers if one.path.is_dir() => {
                fs::create_dir(&to)?;
                for entry in entries(&one.path).into_iter().filter(|entry| counts(one.kind, entry)) {
                    copy(&entry, &to.join(entry.file_name().unwrap_or_default()))?;
                }
            }
            OutsidePartKind::Hooks | OutsidePartKind::HooksAmongOthers => {}
            OutsidePartKind::Config | OutsidePartKind::Link => copy(&one.path, &to)?,
        }
    }
    fs::write(folder.join(LIST), serde_json::to_vec(&named)?)
}

/// Sets aside what a line left in these places, and restores what was there before.
pub(crate) fn set_aside_changes(folder: &Path, aside: &mut Vec<SetAside>) {
    let list = fs::read(folder.join(LIST)).ok();
    let named: Vec<OutsidePart> =
        list.and_then(|list| serde_json::from_slice(&list).ok()).unwrap_or_default();
    for (at, one) in named.iter().enumerate() {
        let (theirs, ours) = (&one.path, folder.join(FOLDER).join(at.to_string()));
        match one.kind {
            OutsidePartKind::Hooks | OutsidePartKind::HooksAmongOthers if theirs.is_symlink() => {
                aside.push(set_aside(theirs, &ours));
            }
            OutsidePartKind::Hooks | OutsidePartKind::HooksAmongOthers => {
                look_at_hooks(theirs, &ours, |hook| counts(one.kind, hook), aside);
            }
            OutsidePartKind::Config => look_at_config(theirs, &ours, aside),
            OutsidePartKind::Link if theirs.symlink_metadata().is_ok() && !is_same(&ours, theirs) => {
                aside.push(set_aside(theirs, &ours));
            }
            OutsidePartKind::Link => {}
        }
    }
}

/// The folders that belong to a `.git`, by their real paths.
pub(crate) struct RepositoryFolders {
    /// The work tree.
    pub(crate) top: PathBuf,
    pub(crate) git: PathBuf,
    /// Folders of hooks, which need not exist.
    pub(crate) hooks: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl RepositoryFolders {
    pub(crate) fn of(dot: &Path) -> Option<Self> {
        let top = dot.parent()?.canonicalize().ok()?;
        let git = repository_of(dot)?.canonicalize().ok()?;
        let ConfiguredPaths { mut hooks, files } = ConfiguredPaths::of(&top, &git);
        hooks.push(git.join("hooks"));
        Some(Self { top, git, hooks, files })
    }
}

/// Paths that a `.git` names below its work tree. The copy of the repository already includes its own parts.
fn outside_parts(dot: &Path) -> Vec<OutsidePart> {
    let Some(RepositoryFolders { top, git, hooks, files }) = RepositoryFolders::of(dot) else {
        return Vec::new();
    };
    let mut named: Vec<OutsidePart> = Vec::new();
    let files = files.into_iter().map(|path| (path, OutsidePartKind::Config));
    for (path, kind) in hooks.into_iter().map(|path| (path, OutsidePartKind::Hooks)).chain(files) {
        // In its real folder, so that a link at the path itself is noticed.
        let above = path.parent().and_then(|above| above.canonicalize().ok());
        let path = above.and_then(|above| Some(above.join(path.file_name()?))).unwrap_or(path);
        let real = end_of(&path).unwrap_or_else(|| path.clone());
        // The hooks in their usual place are compared with the repository.
        let own = git.join("hooks");
        if path.is_symlink() && path != own {
            named.push(OutsidePart { path, kind: OutsidePartKind::Link });
        }
        let kind = match kind {
            OutsidePartKind::Hooks => kind_of(&real, &top, &git),
            kind => kind,
        };
        if real != own {
            named.push(OutsidePart { path: real, kind });
        }
    }
    named.retain(|one| one.path.starts_with(&top) || one.path.starts_with(&git));
    named
}

/// A filter for the relevant entries of a real folder of hooks.
pub(crate) fn hooks_in(folder: &Path, top: &Path, git: &Path) -> impl Fn(&Path) -> bool {
    let kind = if folder == git.join("hooks") { OutsidePartKind::Hooks } else { kind_of(folder, top, git) };
    move |entry| counts(kind, entry)
}

/// The kind of a real folder of hooks. The folder is for hooks alone if it is neither the work tree nor in the
/// repository, and has few entries and no large ones.
fn kind_of(folder: &Path, top: &Path, git: &Path) -> OutsidePartKind {
    let is_small = |entry: &PathBuf| entry.symlink_metadata().is_ok_and(|found| found.len() <= LONGEST);
    let inside = entries(folder);
    let is_other = folder != top && !folder.starts_with(git);
    match is_other && inside.len() <= FEW && inside.iter().all(is_small) {
        true => OutsidePartKind::Hooks,
        false => OutsidePartKind::HooksAmongOthers,
    }
}

/// Tells whether an entry of a folder of hooks is relevant.
fn counts(kind: OutsidePartKind, entry: &Path) -> bool {
    let is_hook = || entry.file_name().is_some_and(|name| HOOKS.iter().any(|hook| name == *hook));
    let is_folder = entry.symlink_metadata().is_ok_and(|found| found.is_dir());
    !is_folder && (kind != OutsidePartKind::HooksAmongOthers || is_hook())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    match from.symlink_metadata() {
        Ok(found) if found.is_symlink() => std::os::unix::fs::symlink(fs::read_link(from)?, to),
        Ok(found) if found.is_file() => fs::copy(from, to).map(drop),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}
