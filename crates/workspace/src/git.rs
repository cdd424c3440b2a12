//! Patches by git, without running anything the repository names.
//!
//! How git is kept from running them is in `hardened.rs`. The user's index and objects are never written: a temporary index is filled from the work tree, and new objects go to a
//! folder of our own, with the repository's objects behind it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;

use crate::hardened::{GitCall, GitConfig, LIST_FILTERS, git_would_wait};
use crate::{Ended, Processes, Spawn, WorkspaceError};

/// What a patch looks like, whatever the user or the repository prefer.
const SETTINGS: [&str; 9] = [
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.context=3",
    "diff.interHunkContext=0",
    "diff.orderFile=/dev/null",
    "diff.suppressBlankEmpty=false",
    "diff.algorithm=default",
    "diff.submodule=short",
    "diff.relative=false",
];

/// One call takes no longer. A pipe somewhere in the tree, in the place of a file that git reads, would keep it for ever.
const LONGEST: Duration = Duration::from_secs(900);

/// Largest patch that is taken.
const LARGEST: u64 = 256 << 20;

#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The folder is in no work tree, or there is no git.
    #[error("not a git work tree")]
    NoRepository,
    #[error("git {what}: {words}")]
    Failed { what: String, words: String },
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
}

/// A git work tree as it was at one moment, and the way to compare it with now.
pub struct Git {
    processes: Arc<dyn Processes>,
    top: PathBuf,
    real_objects: PathBuf,
    real_index: PathBuf,
    /// Where new objects and the temporary index go.
    scratch: PathBuf,
    /// The keys of the filters that the repository defines, to be switched off.
    filters: Vec<u8>,
}

impl Git {
    /// Finds the work tree around `folder`. `scratch` is made when it is needed.
    pub async fn find(
        processes: Arc<dyn Processes>,
        folder: &Path,
        scratch: PathBuf,
    ) -> Result<Self, GitError> {
        if git_would_wait(folder) {
            return Err(GitError::NoRepository);
        }
        let mut git = Self {
            processes,
            top: folder.to_owned(),
            real_objects: PathBuf::new(),
            real_index: PathBuf::new(),
            scratch,
            filters: Vec::new(),
        };
        let arguments = [
            "rev-parse",
            "--path-format=absolute",
            "--show-toplevel",
            "--git-path",
            "objects",
            "--git-path",
            "index",
        ];
        let found = git.run(&arguments, false).await.map_err(|error| match error {
            GitError::Workspace(WorkspaceError::Spawn { .. }) | GitError::Failed { .. } => {
                GitError::NoRepository
            }
            other => other,
        })?;
        let mut lines = found.split(|byte| *byte == b'\n').map(as_path);
        let (Some(top), Some(objects), Some(index)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(GitError::NoRepository);
        };
        // A repository may say that its work tree is elsewhere, say the user's home.
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if !real(folder).starts_with(real(&top)) {
            return Err(GitError::NoRepository);
        }
        git.top = top;
        git.real_objects = objects;
        git.real_index = index;
        // None defined is an exit code of 1, not an error.
        git.filters = git.run(&LIST_FILTERS, false).await.unwrap_or_default();
        Ok(git)
    }

    /// The work tree as it is now, untracked files included, as the name of a tree.
    pub async fn snapshot(&self) -> Result<String, GitError> {
        let objects = self.scratch.join("objects");
        std::fs::create_dir_all(&objects).map_err(|error| WorkspaceError::io(&objects, error))?;
        // Beginning from the user's index spares hashing what did not change.
        let index = self.scratch.join("index");
        let _ = std::fs::remove_file(&index);
        if self.real_index.exists() {
            copy_with_time(&self.real_index, &index).map_err(|error| WorkspaceError::io(&index, error))?;
        }
        // A repository inside this one that has no commit cannot be added; all the rest can.
        // Submodules are looked at apart: for those `add` would run git inside of them, with their own configuration.
        let submodules = self.submodules().await?;
        let mut add: Vec<OsString> =
            ["add", "--all", "--ignore-errors", "--", "."].map(OsString::from).into();
        add.extend(submodules.iter().map(|path| {
            let mut exclude = OsString::from(":(exclude,literal,top)");
            exclude.push(path);
            exclude
        }));
        let mut update: Vec<OsString> = ["update-index", "--remove", "--"].map(OsString::from).into();
        update.extend(submodules.iter().cloned());
        for (wanted, arguments) in [(true, add), (!submodules.is_empty(), update)] {
            match if wanted { self.run_with(arguments, true).await } else { Ok(Vec::new()) } {
                Ok(_) | Err(GitError::Failed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let tree = self.run(&["write-tree"], true).await?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    /// Paths of the index that are commits of other repositories.
    async fn submodules(&self) -> Result<Vec<OsString>, GitError> {
        let listed = self.run(&["ls-files", "--stage", "-z"], true).await?;
        let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
        let paths =
            entries.filter_map(|entry| entry.get(entry.iter().position(|byte| *byte == b'\t')? + 1..));
        Ok(paths.map(|path| OsStr::from_bytes(path).to_owned()).collect())
    }

    /// What turns `from` (a tree or commit) into the work tree as it is now.
    pub async fn patch(&self, from: &str) -> Result<Vec<u8>, GitError> {
        let now = self.snapshot().await?;
        let arguments = [
            "diff",
            "--binary",
            "--src-prefix=a/",
            "--dst-prefix=b/",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
            "--ignore-submodules=none",
            from,
            &now,
        ];
        self.run(&arguments, true).await
    }

    /// Paths that differ between `from` and now.
    pub async fn changed(&self, from: &str) -> Result<Vec<String>, GitError> {
        let now = self.snapshot().await?;
        let names = self
            .run(&["diff", "--name-only", "--no-ext-diff", "--no-textconv", "-z", from, &now], true)
            .await?;
        let paths = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(paths.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// The full name of a commit, if there is one of this name.
    pub async fn commit(&self, name: &str) -> Result<String, GitError> {
        let spec = format!("{name}^{{commit}}");
        let found = self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &spec], false).await?;
        Ok(String::from_utf8_lossy(&found).trim().to_owned())
    }

    async fn run(&self, arguments: &[&str], scratch: bool) -> Result<Vec<u8>, GitError> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        self.run_with(arguments, scratch).await
    }

    async fn run_with(&self, arguments: Vec<OsString>, scratch: bool) -> Result<Vec<u8>, GitError> {
        let what = arguments.first().map(|what| what.to_string_lossy().into_owned()).unwrap_or_default();
        let mut call = GitCall::new(&self.top, GitConfig::Bare);
        call.set(&SETTINGS);
        call.without_filters(&self.filters);
        call.argv.extend(arguments);
        if scratch {
            call.variable("GIT_INDEX_FILE", self.scratch.join("index"));
            call.variable("GIT_OBJECT_DIRECTORY", self.scratch.join("objects"));
            call.variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.real_objects.clone());
        }
        let spawn = Spawn { argv: call.argv, cwd: self.top.clone(), env: call.env };
        let captured = tokio::time::timeout(LONGEST, capture(&*self.processes, spawn)).await;
        let Ok(captured) = captured else {
            let words = format!("it took longer than {} seconds", LONGEST.as_secs());
            return Err(GitError::Failed { what, words });
        };
        let (ended, out, err) = captured?;
        match ended {
            Ended::Code(0) => Ok(out),
            Ended::Code(_) | Ended::Signal(_) => {
                Err(GitError::Failed { what, words: String::from_utf8_lossy(&err).trim().to_owned() })
            }
        }
    }
}

/// Runs a program to its end and takes what it printed.
async fn capture(
    processes: &dyn Processes,
    spawn: Spawn,
) -> Result<(Ended, Vec<u8>, Vec<u8>), WorkspaceError> {
    let program = spawn.cwd.clone();
    let mut child = processes.spawn(spawn).await?;
    let (mut out, mut err) = (Vec::new(), Vec::new());
    if let Some(pipes) = child.pipes() {
        drop(pipes.stdin);
        let (mut stdout, mut stderr) = (pipes.stdout.take(LARGEST), pipes.stderr.take(1 << 20));
        let (a, b) = tokio::join!(stdout.read_to_end(&mut out), stderr.read_to_end(&mut err));
        a.and(b).map_err(|error| WorkspaceError::io(program, error))?;
    }
    Ok((child.wait().await?, out, err))
}

fn as_path(line: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(line))
}

/// A copy as old as the original. Git takes files that are as new as its index for changed and looks at them again; a copy
/// that is newer would hide a change made in the same moment as the commit before it.
fn copy_with_time(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    let modified = std::fs::metadata(from)?.modified()?;
    std::fs::File::options().write(true).open(to)?.set_modified(modified)
}
