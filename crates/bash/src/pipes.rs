//! What a pipe carries, as far as that can be known without running it. For denials only.

use std::collections::HashMap;

use crate::read::{Around, Job, Reader};
use crate::script::{Command, Redirect, RedirectKind, Stage, Word};
use crate::{foreign, known, wrap};

/// What comes out of a pipe.
struct Sent {
    text: String,
    /// Its other readings, where its escapes are read in another way.
    others: Vec<String>,
    /// Whether only a part of what the first stage names may come.
    part: bool,
}

impl Sent {
    /// The text that several commands send one after the other, each of which may be read in several ways.
    fn of(texts: &[Vec<String>], part: bool) -> Self {
        let parts = |nth: usize| {
            let one = |readings: &Vec<String>| readings.get(nth).or(readings.last()).cloned();
            texts.iter().filter_map(one).collect::<Vec<String>>()
        };
        let most = texts.iter().map(Vec::len).max().unwrap_or_default();
        // `printf r; printf m`: a line may be sent in parts.
        let joined = known::in_one(&parts(0));
        let others = (1..most).map(|reading| parts(reading).join("\n")).chain(joined).collect();
        Self { text: parts(0).join("\n"), others, part }
    }

    /// All that it may be, in one.
    fn all(&self) -> String {
        let texts = [&self.text].into_iter().chain(&self.others);
        texts.map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// Values that the variables of one `read` are given in all.
const MOST_BOUND: usize = 65_536;

pub(crate) type Stages = HashMap<(usize, usize), Vec<usize>>;

impl Reader {
    /// Literal text that `echo`, `printf` or `find` sends into a shell, into `xargs` or into a variable. Says whether there
    /// was any.
    pub(crate) fn feed_pipes(&mut self) -> bool {
        let receivers = std::mem::take(&mut self.receivers);
        if receivers.is_empty() {
            return false;
        }
        let stages = self.stages();
        let mut fed = false;
        for (index, stage) in receivers {
            let (Some(sent), Some(command)) = (self.sent(stage, &stages), self.script.commands.get(index))
            else {
                continue;
            };
            let around = Around { behind: Some(index), broken: command.broken, ..Around::default() };
            if wrap::reads_commands(command) {
                let texts = sent.others.into_iter().chain([sent.text]);
                let texts: Vec<wrap::Inner> = texts.map(wrap::Inner::Text).collect();
                let others = crate::other_shells::read(command.program_name().unwrap_or(""), &texts);
                for inner in texts.into_iter().chain(others) {
                    match inner {
                        wrap::Inner::Text(text) => {
                            self.queue.push(Job { text, around: around.clone(), lines: true });
                        }
                        wrap::Inner::Words(words) => {
                            self.add(Command { words, ..Command::default() }, &around);
                        }
                        wrap::Inner::Endless => self.script.endless = true,
                    }
                }
                fed = true;
                continue;
            }
            let sent = Sent { text: sent.all(), ..sent };
            if foreign::takes_text(command) {
                // As if it stood there as a heredoc.
                let word = Word::text(sent.text.as_str());
                let redirects = vec![Redirect { kind: RedirectKind::Text, word }];
                let given = Command { words: command.words.clone(), redirects, ..Command::default() };
                let name = given.program_name().unwrap_or("");
                if let Some(command) = self.script.commands.get_mut(index) {
                    command.redirects.extend(given.redirects.iter().cloned());
                }
                for inner in foreign::inner(name, &given) {
                    match inner {
                        wrap::Inner::Text(text) => {
                            self.queue.push(Job { text, around: around.clone(), lines: true });
                        }
                        wrap::Inner::Words(words) => {
                            self.add(Command { words, ..Command::default() }, &around);
                        }
                        wrap::Inner::Endless => self.script.endless = true,
                    }
                    fed = true;
                }
                continue;
            }
            let sent = wrap::sent(&sent.text, sent.part);
            let commands = if command.program_name().is_some_and(wrap::reads_lines) {
                let commands = self.in_loop(index, stage, &stages, &sent);
                self.bind(index, &sent);
                commands
            } else {
                match wrap::with_input(command, &sent) {
                    Some(wrap::Inner::Words(words)) => vec![words],
                    Some(wrap::Inner::Text(_)) | None => Vec::new(),
                    Some(wrap::Inner::Endless) => {
                        self.script.endless = true;
                        return false;
                    }
                }
            };
            for words in commands {
                if !self.afford(&words) {
                    return false;
                }
                self.add(Command { words, ..Command::default() }, &around);
                fed = true;
            }
        }
        fed
    }

    /// The commands of each stage of each pipe.
    pub(crate) fn stages(&self) -> Stages {
        let mut stages = Stages::new();
        for (index, command) in self.script.commands.iter().enumerate() {
            if let Some(stage) = command.stage.filter(|_| command.behind.is_none()) {
                stages.entry((stage.pipe, stage.index)).or_default().push(index);
            }
        }
        stages
    }

    /// The text that a pipe brings to a command.
    pub(crate) fn piped(&self, command: &Command, stages: &Stages) -> Option<String> {
        self.sent(command.stage?, stages).map(|sent| sent.all())
    }

    /// What comes to a stage, through those before it that pass it on.
    fn sent(&self, stage: Stage, stages: &Stages) -> Option<Sent> {
        let mut part = false;
        for before in (0..stage.index).rev() {
            let indices = stages.get(&(stage.pipe, before))?;
            let commands = || indices.iter().filter_map(|index| self.script.commands.get(*index));
            part |= commands().any(known::narrows);
            let texts: Vec<Vec<String>> =
                commands().map(known::readings).filter(|texts| !texts.is_empty()).collect();
            if !texts.is_empty() {
                return Some(Sent::of(&texts, part));
            }
            if !commands().any(known::passes_on) {
                return None;
            }
        }
        None
    }

    /// `find ~ | while read f; do rm "$f"; done`: what is deleted there, one by one.
    fn in_loop(&self, reader: usize, stage: Stage, stages: &Stages, sent: &[String]) -> Vec<Vec<Word>> {
        let indices = stages.get(&(stage.pipe, stage.index)).map_or(&[][..], Vec::as_slice);
        let commands = indices.iter().filter(|index| **index > reader);
        let commands = commands.filter_map(|index| self.script.commands.get(*index));
        let deletes = |command: &&Command| {
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

    /// The variables that a command reads, with what it is sent.
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
