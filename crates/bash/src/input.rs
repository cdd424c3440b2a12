//! The standard input of a compound command or a function, for the commands inside that read commands from it.

use crate::read::{CommandContext, ScriptReader};
use crate::script::{Redirect, RedirectKind, SimpleCommand, Word};
use crate::wrap;

/// The most commands that one stray input is given to.
const MOST: usize = 64;

/// Tells whether a redirection may bring something to the standard input.
pub(crate) fn brings(redirect: &Redirect) -> bool {
    matches!(redirect.kind, RedirectKind::Read | RedirectKind::Text)
}

impl ScriptReader {
    /// Gives a command the input of the compound command around it, where that input can become a command and no
    /// other input comes in.
    pub(crate) fn take_input(&mut self, command: &mut SimpleCommand, around: &CommandContext) {
        let Some(input) = &around.input else { return };
        let first = around.stage.is_some_and(|stage| stage.index == 0);
        let takes = first || (around.stage.is_none() && wrap::may_run_input(command));
        if takes && !command.redirects.iter().any(brings) {
            let words: Vec<Word> = input.iter().map(|redirect| redirect.word.clone()).collect();
            if self.afford(&words) {
                command.redirects.extend(input.iter().cloned());
            }
        }
    }

    /// Gives input that the grammar left without a command to the commands that may read commands from it: `{ bash; }
    /// <<< x` is an error to the grammar. For denials only. Returns true if there was any.
    pub(crate) fn use_stray_input(&mut self) -> bool {
        let commands = &self.script.commands;
        let stray = |command: &&SimpleCommand| command.broken && command.words.is_empty();
        let input = commands.iter().filter(stray).flat_map(|command| &command.redirects);
        let input: Vec<Redirect> = input.filter(|redirect| brings(redirect)).take(MOST).cloned().collect();
        if input.is_empty() {
            return false;
        }
        let takes = |command: &SimpleCommand| {
            command.broken && wrap::may_run_input(command) && !command.redirects.iter().any(brings)
        };
        let takers = commands.iter().enumerate().filter(|(_, command)| takes(command));
        let takers: Vec<(usize, Vec<Word>)> =
            takers.take(MOST).map(|(index, command)| (index, command.words.clone())).collect();
        for (index, words) in &takers {
            if !self.afford(words) {
                return false;
            }
            let around = CommandContext { wrapper: Some(*index), broken: true, ..CommandContext::default() };
            let (words, redirects) = (words.clone(), input.clone());
            self.add(SimpleCommand { words, redirects, ..SimpleCommand::default() }, &around);
        }
        !takers.is_empty()
    }
}
