//! The text that a command would print or bind, as far as it can be known without running it. For denials only.

use crate::escapes::{self, Decoder};
use crate::script::{Piece, RedirectKind, Script, SimpleCommand, Word};
use crate::{names, wrap};

/// The words that a substitution with this text gives; empty where they cannot be known.
pub fn printed_words(text: &str) -> Vec<Word> {
    let mut script: Script = crate::read(text);
    script.commands.retain(|command| !command.evaluated);
    let inner = |word: &Word| word.pieces.iter().any(|piece| matches!(piece, Piece::Substitution(_)));
    // `sh -c 'echo x'`: the command after a wrapper is the one that prints.
    let wraps = |index: usize| script.commands.iter().any(|command| command.wrapper == Some(index));
    let commands = script.commands.iter().enumerate().filter(|(index, _)| !wraps(*index));
    let commands: Vec<&SimpleCommand> = commands.map(|(_, command)| command).collect();
    // The first is the outer one; the commands in its own substitutions follow.
    let command = match commands.as_slice() {
        [command] => *command,
        // `cd x && pwd`
        [into, pwd] if into.program_name() == Some("cd") && pwd.program_name() == Some("pwd") => {
            let home = || vec![Word::of(Piece::Tilde(String::new()))];
            return into.words.get(1).map_or_else(home, |word| vec![word.clone()]);
        }
        [command, rest @ ..] if rest.len() < 4 && command.words.iter().any(inner) => command,
        _ => return listed(&script),
    };
    let operands = || command.words.iter().skip(1);
    let last = || operands().next_back().cloned().into_iter().collect();
    let here = || vec![Word::of(Piece::Variable { name: "PWD".into(), quoted: true })];
    let options = |word: &&Word| word.literal().is_some_and(|word| word.starts_with('-'));
    match command.program_name() {
        Some("echo") if is_decoded(command) => {
            let word = |word: &Word| match word.literal() {
                Some(text) => Word::text(escapes::decoded(text, Decoder::Echo)),
                None => word.clone(),
            };
            operands().skip_while(options).map(word).collect()
        }
        Some("echo") => operands().skip_while(options).cloned().collect(),
        Some("printf") if operands().any(inner) => operands().skip(1).cloned().collect(),
        Some("printf") => {
            let constant = operands().all(|word| word.literal().is_some());
            let mut texts = possible_prints(command);
            // The first is the text it prints, where all its words are known.
            let text = if constant && !texts.is_empty() { Some(texts.swap_remove(0)) } else { texts.pop() };
            text.map(|text| Word::text(text.trim_end_matches('\n'))).into_iter().collect()
        }
        Some("printenv") => operands()
            .filter_map(Word::literal)
            .filter(|name| !name.starts_with('-'))
            .map(|name| Word::of(Piece::Variable { name: name.into(), quoted: true }))
            .collect(),
        Some("pwd") => here(),
        Some("cat") => {
            printed(command).map_or_else(Vec::new, |text| text.split_whitespace().map(Word::text).collect())
        }
        // For a folder that is known only later, the folder itself stands for its name.
        Some("basename") => operands()
            .find(|word| !options(word))
            .map(|word| {
                word.literal().map_or_else(
                    || word.clone(),
                    |text| Word::text(crate::script::base_name(text.trim_end_matches('/'))),
                )
            })
            .into_iter()
            .collect(),
        Some("git") => printed_by_git(command).map_or_else(Vec::new, |word| vec![word]),
        Some("which" | "type" | "command" | "realpath" | "readlink" | "cygpath") => last(),
        Some("dirname") => operands()
            .next_back()
            .map(|word| {
                let mut word = word.clone();
                word.push_text("/..");
                word
            })
            .into_iter()
            .collect(),
        _ => listed(&script),
    }
}

/// The words that a pipe prints, or a program that lists files. Where it names all the files of a folder one by one,
/// the whole folder is among them, so `-r` comes before them, as in [`wrap::with_words`].
fn listed(script: &Script) -> Vec<Word> {
    let Some(sent) = printed_by_script(script) else { return Vec::new() };
    let words = wrap::sent_words(&sent.text, sent.part);
    let whole = words.iter().any(|word| wrap::is_whole(word) || matches!(word.as_str(), "." | "./"));
    let option = (whole && sent.files).then(|| Word::text("-r"));
    option.into_iter().chain(words.iter().map(|word| Word::text(word.as_str()))).collect()
}

/// The text that a whole script prints.
struct PrintedText {
    text: String,
    /// True if only a part of the first stage's output may arrive.
    part: bool,
    /// True if these are names of files that are searched for.
    files: bool,
}

fn printed_by_script(script: &Script) -> Option<PrintedText> {
    let commands = || script.commands.iter().filter(|command| command.wrapper.is_none());
    let later = |command: &&SimpleCommand| command.stage.is_some_and(|stage| stage.index > 0);
    // `getent passwd me | cut -d: -f6`
    if commands().any(|command| {
        command.program_name() == Some("getent")
            && command.words.iter().any(|word| word.literal() == Some("passwd"))
    }) {
        return Some(PrintedText { text: "~".to_owned(), part: false, files: false });
    }
    if !commands().filter(later).all(passes_on) {
        return None;
    }
    let first = || commands().filter(|command| !later(command));
    let texts: Vec<String> = first().filter_map(printed).collect();
    let part = commands().any(narrows);
    let files =
        first().any(|command| matches!(command.program_name(), Some("find" | "ls" | "fd" | "fdfind")));
    (!texts.is_empty()).then(|| PrintedText { text: texts.join("\n"), part, files })
}

/// `git rev-parse` with the options that name a folder.
fn printed_by_git(command: &SimpleCommand) -> Option<Word> {
    let mut words = command.words.iter().filter_map(Word::literal);
    words.find_map(|word| match word {
        "--show-toplevel" => Some(Word::of(Piece::Variable { name: "PWD".into(), quoted: true })),
        "--git-dir" | "--absolute-git-dir" | "--git-common-dir" => Some(Word::text(".git")),
        "--git-path" => {
            let last = command.words.last().and_then(Word::literal).unwrap_or("");
            Some(Word::text(format!(".git/{last}")))
        }
        _ => None,
    })
}

/// The text that `echo` or `printf` would print, as far as it is known; for `find`, the places where it begins.
pub(crate) fn printed(command: &SimpleCommand) -> Option<String> {
    let texts = possible_prints(command);
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// The most variables of a text that was printed in parts. Each of them may have many values, and all of them
/// together many more.
const MOST_JOINED: usize = 4;

/// The one text that was printed in several parts.
pub(crate) fn joined_parts(parts: &[String]) -> Option<String> {
    let variables: usize = parts.iter().map(|part| part.matches('$').count()).sum();
    (parts.len() > 1 && variables <= MOST_JOINED).then(|| parts.concat())
}

/// The texts that a command may print, in each way that its escapes may be read, the likelier first.
pub(crate) fn possible_prints(command: &SimpleCommand) -> Vec<String> {
    let Some(plain) = undecoded(command) else { return Vec::new() };
    let operands: Vec<String> = command.words.iter().skip(1).map(Word::show).collect();
    let decoded = match command.program_name() {
        Some("echo") if plain.contains('\\') || is_decoded(command) => {
            let words: Vec<&str> =
                operands.iter().map(String::as_str).skip_while(|word| is_echo_option(word)).collect();
            escapes::decoded(&words.join(" "), Decoder::Echo)
        }
        Some("printf") => {
            let words = if operands.first().is_some_and(|word| word == "--") {
                operands.get(1..).unwrap_or_default()
            } else {
                operands.as_slice()
            };
            let Some((format, words)) = words.split_first() else { return vec![plain] };
            escapes::formatted(format, words)
        }
        // `cat <(x) <(y)`: the first text need not end with a line feed.
        Some("cat" | "paste") => {
            let texts = processes(command);
            let joined =
                || texts.iter().map(|text| text.trim_end()).collect::<Vec<_>>().join(&delimiter(command));
            return [plain].into_iter().chain((texts.len() > 1).then(joined)).collect();
        }
        _ => return vec![plain],
    };
    // A zero byte separates words for `xargs -0`; bash drops it.
    let parted = decoded.replace('\0', "\n");
    let dropped = decoded.contains('\0').then(|| decoded.replace('\0', ""));
    let same = parted.split_whitespace().eq(plain.split_whitespace())
        && parted.lines().count() == plain.lines().count();
    let decoded = (!same).then_some(parted).into_iter().chain(dropped);
    match command.program_name() {
        Some("echo") if !is_decoded(command) => [plain].into_iter().chain(decoded).collect(),
        _ => decoded.chain([plain]).collect(),
    }
}

/// Tells whether an option makes `echo` decode escapes.
fn is_decoded(command: &SimpleCommand) -> bool {
    let options =
        command.words.iter().skip(1).map_while(Word::literal).take_while(|word| is_echo_option(word));
    options.into_iter().any(|option| option.contains('e'))
}

/// The printed text, in which only those escapes are decoded that separate words.
fn undecoded(command: &SimpleCommand) -> Option<String> {
    let operands = || command.words.iter().skip(1);
    match command.program_name()? {
        "echo" => {
            let words: Vec<String> = operands()
                .skip_while(|word| word.literal().is_some_and(is_echo_option))
                .map(Word::show)
                .collect();
            Some(words.join(" ").replace("\\n", "\n"))
        }
        "printf" => {
            let mut words = operands().map(Word::show);
            let format = words.next()?;
            let mut text = String::new();
            for (index, part) in format.split("%s").enumerate() {
                if index > 0 {
                    text.push_str(&words.next().unwrap_or_default());
                }
                text.push_str(part);
            }
            // Surplus words go through the format again; here it only matters that they are in the text.
            words.for_each(|word| text.push_str(&format!("\n{word}")));
            Some(text.replace("\\n", "\n").replace("\\t", "\t").replace("\\0", "\n"))
        }
        "cat" if operands().all(|word| word.literal().is_some_and(|word| word.starts_with('-'))) => {
            let text = command.redirects.iter().find(|redirect| redirect.kind == RedirectKind::Text)?;
            Some(wrap::shell_text(std::slice::from_ref(&text.word)))
        }
        // `cat <(x)`
        "cat" | "paste" => {
            let texts = processes(command);
            (!texts.is_empty()).then(|| texts.join("\n"))
        }
        "find" => {
            let places = operands().take_while(|word| !word.show().starts_with(['-', '(', '!']));
            Some(places.map(Word::show).collect::<Vec<_>>().join("\n"))
        }
        // Only whole names: the files in a folder are not distinguished from it.
        "ls" | "fd" | "fdfind" => {
            let places = operands().map(Word::show).filter(|word| word.starts_with(['/', '~', '$']));
            Some(places.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}

/// The texts that a command is given as `<(x)`.
fn processes(command: &SimpleCommand) -> Vec<String> {
    let processes = command.words.iter().skip(1).filter_map(|word| match &*word.pieces {
        [Piece::Process(Some(text))] => Some(Word::of(Piece::Substitution(Some(text.clone())))),
        _ => None,
    });
    processes.map(|word| wrap::shell_text(&[word])).collect()
}

/// The text that `paste` puts between lines; empty for `cat`.
fn delimiter(command: &SimpleCommand) -> String {
    let words: Vec<String> = command.words.iter().skip(1).map(Word::show).collect();
    let glued = |word: &String| {
        let short = word.strip_prefix("-d").or_else(|| word.strip_prefix("-sd"));
        let long = || word.strip_prefix("--d").and_then(|rest| rest.split_once('=')).map(|(_, value)| value);
        short.or_else(long).map(str::to_owned)
    };
    let Some(at) = words.iter().position(|word| glued(word).is_some() || word.starts_with("--d")) else {
        return if command.program_name() == Some("paste") { "\t".to_owned() } else { String::new() };
    };
    let value = words.get(at).and_then(glued).filter(|value| !value.is_empty());
    let value = value.or_else(|| words.get(at + 1).cloned()).unwrap_or_default();
    if value == "\\0" { String::new() } else { value }
}

/// Tells whether input goes out again, at least a part of it.
pub(crate) fn passes_on(command: &SimpleCommand) -> bool {
    let Some(name) = command.program_name() else { return false };
    match name {
        "cat" => {
            command.words.iter().skip(1).all(|word| word.literal().is_some_and(|word| word.starts_with('-')))
        }
        _ => {
            narrows(command)
                || matches!(name, "sort" | "tac" | "tee" | "uniq" | "shuf" | "nl" | "column" | "tr" | "rev")
        }
    }
}

/// Tells whether only a part of all possible output is printed: `grep x`, `find -name x`.
pub(crate) fn narrows(command: &SimpleCommand) -> bool {
    let tests = [
        "name", "path", "regex", "size", "newer", "perm", "user", "group", "empty", "time", "min", "inum",
        "links",
    ];
    match command.program_name() {
        Some(
            "fd" | "fdfind" | "grep" | "egrep" | "fgrep" | "rg" | "ag" | "head" | "tail" | "sed" | "awk"
            | "gawk" | "cut",
        ) => true,
        Some("find") => command.words.iter().enumerate().skip(1).any(|(index, word)| {
            let value = || command.words.get(index + 1).map(Word::show).unwrap_or_default();
            word.literal().is_some_and(|word| {
                word.starts_with('-') && tests.iter().any(|test| word.contains(test)) && value() != "*"
            })
        }),
        _ => false,
    }
}

fn is_echo_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && word.chars().skip(1).all(|c| "neE".contains(c))
}

/// The variables that a command sets by its words: `set -- x`, `read x <<< y`, `printf -v x y`. The folder that git
/// works in is a setting, and is treated as a variable.
pub(crate) fn bound_variables(command: &SimpleCommand) -> Vec<(String, Word)> {
    let words = command.words.as_slice();
    let Some(name) = command.program_name().filter(|name| names::meaning(name).binds) else {
        return Vec::new();
    };
    let operands = words.get(1..).unwrap_or(&[]);
    let literal = |word: &Word| word.literal().map(str::to_owned);
    match name {
        "set" => {
            // Without `--`, they begin at the first word that is not an option.
            let option = |word: &&Word| {
                word.literal().is_some_and(|word| word.starts_with(['-', '+']) && word != "--")
            };
            let at = operands.iter().position(|word| word.literal() == Some("--")).map(|at| at + 1);
            let at = at.unwrap_or_else(|| operands.iter().take_while(option).count());
            positional(operands.get(at..).unwrap_or(&[]))
        }
        "read" | "mapfile" | "readarray" => {
            let given = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
            let names: Vec<String> =
                operands.iter().filter_map(literal).filter(|word| !word.starts_with('-')).collect();
            given.flat_map(|text| read_into(&names, &text.word)).collect()
        }
        "printf" => match operands {
            [option, name, rest @ ..] if option.literal() == Some("-v") => {
                let name = literal(name).unwrap_or_default();
                let first = words.first().cloned().into_iter();
                let plain = SimpleCommand {
                    words: first.chain(rest.iter().cloned()).collect(),
                    ..SimpleCommand::default()
                };
                let whole = printed(&plain).map(Word::text);
                let unknown = Word::of(Piece::Substitution(None));
                let all = rest.iter().cloned().chain(whole).chain([unknown]);
                all.map(|word| (name.clone(), word)).collect()
            }
            _ => Vec::new(),
        },
        "git" if operands.iter().any(|word| word.literal() == Some("config")) => {
            let is_key = |pair: &&[Word]| {
                pair.first()
                    .and_then(Word::literal)
                    .is_some_and(|key| key.eq_ignore_ascii_case("core.worktree"))
            };
            let values = operands.windows(2).filter(is_key).filter_map(|pair| pair.get(1));
            values.map(|value| ("GIT_WORK_TREE".to_owned(), value.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// The values that variables may hold after a text was read into them: all of it, or any word.
pub(crate) fn read_into(names: &[String], text: &Word) -> Vec<(String, Word)> {
    // Split as with any IFS.
    let parted = |c: char| c.is_whitespace() || ":,;|=".contains(c);
    let parts = text.literal().unwrap_or("").split(parted).filter(|part| !part.is_empty());
    // Every name with every part: where these would be very many, each name gets fewer parts, but always the whole
    // text.
    let parts = parts.take(65_536 / names.len().max(1)).map(Word::text);
    let values: Vec<Word> = std::iter::once(text.clone()).chain(parts).collect();
    names.iter().flat_map(|name| values.iter().map(|value| (name.clone(), value.clone()))).collect()
}

/// The variables that `read` names.
pub(crate) fn read_names(command: &SimpleCommand) -> Vec<String> {
    let words = command.words.iter().skip(1).filter_map(Word::literal);
    words.filter(|word| !word.starts_with('-')).map(str::to_owned).collect()
}

/// `$1`, `$2` and so on, and `$@` and `$*`.
pub(crate) fn positional(words: &[Word]) -> Vec<(String, Word)> {
    let mut bound = Vec::new();
    for (index, word) in words.iter().enumerate() {
        for name in [(index + 1).to_string(), "@".to_owned(), "*".to_owned()] {
            bound.push((name, word.clone()));
        }
    }
    bound
}

/// Tells whether a variable names a file or folder that is written because it is set.
pub(crate) fn is_written(variable: &str) -> bool {
    variable.starts_with("GIT_TRACE")
        || variable.ends_with("HISTFILE")
        || matches!(
            variable,
            "SSLKEYLOGFILE"
                | "LLVM_PROFILE_FILE"
                | "GCOV_PREFIX"
                | "NODE_REPL_HISTORY"
                | "NODE_V8_COVERAGE"
                | "NODE_COMPILE_CACHE"
                | "SQLITE_HISTORY"
                | "PYTHONPYCACHEPREFIX"
                | "PYTHON_HISTORY"
                | "CARGO_TARGET_DIR"
                | "CARGO_BUILD_TARGET_DIR"
                | "GOCOVERDIR"
                | "COVERAGE_FILE"
        )
}
