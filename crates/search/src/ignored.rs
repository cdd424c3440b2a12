//! Files that ignore files exclude.
//!
//! With `.latheignore` the user says which files no model may see, so nothing overrides it: no parameter, no glob, no
//! other ignore file. Git's ignore files and `.geminiignore` can be overridden, each by itself.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ignore::gitignore::Gitignore;

use crate::globs::everything;
use crate::scope::Scope;
use crate::unread::read_ignore_file;

/// The ignore file of Lathe, which always counts.
pub const OWN: &str = ".latheignore";

/// The ignore file of Gemini CLI.
pub(crate) const GEMINI: &str = ".geminiignore";

/// Ignore files that git and ripgrep know.
const GIT: [&str; 3] = [".ignore", ".gitignore", ".git/info/exclude"];

/// The ignore files that count. `.latheignore` always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IgnoreOptions {
    /// `.gitignore`, `.ignore` and git's own list.
    pub git: bool,
    /// `.geminiignore`.
    pub gemini: bool,
}

impl IgnoreOptions {
    /// Files that ignore files name are excluded.
    pub const RESPECTED: Self = Self { git: true, gemini: true };
    /// Only files that `.latheignore` names are excluded.
    pub const INCLUDED: Self = Self { git: false, gemini: false };

    /// The names of the ignore files, weightiest first.
    fn files(self) -> impl Iterator<Item = &'static str> {
        let gemini = self.gemini.then_some(GEMINI);
        [OWN].into_iter().chain(gemini).chain(GIT.into_iter().filter(move |_| self.git))
    }
}

impl Default for IgnoreOptions {
    fn default() -> Self {
        Self::RESPECTED
    }
}

/// The names in a folder that ignore files exclude.
pub fn ignored_names(root: &Path, folder: &Path, ignored: IgnoreOptions) -> HashSet<OsString> {
    let mut rules = IgnoreRules::new(root, ignored);
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter(|entry| rules.excludes(&entry.path())).map(|entry| entry.file_name()).collect()
}

/// Tells whether the ignore files in the repository make git ignore a file that it does not track. `path` lies
/// beneath `root`.
pub fn is_ignored_by_git(root: &Path, path: &Path) -> bool {
    let files = vec![".gitignore", ".git/info/exclude"];
    IgnoreRules { files, ..IgnoreRules::new(root, IgnoreOptions::INCLUDED) }.excludes(path)
}

/// Tells whether ignore files of the tree exclude a path. `path` lies beneath `root`, links resolved.
pub fn is_ignored(root: &Path, path: &Path, ignored: IgnoreOptions) -> bool {
    IgnoreRules::new(root, ignored).excludes(path)
}

/// The most entries of a tree that are searched for other names of ignored files.
const ENTRIES: usize = 200_000;

/// Files that `.latheignore` names and that have other names too: a hard link is the same file.
#[derive(Debug, Default)]
struct LinkedFiles {
    /// Device and inode of each.
    ids: HashSet<(u64, u64)>,
    /// True if the tree is too large to search through, so that any file with several names may be one.
    unknown: bool,
}

impl LinkedFiles {
    fn beneath(root: &Path) -> Self {
        let mut rules = IgnoreRules::new(root, IgnoreOptions::INCLUDED);
        let (mut found, mut has_rules, mut left) = (Self::default(), false, ENTRIES);
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Some(rest) = left.checked_sub(1) else {
                    found.unknown = has_rules;
                    return found;
                };
                left = rest;
                has_rules |= entry.file_name() == OWN;
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                    Ok(kind) if kind.is_file() => {
                        let id = linked(&entry.path()).filter(|_| rules.is_left_out(&entry.path()));
                        found.ids.extend(id);
                    }
                    Ok(_) | Err(_) => {}
                }
            }
        }
        found
    }
}

/// Device and inode of a file that has more than one name.
fn linked(path: &Path) -> Option<(u64, u64)> {
    let found = path.symlink_metadata().ok().filter(|found| found.is_file() && found.nlink() > 1)?;
    Some((found.dev(), found.ino()))
}

/// The ignore files of a tree, each read once.
#[derive(Clone)]
pub struct IgnoreRules {
    root: PathBuf,
    /// The names of the ignore files, weightiest first.
    files: Vec<&'static str>,
    read: HashMap<PathBuf, Option<Gitignore>>,
    /// Folders that were checked, each with true if it is excluded.
    folders: HashMap<PathBuf, bool>,
    /// Searched for when a file with several names is found.
    links: Arc<OnceLock<LinkedFiles>>,
}

impl IgnoreRules {
    pub fn new(root: &Path, ignored: IgnoreOptions) -> Self {
        Self {
            root: root.to_owned(),
            files: ignored.files().collect(),
            read: HashMap::new(),
            folders: HashMap::new(),
            links: Arc::default(),
        }
    }

    /// The rules that hold for a scope with any options.
    pub(crate) fn own(scope: &Scope) -> Self {
        Self::new(&scope.root, IgnoreOptions::INCLUDED)
    }

    /// Tells whether a path, or a folder on the way to it, is excluded, by this name or by another one of the same
    /// file.
    pub fn excludes(&mut self, path: &Path) -> bool {
        self.is_left_out(path) || self.is_linked(path)
    }

    fn is_linked(&self, path: &Path) -> bool {
        let Some(id) = linked(path).filter(|_| self.files.contains(&OWN)) else { return false };
        let links = self.links.get_or_init(|| LinkedFiles::beneath(&self.root));
        links.unknown || links.ids.contains(&id)
    }

    fn is_left_out(&mut self, path: &Path) -> bool {
        // A path below an ignored folder cannot be included again.
        match path.parent().filter(|parent| parent.starts_with(&self.root) && path != self.root) {
            Some(parent) => self.excludes_folder(parent) || self.names(path, path.is_dir()),
            None => false,
        }
    }

    fn excludes_folder(&mut self, folder: &Path) -> bool {
        if folder == self.root || !folder.starts_with(&self.root) {
            return false;
        }
        if let Some(known) = self.folders.get(folder) {
            return *known;
        }
        let above = folder.parent().is_some_and(|parent| self.excludes_folder(parent));
        let found = above || self.names(folder, true);
        self.folders.insert(folder.to_owned(), found);
        found
    }

    /// Tells whether the path itself is named. The file nearest to the path decides, and our own ignore files come
    /// before git's.
    fn names(&mut self, path: &Path, is_folder: bool) -> bool {
        for name in self.files.clone() {
            for above in path.ancestors().skip(1) {
                if !above.starts_with(&self.root) {
                    break;
                }
                let Some(rules) = self.rules(above, name) else { continue };
                let found = rules.matched(path, is_folder);
                if !found.is_none() {
                    if found.is_ignore() {
                        return true;
                    }
                    // A path that our own file includes again may still be excluded by another one. That does not
                    // hold for the other ignore files, which follow each other from the special to the general.
                    if name == OWN {
                        break;
                    }
                    return false;
                }
            }
        }
        false
    }

    fn rules(&mut self, folder: &Path, name: &str) -> Option<&Gitignore> {
        let file = folder.join(name);
        let read = |file: &PathBuf| match read_ignore_file(folder, file) {
            Ok(rules) => rules,
            // If our own file cannot be read, it is not known what it excludes, so all of its folder is excluded. The
            // other ignore files name files that are not worth reading; without them more is seen, but nothing that
            // was to be kept secret.
            Err(_) if name == OWN => everything(folder),
            Err(unread) => unread.rest.map(|rest| *rest),
        };
        self.read.entry(file).or_insert_with_key(read).as_ref()
    }
}
