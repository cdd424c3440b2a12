//! Commands in front of commands: the commands that `env`, `sudo`, `bash -c`, `find -exec` and similar ones run.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::script::{Piece, Redirect, RedirectKind, SimpleCommand, Word, base_name};
use crate::{env, foreign, hidden, names, other_shells, predicted_output, shells};

pub(crate) struct Wrapped {
    pub(crate) why: String,
    pub(crate) inner: Vec<InnerCommand>,
    /// The values of `$1` and the other positional words in there.
    pub(crate) bound: Vec<(String, Word)>,
}

pub(crate) enum InnerCommand {
    Words(Vec<Word>),
    Text(String),
    /// More commands than are read. A text with unread commands is never allowed.
    Endless,
}

/// The most bytes of text, and sixteen for a word, that may follow one command.
pub(crate) const ROOM: usize = 1 << 20;

/// The commands that another one runs, up to the limit: if any is left out, the list says so with
/// [`InnerCommand::Endless`].
pub(crate) fn capped(all: impl Iterator<Item = InnerCommand>) -> Vec<InnerCommand> {
    let (mut taken, mut room) = (Vec::new(), ROOM);
    for inner in all {
        let cost = match &inner {
            InnerCommand::Words(words) => words.len() * 16,
            InnerCommand::Text(text) => text.len() + 1,
            InnerCommand::Endless => ROOM,
        };
        let Some(left) = room.checked_sub(cost) else {
            taken.push(InnerCommand::Endless);
            break;
        };
        room = left;
        taken.push(inner);
    }
    taken
}

struct WrapperEntry {
    values: Vec<&'static str>,
    positionals: usize,
    vars: bool,
    text: bool,
    first: bool,
    dash_c: bool,
}

static TABLE: LazyLock<HashMap<&'static str, WrapperEntry>> =
    LazyLock::new(|| parse(include_str!("../data/wrappers.txt")));

fn parse(text: &'static str) -> HashMap<&'static str, WrapperEntry> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (name, values) = (fields.next()?, fields.next()?);
            let positionals = fields.next()?.parse().ok()?;
            let flags: Vec<&str> = fields.collect();
            Some((
                name,
                WrapperEntry {
                    values: values.split(',').collect(),
                    positionals,
                    vars: flags.contains(&"vars"),
                    text: flags.contains(&"text"),
                    first: flags.contains(&"first"),
                    dash_c: flags.contains(&"-c"),
                },
            ))
        })
        .collect()
}

pub(crate) const SHELLS: [&str; 32] = [
    "bash",
    "sh",
    "zsh",
    "dash",
    "ksh",
    "ksh93",
    "ksh2020",
    "mksh",
    "lksh",
    "oksh",
    "pdksh",
    "loksh",
    "ash",
    "fish",
    "csh",
    "bsd-csh",
    "tcsh",
    "rbash",
    "rzsh",
    "yash",
    "hush",
    "nu",
    "pwsh",
    "powershell",
    "rc",
    "es",
    "elvish",
    "xonsh",
    "ion",
    "murex",
    "osh",
    "ysh",
];

/// Names of wrappers that this module handles, besides shells.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.keys().copied().chain(["find", "fd", "fdfind", "source", ".", "alias", "jobs"])
}

/// The commands that a command runs, if it is a wrapper.
pub(crate) fn unwrap_command(command: &SimpleCommand) -> Option<Wrapped> {
    let name = command.program_name()?;
    let split = Some(&command.words).filter(|_| env::is_env(name)).and_then(|words| env::expanded_env(words));
    let words = split.as_ref().map_or(command.words.as_slice(), |split| split.words.as_slice());
    let meaning = names::meaning(name);
    if meaning.shell {
        return Some(shell(name, command));
    }
    if !meaning.wraps && !meaning.foreign {
        let inner = hidden::hidden_deletions(command);
        let why = || format!("{name} seems to run another command");
        return (!inner.is_empty()).then(|| Wrapped { why: why(), inner, bound: Vec::new() });
    }
    let found = match name {
        "find" | "fd" | "fdfind" => return find(name, words),
        "source" | "." => read_from(command),
        "alias" => words.iter().skip(1).filter_map(after_equals).map(InnerCommand::Text).collect(),
        "coproc" if group(words).is_some() => group(words).map(InnerCommand::Words).into_iter().collect(),
        "command" if is_query(words) => return None,
        "jobs" => vec![InnerCommand::Words(executed(words)?)],
        "env" if command.words.len() == 1 => return None,
        _ => match TABLE.get(name) {
            Some(entry) => {
                let mut found = commands_after(entry, words);
                if name == "parallel" {
                    found.extend(hidden::parallel(words));
                }
                found.extend(foreign::inner(name, command));
                found
            }
            None => {
                let mut inner = foreign::inner(name, command);
                inner.extend(hidden::hidden_deletions(command));
                let why = || format!("{name} seems to run another command");
                return (!inner.is_empty()).then(|| Wrapped { why: why(), inner, bound: Vec::new() });
            }
        },
    };
    // `env x=y z`: the variables that the command after it gets.
    let bound = match name {
        "env" | "genv" | "sudo" | "doas" => words.iter().skip(1).filter_map(assigned).collect(),
        _ => Vec::new(),
    };
    let found = found.into_iter().chain(split.into_iter().flat_map(|split| split.inner)).collect();
    Some(Wrapped { why: format!("{name} runs another command"), inner: found, bound })
}

/// The first command of the group in `coproc NAME { x; }`; the others are listed by themselves.
fn group(words: &[Word]) -> Option<Vec<Word>> {
    let open = words.iter().take(3).position(|word| matches!(word.literal(), Some("{" | "(")))?;
    Some(words.get(open + 1..)?.to_vec())
}

/// The command in `jobs -x x`, where bash runs the words after the options.
fn executed(words: &[Word]) -> Option<Vec<Word>> {
    let option = |word: &&Word| word.literal().is_none_or(|word| word.starts_with('-'));
    let options = words.iter().skip(1).take_while(option).count();
    let executes = |word: &Word| word.literal().is_none_or(|word| word.contains('x'));
    let rest = words.get(options + 1..).filter(|rest| !rest.is_empty())?;
    words.get(1..=options)?.iter().any(executes).then(|| rest.to_vec())
}

/// Tells whether a command is `command -v x`, which only looks the name up.
fn is_query(words: &[Word]) -> bool {
    words.get(1).and_then(Word::literal).is_some_and(|word| matches!(word, "-v" | "-V"))
}

fn assigned(word: &Word) -> Option<(String, Word)> {
    let (Piece::Text(first), rest) = word.pieces.split_first()? else { return None };
    let (name, begin) = first.split_once('=')?;
    let mut value = Word::default();
    if !begin.is_empty() || rest.is_empty() {
        value.push_text(begin);
    }
    rest.iter().for_each(|piece| value.pieces.push(piece.clone()));
    Some((name.to_owned(), value))
}

fn after_equals(word: &Word) -> Option<String> {
    word.literal()?.split_once('=').map(|(_, text)| text.to_owned())
}

fn commands_after(entry: &WrapperEntry, words: &[Word]) -> Vec<InnerCommand> {
    let (mut at, mut positionals, mut inner, mut unsure) = (1, 0, Vec::new(), false);
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            // Which words are options is no longer known: every one of them could be the program.
            unsure = true;
            break;
        };
        if text == "--" {
            at += 1;
            break;
        }
        if text.starts_with('-') && text.len() > 1 {
            let value = words.get(at + 1).and_then(Word::literal);
            if entry.dash_c {
                inner.extend(option_c(text, value).map(|text| InnerCommand::Text(text.to_owned())));
            }
            // `-uroot` carries its value, `-u root` takes the next word; so does the last of several letters.
            at += 1 + usize::from(takes_value(entry, text));
            continue;
        }
        // A dash alone empties the environment.
        if entry.vars && (text == "-" || (text.contains('=') && !text.starts_with('='))) {
            at += 1;
            continue;
        }
        if positionals < entry.positionals {
            positionals += 1;
            at += 1;
            continue;
        }
        break;
    }
    // `flock file -c text`, `su root -c text`: the option may follow the positional word.
    if entry.dash_c {
        for pair in words.windows(2) {
            let (Some(option), value) =
                (pair.first().and_then(Word::literal), pair.get(1).and_then(Word::literal))
            else {
                continue;
            };
            inner.extend(option_c(option, value).map(|text| InnerCommand::Text(text.to_owned())));
        }
    }
    let rest = words.get(at..).unwrap_or(&[]);
    if rest.is_empty() {
        return inner;
    }
    if entry.first {
        inner.extend(rest.first().and_then(Word::literal).map(|text| InnerCommand::Text(text.to_owned())));
    } else if entry.text {
        let joined: Vec<&str> = rest.iter().map_while(Word::literal).collect();
        // A part that is known only later is left out, so that the words before it are still read.
        let text = if joined.len() == rest.len() { joined.join(" ") } else { shell_text(rest) };
        inner.push(InnerCommand::Text(text));
    } else if unsure {
        inner.extend(capped(
            (at..words.len()).filter_map(|at| Some(InnerCommand::Words(words.get(at..)?.to_vec()))),
        ));
    } else {
        inner.push(InnerCommand::Words(rest.to_vec()));
    }
    inner
}

fn shown(words: &[Word]) -> String {
    words.iter().map(Word::show).collect::<Vec<_>>().join(" ")
}

/// The words as text for a shell, with the output of plain substitutions in them.
pub(crate) fn shell_text(words: &[Word]) -> String {
    let piece = |piece: &Piece| match piece {
        // A nested text would be read again for each level.
        Piece::Substitution(Some(text)) if !["$(", "`", "<("].iter().any(|sign| text.contains(sign)) => {
            shown(&predicted_output::printed_words(text))
        }
        piece => Word::of(piece.clone()).show(),
    };
    let word = |word: &Word| match word.literal() {
        Some(text) => text.to_owned(),
        None => word.pieces.iter().map(piece).collect(),
    };
    words.iter().map(word).collect::<Vec<String>>().join(" ")
}

fn option_c<'a>(option: &'a str, value: Option<&'a str>) -> Option<&'a str> {
    match option {
        "-c" | "--command" | "--session-command" => value,
        // `-qc`: the last of several letters.
        _ if !option.starts_with("--") && option.starts_with('-') && option.ends_with('c') => value,
        _ => option.strip_prefix("--command="),
    }
}

fn takes_value(entry: &WrapperEntry, text: &str) -> bool {
    // A long one may be abbreviated.
    let long = text.len() > 2 && text.starts_with("--");
    if entry.values.iter().any(|value| *value == text || (long && value.starts_with(text))) {
        return true;
    }
    if text.starts_with("--") || text.len() < 3 {
        return false;
    }
    // `-nu root`: harmless letters, then one that takes the next word. After a value letter before the last, the rest
    // of the word is its value.
    let letters: Vec<char> = text.chars().skip(1).collect();
    let is_value = |letter: &char| entry.values.contains(&format!("-{letter}").as_str());
    letters.iter().position(is_value) == Some(letters.len() - 1)
}

fn shell(name: &str, command: &SimpleCommand) -> Wrapped {
    let words = command.words.as_slice();
    let given = shells::shell_words(words);
    let text =
        |at: usize| words.get(at).map(|word| InnerCommand::Text(shell_text(std::slice::from_ref(word))));
    let mut inner: Vec<InnerCommand> = given.texts.iter().filter_map(|at| text(*at)).collect();
    inner.extend(given.glued.iter().map(|text| InnerCommand::Text(text.clone())));
    if given.hidden {
        inner.push(InnerCommand::Words(vec![Word::of(Piece::Substitution(None))]));
    }
    inner.extend(other_shells::read(name, &inner));
    if let Some(script) = given.texts.first() {
        // The next word is the name of the shell, the rest are its words.
        let mut bound = predicted_output::positional(words.get(script + 2..).unwrap_or(&[]));
        bound.extend(words.get(script + 1).map(|word| ("0".to_owned(), word.clone())));
        return Wrapped { why: format!("{name} runs a text as commands"), inner, bound };
    }
    let given_texts = read_from(command);
    inner.extend(other_shells::read(name, &given_texts));
    inner.extend(given_texts);
    let bound = predicted_output::positional(words.get(given.operands..).unwrap_or(&[]));
    Wrapped { why: format!("{name} runs commands that are elsewhere"), inner, bound }
}

/// The commands that a shell is given besides its words: on the standard input, or by `<(…)` in place of a file.
fn read_from(command: &SimpleCommand) -> Vec<InnerCommand> {
    let input = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
    let input = input.filter(|_| reads_commands(command)).map(|redirect| redirect.word.clone());
    let files = command.words.iter().skip(1).filter_map(|word| match &*word.pieces {
        [Piece::Process(Some(text))] => Some(Word::of(Piece::Substitution(Some(text.clone())))),
        _ => None,
    });
    input.chain(files).map(|word| InnerCommand::Text(shell_text(&[word]))).collect()
}

/// Tells whether the command is a shell that reads its commands from the standard input.
pub(crate) fn reads_commands(command: &SimpleCommand) -> bool {
    let Some(name) = command.program_name() else { return false };
    if !names::meaning(name).shell && name != "source" && name != "." {
        return false;
    }
    let mut operands = command.words.iter().skip(1).filter_map(Word::literal);
    match name {
        "source" | "." => operands.any(shells::is_input),
        _ => SHELLS.contains(&name) && shells::reads_input(&command.words),
    }
}

/// Tells whether the content of a pipe can become a command, or a word of one.
pub(crate) fn may_run_input(command: &SimpleCommand) -> bool {
    command.program_name().is_some_and(|name| matches!(name, "xargs" | "parallel") || reads_lines(name))
        || reads_commands(command)
        || foreign::takes_text(command)
}

/// Tells whether a program puts its input into variables.
pub(crate) fn reads_lines(name: &str) -> bool {
    matches!(name, "read" | "mapfile" | "readarray")
}

/// The redirection `< <(x)` as text: the output of the command comes in, as by `<<< "$(x)"`.
pub(crate) fn as_text_redirect(redirect: &Redirect) -> Option<Redirect> {
    match &*redirect.word.pieces {
        [Piece::Process(Some(text))] if redirect.kind == RedirectKind::Read => {
            let word = Word::of(Piece::Substitution(Some(text.clone())));
            Some(Redirect { kind: RedirectKind::Text, word })
        }
        _ => None,
    }
}

/// `xargs` with the text of its herestring or heredoc, or of `-a <(x)`.
pub(crate) fn with_text(command: &SimpleCommand) -> Option<InnerCommand> {
    command.program_name().filter(|name| matches!(*name, "xargs" | "parallel"))?;
    let text = command.redirects.iter().find(|redirect| redirect.kind == RedirectKind::Text);
    let listed = || {
        let file = |pair: &[Word]| match (pair.first()?.literal()?, &*pair.get(1)?.pieces) {
            ("-a" | "--arg-file", [Piece::Process(Some(text))]) => {
                Some(Word::of(Piece::Substitution(Some(text.clone()))))
            }
            _ => None,
        };
        command.words.windows(2).find_map(file)
    };
    let text = text.map(|redirect| redirect.word.clone()).or_else(listed)?;
    with_input(command, &sent_words(&shell_text(&[text]), false))
}

/// The words in the content of a pipe. Where it names only a part of the files of a folder, the folder counts as lost
/// only if it is the root or a home folder, as with `find -delete`.
pub(crate) fn sent_words(text: &str, part: bool) -> Vec<String> {
    let bare = |word: &str| word.trim_matches(['\'', '"']).replace("$HOME", "~");
    text.split_whitespace().map(bare).filter(|word| !part || is_whole(word)).collect()
}

/// Tells whether a word is the root or a home folder.
pub(crate) fn is_whole(word: &str) -> bool {
    let bare = word.trim_end_matches('/');
    bare.is_empty() || (bare.starts_with('~') && !bare.contains('/'))
}

/// `xargs` with the words it is sent.
pub(crate) fn with_input(command: &SimpleCommand, sent: &[String]) -> Option<InnerCommand> {
    let entry = TABLE.get(command.program_name().filter(|name| matches!(*name, "xargs" | "parallel"))?)?;
    let inner = commands_after(entry, &command.words);
    let words = inner.into_iter().find_map(|inner| match inner {
        InnerCommand::Words(words) => Some(words),
        InnerCommand::Text(_) | InnerCommand::Endless => None,
    })?;
    // `xargs -I {} sh -c 'x {}'`: the words it is sent take the place of the mark.
    let after = |option: &str| {
        let at = command.words.iter().position(|word| word.literal() == Some(option))?;
        command.words.get(at + 1)?.literal()
    };
    let mark = after("-I").or_else(|| after("--replace")).unwrap_or("{}");
    if mark.is_empty() || !words.iter().any(|word| word.literal().is_some_and(|word| word.contains(mark))) {
        return Some(InnerCommand::Words(with_words(words, sent)));
    }
    let joined = sent.join(" ");
    let marks: usize = words.iter().filter_map(Word::literal).map(|word| word.matches(mark).count()).sum();
    if marks * joined.len() > ROOM {
        return Some(InnerCommand::Endless);
    }
    let fill = |word: Word| match word.literal() {
        Some(text) if text == mark => sent.iter().map(|word| Word::text(word.as_str())).collect(),
        Some(text) if text.contains(mark) => vec![Word::text(text.replace(mark, &joined))],
        _ => vec![word],
    };
    let mut filled: Vec<Word> = words.into_iter().flat_map(fill).collect();
    // The whole of it may be one text.
    if let Some(text) = filled.first().and_then(Word::literal).filter(|text| text.contains(' ')) {
        let cut: Vec<Word> = text.split_whitespace().map(Word::text).collect();
        filled.splice(..1, cut);
    }
    let whole = sent.iter().any(|word| is_whole(word));
    if whole && filled.first().and_then(Word::literal).map(base_name) == Some("rm") {
        filled.push(Word::text("-r"));
    }
    Some(InnerCommand::Words(filled))
}

/// A command with more words. Where these are all the files of a folder, file by file, the whole folder is lost.
pub(crate) fn with_words(mut words: Vec<Word>, sent: &[String]) -> Vec<Word> {
    let whole = sent.iter().any(|word| is_whole(word) || matches!(word.trim_end_matches('/'), "." | ".."));
    if whole && words.first().and_then(Word::literal).map(base_name) == Some("rm") {
        words.push(Word::text("-r"));
    }
    words.extend(sent.iter().map(|word| Word::text(word.as_str())));
    words
}

/// The commands of `find -exec` and `fd -x`.
fn find(name: &str, words: &[Word]) -> Option<Wrapped> {
    let mut inner = Vec::new();
    let starts = |word: &Word| {
        word.literal().is_some_and(|word| match name {
            "find" => matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir"),
            _ => matches!(word, "-x" | "-X" | "--exec" | "--exec-batch"),
        })
    };
    let mut at = 1;
    while let Some(begin) = words.iter().skip(at).position(starts).map(|index| index + at + 1) {
        let end = words
            .iter()
            .skip(begin)
            .position(|word| word.literal().is_some_and(|word| word == ";" || word == "+"))
            .map_or(words.len(), |index| index + begin);
        if let Some(command) = words.get(begin..end).filter(|command| !command.is_empty()) {
            let mut command = command.to_vec();
            // The files it finds are themselves the programs.
            if let Some(first) = command.first_mut().filter(|first| first.literal() == Some("{}")) {
                *first = found_name(words);
            }
            inner.push(InnerCommand::Words(command));
        }
        at = end.max(begin);
    }
    // `fd . / -x rm -rf`: the files it finds there become the last word.
    if name != "find" {
        let places = words.iter().skip(1).map(Word::show).filter(|word| !word.starts_with('-')).skip(1);
        let places = sent_words(&places.collect::<Vec<_>>().join("\n"), true);
        let on_all = |one: &InnerCommand| match one {
            InnerCommand::Words(words) if !places.is_empty() => {
                Some(InnerCommand::Words(with_words(words.clone(), &places)))
            }
            _ => None,
        };
        let more: Vec<InnerCommand> = inner.iter().filter_map(on_all).collect();
        inner.extend(more);
    }
    let why = format!("{name} runs a command on what it finds");
    (!inner.is_empty()).then_some(Wrapped { why, inner, bound: Vec::new() })
}

/// The names that a `find` searches for, as a pattern.
fn found_name(words: &[Word]) -> Word {
    let mut pairs = words.windows(2).filter_map(|pair| Some((pair.first()?.literal()?, pair.get(1)?)));
    let tests = ["-name", "-iname", "-path", "-ipath", "-wholename"];
    let pattern = pairs.find(|(test, _)| tests.contains(test)).map(|(_, pattern)| pattern.show());
    let mut name = Word::default();
    for c in pattern.as_deref().unwrap_or("*").chars() {
        if matches!(c, '*' | '?' | '[') { name.pieces.push(Piece::Glob(c)) } else { name.push_char(c) }
    }
    name
}

/// Tells whether a name is a wrapper or a shell, for tests and tables.
#[cfg(test)]
pub(crate) fn is_wrapper(name: &str) -> bool {
    TABLE.contains_key(name) || SHELLS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines =
            include_str!("../data/wrappers.txt").lines().filter(|line| !line.starts_with('#')).count();
        assert_eq!(TABLE.len(), lines);
        assert!(is_wrapper("env") && is_wrapper("bash") && !is_wrapper("ls"));
    }

    fn inner(line: &str) -> Vec<String> {
        let words = line.split(' ').map(Word::text).collect();
        let command = SimpleCommand { words, ..SimpleCommand::default() };
        let inner = unwrap_command(&command).map_or_else(Vec::new, |wrapped| wrapped.inner);
        inner
            .into_iter()
            .map(|inner| match inner {
                InnerCommand::Words(words) => shown(&words),
                InnerCommand::Text(text) => format!("'{text}'"),
                InnerCommand::Endless => "…".to_owned(),
            })
            .collect()
    }

    #[test]
    fn the_command_behind_is_found() {
        for (line, found) in [
            ("env A=1 -u B rm x", vec!["rm x"]),
            ("sudo -u root rm x", vec!["rm x"]),
            ("sudo -nu root rm x", vec!["rm x"]),
            ("sudo -uroot rm x", vec!["rm x"]),
            ("timeout -s KILL 5 rm x", vec!["rm x"]),
            ("nice -n 5 rm x", vec!["rm x"]),
            ("nice -5 rm x", vec!["rm x"]),
            ("xargs -0 -n 1 rm x", vec!["rm x"]),
            ("xargs -I {} rm {}", vec!["rm {}"]),
            ("eval rm x", vec!["'rm x'"]),
            ("bash -lc ls", vec!["'ls'"]),
            ("sh -e -c ls a", vec!["'ls'"]),
            ("find . -exec rm {} ; -exec ls {} +", vec!["rm {}", "ls {}"]),
            ("trap ls EXIT", vec!["'ls'"]),
            ("exec -a x rm y", vec!["rm y"]),
            ("busybox rm x", vec!["rm x"]),
            ("jobs -x rm x", vec!["rm x"]),
            ("jobs -lx rm x", vec!["rm x"]),
            ("jobs -l", vec![]),
            ("jobs read 1", vec![]),
            ("env", vec![]),
            ("command -v x", vec![]),
        ] {
            assert_eq!(inner(line), found, "{line}");
        }
    }
}
