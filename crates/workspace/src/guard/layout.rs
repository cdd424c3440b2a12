//! Folders that git accepts as a repository by their content, without the name `.git`.
//!
//! A bare repository is `HEAD`, `objects` and `refs` in one folder (or `HEAD` and `commondir`). Its `config` and
//! `hooks` name programs, which git runs for every user with that working folder. So no file tool completes such a
//! folder, nor writes files that steer one.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use crate::protected::{from_top, steers};

/// The names by which git recognises such a folder.
const PARTS: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Real paths that are written in the same transaction. Of these paths and the folders above them, only those are
/// stored that have the name of a repository's part: so a query is one lookup, even for many paths.
pub(crate) struct Together<'a>(HashSet<&'a Path>);

impl<'a> Together<'a> {
    pub(crate) fn of(paths: &'a [PathBuf]) -> Self {
        let is_part =
            |path: &&Path| path.file_name().is_some_and(|name| PARTS.iter().any(|part| name == *part));
        Self(paths.iter().flat_map(|path| path.ancestors()).filter(is_part).collect())
    }

    /// Tells whether one of the paths is `part` or lies below it.
    fn writes(&self, part: &Path) -> bool {
        self.0.contains(part)
    }
}

/// The number of names in the path of the top of the repository that a root lies in; 0 if it lies in none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Top(usize);

impl Top {
    pub(crate) fn of(root: &Path) -> Self {
        Self(root.components().count() - from_top(root).components().count())
    }
}

/// Tells whether writing a path would leave it in the layout of a repository, or steer one, together with other real
/// paths that are written in the same transaction. The whole real path counts, because a root may be the `hooks` of
/// such a folder. Folders above the top of the root's repository do not count.
pub(crate) fn makes_repository(top: Top, real: &Path, with: &Together<'_>) -> bool {
    repository_of(top, real, with).is_some()
}

/// The folder that would be such a repository then.
pub(crate) fn repository_of(top: Top, real: &Path, with: &Together<'_>) -> Option<PathBuf> {
    let names: Vec<Component<'_>> = real.components().collect();
    names.iter().enumerate().skip(top.0).find_map(|(at, name)| {
        let name = name.as_os_str().to_string_lossy().to_lowercase();
        if !steers(&name) {
            return None;
        }
        let folder: PathBuf = names.iter().take(at).collect();
        is_repository(&folder, &name, with).then_some(folder)
    })
}

/// Tells whether a folder is such a repository already.
pub(crate) fn is_laid_out(folder: &Path) -> bool {
    is_repository(folder, "", &Together::of(&[]))
}

/// Tells whether a folder contains files, other than these paths, that would make or steer a repository.
pub(crate) fn is_begun(folder: &Path, besides: &HashSet<&Path>) -> bool {
    let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    inside.into_iter().any(|entry| {
        steers(&entry.file_name().to_string_lossy().to_lowercase())
            && !besides.contains(entry.path().as_path())
    })
}

fn is_repository(folder: &Path, written: &str, with: &Together<'_>) -> bool {
    let has = |name: &str| {
        let path = folder.join(name);
        written == name.to_lowercase() || with.writes(&path) || path.symlink_metadata().is_ok()
    };
    let [head, commondir, objects, refs] = PARTS;
    has(head) && (has(commondir) || (has(objects) && has(refs)))
}
