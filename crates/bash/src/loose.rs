//! A reading without the grammar, for text that the grammar cannot read.
//!
//! Used for denials only: it may see a command where there is none, and its silence proves nothing.

use crate::script::{Piece, Redirect, RedirectKind, SimpleCommand, Word};
use crate::word_scan;

/// The commands that a text seems to hold. The word after a `>` is written, and may be a word of the command too; the
/// word after `<<<` is read.
pub(crate) fn commands(text: &str) -> Vec<SimpleCommand> {
    let text = text.replace("\\\n", "");
    let (mut commands, mut command) = (Vec::new(), SimpleCommand::default());
    let mut turned = String::new();
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
                take(&text, &mut begin, at, &mut command, &mut turned);
                if matches!(c, '<' | '>') {
                    turned.push(c);
                } else if !matches!(c, ' ' | '\t') {
                    commands.push(std::mem::take(&mut command));
                    turned.clear();
                }
                continue;
            }
            (None, _) => {}
        }
        begin = begin.or(Some(at));
    }
    take(&text, &mut begin, text.len(), &mut command, &mut turned);
    commands.push(command);
    commands.retain(|command| !command.words.is_empty() || !command.redirects.is_empty());
    commands
}

fn take(text: &str, begin: &mut Option<usize>, end: usize, command: &mut SimpleCommand, turned: &mut String) {
    let Some(begin) = begin.take() else { return };
    let raw = text.get(begin..end).unwrap_or("");
    let found = match word_scan::words(raw, 0, raw.len(), &plain_names(raw)) {
        // A brace or a keyword in front of a command does not belong to it.
        Ok(words) => words.into_iter().filter(|word| !command_begins(word)).collect(),
        Err(_) => vec![Word::of(Piece::Substitution(None))],
    };
    let kind = match std::mem::take(turned).as_str() {
        "<<<" => Some(RedirectKind::Text),
        turned if turned.contains('>') => Some(RedirectKind::Write),
        _ => None,
    };
    if let Some((kind, word)) = kind.zip(found.first()) {
        command.redirects.push(Redirect { kind, word: word.clone() });
    }
    if kind != Some(RedirectKind::Text) {
        command.words.extend(found);
    }
}

fn command_begins(word: &Word) -> bool {
    matches!(word.literal(), Some("{" | "}" | "do" | "then" | "else" | "if" | "while" | "until" | "!"))
}

/// The plain variables of a piece of text, for a reading without the grammar.
pub(crate) fn plain_names(part: &str) -> Vec<word_scan::Span> {
    part.match_indices('$')
        .filter_map(|(start, _)| {
            let rest = part.get(start + 1..)?;
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            (end > 0).then_some(word_scan::Span {
                start,
                end: start + 1 + end,
                kind: word_scan::SpanKind::Name,
            })
        })
        .collect()
}
