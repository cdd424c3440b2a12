//! Programs that edit, delete, move or fetch, by their names, subcommands and options (`rules/kinds.txt`).
//!
//! The facts that the guard and the list of losses have about a program are not repeated there ([`crate::kinds`] asks
//! them). Where a program has more names for a subcommand than people remember (`npm isntall`), the harmless ones are
//! listed and all others count.

use std::collections::HashMap;
use std::sync::LazyLock;

use lathe_protocol::ToolKind;

use ToolKind::{Delete, Edit, Fetch, Move};

/// The condition under which a program is of the kinds of its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RowCondition {
    Always,
    /// Its first operand is one of these.
    Sub(Vec<&'static str>),
    /// Its first operand is none of these; without an operand it counts too.
    Except(Vec<&'static str>),
    /// An option is one of these.
    With(Vec<&'static str>),
    /// No option is one of these.
    Without(Vec<&'static str>),
    /// The first operand is this, and no option is one of these.
    SubWithout(&'static str, Vec<&'static str>),
}

impl RowCondition {
    fn parse(text: &'static str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let when = words.next()?;
        let given: Vec<&str> = words.collect();
        Some(match when {
            "always" => Self::Always,
            "sub" => Self::Sub(given),
            "except" => Self::Except(given),
            "with" => Self::With(given),
            "without" => Self::Without(given),
            "subwithout" => {
                let (sub, options) = given.split_first()?;
                Self::SubWithout(sub, options.to_vec())
            }
            _ => return None,
        })
    }
}

/// The kinds of the programs of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgramRow<K> {
    pub(crate) kinds: Vec<K>,
    pub(crate) condition: RowCondition,
    /// Options before a second operand with which the row does not apply.
    pub(crate) unless: Vec<&'static str>,
}

/// A table of programs, and the rows of each.
pub(crate) struct ProgramTable<K> {
    rows: Vec<ProgramRow<K>>,
    by_name: HashMap<&'static str, Vec<usize>>,
}

pub(crate) static TABLE: LazyLock<ProgramTable<ToolKind>> =
    LazyLock::new(|| ProgramTable::parse(include_str!("../rules/kinds.txt"), kind).0);

impl<K> ProgramTable<K> {
    /// The table, and the lines that could not be read; a test checks that there are none.
    pub(crate) fn parse(text: &'static str, kind: fn(&str) -> Option<K>) -> (Self, Vec<&'static str>) {
        let (mut table, mut wrong) = (Self { rows: Vec::new(), by_name: HashMap::new() }, Vec::new());
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with(' ') {
                let Some(row) = table.rows.len().checked_sub(1) else {
                    wrong.push(line);
                    continue;
                };
                line.split_whitespace().for_each(|name| table.by_name.entry(name).or_default().push(row));
                continue;
            }
            let row = line.split_once(": ").and_then(|(kinds, when)| {
                let kinds = kinds.split_whitespace().map(kind).collect::<Option<Vec<K>>>()?;
                let (when, unless) = when.split_once(" / ").unwrap_or((when, ""));
                Some(ProgramRow {
                    kinds,
                    condition: RowCondition::parse(when)?,
                    unless: unless.split_whitespace().collect(),
                })
            });
            match row {
                Some(row) => table.rows.push(row),
                None => wrong.push(line),
            }
        }
        (table, wrong)
    }

    /// The rows about a program.
    pub(crate) fn rows(&self, name: &str) -> impl Iterator<Item = &ProgramRow<K>> {
        self.by_name.get(name).into_iter().flatten().filter_map(|index| self.rows.get(*index))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// The names of all programs.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        self.by_name.keys().copied()
    }
}

fn kind(word: &str) -> Option<ToolKind> {
    [Edit, Delete, Move, Fetch].into_iter().find(|kind| kind.as_str() == word)
}

/// First or second words that delete, whatever the program.
pub(crate) const DELETES: [&str; 19] = [
    "rm",
    "rmi",
    "remove",
    "delete",
    "del",
    "uninstall",
    "purge",
    "prune",
    "clean",
    "drop",
    "destroy",
    "erase",
    "wipe",
    "trash",
    "autoremove",
    "unpublish",
    "rmtree",
    "remove_directory",
    "down",
];

/// First or second words that move.
pub(crate) const MOVES: [&str; 5] = ["mv", "move", "moveto", "rename", "ren"];

/// Modules of Python by what they do.
pub(crate) const MODULES: [(&str, &[ToolKind]); 14] = [
    ("http.server", &[Fetch]),
    ("smtpd", &[Fetch]),
    ("webbrowser", &[Fetch]),
    ("ftplib", &[Fetch]),
    ("telnetlib", &[Fetch]),
    ("urllib.request", &[Fetch]),
    ("ensurepip", &[Fetch, Edit]),
    ("venv", &[Edit]),
    ("virtualenv", &[Fetch, Edit]),
    ("zipfile", &[Edit]),
    ("tarfile", &[Edit]),
    ("compileall", &[Edit]),
    ("py_compile", &[Edit]),
    ("lib2to3", &[Edit]),
];

/// Interpreters and editors, with the options after which a program stands in the words. Without a file they read it
/// from the standard input.
pub(crate) const LANGUAGES: [(&str, &[&str]); 52] = [
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("ipython", &["-c"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("jruby", &["-e"]),
    ("irb", &[]),
    ("node", &["-e", "-p", "--eval", "--print", "-r", "--require", "--import"]),
    ("nodejs", &["-e", "-p", "--eval", "--print", "-r", "--require", "--import"]),
    ("bun", &["-e", "--eval", "-p", "--print"]),
    ("php", &["-r", "-B", "-R", "-E", "-a"]),
    ("lua", &["-e", "-i"]),
    ("luajit", &["-e", "-i"]),
    ("Rscript", &["-e"]),
    ("R", &["-e", "-f"]),
    ("julia", &["-e", "-E", "--eval", "--print"]),
    ("osascript", &["-e"]),
    ("tclsh", &[]),
    ("wish", &[]),
    ("expect", &["-c"]),
    ("ghci", &["-e"]),
    ("runghc", &["-e"]),
    ("ghc", &["-e"]),
    ("scala", &["-e"]),
    ("groovy", &["-e"]),
    ("jshell", &[]),
    ("guile", &["-c"]),
    ("racket", &["-e"]),
    ("sbcl", &["--eval"]),
    ("clisp", &["-x"]),
    ("elixir", &["-e", "--eval"]),
    ("erl", &["-eval"]),
    ("clojure", &["-e", "-M"]),
    ("bb", &["-e"]),
    ("crystal", &["eval"]),
    ("swipl", &["-g"]),
    ("octave", &["--eval"]),
    ("emacs", &["--eval", "-eval", "--batch", "-batch", "--script", "-f", "--funcall"]),
    ("vim", &["-c", "--cmd", "-es", "-s", "-S"]),
    ("vi", &["-c", "--cmd", "-es", "-s", "-S"]),
    ("nvim", &["-c", "--cmd", "-es", "-s", "-S", "-l"]),
    ("ex", &["-c", "--cmd", "-es", "-s", "-S"]),
    ("gdb", &["-ex", "-x", "--eval-command", "-iex"]),
    ("lldb", &["-o", "-O", "--one-line"]),
    ("psql", &["-c", "--command"]),
    ("mysql", &["-e", "--execute"]),
    ("sqlite3", &[]),
    ("pwsh", &["-c", "-Command", "-EncodedCommand"]),
    ("powershell", &["-c", "-Command", "-EncodedCommand"]),
    ("nu", &["-c"]),
    ("xonsh", &["-c"]),
    ("elvish", &["-c"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let (table, wrong) = ProgramTable::parse(include_str!("../rules/kinds.txt"), kind);
        assert_eq!(wrong, [""; 0]);
        assert!(table.rows.len() > 40 && table.has("gzip") && !table.has("ls"));
        let of = |name: &str| table.rows(name).flat_map(|row| row.kinds.clone()).collect::<Vec<_>>();
        assert_eq!(of("unlink"), [Delete, Edit]);
        assert_eq!(of("lynx"), [Fetch]);
    }
}
