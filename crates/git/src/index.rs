//! The index of a repository: every path in it is checked before git reads it.
//!
//! Git checks a path when it adds it to an index, not when it reads one. An entry `../../outside/x` or `/outside/x`
//! makes `status` report whether that file exists, and `add` and `diff` read it. So a call gets no index unless it
//! asks for one, and then one whose paths all lie in the work tree. A call that only reads gets a checked copy, so
//! swapping the file has no effect.
//!
//! Rejected: `git ls-files` as the reader. It costs a process for each call, and the file that it reads may differ
//! from the file that the next call reads.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use lathe_workspace::content_of;

use crate::GitError;
use crate::entries::{IndexEntry, IndexHeader, IndexReader};
use crate::folder::RepositoryFolder;

/// The maximum size of an index. One of a million files has about a hundred million bytes.
const LONGEST: u64 = 512 << 20;

/// The mode of a folder, which represents its files in a sparse index.
const FOLDER_MODE: u32 = 0o040_000;

/// The mode of a commit of another repository in a folder of its own.
const COMMIT_MODE: u32 = 0o160_000;

/// The ways in which a call uses the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexUse {
    /// From a checked copy.
    Read,
    /// The file itself, checked right before.
    Write,
    /// The file itself, for `read-tree`, which does not read the old one.
    Replace,
}

/// The bytes of an index whose paths were checked.
pub(crate) struct CheckedIndex {
    bytes: Vec<u8>,
    modified: SystemTime,
}

impl CheckedIndex {
    /// Reads and checks the index in a repository's folder. None if it has none.
    pub(crate) fn read(git_dir: &RepositoryFolder, hash: usize) -> Result<Option<Self>, GitError> {
        let Some((bytes, modified)) = content(git_dir, "index")? else { return Ok(None) };
        let wrong = |name: &str, why: String| GitError::refused(git_dir.name.join(name), why);
        for base in check(&bytes, hash).map_err(|why| wrong("index", why))? {
            let name = format!("sharedindex.{base}");
            let Some((shared, _)) = content(git_dir, &name)? else {
                return Err(wrong("index", format!("needs {name}, which does not exist")));
            };
            if !check(&shared, hash).map_err(|why| wrong(&name, why))?.is_empty() {
                return Err(wrong(&name, "is a split index itself".to_owned()));
            }
        }
        Ok(Some(Self { bytes, modified }))
    }

    /// Writes a copy with the time of the original. Git rereads files that are as new as its index; with a newer copy
    /// a change made in the same moment as the commit before it would be missed.
    pub(crate) fn write(&self, to: &Path) -> io::Result<()> {
        std::fs::write(to, &self.bytes)?;
        File::options().write(true).open(to)?.set_modified(self.modified)
    }
}

fn content(git_dir: &RepositoryFolder, name: &str) -> Result<Option<(Vec<u8>, SystemTime)>, GitError> {
    let read = || {
        let Some(file) = git_dir.file(name)? else { return Ok(None) };
        let modified = file.metadata()?.modified()?;
        Ok(Some((content_of(file, LONGEST)?, modified)))
    };
    read().map_err(|error: io::Error| {
        GitError::refused(git_dir.name.join(name), format!("cannot be read: {error}"))
    })
}

/// Checks the paths of an index, and returns the names of the shared ones that it builds on. Everything that git
/// could parse differently is refused.
fn check(bytes: &[u8], hash: usize) -> Result<Vec<String>, String> {
    let damaged = || "is damaged".to_owned();
    let body = bytes.len().checked_sub(hash).and_then(|end| bytes.get(..end)).ok_or_else(damaged)?;
    let mut at = IndexReader::new(body);
    let (head, count) = IndexHeader::read(&mut at, hash).ok_or_else(damaged)?;
    if !(2..=4).contains(&head.version) {
        return Err(format!("has the version {}, which is not known", head.version));
    }
    let (mut entry, mut has_nameless) = (IndexEntry::default(), false);
    for _ in 0..count {
        at.entry(head, &mut entry).ok_or_else(damaged)?;
        let name = &entry.path;
        let path = if entry.mode == FOLDER_MODE { name.strip_suffix(b"/").unwrap_or(name) } else { name };
        match path.is_empty() {
            // In a split index such an entry has the name of one in the shared index.
            true => has_nameless = true,
            false if is_plain(path) => {}
            false => {
                let shown = String::from_utf8_lossy(name).escape_debug().to_string();
                return Err(format!("names `{shown}`, which is not a path of the work tree"));
            }
        }
    }
    let mut bases = Vec::new();
    while body.len() - at.at >= 8 {
        let (kind, content) = at.extension().ok_or_else(damaged)?;
        if kind == *b"link" {
            let base = content.get(..hash).ok_or_else(damaged)?;
            bases.push(base.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        }
    }
    // All zeros: no base.
    bases.retain(|base| base.bytes().any(|digit| digit != b'0'));
    if has_nameless && bases.is_empty() {
        return Err("has an entry without a name".to_owned());
    }
    Ok(bases)
}

/// The paths that an index lists as commits of other repositories. None if its entries cannot be parsed. The hash of
/// a repository is in its settings, so the results for both hash lengths are combined.
pub(crate) fn commits_in(bytes: &[u8]) -> Option<Vec<PathBuf>> {
    if bytes.is_empty() {
        return Some(Vec::new());
    }
    let mut found = [20, 32].into_iter().filter_map(|hash| commits(bytes, hash));
    let first = found.next()?;
    Some(first.into_iter().chain(found.flatten()).collect())
}

fn commits(bytes: &[u8], hash: usize) -> Option<Vec<PathBuf>> {
    let mut at = IndexReader::new(bytes);
    let (head, count) = IndexHeader::read(&mut at, hash)?;
    let (mut entry, mut found) = (IndexEntry::default(), Vec::new());
    for _ in 0..count {
        at.entry(head, &mut entry)?;
        match entry.mode {
            COMMIT_MODE => found.push(PathBuf::from(OsStr::from_bytes(&entry.path))),
            // Any other mode means that the entries do not have the layout that is read here.
            0o100_644 | 0o100_755 | 0o120_000 | FOLDER_MODE => {}
            _ => return None,
        }
    }
    Some(found)
}

/// Tells whether a path of an index lies in the work tree and not in a repository's own folder, by the rules that git
/// has for added paths.
fn is_plain(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|part| {
        !matches!(part, b"" | b"." | b"..") && part.split(|byte| *byte == b'\\').all(|part| !is_dot_git(part))
    })
}

/// Tells whether some file system treats a name as `.git`: in any case, with dots, spaces or a stream at its end, by
/// its short name, or with ignored characters in it.
fn is_dot_git(part: &[u8]) -> bool {
    let name = String::from_utf8_lossy(part);
    let counts = |c: &char| !matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let name: String = name.chars().filter(counts).collect();
    let name = name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    [".git", "git~1"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &[u8], length: u16) -> Vec<u8> {
        let mut entry = [&[0; 24][..], &0o100_644_u32.to_be_bytes(), &[0; 32]].concat();
        entry.extend(length.to_be_bytes());
        entry.extend(name);
        entry.extend(vec![0; 8 - entry.len() % 8]);
        entry
    }

    fn index(names: &[&[u8]], extension: &[u8]) -> Vec<u8> {
        let mut bytes = [&b"DIRC\0\0\0\x02"[..], &(names.len() as u32).to_be_bytes()].concat();
        for name in names {
            bytes.extend(entry(name, name.len().min(0xfff) as u16));
        }
        [&bytes, extension, &[0; 20]].concat()
    }

    #[test]
    fn a_path_out_of_the_work_tree_or_in_a_repositorys_folder_is_refused() {
        for name in [
            "a",
            "a/b",
            "..a",
            "a..",
            "...",
            ".gitignore",
            ".github/x",
            "git",
            "a\\b",
            "a:b",
            "ü/é",
            ".git2",
            "x.git",
        ] {
            assert_eq!(check(&index(&[name.as_bytes()], b""), 20), Ok(vec![]), "{name}");
        }
        for name in [
            "../a",
            "a/../../b",
            "/etc/passwd",
            "/",
            "a//b",
            "a/",
            "./a",
            "a/./b",
            "a/.",
            "..",
            ".git/config",
            ".GIT/config",
            "a/.git/x",
            ".git",
            ".git./x",
            ".git /x",
            ".git. ./x",
            "git~1/x",
            "GIT~1",
            ".git::$INDEX_ALLOCATION/x",
            ".g\u{200c}it/x",
            "\u{feff}.git/x",
            "a\\.git\\x",
            "a\\git~1",
        ] {
            assert!(check(&index(&[b"a", name.as_bytes()], b""), 20).is_err(), "{name}");
        }
        let long = [b"a".repeat(5000), b"/../x".to_vec()].concat();
        assert!(check(&index(&[&long], b""), 20).is_err());
        assert_eq!(check(&index(&[&b"a".repeat(5000)], b""), 20), Ok(vec![]));
    }

    #[test]
    fn what_git_could_read_otherwise_is_refused() {
        let whole = index(&[b"a.txt", b"b.txt"], b"");
        for cut in 0..whole.len() {
            assert!(check(&whole[..cut], 20).is_err(), "{cut}");
        }
        for length in [0, 1, 4, 6, 0xfff] {
            let entry = entry(b"a.txt", length);
            let bytes = [&b"DIRC\0\0\0\x02\0\0\0\x01"[..], &entry, &[0; 20]].concat();
            assert!(check(&bytes, 20).is_err(), "{length}");
        }
        assert!(check(&index(&[b""], b""), 20).is_err());
        assert!(check(&index(&[b"a"], b"TREE\0\0\0\x09x"), 20).is_err());
    }

    #[test]
    fn a_split_index_names_its_base() {
        let link = [&b"link\0\0\0\x14"[..], &[0xab; 20]].concat();
        assert_eq!(check(&index(&[b""], &link), 20), Ok(vec!["ab".repeat(20)]));
        let none = [&b"link\0\0\0\x14"[..], &[0; 20]].concat();
        assert!(check(&index(&[b""], &none), 20).is_err());
    }
}
