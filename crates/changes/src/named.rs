//! Copies of what stands outside of a repository and counts as a part of it: the folder of hooks and the files of
//! configuration that its configuration names, and the folder that stands in the place of its own hooks. Of links in the
//! place of a single file see `linked`.
//!
//! They are kept beside the copy of the repository, with a list of them, so that a look after a line, or after a crash, goes by
//! the configuration from before it. Only what lies below the work tree is kept, and of a folder only its own files: git runs
//! no others, and the folder may be one of the project's sources.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use lathe_git::{HOOKS, NamedPlaces};
use serde::{Deserialize, Serialize};

use crate::layout::repository_of;
use crate::linked::end_of;
use crate::programs::{SetAside, entries, look_at_config, look_at_hooks, put_back};
use crate::quarantine::remove_tree;
use crate::repository::is_same;

/// The folder of these copies beside that of the repository, and the list of them.
const FOLDER: &str = "named";
const LIST: &str = "named.json";

/// Entries of a folder for hooks alone, and bytes of each.
const FEW: usize = 100;
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Named {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    /// A folder of hooks.
    Hooks,
    /// A folder of which only the hooks count, because other things are in it.
    HooksAmongOthers,
    Config,
    /// A link in the place of one of these.
    Link,
}

/// Keeps what the `.git` of a work tree names.
pub(crate) fn keep(dot: &Path, folder: &Path) -> io::Result<()> {
    let named = match dot.file_name().is_some_and(|name| name == ".git") {
        true => places(dot),
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
            Kind::Hooks | Kind::HooksAmongOthers if one.path.is_dir() => {
                fs::create_dir(&to)?;
                for entry in entries(&one.path).into_iter().filter(|entry| counts(one.kind, entry)) {
                    copy(&entry, &to.join(entry.file_name().unwrap_or_default()))?;
                }
            }
            Kind::Hooks | Kind::HooksAmongOthers => {}
            Kind::Config | Kind::Link => copy(&one.path, &to)?,
        }
    }
    fs::write(folder.join(LIST), serde_json::to_vec(&named)?)
}

/// Sets aside what a line left in these places, and puts back what was there before.
pub(crate) fn look(folder: &Path, aside: &mut Vec<SetAside>) {
    let list = fs::read(folder.join(LIST)).ok();
    let named: Vec<Named> = list.and_then(|list| serde_json::from_slice(&list).ok()).unwrap_or_default();
    for (at, one) in named.iter().enumerate() {
        let (theirs, ours) = (&one.path, folder.join(FOLDER).join(at.to_string()));
        match one.kind {
            Kind::Hooks | Kind::HooksAmongOthers if theirs.is_symlink() => {
                aside.push(put_back(theirs, &ours));
            }
            Kind::Hooks | Kind::HooksAmongOthers => {
                look_at_hooks(theirs, &ours, |hook| counts(one.kind, hook), aside);
            }
            Kind::Config => look_at_config(theirs, &ours, aside),
            Kind::Link if theirs.symlink_metadata().is_ok() && !is_same(&ours, theirs) => {
                aside.push(put_back(theirs, &ours));
            }
            Kind::Link => {}
        }
    }
}

/// The folders that belong to a `.git`, by their real paths.
pub(crate) struct Place {
    /// The work tree.
    pub(crate) top: PathBuf,
    pub(crate) git: PathBuf,
    /// Folders of hooks, which need not be there.
    pub(crate) hooks: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Place {
    pub(crate) fn of(dot: &Path) -> Option<Self> {
        let top = dot.parent()?.canonicalize().ok()?;
        let git = repository_of(dot)?.canonicalize().ok()?;
        let NamedPlaces { mut hooks, files } = NamedPlaces::of(&top, &git);
        hooks.push(git.join("hooks"));
        Some(Self { top, git, hooks, files })
    }
}

/// Places that a `.git` names below its work tree. The repository's own parts have copies in its copy.
fn places(dot: &Path) -> Vec<Named> {
    let Some(Place { top, git, hooks, files }) = Place::of(dot) else { return Vec::new() };
    let mut named: Vec<Named> = Vec::new();
    let files = files.into_iter().map(|path| (path, Kind::Config));
    for (path, kind) in hooks.into_iter().map(|path| (path, Kind::Hooks)).chain(files) {
        // In its real folder, so that a link in its own place is seen.
        let above = path.parent().and_then(|above| above.canonicalize().ok());
        let path = above.and_then(|above| Some(above.join(path.file_name()?))).unwrap_or(path);
        let real = end_of(&path).unwrap_or_else(|| path.clone());
        // The hooks in their own place are looked at with the repository.
        let own = git.join("hooks");
        if path.is_symlink() && path != own {
            named.push(Named { path, kind: Kind::Link });
        }
        let kind = match kind {
            Kind::Hooks => kind_of(&real, &top, &git),
            kind => kind,
        };
        if real != own {
            named.push(Named { path: real, kind });
        }
    }
    named.retain(|one| one.path.starts_with(&top) || one.path.starts_with(&git));
    named
}

/// Tells which entries of a real folder of hooks are looked at.
pub(crate) fn hooks_in(folder: &Path, top: &Path, git: &Path) -> impl Fn(&Path) -> bool {
    let kind = if folder == git.join("hooks") { Kind::Hooks } else { kind_of(folder, top, git) };
    move |entry| counts(kind, entry)
}

/// The kind of a real folder of hooks. It is there for hooks alone if it is not the work tree, nor lies in the repository, has
/// few entries, and no large ones.
fn kind_of(folder: &Path, top: &Path, git: &Path) -> Kind {
    let is_small = |entry: &PathBuf| entry.symlink_metadata().is_ok_and(|found| found.len() <= LONGEST);
    let inside = entries(folder);
    let is_other = folder != top && !folder.starts_with(git);
    match is_other && inside.len() <= FEW && inside.iter().all(is_small) {
        true => Kind::Hooks,
        false => Kind::HooksAmongOthers,
    }
}

/// Tells whether an entry of a folder of hooks is looked at.
fn counts(kind: Kind, entry: &Path) -> bool {
    let is_hook = || entry.file_name().is_some_and(|name| HOOKS.iter().any(|hook| name == *hook));
    let is_folder = entry.symlink_metadata().is_ok_and(|found| found.is_dir());
    !is_folder && (kind != Kind::HooksAmongOthers || is_hook())
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
