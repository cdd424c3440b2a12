//! The rules of the ignore files of a tree, for a walk.
//!
//! The walker of the `ignore` crate can read ignore files by itself, but it reads them whole, waits for pipes and
//! compiles every line. Checking the files before the walk would leave a moment in which they can change. So the
//! walker reads none: its filter asks these rules, which read each file once, from a regular file, up to a limit, and
//! compile each line with [`crate::globs`]. The precedence is the walker's own: per kind of file the nearest folder
//! decides, and the kinds have the order of [`IgnoreFileKind`].

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::{Gitignore, gitconfig_excludes_path};
use ignore::{DirEntry, Match, WalkBuilder};
use parking_lot::RwLock;

use crate::globs::ignore_rules;
use crate::ignored::{GEMINI, IgnoreOptions, OWN};
use crate::unread::rule_text;

/// Makes a walk that reads no ignore files and shows hidden names. Its filter decides.
pub fn plain_walk(start: &Path) -> WalkBuilder {
    let mut builder = WalkBuilder::new(start);
    builder.standard_filters(false).follow_links(false);
    builder
}

/// The kinds of ignore files of a folder, weightiest first.
#[derive(Debug, Clone, Copy)]
enum IgnoreFileKind {
    /// `.latheignore` and `.geminiignore`.
    Own,
    /// `.ignore`.
    Plain,
    /// `.gitignore`.
    Git,
    /// The list in git's own folder.
    Exclude,
}

const KINDS: [IgnoreFileKind; 4] =
    [IgnoreFileKind::Own, IgnoreFileKind::Plain, IgnoreFileKind::Git, IgnoreFileKind::Exclude];

/// The rules of one folder that has any.
struct Level {
    /// In the order of [`KINDS`].
    rules: [Option<Gitignore>; KINDS.len()],
    above: Option<Arc<Level>>,
}

impl Drop for Level {
    fn drop(&mut self) {
        // One by one: a chain of thousands of folders would be dropped by recursion.
        let mut above = self.above.take();
        while let Some(mut level) = above.and_then(Arc::into_inner) {
            above = level.above.take();
        }
    }
}

/// The ignore files that count in a walk, each read once. Threads share it.
pub struct TreeRules {
    ignored: IgnoreOptions,
    /// The user's rules for all repositories.
    global: Option<Gitignore>,
    /// By the path of the folder. As text: a path is hashed and compared part by part, which would slow down each
    /// entry.
    levels: RwLock<HashMap<OsString, Option<Arc<Level>>>>,
}

impl TreeRules {
    /// Rules of the ignore files in the tree and in all folders above it.
    pub fn new(ignored: IgnoreOptions) -> Self {
        Self { ignored, global: None, levels: RwLock::default() }
    }

    /// Adds the rules that the user keeps for all repositories, relative to `root`.
    #[must_use]
    pub fn with_global(self, root: &Path) -> Self {
        let global = gitconfig_excludes_path().and_then(|file| compiled(root, &[file]));
        Self { global, ..self }
    }

    /// Tells whether a walk excludes an entry: an ignore file names it, or it is hidden and no ignore file includes
    /// it.
    pub fn excludes(&self, entry: &DirEntry) -> bool {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        match self.matched(entry.path(), is_folder) {
            Match::Ignore(()) => true,
            Match::Whitelist(()) => false,
            Match::None => is_hidden(entry),
        }
    }

    /// The result of the ignore files for a path itself. Whether a folder above it is ignored is not asked here.
    pub(crate) fn matched(&self, path: &Path, is_folder: bool) -> Match<()> {
        let mut found = [const { Match::None }; KINDS.len()];
        let nearest = path.parent().and_then(|folder| self.level(folder));
        let mut next = nearest.as_deref();
        while let Some(level) = next {
            for (found, rules) in found.iter_mut().zip(&level.rules) {
                if let Some(rules) = rules.as_ref().filter(|_| found.is_none()) {
                    *found = rules.matched(path, is_folder).map(|_| ());
                }
            }
            next = level.above.as_deref();
        }
        let global = || self.global.as_ref().map(|rules| rules.matched(path, is_folder).map(|_| ()));
        found.into_iter().find(|found| !found.is_none()).or_else(global).unwrap_or(Match::None)
    }

    /// The nearest level of a folder.
    fn level(&self, folder: &Path) -> Option<Arc<Level>> {
        if let Some(known) = self.levels.read().get(folder.as_os_str()) {
            return known.clone();
        }
        let (mut unknown, mut above) = (Vec::new(), None);
        for folder in folder.ancestors() {
            if let Some(known) = self.levels.read().get(folder.as_os_str()) {
                above = known.clone();
                break;
            }
            unknown.push(folder);
        }
        for folder in unknown.into_iter().rev() {
            let rules = KINDS.map(|kind| compiled(folder, &self.files(folder, kind)));
            if rules.iter().any(Option::is_some) {
                above = Some(Arc::new(Level { rules, above }));
            }
            // Another thread may have read it in the meantime: all use the first result.
            let mut levels = self.levels.write();
            above = levels.entry(folder.as_os_str().to_owned()).or_insert(above).clone();
        }
        above
    }

    /// The ignore files of a kind, weightiest last.
    fn files(&self, folder: &Path, kind: IgnoreFileKind) -> Vec<PathBuf> {
        let IgnoreOptions { git, gemini } = self.ignored;
        let files = |names: &[&str]| names.iter().map(|name| folder.join(name)).collect();
        match kind {
            IgnoreFileKind::Own if gemini => files(&[GEMINI, OWN]),
            IgnoreFileKind::Own => files(&[OWN]),
            IgnoreFileKind::Plain if git => files(&[".ignore"]),
            IgnoreFileKind::Git if git => files(&[".gitignore"]),
            IgnoreFileKind::Exclude if git => exclude_file(folder).into_iter().collect(),
            IgnoreFileKind::Plain | IgnoreFileKind::Git | IgnoreFileKind::Exclude => Vec::new(),
        }
    }
}

/// Tells whether the name begins with a dot.
pub(crate) fn is_hidden(entry: &DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

/// The rules in some files together; `None` if they have none.
fn compiled(folder: &Path, files: &[PathBuf]) -> Option<Gitignore> {
    let texts: Vec<String> = files.iter().filter_map(|file| rule_text(file)).collect();
    if texts.is_empty() {
        return None;
    }
    let lines = texts.iter().flat_map(|text| text.trim_start_matches('\u{feff}').lines());
    ignore_rules(folder, lines).ok().map(|stated| stated.rules).filter(|rules| !rules.is_empty())
}

/// The file with git's local ignore rules of a work tree. A `.git` file leads to it over two more files.
fn exclude_file(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let found = std::fs::metadata(&git).ok()?;
    if !found.is_file() {
        return Some(git.join("info/exclude"));
    }
    let text = rule_text(&git)?;
    let own = folder.join(text.trim().strip_prefix("gitdir:")?.trim());
    let common = rule_text(&own.join("commondir"))?;
    Some(own.join(common.trim()).join("info/exclude"))
}
