//! The examples of a rule, which it must pass before it counts.

use std::path::Path;

use lathe_protocol::{Actor, Mode};

use crate::error::PolicyError;
use crate::names::{self, KnownNames, ToolNameKind, tool_names};
use crate::patterns::{PatternCache, glob};
use crate::places::{Spent, Values};
use crate::possible_commands::PossibleCommands;
use crate::regexes;
use crate::rules::{GateCommand, Rule, Setting, Subject};
use crate::touch::Touch;

impl Rule {
    /// Tries the examples.
    pub(crate) fn check(&self, known: &KnownNames) -> Result<(), PolicyError> {
        let (file, line, rule) = (self.file.clone(), self.line, self.number);
        let of_tools = !self.tool.is_empty()
            && self.command.is_empty()
            && self.words.is_empty()
            && self.command_regex.is_empty()
            && self.args_pattern.is_empty()
            && self.path.is_empty()
            && self.host.is_empty();
        let unknown = |example: &&String| names::classify(example, known) == ToolNameKind::Unknown;
        if let Some(example) = self.matches.iter().chain(&self.not_matches).filter(|_| of_tools).find(unknown)
        {
            return Err(PolicyError::Rule { file, line, rule, why: names::unknown_name(example, known) });
        }
        if let Some(example) = self.matches.iter().find(|example| !self.example(example, known)) {
            return Err(PolicyError::NoMatch { file, line, rule, example: example.clone() });
        }
        if let Some(example) = self.not_matches.iter().find(|example| self.example(example, known)) {
            return Err(PolicyError::Match { file, line, rule, example: example.clone() });
        }
        Ok(())
    }

    /// Tries one example. It is a line for a rule about commands, an object for one about arguments, and otherwise a
    /// path, a host or the name of a tool.
    fn example(&self, example: &str, known: &KnownNames) -> bool {
        if self.is_of_commands() {
            let setting = Setting {
                actor: self.actor.first().copied().unwrap_or(Actor::Model),
                mode: self.mode.first().copied().unwrap_or(Mode::Default),
                root: Path::new(self.workspace.first().map_or("/", String::as_str)),
                folder: self.folder.first().map(String::as_str),
                line: example,
                gate: None,
                patterns: &PatternCache::default(),
                is_walled: false,
            };
            let script = lathe_bash::read(example);
            let spent = Spent::default();
            let values = Values { assigned: &script.values, may_be_empty: false, line: None, spent: &spent };
            let behind = PossibleCommands::of_script(&script, &values);
            return script.commands.iter().zip(&behind).any(|(command, behind)| {
                let effects = command.effects();
                let spelled = effects.reads.iter().chain(&effects.writes);
                let touches: Vec<Touch> = spelled.map(|path| Touch::spelled(path)).collect();
                let kinds = crate::kinds::of_command(command, &effects, &touches, &values, behind);
                let act = GateCommand {
                    command,
                    effects: &effects,
                    touches: &touches,
                    own: None,
                    kinds: &kinds,
                    possible: behind,
                    assigned: &script.values,
                    asks: true,
                };
                self.applies(Subject::Command(act), setting).is_some()
            });
        }
        if !self.args_pattern.is_empty() {
            let arguments = serde_json::from_str(example).unwrap_or_else(|_| example.into());
            return regexes::match_arguments(&self.args_pattern, &[arguments], self.decision);
        }
        let any = |patterns: &[String]| patterns.iter().any(|pattern| glob(pattern, example));
        let meant = |tool: &str| {
            tool.eq_ignore_ascii_case(example)
                || tool_names(tool).any(|name| name.eq_ignore_ascii_case(example))
        };
        let tools = || known.canonical().filter(|tool| meant(tool)).any(|tool| self.names(tool, &[]));
        any(&self.path) || any(&self.host) || (!self.tool.is_empty() && (any(&self.tool) || tools()))
    }
}
