//! Programs in another language that are given as a text: `python3 -c`, `node -e`, a heredoc.
//!
//! Such a text may do anything, and the walls hold it. It is asked about only where it plainly does what a command
//! would be asked about for: it fetches an address, or starts `git push` or a download.

use crate::gate::Gate;
use crate::possible_commands::base;
use crate::walls::git::{GitAct, act};
use crate::walls::loopback::is_loopback;
use crate::walls::network::{ProgramReach, reach};
use crate::walls::{LEAVES, NETWORK};

/// Interpreters that take a program as a text.
const LANGUAGES: [&str; 13] = [
    "python", "pypy", "ipython", "perl", "ruby", "node", "nodejs", "deno", "bun", "php", "lua", "Rscript",
    "julia",
];

/// Parts of calls that fetch an address.
const FETCHES: [&str; 30] = [
    "urlopen",
    "urlretrieve",
    "requests.",
    "httpx",
    "aiohttp",
    "urllib",
    "http.client",
    "fetch(",
    "axios",
    "http.get",
    "https.get",
    "http.request",
    "https.request",
    "got(",
    "undici",
    "WebSocket",
    "Net::HTTP",
    "open-uri",
    "URI.open",
    "URI(",
    "Faraday",
    "HTTParty",
    "LWP",
    "HTTP::Tiny",
    "file_get_contents",
    "curl_",
    "fopen(",
    "download.file",
    "http.get(",
    "Downloads.",
];

/// Parts of calls that open a connection to a host.
const CONNECTS: [&str; 13] = [
    "create_connection(",
    ".connect((",
    "net.connect(",
    "net.createConnection(",
    "tls.connect(",
    "createConnection(",
    "TCPSocket",
    "IO::Socket",
    "fsockopen(",
    "smtplib",
    "ftplib",
    "paramiko",
    "Deno.connect(",
];

/// Parts of calls that start a program.
const STARTS: [&str; 22] = [
    "system(",
    "system ",
    "subprocess",
    "popen",
    "Popen",
    "exec(",
    "exec ",
    "execSync",
    "execFile",
    "spawn",
    "check_call",
    "check_output",
    "shell_exec",
    "passthru",
    "proc_open",
    "Open3",
    "Deno.Command",
    "qx",
    "`",
    "%x",
    "sh.",
    "$(",
];

/// Programs that are searched for after such a call.
const PROGRAMS: [&str; 24] = [
    "git",
    "curl",
    "wget",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "nc",
    "ncat",
    "docker",
    "podman",
    "kubectl",
    "sudo",
    "npm",
    "pip",
    "pip3",
    "gh",
    "aws",
    "gcloud",
    "terraform",
    "apt",
    "apt-get",
    "systemctl",
    "twine",
];

/// The most words after the name of a program that may be its own.
const MOST: usize = 16;

/// Tells whether a program takes texts in a language of its own.
pub(super) fn takes_texts(name: &str) -> bool {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    LANGUAGES.contains(&bare)
}

/// The rule and the reason to ask about a text that a program of another language is given.
pub(super) fn question(gate: &Gate, from: &[String], text: &str) -> Option<(&'static str, &'static str)> {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    let is_here = || text.contains("localhost") || text.contains("127.0.0.1") || text.contains("::1");
    if (has(&FETCHES) && names_address(text)) || (has(&CONNECTS) && !is_here()) {
        return Some((NETWORK, "its text fetches something from another machine"));
    }
    if !has(&STARTS) {
        return None;
    }
    text.split([';', '\n', '|', '&']).find_map(|row| {
        let words = row.split(|c: char| c.is_whitespace() || "()[]{},'\"`=+<>".contains(c));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        words.iter().enumerate().filter(|(_, word)| PROGRAMS.contains(&base(word))).find_map(|(at, word)| {
            let rest = words.get(at + 1..).unwrap_or_default();
            started(gate, from, base(word), rest.get(..MOST).unwrap_or(rest))
        })
    })
}

fn started(gate: &Gate, from: &[String], name: &str, words: &[&str]) -> Option<(&'static str, &'static str)> {
    // The name alone is a word like any other.
    words.first()?;
    if name == "git" {
        return match act(words, false, &|_| false)? {
            GitAct::Unknown => None,
            found @ (GitAct::History | GitAct::Configuration | GitAct::Network) => {
                Some((found.rule(), found.reason()))
            }
        };
    }
    match reach(gate, from, name, words) {
        ProgramReach::Inside => None,
        ProgramReach::Network => Some((NETWORK, "its text starts a program that reaches other machines")),
        ProgramReach::Leaves => Some((LEAVES, "its text starts a program that leaves the walls")),
    }
}

/// Tells whether an address of another machine stands in a text.
fn names_address(text: &str) -> bool {
    ["http://", "https://", "ftp://", "ws://", "wss://"].iter().any(|scheme| {
        text.match_indices(scheme).any(|(at, _)| {
            let address = text.get(at..).unwrap_or_default();
            let end =
                address.find(|c: char| c.is_whitespace() || "'\"`)".contains(c)).unwrap_or(address.len());
            !is_loopback(address.get(..end).unwrap_or_default())
        })
    })
}
