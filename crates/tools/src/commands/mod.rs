//! The tools as commands in the session's bash.
//!
//! Bash reads the line. This module gets one command with its words, its folder and its streams. The gate checks the
//! command again at this point, with its expanded words, because only here is it certain which file is meant. Its
//! effects are recorded as a child of the call whose line it stands in.

mod agent_command;
mod bytes;
mod command_check;
mod context;
mod field;
mod grammar;
mod help;
mod jobs;
mod own;
mod problem_text;
mod render;

use std::sync::{Arc, Weak};
use std::time::Instant;

use lathe_policy::GateCall;
use lathe_protocol::{BoxFuture, CommandRan, Decision, Digest, Effects, Raw, ToolKind, Verdict};
use lathe_shell::{Caller, CommandCall, CommandHost, CommandIo, InputSource, OutputTarget};
use serde_json::{Map, Value};

use crate::built_in::commands as all_commands;
use crate::call::{BuildContext, ToolSetup, TypedCall};
use crate::filters::FilteredCall;
use crate::finish::journal_changes;
use crate::outcome::Outcome;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::services::Services;
use crate::tool::{CommandApproval, Invocation, RunContext};
use agent_command::PathBase;
use grammar::{GivenArguments, WordsRequest};
use problem_text::problem_text;

pub(crate) use agent_command::{AgentCommand, InputForm};
pub use command_check::CommandCheck;
pub use context::{APPROVALS_FILE, CallGate, FreshnessCheck, GateDecision, Ledger, LocalLedger, Recalled};
pub(crate) use context::{JUDGED, LineContext};
pub(crate) use field::FieldTools;
pub(crate) use grammar::Grammar;
pub use own::built_in_commands;

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

    fn run(&self, call: CommandCall, io: CommandIo) -> BoxFuture<'static, u8> {
        let this = self.clone();
        Box::pin(async move { this.run_command(call, io).await })
    }
}

/// One command while it runs.
struct RunningCommand {
    name: String,
    words: Vec<String>,
    call: CommandCall,
    io: CommandIo,
    line: Arc<LineContext>,
    decision: Decision,
    /// The digest of the preview that the user was shown.
    shown: Option<Digest>,
    began: Instant,
    /// Its results, for the ledger.
    results: CommandResults,
}

#[derive(Default)]
struct CommandResults {
    tool: Option<&'static str>,
    changes: Vec<lathe_changes::TreeChange>,
    /// True if they were made while no line ran.
    between_lines: bool,
    seen: Vec<lathe_protocol::SeenFile>,
    memory: Option<Raw>,
    summary: Option<String>,
}

impl AgentCommands {
    pub(crate) fn offered(&self) -> impl Iterator<Item = &'static AgentCommand> {
        all_commands().filter(|command| !self.without.contains(&command.name))
    }

    async fn run_command(&self, call: CommandCall, mut io: CommandIo) -> u8 {
        let mut words = call.argv.iter().map(|word| word.to_str().map(str::to_owned));
        let name = words.next().flatten().unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default().to_owned();
        let Some(words) = words.collect::<Option<Vec<String>>>() else {
            return complain(&mut io, &name, "a word is not UTF-8; use a program for it", code::USAGE).await;
        };
        let Some(line) = self.services.upgrade().and_then(|services| services.line(call.line)) else {
            return complain(&mut io, &name, "no line of this session is running", code::NO_LINE).await;
        };
        // From here on, paths are those of the host.
        let Some(cwd) = line.context.services.workspace.host(&call.cwd) else {
            return complain(&mut io, &name, "the host has no path for its folder", code::NO_LINE).await;
        };
        let call = CommandCall { cwd, ..call };
        let decision = Decision {
            verdict: Verdict::Allow,
            rule: "builtin.reads".to_owned(),
            reason: "it only reads".to_owned(),
        };
        let left = CommandResults::default();
        let mut running = RunningCommand {
            name,
            words,
            call,
            io,
            line,
            decision,
            shown: None,
            began: Instant::now(),
            results: left,
        };
        let code = self.dispatch(&mut running).await;
        running.finish(code).await
    }

    async fn dispatch(&self, running: &mut RunningCommand) -> u8 {
        let name = running.name.clone();
        match name.as_str() {
            "commands" => return self.list_commands(running).await,
            "jobs" => return self.jobs(running).await,
            "field" => return self.list_domains(running).await,
            _ if name.contains(':') => return self.field_command(running).await,
            _ => {}
        }
        let Some(command) =
            agent_command::find(&name).filter(|command| !self.without.contains(&command.name))
        else {
            let words = format!("unknown command; try: commands {name}");
            return running.complain(&words, code::UNKNOWN).await;
        };
        let schema = (command.schema)().to_value().unwrap_or_default();
        let grammar = Grammar::of(&schema, command.short, command.positions, command.rest);
        let grammar = match command.base {
            PathBase::Caller => grammar.in_callers_folder(),
            PathBase::Root => grammar,
        };
        let given = match grammar.read(&running.words) {
            Err(wrong) => return running.usage_error(&wrong, &grammar).await,
            Ok(WordsRequest::Help { whole: false }) => {
                return running.print(help::summary_line(&name, command.summary)).await;
            }
            Ok(WordsRequest::Help { whole: true }) => {
                return running.print(help::full_help(&name, command.summary, &grammar, command.notes)).await;
            }
            Ok(WordsRequest::Run(given)) => given,
        };
        let mut given = match running.fill_from_input(given, command, &grammar).await {
            Ok(given) => given,
            Err(wrong) => return running.usage_error(&wrong, &grammar).await,
        };
        if !given.missing.is_empty() {
            let missing = given.missing.iter().map(|name| format!("Missing required parameter: {name}"));
            let wrong = format!("Validation errors:\n{}", missing.collect::<Vec<_>>().join("\n"));
            return running.usage_error(&wrong, &grammar).await;
        }
        running.expand_home(&mut given.arguments, command.paths);
        if let Some(outputs) = &running.line.context.services.outputs {
            outputs.replace_handles(&mut given.arguments, Some(&running.call.cwd));
        }
        if command.name == "view" && bytes::is_raw(&given.arguments, running.call.output) {
            return bytes::print_raw(running, &given.arguments).await;
        }
        if running.call.output == OutputTarget::Elsewhere {
            without_limit(command, &mut given.arguments);
        }
        self.work(running, (command, &grammar), given.arguments).await
    }

    /// Runs the tool of a command, once for each of several files.
    async fn work(
        &self,
        running: &mut RunningCommand,
        (command, grammar): (&AgentCommand, &Grammar),
        arguments: Map<String, Value>,
    ) -> u8 {
        let calls = match command.calls(arguments) {
            Ok(calls) => calls,
            Err(Problem::Arguments(missing)) if missing.starts_with("Missing required parameter") => {
                return running.usage_error(&format!("Validation errors:\n{missing}"), grammar).await;
            }
            Err(problem) => return running.report_problem(&problem).await,
        };
        let several = calls.len() > 1;
        let mut worst = 0;
        for call in calls {
            if several && let Some(path) = call.heading() {
                let title = format!("==> {path} <==\n");
                running.write_out(title).await;
            }
            let code = self.one(running, command, call).await;
            worst = worst.max(code);
        }
        worst
    }

    async fn one(&self, running: &mut RunningCommand, command: &AgentCommand, mut call: TypedCall) -> u8 {
        let base = match command.base {
            PathBase::Caller => running.call.cwd.clone(),
            PathBase::Root => running.line.context.services.workspace.root().to_owned(),
        };
        call.resolve(&running.call.cwd);
        let (id, given, literal) = (call.tool(), [call.json()], call.literal());
        let ground = BuildContext { root: &base, setup: &self.setup };
        let invocation = match call.build(&ground) {
            Ok(invocation) => invocation,
            Err(problem) => return running.report_problem(&problem).await,
        };
        let outcome = match running.run_if_allowed(id, invocation, command.kind, &given).await {
            Ok(outcome) => outcome,
            Err(code) => return code,
        };
        // A pattern that is not a regular expression is searched as literal text.
        if let Err(Problem::Pattern(_)) = &outcome.data
            && let Some(literal) = literal
            && let Ok(invocation) = literal.build(&ground)
        {
            return match running.run_if_allowed(id, invocation, command.kind, &given).await {
                Ok(outcome) => running.print_outcome(outcome).await,
                Err(code) => code,
            };
        }
        running.print_outcome(outcome).await
    }
}

impl RunningCommand {
    /// Runs an invocation if the gate allows it. The error is the exit code of a refusal.
    async fn run_if_allowed(
        &mut self,
        tool: &'static str,
        invocation: Box<dyn Invocation>,
        kind: ToolKind,
        arguments: &[Value],
    ) -> Result<Outcome, u8> {
        self.results.tool = Some(tool);
        let (effects, kinds) = (invocation.effects(), invocation.kinds());
        let call = GateCall { tool, also: &[], kind, kinds: &kinds, effects: &effects, arguments };
        let permit = self.decide(&call, Some(&*invocation)).await?;
        if tool == crate::done::ID
            && let Err(reason) = self.line.context.ledger.may_end().await
        {
            return Err(self.complain(&reason, code::FAILED).await);
        }
        let context = self.context(tool, &effects).await;
        let filtered = FilteredCall::command(kind, effects, &context);
        filtered.before(&context).await;
        // A question takes the user's time, not the line's.
        let hold = (kind == ToolKind::Communicate).then(|| self.call.clock.hold());
        let mut outcome = invocation.run(permit, context).await;
        drop(hold);
        let told = filtered.after_command(&outcome).await;
        self.note(told.trim_start_matches('\n')).await;
        self.line.add_changes(&outcome.changes);
        self.line.add_seen(&outcome.seen);
        for name in self.line.attach(std::mem::take(&mut outcome.attached)) {
            self.note(&format!(
                "{name} is not shown to you: a line shows 10 images and 40 MiB of them at most"
            ))
            .await;
        }
        self.results.between_lines |= outcome.between_lines && self.line.has_ended();
        self.results.changes.append(&mut outcome.changes);
        self.results.seen.append(&mut outcome.seen);
        self.results.memory = outcome.memory.take().or(self.results.memory.take());
        Ok(outcome)
    }

    /// The permit to run this inside the line. The error is the exit code of a refusal.
    async fn decide(
        &mut self,
        call: &GateCall<'_>,
        invocation: Option<&dyn Invocation>,
    ) -> Result<lathe_policy::Permit, u8> {
        let (line, effects) = (Arc::clone(&self.line), call.effects);
        let call_gate = &line.context.call_gate;
        let line_clock = self.call.clock.clone();
        let late = self.call.line.is_none() && effects.change_something();
        let decision = if late {
            Decision {
                verdict: Verdict::Deny,
                rule: "line.ended".to_owned(),
                reason: "its line has ended, so the change would belong to no call".to_owned(),
            }
        } else {
            let name = agent_command::find(&self.name).map_or(self.name.as_str(), |command| command.name);
            call_gate.decide_command(name, &self.words, call, &self.line.granted)
        };
        let decision = match (decision.verdict, &self.line.context.asker) {
            (Verdict::Ask, Some(_)) => {
                // The preview and the user's time do not count as the line's.
                let _hold = line_clock.hold();
                let about = match invocation {
                    Some(invocation) => self.preview(call, invocation).await?,
                    None => String::new(),
                };
                self.ask_approval(call, about, decision).await
            }
            _ => decision,
        };
        let permit = call_gate.gate.permit(&decision, effects);
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

    /// The text of the approval request. A command that cannot do what it says fails at once, without a question.
    async fn preview(&mut self, call: &GateCall<'_>, invocation: &dyn Invocation) -> Result<String, u8> {
        let context = self.context(call.tool, call.effects).await;
        let preview = match invocation.preview(&context).await {
            Ok(preview) => preview,
            Err(problem) => return Err(self.report_problem(&problem).await),
        };
        self.shown = Some(preview.digest());
        Ok(match preview {
            Preview::Edit { diff, .. } | Preview::Patch { diff, .. } => diff,
            Preview::Exec { command: text } | Preview::Info { text } => text,
        })
    }

    /// Asks the user, as a child of the call whose line runs. The user's time does not count as the line's.
    async fn ask_approval(&self, call: &GateCall<'_>, about: String, decision: Decision) -> Decision {
        let Some(asker) = &self.line.context.asker else { return decision };
        let _hold = self.call.clock.hold();
        let wanted = CommandApproval {
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
            // The user of a shell knows that other commands of the line change files too, and an edit names the text
            // it changes: what was seen before is not a reason to refuse.
            seen: Vec::new(),
            shown: self.shown.clone(),
            memory: recalled.memory,
            umask: self.call.caller.map(|caller| caller.umask),
            cancel: self.call.cancel.clone(),
            ..context.clone()
        }
    }

    /// Prints the outcome of a tool. Returns the exit code.
    async fn print_outcome(&mut self, outcome: Outcome) -> u8 {
        if let Some(error) = &outcome.unrecorded {
            let words = format!(
                "The change was made, but its content could not be recorded (not undoable): {error}\n"
            );
            self.note(&words).await;
        }
        self.note(&crate::files::hidden::left_out_note(outcome.left_out)).await;
        match outcome.data {
            Err(problem) => self.report_problem(&problem).await,
            Ok(mut data) => {
                if self.call.output == OutputTarget::Session {
                    data.redact(&self.line.context.services.redactor);
                }
                if let crate::outcome::Data::Done { summary } = &data {
                    self.results.summary = Some(summary.clone());
                }
                let printed = render::print(&data, self.call.output, &self.call.cwd);
                self.write_out(printed.out).await;
                self.note(&printed.err).await;
                printed.code
            }
        }
    }

    async fn report_problem(&mut self, problem: &Problem) -> u8 {
        let code = match problem {
            Problem::Arguments(_) | Problem::Schema(_) => code::USAGE,
            Problem::Cancelled(_) => code::CANCELLED,
            _ => code::FAILED,
        };
        self.complain(&problem_text(problem), code).await
    }

    /// Reads the arguments from standard input where the words leave them to it.
    async fn fill_from_input(
        &mut self,
        mut given: GivenArguments,
        command: &AgentCommand,
        grammar: &Grammar,
    ) -> Result<GivenArguments, String> {
        if given.from_input {
            let text = String::from_utf8(self.input().await?)
                .map_err(|_| "--json: standard input is not UTF-8".to_owned())?;
            grammar.read_object(&text, &mut given)?;
            return Ok(given);
        }
        let Some(parameter) = command.input.filter(|name| !given.arguments.contains_key(*name)) else {
            return Ok(given);
        };
        // An edit that was given its texts needs nothing more.
        let complete = given.arguments.contains_key("new_string")
            || (command.name == "json_edit" && !wants_value(&given.arguments))
            || (command.name == "code" && given.arguments.get("command").is_some_and(|what| what == "map"));
        if self.call.input == InputSource::Nothing || complete {
            return Ok(given);
        }
        let input = self.input().await?;
        let without_end = |text: &str| Value::String(text.trim_end_matches('\n').to_owned());
        let value = match (String::from_utf8(input), command.input_form) {
            (Ok(text), InputForm::Exact | InputForm::Content) => Value::String(text),
            (Ok(text), InputForm::Json) => serde_json::from_str(&text).unwrap_or_else(|_| without_end(&text)),
            (Ok(text), InputForm::Words) => without_end(&text),
            (Err(wrong), InputForm::Content) => bytes::encode_bytes(wrong.as_bytes()),
            (Err(_), InputForm::Words | InputForm::Exact | InputForm::Json) => {
                return Err(format!("{parameter}: standard input is not UTF-8"));
            }
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

    async fn write_out(&mut self, text: impl Into<Vec<u8>>) {
        let bytes = text.into();
        if !bytes.is_empty() {
            // If the reader is gone, the output is dropped, and later the exit code too.
            let _ = self.io.out(bytes).await;
        }
    }

    /// Prints a note to standard error, where it disturbs no pipe.
    async fn note(&mut self, text: &str) {
        if !text.is_empty() {
            let ended = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
            let _ = self.io.err(ended).await;
        }
    }

    async fn print(&mut self, text: String) -> u8 {
        self.write_out(text).await;
        0
    }

    async fn complain(&mut self, words: &str, code: u8) -> u8 {
        complain(&mut self.io, &self.name, words, code).await
    }

    async fn usage_error(&mut self, wrong: &str, grammar: &Grammar) -> u8 {
        let words = format!("{wrong}\nUsage: {}", help::usage(&self.name, grammar));
        self.complain(&words, code::USAGE).await
    }

    /// Records the result of the command.
    async fn finish(self, code: u8) -> u8 {
        let between_lines = self.results.between_lines;
        let is_told = self.line.count_command() || between_lines;
        if !is_told && self.results.memory.is_none() && self.results.summary.is_none() {
            return code;
        }
        let context = &self.line.context;
        let clean = |text: &str| context.services.redactor.redact_text(text).into_owned();
        let changes = journal_changes(self.results.changes, &context.call, &context.services.redactor);
        let argv = std::iter::once(self.name.as_str()).chain(self.words.iter().map(String::as_str));
        let ran = CommandRan {
            argv: argv.map(|word| clean(shortened(word))).collect(),
            cwd: clean(&self.call.cwd.display().to_string()),
            decision: self.decision,
            exit: code,
            took_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            changes,
            between_lines,
            tool: self.results.tool.map(str::to_owned),
            seen: self.results.seen,
            memory: self.results.memory,
            summary: self.results.summary.as_deref().filter(|_| code == 0).map(clean),
        };
        context.ledger.record(&context.call, ran).await;
        code
    }
}

/// Bytes of a word that are recorded.
const WORD: usize = 400;

fn shortened(word: &str) -> &str {
    crate::view::clip(word, WORD)
}

async fn complain(io: &mut CommandIo, name: &str, words: &str, code: u8) -> u8 {
    let words = words.trim_end();
    let _ = io.err(format!("{name}: {words}\n")).await;
    code
}

/// Tells whether the operation needs a value: `set` or `add`.
fn wants_value(given: &Map<String, Value>) -> bool {
    given.get("operation").and_then(Value::as_str).is_some_and(|what| matches!(what, "set" | "add"))
}

/// Raises the limit of output that another program reads, so that it is not cut.
fn without_limit(command: &AgentCommand, given: &mut Map<String, Value>) {
    if matches!(command.name, "search" | "glob") && !given.contains_key("limit") {
        given.insert("limit".to_owned(), Value::from(20_000));
    }
}
