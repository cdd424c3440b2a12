//! Files that a line makes and then uses: a script that it writes and runs, a copy of a program, a link to a folder.
//!
//! For denials only, and by names as they are written: `c.sh`, `./c.sh` and `"$f"` are the same file where they are
//! spelled the same. The order is ignored, because no line runs a file first and writes it later.

use std::collections::{HashMap, HashSet};

use crate::pipes::Stages;
use crate::read::{CommandContext, ReadJob, ScriptReader};
use crate::script::{Piece, RedirectKind, SimpleCommand, Word, base_name};
use crate::{env, foreign, predicted_output, shells, wrap};

/// The most pairs of a made file and a command that may use it that are tried; a line with more is refused.
const MOST: usize = 1 << 20;

/// Programs whose copy under another name is followed.
const COPIED: [&str; 24] = [
    "rm", "find", "dd", "mv", "chmod", "chown", "shred", "bash", "sh", "dash", "zsh", "busybox", "env",
    "sudo", "xargs", "rsync", "git", "lathe", "tee", "cp", "ln", "install", "truncate", "python3",
];

/// Programs for which the target of a link matters.
const FOLLOWED: [&str; 12] =
    ["rm", "srm", "trash", "find", "mv", "chmod", "chown", "shred", "rsync", "truncate", "cd", "pushd"];

/// Programs that run the content of a file of this name.
const RUNNERS: [(&str, &[&str]); 7] = [
    ("make", &["Makefile", "makefile", "GNUmakefile"]),
    ("gmake", &["Makefile", "makefile", "GNUmakefile"]),
    ("just", &["justfile", "Justfile", ".justfile"]),
    ("npm", &["package.json"]),
    ("pnpm", &["package.json"]),
    ("yarn", &["package.json"]),
    ("bun", &["package.json"]),
];

enum MadeFile {
    Script { text: String },
    Program { name: String },
    Link { to: Word, mounted: bool },
}

impl ScriptReader {
    /// Reads files that are made here and used here. Returns true if there were any.
    pub(crate) fn use_made_files(&mut self) -> bool {
        let made = self.collect_made();
        let mut used = self.process_inputs();
        let commands = if made.is_empty() { &[] } else { self.script.commands.as_slice() };
        if made.len() * commands.len() > MOST {
            self.script.endless = true;
            return false;
        }
        let fed = self.fed_pipes(commands);
        let mut room = wrap::ROOM;
        for (index, command) in commands.iter().enumerate() {
            for (path, thing) in &made {
                let found = match thing {
                    MadeFile::Script { text } if runs(command, path, &fed) => {
                        let Some(left) = room.checked_sub(text.len()) else {
                            self.script.endless = true;
                            return false;
                        };
                        room = left;
                        commands_in_file(command, text)
                    }
                    MadeFile::Program { name } => by_copied_name(command, path, name).into_iter().collect(),
                    MadeFile::Link { to, mounted } => {
                        through_link(command, path, to, *mounted).into_iter().collect()
                    }
                    MadeFile::Script { .. } => Vec::new(),
                };
                used.extend(found.into_iter().map(|inner| (index, command.broken, inner)));
            }
        }
        let any = !used.is_empty();
        for (index, broken, inner) in used {
            let around = CommandContext { wrapper: Some(index), broken, ..CommandContext::default() };
            match inner {
                wrap::InnerCommand::Text(text) => self.queue.push(ReadJob { text, around, lines: true }),
                wrap::InnerCommand::Words(words) => {
                    if !self.afford(&words) {
                        return false;
                    }
                    self.add(SimpleCommand { words, ..SimpleCommand::default() }, &around);
                }
                wrap::InnerCommand::Endless => self.script.endless = true,
            }
        }
        any
    }

    /// The pipes at an end of which a shell reads its commands.
    fn fed_pipes(&self, commands: &[SimpleCommand]) -> HashSet<usize> {
        let piped = commands.iter().filter(|command| wrap::reads_commands(command));
        piped.filter_map(|command| command.stage).map(|stage| stage.pipe).collect()
    }

    /// The files that the line makes, by name.
    fn collect_made(&self) -> Vec<(String, MadeFile)> {
        let mut made = Vec::new();
        let (mut stages, mut printed) = (None, None);
        for command in &self.script.commands {
            let Some(name) = command.program_name() else {
                if let Some(path) = written_files("", command).into_iter().next() {
                    let text: &String = printed.get_or_insert_with(|| self.printed_in_groups());
                    made.push((path, MadeFile::Script { text: text.clone() }));
                }
                continue;
            };
            let targets = written_files(name, command);
            if !targets.is_empty() {
                let stages: &Stages = stages.get_or_insert_with(|| self.stages());
                let text = self.text_of(command, stages);
                for path in text.iter().flat_map(|_| &targets) {
                    let text = text.clone().unwrap_or_default();
                    made.push((path.clone(), MadeFile::Script { text }));
                }
            }
            made.extend(made_copies(name, command));
        }
        made
    }

    /// The text that a command writes, as far as it is known.
    fn text_of(&self, command: &SimpleCommand, stages: &Stages) -> Option<String> {
        let given = command.redirects.iter().find(|redirect| redirect.kind == RedirectKind::Text);
        let given = given.map(|redirect| wrap::shell_text(std::slice::from_ref(&redirect.word)));
        let lists = matches!(command.program_name(), Some("find" | "ls" | "fd" | "fdfind"));
        let printed = predicted_output::printed(command).filter(|_| !lists);
        printed.or(given).or_else(|| self.text_from_pipe(command, stages))
    }

    /// The text that is written into `>(bash)`, as in `echo x > >(bash)` or `echo x | tee >(bash)`, comes in as
    /// through a pipe.
    fn process_inputs(&self) -> Vec<(usize, bool, wrap::InnerCommand)> {
        let (mut found, mut stages, mut room) = (Vec::new(), None, wrap::ROOM);
        for (index, command) in self.script.commands.iter().enumerate() {
            let redirects = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write);
            let redirects = redirects.map(|redirect| &redirect.word);
            let operands = command.words.iter().skip(1).filter(|_| command.program_name() == Some("tee"));
            for word in redirects.chain(operands) {
                let inner = match &*word.pieces {
                    // A nested text would be read again for each level.
                    [Piece::Process(Some(inner))] if !inner.contains('(') => inner,
                    _ => continue,
                };
                let stages: &Stages = stages.get_or_insert_with(|| self.stages());
                let Some(text) = self.text_of(command, stages) else { continue };
                let Some(left) = room.checked_sub(text.len() + inner.len()) else {
                    found.push((index, command.broken, wrap::InnerCommand::Endless));
                    return found;
                };
                room = left;
                let script = crate::read(inner);
                let Some(receiver) = script.commands.first() else { continue };
                let given = if wrap::reads_commands(receiver) {
                    Some(wrap::InnerCommand::Text(text))
                } else {
                    wrap::with_input(receiver, &wrap::sent_words(&text, false))
                };
                found.extend(given.map(|given| (index, command.broken, given)));
            }
        }
        found
    }

    /// The text of `{ echo a; echo b; } > x`: the group is not distinguished from the commands in it, so all that is
    /// printed may be in the file.
    fn printed_in_groups(&self) -> String {
        let prints = |command: &&SimpleCommand| {
            matches!(command.program_name(), Some("echo" | "printf" | "cat"))
                && !command.redirects.iter().any(|redirect| redirect.kind == RedirectKind::Write)
        };
        let texts = self.script.commands.iter().filter(prints).filter_map(predicted_output::printed);
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// Tells whether a command runs this file; `fed` are the pipes from which a shell reads its commands.
fn runs(command: &SimpleCommand, path: &str, fed: &HashSet<usize>) -> bool {
    let (Some(program), Some(name)) = (command.program(), command.program_name()) else {
        let first = command.words.first().map(Word::show);
        return first.is_some_and(|first| plain(&first) == path);
    };
    let is_path = |word: Option<&Word>| word.is_some_and(|word| plain(&word.show()) == path);
    let runner = RUNNERS.iter().find(|(runner, _)| *runner == name);
    match name {
        _ if program.contains('/') && plain(program) == path => true,
        "source" | "." => is_path(command.words.get(1)),
        "eval" => command.words.iter().any(|word| reads(word, path)),
        // `cat x | bash`
        "cat" if is_path(command.words.get(1)) => {
            command.stage.is_some_and(|stage| fed.contains(&stage.pipe))
        }
        _ if wrap::SHELLS.contains(&name) => {
            let mut input = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Read);
            is_path(command.words.get(shells::shell_words(&command.words).operands))
                || input.any(|redirect| is_path(Some(&redirect.word)))
                || command.words.iter().any(|word| reads(word, path))
        }
        _ => runner.is_some_and(|(_, files)| {
            let named = command.words.iter().any(|word| {
                let shown = word.show();
                plain(shown.trim_start_matches("--file=").trim_start_matches("-f")) == path
            });
            files.contains(&base_name(path)) || named
        }),
    }
}

/// Tells whether a word is the content of this file: `$(cat x)` and `$(< x)`.
fn reads(word: &Word, path: &str) -> bool {
    word.pieces.iter().any(|piece| match piece {
        Piece::Substitution(Some(text)) => {
            let file = text.trim().strip_prefix("cat ").or_else(|| text.trim().strip_prefix('<'));
            file.is_some_and(|file| plain(file.trim().trim_matches('"')) == path)
        }
        _ => false,
    })
}

/// A name without meaningless parts: `./x` is `x`.
fn plain(path: &str) -> &str {
    let mut path = path;
    while let Some(rest) = path.strip_prefix("./") {
        path = rest.trim_start_matches('/');
    }
    path
}

/// The files that a command writes its text into.
fn written_files(name: &str, command: &SimpleCommand) -> Vec<String> {
    let operands = || command.words.iter().skip(1).map(Word::show).filter(|word| !word.starts_with('-'));
    let redirects = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write);
    let redirects = redirects.map(|redirect| redirect.word.show());
    let more: Vec<String> = match name {
        "tee" | "sponge" => operands().collect(),
        "dd" => operands().filter_map(|word| word.strip_prefix("of=").map(str::to_owned)).collect(),
        "install" | "cp" if operands().any(|word| shells::is_input(&word)) => {
            operands().next_back().into_iter().collect()
        }
        _ => Vec::new(),
    };
    let all = redirects.chain(more).filter(|path| !path.starts_with("/dev/") && !path.contains('…'));
    all.map(|path| plain(&path).to_owned()).filter(|path| !path.is_empty()).collect()
}

/// Tells whether a text may be for a shell: it names no other interpreter.
fn is_shell(text: &str) -> bool {
    text.lines().next().is_none_or(|first| !first.starts_with("#!") || first.contains("sh"))
}

/// The text of a file as the commands that this program runs from it.
fn commands_in_file(command: &SimpleCommand, text: &str) -> Vec<wrap::InnerCommand> {
    let name = command.program_name().unwrap_or("");
    if !RUNNERS.iter().any(|(runner, _)| *runner == name) {
        // The kernel starts the program that the first line names; to a shell that line is a comment.
        let evaluates = wrap::SHELLS.contains(&name) || matches!(name, "source" | "." | "eval" | "cat");
        let path = command.words.first().filter(|_| !evaluates);
        let started = path.and_then(|path| env::interpreter(text, path)).map(wrap::InnerCommand::Words);
        let lines =
            Some(text).filter(|text| is_shell(text)).map(|text| wrap::InnerCommand::Text(text.to_owned()));
        return lines.into_iter().chain(started).collect();
    }
    // The recipes of a makefile, and a deletion anywhere in it.
    let recipes = text.lines().filter_map(recipe).chain(ran_by_make(text)).map(str::to_owned);
    let values = make_variables(text);
    let recipes =
        recipes.map(|line| if name.ends_with("make") { with_variables(&line, &values) } else { line });
    let recipes = recipes.filter(|line| !line.is_empty() && name != "npm");
    wrap::capped(recipes.map(wrap::InnerCommand::Text).chain(foreign::shell_lines(text)))
}

/// The command in a line of a makefile: after a tab, or after `x: ;`.
pub(crate) fn recipe(line: &str) -> Option<&str> {
    let behind = || line.split_once(':').and_then(|(_, rest)| rest.split_once(';')).map(|(_, rest)| rest);
    let recipe = line.strip_prefix(['\t', ' ']).or_else(behind)?;
    Some(recipe.trim_start_matches(['@', '-', '+', ' ', '\t']))
}

/// The commands that make runs while it reads: `$(shell x)`, `a != x`.
fn ran_by_make(text: &str) -> impl Iterator<Item = &str> {
    let shell = text.split("(shell ").skip(1).map(|rest| rest.split(')').next().unwrap_or(rest));
    shell.chain(text.lines().filter_map(|line| line.split_once("!=")).map(|(_, rest)| rest.trim_start()))
}

/// The files that a program runs without a word that names them.
pub(crate) fn implicit_files(name: &str) -> &'static [&'static str] {
    RUNNERS.iter().find(|(runner, _)| *runner == name).map_or(&[], |(_, files)| files)
}

/// A line of a makefile with the values of its variables. A variable that is set elsewhere gets some value.
fn with_variables(line: &str, values: &HashMap<&str, &str>) -> String {
    let (mut out, mut rest) = (String::new(), line);
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let close = if after.starts_with('(') { ')' } else { '}' };
        let name = after.strip_prefix(['(', '{']).and_then(|inner| inner.split_once(close));
        rest = match name {
            Some((name, behind)) => {
                let value = if name == "HOME" { Some("~") } else { values.get(name).copied() };
                out.push_str(value.unwrap_or("value"));
                behind
            }
            // `$$x` is the shell's own.
            None => {
                out.push('$');
                after.strip_prefix('$').unwrap_or(after)
            }
        };
    }
    out.push_str(rest);
    out
}

/// The first value that a makefile assigns to each of its variables.
fn make_variables(text: &str) -> HashMap<&str, &str> {
    let mut values = HashMap::new();
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        values.entry(name.trim_end_matches([':', '?', '+']).trim_end()).or_insert(value.trim());
    }
    values
}

/// `cp /bin/rm x`, `ln -s ~ x`, `mount --bind / x`.
fn made_copies(name: &str, command: &SimpleCommand) -> Vec<(String, MadeFile)> {
    if !matches!(name, "cp" | "ln" | "install" | "mv" | "mount") {
        return Vec::new();
    }
    let option = |word: &&Word| word.literal().is_some_and(|word| word.starts_with('-'));
    let operands: Vec<&Word> = command.words.iter().skip(1).filter(|word| !option(word)).collect();
    let (from, to) = match operands.as_slice() {
        [from, to] => (*from, to.show()),
        // `mount -o bind / x`, `install -m 755 /bin/rm x`
        [_, from, to] => (*from, to.show()),
        _ => return Vec::new(),
    };
    let path = plain(to.trim_end_matches('/')).to_owned();
    if path.is_empty() || path.contains('…') {
        return Vec::new();
    }
    let bound = || command.words.iter().filter_map(Word::literal).any(|word| word.contains("bind"));
    if name == "mount" {
        return bound()
            .then(|| (path, MadeFile::Link { to: from.clone(), mounted: true }))
            .into_iter()
            .collect();
    }
    let source = wrap::shell_text(std::slice::from_ref(from));
    let program = base_name(source.trim());
    let is_glob = from.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)));
    let meant = |known: &&&str| program == **known || (is_glob && may_fit(program, known));
    let programs = COPIED.iter().filter(meant);
    let mut made: Vec<(String, MadeFile)> =
        programs.map(|name| (path.clone(), MadeFile::Program { name: (*name).to_owned() })).collect();
    if made.is_empty() && name == "ln" {
        made.push((path, MadeFile::Link { to: from.clone(), mounted: false }));
    }
    made
}

/// Tells whether a pattern of bash may match a name. A set may hold any letter.
fn may_fit(pattern: &str, name: &str) -> bool {
    let Some(first) = pattern.chars().next() else { return name.is_empty() };
    let rest = pattern.get(first.len_utf8()..).unwrap_or_default();
    let next = || name.get(1..).filter(|_| name.is_ascii());
    match first {
        '*' => {
            // Every other sign takes a letter, so that names of a few letters end the search.
            let rest = rest.trim_start_matches('*');
            (0..=name.len()).any(|at| name.get(at..).is_some_and(|name| may_fit(rest, name)))
        }
        '?' => next().is_some_and(|name| may_fit(rest, name)),
        '[' => {
            let behind = rest.split_once(']').map_or("", |(_, behind)| behind);
            next().is_some_and(|name| may_fit(behind, name))
        }
        letter => name.strip_prefix(letter).is_some_and(|name| may_fit(rest, name)),
    }
}

/// A command by the name of the program that its own is a copy of.
fn by_copied_name(command: &SimpleCommand, path: &str, name: &str) -> Option<wrap::InnerCommand> {
    let first = command.words.first()?.show();
    let same = plain(&first) == path || (!first.contains('/') && first == base_name(path));
    if !same || first == name {
        return None;
    }
    let rest = command.words.iter().skip(1).cloned();
    Some(wrap::InnerCommand::Words(std::iter::once(Word::text(name)).chain(rest).collect()))
}

/// A command with the target of a link in place of the link, where it goes through the link.
fn through_link(command: &SimpleCommand, path: &str, to: &Word, mounted: bool) -> Option<wrap::InnerCommand> {
    let name = command.program_name().filter(|name| FOLLOWED.contains(name))?;
    let enters = matches!(name, "cd" | "pushd" | "find") || mounted;
    let mut changed = false;
    let through = |word: &Word| {
        let Some((Piece::Text(first), rest)) = word.pieces.split_first() else { return word.clone() };
        let Some(behind) = plain(first).strip_prefix(path) else { return word.clone() };
        let alone = behind.is_empty() && rest.is_empty() && enters;
        if !alone && !behind.starts_with('/') {
            return word.clone();
        }
        changed = true;
        let mut place = to.clone();
        place.push_text(behind);
        rest.iter().for_each(|piece| place.pieces.push(piece.clone()));
        place
    };
    let words: Vec<Word> = command.words.iter().map(through).collect();
    changed.then_some(wrap::InnerCommand::Words(words))
}
