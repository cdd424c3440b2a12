//! A whole text: what is read first, and what only shows when the rest of it is known.

use std::collections::HashMap;

use crate::characters;
use crate::read::{Around, Reader};
use crate::script::{Command, FloorRule, Script, Word};
use crate::syntax::is_too_deep;

/// Wrapped text may be read again up to this many times the length of the first.
const AGAIN: usize = 4;
const AGAIN_AT_LEAST: usize = 256 * 1024;

/// Rounds in which programs are looked at by other names: a link to `env` may start a link to `rm`.
const ROUNDS: usize = 4;

/// Tells which other words a command of a script may come to, its program first: `./q a` is `touch a` where `q` is a link.
pub type OtherWords<'n> = dyn FnMut(&Script, usize) -> Vec<Vec<Word>> + 'n;

/// Reads a text as bash would.
pub fn read(text: &str) -> Script {
    read_with(text, &mut |_, _| Vec::new())
}

/// Reads a text as bash would, and each command by its other words too. Those count for denials only ([`Command::again`]).
pub fn read_with(text: &str, other_words: &mut OtherWords<'_>) -> Script {
    let mut reader = Reader {
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
    reader.text(text, Around::default(), true);
    let (mut used, mut again) = (false, false);
    loop {
        reader.drain();
        // What a pipe carries is known only when both of its ends are.
        if reader.feed_pipes() {
            continue;
        }
        // So is what the line makes and uses, which is not followed twice.
        if !std::mem::replace(&mut used, true) && (reader.use_stray_input() | reader.use_made()) {
            continue;
        }
        if std::mem::replace(&mut again, true) || !reader.read_again(text) {
            break;
        }
    }
    reader.mark_again();
    reader.add_other_words(other_words);
    reader.finish()
}

impl Reader {
    /// Reads what waits in the queue, as far as there is room for it.
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

    /// Takes in what the commands come to by their other words, with all that stands behind them.
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
                    let (behind, stage, broken) = (command.behind, command.stage, command.broken);
                    let around = Around { behind, stage, broken, ..Around::default() };
                    self.add(Command { words, floors: Vec::new(), ..command.clone() }, &around);
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
        self.script.commands.iter_mut().skip(before).for_each(|command| command.again = true);
        self.script.floors.truncate(floors);
    }
}
