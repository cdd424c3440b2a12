//! The repositories of a folder: the one around it, those that `.git` files and links lead to, and the modules in
//! them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lathe_git::read_regular;

use crate::health;

/// The maximum number of repositories of one workspace.
const REPOSITORIES: usize = 64;

/// The maximum number of folders that are searched for modules.
const MOST_LOOKED: u64 = 3_000;

/// Every path that gets a copy of its own: the given ones, the repository around the root, those that files and links
/// lead to, and the modules in them.
pub(crate) fn repository_paths(root: &Path, found: &[PathBuf]) -> Vec<PathBuf> {
    let around = repository_around(root);
    let mut paths: Vec<PathBuf> = Vec::new();
    for dot in around.iter().chain(found) {
        let Ok(kind) = dot.symlink_metadata() else { continue };
        paths.push(dot.clone());
        if !kind.is_dir() {
            paths.extend(led_to(dot));
        }
        if paths.len() > REPOSITORIES {
            break;
        }
    }
    let modules: Vec<PathBuf> = paths.iter().flat_map(|path| modules(path)).take(REPOSITORIES).collect();
    paths.extend(modules);
    paths.sort();
    paths.dedup();
    paths
}

/// Tells whether this is a small file or a link that leads to no repository.
pub(crate) fn is_loose(path: &Path) -> bool {
    let is_small = |found: fs::Metadata| found.is_symlink() || (found.is_file() && found.len() <= 64 << 10);
    path.symlink_metadata().is_ok_and(is_small) && led_to(path).is_none()
}

pub(crate) fn repository_around(root: &Path) -> Option<PathBuf> {
    root.ancestors().map(|folder| folder.join(".git")).find(|dot| dot.symlink_metadata().is_ok())
}

pub(crate) fn repository_of(dot: &Path) -> Option<PathBuf> {
    if dot.symlink_metadata().ok()?.is_dir() { Some(dot.to_owned()) } else { led_to(dot) }
}

/// The repository that a `.git` file or link leads to: the folder with its objects.
pub(crate) fn led_to(dot: &Path) -> Option<PathBuf> {
    let kind = dot.symlink_metadata().ok()?;
    let folder = if kind.is_symlink() {
        dot.canonicalize().ok()?
    } else {
        let text = read_small(dot)?;
        let target = text.strip_prefix("gitdir:")?.trim();
        dot.parent()?.join(target).canonicalize().ok()?
    };
    let common =
        read_small(&folder.join("commondir")).and_then(|text| folder.join(text.trim()).canonicalize().ok());
    Some(common.unwrap_or(folder)).filter(|folder| health::is_repository(folder))
}

/// The text of a regular file of at most 64 KiB. A file of the expected kind is short.
pub(crate) fn read_small(path: &Path) -> Option<String> {
    path.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    String::from_utf8(read_regular(path, 64 << 10).ok()??).ok()
}

/// The packed names of a repository. A pipe in their place does not block.
pub(crate) fn packed_refs(repository: &Path) -> io::Result<Vec<u8>> {
    let content = read_regular(&repository.join("packed-refs"), LONGEST_NAMES)?;
    content.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The maximum number of bytes of packed names.
const LONGEST_NAMES: u64 = 1 << 30;

pub(crate) fn modules(repository: &Path) -> Vec<PathBuf> {
    let mut open = vec![repository.join("modules")];
    let (mut found, mut looked) = (Vec::new(), 0);
    while let Some(folder) = open.pop() {
        looked += 1;
        if looked > MOST_LOOKED || found.len() > REPOSITORIES {
            break;
        }
        if health::is_repository(&folder) {
            open.push(folder.join("modules"));
            found.push(folder);
            continue;
        }
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        open.extend(folders.map(|entry| entry.path()));
    }
    found
}
