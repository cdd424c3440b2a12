//! Decisions about commands of the agent in a line, found as when they run, with nothing run.

use std::path::{Path, PathBuf};

use lathe_policy::{Asked, Call, Each, LineDecision};
use lathe_protocol::{Decision, Effects, Kind};
use serde_json::{Map, Value};

use super::context::Judge;
use super::table::{self, Base, Command};
use super::typed::{Grammar, Request};
use super::without_limit;
use crate::call::{Ground, ToolSetup, TypedCall};
use crate::outside::OutsideTool;

/// Stands for a word that shows only when the line runs.
const LATER: &str = "known-only-later";

/// The commands of the agent, for decisions only.
pub struct CommandCheck {
    setup: ToolSetup,
    field: Vec<OutsideTool>,
}

impl CommandCheck {
    /// The commands with the user's file of facts, and the field commands that are declared.
    pub fn new(memory: Option<PathBuf>, field: Vec<OutsideTool>) -> Self {
        Self { setup: ToolSetup { memory, documents: None }, field }
    }

    /// Decides about each command of the agent in a line, and about the line by the strictest of them.
    pub fn decide(&self, judge: &Judge, line: &mut LineDecision) {
        let granted = line.effects.clone();
        let mut strictest: Option<(String, Decision)> = None;
        for each in &mut line.each {
            let Some((decision, effects)) = self.one(judge, each, &granted) else { continue };
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
    fn one(&self, judge: &Judge, each: &Each, granted: &Effects) -> Option<(Decision, Effects)> {
        let asked = each.asked.as_ref()?;
        let here = judge.gate.here.as_ref().unwrap_or(&judge.gate.root).clone();
        let mut folders: Vec<PathBuf> = asked.folders.iter().map(PathBuf::from).collect();
        folders.extend(folders.is_empty().then_some(here));
        let decided = folders.iter().flat_map(|folder| self.calls(judge, asked, granted, folder));
        decided.max_by_key(|(decision, _)| decision.verdict)
    }

    /// Decides about the calls that a command comes to.
    fn calls(
        &self,
        judge: &Judge,
        asked: &Asked,
        granted: &Effects,
        folder: &Path,
    ) -> Vec<(Decision, Effects)> {
        let known = asked.words.iter().all(Option::is_some) && !asked.started;
        let words: Vec<String> =
            asked.words.iter().map(|word| word.clone().unwrap_or_else(|| LATER.to_owned())).collect();
        let decided =
            |tool: &str, also: &[String], kinds: (Kind, &[Kind]), effects: Effects, given: &[Value]| {
                let (kind, kinds) = kinds;
                let call = Call { tool, also, kind, kinds, effects: &effects, arguments: given };
                let name = table::find(&asked.name).map_or(asked.name.as_str(), |command| command.name);
                (judge.command(name, &words, &call, granted), effects)
            };
        if let Some(found) = self.field.iter().find(|tool| tool.command() == asked.name) {
            let Ok(invocation) = found.build(&Value::Object(Map::new())) else { return Vec::new() };
            return vec![decided(found.id(), &found.names(), (found.kind, &[]), invocation.effects(), &[])];
        }
        let Some(command) = table::find(&asked.name) else { return Vec::new() };
        // What cannot be read before it runs is of its kind, in the folder it runs in.
        let by_kind = || {
            let place = folder.join(LATER).display().to_string();
            let effects = match command.kind {
                Kind::Edit | Kind::Delete | Kind::Move => {
                    Effects { writes: vec![place], ..Effects::default() }
                }
                _ => Effects::default(),
            };
            vec![decided(command.tool, &[], (command.kind, &[]), effects, &[])]
        };
        let calls = match read(command, &words, asked) {
            Read::Calls(calls) => calls,
            // A mistake in the words, or help: nothing is done.
            Read::Nothing if known => return Vec::new(),
            Read::Nothing | Read::Unclear => return by_kind(),
        };
        let base = match command.base {
            Base::Caller => folder,
            Base::Root => &judge.gate.root,
        };
        let mut all = Vec::new();
        let ground = Ground { root: base, setup: &self.setup };
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
fn read(command: &Command, words: &[String], asked: &Asked) -> Read {
    let schema = (command.schema)().to_value().unwrap_or_default();
    let grammar = Grammar::of(&schema, command.short, command.positions, command.rest);
    let Ok(Request::Run(mut given)) = grammar.read(words) else { return Read::Nothing };
    if given.from_input {
        let whole = asked.input.as_deref().map(|text| grammar.whole(text, &mut given));
        if !matches!(whole, Some(Ok(()))) {
            return Read::Unclear;
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
        return Read::Nothing;
    }
    without_limit(command, &mut given.arguments);
    match command.calls(given.arguments) {
        Ok(calls) => Read::Calls(calls),
        Err(_) => Read::Unclear,
    }
}

/// The meaning of the words of a command.
enum Read {
    Calls(Vec<TypedCall>),
    /// No call: they ask for help, or are wrong.
    Nothing,
    /// A call that only its input tells of.
    Unclear,
}
