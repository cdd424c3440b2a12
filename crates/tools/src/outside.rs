//! Outside tools, which are not Lathe's own: discovered by a command, or offered by a server. They join the toolset
//! after the built-in ones, pass the same gate, and return text.

use std::sync::Arc;

use lathe_policy::{OwnCommand, Permit};
use lathe_protocol::{BoxFuture, Effects, Raw, ToolErrorKind, ToolKind};
use lathe_workspace::Surroundings;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

/// A program or server that runs outside tools.
pub trait ToolProvider: Send + Sync {
    /// Calls the tool by the name its owner gave it. The error is the text for the model.
    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Raw,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<String, String>>;

    /// Runs the tool as a command, with its own bytes on both streams and its exit code. A provider without streams
    /// prints its text.
    fn run<'a>(
        &'a self,
        name: &'a str,
        arguments: Raw,
        _caller: &'a Surroundings,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<ProviderOutput, String>> {
        Box::pin(async move {
            let text = self.call(name, arguments, cancel).await?;
            let ended = if text.is_empty() || text.ends_with('\n') { text } else { format!("{text}\n") };
            Ok(ProviderOutput { stdout: ended.into_bytes(), stderr: Vec::new(), code: 0 })
        })
    }

    /// The program it starts, for the gate.
    fn program(&self) -> String;
}

/// The result of an outside tool that ran as a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderOutput {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    pub code: u8,
}

/// An outside tool.
#[derive(Clone)]
pub struct OutsideTool {
    /// The name the model calls.
    pub name: String,
    /// The name that its owner gave it.
    pub original: String,
    pub description: String,
    pub schema: Raw,
    pub kind: ToolKind,
    /// The error kind of a failure.
    pub failure: ToolErrorKind,
    pub provider: Arc<dyn ToolProvider>,
    /// Its domain among the commands of the shell.
    pub domain: Domain,
}

/// The domains of a session, for the description of the one tool. Empty if there are none.
pub(crate) fn domains(tools: &[OutsideTool]) -> String {
    let mut rows: Vec<String> = Vec::new();
    for domain in tools.iter().map(|tool| &tool.domain) {
        let about = domain.about.lines().next().unwrap_or_default();
        let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
        let row = format!("`field:{}`{about}", domain.name);
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    match rows.is_empty() {
        true => String::new(),
        false => {
            format!("\n\nField domains of this session: {}.", rows.join(", "))
        }
    }
}

/// A group of tools that belong together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    pub layer: Layer,
    pub name: String,
    /// The purpose of the domain.
    pub about: String,
}

/// The origins of a domain's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// Configured, or found by a program.
    Field,
    /// Offered by a server.
    Mcp,
    Skill,
}

impl Layer {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Field => "field",
            Self::Mcp => "mcp",
            Self::Skill => "skill",
        }
    }
}

impl OutsideTool {
    /// Every name by which a rule may call it: the model's, its owner's, and those in the shell.
    pub(crate) fn names(&self) -> Vec<String> {
        let any_layer = format!("{}:{}:{}", Layer::Field.as_str(), self.domain.name, self.original);
        let mut names = vec![self.name.clone(), self.original.clone(), self.command(), any_layer];
        // The form in which other programs write the names of servers' tools.
        names.push(format!("{}__{}__{}", self.domain.layer.as_str(), self.domain.name, self.original));
        names.push(format!("{}__{}", self.domain.name, self.original));
        names.dedup();
        names
    }

    /// The command that it is in the shell.
    pub fn own_command(&self) -> OwnCommand {
        OwnCommand { name: self.command(), tool: self.id().to_owned(), also: self.names(), kind: self.kind }
    }

    /// Its name in the shell.
    pub(crate) fn command(&self) -> String {
        format!("{}:{}:{}", self.domain.layer.as_str(), self.domain.name, self.original)
    }
}

impl OutsideTool {
    /// The canonical name of every outside tool.
    pub(crate) fn id(&self) -> &'static str {
        "outside"
    }

    pub(crate) fn build(&self, arguments: &Value) -> Result<Box<dyn Invocation>, Problem> {
        let arguments =
            Raw::from_serialize(arguments).map_err(|error| Problem::Arguments(error.to_string()))?;
        Ok(Box::new(OutsideCall { tool: self.clone(), arguments }))
    }
}

struct OutsideCall {
    tool: OutsideTool,
    arguments: Raw,
}

impl Invocation for OutsideCall {
    fn describe(&self) -> String {
        format!("{} {}", self.tool.original, self.arguments.get())
    }

    /// The effects of a foreign program are not known.
    fn effects(&self) -> Effects {
        Effects { programs: vec![self.tool.provider.program()], opaque: true, ..Effects::default() }
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let Self { tool, arguments } = *self;
            let called = tool.provider.call(&tool.original, arguments, &context.cancel).await;
            let data = match called {
                Ok(text) => Ok(Data::Text(text)),
                Err(message) if context.cancel.is_cancelled() => Err(Problem::Cancelled(message)),
                Err(message) => Err(Problem::Foreign { kind: tool.failure, message }),
            };
            data.into()
        })
    }
}
