//! The reach of a program with its words: whether it stays inside the walls, reaches other machines or leaves the
//! walls, by the tables `rules/walls.txt` and `rules/kinds.txt`.

use std::sync::LazyLock;

use lathe_protocol::ToolKind;

use crate::gate::Gate;
use crate::guard::operands;
use crate::kind_table::{ProgramRow, ProgramTable, RowCondition, TABLE};
use crate::kinds::{effects_of, holds, is_cancelled};
use crate::patterns::glob;
use crate::places::UNKNOWN;
use crate::sets::simplified;
use crate::walls::{loopback, packages};

/// The reach of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramReach {
    /// The walls hold it.
    Inside,
    /// It reaches other machines.
    Network,
    /// It leaves the walls, or has a service outside of them act for it.
    Leaves,
}

static REACHES: LazyLock<ProgramTable<ProgramReach>> =
    LazyLock::new(|| ProgramTable::parse(include_str!("../../rules/walls.txt"), reach_word).0);

fn reach_word(word: &str) -> Option<ProgramReach> {
    match word {
        "inside" => Some(ProgramReach::Inside),
        "network" => Some(ProgramReach::Network),
        "leaves" => Some(ProgramReach::Leaves),
        _ => None,
    }
}

/// Options before the subcommand that take the next word.
const GLOBAL: [(&str, &[&str]); 9] = [
    ("cargo", &["-C", "--color", "--config", "-Z", "--manifest-path"]),
    ("npm", &["-C", "--prefix", "-w", "--workspace", "--loglevel"]),
    ("pnpm", &["-C", "--dir", "--prefix", "--filter", "-F"]),
    ("yarn", &["--cwd"]),
    ("bun", &["--cwd", "--filter"]),
    ("go", &["-C"]),
    ("uv", &["--directory", "--project", "--python", "-p", "--color"]),
    ("poetry", &["-C", "--directory", "-P", "--project"]),
    ("dotnet", &["--roll-forward"]),
];

/// Builtins, and programs that work on texts: an address in their words is a text.
const TEXTUAL: [&str; 46] = [
    "export",
    "declare",
    "typeset",
    "readonly",
    "local",
    "alias",
    "set",
    "unset",
    "read",
    "let",
    "trap",
    "eval",
    "echo",
    "printf",
    "test",
    "[",
    "sed",
    "gsed",
    "perl",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "jq",
    "yq",
    "sd",
    "rpl",
    "tee",
    "tr",
    "touch",
    "mkdir",
    "rm",
    "mv",
    "cp",
    "ln",
    "env",
    "xargs",
    "sqlite3",
    "basename",
    "dirname",
    "expr",
    "cut",
    "sort",
    "column",
    "shellcheck",
    "typos",
];

/// Schemes of addresses on other machines.
const SCHEMES: [&str; 26] = [
    "http",
    "https",
    "ftp",
    "ftps",
    "sftp",
    "scp",
    "ssh",
    "git",
    "git+ssh",
    "git+https",
    "ws",
    "wss",
    "s3",
    "gs",
    "postgres",
    "postgresql",
    "mysql",
    "redis",
    "rediss",
    "mongodb",
    "mongodb+srv",
    "amqp",
    "tcp",
    "udp",
    "ldap",
    "smb",
];

/// Modules of Python that reach other machines by themselves.
pub(super) const MODULES: [&str; 5] = ["ftplib", "telnetlib", "urllib.request", "webbrowser", "smtplib"];

/// The words of a program without its options that stand before the subcommand and take a value, and without the name
/// of a workspace.
pub(super) fn without_globals<'w>(name: &str, words: &[&'w str]) -> Vec<&'w str> {
    let valued = GLOBAL.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, valued)| valued);
    let (mut left, mut at) = (Vec::new(), 0);
    while let Some(word) = words.get(at).filter(|word| word.starts_with(['-', '+'])) {
        at += 1;
        match valued.contains(word) {
            true => at += 1,
            false => left.push(*word),
        }
    }
    // `yarn workspace web add x`
    if name == "yarn" && words.get(at) == Some(&"workspace") {
        at += 2;
    }
    left.extend(words.iter().skip(at));
    left
}

/// The name by which the tables know a program: `pip3.11` is `pip`.
pub(super) fn known_name(name: &str) -> &str {
    let knows = |name: &str| REACHES.has(name) || TABLE.has(name);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    if !knows(name) && knows(bare) { bare } else { name }
}

/// The programs of the tables that a pattern may mean: `/usr/bin/cur?`.
pub(super) fn meant_programs(pattern: &str) -> Vec<&'static str> {
    let pattern = simplified(pattern);
    let network = TABLE.names().filter(|name| TABLE.rows(name).any(fetches));
    let names = network.chain(REACHES.names()).chain(["git"]);
    names.filter(|name| glob(&pattern, name)).collect()
}

fn fetches(row: &ProgramRow<ToolKind>) -> bool {
    row.kinds.contains(&ToolKind::Fetch)
}

/// The reach of a program by the tables. `from` are the folders that it may run in.
pub(super) fn reach(gate: &Gate, from: &[String], name: &str, words: &[&str]) -> ProgramReach {
    if let [only] = words
        && matches!(*only, "--version" | "-V" | "--help" | "-h")
    {
        return ProgramReach::Inside;
    }
    let sub = words.iter().copied().find(|word| !word.starts_with(['-', '+']));
    let is_open = sub.is_some_and(|sub| sub.contains(UNKNOWN));
    let applies =
        |row: &&ProgramRow<ProgramReach>| holds(&row.condition, words) && !is_cancelled(&row.unless, words);
    let has =
        |wanted: ProgramReach| REACHES.rows(name).filter(applies).any(|row| row.kinds.contains(&wanted));
    if has(ProgramReach::Leaves) {
        return ProgramReach::Leaves;
    }
    // What is known only when the program runs may be any of its subcommands.
    let by_sub =
        |condition: &RowCondition| matches!(condition, RowCondition::Sub(_) | RowCondition::SubWithout(..));
    let may_reach = || {
        let own = REACHES.rows(name).filter(|row| row.kinds.contains(&ProgramReach::Network));
        let own = own.map(|row| &row.condition);
        let fetching = TABLE.rows(name).filter(|row| fetches(row)).map(|row| &row.condition);
        own.chain(fetching).any(|condition| by_sub(condition) || holds(condition, words))
    };
    let reaches = match name {
        _ if has(ProgramReach::Network) || packages::publishes(name, words) => true,
        "go" => packages::fetched_by_go(words),
        "rsync" | "scp" => !is_local_copy(words),
        "yarn" if sub.is_none() => true,
        _ if is_open && may_reach() => true,
        _ if has(ProgramReach::Inside) || packages::begins_package(name, words) => false,
        _ if packages::runs_installed(gate, from, name, words) => false,
        _ => {
            let applies = |row: &&ProgramRow<ToolKind>| {
                fetches(row) && holds(&row.condition, words) && !is_cancelled(&row.unless, words)
            };
            TABLE.rows(name).filter(applies).count() > 0
        }
    };
    match reaches && !loopback::stays_on_loopback(name, words) {
        true => ProgramReach::Network,
        false => ProgramReach::Inside,
    }
}

/// Tells whether a copy has both its ends on this machine.
fn is_local_copy(words: &[&str]) -> bool {
    let given = operands(words);
    let is_local = |word: &&str| {
        let colon = word.find(':');
        !word.contains(UNKNOWN) && colon.is_none_or(|colon| word.find('/').is_some_and(|slash| slash < colon))
    };
    given.len() > 1 && given.iter().all(is_local)
}

/// Tells whether a program that does more than read is given an address on another machine.
pub(super) fn is_given_address(name: &str, words: &[&str]) -> bool {
    !TEXTUAL.contains(&name)
        && words.iter().any(|word| is_address(word))
        && effects_of(name, words).change_something()
        && !loopback::stays_on_loopback(name, words)
}

fn is_address(word: &str) -> bool {
    let value =
        if word.starts_with('-') { word.split_once('=').map_or("", |(_, value)| value) } else { word };
    value.split_once("://").is_some_and(|(scheme, _)| SCHEMES.contains(&scheme.to_ascii_lowercase().as_str()))
        && !loopback::is_loopback(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let (table, wrong) = ProgramTable::parse(include_str!("../../rules/walls.txt"), reach_word);
        assert_eq!(wrong, [""; 0]);
        assert!(table.has("docker") && table.has("cargo") && !table.has("ls"));
    }

    #[test]
    fn options_before_the_subcommand_are_left_out() {
        for (name, line, left) in [
            ("npm", "--prefix web install x", "install x"),
            ("pnpm", "-r --filter web add x", "-r add x"),
            ("cargo", "+nightly --color always build", "+nightly build"),
            ("yarn", "workspace web add x", "add x"),
            ("yarn", "--cwd web add -D x", "add -D x"),
            ("make", "-C x y", "-C x y"),
        ] {
            let words: Vec<&str> = line.split(' ').collect();
            assert_eq!(without_globals(name, &words).join(" "), left, "{name} {line}");
        }
    }
}
