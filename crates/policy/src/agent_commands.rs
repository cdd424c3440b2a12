//! A command of the agent in a line, as far as its words are known before the line runs.

use std::path::Path;

use lathe_bash::{Piece, RedirectKind, SimpleCommand, Word};

use crate::gate::Gate;

/// A request to a command of the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommandRequest {
    pub name: String,
    /// The words after the name; `None` for a word that is known only when the line runs.
    pub words: Vec<Option<String>>,
    /// The folders that it may run in, as far as they are known.
    pub folders: Vec<String>,
    /// The text that the line gives it on its standard input.
    pub input: Option<String>,
    /// True if another program starts it, which may give it more words.
    pub started: bool,
}

impl AgentCommandRequest {
    pub(crate) fn of(gate: Option<&Gate>, command: &SimpleCommand, from: &[String]) -> Option<Self> {
        let strange = |folder: &&String| {
            !folder.starts_with('/') || folder.contains(|c: char| c.is_control() || "*?[".contains(c))
        };
        let folders: Vec<String> = from.iter().filter(|folder| !strange(folder)).cloned().collect();
        let mut words = Vec::new();
        for word in command.words.iter().skip(1) {
            let fixed = word.pieces.iter().all(|piece| matches!(piece, Piece::Text(_) | Piece::Glob(_)));
            match (word.literal(), fixed) {
                (Some(text), _) => words.push(Some(text.to_owned())),
                (None, true) => words.extend(expanded(gate, word, folders.first()).into_iter().map(Some)),
                (None, false) => words.push(None),
            }
        }
        let mut texts = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Text);
        let input = texts.next_back().and_then(|redirect| redirect.word.literal()).map(str::to_owned);
        let started = command.wrapper.is_some();
        Some(Self { name: command.program()?.to_owned(), words, folders, input, started })
    }
}

/// The words that bash makes of a pattern: the names that match, or the pattern itself.
fn expanded(gate: Option<&Gate>, word: &Word, folder: Option<&String>) -> Vec<String> {
    let shown = word.show();
    let place =
        folder.map_or_else(|| shown.clone(), |folder| Path::new(folder).join(&shown).display().to_string());
    let found = gate.and_then(|gate| gate.disk.get()?.expand(&place)).unwrap_or_default();
    match found.is_empty() {
        true => vec![shown],
        false => found.iter().map(|path| path.display().to_string()).collect(),
    }
}
