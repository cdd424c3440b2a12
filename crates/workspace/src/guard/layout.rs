//! Folders that git takes for a repository by what is in them, without being called `.git`.
//!
//! A bare repository is `HEAD`, `objects` and `refs` in one folder (or `HEAD` and `commondir`); its `config` and `hooks` name
//! programs, which git runs for whoever stands there. So no file tool completes such a folder, nor writes what steers one.

use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

use crate::protected::{from_top, steers};

/// The names by which git knows such a folder.
const PARTS: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Real paths that are written in the same transaction. Only those of them, and of the folders above them, are kept that are
/// a part of a repository by their name: so a question is one look, however many paths there are.
pub(crate) struct Together<'a>(HashSet<&'a Path>);

impl<'a> Together<'a> {
    pub(crate) fn of(paths: &'a [PathBuf]) -> Self {
        let is_part =
            |path: &&Path| path.file_name().is_some_and(|name| PARTS.iter().any(|part| name == *part));
        Self(paths.iter().flat_map(|path| path.ancestors()).filter(is_part).collect())
    }

    /// Tells whether one of the paths is this one or lies below it.
    fn writes(&self, part: &Path) -> bool {
        self.0.contains(part)
    }
}

/// The number of names in the path of the top of the repository that a root lies in; 0 where it lies in none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Top(usize);

impl Top {
    pub(crate) fn of(root: &Path) -> Self {
        Self(root.components().count() - from_top(root).components().count())
    }
}

/// Whether writing a path would leave it in, or steer, the layout of a repository, together with other real paths that are
/// written in the same transaction. The real path counts as a whole, because a root may be the `hooks` of such a folder; above
/// the top of the repository that the root lies in, nothing does.
pub(crate) fn makes_repository(top: Top, real: &Path, with: &Together<'_>) -> bool {
    repository_of(top, real, with).is_some()
}

/// The folder that is such a repository then.
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

/// Tells whether a folder is such a repository as it is.
pub(crate) fn is_laid_out(folder: &Path) -> bool {
    is_repository(folder, "", &Together::of(&[]))
}

/// Tells whether something stands in a folder that would make or steer a repository, besides these paths.
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
