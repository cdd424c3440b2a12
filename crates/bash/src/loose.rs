//! A reading without the grammar, for text that the grammar cannot make sense of.
//!
//! Used for denials only: it may see a command where there is none, and must not be believed when it sees none.

use crate::script::{Piece, Word};
use crate::words;

/// The commands that a text seems to hold.
pub(crate) fn commands(text: &str) -> Vec<Vec<Word>> {
    let text = text.replace("\\\n", "");
    let (mut commands, mut command) = (Vec::new(), Vec::new());
    let (mut begin, mut quote, mut escaped): (Option<usize>, Option<char>, bool) = (None, None, false);
    for (at, c) in text.char_indices() {
        if escaped {
            escaped = false;
            continue;
        }
        match (quote, c) {
            (None | Some('"'), '\\') => escaped = true,
            (Some(open), c) => {
                if open == c {
                    quote = None;
                }
                continue;
            }
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ' | '\t' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>' | '`') => {
                take(&text, &mut begin, at, &mut command);
                if !matches!(c, ' ' | '\t' | '<' | '>') && !command.is_empty() {
                    commands.push(std::mem::take(&mut command));
                }
                continue;
            }
            (None, _) => {}
        }
        begin = begin.or(Some(at));
    }
    take(&text, &mut begin, text.len(), &mut command);
    commands.push(command);
    commands.retain(|command| !command.is_empty());
    commands
}

fn take(text: &str, begin: &mut Option<usize>, end: usize, command: &mut Vec<Word>) {
    let Some(begin) = begin.take() else { return };
    let raw = text.get(begin..end).unwrap_or("");
    match words::words(raw, 0, raw.len(), &plain_names(raw)) {
        // A brace or a keyword in front of a command is no part of it.
        Ok(words) => command.extend(words.into_iter().filter(|word| !command_begins(word))),
        Err(_) => command.push(Word::of(Piece::Substitution(None))),
    }
}

fn command_begins(word: &Word) -> bool {
    matches!(word.literal(), Some("{" | "}" | "do" | "then" | "else" | "if" | "while" | "until" | "!"))
}

/// The plain variables of a piece of text, for a reading without the grammar.
pub(crate) fn plain_names(part: &str) -> Vec<words::Span> {
    part.match_indices('$')
        .filter_map(|(start, _)| {
            let rest = part.get(start + 1..)?;
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            (end > 0).then_some(words::Span { start, end: start + 1 + end, kind: words::SpanKind::Name })
        })
        .collect()
}
