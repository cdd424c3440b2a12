//! The tools as commands in the session's bash.
//!
//! Bash reads the line; what arrives here is one command with its words, its folder and its streams. The command is
//! checked again at this point, with what its words came to: that is the only place where it is certain which file is
//! meant. What it did is written down as a child of the call whose line it stands in.

mod bytes;
mod checked;
mod context;
mod field;
mod help;
mod jobs;
mod own;
mod render;
mod table;
mod typed;
mod words;

use std::sync::{Arc, Weak};
use std::time::Instant;

use lathe_policy::Call;
use lathe_protocol::{Boxed, CommandRan, Decision, Digest, Effects, Kind, Raw, Verdict};
use lathe_shell::{Caller, CommandCall, CommandHost, CommandIo, Input, Output};
use serde_json::{Map, Value};

use crate::built_in::commands as all_commands;
use crate::call::{Ground, ToolSetup, TypedCall};
use crate::filters::Filtered;
use crate::finish::recorded;
use crate::outcome::Outcome;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::services::Services;
use crate::tool::{Invocation, RunContext, Wanted};
use table::Base;
use typed::{Given, Request};
use words::words;

pub use checked::CommandCheck;
pub use context::{ANSWERS, Fresh, Judge, Judged, Ledger, Notebook, Recalled};
pub(crate) use context::{JUDGED, LineContext};
pub(crate) use field::FieldTools;
pub use own::built_in_commands;
pub(crate) use table::Command;
pub(crate) use typed::Grammar;

/// Bytes of standard input a command takes.
const INPUT: usize = 64 << 20;

/// Exit codes, as every shell has them.
mod code {
    pub(super) const FAILED: u8 = 1;
    pub(super) const USAGE: u8 = 2;
    pub(super) const NO_LINE: u8 = 125;
    pub(super) const DENIED: u8 = 126;
    pub(super) const UNKNOWN: u8 = 127;
    pub(super) const CANCELLED: u8 = 130;
}

/// The commands of one session.
#[derive(Clone)]
pub(crate) struct AgentCommands {
    pub(crate) setup: ToolSetup,
    pub(crate) field: Arc<FieldTools>,
    pub(crate) services: Weak<Services>,
    /// Commands whose tool the session does not have.
    pub(crate) without: Vec<&'static str>,
}

impl CommandHost for AgentCommands {
    fn names(&self) -> Vec<String> {
        let built_in = self
            .offered()
            .flat_map(|command| [command.name].into_iter().chain(command.aliases.iter().copied()));
        built_in.chain(own::SHELLS_OWN).map(str::to_owned).chain(self.field.names()).collect()
    }

    fn run(&self, call: CommandCall, io: CommandIo) -> Boxed<'static, u8> {
        let this = self.clone();
        Box::pin(async move { this.answer(call, io).await })
    }
}

/// One command while it runs.
struct Running {
    name: String,
    words: Vec<String>,
    call: CommandCall,
    io: CommandIo,
    line: Arc<LineContext>,
    decision: Decision,
    /// The digest of what a person was shown of it.
    shown: Option<Digest>,
    began: Instant,
    /// What it leaves behind, for the ledger.
    left: Left,
}

#[derive(Default)]
struct Left {
    tool: Option<&'static str>,
    changes: Vec<lathe_changes::TreeChange>,
    /// They were made while no line ran.
    between_lines: bool,
    seen: Vec<lathe_protocol::SeenFile>,
    memory: Option<Raw>,
    summary: Option<String>,
}

impl AgentCommands {
    pub(crate) fn offered(&self) -> impl Iterator<Item = &'static Command> {
        all_commands().filter(|command| !self.without.contains(&command.name))
    }

    async fn answer(&self, call: CommandCall, mut io: CommandIo) -> u8 {
        let mut words = call.argv.iter().map(|word| word.to_str().map(str::to_owned));
        let name = words.next().flatten().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        let Some(words) = words.collect::<Option<Vec<String>>>() else {
            return complain(&mut io, &name, "a word is not UTF-8; use a program for it", code::USAGE).await;
        };
        let Some(line) = self.services.upgrade().and_then(|services| services.line(call.line)) else {
            return complain(&mut io, &name, "no line of this session is running", code::NO_LINE).await;
        };
        // The files of the host are named from here on.
        let Some(cwd) = line.context.services.workspace.host(&call.cwd) else {
            return complain(&mut io, &name, "the host has no path for its folder", code::NO_LINE).await;
        };
        let call = CommandCall { cwd, ..call };
        let decision = Decision {
            verdict: Verdict::Allow,
            rule: "builtin.reads".to_owned(),
            reason: "it only reads".to_owned(),
        };
        let left = Left::default();
        let mut running =
            Running { name, words, call, io, line, decision, shown: None, began: Instant::now(), left };
        let code = self.dispatch(&mut running).await;
        running.finish(code).await
    }

    async fn dispatch(&self, running: &mut Running) -> u8 {
        let name = running.name.clone();
        match name.as_str() {
            "commands" => return self.list(running).await,
            "jobs" => return self.jobs(running).await,
            "field" => return self.domains(running).await,
            _ if name.contains(':') => return self.field_command(running).await,
            _ => {}
        }
        let Some(command) = table::find(&name).filter(|command| !self.without.contains(&command.name)) else {
            let words = format!("unknown command; try: commands {name}");
            return running.complain(&words, code::UNKNOWN).await;
        };
        let schema = (command.schema)().to_value().unwrap_or_default();
        let grammar = Grammar::of(&schema, command.short, command.positions, command.rest);
        let grammar = match command.base {
            Base::Caller => grammar.in_callers_folder(),
            Base::Root => grammar,
        };
        let given = match grammar.read(&running.words) {
            Err(wrong) => return running.misused(&wrong, &grammar).await,
            Ok(Request::Help { whole: false }) => {
                return running.print(help::brief(&name, command.summary)).await;
            }
            Ok(Request::Help { whole: true }) => {
                return running.print(help::whole(&name, command.summary, &grammar, command.notes)).await;
            }
            Ok(Request::Run(given)) => given,
        };
        let mut given = match running.filled(given, command, &grammar).await {
            Ok(given) => given,
            Err(wrong) => return running.misused(&wrong, &grammar).await,
        };
        if !given.missing.is_empty() {
            let missing = given.missing.iter().map(|name| format!("Missing required parameter: {name}"));
            let wrong = format!("Validation errors:\n{}", missing.collect::<Vec<_>>().join("\n"));
            return running.misused(&wrong, &grammar).await;
        }
        running.expand_home(&mut given.arguments, command.paths);
        if let Some(outputs) = &running.line.context.services.outputs {
            outputs.place(&mut given.arguments, Some(&running.call.cwd));
        }
        if command.name == "view" && bytes::wanted(&given.arguments, running.call.output) {
            return bytes::view(running, &given.arguments).await;
        }
        if running.call.output == Output::Elsewhere {
            without_limit(command, &mut given.arguments);
        }
        self.work(running, (command, &grammar), given.arguments).await
    }

    /// Runs the tool behind a command, for each file of several.
    async fn work(
        &self,
        running: &mut Running,
        (command, grammar): (&Command, &Grammar),
        arguments: Map<String, Value>,
    ) -> u8 {
        let calls = match command.calls(arguments) {
            Ok(calls) => calls,
            Err(Problem::Arguments(missing)) if missing.starts_with("Missing required parameter") => {
                return running.misused(&format!("Validation errors:\n{missing}"), grammar).await;
            }
            Err(problem) => return running.problem(&problem).await,
        };
        let several = calls.len() > 1;
        let mut worst = 0;
        for call in calls {
            if several && let Some(path) = call.heading() {
                let title = format!("==> {path} <==\n");
                running.say(title).await;
            }
            let code = self.one(running, command, call).await;
            worst = worst.max(code);
        }
        worst
    }

    async fn one(&self, running: &mut Running, command: &Command, mut call: TypedCall) -> u8 {
        let base = match command.base {
            Base::Caller => running.call.cwd.clone(),
            Base::Root => running.line.context.services.workspace.root().to_owned(),
        };
        call.resolve(&running.call.cwd);
        let (id, given, literal) = (call.tool(), [call.json()], call.literal());
        let ground = Ground { root: &base, setup: &self.setup };
        let invocation = match call.build(&ground) {
            Ok(invocation) => invocation,
            Err(problem) => return running.problem(&problem).await,
        };
        let outcome = match running.allowed(id, invocation, command.kind, &given).await {
            Ok(outcome) => outcome,
            Err(code) => return code,
        };
        // What is no regular expression is looked for as it stands.
        if let Err(Problem::Pattern(_)) = &outcome.data
            && let Some(literal) = literal
            && let Ok(invocation) = literal.build(&ground)
        {
            return match running.allowed(id, invocation, command.kind, &given).await {
                Ok(outcome) => running.told(outcome).await,
                Err(code) => code,
            };
        }
        running.told(outcome).await
    }
}

impl Running {
    /// Runs what the gate lets through; else the exit code of a refusal.
    async fn allowed(
        &mut self,
        tool: &'static str,
        invocation: Box<dyn Invocation>,
        kind: Kind,
        arguments: &[Value],
    ) -> Result<Outcome, u8> {
        self.left.tool = Some(tool);
        let (effects, kinds) = (invocation.effects(), invocation.kinds());
        let call = Call { tool, also: &[], kind, kinds: &kinds, effects: &effects, arguments };
        let permit = self.decide(&call, Some(&*invocation)).await?;
        if tool == crate::done::ID
            && let Err(reason) = self.line.context.ledger.may_end().await
        {
            return Err(self.complain(&reason, code::FAILED).await);
        }
        let context = self.context(tool, &effects).await;
        let filtered = Filtered::command(kind, effects, &context);
        filtered.before(&context).await;
        // A question is the user's time, not the line's.
        let hold = (kind == Kind::Communicate).then(|| self.call.clock.hold());
        let mut outcome = invocation.run(permit, context).await;
        drop(hold);
        let told = filtered.after_command(&outcome).await;
        self.note(told.trim_start_matches('\n')).await;
        self.line.changed(&outcome.changes);
        self.line.saw(&outcome.seen);
        for name in self.line.attach(std::mem::take(&mut outcome.attached)) {
            self.note(&format!(
                "{name} is not shown to you: a line shows 10 images and 40 MiB of them at most"
            ))
            .await;
        }
        self.left.between_lines |= outcome.between_lines && self.line.has_ended();
        self.left.changes.append(&mut outcome.changes);
        self.left.seen.append(&mut outcome.seen);
        self.left.memory = outcome.memory.take().or(self.left.memory.take());
        Ok(outcome)
    }

    /// Leave to do this inside the line.
    async fn decide(
        &mut self,
        call: &Call<'_>,
        invocation: Option<&dyn Invocation>,
    ) -> Result<lathe_policy::Permit, u8> {
        let (line, effects) = (Arc::clone(&self.line), call.effects);
        let judge = &line.context.judge;
        let line_clock = self.call.clock.clone();
        let late = self.call.line.is_none() && effects.change_something();
        let decision = if late {
            Decision {
                verdict: Verdict::Deny,
                rule: "line.ended".to_owned(),
                reason: "its line has ended, so the change would belong to no call".to_owned(),
            }
        } else {
            let name = table::find(&self.name).map_or(self.name.as_str(), |command| command.name);
            judge.command(name, &self.words, call, &self.line.granted)
        };
        let decision = match (decision.verdict, &self.line.context.asker) {
            (Verdict::Ask, Some(_)) => {
                // Looking at it and the user's time are not the line's.
                let _hold = line_clock.hold();
                let about = match invocation {
                    Some(invocation) => self.preview(call, invocation).await?,
                    None => String::new(),
                };
                self.approval(call, about, decision).await
            }
            _ => decision,
        };
        let permit = judge.gate.permit(&decision, effects);
        self.decision = decision;
        match permit {
            Some(permit) => Ok(permit),
            None => {
                let reason = match self.decision.rule.as_str() {
                    "approval" => self.decision.reason.clone(),
                    _ => format!("Tool execution denied by policy. {}", self.decision.reason),
                };
                Err(self.complain(&reason, code::DENIED).await)
            }
        }
    }

    /// What a person is asked about. A command that cannot do what it says fails at once, without a question.
    async fn preview(&mut self, call: &Call<'_>, invocation: &dyn Invocation) -> Result<String, u8> {
        let context = self.context(call.tool, call.effects).await;
        let preview = match invocation.preview(&context).await {
            Ok(preview) => preview,
            Err(problem) => return Err(self.problem(&problem).await),
        };
        self.shown = Some(preview.digest());
        Ok(match preview {
            Preview::Edit { diff, .. } | Preview::Patch { diff, .. } => diff,
            Preview::Exec { command: text } | Preview::Info { text } => text,
        })
    }

    /// Asks a person, as a child of the call whose line runs. Their time is not the line's.
    async fn approval(&self, call: &Call<'_>, about: String, decision: Decision) -> Decision {
        let Some(asker) = &self.line.context.asker else { return decision };
        let _hold = self.call.clock.hold();
        let wanted = Wanted {
            tool: call.tool.to_owned(),
            also: call.also.to_vec(),
            kinds: call.kinds.to_vec(),
            kind: call.kind,
            effects: call.effects.clone(),
            arguments: call.arguments.to_vec(),
            words: std::iter::once(&self.name).chain(&self.words).cloned().collect(),
            about,
            decision: decision.clone(),
        };
        tokio::select! {
            answer = asker.approve(&self.line.context.call, wanted) => answer,
            () = self.call.cancel.cancelled() => Decision {
                verdict: Verdict::Deny,
                rule: "approval".to_owned(),
                reason: "cancelled before it was allowed".to_owned(),
            },
        }
    }

    async fn context(&self, tool: &str, effects: &Effects) -> RunContext {
        let paths = effects.reads.iter().chain(&effects.writes).cloned().collect();
        let context = &self.line.context;
        let recalled = context.ledger.recall(tool, paths).await;
        RunContext {
            // A shell's user knows that other commands of the line change files too, and an edit says the text it changes:
            // what was seen before is no reason to refuse.
            seen: Vec::new(),
            shown: self.shown.clone(),
            memory: recalled.memory,
            umask: self.call.caller.map(|caller| caller.umask),
            cancel: self.call.cancel.clone(),
            ..context.clone()
        }
    }

    /// Prints what a tool came to; its exit code.
    async fn told(&mut self, outcome: Outcome) -> u8 {
        if let Some(error) = &outcome.unrecorded {
            let words = format!(
                "The change was made, but its content could not be recorded (not undoable): {error}\n"
            );
            self.note(&words).await;
        }
        self.note(&crate::hidden::note(outcome.left_out)).await;
        match outcome.data {
            Err(problem) => self.problem(&problem).await,
            Ok(mut data) => {
                if self.call.output == Output::Session {
                    data.redact(&self.line.context.services.redactor);
                }
                if let crate::outcome::Data::Done { summary } = &data {
                    self.left.summary = Some(summary.clone());
                }
                let printed = render::print(&data, self.call.output, &self.call.cwd);
                self.say(printed.out).await;
                self.note(&printed.err).await;
                printed.code
            }
        }
    }

    async fn problem(&mut self, problem: &Problem) -> u8 {
        let code = match problem {
            Problem::Arguments(_) | Problem::Schema(_) => code::USAGE,
            Problem::Cancelled(_) => code::CANCELLED,
            _ => code::FAILED,
        };
        self.complain(&words(problem), code).await
    }

    /// What stands on standard input, where the words left it to that.
    async fn filled(
        &mut self,
        mut given: Given,
        command: &Command,
        grammar: &Grammar,
    ) -> Result<Given, String> {
        if given.from_input {
            let text = String::from_utf8(self.input().await?)
                .map_err(|_| "--json: standard input is not UTF-8".to_owned())?;
            grammar.whole(&text, &mut given)?;
            return Ok(given);
        }
        let Some(parameter) = command.input.filter(|name| !given.arguments.contains_key(*name)) else {
            return Ok(given);
        };
        // An edit that was given its texts wants nothing more.
        let complete = given.arguments.contains_key("new_string")
            || (command.name == "json_edit" && !wants_value(&given.arguments))
            || (command.name == "code" && given.arguments.get("command").is_some_and(|what| what == "map"));
        if self.call.input == Input::Nothing || complete {
            return Ok(given);
        }
        let input = self.input().await?;
        let value = match String::from_utf8(input) {
            Ok(text) => Value::String(text),
            Err(wrong) if command.name == "write" => bytes::encoded(wrong.as_bytes()),
            Err(_) => return Err(format!("{parameter}: standard input is not UTF-8")),
        };
        let value = match (command.name, value) {
            ("write" | "edit" | "apply_patch" | "todo", value) => value,
            ("json_edit", Value::String(text)) => serde_json::from_str(&text)
                .unwrap_or_else(|_| Value::String(text.trim_end_matches('\n').to_owned())),
            (_, Value::String(text)) => Value::String(text.trim_end_matches('\n').to_owned()),
            (_, other) => other,
        };
        given.arguments.insert(parameter.to_owned(), value);
        given.missing.retain(|name| name != parameter);
        Ok(given)
    }

    async fn input(&mut self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        while let Ok(Some(piece)) = self.io.read().await {
            all.extend_from_slice(&piece);
            if all.len() > INPUT {
                return Err(format!("standard input is larger than {} MiB", INPUT >> 20));
            }
        }
        Ok(all)
    }

    fn expand_home(&self, arguments: &mut Map<String, Value>, paths: &[&str]) {
        let callers = self.call.caller.map(Caller::variables).unwrap_or_default();
        let mut env = callers.iter().chain(&self.line.context.services.plan.env);
        let home = env.find(|(name, _)| name == "HOME").and_then(|(_, home)| home.to_str());
        let expand = |text: &mut String| match (home, text.strip_prefix('~')) {
            (Some(home), Some(rest)) if rest.is_empty() || rest.starts_with('/') => {
                *text = format!("{home}{rest}");
            }
            (Some(_) | None, _) => {}
        };
        for name in paths {
            match arguments.get_mut(*name) {
                Some(Value::String(text)) => expand(text),
                Some(Value::Array(all)) => {
                    for value in all {
                        if let Value::String(text) = value {
                            expand(text);
                        }
                    }
                }
                Some(_) | None => {}
            }
        }
    }

    async fn say(&mut self, text: impl Into<Vec<u8>>) {
        let bytes = text.into();
        if !bytes.is_empty() {
            // Who has gone hears nothing; the exit code is dropped with the rest.
            let _ = self.io.out(bytes).await;
        }
    }

    /// Words beside the output, where they disturb no pipe.
    async fn note(&mut self, text: &str) {
        if !text.is_empty() {
            let ended = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
            let _ = self.io.err(ended).await;
        }
    }

    async fn print(&mut self, text: String) -> u8 {
        self.say(text).await;
        0
    }

    async fn complain(&mut self, words: &str, code: u8) -> u8 {
        complain(&mut self.io, &self.name, words, code).await
    }

    async fn misused(&mut self, wrong: &str, grammar: &Grammar) -> u8 {
        let words = format!("{wrong}\nUsage: {}", help::usage(&self.name, grammar));
        self.complain(&words, code::USAGE).await
    }

    /// Writes down what it came to.
    async fn finish(self, code: u8) -> u8 {
        let between_lines = self.left.between_lines;
        let is_told = self.line.count() || between_lines;
        if !is_told && self.left.memory.is_none() && self.left.summary.is_none() {
            return code;
        }
        let context = &self.line.context;
        let clean = |text: &str| context.services.redactor.text(text).into_owned();
        let changes = recorded(self.left.changes, &context.call, &context.services.redactor);
        let argv = std::iter::once(self.name.as_str()).chain(self.words.iter().map(String::as_str));
        let ran = CommandRan {
            argv: argv.map(|word| clean(shortened(word))).collect(),
            cwd: clean(&self.call.cwd.display().to_string()),
            decision: self.decision,
            exit: code,
            took_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            changes,
            between_lines,
            tool: self.left.tool.map(str::to_owned),
            seen: self.left.seen,
            memory: self.left.memory,
            summary: self.left.summary.as_deref().filter(|_| code == 0).map(clean),
        };
        context.ledger.record(&context.call, ran).await;
        code
    }
}

/// Bytes of a word that are written down.
const WORD: usize = 400;

fn shortened(word: &str) -> &str {
    crate::view::clip(word, WORD)
}

async fn complain(io: &mut CommandIo, name: &str, words: &str, code: u8) -> u8 {
    let words = words.trim_end();
    let _ = io.err(format!("{name}: {words}\n")).await;
    code
}

/// A setter or an adder without its value.
fn wants_value(given: &Map<String, Value>) -> bool {
    given.get("operation").and_then(Value::as_str).is_some_and(|what| matches!(what, "set" | "add"))
}

/// What another program reads is not cut.
fn without_limit(command: &Command, given: &mut Map<String, Value>) {
    if matches!(command.name, "search" | "glob") && !given.contains_key("limit") {
        given.insert("limit".to_owned(), Value::from(20_000));
    }
}
