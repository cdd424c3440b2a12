//! Parts of a repository that are links, or that are reached through one: hooks, configuration files, the commands of
//! a rebase.
//!
//! Git runs and obeys the target of a link, and the copy of a repository has only the link. So a target that lies in
//! the work tree or in the repository is copied too, next to the copy of the repository. After a line it is compared
//! by following the link itself, so that a changed link on the way to it is noticed too. Of a target elsewhere only
//! the location counts: files outside of the workspace are neither copied here nor renamed there.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, symlink};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::outside_parts::{self, RepositoryFolders};
use crate::programs::{SetAside, differs, entries, is_changed_hook, is_hook_name, set_aside};
use crate::quarantine::remove_tree;

/// The folder of these copies, next to the copy of the repository, and their list.
const FOLDER: &str = "linked";
const LIST: &str = "linked.json";

/// The number of links that the kernel follows.
const MAX_LINKS: usize = 40;

/// The maximum number of copied bytes. Of targets beyond it only a mark is kept.
const MOST_COPIED: u64 = 16 << 20;

/// The kinds of repository files that a line must not change so that git runs something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PartKind {
    Hook,
    Config,
    /// Commands of a rebase that waits to be continued.
    Todo,
    /// The path of another folder with a configuration of its own.
    Folder,
    /// Attributes, which choose among the programs of the user's configuration.
    Attributes,
}

/// Parts in the folder of a repository or of a work tree.
pub(crate) const PARTS: [(&str, PartKind); 5] = [
    ("config", PartKind::Config),
    ("config.worktree", PartKind::Config),
    ("rebase-merge/git-rebase-todo", PartKind::Todo),
    ("commondir", PartKind::Folder),
    ("info/attributes", PartKind::Attributes),
];

#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    /// The work tree and the repository.
    within: Vec<PathBuf>,
    links: Vec<Linked>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Linked {
    path: PathBuf,
    part: PartKind,
    /// The file that the link led to.
    end: Option<PathBuf>,
    held: TargetCopy,
}

/// The ways in which the target of a link is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TargetCopy {
    /// The link led to no file.
    Nothing,
    Content,
    /// The target lies outside of work tree and repository: a link to its location.
    Place,
    /// The target is too large or cannot be read: a mark that tells it from any other.
    Mark(String),
}

/// Keeps the targets of links in the repository of a `.git`.
pub(crate) fn keep(dot: &Path, folder: &Path) -> io::Result<()> {
    let mut list = match dot.file_name().is_some_and(|name| name == ".git") {
        true => links(dot),
        false => List::default(),
    };
    let copies = folder.join(FOLDER);
    if copies.symlink_metadata().is_ok() {
        remove_tree(&copies)?;
    }
    if list.links.is_empty() {
        return match fs::remove_file(folder.join(LIST)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    fs::DirBuilder::new().mode(0o700).create(&copies)?;
    let mut left = MOST_COPIED;
    for (at, one) in list.links.iter_mut().enumerate() {
        let to = copies.join(at.to_string());
        let Some((end, found)) = file_behind(&one.path) else { continue };
        one.held = if !list.within.iter().any(|folder| end.starts_with(folder)) {
            symlink(&end, to)?;
            TargetCopy::Place
        } else if found.len() <= left && fs::copy(&end, to).is_ok() {
            left -= found.len();
            TargetCopy::Content
        } else {
            TargetCopy::Mark(mark(&found))
        };
    }
    fs::write(folder.join(LIST), serde_json::to_vec(&list)?)
}

/// Sets aside what a line left at the targets of these links, and restores what was there before.
pub(crate) fn set_aside_changes(folder: &Path, aside: &mut Vec<SetAside>) {
    let list = fs::read(folder.join(LIST)).ok();
    let list: List = list.and_then(|list| serde_json::from_slice(&list).ok()).unwrap_or_default();
    for (at, one) in list.links.iter().enumerate() {
        let ours = folder.join(FOLDER).join(at.to_string());
        // Git runs nothing through a link that leads to no file.
        let Some((end, found)) = file_behind(&one.path) else { continue };
        let is_there = one.end.as_ref() == Some(&end);
        let is_changed = match &one.held {
            TargetCopy::Nothing | TargetCopy::Content => is_changed(one.part, &ours, &end),
            TargetCopy::Place => !is_there,
            TargetCopy::Mark(was) => *was != mark(&found),
        };
        if !is_changed {
            continue;
        }
        let is_own = list.within.iter().any(|folder| end.starts_with(folder));
        aside.push(match one.held {
            TargetCopy::Nothing if is_own => set_aside(&end, &ours),
            TargetCopy::Content if is_there => set_aside(&end, &ours),
            // The link leads elsewhere through another link on its way.
            TargetCopy::Nothing | TargetCopy::Content | TargetCopy::Place => set_aside(&one.path, &ours),
            TargetCopy::Mark(_) => SetAside { path: one.path.clone(), aside: Err(NO_COPY.to_owned()) },
        });
    }
}

const NO_COPY: &str = "the file that it leads to was changed, and was too large to keep a copy of it";

fn is_changed(part: PartKind, ours: &Path, theirs: &Path) -> bool {
    match part {
        PartKind::Hook => is_changed_hook(ours, theirs),
        part => differs(part, ours, theirs),
    }
}

/// The relevant links of a repository, by their real folders.
fn links(dot: &Path) -> List {
    let Some(RepositoryFolders { top, git, hooks, .. }) = RepositoryFolders::of(dot) else {
        return List::default();
    };
    let mut links = Vec::new();
    let mut add = |path: PathBuf, part| {
        let end = end_of(&path);
        links.push(Linked { path, part, end, held: TargetCopy::Nothing });
    };
    let trees = entries(&git.join("worktrees")).into_iter();
    let bases = trees.filter_map(|tree| tree.strip_prefix(&git).ok().map(Path::to_owned));
    for base in [PathBuf::new()].into_iter().chain(bases) {
        for (name, part) in PARTS {
            if link_on_way(&git, &base.join(name)).is_some() {
                add(git.join(&base).join(name), part);
            }
        }
    }
    for hooks in hooks.into_iter().filter_map(|hooks| hooks.canonicalize().ok()) {
        let counts = outside_parts::hooks_in(&hooks, &top, &git);
        let all = entries(&hooks).into_iter().filter(|hook| hook.is_symlink() && is_hook_name(hook));
        all.filter(|hook| counts(hook)).for_each(|hook| add(hook, PartKind::Hook));
    }
    List { within: vec![top, git], links }
}

/// The first link on the way from a folder to a path below it, including the path itself.
pub(crate) fn link_on_way(folder: &Path, rel: &Path) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    rel.components().filter(|part| matches!(part, Component::Normal(_))).find_map(|part| {
        at.push(part);
        folder.join(&at).is_symlink().then(|| at.clone())
    })
}

/// The path that a link leads to, by its real folder. The target need not exist, but its folder must.
pub(crate) fn end_of(path: &Path) -> Option<PathBuf> {
    let real = |path: &Path| Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?));
    let mut at = real(path)?;
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&at) else { return Some(at) };
        at = real(&at.parent()?.join(target))?;
    }
    None
}

/// The regular file that a path leads to.
fn file_behind(path: &Path) -> Option<(PathBuf, fs::Metadata)> {
    let end = path.canonicalize().ok()?;
    let found = end.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    Some((end, found))
}

fn mark(found: &fs::Metadata) -> String {
    let (ino, ctime, nanos) = (found.ino(), found.ctime(), found.ctime_nsec());
    format!("{ino}:{}:{:o}:{ctime}.{nanos:09}", found.len(), found.mode())
}
