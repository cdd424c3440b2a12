//! Denials by the walls of the session, recognised in what a line printed: a place that is read-only, or a host that
//! cannot be reached.
//!
//! A model that sees only `Read-only file system` tries the same with other words. One plain line says that the
//! sandbox did it, and what is possible instead.

use std::path::Path;

use lathe_workspace::{Level, Workspace};

use super::captured::CapturedStream;
use crate::outcome::Data;
use crate::problem::Problem;

/// A denial by the walls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HeldByWalls {
    /// A place that cannot be written. None if the program did not name it.
    Write(Option<String>),
    /// The network. None if the program named no host.
    Network(Option<String>),
}

/// Words of the system for a place that is read-only.
const READ_ONLY: &str = "Read-only file system";

/// Words of programs for a host that they cannot reach, each with the words before the host's name.
const UNREACHABLE: [(&str, &str); 14] = [
    ("Could not resolve host", "Could not resolve host: "),
    ("Temporary failure in name resolution", ""),
    ("Temporary failure resolving", "Temporary failure resolving '"),
    ("Name or service not known", ""),
    ("Network is unreachable", ""),
    ("No route to host", ""),
    ("unable to resolve host address", "host address \u{2018}"),
    ("failed to lookup address information", ""),
    ("getaddrinfo EAI_AGAIN", "getaddrinfo EAI_AGAIN "),
    ("getaddrinfo ENOTFOUND", "getaddrinfo ENOTFOUND "),
    ("ENETUNREACH", ""),
    ("dial tcp: lookup", "dial tcp: lookup "),
    ("UnknownHostException", "UnknownHostException: "),
    ("Errno -3]", ""),
];

/// Finds a denial by the walls in the last lines of an output.
pub(crate) fn held_by_walls(output: &str) -> Option<HeldByWalls> {
    let mut last: Vec<&str> = output.lines().rev().take(200).collect();
    last.reverse();
    last.into_iter().find_map(|line| {
        if let Some((before, after)) = line.split_once(READ_ONLY) {
            return Some(HeldByWalls::Write(named_path(before, after)));
        }
        let (_, before) = UNREACHABLE.iter().find(|(words, _)| line.contains(words))?;
        let host = (!before.is_empty()).then(|| line.split_once(before)).flatten();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '_');
        let host = host.map(|(_, rest)| rest.chars().take_while(|c| is_part(*c)).collect::<String>());
        let host =
            host.map(|host| host.trim_end_matches([':', '.']).to_owned()).filter(|host| !host.is_empty());
        Some(HeldByWalls::Network(host))
    })
}

/// The path in a message: quoted, or the last words before a colon.
fn named_path(before: &str, after: &str) -> Option<String> {
    let quoted = |text: &str| {
        let mut parts = text.split(['\'', '"', '\u{2018}', '\u{2019}', '`']).skip(1).step_by(2);
        parts.find(|part| part.contains('/')).map(str::to_owned)
    };
    let spelled = || {
        let words = before.trim_end().trim_end_matches(':');
        words
            .rsplit(": ")
            .next()
            .map(str::trim)
            .filter(|words| words.contains('/') && !words.contains(' '))
            .map(str::to_owned)
    };
    quoted(after).or_else(|| quoted(before)).or_else(spelled)
}

impl HeldByWalls {
    /// The line for the model.
    pub(crate) fn note(&self, workspace: &Workspace) -> String {
        let what = match self {
            Self::Write(Some(path)) => format!("The sandbox keeps {} read-only.", shown(path)),
            Self::Write(None) => "The sandbox keeps that place read-only.".to_owned(),
            Self::Network(Some(host)) => {
                format!("The sandbox has no network, so {} cannot be reached.", shown(host))
            }
            Self::Network(None) => "The sandbox has no network.".to_owned(),
        };
        let instead = match self {
            Self::Write(_) => format!(
                " Commands can write {}, /tmp and a private copy of the home folder.",
                workspace.root().display()
            ),
            Self::Network(_) => {
                " Work with what is here: the caches of the package managers can be read.".to_owned()
            }
        };
        format!("{what}{instead} Other words will not change that; if the task needs it, say so to the user.")
    }
}

/// The note for a line that ended with an error.
pub(super) fn note(data: &Result<Data, Problem>, workspace: &Workspace) -> Option<String> {
    let Ok(Data::Shell(shell)) = data else { return None };
    let has_walls = match workspace.level() {
        Level::Off | Level::Limits => false,
        Level::Filters | Level::Walls => true,
    };
    let of = |stream: &CapturedStream| held_by_walls(&String::from_utf8_lossy(&stream.bytes));
    let held = (has_walls && shell.exit.code() != 0).then(|| of(&shell.stderr).or_else(|| of(&shell.stdout)));
    held.flatten().map(|held| held.note(workspace))
}

fn shown(text: &str) -> String {
    lathe_protocol::visible(Path::new(text).display().to_string().as_str()).chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_of_many_programs_are_recognised() {
        let write = |path: &str| Some(HeldByWalls::Write(Some(path.to_owned())));
        let host = |host: &str| Some(HeldByWalls::Network(Some(host.to_owned())));
        for (output, expected) in [
            ("bash: line 1: /etc/x: Read-only file system", write("/etc/x")),
            ("touch: cannot touch '/usr/local/a b': Read-only file system\n", write("/usr/local/a b")),
            ("mkdir: cannot create directory \u{2018}/opt/x\u{2019}: Read-only file system", write("/opt/x")),
            ("OSError: [Errno 30] Read-only file system: '/etc/y'", write("/etc/y")),
            ("error: Read-only file system (os error 30)", Some(HeldByWalls::Write(None))),
            ("curl: (6) Could not resolve host: example.com", host("example.com")),
            (
                "ssh: Could not resolve hostname x: Temporary failure in name resolution",
                Some(HeldByWalls::Network(None)),
            ),
            (
                "npm error request to https://registry.npmjs.org/x failed, reason: getaddrinfo EAI_AGAIN registry.npmjs.org",
                host("registry.npmjs.org"),
            ),
            ("go: dial tcp: lookup proxy.golang.org: no such host", host("proxy.golang.org")),
            ("connect: Network is unreachable", Some(HeldByWalls::Network(None))),
            ("all is well", None),
            ("bash: a: Permission denied", None),
        ] {
            assert_eq!(held_by_walls(output), expected, "{output}");
        }
    }
}
