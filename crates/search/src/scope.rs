//! The files that a search covers.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ignore::overrides::Override;
use ignore::types::{Types, TypesBuilder};
use ignore::{DirEntry, WalkBuilder, WalkParallel};

use crate::SearchError;
use crate::globs;
use crate::ignored::{IgnoreOptions, is_ignored};
use crate::tree::{TreeRules, is_hidden, plain_walk};
use crate::unread::UnreadRules;

/// A part of a tree. Paths are absolute; `start` lies beneath `root`, links resolved.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub root: PathBuf,
    pub start: PathBuf,
    /// Globs of which a file must match one, if there are any.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// ripgrep's names of file types, such as `rust` or `py`.
    pub types: Vec<String>,
    /// True if names that begin with a dot count.
    pub hidden: bool,
    pub ignored: IgnoreOptions,
    /// True if a start that git's ignore files exclude counts as empty. Otherwise a start that is named is searched.
    pub ignored_start: bool,
    pub case_insensitive_globs: bool,
    /// A folder that is excluded with all its content, under any name: Lathe's own.
    pub excluded_folder: Option<PathBuf>,
    /// The list of unusable ignore files that the walk meets.
    pub unread: UnreadRules,
}

/// Folders in the excluded one whose files are excluded under every name.
const OWN_FOLDERS: [&str; 4] = ["", "policy", "server", "trust"];

/// The excluded folder.
#[derive(Debug)]
struct ExcludedFolder {
    real: PathBuf,
    /// Device and inode.
    id: Option<(u64, u64)>,
    /// Device and inode of its files that have a second name, which may be anywhere.
    files: HashSet<(u64, u64)>,
}

impl ExcludedFolder {
    fn new(folder: &Path) -> Self {
        let inside =
            OWN_FOLDERS.iter().flat_map(|name| std::fs::read_dir(folder.join(name)).into_iter().flatten());
        let found = inside.flatten().filter_map(|entry| entry.metadata().ok());
        let linked = found.filter(|found| found.is_file() && found.nlink() > 1);
        let files = linked.map(|found| (found.dev(), found.ino())).collect();
        Self { real: folder.to_owned(), id: id(folder), files }
    }

    /// Tells whether a file is one of its files, by another name.
    fn has_file(&self, path: &Path) -> bool {
        let is_own = |found: std::fs::Metadata| self.files.contains(&(found.dev(), found.ino()));
        !self.files.is_empty() && path.symlink_metadata().is_ok_and(is_own)
    }

    fn holds(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.is(above)) || self.has_file(path)
    }

    /// Tells whether a folder is the excluded one. The directory entry is not used: it has the inode beneath a mount.
    fn is(&self, folder: &Path) -> bool {
        folder == self.real || (self.id.is_some() && id(folder) == self.id)
    }
}

fn id(folder: &Path) -> Option<(u64, u64)> {
    folder.symlink_metadata().ok().filter(std::fs::Metadata::is_dir).map(|found| (found.dev(), found.ino()))
}

/// The parts of a scope that decide about each entry of a walk.
struct WalkFilter {
    rules: TreeRules,
    excluded: Override,
    included: Option<Override>,
    types: Option<Types>,
    hidden: bool,
    closed: Option<ExcludedFolder>,
    unread: UnreadRules,
}

impl WalkFilter {
    fn keeps(&self, entry: &DirEntry) -> bool {
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        entry.depth() == 0
            || (entry.file_name() != ".git"
                && self.is_wanted(entry, is_folder)
                && !self.is_closed(entry.path(), is_folder)
                && !(is_folder && self.unread.check(entry.path())))
    }

    /// Tells whether no glob, ignore file or file type excludes an entry. A hidden name is wanted if one of these
    /// includes it.
    fn is_wanted(&self, entry: &DirEntry, is_folder: bool) -> bool {
        let path = entry.path();
        let excluded = self.excluded.matched(path, is_folder);
        let takes_in = |globs: &Override| globs.matched(path, false).is_whitelist();
        // Not as overrides of the walk: those would include ignored files again.
        if excluded.is_ignore() || !(is_folder || self.included.as_ref().is_none_or(takes_in)) {
            return false;
        }
        let ruled = self.rules.matched(path, is_folder);
        if ruled.is_ignore() {
            return false;
        }
        let typed = self.types.as_ref().map(|types| types.matched(path, is_folder));
        let is_taken_in = ruled.is_whitelist() || typed.as_ref().is_some_and(ignore::Match::is_whitelist);
        !typed.is_some_and(|typed| typed.is_ignore()) && (self.hidden || is_taken_in || !is_hidden(entry))
    }

    fn is_closed(&self, path: &Path, is_folder: bool) -> bool {
        self.closed.as_ref().is_some_and(|closed| match is_folder {
            true => closed.is(path),
            false => closed.has_file(path),
        })
    }
}

impl Scope {
    pub fn new(root: impl Into<PathBuf>, start: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), start: start.into(), ..Self::default() }
    }

    pub(crate) fn walk(&self) -> Result<WalkParallel, SearchError> {
        Ok(self.builder()?.build_parallel())
    }

    /// Tells whether the start is excluded, so that there is nothing to search. A start that no model may see is an
    /// error of the walk.
    pub(crate) fn starts_ignored(&self) -> bool {
        let named = IgnoreOptions { git: false, ..self.ignored };
        self.ignored_start
            && !is_ignored(&self.root, &self.start, named)
            && is_ignored(&self.root, &self.start, self.ignored)
    }

    fn builder(&self) -> Result<WalkBuilder, SearchError> {
        match self.start.symlink_metadata() {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(SearchError::NotFound(self.start.clone()));
            }
            Err(error) => {
                return Err(SearchError::Walk { path: self.start.clone(), reason: error.to_string() });
            }
        }
        let is_closed = self.unread.check_above(&self.root, &self.start);
        // A start that is named is searched, unless no model may see it.
        let named = IgnoreOptions { git: false, ..self.ignored };
        if is_ignored(&self.root, &self.start, named) {
            return Err(SearchError::Ignored(self.start.clone()));
        }
        let closed = self.excluded_folder.as_deref().map(ExcludedFolder::new);
        if closed.as_ref().is_some_and(|closed| closed.holds(&self.start)) {
            return Err(SearchError::NotFound(self.start.clone()));
        }
        let filter = WalkFilter {
            rules: TreeRules::new(self.ignored),
            excluded: self.excludes()?,
            included: self.includes()?,
            types: (!self.types.is_empty()).then(|| self.file_types()).transpose()?,
            hidden: self.hidden || self.include.iter().any(|glob| names_hidden(glob)),
            closed,
            unread: self.unread.clone(),
        };
        let mut builder = plain_walk(&self.start);
        builder
            .threads(std::thread::available_parallelism().map_or(2, usize::from).min(8))
            .filter_entry(move |entry| filter.keeps(entry));
        if is_closed {
            builder.max_depth(Some(0));
        }
        Ok(builder)
    }

    /// Globs of which a file must match one; `None` if every file will do.
    fn includes(&self) -> Result<Option<Override>, SearchError> {
        if self.include.is_empty() {
            return Ok(None);
        }
        // A leading `!` would invert the meaning.
        let plain =
            |glob: &String| glob.strip_prefix('!').map_or_else(|| glob.clone(), |rest| format!("\\!{rest}"));
        self.globs(self.include.iter().map(plain)).map(Some)
    }

    fn excludes(&self) -> Result<Override, SearchError> {
        self.globs(self.exclude.iter().map(|glob| format!("!{}", glob.trim_start_matches('!'))))
    }

    fn globs(&self, globs: impl Iterator<Item = String>) -> Result<Override, SearchError> {
        globs::overrides(&self.start, &globs.collect::<Vec<_>>(), self.case_insensitive_globs)
    }

    fn file_types(&self) -> Result<Types, SearchError> {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        for name in &self.types {
            types.select(name);
        }
        types.build().map_err(|_| SearchError::Type(self.types.join(", ")))
    }
}

/// Tells whether a glob itself names something that begins with a dot.
fn names_hidden(glob: &str) -> bool {
    glob.split('/').any(|part| part.len() > 1 && part.starts_with('.') && part != "..")
}
