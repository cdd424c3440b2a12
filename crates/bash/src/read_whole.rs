//! Reading a whole text: the parts that are read first, and those that are known only after the rest.

use std::collections::HashMap;

use crate::characters;
use crate::read::{CommandContext, ScriptReader};
use crate::script::{FloorRule, Script, SimpleCommand, Word};
use crate::syntax::is_too_deep;

/// Wrapped text may be read again up to this many times the length of the first.
const AGAIN: usize = 4;
const AGAIN_AT_LEAST: usize = 256 * 1024;

/// The most rounds in which programs are read by other names: a link to `env` may start a link to `rm`.
const ROUNDS: usize = 4;

/// Returns the other words that a command of a script may become, its program first: `./q a` is `touch a` where `q`
/// is a link.
pub type OtherWords<'n> = dyn FnMut(&Script, usize) -> Vec<Vec<Word>> + 'n;

/// Reads a text as bash would.
pub fn read(text: &str) -> Script {
    read_with_other_words(text, &mut |_, _| Vec::new())
}

/// Reads a text as bash would, and each command by its other words too. Those count for denials only
/// ([`SimpleCommand::evaluated`]).
pub fn read_with_other_words(text: &str, other_words: &mut OtherWords<'_>) -> Script {
    let mut reader = ScriptReader {
        script: Script {
            floors: characters::odd(text),
            // Growing moves all of them.
            commands: Vec::with_capacity(text.len() / 20),
            ..Script::default()
        },
        queue: Vec::new(),
        budget: AGAIN_AT_LEAST + AGAIN * text.len(),
        pipes: 0,
        functions: HashMap::new(),
        receivers: Vec::new(),
        shapes: Vec::new(),
        again: None,
    };
    if text.contains('\0') {
        reader.floor(FloorRule::Character, "the text holds a NUL");
        return reader.script;
    }
    if is_too_deep(text) {
        reader.script.endless = true;
        return reader.finish();
    }
    reader.budget -= text.len() + 1;
    reader.text(text, CommandContext::default(), true);
    let (mut used, mut again) = (false, false);
    loop {
        reader.drain();
        // The content of a pipe is known only when both of its ends are.
        if reader.feed_pipes() {
            continue;
        }
        // The same holds for files that the line makes and uses, which are not followed twice.
        if !std::mem::replace(&mut used, true) && (reader.use_stray_input() | reader.use_made_files()) {
            continue;
        }
        if std::mem::replace(&mut again, true) || !reader.read_evaluated(text) {
            break;
        }
    }
    reader.mark_evaluated();
    reader.add_other_words(other_words);
    reader.finish()
}

impl ScriptReader {
    /// Reads the texts in the queue, as far as the budget allows.
    fn drain(&mut self) {
        while let Some(job) = self.queue.pop() {
            if job.text.len() + 1 > self.budget {
                self.script.endless = true;
                self.queue.clear();
                break;
            }
            self.budget -= job.text.len() + 1;
            self.text(&job.text, job.around, job.lines);
        }
    }

    /// Adds the commands by their other words, with all commands that they run.
    fn add_other_words(&mut self, other_words: &mut OtherWords<'_>) {
        let (before, floors) = (self.script.commands.len(), self.script.floors.len());
        let mut asked = 0;
        for _ in 0..ROUNDS {
            let count = self.script.commands.len();
            for index in asked..count {
                let found = other_words(&self.script, index);
                let Some(command) = self.script.commands.get(index).filter(|_| !found.is_empty()).cloned()
                else {
                    continue;
                };
                for words in found {
                    if !self.afford(&words) {
                        break;
                    }
                    let (behind, stage, broken) = (command.wrapper, command.stage, command.broken);
                    let around =
                        CommandContext { wrapper: behind, stage, broken, ..CommandContext::default() };
                    self.add(SimpleCommand { words, floors: Vec::new(), ..command.clone() }, &around);
                }
            }
            asked = count;
            if self.script.commands.len() == count {
                break;
            }
            self.drain();
            while self.feed_pipes() {
                self.drain();
            }
        }
        self.script.commands.iter_mut().skip(before).for_each(|command| command.evaluated = true);
        self.script.floors.truncate(floors);
    }
}
