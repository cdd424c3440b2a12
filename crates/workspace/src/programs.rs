//! Search for programs on PATH that never finds a file of the working folder.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The full path of a program on PATH. Relative parts of PATH do not count, nor parts in `tree`, nor links that lead
/// into it. A program in any git work tree comes last: the tree may be a copy of the one that PATH names.
pub fn find_program(name: &str, tree: &Path) -> Option<PathBuf> {
    let tree = real(tree);
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
            && !is_in(path, &tree)
    };
    let parts = safe_path(&tree);
    let programs = || std::env::split_paths(&parts).map(|part| part.join(name)).filter(is_program);
    programs().find(|path| !is_in_work_tree(path)).or_else(|| programs().next())
}

fn is_in_work_tree(path: &Path) -> bool {
    real(path).ancestors().skip(1).any(|folder| folder.join(".git").symlink_metadata().is_ok())
}

/// PATH without the parts that are relative or in `tree`.
pub fn safe_path(tree: &Path) -> OsString {
    let (path, tree) = (std::env::var_os("PATH").unwrap_or_default(), real(tree));
    let is_safe = |part: &PathBuf| part.is_absolute() && !is_in(part, &tree);
    let parts: Vec<PathBuf> = std::env::split_paths(&path).filter(is_safe).collect();
    std::env::join_paths(parts).unwrap_or_default()
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Tells whether a path is really in a tree. Everything is in `/`, which therefore does not count.
fn is_in(path: &Path, tree: &Path) -> bool {
    tree.parent().is_some() && real(path).starts_with(tree)
}

/// PATH without relative parts: the meaning of a name must not depend on the working folder.
pub fn absolute_path(path: &OsStr) -> OsString {
    let parts: Vec<PathBuf> = std::env::split_paths(path).filter(|part| part.is_absolute()).collect();
    std::env::join_paths(parts).unwrap_or_else(|_| OsString::from_vec(path.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_parts_of_a_path_count() {
        let kept = |path: &str| absolute_path(OsStr::new(path)).into_string().unwrap();
        assert_eq!(kept(".:/usr/bin::bin:/bin:"), "/usr/bin:/bin");
        assert_eq!(kept("."), "");
    }
}
