//! One call of git: the program, its arguments, and the whole environment.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_workspace::{Fence, Spawn, find_program, safe_path};

use crate::GitError;
use crate::settings::FIXED;

/// What a file's content means to git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The bytes as they are: no attribute counts, and line ends are not converted.
    Bytes,
    /// The content as the repository's attributes and line ends have it.
    Tree,
    /// The same, and with the user's own configuration: to learn what git did when it wrote files. Only for calls that run
    /// nothing, `check-attr` and `config --get`.
    User,
}

/// Where a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The top of the work tree, by a handle where the system has one: a folder swapped for a link changes nothing.
    Top,
    /// The folder that the repository was looked for from.
    Folder,
}

/// A call that can be started once or several times. The [`crate::Repository`] it is of must exist until it has ended.
#[derive(Debug, Clone)]
pub struct GitCall {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    settings: Vec<(OsString, OsString)>,
    cwd: PathBuf,
    fence: Fence,
}

/// The program and the PATH it gets.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) git: PathBuf,
    pub(crate) path: OsString,
}

impl Program {
    /// By its whole path, from those parts of PATH that are absolute and not in `tree`: else `PATH=.` would make a file named
    /// `git` the one that is run.
    pub(crate) fn find(tree: &Path) -> Result<Self, GitError> {
        let git = find_program("git", tree).ok_or(GitError::NoProgram)?;
        Ok(Self { git, path: safe_path(tree) })
    }
}

impl GitCall {
    pub(crate) fn new(program: &Program, cwd: PathBuf) -> Self {
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
            // The only transport that is allowed, and there is none of this name.
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

    /// Leaves out the configuration of the user and of the system, and the system's attributes.
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

    /// One more setting, which wins over those before. A key may hold any character.
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
        Spawn { argv, cwd: self.cwd.clone(), env: self.env(), fence: self.fence.clone() }
    }

    /// What the call prints, if it ends well.
    pub fn output(&self) -> Option<Vec<u8>> {
        let done = self.command().output().ok()?;
        done.status.success().then_some(done.stdout)
    }
}

/// What `git --version` prints, in a folder whose programs do not count.
pub fn git_version(folder: &Path) -> Option<String> {
    let mut call = GitCall::new(&Program::find(folder).ok()?, PathBuf::from("/"));
    call.without_user();
    let version = call.args(["--version"]).output()?;
    Some(String::from_utf8_lossy(&version).trim().to_owned())
}
