//! Queries to git, and the content of its objects.
//!
//! Calls are those of `lathe-git`: nothing that the repository names is run. The `Snapshots` of that crate cannot be
//! used here because they are async and return whole outputs, where this module needs a dialogue.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use lathe_git::{Boundary, CallFolder, ContentRules, GitCall, GitError, IndexUse, Repository};

use crate::NotUndoableReason;

/// Settings that prevent git from showing a changed file as clean.
const SETTINGS: [(&str, &str); 4] = [
    ("core.ignoreStat", "false"),
    ("core.checkStat", "default"),
    ("core.trustctime", "true"),
    ("core.preloadIndex", "true"),
];

/// A repository, or the reason why none can be used.
pub(crate) struct Git {
    repository: Result<Repository, GitError>,
}

impl Git {
    /// The repository around a folder.
    pub(crate) fn at(root: &Path) -> Self {
        Self { repository: Repository::find(root, &Boundary::Anywhere) }
    }

    /// A repository by its own folder, without regard to the work tree that it names.
    pub(crate) fn of(dir: &Path) -> Self {
        Self { repository: Repository::in_folder(dir) }
    }

    /// The reason why the repository cannot be queried.
    pub(crate) fn refusal(&self) -> Option<&GitError> {
        self.repository.as_ref().err()
    }

    /// The repository, if it can be used.
    pub(crate) fn repository(&self) -> Option<&Repository> {
        self.repository.as_ref().ok()
    }

    /// A call in the folder of the query. `command` decides whether the call uses the index.
    fn call(&self, content: ContentRules, command: &str) -> Option<GitCall> {
        let repository = self.repository.as_ref().ok()?;
        let mut call = match command {
            // An index with a path outside of the work tree is not used, as if git could not read it.
            "ls-files" | "diff-files" | "check-attr" => {
                repository.indexed(IndexUse::Read, content, CallFolder::Folder).ok()?
            }
            "read-tree" => repository.indexed(IndexUse::Replace, content, CallFolder::Folder).ok()?,
            _ => repository.call(content, CallFolder::Folder),
        };
        for (key, value) in SETTINGS {
            call.set(key, value);
        }
        Some(call)
    }

    /// The output of a git command, if it succeeds.
    pub(crate) fn run(
        &self,
        content: ContentRules,
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
                // If git ends early, its exit code is reported, not the broken pipe.
                scope.spawn(move || stdin.write_all(&input).is_ok());
            }
            child.wait_with_output()
        });
        let output = output.ok()?;
        output.status.success().then_some(output.stdout)
    }

    /// The output of both streams, even if the command fails.
    pub(crate) fn output(&self, content: ContentRules, arguments: &[&str]) -> Option<Vec<u8>> {
        let output = self.call(content, arguments.first()?)?.args(arguments).command().output().ok()?;
        Some([output.stdout, output.stderr].concat())
    }
}

/// A dialogue with one `git cat-file --batch`.
pub(crate) struct Objects {
    child: Child,
    // Taken on drop: git ends when its input closes.
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    /// Files that git reads while it runs are removed with this.
    _git: Git,
}

impl Objects {
    /// Opens the repository around a folder, or a copy of it.
    pub fn open(root: &Path, copy: Option<&Path>) -> Option<Self> {
        let git = copy.map_or_else(|| Git::at(root), Git::of);
        let mut command = git.call(ContentRules::Bytes, "cat-file")?.args(["cat-file", "--batch"]).command();
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(stdin), Some(stdout)) => {
                Some(Self { child, stdin: Some(stdin), stdout: BufReader::new(stdout), _git: git })
            }
            _ => None,
        }
    }

    /// Reads an object that must have this size.
    pub fn read(&mut self, oid: &[u8], size: u64, into: &mut Vec<u8>) -> Result<(), NotUndoableReason> {
        self.ask(oid, size, into).unwrap_or(Err(NotUndoableReason::ObjectGone))
    }

    fn ask(
        &mut self,
        oid: &[u8],
        size: u64,
        into: &mut Vec<u8>,
    ) -> io::Result<Result<(), NotUndoableReason>> {
        into.clear();
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        stdin.write_all(&[oid, b"\n"].concat())?;
        let mut head = Vec::new();
        self.stdout.read_until(b'\n', &mut head)?;
        let head = String::from_utf8_lossy(&head);
        let mut words = head.split_ascii_whitespace().skip(1);
        let (Some("blob"), Some(Ok(found))) = (words.next(), words.next().map(str::parse::<u64>)) else {
            // "missing", or an object of another type, which is not usable either; the boundaries of later replies
            // are then lost.
            if !head.trim_end().ends_with(" missing") {
                self.stdin = None;
            }
            return Ok(Err(NotUndoableReason::ObjectGone));
        };
        if found != size {
            io::copy(&mut (&mut self.stdout).take(found + 1), &mut io::sink())?;
            return Ok(Err(NotUndoableReason::ObjectDiffers));
        }
        (&mut self.stdout).take(found).read_to_end(into)?;
        self.stdout.read_exact(&mut [0])?;
        Ok(if into.len() as u64 == size { Ok(()) } else { Err(NotUndoableReason::ObjectGone) })
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
