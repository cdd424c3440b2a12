//! Programs in other languages inside words: `python -c`, `perl -e`, `awk`, an alias of git.
//!
//! They are not parsed. Without that, two things can be seen: a call that deletes a folder, with the folder as a
//! literal text, and a shell line as a literal text. Used for denials and for finding what has to be secured: the
//! command itself is asked about in any case, and a call that is hidden better than this is not found.

use crate::script::{Redirect, RedirectKind, SimpleCommand, Word};
use crate::wrap::{self, InnerCommand};
use crate::{embedded_commands, escapes};

/// Options after which an interpreter reads its program from the next word.
const INTERPRETERS: [(&str, &[&str]); 16] = [
    ("python", &["-c"]),
    ("python2", &["-c"]),
    ("python3", &["-c"]),
    ("pypy", &["-c"]),
    ("pypy3", &["-c"]),
    ("perl", &["-e", "-E"]),
    ("ruby", &["-e"]),
    ("node", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("nodejs", &["-e", "--eval", "-p", "--print", "-pe"]),
    ("deno", &["eval", "-p"]),
    ("bun", &["-e", "--eval"]),
    ("php", &["-r", "-B", "-R", "-E"]),
    ("lua", &["-e"]),
    ("Rscript", &["-e"]),
    ("osascript", &["-e"]),
    ("tclsh", &[]),
];

/// Programs whose words may contain a shell line.
const HOLDERS: [&str; 32] = [
    "make",
    "gmake",
    "just",
    "tmux",
    "screen",
    "hyperfine",
    "npx",
    "npm",
    "pnpm",
    "yarn",
    "nix-shell",
    "nix",
    "at",
    "batch",
    "crontab",
    "ed",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "tar",
    "bsdtar",
    "git",
    "vim",
    "vi",
    "nvim",
    "ex",
    "emacs",
    "gdb",
    "sqlite3",
    "expect",
];

/// Calls that delete one file.
const REMOVERS: [&str; 6] = [".unlink()", "os.remove", "os.unlink", "File.delete", "os.rmdir", "unlinkSync"];

/// Calls that go through all files of a folder.
const WALKERS: [&str; 6] = ["walk", "rglob", "glob", "scandir", "readdir", "Find.find"];

/// Calls that delete a folder with all that is in it.
const DESTROYERS: [&str; 11] = [
    "rmtree",
    "remove_tree",
    "rm_rf",
    "rm_r",
    "rmSync",
    "rmdirSync",
    "removeSync",
    "rimraf",
    "fs.rm(",
    "remove_dir_all",
    "Deno.remove",
];

/// Words that show that a program writes a file.
const WRITERS: [&str; 30] = [
    "put_contents",
    "puts",
    "fputs",
    "fwrite",
    ".write",
    "write(",
    "writeLines",
    "sink(",
    "extractall",
    "unpack_archive",
    "link(",
    "move",
    "\"w",
    "'w",
    "\"a\"",
    "'a'",
    "\"ab",
    "'ab",
    "\"r+",
    "'r+",
    "\"x\"",
    "write_text",
    "write_bytes",
    "writeFile",
    "appendFile",
    "WriteStream",
    "File.write",
    "copy",
    "rename",
    "symlink",
];

/// Words with which these languages name the home folder.
const HOMES: [&str; 7] =
    ["expanduser", "Path.home", "homedir", "Dir.home", "env.HOME", "HOME", "getenv(\"HOME"];

/// Programs whose name alone among the texts makes the rest their words.
const PROGRAMS: [&str; 10] = ["rm", "find", "mv", "dd", "chmod", "chown", "shred", "wipefs", "mkfs", "kill"];

/// Names of programs that this module handles.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    INTERPRETERS.into_iter().map(|(name, _)| name).chain(HOLDERS).chain(embedded_commands::names())
}

/// The commands that a program in another language, or with a command among its options, seems to run.
pub(crate) fn inner(name: &str, command: &SimpleCommand) -> Vec<InnerCommand> {
    let mut inner = embedded_commands::inner(name, command);
    inner.extend(in_language(name, command));
    inner
}

/// The interpreter of a name, which may end with a version.
fn interpreter(name: &str) -> Option<&'static (&'static str, &'static [&'static str])> {
    let versioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == name || *known == versioned)
}

/// Tells whether a name is that of an interpreter.
pub(crate) fn is_interpreter(name: &str) -> bool {
    interpreter(name).is_some()
}

fn in_language(name: &str, command: &SimpleCommand) -> Vec<InnerCommand> {
    match interpreter(name) {
        Some((_, options)) => texts(command, options).iter().flat_map(|text| in_each_way(text)).collect(),
        None if HOLDERS.contains(&name) => {
            let spoken = if name == "git" { text_words_start(command) } else { usize::MAX };
            let words = || command.words.iter().take(spoken).skip(1).filter_map(Word::literal);
            let written = words()
                .filter(|word| name.ends_with("awk") && word.contains('>'))
                .filter_map(git_files_written);
            let ran = ran_by_git(command).filter(|_| name == "git");
            let all = || command.words.iter().skip(1).filter_map(Word::literal);
            let greps = name == "git" && all().any(|word| word == "grep");
            let paged = all().filter(|_| greps).filter_map(pager);
            let paged: Vec<InnerCommand> = paged.map(|text| InnerCommand::Text(text.to_owned())).collect();
            let input = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
            let input = input.filter(|_| name != "git").map(input_text);
            let input: Vec<InnerCommand> = input.flat_map(|text| shell_lines(&text)).collect();
            let runs = matches!(name, "tmux" | "screen" | "hyperfine" | "npx" | "npm" | "nix-shell");
            let whole = words().filter(|word| runs && word.contains(' ') && word.contains("rm -"));
            let input: Vec<InnerCommand> =
                whole.map(|word| InnerCommand::Text(word.to_owned())).chain(input).collect();
            let spelled = words().filter(|_| name.ends_with("awk")).filter_map(|word| {
                let spelled = joined_literals(word);
                (spelled != word).then_some(spelled)
            });
            let spelled: Vec<InnerCommand> = spelled.flat_map(|word| shell_lines(&word)).collect();
            words()
                .flat_map(shell_lines)
                .chain(spelled)
                .chain(written)
                .chain(ran)
                .chain(paged)
                .chain(input)
                .collect()
        }
        None => Vec::new(),
    }
}

/// The index at which the words of git begin that are only words: messages and search terms.
fn text_words_start(command: &SimpleCommand) -> usize {
    let sub = crate::programs::normal_words(&command.words).into_iter().nth(1).unwrap_or_default();
    let speaks = matches!(
        sub.as_str(),
        "commit" | "grep" | "log" | "tag" | "merge" | "show" | "shortlog" | "revert" | "stash"
    );
    let at = command.words.iter().position(|word| word.literal() == Some(sub.as_str()));
    at.filter(|_| speaks).unwrap_or(usize::MAX)
}

/// Tells whether the command takes the content of a pipe as a program, or a list of commands.
pub(crate) fn takes_text(command: &SimpleCommand) -> bool {
    let Some(name) = command.program_name() else { return false };
    let operands = || command.words.iter().skip(1).filter_map(Word::literal);
    match name {
        "at" | "batch" | "crontab" | "ed" | "ex" | "gdb" | "sqlite3" => true,
        "make" | "gmake" => operands().any(|word| word == "-f" || word == "-f-" || word == "--file=-"),
        _ => is_interpreter(name) && operands().all(|word| word == "-" || !word.starts_with("-c")),
    }
}

/// The program in `git grep -O'x'`, which shows the files that are found. After some letters the rest of a word is
/// their value.
fn pager(word: &str) -> Option<&str> {
    let long = word.strip_prefix("--op").and_then(|rest| rest.split_once('=')).map(|(_, text)| text);
    let short = || {
        let (letters, text) = word.strip_prefix('-')?.split_once('O')?;
        let valued = |letter: u8| !letter.is_ascii_alphabetic() || b"efABCm".contains(&letter);
        (!letters.bytes().any(valued)).then_some(text)
    };
    long.or_else(short).filter(|text| !text.is_empty())
}

/// The command in `git bisect run x` and `git submodule foreach x`.
fn ran_by_git(command: &SimpleCommand) -> Option<InnerCommand> {
    let words = command.words.as_slice();
    let pair = |pair: &[Word]| {
        let literal = |index: usize| pair.get(index).and_then(Word::literal);
        matches!(
            (literal(0), literal(1)),
            (Some("bisect"), Some("run")) | (Some("submodule"), Some("foreach"))
        )
    };
    let at = words.windows(2).position(pair)? + 2;
    let options = |word: &&Word| word.literal().is_some_and(|word| word.starts_with('-'));
    let rest: Vec<Word> = words.get(at..)?.iter().skip_while(options).cloned().collect();
    match rest.as_slice() {
        // `foreach 'x y'` is a shell line.
        [one] if one.literal().is_some_and(|text| text.contains(' ')) => {
            one.literal().map(|text| InnerCommand::Text(text.to_owned()))
        }
        [] => None,
        _ => Some(InnerCommand::Words(rest)),
    }
}

/// The programs that an interpreter is given: after its option, in the same word, or on its standard input.
fn texts(command: &SimpleCommand, options: &[&str]) -> Vec<String> {
    let (mut texts, mut operand) = (Vec::new(), false);
    let mut words = command.words.iter().skip(1);
    while let Some(word) = words.next() {
        let shown = word.show();
        let glued =
            options.iter().find_map(|option| shown.strip_prefix(option)).filter(|rest| !rest.is_empty());
        // `perl -ne TEXT`: the last letter of several.
        let bundled = shown.starts_with('-')
            && !shown.starts_with("--")
            && shown.len() <= 6
            && shown.chars().skip(1).all(|c| c.is_ascii_alphanumeric())
            && options.iter().any(|option| option.len() == 2 && shown.ends_with(&option[1..]));
        if options.contains(&shown.as_str()) || bundled {
            texts.extend(words.next().map(Word::show));
        } else if let Some(rest) = glued {
            texts.push(rest.trim_start_matches('=').to_owned());
        } else {
            operand |= !shown.starts_with('-') && shown != "/dev/stdin";
        }
    }
    if texts.is_empty() && !operand {
        let input = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
        texts.extend(input.map(input_text));
    }
    texts
}

/// The text of a heredoc, a herestring or `< <(x)`.
fn input_text(redirect: &Redirect) -> String {
    wrap::shell_text(std::slice::from_ref(&redirect.word))
}

/// Commands that a program seems to run, as it is written, and with its texts put together and decoded.
fn in_each_way(text: &str) -> Vec<InnerCommand> {
    let spelled = joined_literals(text);
    let mut inner = read(text);
    if spelled != text {
        inner.extend(read(&spelled));
    }
    inner
}

fn read(text: &str) -> Vec<InnerCommand> {
    let literals = literals(text);
    let mut inner = shell_lines(text);
    // Each of these programs is read with all the texts that follow.
    let programs = literals.iter().filter(|literal| PROGRAMS.contains(literal)).count();
    if programs * literals.len() * 16 > wrap::ROOM {
        return vec![InnerCommand::Endless];
    }
    for (at, literal) in literals.iter().enumerate() {
        if PROGRAMS.contains(literal) {
            let words = literals.iter().skip(at).map(|word| Word::text(*word)).collect();
            inner.push(InnerCommand::Words(words));
        } else if literal.contains(' ') && literal.split([' ', '/']).any(|word| PROGRAMS.contains(&word)) {
            inner.push(InnerCommand::Text((*literal).to_owned()));
        }
    }
    if WRITERS.iter().any(|call| text.contains(call))
        || literals.iter().any(|literal| literal.starts_with('>'))
    {
        inner.extend(git_files_written(text));
    }
    let home = HOMES.iter().any(|word| text.contains(word)).then_some("~");
    let paths = || literals.iter().filter(|literal| !literal.contains(' ')).copied();
    let has = |calls: &[&str]| calls.iter().any(|call| text.contains(call));
    let lost: Vec<&str> = if has(&DESTROYERS) {
        deleted_directly(text).unwrap_or_else(|| paths().chain(home).collect())
    } else if has(&REMOVERS) {
        // File by file, everything of a system or a home folder may be deleted too.
        let whole = |path: &&str| is_in_git(text, path) || (has(&WALKERS) && path.starts_with(['/', '~']));
        paths().filter(whole).chain(home.filter(|_| has(&WALKERS))).collect()
    } else {
        Vec::new()
    };
    if !lost.is_empty() {
        let words = ["rm", "-rf"].into_iter().chain(lost);
        inner.push(InnerCommand::Words(words.map(Word::text).collect()));
    }
    inner
}

/// The deleted paths where each call names its own: `rmtree('x')`. `None` if one of them gets its path from
/// elsewhere.
fn deleted_directly(text: &str) -> Option<Vec<&str>> {
    let mut found = Vec::new();
    for call in DESTROYERS {
        for (at, _) in text.match_indices(call) {
            let rest = text.get(at + call.len()..)?.trim_start_matches(['(', ' ', 'f']);
            // The name of the call where it is imported.
            if rest.is_empty() || rest.starts_with([';', ',', '\n']) {
                continue;
            }
            let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (path, behind) = rest.get(1..)?.split_once(quote)?;
            // `rmtree('a' + b)`, `rmtree(f'{a}')`
            let ends = behind.trim_start().starts_with([')', ',', ';', '\n']) || behind.trim().is_empty();
            if path.contains(['{', '%', '$']) || !ends {
                return None;
            }
            found.push(path);
        }
    }
    (!found.is_empty()).then_some(found)
}

/// Names of files and folders in a `.git`.
const IN_GIT: [&str; 14] = [
    "hooks",
    "config",
    "config.worktree",
    "info",
    "HEAD",
    "index",
    "objects",
    "refs",
    "logs",
    "modules",
    "worktrees",
    "packed-refs",
    "description",
    "exclude",
];

/// Tells whether a path is in a repository's own folder. The bare name is often only left out: `dirs.remove('.git')`.
/// It is meant where the text goes there, copies to it, or names a file in it: `Path('.git', 'config')`, `p +
/// '/config'`.
fn is_in_git(text: &str, path: &str) -> bool {
    let ways =
        ["join(", "') /", "\") /", "')/", "\")/", "rename", "shutil.move", "symlink", "hooks", "chdir"];
    let copies = || text.contains("copy") && !text.contains("ignore");
    let inside = || {
        literals(text).iter().any(|literal| {
            let mut parts = literal.split('/').filter(|part| !part.is_empty());
            parts.next().is_some_and(|part| IN_GIT.contains(&part))
        })
    };
    let joined = || ways.iter().any(|way| text.contains(way)) || copies() || inside();
    path.split('/').any(|part| part == ".git") && (path != ".git" || joined())
}

/// A program of another language with its escapes decoded and its neighbouring literals joined.
pub fn joined_literals(text: &str) -> String {
    concatenated(&escapes::spelled_out(text))
}

/// A text in which literals that are put together are joined: `".g" + "it"`, `".g" . "it"`, `".g" "it"`.
pub(crate) fn concatenated(text: &str) -> String {
    let blanks = [' ', '\t', '\n'];
    let (mut out, mut rest, mut open) = (String::with_capacity(text.len()), text.chars(), None);
    while let Some(c) = rest.next() {
        match open {
            Some(_) if c == '\\' => {
                out.push(c);
                out.extend(rest.next());
                continue;
            }
            None if matches!(c, '"' | '\'') => open = Some(c),
            Some(quote) if quote == c => {
                let next = rest.as_str().trim_start_matches(blanks);
                let next = ["..", "+", "."].iter().find_map(|sign| next.strip_prefix(sign)).unwrap_or(next);
                let mut next = next.trim_start_matches(blanks).chars();
                open = next.next().filter(|c| matches!(c, '"' | '\''));
                if open.is_some() {
                    rest = next;
                    continue;
                }
            }
            Some(_) | None => {}
        }
        out.push(c);
    }
    out
}

/// The files of a repository's own folder that a text names, as if they were written: files in there run.
fn git_files_written(text: &str) -> Option<InnerCommand> {
    let text = &concatenated(text);
    let bare = |literal: &str| literal.trim_start_matches(['>', '+', ' ']).to_owned();
    // Not every language has its texts in quotes, and a text may be a shell line.
    let cut = text.split(|c: char| c.is_whitespace() || "\"'`()[]{}<>|&;,=".contains(c));
    let named = literals(text).into_iter().chain(cut).map(bare).filter(|path| is_in_git(text, path));
    let words: Vec<Word> = ["tee".to_owned()].into_iter().chain(named).map(Word::text).collect();
    (words.len() > 1).then_some(InnerCommand::Words(words))
}

/// Shell lines in the middle of a text: from `rm -` to where they must end.
pub(crate) fn shell_lines(text: &str) -> Vec<InnerCommand> {
    let begins = text.match_indices("rm -").filter(|(at, _)| {
        text.get(..*at).and_then(|before| before.chars().next_back()).is_none_or(|c| !c.is_alphanumeric())
    });
    wrap::capped(begins.map(|(at, _)| {
        let rest = text.get(at..).unwrap_or("");
        let end = rest.find(['"', '\'', '`', ')', '}', '\n', ';', '|', '&', ']']).unwrap_or(rest.len());
        InnerCommand::Text(rest.get(..end).unwrap_or("").to_owned())
    }))
}

/// The texts in quotes of any kind, as far as they can be found without a parser.
pub(crate) fn literals(text: &str) -> Vec<&str> {
    let (mut found, mut open): (Vec<&str>, Option<(char, usize)>) = (Vec::new(), None);
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        match open {
            None if matches!(c, '"' | '\'' | '`') => open = Some((c, at + 1)),
            None => {}
            Some(_) if c == '\\' => escaped = true,
            Some((quote, from)) if c == quote => {
                found.extend(text.get(from..at));
                open = None;
            }
            Some(_) => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(words: &[&str]) -> Vec<String> {
        let command = SimpleCommand {
            words: words.iter().map(|word| Word::text(*word)).collect(),
            ..SimpleCommand::default()
        };
        let shown = |inner: InnerCommand| match inner {
            InnerCommand::Words(words) => words.iter().map(Word::show).collect::<Vec<_>>().join(" "),
            InnerCommand::Text(text) => format!("'{text}'"),
            InnerCommand::Endless => "…".to_owned(),
        };
        inner(words[0], &command).into_iter().map(shown).collect()
    }

    #[test]
    fn what_deletes_by_a_literal_name_is_seen() {
        for (words, expected) in [
            (vec!["python3", "-c", "import shutil; shutil.rmtree('/')"], vec!["rm -rf /"]),
            (vec!["python3.12", "-c", "shutil.rmtree(os.path.expanduser(\"~\"))"], vec!["rm -rf ~ ~"]),
            (vec!["python", "-Sc", "subprocess.run(['rm', '-rf', '/'])"], vec!["rm -rf /"]),
            (vec!["python", "-c", "os.system('rm -rf /')"], vec!["'rm -rf /'", "'rm -rf /'"]),
            (vec!["perl", "-e", "system(qw(rm -rf /))"], vec!["'rm -rf /'"]),
            (vec!["perl", "-MFile::Path", "-e", "remove_tree('/')"], vec!["rm -rf /"]),
            (vec!["node", "--eval=fs.rmSync('/', {recursive: true})"], vec!["rm -rf /"]),
            (vec!["ruby", "-e", "FileUtils.rm_rf Dir.home"], vec!["rm -rf ~"]),
            (vec!["awk", "BEGIN{system(\"rm -rf /\")}"], vec!["'rm -rf /'", "'rm -rf /'"]),
            (vec!["git", "-c", "alias.x=!rm -rf /", "x"], vec!["'rm -rf /'"]),
            (vec!["python3", "-c", "print('hello')"], vec![]),
            (vec!["python3", "script.py"], vec![]),
            (vec!["node", "-e", "console.log(1)"], vec![]),
            (vec!["awk", "{print $1}"], vec![]),
            (vec!["git", "log", "--grep", "confirm -x"], vec![]),
        ] {
            assert_eq!(seen(&words), expected, "{words:?}");
        }
    }
}
