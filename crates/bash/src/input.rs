//! The standard input of a compound command or a function, for the commands inside that read commands from there.

use crate::read::{Around, Reader};
use crate::script::{Command, Redirect, RedirectKind, Word};
use crate::wrap;

/// Commands that one stray input is given to.
const MOST: usize = 64;

/// Tells whether a redirection brings something to the standard input, or may.
pub(crate) fn brings(redirect: &Redirect) -> bool {
    matches!(redirect.kind, RedirectKind::Read | RedirectKind::Text)
}

impl Reader {
    /// Gives a command the input of the compound command around it, where it can become a command and nothing else comes in.
    pub(crate) fn take_input(&mut self, command: &mut Command, around: &Around) {
        let Some(input) = &around.input else { return };
        let first = around.stage.is_some_and(|stage| stage.index == 0);
        let takes = first || (around.stage.is_none() && wrap::receives(command));
        if takes && !command.redirects.iter().any(brings) {
            let words: Vec<Word> = input.iter().map(|redirect| redirect.word.clone()).collect();
            if self.afford(&words) {
                command.redirects.extend(input.iter().cloned());
            }
        }
    }

    /// Gives input that the grammar left without a command to what may read commands from it: `{ bash; } <<< x` is an error
    /// to the grammar. For denials only. Says whether there was any.
    pub(crate) fn use_stray_input(&mut self) -> bool {
        let commands = &self.script.commands;
        let stray = |command: &&Command| command.broken && command.words.is_empty();
        let input = commands.iter().filter(stray).flat_map(|command| &command.redirects);
        let input: Vec<Redirect> = input.filter(|redirect| brings(redirect)).take(MOST).cloned().collect();
        if input.is_empty() {
            return false;
        }
        let takes = |command: &Command| {
            command.broken && wrap::receives(command) && !command.redirects.iter().any(brings)
        };
        let takers = commands.iter().enumerate().filter(|(_, command)| takes(command));
        let takers: Vec<(usize, Vec<Word>)> =
            takers.take(MOST).map(|(index, command)| (index, command.words.clone())).collect();
        for (index, words) in &takers {
            if !self.afford(words) {
                return false;
            }
            let around = Around { behind: Some(*index), broken: true, ..Around::default() };
            let (words, redirects) = (words.clone(), input.clone());
            self.add(Command { words, redirects, ..Command::default() }, &around);
        }
        !takers.is_empty()
    }
}
