//! Text that bash evaluates a second time: `eval "echo $y"`, `${y@P}`, `BASH_ENV=<(…)`, a shell at the end of a pipe.
//!
//! That text is known only when the line runs, but it is mostly made of texts in the line. So each of them is read as
//! bash too. The commands found so count for denials only ([`SimpleCommand::evaluated`]).

use std::collections::HashSet;

use crate::read::{CommandContext, ReadJob, ScriptReader};
use crate::script::{Piece, RedirectKind, SimpleCommand, Word};
use crate::{composed, env, escapes, foreign, hidden, made_files, predicted_output, programs, shells, wrap};

/// The most values of a variable that are joined into one text.
const MOST_VALUES: usize = 64;

/// The ways in which a line may evaluate texts of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Evaluation {
    /// It may, in a way that is judged by itself.
    Perhaps,
    /// It does, so that it is unknown what runs.
    Surely,
}

impl ScriptReader {
    /// Puts every text of the line into the queue if the line evaluates text. Returns true if there was any.
    pub(crate) fn read_evaluated(&mut self, line: &str) -> bool {
        let made = self.made_files();
        let by_commands =
            self.script.commands.iter().filter_map(|command| self.evaluates(command, &made)).max();
        let by_values =
            self.script.values.iter().filter_map(|(name, values)| by_variable(name, values)).max();
        let by_text = line.contains("@P}").then_some(Evaluation::Surely);
        let found = by_commands.max(by_values).max(by_text).max(self.arithmetic_evaluation(line));
        let Some(found) = found else { return false };
        if found == Evaluation::Surely {
            let why = "a text is evaluated that shows only when the line runs";
            self.floor(crate::script::FloorRule::Dynamic, why);
        }
        let texts = self.texts();
        self.again = Some((self.script.commands.len(), self.script.floors.len()));
        let any = !texts.is_empty();
        for text in texts {
            let around = CommandContext { broken: true, ..CommandContext::default() };
            self.queue.push(ReadJob { text, around, lines: true });
        }
        any
    }

    /// Marks the commands that this reading found, and drops its floors for the line as a whole.
    pub(crate) fn mark_evaluated(&mut self) {
        let Some((commands, floors)) = self.again else { return };
        self.script.commands.iter_mut().skip(commands).for_each(|command| command.evaluated = true);
        self.script.floors.truncate(floors);
    }

    fn evaluates(&self, command: &SimpleCommand, made: &HashSet<&str>) -> Option<Evaluation> {
        let name = command.program_name()?;
        let words = command.words.as_slice();
        let later = |word: &Word| word.literal().is_none();
        let behind = || command.wrapper.and_then(|behind| self.script.commands.get(behind)?.program_name());
        let has = |option: &str| words.iter().any(|word| word.literal() == Some(option));
        match name {
            "eval" | "trap" if words.iter().skip(1).any(later) => Some(Evaluation::Surely),
            "unset" | "let" if words.iter().skip(1).any(later) => Some(Evaluation::Surely),
            "printf" | "test" | "[" if has("-v") && words.iter().any(later) => Some(Evaluation::Surely),
            "source" | "." if words.iter().skip(1).any(is_input) => Some(Evaluation::Surely),
            "source" | "." | "alias" | "read" | "declare" | "typeset" | "local"
                if words.iter().skip(1).any(later) =>
            {
                Some(Evaluation::Perhaps)
            }
            _ if env::splits_later(command) => Some(Evaluation::Surely),
            "make" | "gmake" if input(command).next().is_some() => Some(Evaluation::Perhaps),
            _ if wrap::SHELLS.contains(&name) => {
                let given = shells::shell_words(words);
                let fed = matches!(behind(), Some("xargs" | "parallel" | "find" | "fd" | "fdfind"));
                let told = |redirect: &&crate::script::Redirect| redirect.kind == RedirectKind::Text;
                let mut input = command.redirects.iter().filter(told).peekable();
                let known = input.peek().is_some() && input.all(|text| text.word.literal().is_some());
                let text = given.texts.iter().filter_map(|at| words.get(*at)).any(later);
                // `bash "$f"` runs a file.
                let file_named = words.get(given.operands).is_some_and(later);
                let reads =
                    wrap::reads_commands(command) && !file_named && (command.stage.is_some() || !known);
                let file = words.iter().any(has_process);
                let perhaps = || runs_any(command, made).then_some(Evaluation::Perhaps);
                (text || reads || fed || file).then_some(Evaluation::Surely).or_else(perhaps)
            }
            _ if runs_any(command, made) || composed::pipes_to_shell(command) => Some(Evaluation::Perhaps),
            _ => {
                // `env BASH_ENV=<(…)` may be split into two words.
                let given = words.iter().any(has_process) && (name == "env" || !programs::only_reads(words));
                given.then_some(Evaluation::Perhaps)
            }
        }
    }

    /// The files that the line may write in parts. A file that it writes at once is followed elsewhere.
    fn made_files(&self) -> HashSet<&str> {
        let prints = |command: &&SimpleCommand| matches!(command.program_name(), Some("echo" | "printf"));
        let commands = self.script.commands.as_slice();
        let count = commands.iter().filter(prints).count();
        // `cat <(x) <(y)`, `{ printf x; cat; }`
        let joins = |command: &SimpleCommand| match command.program_name() {
            Some("cat" | "paste") => {
                predicted_output::possible_prints(command).len() > 1
                    || (count > 0 && input(command).next().is_none())
            }
            _ => !composed::texts(command).is_empty(),
        };
        if count < 2 && !commands.iter().any(joins) {
            return HashSet::new();
        }
        let files = self.script.commands.iter().flat_map(|command| {
            let written = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write);
            let named = command.words.iter().skip(1).filter(|_| command.program_name() == Some("tee"));
            written.map(|redirect| &redirect.word).chain(named)
        });
        files.filter_map(bare).collect()
    }

    /// Arithmetic evaluates the values of its variables, and runs commands in the index of an array there.
    fn arithmetic_evaluation(&self, line: &str) -> Option<Evaluation> {
        let compares = [" -eq ", " -ne ", " -lt ", " -le ", " -gt ", " -ge ", " -v "];
        let tests = || line.contains("[[") && compares.iter().any(|operator| line.contains(operator));
        let words = || {
            let commands = self.script.commands.iter();
            let written = commands.flat_map(|command| command.words.iter().chain(input(command)));
            written.chain(self.script.values.values().flatten()).flat_map(|word| word.pieces.iter())
        };
        let dynamic = |piece: &Piece| matches!(piece, Piece::Arithmetic { constant: false });
        // The output of a command, or the content of a file, is not known to be a number.
        let sums = if words().any(dynamic) { sums(line) } else { Vec::new() };
        let places = words().filter_map(|piece| match piece {
            Piece::Operator { how, .. } => Some(how.as_str()).filter(|how| computes_place(how)),
            _ => None,
        });
        if sums.into_iter().chain(places).any(|sum| self.is_foreign(sum)) {
            return Some(Evaluation::Surely);
        }
        let alone = || line.replace("$((", "").contains("((");
        if !words().any(dynamic) && !line.contains("${!") && !alone() && !tests() {
            return None;
        }
        // Without such a text among them, the texts of the line cannot be joined into one that would run.
        let runs = |piece: &Piece| match piece {
            Piece::Text(text) => ["$(", "${", "`"].iter().any(|sign| text.contains(sign)) || &**text == "$",
            _ => false,
        };
        words().any(runs).then_some(Evaluation::Surely)
    }

    /// Tells whether a sum contains the output of a command, or a variable that the line gives such a text.
    fn is_foreign(&self, sum: &str) -> bool {
        let later = |word: &Word| {
            word.pieces.iter().any(|piece| matches!(piece, Piece::Substitution(_) | Piece::Process(_)))
        };
        let given = |name: &str| self.script.values.get(name).is_some_and(|values| values.iter().any(later));
        let reads = |name: &str| {
            let mut commands = self.script.commands.iter();
            commands.any(|command| {
                command.program_name().is_some_and(wrap::reads_lines)
                    && predicted_output::read_names(command).iter().any(|read| read == name)
            })
        };
        let mut names = sum.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|name| !name.is_empty());
        sum.contains("$(") || sum.contains('`') || names.any(|name| given(name) || reads(name))
    }

    /// Every text of the line that may be evaluated.
    fn texts(&self) -> Vec<String> {
        let mut texts = TextSet::default();
        // A text may be printed in parts.
        let (mut printed, mut stray): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
        for command in &self.script.commands {
            let name = command.program_name().unwrap_or("");
            let words = command.words.iter().skip(1).chain(input(command));
            // `{ x; cat; } <<< y`: the input of a group.
            stray.extend(input(command).filter(|_| command.broken).map(Word::show));
            let set = command.assignments.iter().filter_map(|set| set.value.as_ref());
            words.chain(set).for_each(|word| self.filled(word).iter().for_each(|text| texts.add(text)));
            match name {
                "echo" | "printf" => {
                    let readings = predicted_output::possible_prints(command);
                    readings.iter().for_each(|text| texts.add(text));
                    printed.extend(readings.into_iter().next());
                    // Surplus words go through the format again.
                    let given: Vec<String> = command.words.iter().skip(2).map(Word::show).collect();
                    texts.add(&given.join(" "));
                }
                "eval" => {
                    let mut whole = Word::default();
                    for word in command.words.iter().skip(1) {
                        word.pieces.iter().for_each(|piece| match piece {
                            Piece::Text(text) => whole.push_text(text),
                            other => whole.pieces.push(other.clone()),
                        });
                        whole.push_text(" ");
                    }
                    self.filled(&whole).iter().for_each(|text| texts.add(text));
                }
                "cat" | "paste" => {
                    let readings = predicted_output::possible_prints(command);
                    readings.iter().for_each(|text| texts.add(text));
                    printed.extend(readings.into_iter().next_back());
                }
                _ => {
                    let composed = composed::texts(command);
                    composed.iter().for_each(|text| texts.add(text));
                    printed.extend(composed.into_iter().next());
                }
            }
        }
        stray.dedup();
        // Groups and substitutions are not read in the order in which they print.
        let backwards: Vec<String> = printed.iter().rev().cloned().collect();
        for parts in [[printed.as_slice(), &stray].concat(), [stray.as_slice(), &printed].concat(), backwards]
        {
            predicted_output::joined_parts(&parts).iter().for_each(|text| texts.add(text));
        }
        for values in self.script.values.values() {
            let literals: Vec<&str> = values.iter().filter_map(Word::literal).collect();
            literals.iter().for_each(|text| texts.add(text));
            if (2..=MOST_VALUES).contains(&literals.len()) {
                texts.add(&literals.join(" "));
                texts.add(&literals.concat());
            }
        }
        if self.script.commands.iter().any(env::splits_later) {
            let split = |text: &String| env::split(&Word::text(text.as_str()));
            let cut: Vec<Vec<Word>> = texts.found.iter().filter_map(split).collect();
            cut.iter().for_each(|words| texts.one(&wrap::shell_text(words)));
        }
        texts.found
    }

    /// A word with the values that its variables have in the line; an unknown part stays as it is.
    fn filled(&self, word: &Word) -> Vec<String> {
        if let Some(text) = word.literal() {
            return vec![text.to_owned()];
        }
        let values = |name: &str| self.script.values.get(name.split('[').next().unwrap_or(name));
        // `$(x)` and `<(x)` alone: the commands in there are listed by themselves.
        let is_said = |piece: &Piece| match piece {
            Piece::Text(text) => !text.trim().is_empty(),
            Piece::Variable { name, .. } | Piece::Operator { name, .. } => values(name).is_some(),
            _ => false,
        };
        if !word.pieces.iter().any(is_said) {
            return Vec::new();
        }
        let count = word.pieces.iter().filter_map(|piece| match piece {
            Piece::Variable { name, .. } | Piece::Operator { name, .. } => values(name).map(Vec::len),
            _ => None,
        });
        let count = count.max().unwrap_or(0).clamp(1, MOST_VALUES);
        let value = |name: &str, nth: usize| {
            let all = values(name).map_or(&[][..], Vec::as_slice);
            all.get(nth).or(all.last()).and_then(Word::literal).map(str::to_owned)
        };
        let piece = |piece: &Piece, nth: usize| match piece {
            Piece::Text(text) => text.to_string(),
            Piece::Variable { name, .. } => value(name, nth).unwrap_or_else(|| format!("${{{name}}}")),
            Piece::Operator { name, how } => value(name, nth).unwrap_or_else(|| format!("${{{name}{how}}}")),
            Piece::Substitution(Some(text)) => format!("$({text})"),
            Piece::Process(Some(text)) => format!("<({text})"),
            Piece::Glob(c) => c.to_string(),
            Piece::Tilde(user) => format!("~{user}"),
            Piece::Arithmetic { .. } => "0".to_owned(),
            Piece::Substitution(None) | Piece::Process(None) | Piece::Brace { .. } => "x".to_owned(),
        };
        (0..count).map(|nth| word.pieces.iter().map(|one| piece(one, nth)).collect()).collect()
    }
}

/// The texts in `$((…))` and `$[…]`; for one without an end, the rest of the line.
fn sums(line: &str) -> Vec<&str> {
    let parts = |sign: &'static str, open: char, close: char| {
        line.match_indices(sign).map(move |(at, _)| {
            let text = line.get(at + sign.len()..).unwrap_or_default();
            let mut depth = sign.len() - 1;
            let end = text.find(|c: char| {
                depth += usize::from(c == open);
                depth -= usize::from(c == close);
                depth == 0
            });
            end.and_then(|end| text.get(..end)).unwrap_or(text)
        })
    };
    parts("$((", '(', ')').chain(parts("$[", '[', ']')).collect()
}

/// Tells whether an operator of a variable computes a place in it: `${a[i]}`, `${x:i}`.
fn computes_place(how: &str) -> bool {
    let index = how.starts_with('[') && !how.starts_with("[@]") && !how.starts_with("[*]");
    let part = how.strip_prefix(':').is_some_and(|rest| !rest.starts_with(['-', '=', '+', '?']));
    index || part
}

/// The text on the standard input of a command.
fn input(command: &SimpleCommand) -> impl Iterator<Item = &Word> {
    let texts = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
    texts.map(|redirect| &redirect.word)
}

/// Tells whether a word names the input of a command.
fn is_input(word: &Word) -> bool {
    let named = |text: &str| {
        text == "/dev/stdin"
            || text.starts_with("/dev/fd/")
            || (text.starts_with("/proc/") && text.contains("/fd/"))
    };
    word.literal().is_some_and(named)
}

/// The path of a file, without a part that means the folder it is in.
fn bare(word: &Word) -> Option<&str> {
    word.literal().map(|text| text.trim_start_matches("./"))
}

/// Tells whether a command runs one of these files: `sh x`, `. ./x`, `./x`, `bash < x`.
fn runs_any(command: &SimpleCommand, files: &HashSet<&str>) -> bool {
    let name = command.program_name().unwrap_or("");
    let evaluates = wrap::SHELLS.contains(&name) || matches!(name, "source" | ".");
    let read = command.redirects.iter().filter(|redirect| evaluates && redirect.kind == RedirectKind::Read);
    let words = command.words.iter().take(if evaluates { usize::MAX } else { 1 });
    if made_files::implicit_files(name).iter().any(|file| files.contains(file)) {
        return true;
    }
    words.chain(read.map(|redirect| &redirect.word)).filter_map(bare).any(|file| files.contains(file))
}

fn has_process(word: &Word) -> bool {
    word.pieces.iter().any(|piece| matches!(piece, Piece::Process(_)))
}

/// The effect of a variable whose value, or the file that it names, is run by a program that reads it.
fn by_variable(name: &str, values: &[Word]) -> Option<Evaluation> {
    let file = matches!(name, "BASH_ENV" | "ENV" | "PYTHONSTARTUP");
    let text = matches!(name, "PERL5DB" | "PERL5OPT" | "RUBYOPT" | "NODE_OPTIONS" | "PROMPT_COMMAND");
    let later = values.iter().any(|word| word.literal().is_none());
    match name {
        _ if file && later => Some(Evaluation::Surely),
        _ if name.starts_with("BASH_FUNC_") => Some(Evaluation::Surely),
        _ if text => Some(Evaluation::Perhaps),
        _ => None,
    }
}

/// Texts to read, each once.
#[derive(Default)]
struct TextSet {
    found: Vec<String>,
    seen: HashSet<String>,
}

impl TextSet {
    /// Adds a text, with the other texts that a program may read in it: escapes, recipes, strings of another
    /// language.
    fn add(&mut self, text: &str) {
        self.one(text);
        if text.contains('\\') {
            let plain = text.replace("\\n", "\n").replace("\\t", "\t");
            for plain in [&escapes::spelled_out(&plain), &plain] {
                self.parts(plain);
                self.one(plain);
            }
        }
        self.parts(text);
    }

    fn parts(&mut self, text: &str) {
        foreign::literals(text).into_iter().for_each(|text| self.one(text));
        hidden::subscripts(text).iter().for_each(|text| self.one(text));
        if text.contains("$(shell ") {
            self.one(&text.replace("$(shell ", "$("));
        }
        if let Some((_, body)) = text.split_once("()") {
            self.one(body);
        }
        if let Some((_, value)) = text.split_once('=') {
            self.one(value);
        }
        for recipe in text.lines().filter_map(made_files::recipe) {
            self.one(recipe);
        }
    }

    fn one(&mut self, text: &str) {
        let text = text.trim_start_matches([';', '&', '|', ')', '}', ' ', '\t', '\n', '!', '@']).trim_end();
        let option = text.starts_with('-') && !text.contains(char::is_whitespace);
        if option || !text.contains(char::is_alphabetic) || !self.seen.insert(text.to_owned()) {
            return;
        }
        self.found.push(text.to_owned());
    }
}
