//! The meaning of names on this machine's disk, for the gate: the targets of links, and the contents of patterns and
//! folders.

use std::collections::HashSet;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Component, Path, PathBuf};

use lathe_git::{FoundRepository, GitError};
use lathe_policy::{Disk, FileId, GitReach, Lead};
use lathe_workspace::read_regular;

use crate::line::secure::{MOST, expand};

/// Entries of a folder, at any depth, that are inspected for one decision.
const ENTRIES: usize = 200_000;

/// Links that are followed for one name, as in the kernel.
const LINKS: usize = 40;

/// The disk of this machine.
pub struct LocalDisk;

impl Disk for LocalDisk {
    fn real(&self, path: &Path) -> PathBuf {
        real(path, LINKS)
    }

    fn expand(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        Some(expand(Path::new(pattern), false)).filter(|found| found.len() < MOST)
    }

    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn expand_with_hidden(&self, pattern: &str) -> Option<Vec<PathBuf>> {
        Some(expand(Path::new(pattern), true)).filter(|found| found.len() < MOST)
    }

    fn holds_any(&self, folder: &Path, test: &mut dyn FnMut(&Path) -> bool) -> bool {
        each_beneath(folder, LinkPolicy::Followed, &mut |path| !test(path)).is_err()
    }

    fn is_tracked(&self, path: &Path) -> bool {
        is_tracked(path)
    }

    fn tracks_any(&self, folder: &Path, test: &mut dyn FnMut(&str) -> bool) -> bool {
        let found = match lathe_git::repository_around(folder) {
            Ok(Some(found)) => found,
            Ok(None) => return false,
            Err(_) => return true,
        };
        match index(&found) {
            GitIndex::Missing => false,
            GitIndex::Unclear => true,
            GitIndex::Bytes(bytes) => names(&bytes).is_none_or(|names| names.iter().any(|name| test(name))),
        }
    }

    fn is_ignored_by_git(&self, path: &Path) -> bool {
        let found = repository_of(path).ok().flatten();
        found.is_some_and(|found| lathe_search::is_ignored_by_git(&found.top, path))
    }

    fn repository(&self, folder: &Path) -> Option<PathBuf> {
        let folder = real(folder, LINKS);
        match lathe_git::repository_around(&folder) {
            Ok(found) => found.map(|found| found.top),
            // Git would stop there with an error.
            Err(_) => folder.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned),
        }
    }

    fn git(&self, folder: &Path, workspace: &Path) -> GitReach {
        match lathe_git::reachable_repositories(folder) {
            Ok(reached) => GitReach {
                runs: super::git_runs::git_runs(&reached),
                leads: super::git_leads::git_leads(&reached, workspace),
            },
            Err(error) => {
                let shown = error.to_string();
                GitReach { runs: Some(shown.clone()), leads: vec![Lead { shown, place: None }] }
            }
        }
    }

    fn hard_link_id(&self, path: &Path) -> Option<FileId> {
        let found = path.metadata().ok().filter(|found| found.is_file() && found.nlink() > 1)?;
        Some(FileId { device: found.dev(), inode: found.ino() })
    }

    fn link_chain(&self, path: &Path) -> Vec<PathBuf> {
        led_to(path)
    }

    fn on_path(&self, name: &str) -> Vec<PathBuf> {
        let runs = |path: &PathBuf| {
            path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
        };
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
        let found = folders.map(|folder| folder.join(name)).filter(runs);
        // Lathe need not be on PATH to be started through a link.
        found.chain(std::env::current_exe().ok().filter(|_| name == "lathe")).collect()
    }
}

/// The places that a name leads to, link by link. The targets of a process's own links depend on the process that
/// reads them.
fn led_to(path: &Path) -> Vec<PathBuf> {
    let (mut places, mut at) = (Vec::new(), path.to_owned());
    while let Ok(target) = at.read_link()
        && places.len() < LINKS
        && !at.starts_with("/proc")
    {
        at = at.parent().unwrap_or(Path::new("/")).join(target);
        places.push(at.clone());
    }
    let file = path.canonicalize().ok().filter(|file| file.is_file() && !path.starts_with("/proc"));
    places.extend(file.filter(|file| places.last() != Some(file)));
    places
}

/// Bytes of an index of git that are read.
const INDEX: u64 = 256 << 20;

/// The repository that a file lies in, whether or not it exists now.
fn repository_of(path: &Path) -> Result<Option<FoundRepository>, GitError> {
    path.ancestors().skip(1).find(|folder| folder.is_dir()).map_or(Ok(None), lathe_git::repository_around)
}

/// The content of an index of git.
enum GitIndex {
    /// There is no index.
    Missing,
    /// It cannot be read, or its names cannot be determined.
    Unclear,
    Bytes(Vec<u8>),
}

/// The index of a repository.
fn index(found: &FoundRepository) -> GitIndex {
    let folder = &found.git_dir;
    // The names may stand in a second file, which several indexes share.
    let shared = |entry: std::fs::DirEntry| entry.file_name().as_encoded_bytes().starts_with(b"sharedindex.");
    if std::fs::read_dir(folder).into_iter().flatten().flatten().any(shared) {
        return GitIndex::Unclear;
    }
    let bytes = match read_regular(&folder.join("index"), INDEX) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return GitIndex::Missing,
        Err(_) => return GitIndex::Unclear,
    };
    // From version 4 on, names are compressed by their common beginnings.
    if bytes.get(4..8) != Some(&[0, 0, 0, 2]) && bytes.get(4..8) != Some(&[0, 0, 0, 3]) {
        return GitIndex::Unclear;
    }
    GitIndex::Bytes(bytes)
}

/// Tells whether the index of the repository that a file lies in has its name. An index or a
/// repository that cannot be read counts as yes.
fn is_tracked(path: &Path) -> bool {
    let found = match repository_of(path) {
        Ok(Some(found)) => found,
        Ok(None) => return false,
        Err(_) => return true,
    };
    let Ok(inside) = path.strip_prefix(&found.top) else { return true };
    let bytes = match index(&found) {
        GitIndex::Missing => return false,
        GitIndex::Unclear => return true,
        GitIndex::Bytes(bytes) => bytes,
    };
    let mut name = inside.as_os_str().as_encoded_bytes().to_vec();
    name.push(0);
    memchr::memmem::find(&bytes, &name).is_some()
}

/// The names in an index whose entries hold hashes of 20 bytes. None if the index is not written in this form.
fn names(index: &[u8]) -> Option<Vec<String>> {
    const FIXED: usize = 62;
    let count = u32::from_be_bytes(index.get(8..12)?.try_into().ok()?);
    let (mut names, mut at) = (Vec::new(), 12);
    for _ in 0..count {
        let flags = u16::from_be_bytes(index.get(at + FIXED - 2..at + FIXED)?.try_into().ok()?);
        let begin = at + FIXED + if flags & 0x4000 == 0 { 0 } else { 2 };
        let length = memchr::memchr(0, index.get(begin..)?)?;
        let said = usize::from(flags & 0xfff);
        // A name of the largest length says only that it is at least so long.
        if length != said && (said != 0xfff || length < said) {
            return None;
        }
        names.push(String::from_utf8_lossy(index.get(begin..begin + length)?).into_owned());
        at += (begin + length - at + 8) / 8 * 8;
    }
    Some(names)
}

/// The ways in which a walk treats a link to a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPolicy {
    /// Continues in the folder that it leads to.
    Followed,
    /// Names the link and the place it leads to, and goes no further: for readers that follow no links.
    Named,
}

/// Hands everything in a folder to `take`, which tells whether to continue: each entry by its own name, and each link
/// by the place it leads to as well. The error means that the folder is too large, or that `take` stopped the walk.
pub(crate) fn each_beneath(
    folder: &Path,
    links: LinkPolicy,
    take: &mut dyn FnMut(&Path) -> bool,
) -> Result<(), WalkStopped> {
    let (mut folders, mut seen, mut left) = (vec![folder.to_owned()], HashSet::new(), ENTRIES);
    while let Some(folder) = folders.pop() {
        if !seen.insert(real(&folder, LINKS)) {
            continue;
        }
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            left = left.checked_sub(1).ok_or(WalkStopped)?;
            let kind = entry.file_type().ok();
            let link = kind.is_some_and(|kind| kind.is_symlink()).then(|| real(&path, LINKS));
            if !take(&path) || link.as_ref().is_some_and(|link| !take(link)) {
                return Err(WalkStopped);
            }
            match link {
                Some(link) if links == LinkPolicy::Followed && link.is_dir() => folders.push(link),
                None if kind.is_some_and(|kind| kind.is_dir()) => folders.push(path),
                Some(_) | None => {}
            }
        }
    }
    Ok(())
}

/// A walk that did not reach its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WalkStopped;

/// The path with its links resolved, as far as it exists. A link that leads nowhere is followed all the same: its
/// target may exist when the line runs.
fn real(path: &Path, links: usize) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    if let Ok(target) = path.read_link()
        && links > 0
    {
        let folder = path.parent().unwrap_or(Path::new("/"));
        return real(&folder.join(target), links - 1);
    }
    match (path.parent(), path.components().next_back()) {
        (Some(folder), Some(Component::Normal(name))) => real(folder, links).join(name),
        (Some(folder), Some(Component::ParentDir)) => {
            let mut folder = real(folder, links);
            folder.pop();
            folder
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_are_resolved_as_far_as_they_lead() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/file"), "x").unwrap();
        symlink("a/b", root.join("link")).unwrap();
        symlink("missing/x", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        for (path, real) in [
            ("link/file", "a/b/file"),
            ("link/../b/file", "a/b/file"),
            ("link/new", "a/b/new"),
            ("dangling", "missing/x"),
            ("none/../a", "a"),
        ] {
            assert_eq!(LocalDisk.real(&root.join(path)), root.join(real), "{path}");
        }
        let _ = LocalDisk.real(&root.join("loop"));
    }

    #[test]
    fn a_program_is_followed_link_by_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::write(root.join("file"), "x").unwrap();
        symlink("file", root.join("b")).unwrap();
        symlink(root.join("b"), root.join("a")).unwrap();
        symlink("missing", root.join("dangling")).unwrap();
        for (name, places) in [
            ("a", vec!["b", "file"]),
            ("b", vec!["file"]),
            ("file", vec!["file"]),
            ("dangling", vec!["missing"]),
            ("none", vec![]),
        ] {
            let places: Vec<PathBuf> = places.into_iter().map(|place| root.join(place)).collect();
            assert_eq!(LocalDisk.link_chain(&root.join(name)), places, "{name}");
        }
        assert!(LocalDisk.on_path("sh").iter().any(|found| found.is_absolute()));
        assert_eq!(LocalDisk.on_path("no-program-is-called-so"), Vec::<PathBuf>::new());
    }

    #[test]
    fn a_folder_holds_what_its_links_lead_to() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("w/sub")).unwrap();
        std::fs::create_dir_all(root.join("out")).unwrap();
        std::fs::write(root.join("out/secret"), "x").unwrap();
        let holds = |name: &str| LocalDisk.holds_any(&root.join("w"), &mut |path| path.ends_with(name));
        assert!(!holds("secret"));
        symlink(root.join("out"), root.join("w/sub/link")).unwrap();
        symlink(root.join("w"), root.join("w/round")).unwrap();
        assert!(holds("secret"));
        assert!(holds("sub"));
    }
}
