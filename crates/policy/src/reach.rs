//! The places that a command of a line reads or writes, by every name they have.
//!
//! Rules about paths and the rule about reading outside use nothing else. For common programs it is known which words
//! are paths; of any other program every word may be one. A place that is not known before the line runs stays in the
//! list as unknown, so that a denial never fails open because of it.

use std::collections::BTreeMap;
use std::path::Path;

use lathe_bash::{Piece, RedirectKind, SimpleCommand, Word};

use crate::dot_patterns::may_climb;
use crate::extglob::{self, is_extended};
use crate::extra_reads;
use crate::file_words::{
    depth, entered_folders, git_text_words, is_language, literals, made_by_copy, reads_own_folder,
    sure_files, targets, unpacked_into,
};
use crate::gate::{Gate, normal};
use crate::git::{self, Extent};
use crate::handed_names::{HandedNames, NAME};
use crate::pattern;
use crate::places::{HERE, LATHE, OVERFLOW, Spent, UNKNOWN, Values, leads_through_process};
use crate::reading::{Depth, Region};
use crate::searchers::{is_deep, is_grep};
use crate::touch::{Touch, TouchTarget, fixed_folder, is_own_stream, text};
use crate::whole_folders;

/// Programs whose words are not files.
const WORDS: [&str; 58] = [
    "echo", "printf", "true", "false", ":", "seq", "basename", "dirname", "sleep", "tr", "date", "cal",
    "which", "whereis", "type", "uname", "arch", "id", "groups", "whoami", "logname", "printenv", "locale",
    "expr", "kill", "pkill", "killall", "jobs", "pwd", "nproc", "test", "[", "[[", "export", "declare",
    "typeset", "local", "readonly", "set", "unset", "shift", "return", "exit", "break", "continue", "wait",
    "ulimit", "umask", "alias", "unalias", "hash", "ps", "uptime", "free", "factor", "getconf", "ssh", "let",
];

/// Programs that only change names or modes, and read no content.
const NO_CONTENT: [&str; 11] =
    ["mkdir", "rmdir", "touch", "rm", "unlink", "chmod", "chown", "chgrp", "realpath", "readlink", "mkfifo"];

/// Programs that show names of files and nothing of their content.
const LISTS: [&str; 15] = [
    "ls", "dir", "vdir", "find", "fd", "fdfind", "tree", "du", "df", "stat", "locate", "cd", "pushd", "popd",
    "command",
];

/// Programs that list the folder they run in where no file is named.
const LOOKS_HERE: [&str; 8] = ["ls", "dir", "vdir", "find", "fd", "fdfind", "tree", "du"];

/// Programs that treat a name with a colon as one on another machine.
const REMOTE: [&str; 4] = ["scp", "sftp", "rsync", "rclone"];

/// Programs that enter another folder by an option.
const GOES: [&str; 14] = [
    "tar", "bsdtar", "git", "make", "gmake", "ninja", "env", "cargo", "npm", "pnpm", "yarn", "go", "just",
    "meson",
];

/// With more folders than this, they are not searched one by one: what is read in them is unknown.
pub(crate) const FOLDERS: usize = 64;

/// With more words than this, they are not judged one by one; the rest is unknown.
const MOST: usize = 4096;

/// The words, besides the first, that a substitution outside of quotes may become, as far as a program tells them
/// apart by their position: those before its first file.
const MORE_NAMES: usize = 4;

/// Finds the places that one command touches.
pub(crate) struct TouchFinder<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) line: &'a str,
    pub(crate) values: &'a BTreeMap<String, Vec<Word>>,
    /// The spellings of the line that were inspected so far.
    pub(crate) spent: &'a Spent,
    /// The folders that the command may run in.
    pub(crate) from: &'a [String],
    /// The program of the wrapper in front of it.
    pub(crate) wrapper: Option<&'a str>,
    /// The names that the line hands on.
    pub(crate) fed: &'a HandedNames,
    /// The sign for such a name, in the words after a wrapper that hands them on.
    pub(crate) mark: Option<Option<&'a str>>,
}

impl TouchFinder<'_> {
    /// The files that bash opens for the command.
    pub(crate) fn redirects(&self, command: &SimpleCommand) -> Vec<Touch> {
        let mut touches = Vec::new();
        for redirect in &command.redirects {
            match redirect.kind {
                RedirectKind::Read | RedirectKind::Write => {
                    let process = matches!(redirect.word.pieces.first(), Some(Piece::Process(_)));
                    for text in self.spell(&redirect.word).into_iter().filter(|_| !process) {
                        self.add(&mut touches, &text, Depth::One, redirect.kind == RedirectKind::Read);
                    }
                }
                RedirectKind::Duplicate | RedirectKind::Text => {}
            }
        }
        touches
    }

    fn variable(&self, name: &str, value: &Word, given: bool, touches: &mut Vec<Touch>) {
        let known = extra_reads::names_file(name);
        for text in self.spell(value).iter().filter(|_| known || given) {
            let before = touches.len();
            // Every part of a list may be one, and so may the value of an option.
            text.split_whitespace().for_each(|part| self.add_possible(touches, part));
            if known && text.contains(UNKNOWN) {
                touches.push(Touch::unknown(name, true));
            }
            // Most variables only name places, and nothing is read because of that.
            let found = touches.split_off(before);
            let inside = |touch: &Touch| {
                known || touch.regions(self.gate).iter().all(|(region, _)| *region <= Region::Public)
            };
            touches.extend(found.into_iter().filter(inside));
        }
    }

    /// Adds files that variables name: those in front of a command may be any, and some are read whatever runs next.
    fn variables(&self, command: &SimpleCommand, touches: &mut Vec<Touch>) {
        let runs = command.program_name().is_some_and(|name| !WORDS.contains(&name));
        for assignment in &command.assignments {
            if let Some(value) = &assignment.value {
                self.variable(&assignment.name, value, runs, touches);
            }
        }
        let sets = matches!(
            command.program_name(),
            Some("export" | "declare" | "typeset" | "readonly" | "local" | "env" | "printf" | "read")
        );
        for word in command.words.iter().skip(1).filter(|_| sets) {
            let shown = word.show();
            let name = shown.split(['=', '+']).next().unwrap_or_default();
            // `export BASH_ENV` and `read BASH_ENV` take a value that comes from elsewhere.
            if extra_reads::names_file(name) {
                let known = shown.contains('=') && !shown.contains(['$', '`']);
                self.variable(name, word, true, touches);
                touches.extend((!known).then(|| Touch::unknown(name, true)));
            }
        }
    }

    pub(crate) fn touches(&self, command: &SimpleCommand) -> Vec<Touch> {
        let mut touches = self.redirects(command);
        self.variables(command, &mut touches);
        let mut texts: Vec<String> = command.words.iter().flat_map(|word| self.spell(word)).collect();
        // A file of the folder may have the name of an option: `grep x *`.
        let dashes: Vec<String> = texts.iter().skip(1).flat_map(|text| self.dashes(text)).collect();
        texts.extend(dashes);
        if texts.len() > MOST {
            texts.truncate(MOST);
            touches.push(Touch::unknown("…", true));
        }
        let Some((program, words)) = texts.split_first() else { return touches };
        // Without that option, such a pattern is a syntax error, so its words arrive in pieces.
        if command.broken && is_extended(self.line) {
            touches.push(Touch::unknown("what a pattern stands for", true));
            for pattern in extglob::patterns(self.line) {
                self.add(&mut touches, &pattern, Depth::All, true);
            }
        }
        let name = program.rsplit('/').next().unwrap_or(program);
        // `git-show` is `git show`.
        let rest: Vec<&str> = words.iter().map(String::as_str).collect();
        let (name, words): (&str, Vec<&str>) = match git::git_words(name, &rest) {
            Some(words) => ("git", words),
            None => (name, rest),
        };
        if WORDS.contains(&name) {
            touches.extend(command.words.iter().skip(1).flat_map(|word| self.listed_folders(name, word)));
            self.named_by_options(name, &words, &mut touches);
            if name == "ps" && extra_reads::shows_environment(&words) {
                self.add(&mut touches, "/proc/self/environ", Depth::One, true);
            }
            touches.extend(words.iter().filter_map(|word| self.tested_home(name, word)));
            return touches;
        }
        // `host:path` is on another machine.
        let remote = |word: &&str| {
            REMOTE.contains(&name)
                && word.find(':').is_some_and(|colon| word.find('/').is_none_or(|slash| colon < slash))
        };
        let words: Vec<&str> = words.into_iter().filter(|word| !remote(word)).collect();
        let before = touches.len();
        // The standard input of an interpreter is a program too.
        let input = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
        for text in input.filter(|_| is_language(name)).flat_map(|redirect| self.spell(&redirect.word)) {
            self.literals(name, &text, &mut touches);
            text.lines().for_each(|line| self.add_possible(&mut touches, line));
        }
        let (words, folders) = self.folders(name, words);
        let there = TouchFinder { from: &folders, ..*self };
        // In the place of a text, or of an option's value, the files after the first are words of their own: `grep -v
        // a/*`.
        let globbed = command.words.iter().skip(1).filter(|word| is_pattern(word) && name != "find");
        for text in globbed.flat_map(|word| self.spell(word)) {
            there.add(&mut touches, &text, depth(name, &words), !NO_CONTENT.contains(&name));
        }
        there.words(name, &words, &mut touches);
        there.named_by_options(name, &words, &mut touches);
        let gone: Vec<String> = folders.iter().skip(self.from.len().max(1)).cloned().collect();
        let into = if gone.is_empty() { folders.as_slice() } else { gone.as_slice() };
        for folder in unpacked_into(name, &words) {
            TouchFinder { from: into, ..*self }.add(&mut touches, folder, Depth::All, false);
        }
        // The folder it enters is judged as a folder, not with all that is in it.
        folders
            .iter()
            .skip(self.from.len().max(1))
            .for_each(|folder| self.add(&mut touches, folder, Depth::One, true));
        if name != "git" && !LISTS.contains(&name) {
            self.add_git_objects(&mut touches);
        }
        if LISTS.contains(&name) {
            touches.iter_mut().skip(before).for_each(|touch| touch.names_only = true);
        }
        if name == "find" {
            self.add_find_tests(&words, &mut touches);
            self.add_find_deletions(&words, &mut touches);
        }
        touches
    }

    /// The names with a leading dash that a pattern matches now.
    fn dashes(&self, text: &str) -> Vec<String> {
        let is_open = text.starts_with(['*', '?', '[', '@', '+', '!']) && text.contains(['*', '?', '[']);
        let Some(disk) = self.gate.disk.get().filter(|_| is_open && !text.contains('/')) else {
            return Vec::new();
        };
        let found =
            self.gate.absolute_paths(text, self.from).into_iter().filter_map(|path| disk.expand(&path));
        let names = found.flatten().filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        names.filter(|name| name.starts_with('-')).collect()
    }

    /// The words without the options that send a program to another folder, and the folders that it may be in.
    fn folders<'w>(&self, name: &str, words: Vec<&'w str>) -> (Vec<&'w str>, Vec<String>) {
        let mut folders = self.from.to_vec();
        if folders.is_empty() {
            folders.push(self.gate.root.display().to_string());
        }
        if !GOES.contains(&name) {
            let gone = entered_folders(name, &words);
            folders.extend(gone.iter().flat_map(|there| self.gate.absolute_paths(there, self.from)));
            return (words, folders);
        }
        // After a subcommand of git, `-C` is an option of its own: `git log -C -p`.
        let own =
            if name == "git" { git::split_subcommand(&words).map_or(0, |(_, own)| own.len()) } else { 0 };
        let (mut left, mut rest) = (Vec::new(), words.into_iter());
        while let Some(word) = rest.next() {
            if own > 0 && rest.len() <= own {
                left.push(word);
                left.extend(rest);
                break;
            }
            let long = ["--directory=", "--chdir=", "--cwd=", "--prefix="];
            let there = match word {
                "-C" | "--directory" | "--chdir" | "--cwd" | "--prefix" => rest.next(),
                _ => {
                    long.iter().find_map(|begin| word.strip_prefix(begin)).or_else(|| word.strip_prefix("-C"))
                }
            };
            match there {
                Some(there) => folders.extend(self.gate.absolute_paths(there, self.from)),
                None => left.push(word),
            }
        }
        (left, folders)
    }

    fn words(&self, name: &str, words: &[&str], touches: &mut Vec<Touch>) {
        let depth = depth(name, words);
        let sure = sure_files(name, words);
        let read = !NO_CONTENT.contains(&name);
        let targets = targets(name, words);
        for word in &sure {
            // The target of a copy is not read.
            if targets.contains(word) {
                // A copy of a whole folder may overwrite all that is in the target.
                let deep = depth == Depth::All && name != "mv";
                self.add(touches, word, if deep { Depth::All } else { Depth::One }, false);
            } else if *word != "-" {
                self.add(touches, word, depth, read);
                if word.contains(|c: char| c.is_whitespace() || "@:=,;<\"'{".contains(c)) {
                    self.add_possible(touches, word);
                }
            }
        }
        for made in made_by_copy(name, words, &targets) {
            self.add(touches, &made, Depth::One, false);
        }
        // The line does not say where the shell was before, or what its list of folders holds.
        if name == "popd" || (matches!(name, "cd" | "pushd") && words.iter().any(|word| is_back(word))) {
            touches.push(Touch::unknown("a folder that the shell was in before", read));
        }
        let recurses = (is_grep(name) || is_deep(name)) && depth == Depth::All;
        // Of a program whose pattern has no known position, every operand may be the pattern.
        let is_bare = sure.is_empty() || (recurses && pattern::word_roles(name, words).is_none());
        if name == "git" {
            self.add_git_touches(words, touches);
        } else if (is_bare && (LOOKS_HERE.contains(&name) || recurses)) || reads_own_folder(name, words) {
            self.add(touches, ".", depth, true);
        }
        if depth == Depth::All && extra_reads::follows_links(name, words) {
            let read = sure.iter().copied().filter(|word| !targets.contains(word));
            read.chain(sure.is_empty().then_some("."))
                .for_each(|folder| self.add_linked_places(touches, folder));
        }
        // A file that another program names on the standard input.
        match (self.wrapper, self.mark) {
            // The names stand in the words.
            (_, Some(Some(_))) => {}
            (Some("xargs"), Some(None)) => self.add(touches, NAME, depth, read),
            (Some("xargs" | "parallel"), _) => {
                touches.push(Touch::unknown("what it reads from the pipe", read))
            }
            _ => {}
        }
        // Tests of `find` are not files.
        let texts = pattern::word_roles(name, words).map_or_else(Vec::new, |read| read.texts);
        let spoken = if name == "git" { git_text_words(words) } else { Vec::new() };
        let is_other = |(index, word): &(usize, &&str)| {
            !texts.contains(index) && !spoken.contains(index) && !sure.contains(*word) && name != "find"
        };
        for (_, word) in words.iter().enumerate().filter(is_other) {
            self.add_other_word(word, touches);
        }
        whole_folders::taken_folders(name, words)
            .iter()
            .for_each(|folder| self.add_whole_folder(touches, folder));
        // Of programs that take a text of their own, only that word is one.
        let is_text = |index: usize| name.ends_with("awk") || texts.is_empty() || texts.contains(&index);
        for (index, word) in words.iter().enumerate().filter(|_| is_language(name)) {
            if is_text(index) {
                self.literals(name, word, touches);
            }
        }
    }

    /// Adds a folder that may be taken with all that is in it.
    fn add_whole_folder(&self, touches: &mut Vec<Touch>, folder: &str) {
        // Without a disk, any word may be a folder with any file in it.
        if self.gate.disk.get().is_none() {
            return;
        }
        let mut found = Vec::new();
        self.add(&mut found, folder, Depth::All, true);
        found.retain(|touch| touch.target != TouchTarget::Unknown);
        touches.extend(found.into_iter().map(|touch| Touch { sure: false, for_rules: true, ..touch }));
    }

    /// Adds files that stand as literals in a program's text.
    fn literals(&self, name: &str, text: &str, touches: &mut Vec<Touch>) {
        literals(name, text).for_each(|part| self.add_possible(touches, part));
        if whole_folders::has_calls(name) {
            let joined = lathe_bash::joined_literals(text);
            literals(name, &joined)
                .filter(|_| joined != text)
                .for_each(|part| self.add_possible(touches, part));
            whole_folders::folders_in_calls(&joined)
                .iter()
                .for_each(|folder| self.add_whole_folder(touches, folder));
        }
        match name {
            "sed" | "gsed" => {
                pattern::files_read_by_sed(text).for_each(|part| self.add_possible(touches, part))
            }
            // Modules are searched for by name in many folders.
            "jq" | "gojq" | "jaq" if ["import", "include"].iter().any(|word| text.contains(word)) => {
                touches.push(Touch::unknown("what its program imports", true));
            }
            "yq" if text.contains("load") => touches.push(Touch::unknown("what its program loads", true)),
            _ => {}
        }
    }

    /// Adds the strictest places that the links beneath a folder lead to.
    fn add_linked_places(&self, touches: &mut Vec<Touch>, folder: &str) {
        let Some(disk) = self.gate.disk.get().filter(|_| !folder.contains(UNKNOWN)) else { return };
        for folder in self.gate.absolute_paths(folder, self.from) {
            let found = match folder.contains(['*', '?', '[']) {
                true => disk.expand(&folder).unwrap_or_default(),
                false => vec![Path::new(&folder).to_owned()],
            };
            for folder in found.iter().map(|folder| disk.real(folder)) {
                // No target of a link is stricter than such a folder itself.
                if self.gate.region(&folder, Depth::All) > Region::Elsewhere {
                    continue;
                }
                let mut strictest = BTreeMap::new();
                let large = disk.holds_any(&folder, &mut |path| {
                    if !path.starts_with(&folder) {
                        let region = self.gate.region(path, Depth::One);
                        strictest.entry(region).or_insert_with(|| text(path));
                    }
                    false
                });
                strictest.values().for_each(|path| self.add(touches, path, Depth::One, true));
                if large {
                    touches.push(Touch::unknown("what the links in a large folder lead to", true));
                }
            }
        }
    }

    /// Adds a word that is not a file by its position: options with a value, `key=value`, `rev:path`, `@file`.
    fn add_other_word(&self, word: &str, touches: &mut Vec<Touch>) {
        if let Some(rest) = word.strip_prefix('-') {
            if let Some((_, value)) = word.split_once('=') {
                let file = value.starts_with(['/', '~']);
                if file {
                    self.add(touches, value, Depth::One, true)
                }
                self.add_possible(touches, value);
            } else if !rest.starts_with('-') && rest.len() > 1 {
                let value = rest.char_indices().nth(1).and_then(|(at, _)| rest.get(at..)).unwrap_or_default();
                self.add_possible(touches, value);
                // Several letters in a row, the last of which has the value.
                if let Some(at) = rest.find(['/', '~', '.']) {
                    self.add_possible(touches, rest.get(at..).unwrap_or_default());
                }
            }
            return;
        }
        self.add_possible(touches, word);
    }

    /// Adds a word, or a part of one, that may be a file.
    pub(crate) fn add_possible(&self, touches: &mut Vec<Touch>, word: &str) {
        // `x=@a;type=b`, `OPEN:a,rdonly`, `{"path":"a"}`, `x a y`
        let cut = |c: char| c.is_whitespace() || "=@<>;,:|\"'{}()".contains(c);
        let mut parts: Vec<&str> = word.split([':', '=']).chain(word.split(cut)).chain([word]).collect();
        parts.sort_unstable();
        parts.dedup();
        for part in parts.iter().map(|part| part.trim_start_matches('@')).filter(|part| !part.is_empty()) {
            let from = touches.len();
            self.add(touches, part, Depth::One, true);
            touches.iter_mut().skip(from).for_each(|touch| touch.sure = false);
            touches.retain(|touch| touch.sure || touch.target != TouchTarget::Unknown);
        }
    }

    pub(crate) fn add(&self, touches: &mut Vec<Touch>, spelling: &str, depth: Depth, reads: bool) {
        if spelling.is_empty() {
            return;
        }
        if let Some(places) = self.fed.meant_places(spelling) {
            // `find -execdir x {}`: the names lie beneath the start of the search, whichever folder that is in.
            let beneath = format!("/{UNKNOWN}");
            let is_found = |from: &&String| self.wrapper == Some("find") && from.ends_with(&beneath);
            let from: Vec<String> = self.from.iter().filter(|from| !is_found(from)).cloned().collect();
            let there = TouchFinder { from: &from, ..*self };
            for place in &places {
                there.add(touches, place, Depth::All, reads);
                there.add_linked_places(touches, place);
            }
            return;
        }
        let shown = spelling.replace(HERE, "$PWD").replace(LATHE, "$LATHE_HOME");
        let shown = shown.replace(NAME, "…").replace(UNKNOWN, "…").replace(OVERFLOW, "");
        let what = self.target_of(spelling, depth);
        // After a pattern that may be a link, `..` leads anywhere.
        let mut behind = spelling.split('/').skip_while(|part| !part.contains(['*', '?', '['])).skip(1);
        if behind.any(|part| part == ".." || may_climb(part)) {
            touches.push(Touch::unknown(&shown, reads));
        }
        // A folder that is only written reveals nothing of the keys in it.
        let extent = if reads || depth == Depth::One { Extent::Every } else { Extent::Worktree };
        touches.push(Touch {
            shown,
            target: what,
            sure: true,
            reads,
            names_only: false,
            for_rules: false,
            extent,
            except: Vec::new(),
        });
    }

    fn target_of(&self, spelling: &str, depth: Depth) -> TouchTarget {
        // `find -exec x {}`
        if spelling.contains(UNKNOWN)
            || is_extended(spelling)
            || (self.wrapper.is_some() && spelling.contains("{}"))
        {
            return TouchTarget::Unknown;
        }
        let names = self.gate.absolute_paths(spelling, self.from);
        // `cd "$(x)"; cat k`: the folder is known only when the line runs.
        if names.is_empty() || names.iter().any(|name| name.contains(UNKNOWN)) {
            return TouchTarget::Unknown;
        }
        let is_pattern = |text: &str| text.contains(['*', '?', '[']);
        // `cd va*; cat k`: the folder is a pattern, apart from the workspace's own name.
        let led = |folder: &String| {
            let root = self.gate.root.display().to_string();
            is_pattern(folder.strip_prefix(root.as_str()).unwrap_or(folder))
        };
        let relative = !spelling.starts_with(['/', '~']) && !spelling.starts_with(HERE);
        if is_pattern(spelling) || (relative && self.from.iter().any(led)) {
            // A pattern in quotes is a name.
            let mut all: Vec<String> = names.iter().map(|name| text(&normal(Path::new(name)))).collect();
            if let Some(disk) = self.gate.disk.get() {
                // `link/../x*`: in the part before the pattern, links are resolved.
                let real = |name: &String| {
                    let folder = fixed_folder(name);
                    let rest = name.strip_prefix(&folder).unwrap_or(name).trim_start_matches('/');
                    text(&normal(&disk.real(Path::new(&folder)).join(rest)))
                };
                all.extend(names.iter().map(real));
            }
            all.extend(self.by_process(spelling));
            all.sort();
            all.dedup();
            return TouchTarget::Pattern { names: all, depth };
        }
        let disk = self.gate.disk.get();
        let mut all: Vec<String> = names.iter().map(|name| text(&normal(Path::new(name)))).collect();
        all.extend(self.by_process(spelling));
        if let Some(disk) = disk {
            let led = names.iter().filter(|name| !is_own_stream(name));
            let ways = |name: &String| [disk.real(Path::new(name)), disk.real(&normal(Path::new(name)))];
            all.extend(led.flat_map(ways).map(|path| text(&path)));
        }
        all.sort();
        all.dedup();
        TouchTarget::Path { names: all, depth }
    }

    /// The names that lead through a link of another process: its target is not known.
    fn by_process(&self, spelling: &str) -> Vec<String> {
        let joined = self.from.iter().map(|from| format!("{from}/{spelling}"));
        let all = joined.chain([spelling.to_owned()]).filter(|path| leads_through_process(path));
        all.map(|path| text(&normal(Path::new(&path)))).collect()
    }

    /// Every spelling of a word. A variable that the line sets before it is used has the values it is given there.
    pub(crate) fn spell(&self, word: &Word) -> Vec<String> {
        let values =
            Values { assigned: self.values, may_be_empty: false, line: Some(self.line), spent: self.spent };
        if word.literal().is_some() && self.mark.is_some_and(|mark| mark == word.literal()) {
            return vec![NAME.to_owned()];
        }
        let named = self.fed.has_texts().then(|| self.fed.named(word)).filter(|named| named != word);
        // Without quotes, it becomes as many words as there are names: the first may be an option or a pattern, and
        // only the first has in front of it the text that stands there.
        let more = if named.is_some() && word.splits { MORE_NAMES } else { 0 };
        let mut spelled = self.spelled(&values, named.as_ref().unwrap_or(word));
        spelled.extend(std::iter::repeat_n(NAME.to_owned(), more));
        spelled
    }

    fn spelled(&self, values: &Values<'_>, word: &Word) -> Vec<String> {
        match word.pieces.first() {
            Some(Piece::Process(_)) => Vec::new(),
            Some(Piece::Tilde(user)) if !matches!(user.as_str(), "" | "+" | "-") => {
                let home = format!("/home/{user}");
                values.spellings(word).iter().map(|text| text.replacen('~', &home, 1)).collect()
            }
            _ => values.spellings(word),
        }
    }
}

/// Tells whether bash searches for files that match a word.
pub(crate) fn is_pattern(word: &Word) -> bool {
    word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)))
}

/// `cd -`, `pushd +1`
pub(crate) fn is_back(word: &str) -> bool {
    word == "-" || word.strip_prefix(['+', '-']).is_some_and(|rest| rest.parse::<usize>().is_ok())
}
