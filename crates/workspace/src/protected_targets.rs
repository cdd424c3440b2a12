//! Targets of protected names that are links, such as `.git/hooks -> ../shared-hooks`. Their content is run all the
//! same, so they are protected like the names, even while nothing exists there yet.
//!
//! The same holds for links in folders that are protected as a whole, such as `.claude/hooks/x -> ../../scripts/x`,
//! and in the folders that links lead to.
//!
//! A link may be in any folder. Searched are the folders on the way from the top of the repository to the path, and
//! then those around them, nearest first, up to a limit: a walk of the whole tree would make each write slow in a
//! large tree. A folder is listed once as long as its own time does not change; the targets of its links are resolved
//! each time, name by name, because `canonicalize` fails for missing files.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use crate::protected::{NAMES, PAIRS, folded, is_same, tops};
use crate::{is_protected, read_regular};

/// Returns the paths that the configuration of a repository names, given its work tree and its folder.
pub type ConfigPaths = fn(&Path, &Path) -> Vec<PathBuf>;

/// Parts of a repository that are run, or that decide what is run.
const GIT_PARTS: &[&str] = &["hooks", "config", "config.worktree", "commondir", "info", "rebase-merge"];

/// Folders of a repository in which links count.
const GIT_FOLDERS: &[&str] = &["hooks", "info", "rebase-merge"];

/// The maximum number of searched folders, in addition to those on the way to a path.
const FOLDERS: usize = 256;

/// The maximum number of searched protected folders, with their subfolders and the folders that links in them lead
/// to: for one folder with protected names, and for all together.
const INSIDE: usize = 64;
const ALL_INSIDE: usize = 1024;

/// The maximum number of listed entries of a folder. In a larger one the protected names are looked up one by one.
const ENTRIES: usize = 4096;

/// The maximum number of remembered listings.
const REMEMBERED: usize = 4096;

/// The number of links that the kernel follows.
const MAX_LINKS: usize = 40;

/// The maximum size of a file with one path.
const LONGEST_PATH: u64 = 64 << 10;

/// The age below which the time of a folder does not prove that it stayed the same.
const YOUNG: Duration = Duration::from_millis(100);

/// The real targets of protected names in and around a folder, and the paths that the configuration of its
/// repositories names.
pub fn protected_targets(folder: &Path, named: ConfigPaths) -> Vec<PathBuf> {
    let led = ProtectedTargets::default();
    led.set_config_paths(named);
    led.places(folder, folder)
}

/// The targets of protected names, with a cache of the listings that they were found in.
#[derive(Debug, Default)]
pub(crate) struct ProtectedTargets {
    listed: Mutex<HashMap<PathBuf, Listed>>,
    named: OnceLock<ConfigPaths>,
}

#[derive(Debug)]
struct Listed {
    /// Device, inode and time.
    stamp: (u64, u64, i64, i64),
    names: Arc<FolderNames>,
}

/// The names of a folder that matter here.
#[derive(Debug, Default)]
struct FolderNames {
    /// Protected names that are links.
    links: Vec<OsString>,
    /// Folders, or links, in which some names are protected.
    holders: Vec<OsString>,
    /// Links of any name, which count if the folder is protected.
    all_links: Vec<OsString>,
    /// Folders that are protected as a whole, except `.git`.
    protected: Vec<OsString>,
    has_git: bool,
    /// True if git accepts the folder itself as a repository.
    is_repository: bool,
    folders: Vec<OsString>,
}

impl ProtectedTargets {
    /// Adds the paths that configurations name. Only the first call has an effect.
    pub(crate) fn set_config_paths(&self, named: ConfigPaths) {
        self.named.get_or_init(|| named);
    }

    /// The protected targets that matter for a real path in a root. A target that contains the folder of its link is
    /// left out: such a link protects no particular file.
    pub(crate) fn places(&self, root: &Path, real: &Path) -> Vec<PathBuf> {
        let top = tops(root).next().unwrap_or(root);
        let way: Vec<&Path> = real.ancestors().filter(|folder| folder.starts_with(top)).collect();
        let above = tops(root).filter(|outer| *outer != top);
        let mut inside = ALL_INSIDE;
        let mut places = Vec::new();
        for at in way.iter().copied().chain(above) {
            places.extend(self.of(at, &mut inside));
        }
        let mut seen: HashSet<PathBuf> = way.iter().map(|folder| (*folder).to_owned()).collect();
        let mut open: VecDeque<PathBuf> = way.into_iter().map(Path::to_owned).collect();
        let mut left = FOLDERS;
        while let Some(folder) = open.pop_front() {
            let Some(names) = self.names(&folder) else { continue };
            for inner in names.folders.iter().map(|name| folder.join(name)) {
                if left == 0 {
                    return places;
                }
                if seen.insert(inner.clone()) {
                    left -= 1;
                    places.extend(self.of(&inner, &mut inside));
                    open.push_back(inner);
                }
            }
        }
        places
    }

    /// The targets of the names in one folder. `left` is the number of protected folders that may still be searched.
    fn of(&self, folder: &Path, left: &mut usize) -> Vec<PathBuf> {
        let Some(names) = self.names(folder) else { return Vec::new() };
        let mut places: Vec<PathBuf> =
            names.links.iter().flat_map(|name| leads(&folder.join(name))).collect();
        let mut inside: Vec<PathBuf> = Vec::new();
        if names.has_git {
            let repository = repositories(folder);
            // A file leads to another folder like a link.
            places.extend(repository.iter().filter(|git| **git != folder.join(".git")).cloned());
            places.extend(repository.iter().flat_map(|git| self.of_repository(folder, git)));
            inside.extend(repository.iter().flat_map(|git| GIT_FOLDERS.iter().map(|part| git.join(part))));
        }
        if names.is_repository {
            places.extend(self.of_repository(folder, folder));
            inside.extend(GIT_FOLDERS.iter().map(|part| folder.join(part)));
        }
        inside.extend(names.protected.iter().map(|name| folder.join(name)));
        for name in &names.holders {
            let (folders, led) = in_holder(folder, name);
            inside.extend(folders);
            places.extend(led);
        }
        // A device is never run: a link to `/dev/null` means that there is nothing.
        let is_device =
            |place: &PathBuf| place.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        let counts = |place: &PathBuf| !folder.starts_with(place) && !is_device(place);
        places.retain(counts);
        let git = folder.join(".git");
        // In a repository itself only some folders count.
        inside.extend(places.iter().filter(|place| !place.starts_with(&git)).cloned());
        places.extend(self.inside(inside, left).into_iter().filter(counts));
        places
    }

    /// The targets of links in these folders, in their subfolders, and in the folders that the links lead to. A
    /// folder of another repository is not entered.
    fn inside(&self, folders: Vec<PathBuf>, left: &mut usize) -> Vec<PathBuf> {
        let mut places = Vec::new();
        let mut seen: HashSet<PathBuf> = folders.iter().cloned().collect();
        let mut open = VecDeque::from(folders);
        let mut few = INSIDE;
        while let Some(folder) = open.pop_front() {
            let Some(names) = self.names(&folder).filter(|names| !names.has_git && !names.is_repository)
            else {
                continue;
            };
            if few == 0 || *left == 0 {
                break;
            }
            (few, *left) = (few - 1, *left - 1);
            let led: Vec<PathBuf> =
                names.all_links.iter().flat_map(|name| leads(&folder.join(name))).collect();
            let below = names.folders.iter().chain(&names.protected).chain(&names.holders);
            let next = below.map(|name| folder.join(name)).chain(led.iter().cloned());
            // A link to a folder that contains it protects no particular file there.
            open.extend(next.filter(|next| !folder.starts_with(next) && seen.insert(next.clone())));
            places.extend(led);
        }
        places
    }

    fn of_repository(&self, top: &Path, git: &Path) -> Vec<PathBuf> {
        let trees = git.join("worktrees");
        let names = self.names(&trees);
        let trees = names.iter().flat_map(|names| &names.folders).take(INSIDE).map(|name| trees.join(name));
        let of_trees = trees.flat_map(|tree| ["config.worktree", "commondir"].map(|part| tree.join(part)));
        let parts = GIT_PARTS.iter().map(|part| git.join(part)).chain(of_trees);
        let mut places: Vec<PathBuf> =
            parts.filter(|part| part.is_symlink()).flat_map(|part| leads(&part)).collect();
        if let Some(named) = self.named.get() {
            places.extend(named(top, git).iter().flat_map(|place| leads(place)));
        }
        places
    }

    /// The names of a folder, listed again if the folder changed.
    fn names(&self, folder: &Path) -> Option<Arc<FolderNames>> {
        let found = folder.symlink_metadata().ok().filter(fs::Metadata::is_dir)?;
        let stamp = (found.dev(), found.ino(), found.mtime(), found.mtime_nsec());
        let mut listed = self.listed.lock();
        if let Some(known) = listed.get(folder).filter(|known| known.stamp == stamp) {
            return Some(Arc::clone(&known.names));
        }
        let names = Arc::new(FolderNames::of(folder));
        let is_old = |at: SystemTime| SystemTime::now().duration_since(at).is_ok_and(|age| age > YOUNG);
        if found.modified().is_ok_and(is_old) {
            if listed.len() >= REMEMBERED {
                listed.clear();
            }
            listed.insert(folder.to_owned(), Listed { stamp, names: Arc::clone(&names) });
        }
        Some(names)
    }
}

impl FolderNames {
    fn of(folder: &Path) -> Self {
        let mut names = Self::default();
        let mut git_names = [("HEAD", false), ("commondir", false), ("objects", false), ("refs", false)];
        let mut count = 0;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES) {
            count += 1;
            let Ok(kind) = entry.file_type() else { continue };
            let name = entry.file_name();
            for (known, is_there) in &mut git_names {
                *is_there |= name == *known;
            }
            names.add(name, kind);
        }
        if count == ENTRIES {
            let fixed = NAMES.iter().copied().chain(PAIRS.iter().map(|(holder, _)| *holder));
            for name in fixed {
                if let Ok(found) = folder.join(name).symlink_metadata() {
                    names.add(name.into(), found.file_type());
                }
            }
        }
        let [(_, head), (_, commondir), (_, objects), (_, refs)] = git_names;
        names.is_repository = head && (commondir || (objects && refs));
        names
    }

    fn add(&mut self, name: OsString, kind: fs::FileType) {
        let text = name.to_string_lossy();
        let is_holder = || {
            let plain = folded(&text);
            PAIRS.iter().any(|(holder, _)| is_same(&plain, holder))
        };
        self.has_git |= text == ".git";
        if kind.is_symlink() {
            self.all_links.push(name.clone());
        }
        if kind.is_symlink() && is_protected(Path::new(&name)) {
            self.links.push(name);
        } else if (kind.is_symlink() || (kind.is_dir() && text.contains(['.', '~']))) && is_holder() {
            self.holders.push(name);
        } else if kind.is_dir() && !is_protected(Path::new(&name)) {
            self.folders.push(name);
        } else if kind.is_dir() && text != ".git" {
            self.protected.push(name);
        }
    }
}

/// The protected folders in a folder such as `.idea`, and the targets of protected names, if the folder or the name
/// is a link.
fn in_holder(folder: &Path, name: &OsStr) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let holder = folder.join(name);
    let plain = folded(&name.to_string_lossy());
    let pairs = || PAIRS.iter().filter(|(known, _)| is_same(&plain, known)).map(|(_, name)| *name);
    let entries = fs::read_dir(&holder).into_iter().flatten().flatten().take(ENTRIES);
    let protected = entries.map(|entry| entry.file_name()).filter(|name| {
        let name = folded(&name.to_string_lossy());
        pairs().any(|known| is_same(&name, known))
    });
    let protected: Vec<OsString> = protected.collect();
    let paths = protected.iter().map(|name| holder.join(name));
    let (links, others): (Vec<PathBuf>, Vec<PathBuf>) = paths.partition(|path| path.is_symlink());
    let mut places: Vec<PathBuf> = links.iter().flat_map(|path| leads(path)).collect();
    if holder.is_symlink()
        && let Some(at) = leads(&holder).pop()
    {
        places.extend(protected.iter().map(|name| at.join(name)));
        // The one name that has capital letters in its ordinary form.
        places.extend(pairs().chain(["runConfigurations"]).map(|name| at.join(name)));
    }
    (others, places)
}

/// The folders of the repository whose `.git` is in a folder: the target of that, and the part shared with other work
/// trees.
fn repositories(top: &Path) -> Vec<PathBuf> {
    let dot = top.join(".git");
    let git = match dot.is_dir() {
        true => Some(dot),
        false => one_path(&dot, b"gitdir:").and_then(|path| leads(&top.join(path)).pop()),
    };
    let common = git.as_ref().and_then(|git| {
        let path = one_path(&git.join("commondir"), b"")?;
        leads(&git.join(path)).pop()
    });
    git.into_iter().chain(common).collect()
}

/// The path that a file of one line names after `begin`.
fn one_path(file: &Path, begin: &[u8]) -> Option<PathBuf> {
    let content = read_regular(file, LONGEST_PATH).ok()??;
    let path = content.strip_prefix(begin)?.trim_ascii();
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}

/// The paths that a path leads to: each link that its last name leads through, by the link's own path, and last the
/// path without links. Missing names count as folders, because they may become such.
fn leads(path: &Path) -> Vec<PathBuf> {
    let (mut places, mut todo, mut links) = (Vec::new(), Vec::new(), 0);
    let mut at = PathBuf::from("/");
    push(&mut todo, path);
    while let Some(name) = todo.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        at.push(&name);
        let Ok(target) = fs::read_link(&at) else { continue };
        if todo.is_empty() {
            places.push(at.clone());
        }
        links += 1;
        if links > MAX_LINKS {
            return places;
        }
        at.pop();
        if target.is_absolute() {
            at = PathBuf::from("/");
        }
        push(&mut todo, &target);
    }
    places.push(at);
    places
}

/// Puts the names of a path on a stack, the first one on top.
fn push(todo: &mut Vec<OsString>, path: &Path) {
    todo.extend(path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    }));
}
