//! How Lathe itself calls git: so that nothing a repository says is run.
//!
//! A repository names programs in many places: file system monitors, hooks, filters, drivers of diffs, pagers, helpers for
//! keys, transports, and all of that again in each submodule. All of our calls begin here. Settings on the command line
//! come after every file, includes among them, so they win. Filters are switched off by name, and by variables instead of
//! `-c`: a name may hold a `=`, at which `-c` would end it. What git might fetch (a repository may say that objects are
//! elsewhere, and a transport is a program) is refused whatever the repository allows.
//!
//! The program is found on those parts of PATH that are absolute and not in the work tree: else `PATH=.` would make a
//! file named `git` the one that is run.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tree without files, which git knows without having it.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";

const SETTINGS: [&str; 15] = [
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.editor=false",
    "core.askPass=false",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.untrackedCache=false",
    "core.fileMode=true",
    "credential.helper=",
    "diff.external=",
    "protocol.allow=never",
    "submodule.recurse=false",
    "safe.bareRepository=explicit",
    "advice.addEmbeddedRepo=false",
];

/// Arguments of `git` that list the filters a repository defines, for [`GitCall::without_filters`].
pub const LIST_FILTERS: [&str; 5] = ["config", "-z", "--name-only", "--get-regexp", "^filter\\."];

/// Whose configuration git reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitConfig {
    /// The repository's alone, and no attributes of the tree.
    Bare,
    /// The user's too, and all attributes: to learn what git did when it wrote files. Only for calls that run nothing.
    Whole,
}

/// The beginning of a call: program, settings and the whole environment. The command and its arguments follow.
#[derive(Debug, Clone)]
pub struct GitCall {
    pub argv: Vec<OsString>,
    pub env: Vec<(OsString, OsString)>,
}

impl GitCall {
    pub fn new(folder: &Path, config: GitConfig) -> Self {
        let program = find_program("git", folder).unwrap_or_else(|| PathBuf::from("/usr/bin/git"));
        let mut call = Self { argv: vec![program.into()], env: Vec::new() };
        call.env.push(("PATH".into(), safe_path(folder)));
        for name in ["HOME", "XDG_CONFIG_HOME"] {
            call.env.extend(std::env::var_os(name).map(|value| (name.into(), value)));
        }
        for (name, value) in [
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_REPLACE_OBJECTS", "1"),
            ("GIT_NO_LAZY_FETCH", "1"),
            // The only transport that is allowed, and there is none of this name.
            ("GIT_ALLOW_PROTOCOL", "none"),
            ("LC_ALL", "C"),
        ] {
            call.variable(name, value);
        }
        call.argv.push("--no-pager".into());
        if config == GitConfig::Bare {
            for (name, value) in
                [("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_ATTR_NOSYSTEM", "1")]
            {
                call.variable(name, value);
            }
            call.argv.push(format!("--attr-source={EMPTY_TREE}").into());
            call.set(&["core.attributesFile=/dev/null", "core.autocrlf=false"]);
        }
        call.set(&SETTINGS);
        call
    }

    /// More settings, each `key=value`.
    pub fn set(&mut self, settings: &[&str]) {
        for setting in settings {
            self.argv.extend(["-c".into(), setting.into()]);
        }
    }

    pub fn variable(&mut self, name: &str, value: impl Into<OsString>) {
        self.env.push((name.into(), value.into()));
    }

    /// Switches off the filters of these keys, as [`LIST_FILTERS`] prints them.
    pub fn without_filters(&mut self, keys: &[u8]) {
        let mut names: Vec<&[u8]> = keys
            .split(|byte| *byte == 0)
            .filter_map(|key| key.get(..key.iter().rposition(|b| *b == b'.')?))
            .collect();
        names.sort_unstable();
        names.dedup();
        let mut count = 0;
        for name in names {
            for (key, value) in [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")] {
                let key = OsString::from_vec([name, b".", key.as_bytes()].concat());
                self.env.push((format!("GIT_CONFIG_KEY_{count}").into(), key));
                self.env.push((format!("GIT_CONFIG_VALUE_{count}").into(), value.into()));
                count += 1;
            }
        }
        if count > 0 {
            self.variable("GIT_CONFIG_COUNT", count.to_string());
        }
    }

    /// As a command of the standard library, in a folder.
    pub fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(self.argv.first().map_or(OsStr::new("git"), OsString::as_os_str));
        command.args(self.argv.iter().skip(1)).current_dir(folder).env_clear();
        command.envs(self.env.iter().map(|(name, value)| (name, value))).stdin(Stdio::null());
        command
    }
}

/// What a call prints, if it ends well, for one that looks at no file of the work tree.
pub fn git_plain(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let done = GitCall::new(folder, GitConfig::Bare).command(folder).args(arguments).output().ok()?;
    done.status.success().then_some(done.stdout)
}

/// What a call prints, if it ends well. The filters of the repository are off.
pub fn git_output(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut call = GitCall::new(folder, GitConfig::Bare);
    // None defined is an exit code of 1, not an error.
    let filters = call.command(folder).args(LIST_FILTERS).output().ok()?;
    call.without_filters(&filters.stdout);
    let done = call.command(folder).args(arguments).output().ok()?;
    done.status.success().then_some(done.stdout)
}

/// Whether git would wait for somebody to write before it says a word: a file that it reads here is a pipe or a device.
pub fn git_would_wait(folder: &Path) -> bool {
    let names = [
        ".gitignore",
        ".gitattributes",
        ".gitmodules",
        ".git/info/exclude",
        ".git/info/attributes",
        ".git/index",
    ];
    let is_odd =
        |path: PathBuf| std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    folder.ancestors().any(|folder| names.iter().any(|name| is_odd(folder.join(name))))
}

/// A program of this name on PATH, by its whole path. Neither a relative part of PATH counts nor one in `tree`.
pub fn find_program(name: &str, tree: &Path) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let parts = safe_path(tree);
    std::env::split_paths(&parts).map(|part| part.join(name)).find(is_program)
}

/// PATH without the parts that are relative or in `tree`.
fn safe_path(tree: &Path) -> OsString {
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (path, tree) = (std::env::var_os("PATH").unwrap_or_default(), real(tree));
    let is_safe =
        |part: &PathBuf| part.is_absolute() && (tree.parent().is_none() || !real(part).starts_with(&tree));
    let parts: Vec<PathBuf> = std::env::split_paths(&path).filter(is_safe).collect();
    std::env::join_paths(parts).unwrap_or_default()
}

/// PATH without relative parts: what a name means must not depend on the folder somebody stands in.
pub fn absolute_path(path: &OsStr) -> OsString {
    let parts: Vec<PathBuf> = std::env::split_paths(path).filter(|part| part.is_absolute()).collect();
    std::env::join_paths(parts).unwrap_or_else(|_| OsString::from_vec(path.as_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_filter_is_switched_off_whatever_its_name() {
        let mut call = GitCall { argv: Vec::new(), env: Vec::new() };
        call.without_filters(b"filter.a=b.clean\0filter.a=b.process\0filter.x.y.smudge\0filter.\xff.clean\0");
        let get =
            |name: &str| call.env.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_bytes());
        assert_eq!(get("GIT_CONFIG_COUNT"), Some(&b"12"[..]));
        assert_eq!(
            (get("GIT_CONFIG_KEY_0"), get("GIT_CONFIG_VALUE_0")),
            (Some(&b"filter.a=b.clean"[..]), Some(&b""[..]))
        );
        assert_eq!(get("GIT_CONFIG_KEY_6"), Some(&b"filter.x.y.process"[..]));
        assert_eq!(get("GIT_CONFIG_KEY_8"), Some(&b"filter.\xff.clean"[..]));
    }

    #[test]
    fn only_absolute_parts_of_a_path_count() {
        let kept = |path: &str| absolute_path(OsStr::new(path)).into_string().unwrap();
        assert_eq!(kept(".:/usr/bin::bin:/bin:"), "/usr/bin:/bin");
        assert_eq!(kept("."), "");
    }
}
