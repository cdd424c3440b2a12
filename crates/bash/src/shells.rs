//! The words of a shell: the one that is a text to run, and whether the shell reads its commands from the standard
//! input.

use crate::script::{Word, base_name};

/// Long options that take the next word. Bash accepts them with one dash too.
const VALUED: [&str; 6] = ["--rcfile", "--init-file", "-rcfile", "-init-file", "--emulate", "--init-command"];

/// The meaning of the options of a shell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ShellWords {
    /// Indexes at which the text of `-c` may stand: shells differ in the words that `-opipefail` takes.
    pub(crate) texts: Vec<usize>,
    /// Texts in one word with their option.
    pub(crate) glued: Vec<String>,
    /// The index of the first word after the options.
    pub(crate) operands: usize,
    /// True if `-s` is among them.
    input: bool,
    /// True if it runs a text that is encoded.
    pub(crate) hidden: bool,
}

pub(crate) fn shell_words(words: &[Word]) -> ShellWords {
    let name = words.first().and_then(Word::literal).map(base_name);
    if matches!(name, Some("pwsh" | "powershell")) {
        return pwsh_words(words);
    }
    let mut given = options(words, ValuePlace::Next);
    // Only a bundle that continues after an `o` is read in two ways.
    let doubtful =
        |word: &str| word.trim_end_matches(['o', 'O']).contains(['o', 'O']) && !word.starts_with("--");
    if words.iter().skip(1).filter_map(Word::literal).any(doubtful) {
        given.texts.extend(options(words, ValuePlace::Glued).texts);
        given.texts.dedup();
    }
    given
}

/// The options of PowerShell, which are words and may be abbreviated: `-Command`, `-c`, `-EncodedCommand`, `-e`.
fn pwsh_words(words: &[Word]) -> ShellWords {
    let mut given = ShellWords { operands: words.len(), ..ShellWords::default() };
    for (at, word) in words.iter().enumerate().skip(1) {
        let lower = word.show().to_ascii_lowercase();
        let is = |option: &str| lower.len() > 1 && option.starts_with(lower.as_str());
        let option = lower.starts_with(['-', '/']);
        if is("-command") || is("-commandwithargs") {
            given.texts = (at + 1..words.len()).collect();
            break;
        }
        given.hidden |= is("-encodedcommand") || lower == "-ec";
        if !option {
            given.operands = at;
            break;
        }
    }
    given.input = given.texts.is_empty() && given.operands == words.len();
    given
}

/// The position of the value of `o`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValuePlace {
    /// Bash: each `o` and `O` of a bundle takes one of the next words.
    Next,
    /// Zsh and similar shells: the rest of the bundle is the value, if there is any.
    Glued,
}

fn options(words: &[Word], values: ValuePlace) -> ShellWords {
    let fish = words.first().and_then(Word::literal).map(base_name) == Some("fish");
    let (mut at, mut runs, mut input) = (1, false, false);
    let last = words.iter().rposition(runs_a_text);
    let mut glued = Vec::new();
    while let Some(word) = words.get(at) {
        let Some(text) = word.literal() else {
            // It may be an option, or empty, if options follow.
            if last.is_none_or(|last| last <= at) {
                break;
            }
            at += 1;
            continue;
        };
        if matches!(text, "-" | "--") {
            at += 1;
            break;
        }
        let Some(letters) = text.strip_prefix(['-', '+']).filter(|letters| !letters.is_empty()) else {
            break;
        };
        at += 1;
        if VALUED.contains(&text) {
            at += 1;
        } else if letters.starts_with('-') {
            let text = ["--command=", "--commands=", "--init-command="]
                .iter()
                .find_map(|option| text.strip_prefix(option));
            glued.extend(text.map(str::to_owned));
            runs |= matches!(letters, "-command" | "-commands");
        } else {
            let end = letters.find(['o', 'O']).filter(|_| values == ValuePlace::Glued);
            let read = end.map_or(letters, |end| letters.get(..=end).unwrap_or(letters));
            runs |= read.contains('c') || (fish && read.contains('C'));
            input |= read.contains('s');
            at += if read.len() < letters.len() { 0 } else { read.matches(['o', 'O']).count() };
        }
    }
    let texts = if runs && at < words.len() { vec![at] } else { Vec::new() };
    ShellWords { texts, glued, operands: at, input, hidden: false }
}

/// Tells whether a word is an option with a `c` in it.
fn runs_a_text(word: &Word) -> bool {
    let text = word.literal().unwrap_or_default();
    text.len() > 1 && text.starts_with('-') && !text.starts_with("--") && text.contains('c')
}

/// Tells whether a shell with these words reads its commands from the standard input.
pub(crate) fn reads_input(words: &[Word]) -> bool {
    let given = shell_words(words);
    let operand = words.get(given.operands);
    let named = operand.is_none_or(|word| word.literal().is_none_or(is_input));
    given.texts.is_empty() && given.glued.is_empty() && (given.input || named)
}

/// Tells whether a path is a name of the standard input.
pub(crate) fn is_input(path: &str) -> bool {
    matches!(path, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Word> {
        line.split(' ').map(Word::text).collect()
    }

    #[test]
    fn the_text_stands_behind_all_options_and_their_values() {
        for (line, texts) in [
            ("bash -c TEXT", vec!["TEXT"]),
            ("bash -euo pipefail -c TEXT x", vec!["TEXT"]),
            ("bash -euxo pipefail -O extglob -c TEXT", vec!["TEXT"]),
            ("bash -co pipefail TEXT", vec!["TEXT"]),
            ("bash -ceuo pipefail -- TEXT", vec!["TEXT"]),
            ("bash -cO extglob +o posix TEXT", vec!["TEXT"]),
            ("bash -oc pipefail TEXT", vec!["TEXT"]),
            ("zsh -opipefail -c TEXT x", vec!["TEXT"]),
            ("bash -c -- TEXT", vec!["TEXT"]),
            ("bash --norc -c TEXT", vec!["TEXT"]),
            ("bash --rcfile f -c TEXT", vec!["TEXT"]),
            ("bash --init-file f --login -c TEXT", vec!["TEXT"]),
            ("bash -l -c TEXT", vec!["TEXT"]),
            ("dash -euc TEXT", vec!["TEXT"]),
            ("bash +o posix -c TEXT", vec!["TEXT"]),
            ("fish --command TEXT", vec!["TEXT"]),
            ("bash file -c x", vec![]),
            ("bash -- -c", vec![]),
            ("bash -euo pipefail file", vec![]),
            ("bash -c", vec![]),
        ] {
            let words = words(line);
            let found: Vec<&str> =
                shell_words(&words).texts.iter().filter_map(|at| words.get(*at)?.literal()).collect();
            assert_eq!(found, texts, "{line}");
        }
    }

    #[test]
    fn a_shell_without_a_file_reads_its_input() {
        for line in [
            "bash",
            "bash -euo pipefail",
            "bash -eo pipefail -s x",
            "sh -s -- x",
            "bash -O extglob",
            "bash --norc",
            "bash -",
            "bash -x /dev/stdin",
            "bash --rcfile f",
        ] {
            assert!(reads_input(&words(line)), "{line}");
        }
        for line in ["bash x", "bash -euo pipefail x", "bash -c x", "bash -euo pipefail -c x"] {
            assert!(!reads_input(&words(line)), "{line}");
        }
    }
}
