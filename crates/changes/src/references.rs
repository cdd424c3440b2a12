//! Selection of the files that need no copy because git has their content.
//!
//! The index records the `lstat` of a file at the time when git last compared it with its object. A file with the
//! same `lstat` that is older than the index is the object, unless git converts on the way (line ends, `$Id$`,
//! encodings, filters). With line ends and `$Id$` an unchanged file of the object's size is the object, because
//! cleaning only ever removes bytes. Every other file that the index names is read and compared with the name of the
//! object; a file that differs from the object is copied. The index is read here, entry by entry: git needs a process
//! for each query, each with the whole index in memory. Nothing in the repository is written, and nothing that it
//! names is run.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lathe_git::{ContentRules, IndexEntry, IndexFile, Repository, read_regular};

use crate::beneath::split;
use crate::git::Git;
use crate::manifest::{Oids, from_hex, hex};
use crate::stat::{PathKind, Stat};
use crate::walk::SeenPath;

/// Git's knowledge of a file. The number is that of the object in [`Oids`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference {
    /// Git has nothing.
    None,
    /// The object is the file's content.
    Proven(u32),
    /// The object may be the file's content: the file has to be read.
    Likely(u32),
}

/// A repository and its conversion settings, read before the list of files is known.
pub(crate) struct ReferenceFinder {
    git: Git,
    /// True if line ends are converted in files without attributes.
    converts_all: bool,
    /// True if attributes of the user or the system convert files.
    converts_some: bool,
}

/// The name of attribute files.
const ATTRIBUTES: &[u8] = b".gitattributes";

/// Parts of the names of attributes that convert. A file without any of these converts nothing.
const CONVERTING: [&[u8]; 6] = [b"filter", b"encoding", b"text", b"eol", b"crlf", b"ident"];

/// The maximum number of bytes read from an attribute file, and the maximum number of such files in one tree.
const LONGEST: u64 = 1 << 20;
const MOST_ATTRIBUTES: usize = 256;

/// The minimum age of a file before the index, in nanoseconds. Some builds of git record whole seconds.
const OLDER: i64 = 1_000_000_000;

impl ReferenceFinder {
    /// Reads the settings of the repository around a folder. None if no repository can be used.
    pub fn open(root: &Path) -> Option<Self> {
        let git = Git::at(root);
        let repository = git.repository()?;
        let keys = r"^core\.(autocrlf|eol|attributesfile)$";
        let set = git.run(ContentRules::User, &["config", "--null", "--get-regexp", keys], None);
        let (mut autocrlf, mut eol, mut file) = (None, None, None);
        let set = set.unwrap_or_default();
        for setting in set.split(|byte| *byte == 0).filter(|setting| !setting.is_empty()) {
            // A key without a value means true.
            let (key, value) = match setting.iter().position(|byte| *byte == b'\n') {
                Some(at) => (&setting[..at], &setting[at + 1..]),
                None => (setting, &b"true"[..]),
            };
            match key {
                b"core.autocrlf" => autocrlf = Some(value.trim_ascii()),
                b"core.eol" => eol = Some(value.trim_ascii()),
                _ => file = Some(value),
            }
        }
        let is_off = |value: &[u8], off: &[&[u8]]| off.contains(&value);
        let converts_all = autocrlf
            .is_some_and(|value| !is_off(value, &[b"", b"false", b"no", b"off", b"0"]))
            || eol.is_some_and(|value| !is_off(value, &[b"", b"lf", b"native"]));
        let of_user = match file {
            Some(file) if file.starts_with(b"/") => vec![PathBuf::from(OsStr::from_bytes(file))],
            // Only git resolves such a path.
            Some(_) => return Some(Self { git, converts_all, converts_some: true }),
            None => user_files(),
        };
        let mut files = of_user.into_iter().chain(system_files(repository.program()));
        let converts_some = files.any(|file| converts(&file));
        Some(Self { git, converts_all, converts_some })
    }

    /// Git's knowledge of each file, in the order of `seen`, which is the order of the paths.
    pub fn references(&self, seen: &[SeenPath], oids: &mut Oids) -> Vec<Reference> {
        let mut all = vec![Reference::None; seen.len()];
        let Some(repository) = self.git.repository() else { return all };
        let Some(index) = repository.index_file() else { return all };
        let listed = match read_index(index, repository.prefix(), seen, &mut all, oids) {
            IndexScan::Whole { hidden } => Some(hidden),
            IndexScan::Split => self.list_by_git(seen, &mut all, oids).then_some(true),
            IndexScan::Damaged => None,
        };
        let Some(hidden) = listed else { return vec![Reference::None; seen.len()] };
        let asks = hidden || self.converts_some || self.converts_all || tree_converts(repository, seen);
        if asks && self.converted(seen, &mut all, oids).is_none() {
            // Unknown, so every file is read.
            all.iter_mut().for_each(Reference::doubt);
        }
        all
    }

    /// Uses git's own listing, which includes the entries that a split index shares with others.
    fn list_by_git(&self, seen: &[SeenPath], all: &mut [Reference], oids: &mut Oids) -> bool {
        let listed = || {
            let index = self.git.repository()?.index();
            let before = std::fs::metadata(&index).ok()?;
            let files = self.git.run(ContentRules::Bytes, &["ls-files", "-s", "-v", "-z"], None)?;
            let arguments =
                ["diff-files", "--name-only", "--relative", "--no-ext-diff", "--ignore-submodules=all", "-z"];
            let dirty = self.git.run(ContentRules::Bytes, &arguments, None)?;
            // Both commands must have read the same index.
            is_same(&before, &std::fs::metadata(&index).ok()?).then_some((files, dirty))
        };
        let Some((files, dirty)) = listed() else { return false };
        let dirty: HashSet<&[u8]> = dirty.split(|byte| *byte == 0).collect();
        for (path, oid) in listed_files(&files).filter(|(path, _)| !dirty.contains(path)) {
            let Ok(at) = seen.binary_search_by(|one| (*one.rel).cmp(path)) else { continue };
            let number = from_hex(oid).and_then(|oid| oids.add(&oid));
            if let (Some(one), Some(number)) = (all.get_mut(at), number) {
                *one = Reference::Proven(number);
            }
        }
        true
    }

    /// Marks the files whose content may differ from their object although they are unchanged. None if git does not
    /// answer.
    fn converted(&self, seen: &[SeenPath], all: &mut [Reference], oids: &Oids) -> Option<()> {
        let proven: Vec<(usize, &[u8], u32)> = (all.iter().zip(seen).enumerate())
            .filter_map(|(at, (reference, one))| match reference {
                Reference::Proven(number) => Some((at, &*one.rel, *number)),
                Reference::None | Reference::Likely(_) => None,
            })
            .collect();
        let would_wait = self.would_wait(proven.iter().map(|(_, path, _)| *path));
        if would_wait {
            return None;
        }
        let mut paths = Vec::new();
        for (_, path, _) in &proven {
            paths.extend_from_slice(path);
            paths.push(0);
        }
        // Query all attributes: then git prints nothing for the many files without any, and printing is the slow
        // part.
        let found =
            self.git.run(ContentRules::User, &["check-attr", "-z", "--stdin", "--all"], Some(paths))?;
        let (mut excluded, mut measured) = (HashSet::new(), HashSet::new());
        let mut words = found.split(|byte| *byte == 0);
        while let (Some(path), Some(attribute), Some(value)) = (words.next(), words.next(), words.next()) {
            match (attribute, value) {
                (_, b"unspecified" | b"unset") => {}
                (b"filter" | b"working-tree-encoding", _) => drop(excluded.insert(path)),
                (b"text" | b"eol" | b"crlf" | b"ident", _) => drop(measured.insert(path)),
                _ => {}
            }
        }
        let (excluded, rest): (Vec<_>, Vec<_>) =
            proven.into_iter().partition(|(_, path, _)| excluded.contains(path));
        let mut to_measure = rest;
        to_measure.retain(|(_, path, _)| self.converts_all || measured.contains(path));
        let other = self.of_other_size(&to_measure, seen, oids)?;
        for at in excluded.into_iter().map(|(at, _, _)| at).chain(other) {
            all.get_mut(at).into_iter().for_each(Reference::doubt);
        }
        Some(())
    }

    /// Tells whether a pipe or a device replaces an attribute file of these paths: git would wait for it.
    fn would_wait<'a>(&self, paths: impl Iterator<Item = &'a [u8]>) -> bool {
        let Some(repository) = self.git.repository() else { return false };
        let folders: HashSet<&Path> = paths
            .filter_map(|path| Path::new(OsStr::from_bytes(path)).parent())
            .flat_map(Path::ancestors)
            .collect();
        let is_odd = |folder: &&Path| {
            let attributes = repository.folder().join(folder).join(OsStr::from_bytes(ATTRIBUTES));
            attributes.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
        };
        folders.iter().any(is_odd)
    }

    /// The files whose size differs from their object.
    fn of_other_size(
        &self,
        files: &[(usize, &[u8], u32)],
        seen: &[SeenPath],
        oids: &Oids,
    ) -> Option<Vec<usize>> {
        if files.is_empty() {
            return Some(Vec::new());
        }
        let name = |number: &u32| oids.get(*number).map(hex).unwrap_or_default();
        let asked: Vec<u8> =
            files.iter().flat_map(|(_, _, number)| [name(number), b"\n".to_vec()].concat()).collect();
        let sizes =
            self.git.run(ContentRules::Bytes, &["cat-file", "--batch-check=%(objectsize)"], Some(asked))?;
        let is_other = |at: usize, size: &[u8]| {
            seen.get(at).is_none_or(|one| one.stat.size.to_string().as_bytes() != size)
        };
        let measured = files.iter().zip(sizes.split(|byte| *byte == b'\n'));
        Some(measured.filter(|((at, _, _), size)| is_other(*at, size)).map(|((at, _, _), _)| *at).collect())
    }
}

impl Reference {
    fn doubt(&mut self) {
        if let Self::Proven(number) = *self {
            *self = Self::Likely(number);
        }
    }
}

/// The results of reading an index.
enum IndexScan {
    /// `hidden`: the index has attribute files outside of the places that were checked.
    Whole {
        hidden: bool,
    },
    /// Another file has the rest of the index.
    Split,
    Damaged,
}

/// Merges an index with the seen paths, which have the same order.
fn read_index(
    mut index: IndexFile,
    prefix: &Path,
    seen: &[SeenPath],
    all: &mut [Reference],
    oids: &mut Oids,
) -> IndexScan {
    let mut prefix = prefix.as_os_str().as_bytes().to_vec();
    if !prefix.is_empty() {
        prefix.push(b'/');
    }
    let (written, mut hidden) = (index.written(), false);
    let mut rest = seen.iter().zip(all).peekable();
    loop {
        let entry = match index.next_entry() {
            Ok(Some(entry)) => entry,
            Ok(None) => break,
            Err(_) => return IndexScan::Damaged,
        };
        let rel = entry.path.strip_prefix(&*prefix);
        if let Some(rel) = rel {
            while rest.next_if(|(one, _)| *one.rel < *rel).is_some() {}
        }
        match rest.peek_mut().filter(|(one, _)| rel == Some(&*one.rel)) {
            Some((one, reference)) if entry.is_ordinary_file() && one.stat.kind() == PathKind::File => {
                let number = oids.add(&entry.oid);
                let is_same = is_unchanged(entry, &one.stat, written);
                **reference = match number {
                    Some(number) if is_same => Reference::Proven(number),
                    Some(number) => Reference::Likely(number),
                    None => Reference::None,
                };
            }
            Some(_) => {}
            None => hidden |= split(&entry.path).1 == ATTRIBUTES,
        }
    }
    match index.is_split() {
        Ok(false) => IndexScan::Whole { hidden },
        Ok(true) => IndexScan::Split,
        Err(_) => IndexScan::Damaged,
    }
}

/// Tells whether a file is the one that git compared with its object, and so old that its times prove it.
fn is_unchanged(entry: &IndexEntry, now: &Stat, written: i64) -> bool {
    const SECOND: i64 = 1_000_000_000;
    let known = &entry.stat;
    let is_time = |known: (u32, u32), now: i64| {
        let nanoseconds = u32::try_from(now.rem_euclid(SECOND)).unwrap_or_default();
        // Seconds are stored in 32 bits, and a build of git that does not record nanoseconds writes zero.
        known.0 == now.div_euclid(SECOND) as u32 && (known.1 == nanoseconds || known.1 == 0)
    };
    is_time(known.modified, now.modified)
        && is_time(known.changed, now.changed)
        && known.inode == now.inode as u32
        && (known.uid, known.gid) == (now.uid, now.gid)
        && known.size == now.size as u32
        && now.modified < written.saturating_sub(OLDER)
}

/// Tells whether content has this object name in git.
pub(crate) fn is_named(content: &[u8], oid: &[u8]) -> bool {
    let head = format!("blob {}\0", content.len());
    match oid.len() {
        20 => {
            use sha1::Digest as _;
            let name = sha1::Sha1::new().chain_update(&head).chain_update(content).finalize();
            name.as_slice() == oid
        }
        32 => {
            use sha2::Digest as _;
            let name = sha2::Sha256::new().chain_update(&head).chain_update(content).finalize();
            name.as_slice() == oid
        }
        _ => false,
    }
}

/// Path and object of every file that is tracked in the ordinary way, from `ls-files -s -v -z`: `H 100644 <oid>
/// 0\t<path>`. Other letters than `H` mean that git was told to ignore changes of the file, or that it is in
/// conflict.
fn listed_files(listing: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    listing.split(|byte| *byte == 0).filter_map(|line| {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let (head, path) = (&line[..tab], &line[tab + 1..]);
        let mut words = head.split(|byte| *byte == b' ');
        let (tag, mode, oid, stage) = (words.next()?, words.next()?, words.next()?, words.next()?);
        (tag == b"H" && mode.starts_with(b"100") && stage == b"0").then_some((path, oid))
    })
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    let key =
        |found: &Metadata| (found.ino(), found.len(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
    key(a) == key(b)
}

/// Tells whether attributes of the tree may convert.
fn tree_converts(repository: &Repository, seen: &[SeenPath]) -> bool {
    let mut files: Vec<PathBuf> = vec![repository.attributes()];
    let top = repository.top();
    let above = repository.folder().ancestors().skip(1).take_while(|folder| folder.starts_with(top));
    files.extend(above.map(|folder| folder.join(OsStr::from_bytes(ATTRIBUTES))));
    let inside = seen.iter().filter(|one| split(&one.rel).1 == ATTRIBUTES);
    files.extend(inside.map(|one| repository.folder().join(OsStr::from_bytes(&one.rel))));
    files.len() > MOST_ATTRIBUTES || files.iter().any(|file| converts(file))
}

/// Tells whether an attribute file may convert. An unreadable one may.
fn converts(file: &Path) -> bool {
    match file.symlink_metadata() {
        Ok(found) if found.is_symlink() => true,
        Ok(_) => match read_regular(file, LONGEST) {
            Ok(Some(content)) => {
                CONVERTING.iter().any(|word| content.windows(word.len()).any(|part| part == *word))
            }
            Ok(None) => false,
            Err(_) => true,
        },
        Err(error) => {
            !matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory)
        }
    }
}

/// The attribute files that git reads for every repository of a user.
fn user_files() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = variable("HOME").map(|home| home.join(".config"));
    variable("XDG_CONFIG_HOME").or(home).map(|folder| folder.join("git/attributes")).into_iter().collect()
}

/// The paths of system-wide attributes in different builds of git.
fn system_files(program: &Path) -> Vec<PathBuf> {
    let real = program.canonicalize().unwrap_or_else(|_| program.to_owned());
    let around = |program: &Path| -> Vec<PathBuf> {
        let folders = program.ancestors().skip(1);
        let both = folders.flat_map(|folder| {
            [folder.join("etc/gitattributes"), folder.join("share/git-core/gitattributes")]
        });
        both.collect()
    };
    let mut files = around(program);
    files.extend(around(&real));
    files.sort();
    files.dedup();
    files
}
