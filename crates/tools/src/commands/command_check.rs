//! Decisions about agent commands in a line, made as when the commands run, but with nothing run.

use std::path::{Path, PathBuf};

use lathe_policy::{AgentCommandRequest, CommandDecision, GateCall, LineDecision};
use lathe_protocol::{Decision, Effects, ToolKind};
use serde_json::{Map, Value};

use super::agent_command::{self, AgentCommand, PathBase};
use super::context::CallGate;
use super::grammar::{Grammar, WordsRequest};
use super::without_limit;
use crate::call::{BuildContext, ToolSetup, TypedCall};
use crate::outside::OutsideTool;

/// Stands for a word that is known only when the line runs.
const LATER: &str = "known-only-later";

/// The agent commands, for decisions only.
pub struct CommandCheck {
    setup: ToolSetup,
    field: Vec<OutsideTool>,
}

impl CommandCheck {
    /// The commands with the user's file of facts, and the field commands that are declared.
    pub fn new(memory: Option<PathBuf>, field: Vec<OutsideTool>) -> Self {
        Self { setup: ToolSetup { memory, documents: None }, field }
    }

    /// Decides about each agent command in a line, and about the line by the strictest of them.
    pub fn decide(&self, call_gate: &CallGate, line: &mut LineDecision) {
        let granted = line.effects.clone();
        let mut strictest: Option<(String, Decision)> = None;
        for each in &mut line.commands {
            let Some((decision, effects)) = self.one(call_gate, each, &granted) else { continue };
            if decision.verdict < each.decision.verdict {
                continue;
            }
            let stricter = strictest.as_ref().is_none_or(|(_, known)| decision.verdict > known.verdict);
            if stricter && decision.verdict > line.decision.verdict {
                strictest = Some((each.words.join(" "), decision.clone()));
            }
            (each.decision, each.effects) = (decision, effects);
        }
        if let Some((words, decision)) = strictest {
            let reason = format!("`{}`: {}", lathe_protocol::visible(&words), decision.reason);
            line.decision = Decision { reason, ..decision };
        }
    }

    /// The strictest decision about one command, in any folder it may run in.
    fn one(
        &self,
        call_gate: &CallGate,
        each: &CommandDecision,
        granted: &Effects,
    ) -> Option<(Decision, Effects)> {
        let asked = each.agent_command.as_ref()?;
        let here = call_gate.gate.here.as_ref().unwrap_or(&call_gate.gate.root).clone();
        let mut folders: Vec<PathBuf> = asked.folders.iter().map(PathBuf::from).collect();
        folders.extend(folders.is_empty().then_some(here));
        let decided = folders.iter().flat_map(|folder| self.calls(call_gate, asked, granted, folder));
        decided.max_by_key(|(decision, _)| decision.verdict)
    }

    /// Decides about the calls that a command stands for.
    fn calls(
        &self,
        call_gate: &CallGate,
        asked: &AgentCommandRequest,
        granted: &Effects,
        folder: &Path,
    ) -> Vec<(Decision, Effects)> {
        let known = asked.words.iter().all(Option::is_some) && !asked.started;
        let words: Vec<String> =
            asked.words.iter().map(|word| word.clone().unwrap_or_else(|| LATER.to_owned())).collect();
        let decided = |tool: &str,
                       also: &[String],
                       kinds: (ToolKind, &[ToolKind]),
                       effects: Effects,
                       given: &[Value]| {
            let (kind, kinds) = kinds;
            let call = GateCall { tool, also, kind, kinds, effects: &effects, arguments: given };
            let name = agent_command::find(&asked.name).map_or(asked.name.as_str(), |command| command.name);
            (call_gate.decide_command(name, &words, &call, granted), effects)
        };
        if let Some(found) = self.field.iter().find(|tool| tool.command() == asked.name) {
            let Ok(invocation) = found.build(&Value::Object(Map::new())) else { return Vec::new() };
            return vec![decided(found.id(), &found.names(), (found.kind, &[]), invocation.effects(), &[])];
        }
        let Some(command) = agent_command::find(&asked.name) else { return Vec::new() };
        // A command that cannot be read before it runs is judged by its kind, in the folder it runs in.
        let by_kind = || {
            let place = folder.join(LATER).display().to_string();
            let effects = match command.kind {
                ToolKind::Edit | ToolKind::Delete | ToolKind::Move => {
                    Effects { writes: vec![place], ..Effects::default() }
                }
                _ => Effects::default(),
            };
            vec![decided(command.tool, &[], (command.kind, &[]), effects, &[])]
        };
        let calls = match read(command, &words, asked) {
            CommandMeaning::Calls(calls) => calls,
            // A mistake in the words, or a request for help: nothing is done.
            CommandMeaning::Nothing if known => return Vec::new(),
            CommandMeaning::Nothing | CommandMeaning::Unclear => return by_kind(),
        };
        let base = match command.base {
            PathBase::Caller => folder,
            PathBase::Root => &call_gate.gate.root,
        };
        let mut all = Vec::new();
        let ground = BuildContext { root: base, setup: &self.setup };
        for mut call in calls {
            call.resolve(folder);
            let (id, arguments) = (call.tool(), call.json());
            match call.build(&ground) {
                Ok(invocation) => {
                    let (effects, kinds) = (invocation.effects(), invocation.kinds());
                    all.push(decided(id, &[], (command.kind, &kinds), effects, &[arguments]));
                }
                Err(_) => all.extend(by_kind()),
            }
        }
        all
    }
}

/// Reads the words of a command, as when it runs.
fn read(command: &AgentCommand, words: &[String], asked: &AgentCommandRequest) -> CommandMeaning {
    let schema = (command.schema)().to_value().unwrap_or_default();
    let grammar = Grammar::of(&schema, command.short, command.positions, command.rest);
    let Ok(WordsRequest::Run(mut given)) = grammar.read(words) else { return CommandMeaning::Nothing };
    if given.from_input {
        let whole = asked.input.as_deref().map(|text| grammar.read_object(text, &mut given));
        if !matches!(whole, Some(Ok(()))) {
            return CommandMeaning::Unclear;
        }
    }
    if let Some(parameter) = command.input.filter(|name| !given.arguments.contains_key(*name)) {
        let missing = given.missing.iter().any(|missing| missing == parameter);
        let wanted = missing || !given.arguments.contains_key("new_string");
        let text = asked.input.clone().or_else(|| missing.then(String::new)).filter(|_| wanted);
        given.arguments.extend(text.map(|text| (parameter.to_owned(), Value::String(text))));
        given.missing.retain(|name| name != parameter);
    }
    if !given.missing.is_empty() {
        return CommandMeaning::Nothing;
    }
    without_limit(command, &mut given.arguments);
    match command.calls(given.arguments) {
        Ok(calls) => CommandMeaning::Calls(calls),
        Err(_) => CommandMeaning::Unclear,
    }
}

/// The meaning of the words of a command.
enum CommandMeaning {
    Calls(Vec<TypedCall>),
    /// No call: they ask for help, or are wrong.
    Nothing,
    /// A call that depends on the command's input.
    Unclear,
}
