//! The acts of a program with the words it is given: the table of options (`data/programs.txt`) and its consequences.

use std::sync::LazyLock;

use lathe_protocol::Effects;

use crate::names::ByName;
use crate::script::{Floor, FloorRule, Piece, RedirectKind, SimpleCommand, Word, base_name};
use crate::{awk, names, response_files, special, toolchains};

/// The act of a program by its nature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nature {
    Read,
    Write,
    Run,
    Net,
    State,
}

impl Nature {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "read" => Self::Read,
            "write" => Self::Write,
            "run" => Self::Run,
            "net" => Self::Net,
            "state" => Self::State,
            _ => return None,
        })
    }

    fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads what another file names",
            Self::Write => "writes",
            Self::Run => "can run other programs",
            Self::Net => "sends or reaches elsewhere",
            Self::State => "changes a state",
        }
    }
}

#[derive(Debug, Clone, Default)]
struct ProgramEntry {
    nature: Option<Nature>,
    safe: bool,
    words: bool,
    bundle: bool,
    few: bool,
    exact: bool,
    script: bool,
    said: bool,
    dangerous: Vec<(&'static str, Nature)>,
    glued: &'static str,
    fine: Vec<&'static str>,
    global: Vec<&'static str>,
    /// Entries for its subcommands, by the words that follow.
    subs: ByName<SubcommandEntry>,
}

/// A subcommand: its own entry, and those of its subcommands.
#[derive(Debug, Clone, Default)]
struct SubcommandEntry {
    entry: Option<std::sync::Arc<ProgramEntry>>,
    next: ByName<std::sync::Arc<ProgramEntry>>,
}

type Table = ByName<ProgramEntry>;

static TABLE: LazyLock<Table> = LazyLock::new(|| parse(include_str!("../data/programs.txt")).0);

/// The table, and the lines that could not be read; a test checks that there are none.
fn parse(text: &'static str) -> (Table, Vec<&'static str>) {
    let (mut entries, mut wrong): (Vec<(Vec<&str>, ProgramEntry)>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !line.starts_with(' ') {
            let Some((names, rest)) = line.rsplit_once(": ") else {
                wrong.push(line);
                continue;
            };
            let mut entry = ProgramEntry::default();
            for word in rest.split_whitespace() {
                match word {
                    "safe" => entry.safe = true,
                    "words" => entry.words = true,
                    "bundle" => entry.bundle = true,
                    "few" => entry.few = true,
                    "exact" => entry.exact = true,
                    "script" => entry.script = true,
                    "said" => entry.said = true,
                    word => entry.nature = Nature::parse(word),
                }
            }
            if entry.nature.is_none() {
                wrong.push(line);
            }
            entries.push((names.split(", ").collect(), entry));
            continue;
        }
        match (entries.last_mut(), words.as_slice()) {
            (Some((_, entry)), ["!", effect, options @ ..]) => match Nature::parse(effect) {
                Some(effect) => entry.dangerous.extend(options.iter().map(|option| (*option, effect))),
                None => wrong.push(line),
            },
            (Some((_, entry)), ["=", letters]) => entry.glued = letters,
            (Some((_, entry)), ["ok", options @ ..]) => entry.fine.extend(options),
            (Some((_, entry)), ["global", options @ ..]) => entry.global.extend(options),
            _ => wrong.push(line),
        }
    }
    let (mut table, mut subs) = (Table::default(), ByName::<ByName<SubcommandEntry>>::default());
    let mut programs = Vec::new();
    for (names, entry) in entries {
        let entry = std::sync::Arc::new(entry);
        for name in names {
            let words: Vec<&'static str> = name.split(' ').collect();
            let taken = match words.as_slice() {
                [program, sub] => subs
                    .entry(program)
                    .or_default()
                    .entry(sub)
                    .or_default()
                    .entry
                    .replace(entry.clone())
                    .is_some(),
                [program, sub, next] => {
                    let sub = subs.entry(program).or_default().entry(sub).or_default();
                    sub.next.insert(next, entry.clone()).is_some()
                }
                _ => {
                    programs.push((name, entry.clone()));
                    false
                }
            };
            if taken {
                wrong.push(name);
            }
        }
    }
    for (name, entry) in programs {
        let mut entry = ProgramEntry::clone(&entry);
        entry.subs = subs.remove(name).unwrap_or_default();
        if table.insert(name, entry).is_some() {
            wrong.push(name);
        }
    }
    wrong.extend(subs.into_keys());
    (table, wrong)
}

impl ProgramEntry {
    /// The effect of an option, if it is a dangerous one.
    fn danger(&self, word: &str, first: bool) -> Option<Nature> {
        let named = |option: &str, word: &str| match option.strip_suffix('*') {
            Some(begin) => word.starts_with(begin),
            None => word == option,
        };
        let find = |word: &str| {
            self.dangerous.iter().find(|(option, _)| named(option, word)).map(|(_, nature)| *nature)
        };
        if self.words {
            let bare = word.split('=').next().unwrap_or(word);
            let single = bare.strip_prefix('-').filter(|rest| rest.starts_with('-')).unwrap_or(bare);
            return find(single);
        }
        if let Some(plus) = self.dangerous.iter().find(|(option, _)| *option == "+")
            && word.starts_with('+')
        {
            return Some(plus.1);
        }
        if word.starts_with("--") {
            let bare = word.split('=').next().unwrap_or(word);
            if self.fine.contains(&bare) {
                return None;
            }
            return find(bare).or_else(|| {
                let shortened =
                    |option: &str| option.len() > bare.len() && option.starts_with(bare) && bare.len() > 2;
                self.dangerous
                    .iter()
                    .find(|(option, _)| !self.exact && shortened(option))
                    .map(|(_, nature)| *nature)
            });
        }
        let letters = match word.strip_prefix('-') {
            Some(letters) => letters,
            None if self.bundle && first => word,
            None => return None,
        };
        if self.dangerous.is_empty() {
            return None;
        }
        for letter in letters.chars() {
            let is_letter = |option: &str| {
                let mut chars = option.chars();
                chars.next() == Some('-')
                    && chars.next() == Some(letter)
                    && matches!(chars.as_str(), "" | "*")
            };
            if let Some((_, nature)) = self.dangerous.iter().find(|(option, _)| is_letter(option)) {
                return Some(*nature);
            }
            if self.glued.contains(letter) {
                return None;
            }
        }
        None
    }
}

/// The entries for a command and its subcommand, and the number of its words that are program and subcommand.
fn look_up(words: &[Word]) -> (Option<&'static ProgramEntry>, Option<&'static ProgramEntry>, usize) {
    let Some(program) = words.first().and_then(Word::literal).map(base_name) else {
        return (None, None, 1);
    };
    let entry: Option<&'static ProgramEntry> = TABLE.get(program);
    let Some(main) = entry.filter(|entry| !entry.subs.is_empty()) else {
        return (entry, None, 1);
    };
    let mut at = 1;
    while let Some(word) = words.get(at).and_then(Word::literal).filter(|word| word.starts_with(['-', '+'])) {
        at += 1 + usize::from(main.global.contains(&word));
    }
    let Some(sub) = words.get(at).and_then(Word::literal) else {
        return (entry, None, at.min(words.len()));
    };
    let Some(sub) = main.subs.get(sub) else { return (Some(main), None, at + 1) };
    let next = words.get(at + 1).and_then(Word::literal).and_then(|next| sub.next.get(next));
    match next {
        Some(entry) => (Some(main), Some(entry), at + 2),
        None => (Some(main), sub.entry.as_deref(), at + 1),
    }
}

/// The words without the folder of the program and without options before a subcommand: the form that a denial is
/// compared with.
pub fn normal_words(words: &[Word]) -> Vec<String> {
    let (main, _, end) = look_up(words);
    let mut normal: Vec<String> = words.iter().map(Word::show).collect();
    if let Some(program) = normal.first_mut() {
        *program = base_name(program).to_owned();
    }
    if main.is_some_and(|main| !main.subs.is_empty()) && end >= 2 && end <= normal.len() {
        let begin = (1..end).find(|index| {
            words.get(*index).and_then(Word::literal).is_some_and(|word| !word.starts_with(['-', '+']))
                && !words.get(index - 1).and_then(Word::literal).is_some_and(|before| {
                    *index > 1 && main.is_some_and(|main| main.global.contains(&before))
                })
        });
        if let Some(begin) = begin {
            normal.drain(1..begin);
        }
    }
    normal
}

/// Tells whether a command is in the table as one that only reads.
pub(crate) fn only_reads(words: &[Word]) -> bool {
    let (main, sub, _) = look_up(words);
    let nature = sub.or(main).and_then(|entry| entry.nature);
    nature == Some(Nature::Read) || main.is_some_and(|entry| entry.script)
}

/// The nature of a command; one that is not in the table runs something.
fn nature_of(main: Option<&ProgramEntry>, sub: Option<&ProgramEntry>) -> Nature {
    sub.or(main).and_then(|entry| entry.nature).unwrap_or(Nature::Run)
}

pub(crate) const STATE: [&str; 38] = [
    "cd",
    "pushd",
    "popd",
    "dirs",
    "alias",
    "unalias",
    "export",
    "declare",
    "typeset",
    "local",
    "readonly",
    "unset",
    "unsetenv",
    "set",
    "shopt",
    "source",
    ".",
    "eval",
    "exec",
    "trap",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "let",
    "hash",
    "enable",
    "umask",
    "ulimit",
    "bind",
    "complete",
    "compopt",
    "history",
    "fc",
    "disown",
    "suspend",
    "logout",
    "shift",
];

/// Finds the floors of one command.
pub(crate) fn add_floors(command: &mut SimpleCommand) {
    let mut floors = std::mem::take(&mut command.floors);
    for assignment in &command.assignments {
        floors.push(Floor::new(FloorRule::State, format!("it assigns {}", assignment.name)));
    }
    if !command.words.is_empty() {
        program(command, &mut floors, None);
    }
    command.floors = floors;
}

/// The effects of one command.
pub(crate) fn effects(command: &SimpleCommand) -> Effects {
    let mut effects = Effects::default();
    effects.environment.extend(command.assignments.iter().map(|assignment| assignment.name.clone()));
    for redirect in &command.redirects {
        match redirect.kind {
            RedirectKind::Read => effects.reads.push(redirect.word.show()),
            RedirectKind::Write if redirect.word.literal() != Some("/dev/null") => {
                effects.writes.push(redirect.word.show());
            }
            RedirectKind::Write | RedirectKind::Duplicate | RedirectKind::Text => {}
        }
    }
    if !command.words.is_empty() {
        program(command, &mut Vec::new(), Some(&mut effects));
    }
    effects
}

/// The floors of a command with words, and its effects only where they are wanted, because naming them costs more.
fn program(command: &SimpleCommand, floors: &mut Vec<Floor>, effects: Option<&mut Effects>) {
    let (mut unwanted, wanted) = (Effects::default(), effects.is_some());
    let effects = effects.unwrap_or(&mut unwanted);
    let Some(name) = command.program() else {
        floors.push(Floor::at(FloorRule::Program, "which program it is shows only when it runs", 0));
        effects.opaque = true;
        return;
    };
    if name.contains('/') {
        floors.push(Floor::at(FloorRule::Program, format!("{name} is a path, not a name"), 0));
    }
    if let Some(module) = toolchains::as_module(command) {
        let mut more = Vec::new();
        program(&module, &mut more, Some(effects));
        // Program and option stand before it.
        floors.extend(more.into_iter().map(|floor| Floor { word: floor.word.map(|word| word + 2), ..floor }));
        return;
    }
    let (main, sub, end) = look_up(&command.words);
    if names::meaning(name).state {
        floors.push(Floor::at(FloorRule::State, format!("{name} changes the state of the shell"), 0));
        effects.environment.push(name.to_owned());
    }
    options(command, (main, sub, end), floors, effects);
    special::doubts(command, end, floors);
    let known = floors.len();
    toolchains::doubts(command, end, floors);
    // Its effects are then unknown.
    effects.opaque |= floors.len() > known;
    let entry = if main.is_some_and(|main| !main.subs.is_empty()) { sub } else { main };
    let operands = command
        .words
        .iter()
        .skip(end)
        .filter(|word| word.literal().is_none_or(|word| !word.starts_with('-')));
    let nature = nature_of(main, sub);
    let nature = if special::reads_setting(&command.words, end) { Nature::Read } else { nature };
    match nature {
        _ if !wanted => {}
        Nature::Read if entry.is_some_and(|entry| entry.said) => {}
        Nature::Read => effects.reads.extend(operands.map(Word::show)),
        Nature::Write => effects.writes.extend(operands.map(Word::show)),
        Nature::Run => effects.programs.push(base_name(name).to_owned()),
        Nature::Net => effects.hosts.extend(operands.map(Word::show)),
        Nature::State => effects.environment.push(base_name(name).to_owned()),
    }
    // A writer without operands still writes something.
    if nature != Nature::Read && !effects.change_something() {
        effects.opaque = true;
    }
    if entry.is_some_and(|entry| entry.script) {
        let doubt =
            if base_name(name) == "sed" { awk::sed(&command.words) } else { awk::awk(&command.words) };
        match doubt {
            Some(why) => floors.push(Floor::new(FloorRule::Option, why)),
            None => {
                // The script was understood, and only prints.
                effects.reads.append(&mut effects.writes);
                effects.opaque = false;
            }
        }
    }
}

fn options(
    command: &SimpleCommand,
    (main, sub, end): (Option<&ProgramEntry>, Option<&ProgramEntry>, usize),
    floors: &mut Vec<Floor>,
    effects: &mut Effects,
) {
    let safe = sub.or(main).is_some_and(|entry| entry.safe) || toolchains::takes_any(command);
    let lists = special::lists(&command.words, end);
    let mut ended = false;
    let program = command.program_name().unwrap_or("");
    // `git reflog expire` under a rule for `git reflog`.
    if let Some(nature) =
        sub.filter(|_| end > 2).and_then(|sub| sub.nature).filter(|nature| *nature != Nature::Read)
        && let Some(word) =
            command.words.get(end - 1).and_then(Word::literal).filter(|_| is_three(&command.words, end))
    {
        floors.push(Floor::at(FloorRule::Option, format!("{word} {}", nature.verb()), end - 1));
    }
    for (index, word) in command.words.iter().enumerate().skip(1) {
        let entry = if index < end { main } else { sub.or(main) };
        if let Some(text) = word.literal() {
            if text == "--" && !entry.is_some_and(|entry| entry.words) {
                ended = true;
                continue;
            }
            let Some(entry) = entry else { continue };
            let operand = index >= end && (ended || text == "-" || !text.starts_with(['-', '+']));
            let written = operand && entry.few && !lists;
            let option = entry
                .danger(text, index == 1)
                .filter(|_| !ended && !toolchains::is_fine(program, &command.words, index));
            let found =
                option.or_else(|| written.then_some(Nature::Write)).or_else(|| other_nature(program, text));
            if let Some(nature) = found {
                floors.push(Floor::at(FloorRule::Option, format!("{text} {}", nature.verb()), index));
                let what = text.to_owned();
                match nature {
                    Nature::Read => effects.reads.push(what),
                    Nature::Write => effects.writes.push(what),
                    Nature::Run => effects.programs.push(what),
                    Nature::Net => effects.hosts.push(what),
                    Nature::State => effects.environment.push(what),
                }
            }
        } else if matches!(word.pieces.first(), Some(Piece::Tilde(_))) && other_nature(program, "~").is_some()
        {
            let why = format!("{} {}", word.show(), Nature::Run.verb());
            floors.push(Floor::at(FloorRule::Option, why, index));
        } else if let Some(floor) = dynamic(word, index, safe, ended) {
            floors.push(floor);
        } else if response_files::may_be_list(word) && response_files::takes_response_files(program) {
            let why = format!("{} may name a file with more words", word.show());
            let globbed = word.pieces.iter().all(|piece| matches!(piece, Piece::Text(_) | Piece::Glob(_)));
            let rule = if globbed { FloorRule::Glob } else { FloorRule::Dynamic };
            floors.push(Floor::at(rule, why, index));
        } else if index >= end && entry.is_some_and(|entry| entry.few) {
            let why = format!("{} {}", word.show(), Nature::Write.verb());
            floors.push(Floor::at(FloorRule::Glob, why, index));
        }
    }
}

/// The nature of words that are not options, and yet make a program run another or write.
fn other_nature(program: &str, text: &str) -> Option<Nature> {
    toolchains::word_effect(program, text).map(|other| match other {
        toolchains::WordEffect::Reads => Nature::Read,
        toolchains::WordEffect::Runs => Nature::Run,
        toolchains::WordEffect::Writes => Nature::Write,
    })
}

/// Tells whether program, subcommand and its own subcommand were found.
fn is_three(words: &[Word], end: usize) -> bool {
    let literal = |index: usize| words.get(index).and_then(Word::literal);
    let sub = literal(0).map(base_name).and_then(|name| TABLE.get(name)?.subs.get(literal(end - 2)?));
    sub.is_some_and(|sub| literal(end - 1).is_some_and(|next| sub.next.contains_key(next)))
}

fn dynamic(word: &Word, index: usize, safe: bool, ended: bool) -> Option<Floor> {
    for piece in word.pieces.iter() {
        let why = match piece {
            Piece::Operator { name, .. } => format!("${{{name}…}} is more than a plain variable"),
            Piece::Arithmetic { constant: false } => "arithmetic on variables can run commands".to_owned(),
            Piece::Text(_) | Piece::Tilde(_) | Piece::Glob(_) | Piece::Process(_) => continue,
            _ if safe => continue,
            Piece::Variable { name, .. } => format!("${name} may hold an option"),
            Piece::Substitution(_) | Piece::Arithmetic { .. } | Piece::Brace { .. } => {
                format!("{} may become an option", word.show())
            }
        };
        return Some(Floor::at(FloorRule::Dynamic, why, index));
    }
    let dashed = matches!(word.pieces.first(), Some(Piece::Text(text)) if text.starts_with(['-', '+']));
    let globbed = word.pieces.iter().any(|piece| matches!(piece, Piece::Glob(_)));
    if !safe && globbed && !ended && (word.starts_with_glob() || dashed) {
        let why = format!("{} may match a file whose name is an option", word.show());
        return Some(Floor::at(FloorRule::Glob, why, index));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let (table, wrong) = parse(include_str!("../data/programs.txt"));
        assert_eq!(wrong, Vec::<&str>::new());
        let subs: usize = table.values().map(|entry| entry.subs.len()).sum();
        assert!(table.len() + subs > 250, "{} {subs}", table.len());
    }

    fn asks(line: &str) -> bool {
        let words = line.split(' ').map(Word::text).collect();
        let mut command = SimpleCommand { words, ..SimpleCommand::default() };
        add_floors(&mut command);
        command.floors.iter().any(|floor| floor.rule == FloorRule::Option)
    }

    #[test]
    fn options_in_every_spelling() {
        for line in [
            "sort -uo x",
            "sort -ox",
            "sort --outp=x",
            "sort --output x",
            "tar xzf a",
            "tar -xzf a",
            "tar --ext -f a",
            "git -c a=b log",
            "git -C x status",
            "git log --outp=x",
            "git diff --ext-d",
            "git log --format=%G?",
            "git grep -O x",
            "find . -delete",
            "find . -exec rm",
            "find . -fprintf x",
            "rg --pre x y",
            "rg -iz x",
            "cargo +nightly test",
            "cargo test --config x",
            "go test -exec x",
            "go test --toolexec=x",
            "git branch x",
            "git branch -D x",
            "git tag v1",
            "less +!id x",
            "man -Pid ls",
            "python -c x",
            "printf -v PATH x",
            "tree -o x",
        ] {
            assert!(asks(line), "{line}");
        }
        for line in [
            "sort -u x",
            "sort -k2,2 -to x",
            "tar tzf a",
            "tar -tvf a",
            "git log -p",
            "git log --oneline",
            "git diff -C",
            "git diff --stat",
            "find . -name x -print",
            "rg -tz x",
            "rg --pretty x",
            "cargo test -p x",
            "go test ./...",
            "git branch -a",
            "git branch --show-current",
            "git log --format=%H",
            "ls --color",
            "git log -S--output",
        ] {
            assert!(!asks(line), "{line}");
        }
    }
}
