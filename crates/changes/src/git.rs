//! Which files need no copy because git has their content, and reading it from there.
//!
//! A file that is clean in the index is, byte for byte, the object the index names, unless git converts on the way
//! (line ends, `$Id$`, encodings, filters). For line ends and `$Id$` a clean file of the object's size is the object,
//! because cleaning only ever removes bytes; a file with a filter or an encoding is copied. Nothing of the repository
//! is written, and nothing that it names is run: calls are those of `lathe-git`. Its `Snapshots` cannot be used here because
//! they belong to the async world and speak in whole outputs, where this needs a conversation.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use lathe_git::{Boundary, Content, GitCall, GitError, Index, Place, Repository};

use crate::Why;

/// Whatever could make a changed file look clean.
const SETTINGS: [(&str, &str); 4] = [
    ("core.ignoreStat", "false"),
    ("core.checkStat", "default"),
    ("core.trustctime", "true"),
    ("core.preloadIndex", "true"),
];

/// A clean file and the object that holds its content.
pub(crate) struct Reference {
    pub path: Box<[u8]>,
    pub oid: Box<[u8]>,
}

/// The clean files of the work tree around `root`, with paths beneath `root`, ordered. None where there is no work tree,
/// no git, or anything is strange: everything is copied then.
pub(crate) fn clean_files(root: &Path) -> Option<Vec<Reference>> {
    let git = Git::at(root);
    let index = git.repository.as_ref().ok()?.index();
    let before = std::fs::metadata(&index).ok()?;

    let files = git.run(Content::Bytes, &["ls-files", "-s", "-v", "-z"], None)?;
    let arguments =
        ["diff-files", "--name-only", "--relative", "--no-ext-diff", "--ignore-submodules=all", "-z"];
    let (conversions, dirty) = std::thread::scope(|scope| {
        let dirty = scope.spawn(|| git.run(Content::Bytes, &arguments, None));
        (git.conversions(&files), dirty.join().ok().flatten())
    });
    let (conversions, dirty) = (conversions?, dirty?);
    // The two looks at the index must have seen the same one.
    if !is_same(&before, &std::fs::metadata(&index).ok()?) {
        return None;
    }
    let dirty: HashSet<&[u8]> = dirty.split(|byte| *byte == 0).collect();
    let clean = listed_files(&files)
        .filter(|(path, _)| !dirty.contains(path) && !conversions.contains(path))
        .map(|(path, oid)| Reference { path: path.into(), oid: oid.into() });
    Some(clean.collect())
}

/// Path and object of every file that is tracked in the ordinary way, from `ls-files -s -v -z`: `H 100644 <oid> 0\t<path>`.
/// Other letters than `H` mean that git was told not to look at the file, or that it is in conflict.
fn listed_files(listing: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    listing.split(|byte| *byte == 0).filter_map(|line| {
        let tab = line.iter().position(|byte| *byte == b'\t')?;
        let (head, path) = (&line[..tab], &line[tab + 1..]);
        let mut words = head.split(|byte| *byte == b' ');
        let (tag, mode, oid, stage) = (words.next()?, words.next()?, words.next()?, words.next()?);
        (tag == b"H" && mode.starts_with(b"100") && stage == b"0").then_some((path, oid))
    })
}

/// A repository, or the reason why there is none that can be used.
pub(crate) struct Git {
    repository: Result<Repository, GitError>,
}

impl Git {
    /// The repository around a folder.
    pub(crate) fn at(root: &Path) -> Self {
        Self { repository: Repository::find(root, &Boundary::Anywhere) }
    }

    /// A repository by its own folder, whatever it says about a work tree.
    pub(crate) fn of(dir: &Path) -> Self {
        Self { repository: Repository::in_folder(dir) }
    }

    /// The reason why nothing can be asked of it.
    pub(crate) fn refusal(&self) -> Option<&GitError> {
        self.repository.as_ref().err()
    }

    /// Files whose content may differ from their object although they are clean.
    fn conversions<'a>(&self, files: &'a [u8]) -> Option<HashSet<&'a [u8]>> {
        let mut paths = Vec::with_capacity(files.len());
        for (path, _) in listed_files(files) {
            paths.extend_from_slice(path);
            paths.push(0);
        }
        if self.would_wait(files) {
            return None;
        }
        // All attributes: then git writes nothing for the many files that have none, which is what takes its time.
        let found = self.run(Content::User, &["check-attr", "-z", "--stdin", "--all"], Some(paths))?;
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
        let all = self.converts_all();
        let to_measure: Vec<_> = listed_files(files)
            .filter(|(path, _)| !excluded.contains(*path) && (all || measured.contains(*path)))
            .collect();
        let mut converted = self.of_other_size(&to_measure)?;
        converted.extend(listed_files(files).map(|(path, _)| path).filter(|path| excluded.contains(*path)));
        Some(converted)
    }

    /// Whether a pipe or a device is in the place of attributes of these files: git would wait for it.
    fn would_wait(&self, files: &[u8]) -> bool {
        let Ok(repository) = &self.repository else { return false };
        let folders: HashSet<&Path> = listed_files(files)
            .filter_map(|(path, _)| Path::new(OsStr::from_bytes(path)).parent())
            .flat_map(Path::ancestors)
            .collect();
        let is_odd = |folder: &&Path| {
            let attributes = repository.folder().join(folder).join(".gitattributes");
            attributes.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir())
        };
        folders.iter().any(is_odd)
    }

    /// Whether line ends are converted in files without attributes.
    fn converts_all(&self) -> bool {
        let set = |name: &str, off: &[&[u8]]| {
            let value = self.run(Content::User, &["config", "--get", name], None).unwrap_or_default();
            !off.contains(&value.trim_ascii())
        };
        set("core.autocrlf", &[b"", b"false", b"no", b"off", b"0"])
            || set("core.eol", &[b"", b"lf", b"native"])
    }

    /// Those whose file has not the size of the object.
    fn of_other_size<'a>(&self, files: &[(&'a [u8], &[u8])]) -> Option<HashSet<&'a [u8]>> {
        if files.is_empty() {
            return Some(HashSet::new());
        }
        let asked: Vec<u8> = files.iter().flat_map(|(_, oid)| [oid, &b"\n"[..]].concat()).collect();
        let sizes = self.run(Content::Bytes, &["cat-file", "--batch-check=%(objectsize)"], Some(asked))?;
        let root = self.repository.as_ref().ok()?.folder();
        let is_other = |path: &[u8], size: &[u8]| {
            let on_disk = std::fs::symlink_metadata(root.join(OsStr::from_bytes(path)));
            !on_disk.is_ok_and(|found| found.len().to_string().as_bytes() == size)
        };
        let measured = files.iter().zip(sizes.split(|byte| *byte == b'\n'));
        Some(measured.filter(|((path, _), size)| is_other(path, size)).map(|((path, _), _)| *path).collect())
    }

    /// A call in the folder that was asked for, for a command that uses the index or for another one.
    fn call(&self, content: Content, command: &str) -> Option<GitCall> {
        let repository = self.repository.as_ref().ok()?;
        let mut call = match command {
            // An index with a path out of the work tree is not used, as if git could not read it.
            "ls-files" | "diff-files" | "check-attr" => {
                repository.indexed(Index::Read, content, Place::Folder).ok()?
            }
            "read-tree" => repository.indexed(Index::Replace, content, Place::Folder).ok()?,
            _ => repository.call(content, Place::Folder),
        };
        for (key, value) in SETTINGS {
            call.set(key, value);
        }
        Some(call)
    }

    /// What it prints, if it ends well.
    pub(crate) fn run(
        &self,
        content: Content,
        arguments: &[&str],
        input: Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        let mut command = self.call(content, arguments.first()?)?.args(arguments).command();
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().ok()?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            if let (Some(mut stdin), Some(input)) = (stdin, input) {
                // If git ends early its exit code tells, not the broken pipe.
                scope.spawn(move || stdin.write_all(&input).is_ok());
            }
            child.wait_with_output()
        });
        let output = output.ok()?;
        output.status.success().then_some(output.stdout)
    }

    /// What it says on both streams, however it ends.
    pub(crate) fn output(&self, content: Content, arguments: &[&str]) -> Option<Vec<u8>> {
        let output = self.call(content, arguments.first()?)?.args(arguments).command().output().ok()?;
        Some([output.stdout, output.stderr].concat())
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    let key =
        |found: &Metadata| (found.ino(), found.len(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
    key(a) == key(b)
}

/// A conversation with one `git cat-file --batch`.
pub(crate) struct Objects {
    child: Child,
    // Taken when it is dropped: git ends when it hears no more.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// What git reads while it runs is removed with this.
    _git: Git,
}

impl Objects {
    /// Of the repository around a folder, or of a copy of it.
    pub fn open(root: &Path, copy: Option<&Path>) -> Option<Self> {
        let git = copy.map_or_else(|| Git::at(root), Git::of);
        let mut command = git.call(Content::Bytes, "cat-file")?.args(["cat-file", "--batch"]).command();
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                Some(Self { child, stdin: Some(stdin), stdout: BufReader::new(stdout), _git: git })
            }
            _ => None,
        }
    }

    /// The content of an object that has to be of this size.
    pub fn read(&mut self, oid: &[u8], size: u64, into: &mut Vec<u8>) -> Result<(), Why> {
        self.ask(oid, size, into).unwrap_or(Err(Why::ObjectGone))
    }

    fn ask(&mut self, oid: &[u8], size: u64, into: &mut Vec<u8>) -> io::Result<Result<(), Why>> {
        into.clear();
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(&[oid, b"\n"].concat())?;
        let mut head = Vec::new();
        self.stdout.read_until(b'\n', &mut head)?;
        let head = String::from_utf8_lossy(&head);
        let mut words = head.split_ascii_whitespace().skip(1);
        let (Some("blob"), Some(Ok(found))) = (words.next(), words.next().map(str::parse::<u64>)) else {
            // "missing", or another type, which is no answer either; what follows cannot be told apart any more.
            if !head.trim_end().ends_with(" missing") {
                self.stdin = None;
            }
            return Ok(Err(Why::ObjectGone));
        };
        if found != size {
            io::copy(&mut (&mut self.stdout).take(found + 1), &mut io::sink())?;
            return Ok(Err(Why::ObjectDiffers));
        }
        (&mut self.stdout).take(found).read_to_end(into)?;
        self.stdout.read_exact(&mut [0])?;
        Ok(if into.len() as u64 == size { Ok(()) } else { Err(Why::ObjectGone) })
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
