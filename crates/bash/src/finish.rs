//! Steps that need the whole text: binding the input of groups and functions, and finding functions that start
//! themselves.

use std::collections::HashMap;

use crate::read::ScriptReader;
use crate::script::{RedirectKind, Script, SimpleCommand, Word};
use crate::{predicted_output, wrap};

impl ScriptReader {
    /// Binds the input of a group or a function to the names that a `read` in it may read: `while read x; do …; done
    /// <<< y`.
    fn bind_groups(&mut self) {
        let is_read = |command: &&SimpleCommand| command.program_name().is_some_and(wrap::reads_lines);
        let names: Vec<String> =
            self.script.commands.iter().filter(is_read).flat_map(predicted_output::read_names).collect();
        if names.is_empty() {
            return;
        }
        let is_group =
            |command: &&SimpleCommand| command.program().is_none_or(|name| self.functions.contains_key(name));
        let groups = self.script.commands.iter().filter(is_group);
        let texts = groups.flat_map(|command| &command.redirects);
        let texts = texts.filter(|redirect| redirect.kind == RedirectKind::Text);
        let bound: Vec<(String, Word)> =
            texts.flat_map(|text| predicted_output::read_into(&names, &text.word)).collect();
        names.iter().for_each(|name| self.assign(name, None));
        bound.into_iter().for_each(|(name, value)| self.assign(&name, Some(value)));
    }

    pub(crate) fn finish(mut self) -> Script {
        self.bind_groups();
        if !self.functions.is_empty() {
            let called = |command: &&SimpleCommand| {
                command.program().is_some_and(|name| self.functions.contains_key(name))
            };
            let words =
                self.script.commands.iter().filter(called).filter_map(|command| command.words.get(1..));
            let bound: Vec<(String, Word)> = words.flat_map(predicted_output::positional).collect();
            for (name, value) in bound {
                self.assign(&name, Some(value));
            }
        }
        self.reshape();
        self.script.functions = self.functions.keys().map(ToString::to_string).collect();
        self.script.functions.sort();
        self.script.bombs = self.bombs();
        self.script
    }

    /// Functions that start themselves, also through others, twice or in the background.
    fn bombs(&self) -> Vec<String> {
        let reaches = |from: &str, to: &str| {
            let (mut open, mut seen) = (vec![from], vec![from]);
            while let Some(calls) = open.pop().and_then(|name| self.functions.get(name)) {
                for name in calls.keys().map(String::as_str) {
                    if name == to {
                        return true;
                    }
                    if self.functions.contains_key(name) && !seen.contains(&name) {
                        seen.push(name);
                        open.push(name);
                    }
                }
            }
            false
        };
        // Longer chains of functions than this are not to be expected in a line; what is beyond is asked about as a
        // definition.
        let few = self.functions.iter().take(256);
        let bomb = |(function, calls): &(&std::rc::Rc<str>, &HashMap<String, (usize, bool)>)| {
            let back = calls.iter().filter(|(name, _)| {
                ***name == ***function
                    || (self.functions.contains_key(name.as_str()) && reaches(name, function))
            });
            let (times, apart) =
                back.fold((0, false), |(times, apart), (_, (more, also))| (times + more, apart || *also));
            times >= 2 || apart
        };
        let mut bombs: Vec<String> = few.filter(bomb).map(|(function, _)| function.to_string()).collect();
        bombs.sort();
        bombs
    }
}
