//! Folders that git takes for a repository by what is in them, without being called `.git`.
//!
//! A bare repository is `HEAD`, `objects` and `refs` in one folder (or `HEAD` and `commondir`); its `config` and `hooks` name
//! programs, which git runs for whoever stands there. So no file tool completes such a folder, nor writes what steers one.

use std::path::{Component, Path, PathBuf};

use crate::protected::{from_top, steers};

/// Whether writing a path would leave it in, or steer, the layout of a repository, together with other real paths that are
/// written in the same transaction. The real path counts as a whole, because a root may be the `hooks` of such a folder; above
/// the top of the repository that the root lies in, nothing does.
pub(super) fn makes_repository(root: &Path, real: &Path, with: &[PathBuf]) -> bool {
    repository_of(root, real, with).is_some()
}

/// The folder that is such a repository then.
pub(crate) fn repository_of(root: &Path, real: &Path, with: &[PathBuf]) -> Option<PathBuf> {
    let depth = root.components().count() - from_top(root).components().count();
    let names: Vec<Component<'_>> = real.components().collect();
    names.iter().enumerate().skip(depth).find_map(|(at, name)| {
        let name = name.as_os_str().to_string_lossy().to_lowercase();
        let folder: PathBuf = names.iter().take(at).collect();
        (steers(&name) && is_repository(&folder, &name, with)).then_some(folder)
    })
}

/// Tells whether a folder is such a repository as it is.
pub(crate) fn is_laid_out(folder: &Path) -> bool {
    is_repository(folder, "", &[])
}

/// Tells whether something stands in a folder that would make or steer a repository, besides these paths.
pub(crate) fn is_begun(folder: &Path, besides: &[PathBuf]) -> bool {
    let inside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    inside.into_iter().any(|entry| {
        steers(&entry.file_name().to_string_lossy().to_lowercase()) && !besides.contains(&entry.path())
    })
}

fn is_repository(folder: &Path, written: &str, with: &[PathBuf]) -> bool {
    let has = |name: &str| {
        let path = folder.join(name);
        written == name.to_lowercase()
            || path.symlink_metadata().is_ok()
            || with.iter().any(|other| other.starts_with(&path))
    };
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}
