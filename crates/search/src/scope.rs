//! Which files are looked at.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ignore::overrides::{Override, OverrideBuilder};
use ignore::types::TypesBuilder;
use ignore::{WalkBuilder, WalkParallel};

use crate::SearchError;
use crate::ignored::{GEMINI, Ignored, OWN, is_ignored};
use crate::unread::{UnreadRules, blocks};

/// A part of a tree. Paths are absolute; `start` lies beneath `root`, links resolved.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub root: PathBuf,
    pub start: PathBuf,
    /// Globs of which a file must match one, if there are any.
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// ripgrep's names of file types, as `rust` or `py`.
    pub types: Vec<String>,
    /// Names that begin with a dot.
    pub hidden: bool,
    pub ignored: Ignored,
    /// A start that git's ignore files leave out holds nothing. Else a start that is named is looked at.
    pub ignored_start: bool,
    pub case_insensitive_globs: bool,
    /// A folder that is left out with all in it, by whatever name it is met: Lathe's own.
    pub closed: Option<PathBuf>,
    /// The list of unusable ignore files that the walk meets.
    pub unread: UnreadRules,
}

/// Folders in the one that is left out whose files are left out by every name.
const OWN_FOLDERS: [&str; 4] = ["", "policy", "server", "trust"];

/// The folder that is left out.
#[derive(Debug)]
struct Closed {
    real: PathBuf,
    /// Device and inode.
    id: Option<(u64, u64)>,
    /// Device and inode of its files that have a second name, which may stand anywhere.
    files: HashSet<(u64, u64)>,
}

impl Closed {
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

    /// Whether a folder is the one. Its entry is not asked: that names the inode beneath a mount.
    fn is(&self, folder: &Path) -> bool {
        folder == self.real || (self.id.is_some() && id(folder) == self.id)
    }
}

fn id(folder: &Path) -> Option<(u64, u64)> {
    folder.symlink_metadata().ok().filter(std::fs::Metadata::is_dir).map(|found| (found.dev(), found.ino()))
}

/// Tells whether a file that says what to leave out is a pipe or a device here, or huge, which the walk would wait for.
fn has_blocking_ignores(folder: &Path) -> bool {
    let names = [".gitignore", ".ignore", ".latheignore", ".geminiignore", ".git/info/exclude"];
    let mut files = names.iter().map(|name| folder.join(name)).chain(led_to(folder));
    files.any(|file| std::fs::metadata(file).is_ok_and(|found| blocks(&found)))
}

/// Files that the walk reads because a `.git` file leads to them.
fn led_to(folder: &Path) -> Vec<PathBuf> {
    let text = |file: &Path| {
        std::fs::metadata(file).ok().filter(|found| found.is_file() && found.len() <= 64 << 10)?;
        std::fs::read_to_string(file).ok()
    };
    let dot = text(&folder.join(".git")).unwrap_or_default();
    let Some(own) = dot.trim().strip_prefix("gitdir:").map(|own| folder.join(own.trim())) else {
        return Vec::new();
    };
    let common = own.join("commondir");
    let exclude = own.join(text(&common).unwrap_or_default().trim()).join("info/exclude");
    vec![common, exclude]
}

impl Scope {
    pub fn new(root: impl Into<PathBuf>, start: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), start: start.into(), ..Self::default() }
    }

    pub(crate) fn walk(&self) -> Result<WalkParallel, SearchError> {
        Ok(self.builder()?.build_parallel())
    }

    /// Tells whether the start is left out, so that there is nothing to look at. One that no model is to see is an error of
    /// the walk.
    pub(crate) fn starts_ignored(&self) -> bool {
        let named = Ignored { git: false, ..self.ignored };
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
        let is_closed = self.unread.meet_above(&self.root, &self.start);
        // A start that is named is looked at, unless no model is to see it.
        let named = Ignored { git: false, ..self.ignored };
        if is_ignored(&self.root, &self.start, named) {
            return Err(SearchError::Ignored(self.start.clone()));
        }
        let closed = self.closed.as_deref().map(Closed::new);
        if closed.as_ref().is_some_and(|closed| closed.holds(&self.start)) {
            return Err(SearchError::NotFound(self.start.clone()));
        }
        let mut builder = WalkBuilder::new(&self.start);
        let hidden = self.hidden || self.include.iter().any(|glob| names_hidden(glob));
        builder
            .standard_filters(self.ignored.git)
            .hidden(!hidden)
            // What the user keeps for all repositories, or above this one, is not part of the tree.
            .git_global(false)
            .parents(true)
            .require_git(false)
            .follow_links(false)
            .threads(std::thread::available_parallelism().map_or(2, usize::from).min(8));
        let blocking = is_closed || self.start.ancestors().any(has_blocking_ignores);
        if !blocking {
            // The later one weighs more.
            for name in self.ignored.gemini.then_some(GEMINI).into_iter().chain([OWN]) {
                builder.add_custom_ignore_filename(name);
            }
        }
        builder.overrides(self.excludes()?);
        if !self.types.is_empty() {
            builder.types(self.file_types()?);
        }
        if is_closed {
            builder.max_depth(Some(0));
        }
        if blocking {
            builder.standard_filters(false).hidden(!hidden).parents(false);
        }
        let unread = self.unread.clone();
        // Not as overrides of the walk: those would take ignored files back in.
        let included = self.includes()?;
        builder.filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            let is_wanted = is_folder
                || entry.depth() == 0
                || included.as_ref().is_none_or(|globs| globs.matched(entry.path(), false).is_whitelist());
            entry.file_name() != ".git"
                && !closed.as_ref().is_some_and(|closed| match is_folder {
                    true => closed.is(entry.path()),
                    false => closed.has_file(entry.path()),
                })
                && is_wanted
                && !(entry.depth() > 0
                    && is_folder
                    && (unread.meet(entry.path()) || has_blocking_ignores(entry.path())))
        });
        Ok(builder)
    }

    /// Globs of which a file must match one; `None` if every file will do.
    fn includes(&self) -> Result<Option<Override>, SearchError> {
        if self.include.is_empty() {
            return Ok(None);
        }
        // A leading `!` would turn the meaning around.
        let plain =
            |glob: &String| glob.strip_prefix('!').map_or_else(|| glob.clone(), |rest| format!("\\!{rest}"));
        self.globs(self.include.iter().map(plain)).map(Some)
    }

    fn excludes(&self) -> Result<Override, SearchError> {
        self.globs(self.exclude.iter().map(|glob| format!("!{}", glob.trim_start_matches('!'))))
    }

    fn globs(&self, globs: impl Iterator<Item = String>) -> Result<Override, SearchError> {
        let mut overrides = OverrideBuilder::new(&self.start);
        let wrong = |glob: &str| {
            let glob = glob.to_owned();
            move |error: ignore::Error| SearchError::Glob { glob, reason: error.to_string() }
        };
        overrides.case_insensitive(self.case_insensitive_globs).map_err(wrong("case"))?;
        for glob in globs {
            overrides.add(&glob).map_err(wrong(glob.trim_start_matches(['!', '\\'])))?;
        }
        overrides.build().map_err(wrong("list"))
    }

    fn file_types(&self) -> Result<ignore::types::Types, SearchError> {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        for name in &self.types {
            types.select(name);
        }
        types.build().map_err(|_| SearchError::Type(self.types.join(", ")))
    }
}

/// Whether a glob itself names something that begins with a dot.
fn names_hidden(glob: &str) -> bool {
    glob.split('/').any(|part| part.len() > 1 && part.starts_with('.') && part != "..")
}
