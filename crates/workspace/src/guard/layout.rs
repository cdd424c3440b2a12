//! Folders that git takes for a repository by what is in them, without being called `.git`.
//!
//! A bare repository is `HEAD`, `objects` and `refs` in one folder (or `HEAD` and `commondir`); its `config` and `hooks` name
//! programs, which git runs for whoever stands there. So no file tool completes such a folder, nor writes what steers one.

use std::path::{Component, Path, PathBuf};

/// Names that make a repository or steer one.
const STEERING: &[&str] = &[
    "head",
    "objects",
    "refs",
    "config",
    "config.worktree",
    "hooks",
    "packed-refs",
    "commondir",
    "gitdir",
    "info",
];

/// Whether writing a path would leave it in, or steer, the layout of a repository, together with other real paths that are
/// written in the same transaction. `below` is the path from the root on.
pub(super) fn makes_repository(root: &Path, below: &Path, with: &[PathBuf]) -> bool {
    let names: Vec<Component<'_>> = below.components().collect();
    names.iter().enumerate().any(|(at, name)| {
        let name = name.as_os_str().to_string_lossy().to_lowercase();
        let steers = STEERING.contains(&name.as_str());
        steers
            && is_repository(
                &names.iter().take(at).fold(root.to_owned(), |path, part| path.join(part)),
                &name,
                with,
            )
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
