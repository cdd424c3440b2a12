//! Variables whose values differ from those assigned to them: joined by `+=`, changed by `declare -l`, `-u`, `-i`, or
//! names of other variables by `-n`.

use crate::read::ScriptReader;
use crate::script::{Piece, SimpleCommand, Word};

/// Joined values that are longer than this are unknown.
const LONGEST: usize = 4096;

/// The most values given to variables that others refer to; a text with more is refused.
const MOST: usize = 65_536;

/// The declaration of a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeclaredShape {
    /// `-l`, `-u`, `-c`
    Case,
    /// `-n`
    Other,
}

impl ScriptReader {
    /// The value that `x+=more` makes of the last value in the text, and, as a loop may repeat it, of any value.
    pub(crate) fn appended_value(&mut self, name: &str, more: Word) -> Word {
        let last = self.script.values.get(name).and_then(|values| values.last()).cloned();
        let mut again = Word::of(Piece::Variable { name: name.into(), quoted: true });
        append(&mut again, &more);
        self.assign(name, Some(again));
        let Some(mut whole) = last else { return more };
        let long = |word: &Word| word.pieces.len() + word.literal().map_or(0, str::len);
        if long(&whole) + long(&more) > LONGEST {
            return Word::of(Piece::Substitution(None));
        }
        append(&mut whole, &more);
        whole
    }

    /// Records the declaration of a command for its names.
    pub(crate) fn record_declaration(&mut self, command: &SimpleCommand) {
        let words: Vec<&str> = command.words.iter().skip(1).filter_map(Word::literal).collect();
        let letters: String = words.iter().filter(|word| word.starts_with(['-', '+'])).copied().collect();
        let names = words.iter().filter(|word| !word.starts_with(['-', '+']));
        for name in names.map(|word| word.split(['=', '+', '[']).next().unwrap_or(word)) {
            if letters.contains(['l', 'u', 'c']) {
                self.shapes.push((name.to_owned(), DeclaredShape::Case));
            }
            if letters.contains('n') {
                self.shapes.push((name.to_owned(), DeclaredShape::Other));
            }
            if letters.contains(['l', 'u', 'c', 'i', 'n']) {
                self.assign(name, Some(Word::of(Piece::Substitution(None))));
            }
        }
    }

    /// Gives every declared variable the values that it may hold by its declaration, wherever in the text it is
    /// assigned.
    pub(crate) fn reshape(&mut self) {
        let mut spent = 0;
        for (name, shape) in std::mem::take(&mut self.shapes) {
            let values = self.script.values.get(&name).cloned().unwrap_or_default();
            let literals = || values.iter().filter_map(Word::literal);
            let made: Vec<(String, Word)> = match shape {
                DeclaredShape::Case => literals()
                    .flat_map(|text| [text.to_lowercase(), text.to_uppercase()])
                    .map(|text| (name.clone(), Word::text(text)))
                    .collect(),
                DeclaredShape::Other => {
                    let variable = |word: &Word| match &*word.pieces {
                        [Piece::Variable { name, .. }] => Some(name.to_string()),
                        _ => word.literal().map(str::to_owned),
                    };
                    let is_name = |name: &String| {
                        !name.is_empty()
                            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
                    };
                    let mut others: Vec<String> =
                        values.iter().filter_map(variable).filter(is_name).collect();
                    others.sort();
                    others.dedup();
                    spent += others.len() * values.len();
                    if spent > MOST {
                        self.script.endless = true;
                        return;
                    }
                    let each = |other: &String| {
                        values.iter().map(|value| (other.clone(), value.clone())).collect::<Vec<_>>()
                    };
                    others.iter().filter(|other| **other != name).flat_map(each).collect()
                }
            };
            made.into_iter().for_each(|(name, value)| self.assign(&name, Some(value)));
        }
    }
}

fn append(word: &mut Word, more: &Word) {
    for piece in more.pieces.iter() {
        match piece {
            Piece::Text(text) => word.push_text(text),
            other => word.pieces.push(other.clone()),
        }
    }
}
