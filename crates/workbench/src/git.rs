//! Git for a user who works from elsewhere.
//!
//! Calls are those of `lathe-git`: nothing that the repository names is run, except the hooks of a commit where the
//! request asks for them. All calls run at the top of the work tree. Arguments are a list, never a line; a name that
//! a client gives stands after `--` or is checked before. Paths are literal, stay in the folder and out of Lathe's
//! own folder. Nothing is staged or committed that no request asked for.

mod landing;
mod named;

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_edit::unified_diff;
use lathe_git::{
    Boundary, CallFolder, ContentRules, GitCall, GitError, IndexUse, Init, Repository, check_inner,
    check_pipes, gitlinks, prepare_init, user_setting,
};
use lathe_host::{FileProblem, HostError, RemovedItem};
use lathe_workspace::{
    CaptureEnd, CaptureLimits, Ended, Processes, WorkspaceError, capture, is_protected_ground,
    is_protected_in,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::Workbench;
use crate::browse::{Browser, READ_MAX, on_pool};
use crate::own::OwnFolder;
use crate::slot::keeping_slot;

const TIME: Duration = Duration::from_secs(60);
/// Largest output of a call, in bytes.
const MOST: usize = 16 << 20;

/// The work tree around a folder.
#[derive(Clone)]
pub struct GitPlace {
    browser: Browser,
    repository: Arc<Repository>,
    boundary: Boundary,
    own: OwnFolder,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GitStatus {
    pub branch: String,
    pub files: Vec<GitFile>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GitFile {
    pub path: String,
    /// Two letters as git has them: the index, the work tree.
    pub status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GitCommit {
    pub hash: String,
    pub author: String,
    pub email: String,
    pub date: String,
    pub message: String,
}

/// The options of a commit.
#[derive(Debug, Clone, Default)]
pub struct CommitWish {
    pub message: String,
    pub author: Option<(String, String)>,
    pub hooks: bool,
}

impl Workbench {
    /// The repository around a folder. All of it must lie below `roots`.
    pub async fn git(&self, folder: &Path, roots: &[PathBuf]) -> Result<GitPlace, HostError> {
        let browser = self.browse(folder)?;
        let own = self.own_folder(browser.root())?;
        let (root, boundary) = (browser.root().to_owned(), Boundary::Roots(roots.to_owned()));
        let within = boundary.clone();
        // Finding a large repository takes time.
        let found = tokio::task::spawn_blocking(keeping_slot(move || Repository::find(&root, &within))).await;
        let repository = found.map_err(|error| HostError::Git(error.to_string()))?.map_err(git_error)?;
        Ok(GitPlace { browser, repository: Arc::new(repository), boundary, own })
    }

    /// Makes a folder a repository.
    pub async fn git_init(&self, folder: &Path, roots: &[PathBuf]) -> Result<(), HostError> {
        let browser = self.browse(folder)?;
        self.own_folder(browser.root())?;
        if is_protected_ground(browser.root()) {
            return Err(WorkspaceError::Protected(browser.root().to_owned()).into());
        }
        match prepare_init(browser.root(), &Boundary::Roots(roots.to_owned())).map_err(git_error)? {
            Init::Existed => Ok(()),
            Init::Call(init) => captured(browser.processes(), &init.call, "init").await.map(drop),
        }
    }

    /// Lathe's own folder, for a folder that does not lie in it.
    fn own_folder(&self, folder: &Path) -> Result<OwnFolder, HostError> {
        let own = OwnFolder::of(self.home().path());
        if own.holds(folder) {
            return Err(WorkspaceError::Outside(folder.to_owned()).into());
        }
        Ok(own)
    }
}

fn git_error(error: GitError) -> HostError {
    match error {
        GitError::NoRepository => HostError::Git("there is no git repository here".to_owned()),
        GitError::Workspace(error) => error.into(),
        error @ (GitError::Refused { .. }
        | GitError::Config { .. }
        | GitError::NoProgram
        | GitError::Failed { .. }) => HostError::Git(error.to_string()),
    }
}

impl GitPlace {
    pub async fn status(&self) -> Result<GitStatus, HostError> {
        self.check_pipes().await?;
        let arguments = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=dirty",
        ];
        let mut specs = self.all();
        specs.extend(self.foreign(&specs).await?);
        let out = self.run(&arguments, &specs).await?;
        let place = self.clone();
        let files = on_pool(move || Ok(place.status_files(&out))).await?;
        Ok(GitStatus { files, branch: self.branch().await })
    }

    /// The files of a status, without those of Lathe's own folder.
    fn status_files(&self, out: &[u8]) -> Vec<GitFile> {
        let (top, prefix) = (self.repository.top(), self.repository.prefix());
        let mut own = self.own.for_many();
        let files = out.split(|byte| *byte == 0).filter_map(|entry| {
            let (status, path) = (entry.get(..2)?, Path::new(OsStr::from_bytes(entry.get(3..)?)));
            if own.holds(&top.join(path)) {
                return None;
            }
            // A repository inside is named with a slash, which a path would lose.
            let below = path.strip_prefix(prefix).unwrap_or(path).to_string_lossy().into_owned();
            let slash = if entry.ends_with(b"/") { "/" } else { "" };
            Some(GitFile {
                path: format!("{below}{slash}"),
                status: String::from_utf8_lossy(status).into_owned(),
            })
        });
        files.collect()
    }

    /// Refuses a work tree in which git would wait for a pipe.
    async fn check_pipes(&self) -> Result<(), HostError> {
        let repository = Arc::clone(&self.repository);
        let checked = tokio::task::spawn_blocking(keeping_slot(move || check_pipes(repository.top()))).await;
        checked.map_err(|error| HostError::Git(error.to_string()))?.map_err(git_error)
    }

    async fn branch(&self) -> String {
        let named = self.run(&["symbolic-ref", "--quiet", "--short", "HEAD"], &[]).await;
        match named {
            Ok(name) => String::from_utf8_lossy(&name).trim().to_owned(),
            Err(_) => "HEAD".to_owned(),
        }
    }

    /// The diff of one path, or of all, against the last commit; that of the staged content if `staged` is true.
    pub async fn diff(&self, path: Option<&str>, context: u32, staged: bool) -> Result<String, HostError> {
        self.check_pipes().await?;
        let named = path.map(|path| self.checked_path(path)).transpose()?;
        let mut specs = match &named {
            Some(plain) => self.specs(std::slice::from_ref(plain)),
            None => self.all(),
        };
        let exact = specs.clone();
        specs.extend(self.foreign(&specs).await?);
        let context = format!("-U{}", context.min(100_000));
        let from = self.head().await.unwrap_or_else(|| self.repository.empty_tree().to_owned());
        let mut arguments: Vec<OsString> = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--no-renames",
            "--submodule=short",
            "--ignore-submodules=dirty",
            &context,
        ]
        .map(OsString::from)
        .to_vec();
        if !self.repository.prefix().as_os_str().is_empty() {
            let mut relative = OsString::from("--relative=");
            relative.push(self.repository.prefix());
            relative.push("/");
            arguments.push(relative);
        }
        if staged {
            arguments.push("--cached".into());
        }
        arguments.push(from.into());
        let diff = self.run(&arguments, &specs).await?;
        let diff = String::from_utf8_lossy(&diff).into_owned();
        // A file that git does not know yet is new as a whole.
        if let (true, false, Some(plain)) = (diff.is_empty(), staged, &named)
            && self.run(&["ls-files", "--error-unmatch"], &exact).await.is_err()
        {
            let content = self.browser.files().read(plain, Some(0..READ_MAX)).await?;
            return Ok(unified_diff(None, Some(&content), &plain.to_string_lossy()));
        }
        Ok(diff)
    }

    /// A file as it is in a commit.
    pub async fn show(&self, path: &str, revision: &str) -> Result<String, HostError> {
        let plain = self.repository.prefix().join(self.checked_path(path)?);
        let mut name = OsString::from(self.commit_of(revision).await?);
        name.push(":");
        name.push(plain);
        let name = name.as_os_str();
        let none = |_| HostError::File {
            problem: FileProblem::NotFound,
            reason: format!("{path} is not in {revision}"),
        };
        let size = self.run(&[OsStr::new("cat-file"), OsStr::new("-s"), name], &[]).await.map_err(none)?;
        let size: u64 = String::from_utf8_lossy(&size).trim().parse().unwrap_or(u64::MAX);
        if size > READ_MAX {
            let reason = format!("{path} has {size} bytes in {revision}; no more than {READ_MAX} are shown");
            return Err(HostError::File { problem: FileProblem::TooLarge, reason });
        }
        let content =
            self.run(&[OsStr::new("cat-file"), OsStr::new("blob"), name], &[]).await.map_err(none)?;
        String::from_utf8(content).map_err(|_| HostError::File {
            problem: FileProblem::Bad,
            reason: format!("{path} is not text in {revision}"),
        })
    }

    pub async fn add(&self, files: &[String]) -> Result<(), HostError> {
        let named = self.checked_paths(files).await?;
        self.check_pipes().await?;
        let mut specs = self.specs(&named);
        self.check_filters(&named).await?;
        // Repositories inside: to see whether their files changed, git would run in them with their own
        // configuration. Only the commit that they are at is staged.
        let staged = self.run(&["ls-files", "--stage", "-z"], &specs).await?;
        let links = gitlinks(&staged);
        let others = self.run(&["ls-files", "--others", "--exclude-standard", "-z"], &specs).await?;
        let others = others.split(|byte| *byte == 0).filter(|name| name.ends_with(b"/"));
        let others = others.map(|inner| OsStr::from_bytes(inner).to_owned());
        // Git does not recognise a repository that leads where it cannot read.
        let by_name = named.iter().map(|plain| self.repository.prefix().join(plain).into_os_string());
        let inner = links.iter().cloned().chain(others).chain(by_name);
        for (_, checked) in self.check_inner(inner.collect()).await? {
            checked.map_err(git_error)?;
        }
        let known: HashSet<&OsStr> = links.iter().map(OsString::as_os_str).collect();
        let is_link = |plain: &PathBuf| known.contains(self.repository.prefix().join(plain).as_os_str());
        if !named.iter().all(is_link) {
            specs.extend(links.iter().map(|link| excluded(link)));
            self.run(&["add", "--all"], &specs).await?;
        }
        if links.is_empty() {
            return Ok(());
        }
        self.run(&["update-index", "--remove"], &links).await.map(drop)
    }

    /// Unstages files; the files stay as they are.
    pub async fn reset(&self, files: &[String]) -> Result<(), HostError> {
        let specs = self.specs(&self.checked_paths(files).await?);
        self.check_pipes().await?;
        self.run(&["reset", "--quiet"], &specs).await.map(drop)
    }

    /// Restores files to the staged or committed version. Their present content can be restored.
    pub async fn checkout(&self, files: &[String]) -> Result<Vec<RemovedItem>, HostError> {
        let named = self.checked_paths(files).await?;
        let specs = self.specs(&named);
        let (place, written) = (self.clone(), named.clone());
        on_pool(move || {
            let root = place.browser.root();
            if let Some(plain) = written.iter().find(|plain| is_protected_in(root, plain)) {
                return Err(WorkspaceError::Protected(plain.clone()).into());
            }
            place.check_layout(&written)
        })
        .await?;
        self.check_pipes().await?;
        self.run(&["ls-files", "--error-unmatch"], &specs).await?;
        self.check_filters(&named).await?;
        for plain in &named {
            // A folder would be more than the files that were named.
            if self.browser.files().list(plain).await.is_ok() {
                return Err(WorkspaceError::IsDirectory(plain.clone()).into());
            }
        }
        self.replace_files(named, specs).await
    }

    /// Commits what is staged, and returns the name of the commit.
    pub async fn commit(&self, wish: &CommitWish) -> Result<String, HostError> {
        if wish.message.trim().is_empty() || wish.message.contains('\0') {
            return Err(HostError::Git("a commit needs a message".to_owned()));
        }
        let (name, email) = match &wish.author {
            Some(author) => author.clone(),
            None => (self.identity("name")?, self.identity("email")?),
        };
        for word in [&name, &email] {
            if word.trim().is_empty() || word.contains(['\0', '\n', '<', '>']) {
                return Err(HostError::Git(
                    "the name and the email of a commit are one line each".to_owned(),
                ));
            }
        }
        self.check_pipes().await?;
        let message = format!("--message={}", wish.message);
        let arguments = ["commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--no-edit", &message];
        let mut call = self.call("commit").await?;
        for (variable, value) in [
            ("GIT_AUTHOR_NAME", &name),
            ("GIT_AUTHOR_EMAIL", &email),
            ("GIT_COMMITTER_NAME", &name),
            ("GIT_COMMITTER_EMAIL", &email),
        ] {
            call.variable(variable, value);
        }
        if wish.hooks {
            self.repository.with_hooks(&mut call);
        }
        self.captured(&call.args(arguments), "commit").await?;
        self.head().await.ok_or_else(|| HostError::Git("the commit cannot be found".to_owned()))
    }

    pub async fn log(&self, limit: u32, offset: u32) -> Result<Vec<GitCommit>, HostError> {
        if self.head().await.is_none() {
            return Ok(Vec::new());
        }
        let (limit, offset) = (format!("--max-count={}", limit.min(1000)), format!("--skip={offset}"));
        let format = "--format=%H%x1f%an%x1f%ae%x1f%aI%x1f%B";
        let out = self
            .run(&["log", "-z", "--no-color", "--no-show-signature", &limit, &offset, format], &[])
            .await?;
        let commits = out.split(|byte| *byte == 0).filter_map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let mut parts = text.splitn(5, '\u{1f}').map(|part| part.trim_end().to_owned());
            Some(GitCommit {
                hash: parts.next().filter(|hash| !hash.is_empty())?,
                author: parts.next()?,
                email: parts.next()?,
                date: parts.next()?,
                message: parts.next()?,
            })
        });
        Ok(commits.collect())
    }

    async fn head(&self) -> Option<String> {
        self.commit_of("HEAD").await.ok()
    }

    /// The full name of a commit. A name that git could take for an option is refused.
    async fn commit_of(&self, revision: &str) -> Result<String, HostError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || "._/~^@{}-+".contains(c) || !c.is_ascii();
        let no = || HostError::File {
            problem: FileProblem::NotFound,
            reason: format!("there is no commit `{revision}`"),
        };
        if revision.is_empty() || revision.starts_with('-') || !revision.chars().all(fits) {
            return Err(no());
        }
        let spec = format!("{revision}^{{commit}}");
        let found = self.run(&["rev-parse", "--verify", "--quiet", "--end-of-options", &spec], &[]).await;
        Ok(String::from_utf8_lossy(&found.map_err(|_| no())?).trim().to_owned())
    }

    /// The author of a commit: that of the repository, otherwise that of the user's global settings.
    fn identity(&self, key: &str) -> Result<String, HostError> {
        let set = self.repository.setting("user", key).map(str::to_owned);
        set.or_else(|| user_setting("user", key)).map(|value| value.trim().to_owned()).ok_or_else(|| {
            HostError::Git(format!(
                "git does not know who commits: set user.{key}, or give `author_name` and `author_email`"
            ))
        })
    }

    /// Leaves out repositories inside that lead out of the roots: git would look up the commit they are at.
    async fn foreign(&self, specs: &[OsString]) -> Result<Vec<OsString>, HostError> {
        let listed = self.run(&["ls-files", "--stage", "-z"], specs).await?;
        let checked = self.check_inner(gitlinks(&listed)).await?;
        let foreign = checked.iter().filter(|(_, checked)| checked.is_err());
        Ok(foreign.map(|(link, _)| excluded(link)).collect())
    }

    /// Repositories inside this one, each with an error if it leads out of the roots.
    async fn check_inner(
        &self,
        below: Vec<OsString>,
    ) -> Result<Vec<(OsString, Result<(), GitError>)>, HostError> {
        let (repository, boundary) = (Arc::clone(&self.repository), self.boundary.clone());
        let check = move || {
            let check = |below: OsString| {
                let checked = inner_fits(&repository.top().join(&below), &boundary);
                (below, checked)
            };
            below.into_iter().map(check).collect()
        };
        tokio::task::spawn_blocking(keeping_slot(check))
            .await
            .map_err(|error| HostError::Git(error.to_string()))
    }

    /// Files that a program of the user's converts can be neither staged nor restored without that program.
    async fn check_filters(&self, plain: &[PathBuf]) -> Result<(), HostError> {
        let paths: Vec<OsString> =
            plain.iter().map(|plain| self.repository.prefix().join(plain).into_os_string()).collect();
        let out = self.run(&["check-attr", "-z", "filter"], &paths).await?;
        let parts: Vec<&[u8]> = out.split(|byte| *byte == 0).collect();
        for three in parts.chunks_exact(3) {
            if let [path, _, value] = three
                && *value != b"unspecified"
                && *value != b"unset"
            {
                return Err(HostError::Git(format!(
                    "{} goes through the filter {}, which is not run from here: use git in a terminal",
                    String::from_utf8_lossy(path),
                    String::from_utf8_lossy(value)
                )));
            }
        }
        Ok(())
    }

    /// The output of a call at the top of the work tree.
    async fn run<S: AsRef<OsStr>>(&self, arguments: &[S], paths: &[OsString]) -> Result<Vec<u8>, HostError> {
        let what = arguments.first().map(|what| what.as_ref().to_string_lossy().into_owned());
        let what = what.unwrap_or_default();
        let mut call = self.call(&what).await?.args(arguments);
        if !paths.is_empty() {
            call = call.args(["--"]).args(paths);
        }
        self.captured(&call, &what).await
    }

    /// The beginning of a call of a command, with an index if the command uses one.
    async fn call(&self, what: &str) -> Result<GitCall, HostError> {
        let Some(index) = index_of(what) else {
            return Ok(self.repository.call(ContentRules::Tree, CallFolder::Top));
        };
        let repository = Arc::clone(&self.repository);
        let call = move || repository.indexed(index, ContentRules::Tree, CallFolder::Top);
        let call = tokio::task::spawn_blocking(keeping_slot(call)).await;
        call.map_err(|error| HostError::Git(error.to_string()))?.map_err(git_error)
    }

    /// The output of a call, if the repository is still the one that was opened.
    async fn captured(&self, call: &GitCall, what: &str) -> Result<Vec<u8>, HostError> {
        let output = captured(self.browser.processes(), call, what).await;
        let repository = Arc::clone(&self.repository);
        let writes = index_of(what) == Some(IndexUse::Write);
        let check = move || {
            repository.check_again()?;
            // It may have been swapped since it was checked.
            if writes { repository.check_index() } else { Ok(()) }
        };
        let again = tokio::task::spawn_blocking(keeping_slot(check)).await;
        again.map_err(|error| HostError::Git(error.to_string()))?.map_err(git_error)?;
        output.map_err(|error| match error {
            HostError::Git(words) => HostError::Git(self.repository.readable(&words)),
            error => error,
        })
    }
}

/// The index that a command uses. None: it gets none.
fn index_of(command: &str) -> Option<IndexUse> {
    match command {
        "status" | "diff" | "ls-files" | "check-attr" => Some(IndexUse::Read),
        "add" | "update-index" | "reset" | "checkout" | "commit" => Some(IndexUse::Write),
        _ => None,
    }
}

/// Refuses a repository inside of another one that is reached through a link or leads out of the roots.
fn inner_fits(path: &Path, boundary: &Boundary) -> Result<(), GitError> {
    // One that is not checked out leads nowhere, and neither does a file.
    let Some(real) = path.canonicalize().ok().filter(|real| real.is_dir()) else { return Ok(()) };
    if real != path.components().collect::<PathBuf>() {
        return Err(GitError::Refused {
            file: path.to_owned(),
            why: "is reached through a symbolic link".to_owned(),
        });
    }
    check_inner(&real, boundary)
}

/// A pathspec by which git leaves a path out.
fn excluded(path: &OsStr) -> OsString {
    let mut spec = OsString::from(":(exclude,literal)");
    spec.push(path);
    spec
}

async fn captured(processes: &dyn Processes, call: &GitCall, what: &str) -> Result<Vec<u8>, HostError> {
    let limits = CaptureLimits { time: TIME, keep: MOST };
    let ran = capture(processes, call.spawn(), &[], limits, std::future::pending()).await?;
    match ran.end {
        CaptureEnd::Ended(Ended::Code(0)) if !ran.cut => Ok(ran.stdout),
        CaptureEnd::Ended(Ended::Code(0)) => {
            Err(HostError::Git(format!("git {what} says more than {MOST} bytes: ask for one file")))
        }
        CaptureEnd::Ended(_) => {
            let words = String::from_utf8_lossy(&ran.stderr).trim().to_owned();
            let words =
                if words.is_empty() { String::from_utf8_lossy(&ran.stdout).trim().to_owned() } else { words };
            Err(HostError::Git(format!("git {what}: {words}")))
        }
        CaptureEnd::TimedOut | CaptureEnd::Stopped => {
            Err(HostError::Git(format!("git {what} took longer than {} seconds", TIME.as_secs())))
        }
    }
}
