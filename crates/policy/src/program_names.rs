//! Other names of the programs that a line runs: the targets of links, and further names of the same file.
//!
//! A repository may ship `r -> /usr/bin/rm`. Such a command is judged by its own name and, for denials only, by every
//! name on the way to the file. All of it is found here and added to the script as further commands, so that the
//! guard, rules, kinds, losses and paths need not handle links. A bare name that the shell finds by itself counts by
//! another name only where that name is denied or guarded: `awk` stays `awk`, wherever it leads.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use lathe_bash::{Script, SimpleCommand, Word};

use crate::copied_programs;
use crate::disk::Disk;
use crate::gate::Gate;
use crate::guard;
use crate::places::{Spent, UNKNOWN, Values};
use crate::possible_commands::{PossibleCommands, base, in_programs};
use crate::rules::Rulebook;

/// Programs that act by the name they are started with.
const MANY_IN_ONE: [&str; 19] = [
    "busybox",
    "busybox.static",
    "toybox",
    "coreutils",
    "uutils",
    "sbase-box",
    "ubase-box",
    "dropbearmulti",
    "git",
    "rustup",
    "rustup-init",
    "mise",
    "asdf",
    "volta-shim",
    "proto-shim",
    "hermit",
    "snap",
    "ccache",
    "firejail",
];

/// Programs that the guard knows by their names.
const GUARDED: [&str; 24] = [
    "rm", "srm", "trash", "find", "chmod", "chown", "chgrp", "mv", "dd", "tee", "cp", "ln", "install",
    "shred", "truncate", "unlink", "wipefs", "mkfs", "kill", "rsync", "git", "lathe", "env", "busybox",
];

/// The most programs that one word may stand for and that are tried.
const MOST: usize = 64;

/// Places of programs that a line names.
struct ProgramPlaces {
    /// The folders in which the line searches for them.
    folders: Vec<String>,
    /// The names that `hash -p` gives, each with the path of the program.
    hashed: Vec<(String, String)>,
}

/// The names of programs for one line.
pub(crate) struct ProgramNames<'a> {
    gate: Option<&'a Gate>,
    line: &'a str,
    denied: BTreeSet<&'a str>,
    /// The folders that the line may be in.
    from: OnceCell<Vec<String>>,
    given: OnceCell<ProgramPlaces>,
    /// The files of the programs that rules and the guard name.
    files: OnceCell<Vec<(&'a str, PathBuf)>>,
    bare: RefCell<BTreeMap<String, Vec<String>>>,
}

impl<'a> ProgramNames<'a> {
    pub(crate) fn new(gate: Option<&'a Gate>, rules: &'a Rulebook, line: &'a str) -> Self {
        Self {
            gate: gate.filter(|gate| gate.disk.get().is_some()),
            line,
            denied: rules.denied_programs(),
            from: OnceCell::new(),
            given: OnceCell::new(),
            files: OnceCell::new(),
            bare: RefCell::default(),
        }
    }

    fn disk(&self) -> Option<&'a dyn Disk> {
        self.gate?.disk.get()
    }

    /// Reads the line, with every command by the other names of its program too.
    pub(crate) fn read(&self) -> Script {
        match self.gate {
            Some(_) => lathe_bash::read_with_other_words(self.line, &mut |script, index| {
                self.other_words(script, index)
            }),
            None => lathe_bash::read(self.line),
        }
    }

    /// The programs that rules deny.
    pub(crate) fn denied(&self) -> &BTreeSet<&'a str> {
        &self.denied
    }

    /// The denied programs that a file being read is, by a link or a hard link.
    pub(crate) fn names_of_copy(&self, spelled: &str) -> Vec<String> {
        let is_name =
            !spelled.is_empty() && !spelled.starts_with('-') && !spelled.contains(char::is_whitespace);
        let path = if spelled.contains('/') { spelled.to_owned() } else { format!("./{spelled}") };
        let names = if is_name { self.names_of(&path) } else { Vec::new() };
        names.into_iter().filter(|name| self.denied.contains(name.as_str())).collect()
    }

    /// Adds the programs that are copied, and the rows of words in which one stands by another name: `python3 -c
    /// 'os.system("./q a")'`.
    pub(crate) fn add_other_names(
        &self,
        script: &Script,
        values: &Values<'_>,
        behind: &mut [PossibleCommands],
    ) {
        copied_programs::add_copied(self, script, values, behind);
        if self.gate.is_none() {
            return;
        }
        for behind in behind {
            let renamed = behind.rows.iter().flat_map(|row| self.renamed(row)).collect::<Vec<_>>();
            behind.rows.extend(renamed);
        }
    }

    fn renamed(&self, row: &[String]) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (at, word) in row.iter().enumerate().filter(|(_, word)| word.contains('/')).take(MOST) {
            for name in self.names_of(word) {
                let mut row = row.to_vec();
                row.splice(at..=at, [name]);
                rows.push(row);
            }
        }
        rows
    }

    /// The words that a command may become by other names of the program it runs.
    fn other_words(&self, script: &Script, index: usize) -> Vec<Vec<Word>> {
        let Some(command) = script.commands.get(index) else { return Vec::new() };
        let Some((first, rest)) = command.words.split_first() else { return Vec::new() };
        self.record_places(script);
        let spent = Spent::default();
        let values = Values { assigned: &script.values, may_be_empty: true, line: None, spent: &spent };
        let programs = match first.literal() {
            Some(text) => vec![text.to_owned()],
            None => values.spellings(first),
        };
        let mut found = Vec::new();
        for (at, program) in programs.iter().enumerate().take(MOST) {
            for name in self.names_of(program) {
                let own = programs.iter().skip(at + 1).filter(|_| first.literal().is_none());
                let own = own.map(|word| Word::text(word.as_str()));
                found
                    .push(std::iter::once(Word::text(name)).chain(own).chain(rest.iter().cloned()).collect());
            }
        }
        found.extend(self.started(command));
        found
    }

    /// The words of a program that may start others, with programs in place of links to them: `poetry run ./r -rf x`.
    fn started(&self, command: &SimpleCommand) -> Option<Vec<Word>> {
        let linked = |word: &Word| {
            let text = word.literal().filter(|text| text.contains('/') && !text.contains(UNKNOWN))?;
            let paths = self.gate?.absolute_paths(text, self.from.get()?);
            let disk = self.disk()?;
            let led_to = |path: &String| {
                let is_program = |place: &PathBuf| in_programs(&place.to_string_lossy());
                let outside = !in_programs(&disk.real(Path::new(path).parent()?).join("x").to_string_lossy());
                disk.link_chain(Path::new(path)).into_iter().find(is_program).filter(|_| outside)
            };
            paths.iter().find_map(led_to).map(|place| Word::text(name_of(&place)))
        };
        if !command.words.iter().skip(1).any(|word| linked(word).is_some()) {
            return None;
        }
        let effects = command.effects();
        (effects.opaque || !effects.programs.is_empty()).then_some(())?;
        let rest = command.words.iter().skip(1).map(|word| linked(word).unwrap_or_else(|| word.clone()));
        Some(command.words.first().cloned().into_iter().chain(rest).collect())
    }

    /// Records what the line says about folders and programs.
    fn record_places(&self, script: &Script) {
        let spent = Spent::default();
        let values =
            Values { assigned: &script.values, may_be_empty: false, line: Some(self.line), spent: &spent };
        self.from.get_or_init(|| guard::folders(self.gate, self.line, script, &values).all);
        self.given.get_or_init(|| {
            let paths =
                script.values.get("PATH").into_iter().flatten().flat_map(|word| values.spellings(word));
            let cut = |path: String| path.split(':').map(str::to_owned).collect::<Vec<_>>();
            let folders = paths.flat_map(cut).filter(|folder| !folder.contains(UNKNOWN)).collect();
            let hashed = script.commands.iter().filter(|command| command.program_name() == Some("hash"));
            let hashed = hashed.flat_map(|command| hashes(command, &values)).collect();
            ProgramPlaces { folders, hashed }
        });
    }

    /// The other names of a program as it is spelled.
    fn names_of(&self, program: &str) -> Vec<String> {
        let (Some(gate), Some(disk)) = (self.gate, self.disk()) else { return Vec::new() };
        let Some(from) = self.from.get() else { return Vec::new() };
        if program.is_empty() || program.contains([UNKNOWN, '\n']) {
            return Vec::new();
        }
        let files = |spelled: &str| -> Vec<PathBuf> {
            let paths = gate.absolute_paths(spelled, from);
            let expanded = |path: String| match path.contains(['*', '?', '[']) {
                true => disk
                    .expand(&path.replace("/./", "/"))
                    .unwrap_or_default()
                    .into_iter()
                    .take(MOST)
                    .collect(),
                false => vec![PathBuf::from(path)],
            };
            paths.into_iter().flat_map(expanded).collect()
        };
        if program.contains('/') {
            let mut names: Vec<String> =
                files(program).iter().flat_map(|path| self.of_file(path, base(program))).collect();
            names.sort();
            names.dedup();
            return names;
        }
        let mut names = self.of_bare(program);
        if let Some(ProgramPlaces { folders, hashed }) = self.given.get() {
            let looked = folders.iter().map(|folder| match folder.is_empty() {
                true => format!("./{program}"),
                false => format!("{folder}/{program}"),
            });
            let hashed = hashed.iter().filter(|(name, _)| name == program).map(|(_, path)| path.clone());
            for path in looked.chain(hashed).flat_map(|spelled| files(&spelled)) {
                names.extend(self.of_file(&path, program));
            }
        }
        names.sort();
        names.dedup();
        names
    }

    /// The names of a file that is run by its path.
    fn of_file(&self, path: &Path, spelled: &str) -> Vec<String> {
        let Some(disk) = self.disk() else { return Vec::new() };
        let places = disk.link_chain(path);
        let Some(file) = places.last() else { return Vec::new() };
        let own = name_of(path);
        if self.is_found(&own, file) {
            let mut names = self.of_bare(&own);
            names.extend((own != spelled).then_some(own));
            return names;
        }
        let mut names: BTreeSet<String> = places.iter().map(|place| name_of(place)).collect();
        names.insert(own);
        let last = name_of(file);
        if MANY_IN_ONE.contains(&last.as_str()) {
            if names.iter().any(|name| *name != last && self.is_found(name, file)) {
                names.remove(&last);
            }
        } else if places.len() > 1 || disk.hard_link_id(file).is_some() {
            let same = self.files().iter().filter(|(_, known)| is_same(disk, known, file));
            names.extend(same.map(|(name, _)| (*name).to_owned()));
        }
        names.remove(spelled);
        names.into_iter().collect()
    }

    /// The denied and guarded names of a program that the shell finds by itself.
    fn of_bare(&self, name: &str) -> Vec<String> {
        if let Some(known) = self.bare.borrow().get(name) {
            return known.clone();
        }
        let found = self.found(name);
        let names: Vec<String> = found.iter().flat_map(|places| self.names_on_way(name, places)).collect();
        self.bare.borrow_mut().insert(name.to_owned(), names.clone());
        names
    }

    /// The places that each program of a bare name leads to, the file itself last.
    fn found(&self, name: &str) -> Vec<Vec<PathBuf>> {
        let Some(disk) = self.disk().filter(|_| !name.contains('/')) else { return Vec::new() };
        disk.on_path(name).iter().map(|path| disk.link_chain(path)).collect()
    }

    /// The denied and guarded names of a program by the places that its name leads to.
    fn names_on_way(&self, name: &str, places: &[PathBuf]) -> Vec<String> {
        let Some(file) = places.last() else { return Vec::new() };
        let many = MANY_IN_ONE.contains(&name_of(file).as_str());
        let counts = |other: &String| {
            other != name && (self.denied.contains(other.as_str()) || GUARDED.contains(&other.as_str()))
        };
        let led = places.iter().filter(|place| !many || *place != file).map(|place| name_of(place));
        let mut names: Vec<String> = led.filter(counts).collect();
        // `python3` is denied, and this is the `python3.11` that it leads to.
        let leads_here = |denied: &str, led: &Vec<PathBuf>| {
            let version = is_version(denied, name) && led.iter().any(|place| name_of(place) == name);
            let chosen = led.iter().any(|place| place.parent() == Some(Path::new("/etc/alternatives")));
            led.last() == Some(file) && (version || chosen)
        };
        let is_meant =
            |denied: &&&str| **denied != name && self.found(denied).iter().any(|led| leads_here(denied, led));
        names
            .extend(self.denied.iter().filter(|_| !many).filter(is_meant).map(|denied| (*denied).to_owned()));
        names
    }

    /// Tells whether the shell finds this very file by the bare name.
    fn is_found(&self, name: &str, file: &Path) -> bool {
        self.found(name).iter().any(|led| led.last().is_some_and(|last| last == file))
    }

    fn files(&self) -> &[(&'a str, PathBuf)] {
        self.files.get_or_init(|| {
            let names = self.denied.iter().copied().chain(GUARDED);
            let files = |name: &'a str| {
                self.found(name).into_iter().filter_map(move |mut led| Some((name, led.pop()?)))
            };
            names.flat_map(files).collect()
        })
    }
}

/// Tells whether two names are of one file, also by a hard link.
fn is_same(disk: &dyn Disk, one: &Path, other: &Path) -> bool {
    one == other || disk.hard_link_id(one).is_some_and(|id| disk.hard_link_id(other) == Some(id))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Tells whether a name is that of a program with a version or a system in it: `python3.11`, `x86_64-linux-gnu-gcc-12`.
fn is_version(program: &str, name: &str) -> bool {
    let bare = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    !bare.is_empty() && name.split(|c: char| !c.is_alphabetic() && c != '+').any(|part| part == bare)
}

/// `hash -p path name`
fn hashes(command: &SimpleCommand, values: &Values<'_>) -> Vec<(String, String)> {
    let words: Vec<String> = command.words.iter().skip(1).flat_map(|word| values.spellings(word)).collect();
    let option = |word: &String| word.starts_with('-') && word.contains('p');
    let Some(at) = words.iter().position(option) else { return Vec::new() };
    let glued = words.get(at).and_then(|word| word.split_once('p')).map(|(_, rest)| rest);
    let glued = glued.filter(|rest| !rest.is_empty()).map(str::to_owned);
    let rest = words.get(at + 1..).unwrap_or_default();
    let (path, names) = match (glued, rest.split_first()) {
        (Some(path), _) => (path, rest),
        (None, Some((path, names))) => (path.clone(), names),
        (None, None) => return Vec::new(),
    };
    names.iter().map(|name| (name.clone(), path.clone())).collect()
}
