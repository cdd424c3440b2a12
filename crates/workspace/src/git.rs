//! Patches by git, without running anything the repository names.
//!
//! Git executes programs from a repository's own configuration: file system monitors, hooks, filters, external diffs. Our
//! calls switch all of them off, read no configuration but the repository's, and take attributes from the empty tree. The
//! user's index and objects are never written: a temporary index is filled from the work tree, and new objects go to a
//! folder of our own, with the repository's objects behind it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::io::AsyncReadExt;

use crate::{Ended, Processes, Spawn, WorkspaceError};

/// The tree without files, which git knows without having it.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

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
    /// Settings that switch off the filters the repository defines.
    no_filters: Vec<String>,
}

impl Git {
    /// Finds the work tree around `folder`. `scratch` is made when it is needed.
    pub async fn find(
        processes: Arc<dyn Processes>,
        folder: &Path,
        scratch: PathBuf,
    ) -> Result<Self, GitError> {
        let mut git = Self {
            processes,
            top: folder.to_owned(),
            real_objects: PathBuf::new(),
            real_index: PathBuf::new(),
            scratch,
            no_filters: Vec::new(),
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
        git.top = top;
        git.real_objects = objects;
        git.real_index = index;
        // None defined is an exit code of 1, not an error.
        let filters = git
            .run(&["config", "--name-only", "--get-regexp", "^filter\\."], false)
            .await
            .unwrap_or_default();
        git.no_filters = no_filters(&String::from_utf8_lossy(&filters));
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
        match self.run(&["add", "--all", "--ignore-errors"], true).await {
            Ok(_) | Err(GitError::Failed { .. }) => {}
            Err(error) => return Err(error),
        }
        let tree = self.run(&["write-tree"], true).await?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
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
            from,
            &now,
        ];
        self.run(&arguments, true).await
    }

    /// Paths that differ between `from` and now.
    pub async fn changed(&self, from: &str) -> Result<Vec<String>, GitError> {
        let now = self.snapshot().await?;
        let names = self.run(&["diff", "--name-only", "--no-ext-diff", "-z", from, &now], true).await?;
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
        let mut argv: Vec<OsString> = vec!["git".into(), format!("--attr-source={EMPTY_TREE}").into()];
        for setting in [
            "core.fsmonitor=false",
            "core.hooksPath=/dev/null",
            "core.attributesFile=/dev/null",
            "core.autocrlf=false",
            "core.pager=cat",
            "core.untrackedCache=false",
            "core.fileMode=true",
            "diff.external=",
            "diff.noprefix=false",
            "diff.mnemonicPrefix=false",
            "diff.context=3",
            "diff.interHunkContext=0",
            "diff.orderFile=/dev/null",
            "diff.suppressBlankEmpty=false",
            "diff.algorithm=default",
            "diff.submodule=short",
            "diff.relative=false",
            "protocol.allow=never",
            "submodule.recurse=false",
        ] {
            argv.push("-c".into());
            argv.push(setting.into());
        }
        for setting in &self.no_filters {
            argv.push("-c".into());
            argv.push(setting.into());
        }
        argv.extend(arguments.iter().map(OsString::from));
        let mut env: Vec<(OsString, OsString)> = ["PATH", "HOME"]
            .into_iter()
            .filter_map(|name| Some((name.into(), std::env::var_os(name)?)))
            .collect();
        let mut set = |name: &str, value: OsString| env.push((name.into(), value));
        set("GIT_CONFIG_NOSYSTEM", "1".into());
        set("GIT_CONFIG_GLOBAL", "/dev/null".into());
        set("GIT_ATTR_NOSYSTEM", "1".into());
        set("GIT_OPTIONAL_LOCKS", "0".into());
        set("GIT_TERMINAL_PROMPT", "0".into());
        set("LC_ALL", "C".into());
        if scratch {
            set("GIT_INDEX_FILE", self.scratch.join("index").into());
            set("GIT_OBJECT_DIRECTORY", self.scratch.join("objects").into());
            set("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.real_objects.clone().into());
        }
        let spawn = Spawn { argv, cwd: self.top.clone(), env };
        let (ended, out, err) = capture(&*self.processes, spawn).await?;
        match ended {
            Ended::Code(0) => Ok(out),
            Ended::Code(_) | Ended::Signal(_) => Err(GitError::Failed {
                what: arguments.first().copied().unwrap_or_default().to_owned(),
                words: String::from_utf8_lossy(&err).trim().to_owned(),
            }),
        }
    }
}

/// Empty commands for the filters of these keys, and leave to do without them.
fn no_filters(keys: &str) -> Vec<String> {
    let ending = |key: &str| key.rfind('.').and_then(|at| key.get(..at)).map(str::to_owned);
    let mut names: Vec<String> = keys.lines().filter_map(ending).collect();
    names.sort();
    names.dedup();
    let off = |name: &String| {
        [
            format!("{name}.clean="),
            format!("{name}.smudge="),
            format!("{name}.process="),
            format!("{name}.required=false"),
        ]
    };
    names.iter().flat_map(off).collect()
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
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(line))
}

/// A copy as old as the original. Git takes files that are as new as its index for changed and looks at them again; a copy
/// that is newer would hide a change made in the same moment as the commit before it.
fn copy_with_time(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    let modified = std::fs::metadata(from)?.modified()?;
    std::fs::File::options().write(true).open(to)?.set_modified(modified)
}
