//! Commands and files in the programs and options of others: `sed 'w x'`, `awk '{print > f}' f=x`, `split
//! --filter=…`, `mapfile -C …`.
//!
//! A file that such a text writes becomes a `tee` after the command, so that every rule about writing that file holds
//! for this way to write it too.

use crate::script::{RedirectKind, SimpleCommand, Word};
use crate::wrap::{self, InnerCommand};

/// Options whose value is a command, by program.
const COMMANDS: [(&str, &[&str]); 12] = [
    ("split", &["--filter"]),
    ("sort", &["--compress-program"]),
    ("tar", TAR),
    ("bsdtar", TAR),
    ("gtar", TAR),
    ("rsync", &["-e", "--rsh", "--rsync-path"]),
    ("mapfile", &["-C"]),
    ("readarray", &["-C"]),
    ("go", &["-exec", "-toolexec", "-vettool"]),
    ("zip", &["-TT", "--unzip-command"]),
    ("man", &["-P", "--pager"]),
    ("ctest", &["--launch"]),
];

const TAR: &[&str] = &[
    "--to-command",
    "--use-compress-program",
    "-I",
    "--info-script",
    "--new-volume-script",
    "-F",
    "--rsh-command",
    "--checkpoint-action",
];

/// The most candidates for the name of a file in a script that cannot be read.
const MOST: usize = 64;

/// Names of programs that this module handles.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    COMMANDS.into_iter().map(|(name, _)| name).chain(["gsed", "sed"])
}

/// The commands that the words of such a program run, and the files that they write.
pub(crate) fn inner(name: &str, command: &SimpleCommand) -> Vec<InnerCommand> {
    let mut found = match name {
        "sed" | "gsed" => sed(command),
        "awk" | "gawk" | "mawk" | "nawk" => awk(command),
        _ => Vec::new(),
    };
    let options = COMMANDS.iter().filter(|(known, _)| *known == name).flat_map(|(_, options)| *options);
    found.extend(options.flat_map(|option| values(&command.words, option)).map(|text| {
        let text = text.strip_prefix("exec=").unwrap_or(&text).to_owned();
        InnerCommand::Text(text)
    }));
    wrap::capped(found.into_iter())
}

/// The values of an option: the next word, the rest of the word after a letter, or the text after `=`. A long one may
/// be abbreviated.
fn values(words: &[Word], option: &str) -> Vec<String> {
    let shown: Vec<String> = words.iter().map(Word::show).collect();
    let value = |(index, word): (usize, &String)| {
        let (name, glued) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word.as_str(), None),
        };
        let short = option.len() == 2;
        if name == option || (option.starts_with("--") && name.len() > 4 && option.starts_with(name)) {
            return glued.map(str::to_owned).or_else(|| shown.get(index + 1).cloned());
        }
        let rest = word.strip_prefix(option).filter(|rest| short && !rest.is_empty())?;
        Some(rest.to_owned())
    };
    shown.iter().enumerate().skip(1).filter_map(value).collect()
}

/// A file that is written.
fn write(file: &str) -> Option<InnerCommand> {
    let file = file.trim();
    if file.is_empty() || matches!(file, "/dev/stdout" | "/dev/stderr" | "/dev/null") {
        return None;
    }
    // A name that is known only later is read again, so that the values of its variables are seen.
    if file.contains('$') {
        return Some(InnerCommand::Text(format!("tee \"{}\"", file.replace('"', ""))));
    }
    Some(InnerCommand::Words(["tee", file].into_iter().map(Word::text).collect()))
}

fn sed(command: &SimpleCommand) -> Vec<InnerCommand> {
    let read = read_sed(&sed_script(command));
    let mut inner: Vec<InnerCommand> = read.files.iter().filter_map(|file| write(file)).collect();
    inner.extend(read.commands.into_iter().map(InnerCommand::Text));
    inner
}

/// The script of `sed`: all its expressions, or its first operand.
fn sed_script(command: &SimpleCommand) -> String {
    let (mut scripts, mut operand) = (Vec::new(), None);
    let mut words = command.words.iter().skip(1).map(Word::show);
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            if "expression".starts_with(name) {
                scripts.extend(value.map(str::to_owned).or_else(|| words.next()));
            } else if value.is_none() && ("file".starts_with(name) || "line-length".starts_with(name)) {
                words.next();
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            // After `i` the rest is the suffix of a backup; after the other letters it is their value.
            let Some(at) = letters.find(['e', 'f', 'l', 'i']) else { continue };
            let rest = letters.get(at + 1..).unwrap_or_default();
            let value = if rest.is_empty() && !letters.ends_with('i') { words.next() } else { None };
            if letters.get(at..=at) == Some("e") {
                scripts.extend(value.or_else(|| Some(rest.to_owned())));
            }
        } else {
            operand.get_or_insert(word);
        }
    }
    // A script that comes in on the standard input.
    let input = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
    let by_input = command.words.iter().any(|word| word.show().contains("-f"));
    let input = input.filter(|_| by_input).map(|redirect| redirect.word.show());
    if scripts.is_empty() {
        scripts.extend(operand);
    }
    scripts.into_iter().chain(input).collect::<Vec<_>>().join("\n")
}

/// The files and commands that a script of `sed` writes and runs.
#[derive(Debug, Default, PartialEq, Eq)]
struct SedEffects {
    files: Vec<String>,
    commands: Vec<String>,
}

fn read_sed(script: &str) -> SedEffects {
    let mut read = SedEffects::default();
    if parse_sed(script, &mut read).is_none() {
        // Where it cannot be read, any text after the letter may be a file.
        let letters = script.match_indices(['w', 'W']).take(MOST);
        let lines = letters.filter_map(|(at, _)| script.get(at + 1..)?.lines().next());
        read.files.extend(lines.map(str::to_owned));
    }
    read
}

/// Reads commands one after the other; `None` where one is not known.
fn parse_sed(script: &str, read: &mut SedEffects) -> Option<()> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | '{' | '}'));
        rest = address(rest)?.trim_start();
        if let Some(second) = rest.strip_prefix(',') {
            rest = address(second.trim_start().trim_start_matches(['+', '~']))?.trim_start();
        }
        rest = rest.trim_start_matches(['!', ' ']);
        let Some(command) = rest.chars().next() else { return Some(()) };
        rest = rest.get(command.len_utf8()..)?;
        let line = rest.lines().next().unwrap_or_default();
        match command {
            '{' | '}' | ';' | '\n' => {}
            'w' | 'W' => {
                read.files.push(line.to_owned());
                rest = rest.get(line.len()..)?;
            }
            'e' => {
                read.commands.push(line.trim().to_owned());
                rest = rest.get(line.len()..)?;
            }
            'r' | 'R' | '#' => rest = rest.get(line.len()..)?,
            'a' | 'i' | 'c' => rest = after_text(rest),
            ':' | 'b' | 't' | 'T' | 'v' => {
                let end = rest.find([';', '\n', '}']).unwrap_or(rest.len());
                rest = rest.get(end..)?;
            }
            's' => {
                let mark = rest.chars().next()?;
                let (_, after) = field(rest.get(mark.len_utf8()..)?, mark)?;
                let (to, after) = field(after, mark)?;
                let flags = after.find(|c: char| !c.is_ascii_digit() && !"gpiIMme".contains(c));
                let (flags, after) = after.split_at(flags.unwrap_or(after.len()));
                if flags.contains('e') {
                    read.commands.push(to.to_owned());
                }
                rest = after;
                if let Some(file) = after.strip_prefix('w') {
                    let line = file.lines().next().unwrap_or_default();
                    read.files.push(line.to_owned());
                    rest = file.get(line.len()..)?;
                }
            }
            'y' => {
                let mark = rest.chars().next()?;
                let (_, after) = field(rest.get(mark.len_utf8()..)?, mark)?;
                rest = field(after, mark)?.1;
            }
            'q' | 'Q' | 'l' | 'L' => rest = rest.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()),
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {}
            _ => return None,
        }
    }
}

/// The text after an address: a number, `$`, `/x/`, `\cxc`; all of it where there is none.
fn address(text: &str) -> Option<&str> {
    let (mark, after) = match text.chars().next() {
        Some('/') => ('/', text.get(1..)?),
        Some('\\') => {
            let mark = text.chars().nth(1)?;
            (mark, text.get(1 + mark.len_utf8()..)?)
        }
        _ => return Some(text.trim_start_matches(|c: char| c.is_ascii_digit() || "$~".contains(c))),
    };
    let (_, after) = field(after, mark)?;
    Some(after.trim_start_matches(['I', 'M']))
}

/// A field up to its mark, and the text after the mark.
fn field(text: &str, mark: char) -> Option<(&str, &str)> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        if std::mem::take(&mut escaped) {
            continue;
        }
        if c == mark {
            return Some((text.get(..at)?, text.get(at + c.len_utf8()..)?));
        }
        escaped = c == '\\';
    }
    None
}

/// The rest after a text of `a`, `i` or `c`, which continues after a backslash at the end of its line.
fn after_text(text: &str) -> &str {
    let mut rest = text;
    while let Some((line, after)) = rest.split_once('\n') {
        rest = after;
        if !line.ends_with('\\') {
            return rest;
        }
    }
    ""
}

fn awk(command: &SimpleCommand) -> Vec<InnerCommand> {
    let mut texts: Vec<String> = command.words.iter().skip(1).map(Word::show).collect();
    let input = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
    let by_input = texts.iter().any(|word| word.starts_with("-f") || word.starts_with("--file"));
    texts.extend(input.filter(|_| by_input).map(|redirect| redirect.word.show()));
    let writes = texts.iter().any(|text| text.contains('>'));
    let runs = texts.iter().any(|text| text.contains('|') || text.contains("system"));
    if !writes && !runs {
        return Vec::new();
    }
    let mut inner = Vec::new();
    for text in &texts {
        inner.extend(quoted(text).into_iter().flat_map(|found| awk_literal(text, &found)));
    }
    // The values of its variables may be a file or a command.
    let given = texts.iter().filter_map(|text| {
        let text = text.strip_prefix("--assign=").or_else(|| text.strip_prefix("-v")).unwrap_or(text);
        let (name, value) = text.trim_start().split_once('=')?;
        let named = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        named.then(|| value.to_owned())
    });
    let set = command.assignments.iter().filter_map(|set| set.value.as_ref().map(Word::show));
    for value in given.chain(set) {
        inner.extend(write(&value).filter(|_| writes));
        inner.extend((runs && value.contains(' ')).then(|| InnerCommand::Text(value.clone())));
    }
    inner
}

/// A text in double quotes: where it begins, what it is, where it ends.
struct Quoted {
    start: usize,
    text: String,
    end: usize,
}

fn quoted(script: &str) -> Vec<Quoted> {
    let (mut found, mut open): (Vec<Quoted>, Option<Quoted>) = (Vec::new(), None);
    let mut escaped = false;
    for (at, c) in script.char_indices() {
        match &mut open {
            None if c == '"' => open = Some(Quoted { start: at, text: String::new(), end: at }),
            None => {}
            Some(begun) if std::mem::take(&mut escaped) => begun.text.push(if c == 'n' { '\n' } else { c }),
            Some(_) if c == '\\' => escaped = true,
            Some(_) if c == '"' => {
                found.extend(open.take().map(|begun| Quoted { end: at + 1, ..begun }));
            }
            Some(begun) => begun.text.push(c),
        }
    }
    found
}

/// The meaning of a literal of `awk` in its position: a file after `>`, a command before or after `|` and in
/// `system(…)`.
fn awk_literal(script: &str, literal: &Quoted) -> Vec<InnerCommand> {
    let before = script.get(..literal.start).unwrap_or_default().trim_end().trim_end_matches('(').trim_end();
    let after = script.get(literal.end..).unwrap_or_default().trim_start().trim_start_matches(')');
    let mut inner = Vec::new();
    if before.ends_with('>') {
        inner.extend(write(&literal.text));
    }
    let runs = before.ends_with('|') || before.ends_with("|&") || before.ends_with("system");
    if runs || after.trim_start().starts_with('|') {
        inner.push(InnerCommand::Text(literal.text.clone()));
    }
    // Put together from parts, it may be either; then only files in `.git` count.
    let parts = literal.text.split(|c: char| c.is_whitespace() || "<>|&;()'\"=".contains(c));
    inner.extend(parts.filter(|part| part.split('/').any(|part| part == ".git")).filter_map(write));
    inner
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_of_sed_writes_and_runs_is_read() {
        for (script, files, commands) in [
            ("wx", vec!["x"], vec![]),
            ("w x y", vec![" x y"], vec![]),
            ("1,3W.git/x", vec![".git/x"], vec![]),
            ("/a/,/b/!w x", vec![" x"], vec![]),
            ("\\,a/b,Iw x", vec![" x"], vec![]),
            ("s/h/x/w.git/x", vec![".git/x"], vec![]),
            ("s,a,b\\,c,2gw x\np;s/w/x/", vec![" x"], vec![]),
            ("p;p;{p;w x\n}", vec![" x"], vec![]),
            ("$!{n;wx\n};d", vec!["x"], vec![]),
            ("1e id", vec![], vec!["id"]),
            ("s/a/id/ge", vec![], vec!["id"]),
            ("a\\\nw no\nw x", vec![" x"], vec![]),
            ("y/abc/w x/;p", vec![], vec![]),
            ("s/w a/w b/g", vec![], vec![]),
            ("/w x/d;$p;1~2p;2,+3d", vec![], vec![]),
            ("r w\nb w\nq5", vec![], vec![]),
            ("kw x", vec![" x"], vec![]),
        ] {
            let read = read_sed(script);
            assert_eq!(
                (read.files, read.commands),
                (
                    files.iter().map(|file| (*file).to_owned()).collect(),
                    commands.iter().map(|text: &&str| (*text).to_owned()).collect()
                ),
                "{script}"
            );
        }
    }
}
