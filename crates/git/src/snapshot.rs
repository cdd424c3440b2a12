//! Snapshots of a work tree and patches between them.
//!
//! The user's index and objects are never written: a temporary index is filled from the work tree, and new objects go to a
//! folder of our own, with the repository's objects behind it.
//!
//! A future of these that is dropped ends its git process, so a cancelled run waits for none.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_workspace::{CaptureEnd, CaptureLimits, Ended, Processes, WorkspaceError, capture};

use crate::alternates::quoted;
use crate::{Boundary, Content, GitError, Place, Repository, check_pipes};

/// The time of one call. A pipe somewhere in the tree, in the place of a file that git reads, would keep it for ever.
const LONGEST: Duration = Duration::from_secs(900);

/// Bytes of a patch.
const LARGEST: usize = 256 << 20;

/// Options of every comparison: whatever a later version of git prefers, a patch looks the same and runs nothing.
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

/// Where a call finds objects and index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Store {
    Repository,
    Scratch,
}

/// A git work tree as it was at one moment, and the way to compare it with now.
pub struct Snapshots {
    processes: Arc<dyn Processes>,
    repository: Repository,
    /// The folder of new objects and the temporary index.
    scratch: PathBuf,
}

impl Snapshots {
    /// Finds the work tree around `folder`. `scratch` is made when it is needed.
    pub fn find(processes: Arc<dyn Processes>, folder: &Path, scratch: PathBuf) -> Result<Self, GitError> {
        let repository = Repository::find(folder, &Boundary::Anywhere)?;
        Ok(Self { processes, repository, scratch })
    }

    /// The work tree as it is now, untracked files included, as the name of a tree.
    pub async fn snapshot(&self) -> Result<String, GitError> {
        let top = self.repository.top().to_owned();
        let looked = tokio::task::spawn_blocking(move || check_pipes(&top)).await;
        looked.unwrap_or_else(|error| {
            Err(GitError::Failed { what: "add".to_owned(), words: error.to_string() })
        })?;
        let objects = self.scratch.join("objects");
        std::fs::create_dir_all(&objects).map_err(|error| WorkspaceError::io(&objects, error))?;
        // Beginning from the user's index spares hashing what did not change.
        let (index, real) = (self.scratch.join("index"), self.repository.index());
        let _ = std::fs::remove_file(&index);
        if real.exists() {
            copy_with_time(&real, &index).map_err(|error| WorkspaceError::io(&index, error))?;
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
            match if wanted { self.run_with(&arguments, Store::Scratch).await } else { Ok(Vec::new()) } {
                Ok(_) | Err(GitError::Failed { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let tree = self.run(&["write-tree"], Store::Scratch).await?;
        Ok(String::from_utf8_lossy(&tree).trim().to_owned())
    }

    /// Paths of the index that are commits of other repositories.
    async fn submodules(&self) -> Result<Vec<OsString>, GitError> {
        let listed = self.run(&["ls-files", "--stage", "-z"], Store::Scratch).await?;
        Ok(crate::gitlinks(&listed))
    }

    /// What turns `from` (a tree or commit) into the work tree as it is now.
    pub async fn patch(&self, from: &str) -> Result<Vec<u8>, GitError> {
        let now = self.snapshot().await?;
        let arguments: Vec<&str> = DIFF.into_iter().chain(["--binary", from, &now]).collect();
        self.run(&arguments, Store::Scratch).await
    }

    /// Paths that differ between `from` and now.
    pub async fn changed(&self, from: &str) -> Result<Vec<String>, GitError> {
        let now = self.snapshot().await?;
        let arguments: Vec<&str> = DIFF.into_iter().chain(["--name-only", "-z", from, &now]).collect();
        let names = self.run(&arguments, Store::Scratch).await?;
        let paths = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        Ok(paths.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// The full name of a commit, if there is one of this name.
    pub async fn commit(&self, name: &str) -> Result<String, GitError> {
        let spec = format!("{name}^{{commit}}");
        let arguments = ["rev-parse", "--verify", "--quiet", "--end-of-options", &spec];
        let found = self.run(&arguments, Store::Repository).await?;
        Ok(String::from_utf8_lossy(&found).trim().to_owned())
    }

    async fn run(&self, arguments: &[&str], store: Store) -> Result<Vec<u8>, GitError> {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        self.run_with(&arguments, store).await
    }

    async fn run_with(&self, arguments: &[OsString], store: Store) -> Result<Vec<u8>, GitError> {
        let what = arguments.first().map(|what| what.to_string_lossy().into_owned()).unwrap_or_default();
        let mut call = self.repository.call(Content::Bytes, Place::Top);
        match store {
            Store::Repository => {}
            Store::Scratch => {
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

/// A copy as old as the original. Git takes files that are as new as its index for changed and looks at them again; a copy
/// that is newer would hide a change made in the same moment as the commit before it.
fn copy_with_time(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::copy(from, to)?;
    let modified = std::fs::metadata(from)?.modified()?;
    std::fs::File::options().write(true).open(to)?.set_modified(modified)
}
