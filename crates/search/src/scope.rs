//! Which files are looked at.

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ignore::overrides::OverrideBuilder;
use ignore::types::TypesBuilder;
use ignore::{WalkBuilder, WalkParallel};

use crate::SearchError;

/// Whether ignore files count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ignored {
    /// What ignore files name is left out.
    #[default]
    Respected,
    /// Everything is looked at.
    Included,
}

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
    pub case_insensitive_globs: bool,
}

/// Ignore files that are read beside git's.
const IGNORE_FILES: [&str; 2] = [".latheignore", ".geminiignore"];

/// Whether a file that says what to leave out is a pipe or a device here, which the walk would wait for.
fn has_blocking_ignores(folder: &Path) -> bool {
    let names = [".gitignore", ".ignore", ".latheignore", ".geminiignore", ".git/info/exclude"];
    names.iter().any(|name| {
        std::fs::metadata(folder.join(name)).is_ok_and(|found| !found.is_file() && !found.is_dir())
    })
}

impl Scope {
    pub fn new(root: impl Into<PathBuf>, start: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), start: start.into(), ..Self::default() }
    }

    pub(crate) fn walk(&self) -> Result<WalkParallel, SearchError> {
        Ok(self.builder()?.build_parallel())
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
        let mut builder = WalkBuilder::new(&self.start);
        let respects = self.ignored == Ignored::Respected;
        builder
            .standard_filters(respects)
            .hidden(!self.hidden)
            // What the user keeps for all repositories, or above this one, is not part of the tree.
            .git_global(false)
            .parents(respects)
            .require_git(false)
            .follow_links(false)
            .threads(std::thread::available_parallelism().map_or(2, usize::from).min(8));
        if respects && !self.start.ancestors().any(has_blocking_ignores) {
            for name in IGNORE_FILES {
                builder.add_custom_ignore_filename(name);
            }
        }
        builder.overrides(self.overrides()?);
        if !self.types.is_empty() {
            builder.types(self.file_types()?);
        }
        if respects && self.start.ancestors().any(has_blocking_ignores) {
            builder.standard_filters(false).hidden(!self.hidden).parents(false);
        }
        builder.filter_entry(move |entry| {
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            entry.file_name() != ".git"
                && !(respects && entry.depth() > 0 && is_folder && has_blocking_ignores(entry.path()))
        });
        Ok(builder)
    }

    fn overrides(&self) -> Result<ignore::overrides::Override, SearchError> {
        let mut overrides = OverrideBuilder::new(&self.start);
        let wrong = |glob: &str| {
            let glob = glob.to_owned();
            move |error: ignore::Error| SearchError::Glob { glob, reason: error.to_string() }
        };
        overrides.case_insensitive(self.case_insensitive_globs).map_err(wrong("case"))?;
        for glob in &self.include {
            // A leading `!` would turn the meaning around.
            let escaped = glob.strip_prefix('!').map_or_else(|| glob.clone(), |rest| format!("\\!{rest}"));
            overrides.add(&escaped).map_err(wrong(glob))?;
        }
        for glob in &self.exclude {
            overrides.add(&format!("!{}", glob.trim_start_matches('!'))).map_err(wrong(glob))?;
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

/// The names in a folder that ignore files leave out.
pub fn ignored_names(root: &Path, folder: &Path) -> HashSet<OsString> {
    let names = |ignored: Ignored| -> HashSet<OsString> {
        let scope = Scope { hidden: true, ignored, ..Scope::new(root, folder) };
        let Ok(mut builder) = scope.builder() else { return HashSet::new() };
        let walk = builder.max_depth(Some(1)).build();
        let inside = walk.filter_map(Result::ok).filter(|entry| entry.depth() == 1);
        inside.map(|entry| entry.file_name().to_owned()).collect()
    };
    let kept = names(Ignored::Respected);
    names(Ignored::Included).into_iter().filter(|name| !kept.contains(name)).collect()
}

/// Whether ignore files of the tree leave a path out. `path` lies beneath `root`, links resolved.
pub fn is_ignored(root: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(root) else { return false };
    let mut place = root.to_owned();
    for part in inside.components() {
        place.push(part);
        // What is below an ignored folder cannot be taken back in.
        if names_itself_ignored(root, &place, place.is_dir()) {
            return true;
        }
    }
    false
}

/// The file nearest to the path decides, and our own ignore files come before git's.
fn names_itself_ignored(root: &Path, path: &Path, folder: bool) -> bool {
    let above: Vec<&Path> = path.ancestors().skip(1).take_while(|above| above.starts_with(root)).collect();
    for name in IGNORE_FILES.into_iter().chain([".ignore", ".gitignore", ".git/info/exclude"]) {
        for &folder_above in &above {
            let file = folder_above.join(name);
            // A link may lead anywhere.
            if !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let mut rules = ignore::gitignore::GitignoreBuilder::new(folder_above);
            // A line that is no pattern is passed over, as git does.
            let _ = rules.add(file);
            let Ok(rules) = rules.build() else { continue };
            let found = rules.matched(path, folder);
            if !found.is_none() {
                return found.is_ignore();
            }
        }
    }
    false
}
