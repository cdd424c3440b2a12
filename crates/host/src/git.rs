//! Git for a person who works from elsewhere.
//!
//! Git runs programs that a repository's configuration names: monitors, hooks, filters, external diffs, signers. All of them
//! are switched off here, but for the hooks of a commit where that is asked for. Arguments are a list, never a line; what a
//! client names stands behind `--` or is checked before; paths are literal and stay in the folder. Nothing is committed, and
//! nothing staged, that nobody asked for.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use lathe_edit::unified_diff;
use lathe_workspace::{
    CaptureEnd, CaptureLimits, Ended, Files as _, LocalProcesses, Spawn, WorkspaceError, capture,
    is_protected,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::browse::{Browser, READ_MAX};
use crate::error::{FileProblem, HostError};
use crate::removed::Removed;
use crate::session::Host;

const TIME: Duration = Duration::from_secs(60);
/// Bytes of an answer.
const MOST: usize = 16 << 20;
/// The tree without files.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

/// The work tree around a folder.
pub struct GitPlace {
    browser: Browser,
    /// Where the search for a repository ends: no folder above is looked at.
    ceiling: PathBuf,
    /// The way from the top of the work tree to the folder, with a slash at its end.
    prefix: String,
    no_filters: Vec<String>,
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

/// How a commit is made.
#[derive(Debug, Clone, Default)]
pub struct CommitWish {
    pub message: String,
    pub author: Option<(String, String)>,
    pub hooks: bool,
}

impl Host {
    /// The repository around a folder, not looked for above `ceiling`.
    pub async fn git(&self, folder: &Path, ceiling: &Path) -> Result<GitPlace, HostError> {
        let mut git = GitPlace {
            browser: self.browse(folder)?,
            ceiling: ceiling.parent().unwrap_or(ceiling).to_owned(),
            prefix: String::new(),
            no_filters: Vec::new(),
        };
        let found = git.run(&["rev-parse", "--is-inside-work-tree", "--show-prefix"], &[]).await;
        let found = found.map_err(|_| HostError::Git("there is no git repository here".to_owned()))?;
        let text = String::from_utf8_lossy(&found);
        let mut lines = text.lines();
        if lines.next() != Some("true") {
            return Err(HostError::Git("there is no git work tree here".to_owned()));
        }
        git.prefix = lines.next().unwrap_or_default().to_owned();
        // None defined is a failure too.
        let filters = git.run(&["config", "--name-only", "--get-regexp", "^filter\\."], &[]).await;
        git.no_filters = no_filters(&String::from_utf8_lossy(&filters.unwrap_or_default()));
        Ok(git)
    }

    /// Makes a folder a repository.
    pub async fn git_init(&self, folder: &Path) -> Result<(), HostError> {
        let browser = self.browse(folder)?;
        let ceiling = browser.root().to_owned();
        let git = GitPlace { browser, ceiling, prefix: String::new(), no_filters: Vec::new() };
        git.run(&["init", "--quiet", "--template="], &[]).await.map(drop)
    }
}

impl GitPlace {
    pub async fn status(&self) -> Result<GitStatus, HostError> {
        let arguments = [
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--no-renames",
            "--ignore-submodules=dirty",
        ];
        let out = self.run(&arguments, &[".".to_owned()]).await?;
        let files = out.split(|byte| *byte == 0).filter_map(|entry| {
            let text = String::from_utf8_lossy(entry);
            let (status, path) = (text.get(..2)?, text.get(3..)?);
            let path = path.strip_prefix(&self.prefix).unwrap_or(path);
            Some(GitFile { path: path.to_owned(), status: status.to_owned() })
        });
        Ok(GitStatus { branch: self.branch().await, files: files.collect() })
    }

    async fn branch(&self) -> String {
        let named = self.run(&["symbolic-ref", "--quiet", "--short", "HEAD"], &[]).await;
        match named {
            Ok(name) => String::from_utf8_lossy(&name).trim().to_owned(),
            Err(_) => "HEAD".to_owned(),
        }
    }

    /// The difference of one path, or of all, to the last commit; of what is staged to it, if that is asked for.
    pub async fn diff(&self, path: Option<&str>, context: u32, staged: bool) -> Result<String, HostError> {
        let specs = match path {
            Some(path) => self.specs(&[path.to_owned()])?,
            None => vec![".".to_owned()],
        };
        let context = format!("-U{}", context.min(100_000));
        let from = self.head().await.unwrap_or_else(|| EMPTY_TREE.to_owned());
        let mut arguments = vec!["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames"];
        arguments.extend(["--relative", "--ignore-submodules=dirty", &context]);
        if staged {
            arguments.push("--cached");
        }
        arguments.push(&from);
        let diff = self.run(&arguments, &specs).await?;
        let diff = String::from_utf8_lossy(&diff).into_owned();
        // A file git does not know yet is new as a whole.
        if let (true, false, [spec]) = (diff.is_empty(), staged, specs.as_slice())
            && path.is_some()
            && self.run(&["ls-files", "--error-unmatch"], &specs).await.is_err()
        {
            let content = self.browser.files().read(Path::new(spec), Some(0..READ_MAX)).await?;
            return Ok(unified_diff(None, Some(&content), spec));
        }
        Ok(diff)
    }

    /// A file as it is in a commit.
    pub async fn show(&self, path: &str, revision: &str) -> Result<String, HostError> {
        let specs = self.specs(&[path.to_owned()])?;
        let spec = specs.first().map(String::as_str).unwrap_or_default();
        let commit = self.commit_of(revision).await?;
        let name = format!("{commit}:{}{spec}", self.prefix);
        let none = |_| HostError::File {
            problem: FileProblem::NotFound,
            reason: format!("{path} is not in {revision}"),
        };
        let size = self.run(&["cat-file", "-s", &name], &[]).await.map_err(none)?;
        let size: u64 = String::from_utf8_lossy(&size).trim().parse().unwrap_or(u64::MAX);
        if size > READ_MAX {
            let reason = format!("{path} has {size} bytes in {revision}; no more than {READ_MAX} are shown");
            return Err(HostError::File { problem: FileProblem::TooLarge, reason });
        }
        let content = self.run(&["cat-file", "blob", &name], &[]).await.map_err(none)?;
        String::from_utf8(content).map_err(|_| HostError::File {
            problem: FileProblem::Bad,
            reason: format!("{path} is no text in {revision}"),
        })
    }

    pub async fn add(&self, files: &[String]) -> Result<(), HostError> {
        let specs = self.some(files)?;
        self.check_filters(&specs).await?;
        self.run(&["add", "--all"], &specs).await.map(drop)
    }

    /// Takes files out of what is staged; the files stay as they are.
    pub async fn reset(&self, files: &[String]) -> Result<(), HostError> {
        let specs = self.some(files)?;
        self.run(&["reset", "--quiet"], &specs).await.map(drop)
    }

    /// Brings files back to what is staged or committed. What they are now can be brought back.
    pub async fn checkout(&self, files: &[String]) -> Result<Vec<Removed>, HostError> {
        let specs = self.some(files)?;
        if let Some(spec) = specs.iter().find(|spec| is_protected(Path::new(spec))) {
            return Err(WorkspaceError::Protected(spec.into()).into());
        }
        self.run(&["ls-files", "--error-unmatch"], &specs).await?;
        self.check_filters(&specs).await?;
        for spec in &specs {
            // A folder would be more than the files that were named.
            if self.browser.files().list(Path::new(spec)).await.is_ok() {
                return Err(WorkspaceError::IsDirectory(spec.into()).into());
            }
        }
        let mut kept = Vec::new();
        let mut failed = None;
        for spec in &specs {
            match self.browser.remove(spec).await {
                Ok(one) => kept.push(one),
                Err(HostError::File { problem: FileProblem::NotFound, .. }) => {}
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        let done = match failed {
            Some(error) => Err(error),
            None => self.run(&["checkout", "--quiet", "--no-recurse-submodules"], &specs).await.map(drop),
        };
        if let Err(error) = done {
            for one in &kept {
                let _ = self.browser.restore(&one.id).await;
            }
            return Err(error);
        }
        Ok(kept)
    }

    /// Commits what is staged, and gives the name of the commit.
    pub async fn commit(&self, wish: &CommitWish) -> Result<String, HostError> {
        if wish.message.trim().is_empty() || wish.message.contains('\0') {
            return Err(HostError::Git("a commit needs a message".to_owned()));
        }
        let (name, email) = match &wish.author {
            Some(author) => author.clone(),
            None => (self.identity("user.name").await?, self.identity("user.email").await?),
        };
        for word in [&name, &email] {
            if word.trim().is_empty() || word.contains(['\0', '\n', '<', '>']) {
                return Err(HostError::Git(
                    "the name and the email of a commit are one line each".to_owned(),
                ));
            }
        }
        let identity: Vec<(&str, &str)> = vec![
            ("GIT_AUTHOR_NAME", &name),
            ("GIT_AUTHOR_EMAIL", &email),
            ("GIT_COMMITTER_NAME", &name),
            ("GIT_COMMITTER_EMAIL", &email),
        ];
        let message = format!("--message={}", wish.message);
        let arguments = ["commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--no-edit", &message];
        self.run_with(&arguments, &[], &identity, wish.hooks).await?;
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

    /// The full name of a commit. A name that git could take for an option is none.
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

    /// Who commits: what the repository says, else what the user has set for all.
    async fn identity(&self, key: &str) -> Result<String, HostError> {
        let mut found = self.run(&["config", "--get", key], &[]).await;
        if found.is_err() {
            // Only read: nothing that the user has set is obeyed.
            let mut argv: Vec<OsString> = vec!["git".into()];
            argv.extend(["config", "--global", "--get", key].map(OsString::from));
            let spawn = Spawn { argv, cwd: self.browser.root().to_owned(), env: base_env(&[]) };
            found = captured(spawn, "config").await;
        }
        let found = found.map_err(|_| {
            HostError::Git(format!(
                "git does not know who commits: set {key}, or give `author_name` and `author_email`"
            ))
        })?;
        Ok(String::from_utf8_lossy(&found).trim().to_owned())
    }

    fn some(&self, files: &[String]) -> Result<Vec<String>, HostError> {
        match files {
            [] => Err(HostError::Git("no file is named".to_owned())),
            files => self.specs(files),
        }
    }

    /// Paths of the folder, as git is to take them: nothing that leads elsewhere.
    fn specs(&self, files: &[String]) -> Result<Vec<String>, HostError> {
        let spec = |file: &String| {
            let path = Path::new(file);
            let below =
                if path.is_absolute() { path.strip_prefix(self.browser.root()).ok() } else { Some(path) };
            let mut plain = PathBuf::new();
            for part in below.into_iter().flat_map(Path::components) {
                match part {
                    Component::Normal(name) => plain.push(name),
                    Component::CurDir => {}
                    Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
                }
            }
            let fits =
                below.is_some() && !plain.as_os_str().is_empty() && !file.contains('\0') && file.len() < 4096;
            fits.then(|| plain.to_string_lossy().into_owned())
        };
        let checked =
            files.iter().map(|file| spec(file).ok_or_else(|| WorkspaceError::Outside(file.into()).into()));
        checked.collect()
    }

    /// Files that a program of the user's turns into something else cannot be staged or brought back without it.
    async fn check_filters(&self, specs: &[String]) -> Result<(), HostError> {
        let out = self.run(&["check-attr", "-z", "filter"], specs).await?;
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

    async fn run(&self, arguments: &[&str], paths: &[String]) -> Result<Vec<u8>, HostError> {
        self.run_with(arguments, paths, &[], false).await
    }

    async fn run_with(
        &self,
        arguments: &[&str],
        paths: &[String],
        more: &[(&str, &str)],
        hooks: bool,
    ) -> Result<Vec<u8>, HostError> {
        let mut argv: Vec<OsString> = vec!["git".into(), "--literal-pathspecs".into(), "--no-pager".into()];
        let hooks_off = (!hooks).then_some("core.hooksPath=/dev/null");
        let settings = [
            "core.fsmonitor=false",
            "core.untrackedCache=false",
            "core.quotePath=false",
            "core.pager=cat",
            "core.editor=true",
            "diff.external=",
            "diff.noprefix=false",
            "diff.mnemonicPrefix=false",
            "diff.orderFile=/dev/null",
            "diff.ignoreSubmodules=dirty",
            "commit.gpgSign=false",
            "log.showSignature=false",
            "gpg.program=false",
            "gc.auto=0",
            "maintenance.auto=false",
            "protocol.allow=never",
            "submodule.recurse=false",
            "init.templateDir=",
        ];
        for setting in settings.into_iter().chain(hooks_off).chain(self.no_filters.iter().map(String::as_str))
        {
            argv.extend(["-c", setting].map(OsString::from));
        }
        argv.extend(arguments.iter().map(OsString::from));
        if !paths.is_empty() {
            argv.push("--".into());
            argv.extend(paths.iter().map(OsString::from));
        }
        let mut env = base_env(more);
        env.push(("GIT_CONFIG_GLOBAL".into(), "/dev/null".into()));
        env.push(("GIT_CEILING_DIRECTORIES".into(), self.ceiling.clone().into()));
        let spawn = Spawn { argv, cwd: self.browser.root().to_owned(), env };
        captured(spawn, arguments.first().copied().unwrap_or_default()).await
    }
}

/// Nothing of our own environment but where programs and the user's folder are.
fn base_env(more: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
    let ours = ["PATH", "HOME"].into_iter().filter_map(|name| Some((name.into(), std::env::var_os(name)?)));
    let set = [
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_EDITOR", "true"),
        ("LC_ALL", "C"),
    ];
    let set = set.iter().chain(more).map(|(name, value)| (OsString::from(name), OsString::from(value)));
    ours.chain(set).collect()
}

async fn captured(spawn: Spawn, what: &str) -> Result<Vec<u8>, HostError> {
    let limits = CaptureLimits { time: TIME, keep: MOST };
    let ran = capture(&LocalProcesses, spawn, &[], limits, std::future::pending()).await?;
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

/// Empty commands for the filters of these keys, and leave to do without them.
fn no_filters(keys: &str) -> Vec<String> {
    let ending = |key: &str| key.rfind('.').and_then(|at| key.get(..at)).map(str::to_owned);
    let mut names: Vec<String> = keys.lines().filter_map(ending).collect();
    names.sort();
    names.dedup();
    let off = |name: &String| {
        [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]
            .map(|(key, value)| format!("{name}.{key}={value}"))
    };
    names.iter().flat_map(off).collect()
}
