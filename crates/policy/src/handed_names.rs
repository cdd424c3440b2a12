//! Names that a line hands from one command to another: by a pipe into `xargs`, by `find -exec`, by `$(…)` and loops.
//!
//! A reader that is given such names may read anything in the places they come from, with all that links there lead
//! to, so it is judged as if it went through these places (`grep -R`). That holds only where the names are what
//! [`crate::name_sources`] says they are, where nothing in the line changes the disk, and where no name on the disk
//! would be split or become an option on its way. Everything else stays unknown, and is asked about.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use lathe_bash::{Piece, Script, SimpleCommand, Word};
use lathe_protocol::ToolKind;

use crate::disk::Disk;
use crate::gate::Gate;
use crate::guard::Folders;
use crate::name_sources::{self, NameSource, StartedCommand};
use crate::places::UNKNOWN;
use crate::rules::Rulebook;

/// Stands for such a name. Code that does not check for it sees something unknown, like any other.
pub(crate) const NAME: &str = "\u{1}\u{6}";

/// The most commands and substitutions of a line that are examined.
const MOST: usize = 32;

/// The ways in which names are split on their way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameSplit {
    /// Not split.
    Never,
    /// At blanks, line feeds, quotes and backslashes.
    ByXargs,
    /// At blanks and line feeds, and patterns are expanded.
    ByShell,
}

/// The names that a line hands on.
#[derive(Default)]
pub(crate) struct HandedNames {
    /// The places that all of them lie in, as they are spelled.
    pub(crate) places: Vec<String>,
    /// The values of the line's variables, with [`NAME`] for each such name; `None` where they are unchanged.
    pub(crate) values: Option<BTreeMap<String, Vec<Word>>>,
    /// Substitutions that print such names.
    texts: HashSet<String>,
    /// Commands that run others with such names, each with the sign that stands for a name.
    runners: BTreeMap<usize, Option<String>>,
}

impl HandedNames {
    /// Finds the names of a line. Nothing is found where the gate does not know its folder and disk.
    pub(crate) fn of(rules: &Rulebook, gate: &Gate, script: &Script, from: &Folders) -> Self {
        let mut fed = Self::default();
        let runs = |command: &SimpleCommand| matches!(command.program(), Some("xargs" | "find"));
        let runners = script.commands.iter().filter(|command| runs(command)).count();
        let words = script.commands.iter().flat_map(|command| command.words.iter());
        let words = words.chain(script.values.values().flatten());
        let texts: HashSet<&str> =
            words.flat_map(|word| word.pieces.iter()).filter_map(substitution).take(MOST + 1).collect();
        // The search for each of them may go through a whole folder.
        if !(1..=MOST).contains(&(runners + texts.len())) {
            return fed;
        }
        let Some(disk) = gate.disk.get().filter(|_| gate.here.is_some() && is_harmless(rules, script)) else {
            return fed;
        };
        let own = |command: &SimpleCommand| match rules.own_command(command)?.tool.as_str() {
            "search" => Some("search"),
            "glob" => Some("glob"),
            _ => None,
        };
        let holds = |source: &NameSource, cut: NameSplit| is_sound(disk, gate, &from.all, source, cut);
        for (index, command) in script.commands.iter().enumerate() {
            // The command that runs is listed with exactly these words, and so is decided by itself.
            let judged = |run: &StartedCommand| {
                let mut behind = script.commands.iter().filter(|other| other.wrapper == Some(index));
                behind.any(|other| name_sources::texts(&other.words).is_some_and(|words| words == run.words))
            };
            let (source, mark) = match command.program() {
                Some("xargs") => {
                    let Some(run) = name_sources::run_by_xargs(command) else { continue };
                    let stage = command.stage.filter(|stage| stage.index > 0 && stage.alone);
                    let source = stage.and_then(|stage| name_sources::of_pipe(script, stage, &own));
                    let sound = |(source, zero): &(NameSource, bool)| {
                        let cut = if source.zero { NameSplit::Never } else { NameSplit::ByXargs };
                        // Separated in another way than they are printed, several names become one.
                        *zero == run.zero
                            && run.usual
                            && judged(&run)
                            && name_sources::takes_names(&run)
                            && holds(source, cut)
                    };
                    (source.filter(sound).map(|(source, _)| source), run.mark.clone())
                }
                Some("find") => {
                    let Some((runs, left)) = name_sources::run_by_find(command) else { continue };
                    let source =
                        name_sources::found_by(&left).filter(|_| is_plain_find(command, &runs, rules));
                    let source = source.filter(|_| runs.iter().all(judged));
                    (source.filter(|source| holds(source, NameSplit::Never)), Some("{}".to_owned()))
                }
                _ => continue,
            };
            if let Some(source) = source {
                fed.places.extend(source.places);
                fed.runners.insert(index, mark);
            }
        }
        for text in texts {
            if let Some(source) =
                name_sources::of_text(text, &own).filter(|source| holds(source, NameSplit::ByShell))
            {
                fed.places.extend(source.places);
                fed.texts.insert(text.to_owned());
            }
        }
        fed.places.sort();
        fed.places.dedup();
        if !fed.texts.is_empty() {
            let named = |words: &Vec<Word>| words.iter().map(|word| fed.named(word)).collect();
            let values = script.values.iter().map(|(name, words)| (name.clone(), named(words)));
            fed.values = Some(values.collect());
        }
        fed
    }

    /// Tells whether words may hold such a name.
    pub(crate) fn has_texts(&self) -> bool {
        !self.texts.is_empty()
    }

    /// A word with [`NAME`] in the place of substitutions that print names.
    pub(crate) fn named(&self, word: &Word) -> Word {
        let is_name = |piece: &Piece| substitution(piece).is_some_and(|text| self.texts.contains(text));
        let mut named = word.clone();
        named
            .pieces
            .iter_mut()
            .filter(|piece| is_name(piece))
            .for_each(|piece| *piece = Piece::Text(NAME.into()));
        named
    }

    /// The sign for a name in the commands after this one; `None` where it hands on no such names.
    pub(crate) fn name_sign(&self, runner: usize) -> Option<Option<&str>> {
        self.runners.get(&runner).map(Option::as_deref)
    }

    /// The places that a spelling with a name in it may mean; `None` where they cannot be found out.
    pub(crate) fn meant_places(&self, spelling: &str) -> Option<Vec<String>> {
        let (before, after) = spelling.split_once(NAME)?;
        let strange = |text: &str| text.contains(UNKNOWN) || text.split('/').any(|part| part == "..");
        if strange(before) || strange(after) || !(after.is_empty() || after.starts_with('/')) {
            return None;
        }
        let climbs = |place: &String| place.split('/').any(|part| part == "..");
        Some(match before.rfind('/') {
            None if before.is_empty() => self.places.clone(),
            // After a folder, such a name leads out of it.
            _ if self.places.iter().any(climbs) => return None,
            None => vec![".".to_owned()],
            Some(slash) => vec![before.get(..=slash)?.to_owned()],
        })
    }
}

fn substitution(piece: &Piece) -> Option<&str> {
    match piece {
        Piece::Substitution(Some(text)) => Some(text),
        _ => None,
    }
}

/// Tells whether `find` runs only readers with what it finds. A command of the agent is decided when it runs.
fn is_plain_find(command: &SimpleCommand, runs: &[StartedCommand], rules: &Rulebook) -> bool {
    let own = |run: &StartedCommand| is_own_run(rules, run);
    command.assignments.is_empty() && runs.iter().all(|run| own(run) || name_sources::takes_names(run))
}

/// Tells whether a started command is a command of the agent.
pub(crate) fn is_own_run(rules: &Rulebook, run: &StartedCommand) -> bool {
    let words = run.words.iter().map(|word| Word::text(word.as_str())).collect();
    rules.is_own_command(&SimpleCommand { words, ..SimpleCommand::default() })
}

/// Tells whether nothing in a line changes the disk, or the meaning of a name, before the names are read.
fn is_harmless(rules: &Rulebook, script: &Script) -> bool {
    let harmless = |command: &SimpleCommand| {
        if command.evaluated || command.broken || !command.assignments.is_empty() {
            return false;
        }
        if let Some(own) = rules.own_command(command) {
            return matches!(own.kind, ToolKind::Read | ToolKind::Search);
        }
        match command.program() {
            // The commands that they run are listed by themselves.
            Some("xargs") => true,
            Some("find") => {
                let left = name_sources::run_by_find(command).map(|(_, words)| words);
                let words = left.unwrap_or_else(|| command.words.clone());
                !SimpleCommand { words, ..SimpleCommand::default() }.effects().change_something()
            }
            Some("cd") => {
                let named = |word: &Word| word.literal().is_some_and(|word| !word.starts_with(['-', '~']));
                command.words.len() == 2 && command.words.iter().all(named)
            }
            Some(name) => !name.contains('/') && !command.effects().change_something(),
            None => false,
        }
    };
    script.floors.is_empty() && script.functions.is_empty() && script.commands.iter().all(harmless)
}

/// Tells whether the names that arrive are those on the disk: none of them is split on its way, or is an option.
fn is_sound(disk: &dyn Disk, gate: &Gate, from: &[String], source: &NameSource, cut: NameSplit) -> bool {
    let bad = |name: &str| {
        let parts = |c: char| match cut {
            NameSplit::Never => false,
            NameSplit::ByXargs => c.is_whitespace() || c.is_control() || "'\"\\".contains(c),
            NameSplit::ByShell => c.is_whitespace() || c.is_control() || "'\"\\*?[".contains(c),
        };
        // Git quotes such a name, which makes it another name, in another folder.
        let quoted = |c: char| !c.is_ascii() || c.is_control() || "\"\\".contains(c);
        name.contains(parts)
            || (source.index && !source.zero && name.contains(quoted))
            || (source.bare && name.starts_with('-'))
    };
    let is_pattern = |text: &str| text.contains(['*', '?', '[']);
    if cut == NameSplit::Never && !source.bare {
        return true;
    }
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let bad_path = |path: &Path| name(path).is_some_and(|name| bad(&name));
    let sound = |place: &String| {
        let spelled = place.replace(['*', '?', '['], "");
        let paths = gate.absolute_paths(place, from);
        let found: Option<Vec<PathBuf>> = match is_pattern(place) {
            true => {
                paths.iter().map(|path| disk.expand(path)).collect::<Option<Vec<_>>>().map(|all| all.concat())
            }
            false => Some(paths.iter().map(PathBuf::from).collect()),
        };
        let Some(found) = found.filter(|_| !paths.is_empty() && !bad(&spelled)) else { return false };
        // The folders above are not part of what is printed, unless they are spelled.
        let named = |path: &PathBuf| is_pattern(place) && bad_path(path);
        !found.iter().any(|path| named(path) || disk.holds_any(path, &mut |path| bad_path(path)))
    };
    let known = || {
        let folders = gate.absolute_paths(".", from);
        let bad = |name: &str| name.split('/').any(bad);
        !folders.is_empty()
            && !folders.iter().any(|folder| disk.tracks_any(Path::new(folder), &mut |name| bad(name)))
    };
    source.places.iter().all(sound) && (!source.index || known())
}
