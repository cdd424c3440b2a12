//! The positions in a command where the name of a file may stand.
//!
//! A name in a position where a program takes plain files is data, whatever the name is. Anywhere else it may become
//! code: a program to start, text for an interpreter, the value of an option that is run. All such positions of all
//! programs cannot be listed, so the good ones are: a whole word, or the part after `--file=` and similar options, of
//! a simple command whose program is not a shell, not a wrapper that would start the name, and not an interpreter
//! that would read it as its program.

use super::tables::{
    ALWAYS_FED, CODE_LETTERS, CODE_WORDS, COMMANDED, FILE_OPTIONS, FILE_TESTS, GIT_NEVER, INTERPRETERS,
    Interpreter, NEVER, PLAIN_LETTERS, READ_DATA, RUN_FILES, RUN_MODULES, RUNNER_FLAGS, RUNNERS, SHELLS,
    TAKES_VARIABLES,
};
use lathe_bash::{Piece, RedirectKind, Script, SimpleCommand, Word};

/// Says why the name of a file may not stand where the variable `name` stands. `many` is true where it stands for all
/// files.
pub(super) fn check(script: &Script, name: &str, many: bool) -> Result<(), &'static str> {
    let holder = Holder { name, many };
    // The arguments of an inner shell are its own, and its text is checked by itself.
    let named =
        script.values.iter().filter(|(name, _)| name.starts_with(|c: char| c.is_alphabetic() || c == '_'));
    if named.flat_map(|(_, values)| values).any(|word| holder.is_in(word)) {
        return Err(
            "it becomes the value of a variable, which may run later: name the file in the command itself",
        );
    }
    let assigned = |command: &SimpleCommand| {
        command.assignments.iter().filter_map(|one| one.value.as_ref()).any(|word| holder.is_in(word))
    };
    if script.commands.iter().any(assigned) {
        return Err("it becomes the value of a variable, which a program may run");
    }
    let mut found = false;
    for (at, command) in script.commands.iter().enumerate() {
        let in_words = command.words.iter().any(|word| holder.is_in(word));
        let in_redirects = command.redirects.iter().any(|redirect| holder.is_in(&redirect.word));
        if !in_words && !in_redirects {
            continue;
        }
        found = true;
        if command.broken {
            return Err("the command cannot be read there");
        }
        let text = |redirect: &lathe_bash::Redirect| {
            redirect.kind == RedirectKind::Text && holder.is_in(&redirect.word)
        };
        if command.redirects.iter().any(text) {
            return Err("it is text that a command reads");
        }
        if in_redirects && command.program_name().is_none_or(|program| is_fed(program, command)) {
            return Err("the command runs what it reads");
        }
        // The command that a known wrapper starts is checked by itself.
        let inner = script
            .commands
            .iter()
            .any(|inner| inner.wrapper == Some(at) && inner.words.iter().any(|word| holder.is_in(word)));
        if !in_words || (inner && is_plain_wrapper(command)) {
            continue;
        }
        if is_plain_wrapper(command) {
            return Err("a program would be started by the name of a file");
        }
        words(&command.words, &holder)?;
    }
    match found {
        true => Ok(()),
        false => Err("it is not an argument of a command"),
    }
}

/// Says why a template with placeholders may not contain a command that runs the output of another.
pub(super) fn check_others(script: &Script) -> Result<(), &'static str> {
    for command in &script.commands {
        let Some(program) = command.program_name() else {
            let started = !command.words.is_empty();
            match started {
                true => return Err("a program of it is only known when it runs"),
                false => continue,
            }
        };
        if matches!(
            program,
            "eval" | "source" | "." | "xargs" | "parallel" | "entr" | "mapfile" | "readarray" | "read"
        ) {
            return Err("it runs what it reads");
        }
        let piped = command.stage.is_some();
        if piped && is_fed(program, command) {
            return Err("it has a shell or an interpreter that runs what it reads");
        }
    }
    Ok(())
}

/// The variable that stands for the name of a file.
struct Holder<'a> {
    name: &'a str,
    /// True if it becomes as many words as there are files.
    many: bool,
}

impl Holder<'_> {
    fn is_in(&self, word: &Word) -> bool {
        word.pieces.iter().any(|piece| match piece {
            Piece::Variable { name, .. } | Piece::Operator { name, .. } => **name == *self.name,
            Piece::Substitution(Some(text)) | Piece::Process(Some(text)) => text.contains(self.name),
            Piece::Text(_)
            | Piece::Substitution(None)
            | Piece::Process(None)
            | Piece::Arithmetic { .. }
            | Piece::Glob(_)
            | Piece::Brace { .. }
            | Piece::Tilde(_) => false,
        })
    }

    /// True if the word is the name of the file and nothing else.
    fn is(&self, word: &Word) -> bool {
        matches!(&*word.pieces, [Piece::Variable { name, .. }] if **name == *self.name)
    }
}

/// Tells whether a command is a wrapper that starts the command after it and does nothing else with its words.
fn is_plain_wrapper(command: &SimpleCommand) -> bool {
    let plain = [
        "nice",
        "ionice",
        "timeout",
        "time",
        "env",
        "nohup",
        "stdbuf",
        "setsid",
        "chrt",
        "taskset",
        "command",
        "sudo",
        "doas",
        "caffeinate",
        "!",
    ];
    let splits = |word: &Word| {
        let text = word.show();
        text.starts_with("--s") || (text.starts_with('-') && !text.starts_with("--") && text.contains('S'))
    };
    command.program_name().is_some_and(|program| plain.contains(&program))
        && !(command.program_name() == Some("env") && command.words.iter().any(splits))
}

fn interpreter(program: &str) -> Option<&'static Interpreter> {
    let plain = program.to_lowercase();
    let plain = plain.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    INTERPRETERS.iter().find(|one| one.names.contains(&plain) || one.names.contains(&program))
}

/// Tells whether a program runs its standard input.
fn is_fed(program: &str, command: &SimpleCommand) -> bool {
    if READ_DATA.contains(&program) || ALWAYS_FED.contains(&program) {
        return ALWAYS_FED.contains(&program);
    }
    let Some(kind) = interpreter(program) else { return SHELLS.contains(&program) };
    script_at(kind, &command.words).is_none()
}

/// The end of the text or the file that an interpreter runs: the index of the first word that is only data. `None` if
/// there is no such thing in plain words.
fn script_at(kind: &Interpreter, words: &[Word]) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = words.get(at)?.literal()?;
        // Standard input is the script.
        if matches!(word, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") {
            return None;
        }
        let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            return Some(at + 1);
        };
        if word == "--" {
            words.get(at + 1)?.literal()?;
            return Some(at + 2);
        }
        if letters.starts_with('-') {
            // `--check` and similar options; an option that takes a value has it after `=`.
            let plain =
                ["--check", "--posix", "--sandbox", "--null", "--quiet", "--silent", "--regexp-extended"];
            if !plain.contains(&word) && !word.contains('=') {
                return None;
            }
            at += 1;
            continue;
        }
        let last = letters.chars().next_back()?;
        let body = letters.get(..letters.len() - last.len_utf8())?;
        if !body.chars().all(|c| kind.flags.contains(c) || kind.looks.contains(c)) {
            return None;
        }
        match last {
            c if kind.code.contains(c) => {
                words.get(at + 1)?.literal()?;
                return Some(at + 2);
            }
            c if kind.values.contains(c) => at += 2,
            c if kind.flags.contains(c) || kind.looks.contains(c) => at += 1,
            _ => return None,
        }
    }
}

/// Tells whether an interpreter only checks the one file that follows.
fn only_looks(kind: &Interpreter, words: &[Word], holder: &Holder<'_>) -> bool {
    let Some(at) = words.iter().position(|word| holder.is(word)) else { return false };
    let looks = |word: &Word| {
        let text = word.literal().unwrap_or_default();
        let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        text == "--check" && kind.looks == "c"
            || letters.is_some_and(|letters| {
                letters.contains(|c| kind.looks.contains(c))
                    && letters.chars().all(|c| kind.looks.contains(c) || kind.flags.contains(c))
            })
    };
    at == 2 && words.get(1).is_some_and(looks)
}

/// Checks the words of one command.
fn words(all: &[Word], holder: &Holder<'_>) -> Result<(), &'static str> {
    const PROGRAM: &str = "a program would be started by the name of a file";
    const CODE: &str = "the name of a file would be read as code there";
    let Some(first) = all.first() else { return Ok(()) };
    if holder.is_in(first) {
        return Err(PROGRAM);
    }
    let Some(program) = first.literal().map(|path| path.rsplit('/').next().unwrap_or(path)) else {
        return Err("its program is only known when it runs");
    };
    if NEVER.contains(&program) {
        return Err("that program runs its words, or keeps them for something that does");
    }
    if RUN_FILES.contains(&program) || program.starts_with("qemu-") || program.starts_with("ld-linux") {
        return Err("that program runs a file it is given, or takes its name for a target or a setting");
    }
    if is_unsafe(program, all) {
        return Err("with that option the program starts what the file names");
    }
    if is_evaluated(program, all, holder) {
        return Err(
            "bash would take the name of a file for a variable or an expression, and run what is in it",
        );
    }
    for (at, word) in all.iter().enumerate().filter(|(_, word)| holder.is_in(word)) {
        if holder.is(word) {
            let before =
                at.checked_sub(1).and_then(|before| all.get(before)).map(Word::show).unwrap_or_default();
            let looks = interpreter(program).is_some_and(|kind| only_looks(kind, all, holder));
            if at > 1 && !looks && takes_code(program, &before) {
                return Err(CODE);
            }
        } else {
            let [Piece::Text(text), Piece::Variable { .. }] = &*word.pieces else {
                return Err("it has to be a whole word by itself");
            };
            let option = text.strip_suffix('=').unwrap_or_default();
            if !FILE_OPTIONS.contains(&option) {
                return Err(
                    "it has to be a whole word by itself, or stand behind an option that takes a file, as `--file=`",
                );
            }
        }
    }
    let at = all.iter().position(|word| holder.is_in(word)).unwrap_or_default();
    if COMMANDED.contains(&program) && at == 1 {
        return Err(PROGRAM);
    }
    if program == "git"
        && all.iter().take(at).any(|word| word.literal().is_some_and(|w| GIT_NEVER.contains(&w)))
    {
        return Err(CODE);
    }
    if let Some((_, subs)) = RUNNERS.iter().find(|(name, _)| *name == program) {
        let sub = all.get(1).and_then(Word::literal);
        if subs.is_empty() || sub.is_some_and(|sub| subs.contains(&sub)) {
            let mut start = if subs.is_empty() { 1 } else { 2 };
            while all.get(start).and_then(Word::literal).is_some_and(|word| RUNNER_FLAGS.contains(&word)) {
                start += 1;
            }
            let plain = |word: &Word| word.literal().is_some_and(|word| !word.starts_with('-'));
            if !all.get(start).is_some_and(plain) {
                return Err(PROGRAM);
            }
            return words(all.get(start..).unwrap_or_default(), holder);
        }
    }
    if let Some(kind) = interpreter(program) {
        if only_looks(kind, all, holder) || inner_shell(program, all, holder)? {
            return Ok(());
        }
        if kind.names.contains(&"python") {
            python(all)?;
        }
        return match script_at(kind, all) {
            Some(data) if data <= at => Ok(()),
            Some(_) | None => Err("the interpreter would run the file, or read its name as code"),
        };
    }
    // A program that another one starts, as an unknown wrapper would.
    let started = |word: &Word| {
        word.literal()
            .map(|path| path.rsplit('/').next().unwrap_or(path))
            .is_some_and(|name| SHELLS.contains(&name) || NEVER.contains(&name) && name.len() > 3)
    };
    match all.iter().take(at).skip(1).any(started) {
        true => Err("a shell or another wrapper stands before it"),
        false => Ok(()),
    }
}

/// Says why these words of Python may not be given the name of a file.
fn python(all: &[Word]) -> Result<(), &'static str> {
    let (mut own, mut at) = (String::new(), 1);
    // Its own options end where the script, the text or the module begins.
    while let Some(letters) = all.get(at).and_then(Word::literal).and_then(|word| word.strip_prefix('-')) {
        if !letters.starts_with('-') {
            own.push_str(letters);
        }
        if letters.ends_with(['m', 'c']) {
            break;
        }
        at += if letters.ends_with(['W', 'X']) { 2 } else { 1 };
    }
    let named = all.get(at + 1).and_then(Word::literal).filter(|_| own.ends_with('m'));
    if named.and_then(|name| name.split('.').next()).is_some_and(|name| RUN_MODULES.contains(&name)) {
        return Err("that module runs the file");
    }
    // Variables keep it from importing a file of the workspace.
    match own.contains('E') && !own.contains(['I', 'P']) {
        true => Err("`-E` lets Python import files of the workspace: write `-I`"),
        false => Ok(()),
    }
}

/// Tells whether an option lets a formatter of text start programs: `groff -U`, `pdflatex --shell-escape`.
fn is_unsafe(program: &str, all: &[Word]) -> bool {
    let formatter = ["groff", "troff", "nroff", "grog", "pic", "gpic"].contains(&program);
    all.iter().skip(1).filter_map(Word::literal).any(|word| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        formatter && letters.is_some_and(|letters| letters.contains('U'))
            || matches!(
                word.trim_start_matches('-'),
                "shell-escape" | "enable-write18" | "unsafe" | "shell-restricted"
            )
    })
}

/// Tells whether bash evaluates the name of a file: `test -v {file}`, `printf -v {file}`, `unset {file}`.
fn is_evaluated(program: &str, all: &[Word], holder: &Holder<'_>) -> bool {
    let literal = |at: usize| all.get(at).and_then(Word::literal);
    match program {
        // Several names could contain a test of their own.
        "test" | "[" => {
            let is_file = |(at, word): (usize, &Word)| {
                let before = at.checked_sub(1).and_then(literal);
                !holder.is_in(word) || before.is_some_and(|before| FILE_TESTS.contains(&before))
            };
            holder.many || !all.iter().enumerate().all(is_file)
        }
        // The format comes first, so that no name is an option.
        "printf" => {
            let format = if literal(1) == Some("--") { literal(2) } else { literal(1) };
            format.is_none_or(|format| format.starts_with('-'))
        }
        _ => TAKES_VARIABLES.contains(&program),
    }
}

/// Tells whether the option before a word may take it as code.
fn takes_code(program: &str, option: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        return !long.is_empty()
            && !long.contains('=')
            && !long.starts_with("no-")
            && long.split('-').any(|part| CODE_WORDS.contains(&part))
            && (program, long) != ("vitest", "run");
    }
    let Some(letters) = option.strip_prefix('-') else { return false };
    if matches!(letters, "exec" | "execdir" | "ok" | "okdir") {
        return true;
    }
    let plain = |c: char| PLAIN_LETTERS.iter().any(|(name, letters)| *name == program && letters.contains(c));
    letters.chars().next_back().is_some_and(|last| CODE_LETTERS.contains(last) && !plain(last))
}

/// Tells whether the words are `sh -c 'TEXT' NAME {file}`, in whose text the file is in an allowed position.
fn inner_shell(program: &str, all: &[Word], holder: &Holder<'_>) -> Result<bool, &'static str> {
    let is_c = |word: &Word| {
        word.literal().is_some_and(|word| {
            word.strip_prefix('-').is_some_and(|letters| {
                letters.ends_with('c') && letters.chars().all(|c| "euxvlc".contains(c))
            })
        })
    };
    if !SHELLS.contains(&program) || !all.get(1).is_some_and(is_c) {
        return Ok(false);
    }
    let Some(text) = all.get(2).and_then(Word::literal) else {
        return Err("a shell would read the name of a file as a command");
    };
    let plain = all.get(3).is_some_and(|word| word.literal().is_some());
    if !plain || all.iter().skip(4).any(|word| holder.is_in(word) && !holder.is(word)) {
        return Err("a shell would read the name of a file as something else than an argument");
    }
    let mut inner = text.to_owned();
    for (spelled, place) in
        [("\"$1\"", "{file}"), ("\"${1}\"", "{file}"), ("\"$@\"", "{files}"), ("\"${@}\"", "{files}")]
    {
        inner = inner.replace(spelled, place);
    }
    match super::Template::parse(&inner) {
        Ok(_) => Ok(true),
        Err(_) => Err("the text of the inner shell would run the name of a file"),
    }
}
