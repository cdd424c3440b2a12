//! The toolbox of a session: finds the face a call names, prepares it for the gate, runs it, and words its result.

use std::sync::Arc;
use std::time::Instant;

use futures::FutureExt as _;
use lathe_policy::{GateCall, Permit, Rulebook};
use lathe_protocol::{
    Arguments, CallFinished, Effects, Lane, Raw, ToolCall, ToolChoice, ToolErrorKind, ToolKind, ToolSpec,
    Toolset, edit_distance,
};
use lathe_shell::CommandHost;
use parking_lot::RwLock;
use serde_json::Value;

use crate::built_in::{commands as all_commands, special_faces};
use crate::call::{BuildContext, ToolSetup};
use crate::commands::{AgentCommand, AgentCommands, FieldTools};
use crate::faces::ToolAbout;
use crate::faces::caller;
use crate::faces::{Face, Voice, faces};
use crate::faces::{Selection, ToolNames, is_shell};
use crate::faces::{ToolEntry, ToolSource, tool_entries};
use crate::filters::FilteredCall;
use crate::finish::finish;
use crate::outside::{OutsideTool, domains};
use crate::preview::Preview;
use crate::problem::Problem;
use crate::services::Services;
use crate::tool::{Invocation, RunContext, ShellLine};
use crate::{bash, placeholder};

/// The setting that excludes tools and commands.
const EXCLUDE: &str = "tools.exclude";

/// The setting that allows them without a question.
const ALLOWED: &str = "tools.allowed";

/// The parameter of every tool by which a call waits for those before it.
const WAIT: &str = "wait_for_previous";

pub struct Toolbox {
    toolset: Toolset,
    setup: ToolSetup,
    entries: Vec<ToolEntry>,
    /// Text about the domains of field commands, for the one tool of the `bash` toolset.
    domains: String,
    /// Tools that joined after the model got its list, for the tool that calls others.
    later: RwLock<Vec<OutsideTool>>,
    selection: Selection,
    services: Arc<Services>,
}

/// A call that is ready to be decided on and run.
pub struct PreparedCall {
    pub tool: &'static str,
    /// The names of an outside tool.
    also: Vec<String>,
    kinds: Vec<ToolKind>,
    pub about: String,
    pub effects: Effects,
    /// The arguments as they were given, and under the names of the tool itself.
    arguments: Vec<Value>,
    pub lane: Lane,
    pub kind: ToolKind,
    /// The purpose of a command, in the model's words.
    pub purpose: Option<String>,
    /// The line, if the call runs one in the shell.
    pub line: Option<ShellLine>,
    name: String,
    voice: Voice,
    notes: Vec<String>,
    invocation: Box<dyn Invocation>,
}

impl PreparedCall {
    /// The name the model called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The call as rules see it.
    pub fn policy_call(&self) -> GateCall<'_> {
        GateCall {
            tool: self.tool,
            also: &self.also,
            kind: self.kind,
            kinds: &self.kinds,
            effects: &self.effects,
            arguments: &self.arguments,
        }
    }

    /// The preview of the change or command, for the user who decides. The error is the result of a call that cannot
    /// be done.
    pub async fn preview(&self, context: &RunContext) -> Result<Preview, Box<CallFinished>> {
        let redactor = &context.services.redactor;
        self.invocation.preview(context).await.map_err(|problem| {
            let words = redactor.redact_text(&(self.voice.words)(&problem)).into_owned();
            Box::new(CallFinished::failed(&self.name, problem.kind(), words))
        })
    }
}

impl Toolbox {
    /// All tools of a toolset.
    pub fn new(toolset: Toolset, services: Arc<Services>) -> Self {
        Self::for_session(toolset, services, ToolChoice::default(), Vec::new())
    }

    /// The tools of a session: the built-in ones in their order, then the outside ones in theirs. A name that is
    /// taken stays with its first owner; a later tool must have been given another name by then.
    pub fn for_session(
        toolset: Toolset,
        services: Arc<Services>,
        choice: ToolChoice,
        outside: Vec<OutsideTool>,
    ) -> Self {
        let selection = Selection(choice);
        let setup = ToolSetup {
            memory: services.plan.memory.clone(),
            documents: services.documents.as_ref().and_then(|documents| documents.host()).map(str::to_owned),
        };
        if toolset.has_commands() {
            services.offer(agent_commands(&setup, &services, &selection, outside.clone()));
        }
        let domains = if toolset == Toolset::Bash { domains(&outside) } else { String::new() };
        let entries = tool_entries(toolset, &services.own_faces(toolset), &selection, outside);
        Self { toolset, setup, entries, domains, later: RwLock::default(), selection, services }
    }

    pub fn services(&self) -> &Arc<Services> {
        &self.services
    }

    /// The specifications of a toolset for the model, always in the same order and bytes.
    pub fn specs(toolset: Toolset) -> Vec<ToolSpec> {
        faces(toolset).map(Face::spec).collect()
    }

    /// The tools that only some sessions have.
    pub fn special_specs(toolset: Toolset) -> Vec<ToolSpec> {
        match toolset {
            Toolset::Lathe | Toolset::Trae => special_faces(|_| true).map(Face::spec).collect(),
            Toolset::Gemini | Toolset::Bash => Vec::new(),
        }
    }

    /// The descriptions of a toolset for people.
    pub fn about(toolset: Toolset) -> Vec<ToolAbout> {
        Self::about_session(toolset, ToolChoice::default(), Vec::new())
    }

    /// The descriptions for people of a session with this choice and these outside tools.
    pub fn about_session(toolset: Toolset, choice: ToolChoice, outside: Vec<OutsideTool>) -> Vec<ToolAbout> {
        tool_entries(toolset, &[], &Selection(choice), outside).iter().map(ToolEntry::about).collect()
    }

    /// Adds a tool to a running session. The list that the model has stays as it is, and `call_tool` reaches the new
    /// tool.
    pub fn join(&self, tool: OutsideTool) {
        if let Some(commands) = self.services.commands() {
            commands.field.join(tool.clone());
        }
        self.later.write().push(tool);
    }

    /// The commands of this session's shell.
    pub fn commands(&self) -> Vec<String> {
        self.services.commands().map(CommandHost::names).unwrap_or_default()
    }

    /// The rules for this session: lines are judged for a shell with its commands, and excluded commands are denied
    /// in any spelling.
    pub fn session_rules(&self, rules: Rulebook) -> Rulebook {
        let own = self.services.commands().map(AgentCommands::gate_commands).unwrap_or_default();
        exclude_listed(rules.with_own_commands(own), &self.selection.0.exclude)
    }

    /// The specifications for the model of this session.
    pub fn own_specs(&self) -> Vec<ToolSpec> {
        let mut specs: Vec<ToolSpec> = self.entries.iter().map(ToolEntry::spec).collect();
        if let [bash] = specs.as_mut_slice() {
            bash.description.push_str(&self.domains);
        }
        specs
    }

    /// Checks a call and determines its effects. The error is the result of a call that cannot be made.
    pub fn prepare(&self, call: &ToolCall) -> Result<PreparedCall, Box<CallFinished>> {
        let failed =
            |kind, message: String| Box::new(CallFinished::failed(&call.name, kind, self.clean(&message)));
        let Some(entry) = self.entry(&call.name) else {
            return Err(failed(ToolErrorKind::ToolNotRegistered, self.unknown_tool(&call.name)));
        };
        let mut value = arguments_object(&call.arguments).map_err(|reason| {
            let words = match self.toolset {
                Toolset::Bash => bash::not_json(&reason),
                Toolset::Lathe | Toolset::Trae | Toolset::Gemini => {
                    format!("The arguments of {} {reason}.", call.name)
                }
            };
            failed(ToolErrorKind::InvalidToolParams, words)
        })?;
        let voice = entry.voice();
        let problem = |problem: Problem| failed(problem.kind(), (voice.words)(&problem));
        let waits = take_wait(entry, &mut value);
        let mut notes = entry.check(&mut value).map_err(problem)?;
        let called;
        let entry = match entry.source {
            ToolSource::BuiltIn(_) | ToolSource::Outside(_) => entry,
            ToolSource::Caller => {
                let (name, arguments) = caller::called_tool(value).map_err(problem)?;
                let Some(tool) = self.outside(&name) else {
                    return Err(failed(ToolErrorKind::ToolNotRegistered, self.unknown_tool(&name)));
                };
                called = ToolEntry::outside(tool, self.toolset);
                value = arguments;
                notes.extend(called.check(&mut value).map_err(problem)?);
                &called
            }
        };
        if let Some(reason) = self.refusal(entry, &value) {
            let message = format!("Tool execution denied by policy. {reason}.");
            return Err(failed(ToolErrorKind::PolicyViolation, message));
        }
        if let (Some(outputs), Value::Object(arguments)) = (&self.services.outputs, &mut value) {
            outputs.replace_handles(arguments, self.services.cwd().as_deref());
        }
        let placeholder = placeholder::find_placeholder(&value);
        let purpose = purpose(entry.kind, &value);
        let BuiltCall { id, invocation, arguments } = self.build(entry, value).map_err(problem)?;
        let effects = invocation.effects();
        if let Some(placeholder) = placeholder.filter(|_| effects.change_something()) {
            return Err(problem(Problem::Placeholder(placeholder)));
        }
        let also = match &entry.source {
            ToolSource::Outside(tool) => tool.names(),
            ToolSource::BuiltIn(_) | ToolSource::Caller => Vec::new(),
        };
        Ok(PreparedCall {
            tool: id,
            also,
            kinds: invocation.kinds(),
            about: self.clean(&invocation.describe()),
            effects,
            lane: match invocation.lane() {
                Lane::Reader if waits => Lane::Alone,
                lane => lane,
            },
            arguments,
            purpose: purpose.map(|purpose| self.clean(&purpose)),
            kind: entry.kind,
            line: invocation.line(),
            name: call.name.clone(),
            voice,
            notes,
            invocation,
        })
    }

    fn build(&self, entry: &ToolEntry, value: Value) -> Result<BuiltCall, Problem> {
        let (root, given) = (self.services.workspace.root(), value.clone());
        match &entry.source {
            ToolSource::Outside(tool) => {
                Ok(BuiltCall { id: tool.id(), invocation: tool.build(&given)?, arguments: vec![given] })
            }
            ToolSource::Caller => Err(Problem::Arguments("name: a tool cannot call itself".to_owned())),
            ToolSource::BuiltIn(face) => {
                let call = (face.read)(value)?;
                let own = call.is_translated().then(|| call.json()).filter(|own| *own != given);
                let arguments = std::iter::once(given).chain(own).collect();
                let ground = BuildContext { root, setup: &self.setup };
                Ok(BuiltCall { id: call.tool(), invocation: call.build(&ground)?, arguments })
            }
        }
    }

    /// Runs a prepared call. There is always exactly one result.
    pub async fn run(&self, prepared: PreparedCall, permit: Permit, context: RunContext) -> CallFinished {
        let began = Instant::now();
        let PreparedCall { name, voice, invocation, notes, effects, kind, .. } = prepared;
        let (by, handle) = (context.call.clone(), context.handle);
        let filtered = FilteredCall::call(kind, effects, notes, &context);
        filtered.before(&context).await;
        // A panic in a tool ends its call, not the session.
        let ran = std::panic::AssertUnwindSafe(invocation.run(permit, context)).catch_unwind().await;
        let mut finished = match ran {
            Ok(outcome) => finish(&self.services, &name, voice, outcome, by, handle).await,
            Err(_) => CallFinished::failed(
                &name,
                ToolErrorKind::UnhandledException,
                "The tool broke down. This is a mistake in Lathe; try another way.",
            ),
        };
        filtered.after(&mut finished).await;
        finished.took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        finished
    }

    /// The arguments a call would have had if the model had proposed `proposed`, the text that the user made of a
    /// preview.
    pub fn modified(&self, call: &ToolCall, preview: &Preview, proposed: &str) -> Option<Arguments> {
        let entry = self.entry(&call.name)?;
        let ToolSource::BuiltIn(face) = entry.source else { return None };
        let value = arguments_object(&call.arguments).ok()?;
        let modified = (face.modify?)(value, preview, proposed)?;
        Raw::from_serialize(&modified).ok().map(Arguments::Json)
    }

    fn clean(&self, text: &str) -> String {
        self.services.redactor.redact_text(text).into_owned()
    }

    fn refusal(&self, entry: &ToolEntry, value: &Value) -> Option<String> {
        let command = value.get("command").and_then(Value::as_str)?;
        (entry.kind == ToolKind::Execute).then(|| self.selection.refusal(&entry.known(), command)).flatten()
    }

    /// An outside tool, by the name that the model or its owner uses.
    fn outside(&self, name: &str) -> Option<OutsideTool> {
        let listed = self.entries.iter().filter_map(|entry| match &entry.source {
            ToolSource::Outside(tool) => Some(tool.clone()),
            ToolSource::BuiltIn(_) | ToolSource::Caller => None,
        });
        let later = self.later.read().clone();
        let allowed =
            |tool: &OutsideTool| self.selection.has(&ToolEntry::outside(tool.clone(), self.toolset).known());
        let all: Vec<OutsideTool> = listed.chain(later.into_iter().filter(allowed)).collect();
        all.iter()
            .find(|tool| tool.name == name)
            .or_else(|| all.iter().find(|tool| tool.original == name))
            .cloned()
    }

    fn entry(&self, name: &str) -> Option<&ToolEntry> {
        let exact = self.entries.iter().find(|entry| entry.name == name || entry.aliases.contains(&name));
        match self.toolset {
            Toolset::Lathe | Toolset::Gemini | Toolset::Bash => exact,
            // Trae compares names without case and underscores.
            Toolset::Trae => {
                exact.or_else(|| self.entries.iter().find(|entry| folded(&entry.name) == folded(name)))
            }
        }
    }

    fn unknown_tool(&self, name: &str) -> String {
        let mut names: Vec<&str> = self.entries.iter().map(|entry| entry.name.as_str()).collect();
        match self.toolset {
            Toolset::Trae => {
                let known: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
                format!("Tool '{name}' not found. Available tools: [{}]", known.join(", "))
            }
            Toolset::Bash => bash::unknown_tool(name, self.services.has_command(name)),
            Toolset::Lathe | Toolset::Gemini => {
                names.sort_by_key(|known| edit_distance(known, name));
                let nearest: Vec<String> = names.iter().take(3).map(|name| format!("\"{name}\"")).collect();
                match nearest.as_slice() {
                    [only] => format!("Tool \"{name}\" not found. Did you mean {only}?"),
                    several => {
                        format!("Tool \"{name}\" not found. Did you mean one of: {}?", several.join(", "))
                    }
                }
            }
        }
    }
}

/// A call whose arguments fit.
struct BuiltCall {
    id: &'static str,
    invocation: Box<dyn Invocation>,
    /// The arguments as they were given, and under the names of the tool itself.
    arguments: Vec<Value>,
}

/// Removes the parameter by which a call waits for all calls before it, unless the tool has a parameter of that name.
/// Returns its value.
fn take_wait(entry: &ToolEntry, value: &mut Value) -> bool {
    let Value::Object(given) = value else { return false };
    if entry.has_parameter(WAIT) {
        return false;
    }
    given.shift_remove(WAIT).and_then(|waits| waits.as_bool()).unwrap_or(false)
}

/// The purpose of a command, as the model describes it to the user.
fn purpose(kind: ToolKind, value: &Value) -> Option<String> {
    let said = value.get("description").and_then(Value::as_str).filter(|_| kind == ToolKind::Execute)?;
    Some(said.trim().to_owned()).filter(|said| !said.is_empty())
}

/// Allows the tools and commands of a list such as `tools.allowed`, as a rule of the user would. The error names an
/// entry that cannot be allowed in this way.
pub fn allow_listed(rules: Rulebook, list: &[String]) -> Result<Rulebook, String> {
    let selection = Selection(ToolChoice { core: Vec::new(), exclude: list.to_vec() });
    let tools = selection.excluded_tools();
    if let Some(shell) = tools.iter().find(|name| is_shell(name)) {
        return Err(format!(
            "{ALLOWED}: `{shell}` would allow every command: name them, as in `bash(git status)`, or use the mode full-auto"
        ));
    }
    Ok(rules.with_commands(ALLOWED, selection.excluded_commands()).with_tools(ALLOWED, tools))
}

/// Denies the tools and commands of a list such as `tools.exclude`, in every name and spelling that they have.
pub fn exclude_listed(rules: Rulebook, list: &[String]) -> Rulebook {
    let selection = Selection(ToolChoice { core: Vec::new(), exclude: list.to_vec() });
    rules
        .without_commands(EXCLUDE, selection.excluded_commands())
        .without_tools(EXCLUDE, selection.excluded_tools())
}

/// The tools as commands of the session's shell.
fn agent_commands(
    setup: &ToolSetup,
    services: &Arc<Services>,
    selection: &Selection,
    outside: Vec<OutsideTool>,
) -> AgentCommands {
    let hidden = |command: &&AgentCommand| {
        !selection.has(&ToolNames { name: command.name, aliases: command.aliases, kind: command.kind })
    };
    AgentCommands {
        setup: setup.clone(),
        field: Arc::new(FieldTools::new(outside)),
        services: Arc::downgrade(services),
        without: all_commands().filter(hidden).map(|command| command.name).collect(),
    }
}

/// The arguments as an object. The error says what is wrong with them. Models that give no arguments send null.
fn arguments_object(arguments: &Arguments) -> Result<Value, String> {
    let not_json = |error: serde_json::Error| format!("are not valid JSON: {error}");
    let other = |what: &str| Err(format!("must be a JSON object, not {what}"));
    let value = match arguments {
        Arguments::Json(raw) => raw.to_value().map_err(not_json)?,
        Arguments::Malformed(text) => serde_json::from_str(text).map_err(not_json)?,
    };
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(serde_json::Map::new())),
        Value::Bool(_) => other("a boolean"),
        Value::Number(_) => other("a number"),
        Value::String(_) => other("a string"),
        Value::Array(_) => other("an array"),
    }
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}
