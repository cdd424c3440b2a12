//! Texts for shells that are not bash: `fish -c 'tou\x63h a'`, `zsh -c 'cat s(e|x)cret'`, `nu -c '^touch a'`.
//!
//! These languages are not parsed. The text is read as bash first, which is right for most of it. Then it is split
//! into words here, and a word with a sign that such a shell expands and bash does not counts as known only when the
//! line runs. The commands found so count as any other command after the shell.

use crate::script::{Piece, Word};
use crate::wrap::{self, InnerCommand};

/// Signs outside of quotes by which a shell makes one word into another.
fn signs(shell: &str) -> Option<&'static str> {
    Some(match shell {
        "zsh" | "rzsh" => "()|^~#<>=",
        "fish" => "()",
        "csh" | "bsd-csh" | "tcsh" => "^!",
        "ksh" | "ksh93" | "ksh2020" | "mksh" | "lksh" | "oksh" | "pdksh" | "loksh" | "yash" => "()|",
        "pwsh" | "powershell" => "`()@+%",
        "nu" => "()",
        "rc" | "es" => "^(){}",
        "elvish" => "()[]",
        "xonsh" => "()@!+",
        "ion" | "murex" | "osh" | "ysh" => "()@^",
        _ => return None,
    })
}

/// The commands in texts of such a shell that bash would read differently.
pub(crate) fn read(shell: &str, texts: &[InnerCommand]) -> Vec<InnerCommand> {
    let Some(signs) = signs(shell) else { return Vec::new() };
    let texts = texts.iter().filter_map(|inner| match inner {
        InnerCommand::Text(text) => Some(text.as_str()),
        InnerCommand::Words(_) | InnerCommand::Endless => None,
    });
    wrap::capped(texts.flat_map(|text| commands(shell, signs, text)))
}

/// A text while it is split into commands.
struct TextCut {
    commands: Vec<Vec<Word>>,
    words: Vec<Word>,
    word: Word,
    begun: bool,
    hidden: bool,
    any_hidden: bool,
}

impl TextCut {
    fn end_word(&mut self) {
        if std::mem::take(&mut self.begun) {
            let word = std::mem::take(&mut self.word);
            let hidden = std::mem::take(&mut self.hidden);
            self.any_hidden |= hidden;
            self.words.push(if hidden { Word::of(Piece::Substitution(None)) } else { word });
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }

    fn push(&mut self, c: char) {
        self.begun = true;
        self.word.push_char(c);
    }

    fn hide(&mut self) {
        self.begun = true;
        self.hidden = true;
    }
}

/// The commands of a text, where at least one word is known only when it runs, and the commands in its parentheses.
fn commands(shell: &str, signs: &str, text: &str) -> Vec<InnerCommand> {
    let mut cut = TextCut {
        commands: Vec::new(),
        words: Vec::new(),
        word: Word::default(),
        begun: false,
        hidden: false,
        any_hidden: false,
    };
    let (mut depth, mut quote, mut inside) = (0_usize, None, String::new());
    let mut texts: Vec<String> = Vec::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if depth > 0 && quote.is_none() {
            depth = match c {
                '(' => depth + 1,
                ')' => depth - 1,
                _ => depth,
            };
            match depth {
                0 => texts.push(std::mem::take(&mut inside)),
                _ => inside.push(c),
            }
            continue;
        }
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some('"'), '$' | '`' | '\\') => cut.hide(),
            (Some(_), c) => cut.push(c),
            (None, '"' | '\'') => {
                cut.begun = true;
                quote = Some(c);
            }
            // `\x63` is a letter to fish; to the others a backslash stands for the next character.
            (None, '\\') => match rest.next() {
                Some(next) if shell == "fish" && next.is_alphanumeric() => cut.hide(),
                Some('\n') | None => {}
                Some(next) => cut.push(next),
            },
            // `^x` is the program `x` to nu.
            (None, '^') if shell == "nu" && !cut.begun => cut.any_hidden = true,
            // `&x` runs it.
            (None, '&') if shell.starts_with('p') && !cut.begun && cut.words.is_empty() => {}
            (None, '(') if signs.contains('(') => {
                cut.hide();
                depth = 1;
            }
            (None, '=') if signs.contains('=') && cut.begun => cut.push('='),
            // It is a comment only in front of a word.
            (None, '#') if !cut.begun => {
                while rest.peek().is_some_and(|next| *next != '\n') {
                    rest.next();
                }
            }
            (None, ';' | '\n' | '|' | '&') => cut.end_command(),
            (None, '<' | '>') => cut.end_word(),
            (None, c) if c.is_whitespace() => cut.end_word(),
            (None, '*' | '?' | '$' | '{' | '}' | '[' | ']' | '`' | '~') => cut.hide(),
            (None, c) if signs.contains(c) => cut.hide(),
            (None, c) => cut.push(c),
        }
    }
    cut.end_command();
    if !cut.any_hidden {
        return Vec::new();
    }
    let words = cut.commands.into_iter().map(InnerCommand::Words);
    words.chain(texts.into_iter().filter(|text| !text.trim().is_empty()).map(InnerCommand::Text)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(shell: &str, text: &str) -> Vec<String> {
        let found = read(shell, &[InnerCommand::Text(text.to_owned())]);
        let shown = |inner: InnerCommand| match inner {
            InnerCommand::Words(words) => words.iter().map(Word::show).collect::<Vec<_>>().join(" "),
            InnerCommand::Text(text) => format!("text {text}"),
            InnerCommand::Endless => "endless".to_owned(),
        };
        found.into_iter().map(shown).collect()
    }

    #[test]
    fn a_word_that_only_this_shell_expands_is_not_known() {
        for (shell, text, commands) in [
            ("zsh", "cat s(e|x)cret.txt", vec!["cat $(…)", "text e|x"]),
            ("zsh", "setopt extendedglob; cat ^a*", vec!["setopt extendedglob", "cat $(…)"]),
            ("zsh", "=touch a", vec!["$(…) a"]),
            ("zsh", "cat a.txt", vec![]),
            ("zsh", "x=y cat 'a(b)'", vec![]),
            ("fish", r"tou\x63h a", vec!["$(…) a"]),
            ("fish", r"cat a\ b", vec![]),
            ("fish", "tou(echo ch) a", vec!["$(…) a", "text echo ch"]),
            ("tcsh", "cat ^a*", vec!["cat $(…)"]),
            ("ksh", "cat ~(i)A.txt", vec!["cat $(…)", "text i"]),
            ("nu", "^touch a", vec!["touch a"]),
            ("pwsh", "tou`ch a", vec!["$(…) a"]),
            ("rc", "tou^ch a", vec!["$(…) a"]),
            ("bash", "cat ^a*", vec![]),
        ] {
            assert_eq!(seen(shell, text), commands, "{shell} {text}");
        }
    }
}
