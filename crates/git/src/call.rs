//! One call of git: the program, its arguments, and the whole environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_workspace::{Fence, Spawn, find_program, safe_path};

use crate::GitError;
use crate::settings::FIXED;

/// The rules by which git reads the content of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentRules {
    /// The bytes as they are: no attributes apply, and line ends are not converted.
    Bytes,
    /// The content by the repository's attributes and line ends.
    Tree,
    /// Like `Tree`, and with the user's own configuration: for the rules by which git wrote files. Only for calls
    /// that run nothing, `check-attr` and `config --get`.
    User,
}

/// The working folder of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFolder {
    /// The top of the work tree, by a handle if the system has one: then a folder swapped for a link has no effect.
    Top,
    /// The folder from which the repository was searched.
    Folder,
}

/// A call that can be started once or several times. Its [`crate::Repository`] must exist until it has ended.
#[derive(Debug, Clone)]
pub struct GitCall {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    settings: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    fence: Fence,
}

/// The program and its PATH.
#[derive(Debug, Clone)]
pub(crate) struct GitProgram {
    pub(crate) git: PathBuf,
    pub(crate) path: OsString,
}

impl GitProgram {
    /// Finds git by its full path, in those parts of PATH that are absolute and not in `tree`: with `PATH=.` a file
    /// named `git` would be run.
    pub(crate) fn find(tree: &Path) -> Result<Self, GitError> {
        let git = find_program("git", tree).ok_or(GitError::NoProgram)?;
        Ok(Self { git, path: safe_path(tree) })
    }
}

impl GitCall {
    pub(crate) fn new(program: &GitProgram, cwd: PathBuf) -> Self {
        let mut call = Self {
            program: program.git.clone(),
            arguments: vec!["--no-pager".into()],
            variables: vec![("PATH".into(), program.path.clone())],
            settings: FIXED.iter().map(|(key, value)| (key.into(), value.into())).collect(),
            cwd,
            fence: Fence::default(),
        };
        for name in ["HOME", "XDG_CONFIG_HOME"] {
            call.variables.extend(std::env::var_os(name).map(|value| (name.into(), value)));
        }
        for (name, value) in [
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_NO_LAZY_FETCH", "1"),
            // The only allowed transport, and none of this name exists.
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("GIT_EDITOR", "false"),
            ("GIT_SEQUENCE_EDITOR", "false"),
            ("GIT_ASKPASS", "false"),
            ("GIT_SSH_COMMAND", "false"),
            ("GIT_PAGER", "cat"),
            ("LC_ALL", "C"),
        ] {
            call.variable(name, value);
        }
        call
    }

    /// Excludes the configuration of the user and of the system, and the system's attributes.
    pub(crate) fn without_user(&mut self) {
        for (name, value) in
            [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_ATTR_NOSYSTEM", "1")]
        {
            self.variable(name, value);
        }
    }

    pub(crate) fn fence(&mut self, fence: Fence) {
        self.fence = fence;
    }

    /// Adds a setting, which overrides earlier ones. A key may contain any character.
    pub fn set(&mut self, key: impl Into<OsString>, value: impl Into<OsString>) {
        self.settings.push((key.into(), value.into()));
    }

    pub fn variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    /// An option before the command.
    pub(crate) fn option(&mut self, option: impl Into<OsString>) {
        self.arguments.push(option.into());
    }

    /// The command and its arguments.
    pub fn args<I: IntoIterator<Item = S>, S: AsRef<OsStr>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    fn env(&self) -> Vec<(OsString, OsString)> {
        let mut env = self.variables.clone();
        for (at, (key, value)) in self.settings.iter().enumerate() {
            env.push((format!("GIT_CONFIG_KEY_{at}").into(), key.clone()));
            env.push((format!("GIT_CONFIG_VALUE_{at}").into(), value.clone()));
        }
        env.push(("GIT_CONFIG_COUNT".into(), self.settings.len().to_string().into()));
        env
    }

    /// The call as a command of the standard library, without input.
    pub fn command(&self) -> Command {
        self.spawn().command()
    }

    /// The call for a workspace's processes.
    pub fn spawn(&self) -> Spawn {
        let mut argv = vec![self.program.clone().into_os_string()];
        argv.extend(self.arguments.iter().cloned());
        Spawn { argv, cwd: self.cwd.clone(), env: self.env(), fence: self.fence.clone(), shown: Vec::new() }
    }

    /// The output of the call, if it succeeds.
    pub fn output(&self) -> Option<Vec<u8>> {
        let done = self.command().output().ok()?;
        done.status.success().then_some(done.stdout)
    }
}

/// The output of `git --version`. Programs in `folder` are not used.
pub fn git_version(folder: &Path) -> Option<String> {
    let mut call = GitCall::new(&GitProgram::find(folder).ok()?, PathBuf::from("/"));
    call.without_user();
    let version = call.args(["--version"]).output()?;
    Some(String::from_utf8_lossy(&version).trim().to_owned())
}
