//! The text that a pipe carries, as far as it can be known without running it. For denials only.

use std::collections::HashMap;

use crate::read::{CommandContext, ReadJob, ScriptReader};
use crate::script::{Redirect, RedirectKind, SimpleCommand, Stage, Word};
use crate::{foreign, predicted_output, wrap};

/// The text that comes out of a pipe.
struct PipeText {
    text: String,
    /// Its other readings, where its escapes are read in another way.
    others: Vec<String>,
    /// True if only a part of the first stage's output may arrive.
    part: bool,
}

impl PipeText {
    /// The text that several commands send one after the other, each of which may be read in several ways.
    fn of(texts: &[Vec<String>], part: bool) -> Self {
        let parts = |nth: usize| {
            let one = |readings: &Vec<String>| readings.get(nth).or(readings.last()).cloned();
            texts.iter().filter_map(one).collect::<Vec<String>>()
        };
        let most = texts.iter().map(Vec::len).max().unwrap_or_default();
        // `printf r; printf m`: a line may be sent in parts.
        let joined = predicted_output::joined_parts(&parts(0));
        let others = (1..most).map(|reading| parts(reading).join("\n")).chain(joined).collect();
        Self { text: parts(0).join("\n"), others, part }
    }

    /// All its readings, in one text.
    fn all(&self) -> String {
        let texts = [&self.text].into_iter().chain(&self.others);
        texts.map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// The most values that the variables of one `read` are given in all.
const MOST_BOUND: usize = 65_536;

pub(crate) type Stages = HashMap<(usize, usize), Vec<usize>>;

impl ScriptReader {
    /// Feeds literal text that `echo`, `printf` or `find` sends into a shell, into `xargs` or into a variable.
    /// Returns true if there was any.
    pub(crate) fn feed_pipes(&mut self) -> bool {
        let receivers = std::mem::take(&mut self.receivers);
        if receivers.is_empty() {
            return false;
        }
        let stages = self.stages();
        let mut fed = false;
        for (index, stage) in receivers {
            let (Some(sent), Some(command)) =
                (self.text_at_stage(stage, &stages), self.script.commands.get(index))
            else {
                continue;
            };
            let around =
                CommandContext { wrapper: Some(index), broken: command.broken, ..CommandContext::default() };
            if wrap::reads_commands(command) {
                let texts = sent.others.into_iter().chain([sent.text]);
                let texts: Vec<wrap::InnerCommand> = texts.map(wrap::InnerCommand::Text).collect();
                let others = crate::other_shells::read(command.program_name().unwrap_or(""), &texts);
                for inner in texts.into_iter().chain(others) {
                    match inner {
                        wrap::InnerCommand::Text(text) => {
                            self.queue.push(ReadJob { text, around: around.clone(), lines: true });
                        }
                        wrap::InnerCommand::Words(words) => {
                            self.add(SimpleCommand { words, ..SimpleCommand::default() }, &around);
                        }
                        wrap::InnerCommand::Endless => self.script.endless = true,
                    }
                }
                fed = true;
                continue;
            }
            let sent = PipeText { text: sent.all(), ..sent };
            if foreign::takes_text(command) {
                // As if it were a heredoc.
                let word = Word::text(sent.text.as_str());
                let redirects = vec![Redirect { kind: RedirectKind::Text, word }];
                let given =
                    SimpleCommand { words: command.words.clone(), redirects, ..SimpleCommand::default() };
                let name = given.program_name().unwrap_or("");
                if let Some(command) = self.script.commands.get_mut(index) {
                    command.redirects.extend(given.redirects.iter().cloned());
                }
                for inner in foreign::inner(name, &given) {
                    match inner {
                        wrap::InnerCommand::Text(text) => {
                            self.queue.push(ReadJob { text, around: around.clone(), lines: true });
                        }
                        wrap::InnerCommand::Words(words) => {
                            self.add(SimpleCommand { words, ..SimpleCommand::default() }, &around);
                        }
                        wrap::InnerCommand::Endless => self.script.endless = true,
                    }
                    fed = true;
                }
                continue;
            }
            let sent = wrap::sent_words(&sent.text, sent.part);
            let commands = if command.program_name().is_some_and(wrap::reads_lines) {
                let commands = self.in_loop(index, stage, &stages, &sent);
                self.bind(index, &sent);
                commands
            } else {
                match wrap::with_input(command, &sent) {
                    Some(wrap::InnerCommand::Words(words)) => vec![words],
                    Some(wrap::InnerCommand::Text(_)) | None => Vec::new(),
                    Some(wrap::InnerCommand::Endless) => {
                        self.script.endless = true;
                        return false;
                    }
                }
            };
            for words in commands {
                if !self.afford(&words) {
                    return false;
                }
                self.add(SimpleCommand { words, ..SimpleCommand::default() }, &around);
                fed = true;
            }
        }
        fed
    }

    /// The commands of each stage of each pipe.
    pub(crate) fn stages(&self) -> Stages {
        let mut stages = Stages::new();
        for (index, command) in self.script.commands.iter().enumerate() {
            if let Some(stage) = command.stage.filter(|_| command.wrapper.is_none()) {
                stages.entry((stage.pipe, stage.index)).or_default().push(index);
            }
        }
        stages
    }

    /// The text that a pipe brings to a command.
    pub(crate) fn text_from_pipe(&self, command: &SimpleCommand, stages: &Stages) -> Option<String> {
        self.text_at_stage(command.stage?, stages).map(|sent| sent.all())
    }

    /// The text that arrives at a stage, through the stages before it that pass it on.
    fn text_at_stage(&self, stage: Stage, stages: &Stages) -> Option<PipeText> {
        let mut part = false;
        for before in (0..stage.index).rev() {
            let indices = stages.get(&(stage.pipe, before))?;
            let commands = || indices.iter().filter_map(|index| self.script.commands.get(*index));
            part |= commands().any(predicted_output::narrows);
            let texts: Vec<Vec<String>> =
                commands().map(predicted_output::possible_prints).filter(|texts| !texts.is_empty()).collect();
            if !texts.is_empty() {
                return Some(PipeText::of(&texts, part));
            }
            if !commands().any(predicted_output::passes_on) {
                return None;
            }
        }
        None
    }

    /// The files that a loop deletes one by one: `find ~ | while read f; do rm "$f"; done`.
    fn in_loop(&self, reader: usize, stage: Stage, stages: &Stages, sent: &[String]) -> Vec<Vec<Word>> {
        let indices = stages.get(&(stage.pipe, stage.index)).map_or(&[][..], Vec::as_slice);
        let commands = indices.iter().filter(|index| **index > reader);
        let commands = commands.filter_map(|index| self.script.commands.get(*index));
        let deletes = |command: &&SimpleCommand| {
            command.program_name() == Some("rm") && command.words.iter().any(|word| word.literal().is_none())
        };
        commands
            .filter(deletes)
            .map(|command| {
                let options = command.words.iter().filter(|word| word.literal().is_some());
                wrap::with_words(options.cloned().collect(), sent)
            })
            .collect()
    }

    /// Binds the variables that a command reads to the text it is sent.
    fn bind(&mut self, index: usize, sent: &[String]) {
        let names: Vec<String> = self.script.commands.get(index).map_or_else(Vec::new, |command| {
            let words = command.words.iter().skip(1).filter_map(Word::literal);
            words.filter(|word| !word.starts_with('-')).map(str::to_owned).collect()
        });
        if names.len() * sent.len() > MOST_BOUND {
            self.script.endless = true;
            return;
        }
        for name in names {
            for word in sent {
                self.assign(&name, Some(Word::text(word.as_str())));
            }
        }
    }
}
