//! Snapshots of a work tree and patches between them.
//!
//! The user's index and objects are never written: a temporary index is filled from the work tree, and new objects go
//! to a folder of our own, with the repository's objects as its alternate.
//!
//! Dropping one of these futures ends its git process, so a cancelled run waits for none.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_workspace::{CaptureEnd, CaptureLimits, Ended, Processes, WorkspaceError, capture};

use crate::alternates::quoted;
use crate::{Boundary, CallFolder, ContentRules, GitError, Repository, check_pipes};

/// The time limit of one call. A pipe in the tree, in place of a file that git reads, would block it without end.
const LONGEST: Duration = Duration::from_secs(900);

/// The maximum size of a patch.
const LARGEST: usize = 256 << 20;

/// Options of every comparison: with any later version of git, a patch looks the same and runs nothing.
const DIFF: [&str; 9] = [
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-renames",
    "--submodule=short",
    "--ignore-submodules=none",
    "--src-prefix=a/",
    "--dst-prefix=b/",
];

/// The objects and the index that a call uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ObjectStore {
    Repository,
    Scratch,
}

/// A git work tree at one moment, for comparison with later states.
pub struct Snapshots {
    processes: Arc<dyn Processes>,
    repository: Repository,
    /// The folder of new objects and the temporary index.
    scratch: PathBuf,
    /// Paths from the top folder that are excluded from the tree.
    without: Vec<PathBuf>,
}

impl Snapshots {
    /// Finds the work tree around `folder`. `scratch` is made when it is needed.
    pub fn find(processes: Arc<dyn Processes>, folder: &Path, scratch: PathBuf) -> Result<Self, GitError> {
        let repository = Repository::find(folder, &Boundary::Anywhere)?;
        Ok(Self { processes, repository, scratch, without: Vec::new() })
    }

    /// Excludes files and folders that are not the user's work. The paths are absolute, with links resolved.
    pub fn without(mut self, paths: &[PathBuf]) -> Self {
        let top = self.repository.top().canonicalize().unwrap_or_else(|_| self.repository.top().to_owned());
        let inside = paths.iter().filter_map(|path| path.strip_prefix(&top).ok());
        self.without = inside.filter(|path| !path.as_os_str().is_empty()).map(Path::to_owned).collect();
        self
    }

    /// The current work tree, with untracked files, as the name of a tree.
    pub async fn snapshot(&self) -> Result<String, GitError> {
        let top = self.repository.top().to_owned();
        let looked = tokio::task::spawn_blocking(move || check_pipes(&top)).await;
        looked.unwrap_or_else(|error| {
            Err(GitError::Failed { what: "add".to_owned(), words: error.to_string() })
        })?;
        let objects = self.scratch.join("objects");
        std::fs::create_dir_all(&objects).map_err(|error| WorkspaceError::io(&objects, error))?;
        // Starting with the user's index avoids hashing unchanged files.
        let index = self.scratch.join("index");
        let _ = std::fs::remove_file(&index);
        if let Some(real) = self.repository.checked_index()? {
            real.write(&index).map_err(|error| WorkspaceError::io(&index, error))?;
        }
        // A repository inside this one that has no commit cannot be added; all the rest can. Submodules are updated
        // separately: for those `add` would run git inside of them, with their own configuration.
        let submodules = self.submodules().await?;
        let mut add: Vec<OsString> =
            ["add", "--all", "--ignore-errors", "--", "."].map(OsString::from).into();
        let own = self.without.iter().map(|path| path.as_os_str());
        add.extend(submodules.iter().map(OsString::as_os_str).chain(own).map(|path| {
            let mut exclude = OsString::from(":(exclude,literal,top)");
            exclude.push(path);
            exclude
        }));
        let mut update: Vec<OsString> = ["update-index", "--remove", "--"].map(OsString::from).into();
        update.extend(submodules.iter().cloned());
        for (wanted, arguments) in [(true, add), (!submodules.is_empty(), update)] {
            match if wanted { self.run_with(&arguments, ObjectStore::Scratch).await } else { Ok(Vec::new()) }
            {
                Ok(_) | Err(GitError::Failed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let tree = self.run(&["write-tree"], ObjectStore::Scratch).await?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    /// Paths in the index that are commits of other repositories.
    async fn submodules(&self) -> Result<Vec<OsString>, GitError> {
        let listed = self.run(&["ls-files", "--stage", "-z"], ObjectStore::Scratch).await?;
        Ok(crate::gitlinks(&listed))
    }

    /// The patch from `from` (a tree or commit) to the current work tree.
    pub async fn patch(&self, from: &str) -> Result<Vec<u8>, GitError> {
        let now = self.snapshot().await?;
        let arguments: Vec<&str> = DIFF.into_iter().chain(["--binary", from, &now]).collect();
        self.run(&arguments, ObjectStore::Scratch).await
    }

    /// Paths that differ between `from` and the current work tree.
    pub async fn changed(&self, from: &str) -> Result<Vec<String>, GitError> {
        let now = self.snapshot().await?;
        let arguments: Vec<&str> = DIFF.into_iter().chain(["--name-only", "-z", from, &now]).collect();
        let names = self.run(&arguments, ObjectStore::Scratch).await?;
        let paths = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(paths.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// The full name of a commit, if the name denotes one.
    pub async fn commit(&self, name: &str) -> Result<String, GitError> {
        let spec = format!("{name}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &spec];
        let found = self.run(&arguments, ObjectStore::Repository).await?;
        Ok(String::from_utf8_lossy(&found).trim().to_owned())
    }

    async fn run(&self, arguments: &[&str], store: ObjectStore) -> Result<Vec<u8>, GitError> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        self.run_with(&arguments, store).await
    }

    async fn run_with(&self, arguments: &[OsString], store: ObjectStore) -> Result<Vec<u8>, GitError> {
        let what = arguments.first().map(|what| what.to_string_lossy().into_owned()).unwrap_or_default();
        let mut call = self.repository.call(ContentRules::Bytes, CallFolder::Top);
        match store {
            ObjectStore::Repository => {}
            ObjectStore::Scratch => {
                call.variable("GIT_INDEX_FILE", self.scratch.join("index"));
                call.variable("GIT_OBJECT_DIRECTORY", self.scratch.join("objects"));
                call.variable("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted(&self.repository.objects()));
            }
        }
        let call = call.args(arguments);
        let limits = CaptureLimits { time: LONGEST, keep: LARGEST };
        let ran = capture(&*self.processes, call.spawn(), &[], limits, std::future::pending()).await?;
        let failed = |words: String| GitError::Failed { what: what.clone(), words };
        match ran.end {
            CaptureEnd::Ended(Ended::Code(0)) if ran.cut => {
                Err(failed(format!("it printed more than {LARGEST} bytes")))
            }
            CaptureEnd::Ended(Ended::Code(0)) => Ok(ran.stdout),
            CaptureEnd::Ended(_) => Err(failed(String::from_utf8_lossy(&ran.stderr).trim().to_owned())),
            CaptureEnd::TimedOut | CaptureEnd::Stopped => {
                Err(failed(format!("it took longer than {} seconds", LONGEST.as_secs())))
            }
        }
    }
}

/// The paths that `ls-files --stage -z` lists as commits of other repositories.
pub fn gitlinks(listed: &[u8]) -> Vec<OsString> {
    let entries = listed.split(|byte| *byte == 0).filter(|entry| entry.starts_with(b"160000 "));
    let paths = entries.filter_map(|entry| entry.get(entry.iter().position(|byte| *byte == b'\t')? + 1..));
    paths.map(|path| OsStr::from_bytes(path).to_owned()).collect()
}
