//! The words that `env -S` makes of a text.
//!
//! GNU env takes the text apart by rules of its own, which are not those of a shell: no pipes, no redirections, other
//! escapes, `${NAME}` and no other text that begins with `$`. The words take the place of the option, and options
//! among them count, another `-S` as well. A text that env does not accept runs nothing with GNU's env, but perhaps
//! with another.

use crate::script::{Piece, SimpleCommand, Word};
use crate::wrap::InnerCommand;

/// The most levels of texts inside of texts that are taken apart.
const DEEPEST: usize = 32;

/// Long options of env, to find the meaning of an abbreviated one.
const LONG: [&str; 13] = [
    "--argv0",
    "--block-signal",
    "--chdir",
    "--debug",
    "--default-signal",
    "--help",
    "--ignore-environment",
    "--ignore-signal",
    "--list-signal-handling",
    "--null",
    "--split-string",
    "--unset",
    "--version",
];

/// Tells whether a program is GNU's env.
pub(crate) fn is_env(name: &str) -> bool {
    matches!(name, "env" | "genv")
}

/// An option of env.
enum EnvOption<'w> {
    /// Without a value, or with it in the same word.
    Whole,
    /// The next word is its value.
    Valued,
    /// The text is taken apart; `None` where it is the next word.
    Splits(Option<&'w str>),
}

/// The words of env with those that its `-S` options make, its name first.
#[derive(Default)]
pub(crate) struct ExpandedEnv {
    pub(crate) words: Vec<Word>,
    /// Commands besides the words, which are not known to be a list of words.
    pub(crate) inner: Vec<InnerCommand>,
}

/// The words of env once every `-S` is taken apart; `None` where there is none.
pub(crate) fn expanded_env(words: &[Word]) -> Option<ExpandedEnv> {
    let (program, rest) = words.split_first()?;
    let mut found = ExpandedEnv { words: vec![program.clone()], inner: Vec::new() };
    let (mut left, mut depth) = (rest.iter().rev().cloned().collect::<Vec<Word>>(), 0);
    while let Some(word) = left.pop() {
        let Some(text) = begin(&word) else {
            // It may be an option or an assignment, so that the next word may be one as well.
            found.words.push(word);
            continue;
        };
        let is_option = text.len() > 1 && text.starts_with('-') && text != "--";
        if !is_option && (text == "-" || text.contains('=')) {
            found.words.push(word);
            continue;
        }
        if !is_option {
            found.words.push(word);
            break;
        }
        let value = match option(text) {
            EnvOption::Splits(glued) => match glued.filter(|glued| !glued.is_empty()) {
                Some(glued) => Some(without_prefix(&word, text.len() - glued.len())),
                None if word.literal().is_none() => Some(without_prefix(&word, text.len())),
                None if text.contains('=') => Some(Word::default()),
                None => left.pop(),
            },
            EnvOption::Whole | EnvOption::Valued => {
                let valued = matches!(option(text), EnvOption::Valued);
                found.words.push(word);
                found.words.extend(valued.then(|| left.pop()).flatten());
                continue;
            }
        };
        depth += 1;
        match value.as_ref().map(split) {
            Some(Some(words)) if depth <= DEEPEST => left.extend(words.into_iter().rev()),
            Some(_) => found.inner.push(InnerCommand::Endless),
            None => {}
        }
    }
    (depth > 0).then(|| {
        found.words.extend(left.into_iter().rev());
        found
    })
}

/// Tells whether a text that is known only when the line runs is taken apart.
pub(crate) fn splits_later(command: &SimpleCommand) -> bool {
    let splits = |text: &str| matches!(option(text), EnvOption::Splits(_)) && text.starts_with('-');
    let at = |at: usize| command.words.get(at);
    command.program_name().is_some_and(is_env)
        && (1..command.words.len()).any(|index| {
            let word = at(index).and_then(begin).is_some_and(splits);
            let later = |word: Option<&Word>| word.is_some_and(|word| word.literal().is_none());
            word && (later(at(index)) || later(at(index + 1)))
        })
}

/// The text that a word begins with.
fn begin(word: &Word) -> Option<&str> {
    match &*word.pieces {
        [] => Some(""),
        [Piece::Text(text), ..] => Some(text),
        _ => None,
    }
}

/// The word without this many bytes of the text at its beginning.
fn without_prefix(word: &Word, bytes: usize) -> Word {
    let mut rest = Word { splits: word.splits, ..Word::default() };
    for (index, piece) in word.pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) if index == 0 => {
                text.get(bytes..)
                    .filter(|text| !text.is_empty())
                    .into_iter()
                    .for_each(|text| rest.push_text(text));
            }
            piece => rest.pieces.push(piece.clone()),
        }
    }
    rest
}

fn option(text: &str) -> EnvOption<'_> {
    if text.starts_with("--") {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let mut meant = LONG.iter().filter(|long| long.starts_with(name));
        return match (meant.next().copied(), meant.next(), value) {
            (Some("--split-string"), None, value) => EnvOption::Splits(value),
            (Some("--argv0" | "--chdir" | "--unset"), None, None) => EnvOption::Valued,
            _ => EnvOption::Whole,
        };
    }
    for (at, letter) in text.char_indices().skip(1) {
        let rest = text.get(at + letter.len_utf8()..).unwrap_or_default();
        match letter {
            'S' => return EnvOption::Splits(Some(rest)),
            'a' | 'C' | 'u' if rest.is_empty() => return EnvOption::Valued,
            'a' | 'C' | 'u' => return EnvOption::Whole,
            _ => {}
        }
    }
    EnvOption::Whole
}

/// The words of a text, as GNU env makes them; `None` where env does not accept it.
pub(crate) fn split(text: &Word) -> Option<Vec<Word>> {
    let mut made = SplitWords { words: Vec::new(), parted: true };
    let mut quote = None;
    for piece in text.pieces.iter() {
        let Piece::Text(text) = piece else {
            // An expansion may be many words.
            let mut piece = piece.clone();
            if let Piece::Variable { quoted, .. } = &mut piece {
                *quoted = quote.is_some();
            }
            made.add(|word| word.pieces.push(piece));
            continue;
        };
        if !split_text(text, &mut made, &mut quote)? {
            return Some(made.words);
        }
    }
    quote.is_none().then_some(made.words)
}

/// The words made so far.
struct SplitWords {
    words: Vec<Word>,
    /// True if the next character begins a word.
    parted: bool,
}

impl SplitWords {
    /// Adds to the last word, or begins one.
    fn add(&mut self, more: impl FnOnce(&mut Word)) {
        if std::mem::take(&mut self.parted) {
            self.words.push(Word::default());
        }
        if let Some(last) = self.words.last_mut() {
            more(last);
        }
    }
}

/// Takes a text apart. Returns true if the text after it counts too; `None` where env does not accept it.
fn split_text(text: &str, made: &mut SplitWords, quote: &mut Option<char>) -> Option<bool> {
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        let c = match c {
            '\'' | '"' if quote.is_none_or(|open| open == c) => {
                *quote = if quote.is_some() { None } else { Some(c) };
                made.add(|_| {});
                continue;
            }
            ' ' | '\t' | '\n' | '\u{b}' | '\u{c}' | '\r' if quote.is_none() => {
                made.parted = true;
                continue;
            }
            '#' if made.parted && quote.is_none() => return Some(false),
            '\\' if *quote == Some('\'') && !rest.as_str().starts_with(['\\', '\'']) => c,
            '\\' => match rest.next()? {
                c @ ('"' | '#' | '$' | '\'' | '\\') => c,
                '_' if *quote == Some('"') => ' ',
                '_' => {
                    made.parted = true;
                    continue;
                }
                'c' => return (*quote != Some('"')).then_some(false),
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'v' => '\u{b}',
                _ => return None,
            },
            '$' if *quote != Some('\'') => {
                let (name, behind) = rest.as_str().strip_prefix('{')?.split_once('}')?;
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                (!name.is_empty() && name.chars().all(is_name)).then_some(())?;
                let variable = Piece::Variable { name: name.into(), quoted: true };
                made.add(|word| word.pieces.push(variable));
                rest = behind.chars();
                continue;
            }
            c => c,
        };
        made.add(|word| word.push_char(c));
    }
    Some(true)
}

/// The command that the first line of a script names, with the name of the script, if the kernel is to run it.
pub(crate) fn interpreter(script: &str, path: &Word) -> Option<Vec<Word>> {
    let line = script.strip_prefix("#!")?.lines().next()?.trim_matches([' ', '\t']);
    let (program, argument) = line.split_once([' ', '\t']).unwrap_or((line, ""));
    (!program.is_empty()).then_some(())?;
    let argument = Some(argument.trim_start_matches([' ', '\t'])).filter(|argument| !argument.is_empty());
    let words = [program].into_iter().chain(argument).map(Word::text);
    Some(words.chain([path.clone()]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(words: &[Word]) -> Vec<String> {
        words.iter().map(Word::show).collect()
    }

    #[test]
    fn a_text_is_taken_apart_as_env_does() {
        // Each of these was given to GNU env 9.1.
        for (text, expected) in [
            (r"printf\_[%s]\_a\_b", Some(vec!["printf", "[%s]", "a", "b"])),
            (r"printf [%s] a\tb", Some(vec!["printf", "[%s]", "a\tb"])),
            (r"printf [%s] a\nb\vc", Some(vec!["printf", "[%s]", "a\nb\u{b}c"])),
            (r#"printf [%s] "a\_b""#, Some(vec!["printf", "[%s]", "a b"])),
            (r"printf [%s] 'a\_b\'c'", Some(vec!["printf", "[%s]", "a\\_b'c"])),
            ("printf [%s] a #b", Some(vec!["printf", "[%s]", "a"])),
            ("printf [%s] a#b", Some(vec!["printf", "[%s]", "a#b"])),
            (r"printf [%s] a\cb", Some(vec!["printf", "[%s]", "a"])),
            (r"printf [%s] \#b", Some(vec!["printf", "[%s]", "#b"])),
            ("printf [%s] ${HOME}x", Some(vec!["printf", "[%s]", "$HOMEx"])),
            ("printf [%s] '' x", Some(vec!["printf", "[%s]", "", "x"])),
            ("a | b > c", Some(vec!["a", "|", "b", ">", "c"])),
            ("# a", Some(vec![])),
            ("", Some(vec![])),
            (r"printf [%s] a\qb", None),
            ("a $x", None),
            ("a ${x:-y}", None),
            ("a 'b", None),
            ("a\\", None),
            (r#"a "\c""#, None),
        ] {
            let words = split(&Word::text(text)).map(|words| shown(&words));
            let expected: Option<Vec<String>> =
                expected.map(|words| words.into_iter().map(str::to_owned).collect());
            assert_eq!(words, expected, "{text}");
        }
    }

    #[test]
    fn the_words_of_an_option_take_its_place() {
        for (words, expected) in [
            (vec!["env", "-S", "a b", "c"], Some("env a b c")),
            (vec!["env", "-Sa\\_b", "c"], Some("env a b c")),
            (vec!["env", "-iSa b"], Some("env a b")),
            (vec!["env", "-vS", "a b"], Some("env a b")),
            (vec!["env", "--split-string=a b", "c"], Some("env a b c")),
            (vec!["env", "--s", "a b", "c"], Some("env a b c")),
            (vec!["env", "--split=", "c"], Some("env c")),
            (vec!["env", "-u", "-Sx", "-S", "a b"], Some("env -u -Sx a b")),
            (vec!["env", "--uns", "-Sx", "-S", "a b"], Some("env --uns -Sx a b")),
            (vec!["env", "-S", "-S-S\"a b\"", "c"], Some("env a b c")),
            (vec!["env", "-S", "A=1 -u B c"], Some("env A=1 -u B c")),
            (vec!["env", "-S"], Some("env")),
            (vec!["env", "a", "-S", "b c"], None),
            (vec!["env", "--", "-S", "b c"], None),
            (vec!["env", "-uS", "b c"], None),
            (vec!["env", "A=1", "b"], None),
        ] {
            let words: Vec<Word> = words.into_iter().map(Word::text).collect();
            let found = expanded_env(&words).map(|found| shown(&found.words).join(" "));
            assert_eq!(found.as_deref(), expected, "{words:?}");
        }
    }

    #[test]
    fn a_text_in_texts_without_end_is_not_let_through() {
        let words = [Word::text("env"), Word::text(format!("{}x", "-S".repeat(100_000)))];
        let found = expanded_env(&words).expect("there is a text");
        assert!(matches!(found.inner.as_slice(), [InnerCommand::Endless]));
    }
}
