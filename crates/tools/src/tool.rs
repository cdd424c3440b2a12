//! Invocations, which are calls that are ready to run, and the context they run in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_policy::Permit;
use lathe_protocol::{
    BoxFuture, CallId, Decision, Digest, Effects, Lane, Question, Raw, SeenFile, ToolKind, Verdict,
};
use lathe_workspace::LocalTree;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::commands::{CallGate, Ledger};
use crate::outcome::Outcome;
use crate::outputs::OutputHandle;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::review::ReviewRole;
use crate::services::{LiveOutput, Services};

/// A call with valid arguments.
pub(crate) trait Invocation: Send + Sync {
    /// A description of the call for people. A shell line or a thought is shown as it is, with all its lines.
    fn describe(&self) -> String;

    fn effects(&self) -> Effects;

    /// Further kinds that the call has because of these arguments.
    fn kinds(&self) -> Vec<ToolKind> {
        Vec::new()
    }

    /// The shell line of the call, if it is one. The gate then inspects its commands.
    fn line(&self) -> Option<ShellLine> {
        None
    }

    /// A preview for the user who decides. It changes nothing. The error is the reason why the call cannot be done:
    /// then there is nothing to ask about.
    fn preview<'a>(&'a self, _: &'a RunContext) -> BoxFuture<'a, Result<Preview, Problem>> {
        Box::pin(async move { Ok(Preview::Info { text: self.describe() }) })
    }

    /// The lane of the call in the scheduler. A call that only reads runs together with other readers; the rest keeps
    /// the order of the calls.
    fn lane(&self) -> Lane {
        if self.effects().change_something() { Lane::Alone } else { Lane::Reader }
    }

    fn run(self: Box<Self>, permit: Permit, context: RunContext) -> BoxFuture<'static, Outcome>;
}

/// A line for the session's shell, as the gate sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLine {
    pub text: String,
    /// The folder it runs in, if that is not the shell's own.
    pub folder: Option<String>,
}

/// The context of a running invocation.
#[derive(Clone)]
pub struct RunContext {
    pub services: Arc<Services>,
    pub call: CallId,
    /// The handle that its output will have. None if there is no session.
    pub handle: Option<OutputHandle>,
    pub live: LiveOutput,
    pub cancel: CancellationToken,
    /// The files this call touches, as the model has seen them.
    pub seen: Vec<SeenFile>,
    /// The state that this tool asked to be given again.
    pub memory: Option<Raw>,
    /// The digest of the preview that the user approved. If there is one, nothing else may be done.
    pub shown: Option<Digest>,
    pub line_seconds: u32,
    /// Seconds that a line may run without printing.
    pub silent_seconds: Option<u32>,
    /// The part that the call has in reviews, in a session with review rules.
    pub review: Option<ReviewRole>,
    /// The umask of the process that called, for what the call creates. None stands for Lathe's own.
    pub umask: Option<u32>,
    /// The way to put a question to the user. None if no user is present.
    pub asker: Option<Arc<dyn Asker>>,
    /// Decides about the commands of a shell line.
    pub call_gate: CallGate,
    /// The session's ledger, which those commands read and write.
    pub ledger: Arc<dyn Ledger>,
}

impl RunContext {
    /// The tree that a tool reads directly, for the tool of this canonical name. A workspace that is not on this
    /// machine has none.
    pub(crate) fn tree(&self, tool: &'static str) -> Result<&LocalTree, Problem> {
        self.services.workspace.local().ok_or(Problem::NoLocalTree(tool))
    }
}

/// Puts questions to the user and waits for the replies. None if the user dismissed them.
pub trait Asker: Send + Sync {
    fn ask<'a>(&'a self, call: &'a CallId, questions: Vec<Question>) -> BoxFuture<'a, Option<Vec<String>>>;

    /// Asks the user to approve a command of the call's line, and waits for the reply. Without a user the command is
    /// denied.
    fn approve<'a>(&'a self, _: &'a CallId, wanted: CommandApproval) -> BoxFuture<'a, Decision> {
        Box::pin(async move { Decision { verdict: Verdict::Deny, ..wanted.decision } })
    }
}

/// The approval request of a command in a running line.
#[derive(Debug, Clone)]
pub struct CommandApproval {
    pub tool: String,
    /// The names of an outside tool.
    pub also: Vec<String>,
    /// Further kinds that the command has because of these arguments.
    pub kinds: Vec<ToolKind>,
    pub kind: ToolKind,
    pub effects: Effects,
    /// Its arguments, for rules about them.
    pub arguments: Vec<Value>,
    pub words: Vec<String>,
    /// Its effect: a diff, or words.
    pub about: String,
    pub decision: Decision,
}

impl RunContext {
    /// Refuses a change that differs from the one the user was shown. It is called with the change that is about to
    /// be made, on content that the write itself expects, so that nothing can happen between the check and the write.
    pub(crate) fn check_shown(&self, path: &Path, now: impl FnOnce() -> Preview) -> Result<(), Problem> {
        self.check_all_shown(&[path], now)
    }

    /// The same check for a change of several files.
    pub(crate) fn check_all_shown(
        &self,
        paths: &[&Path],
        now: impl FnOnce() -> Preview,
    ) -> Result<(), Problem> {
        match &self.shown {
            Some(shown) if *shown != now().digest() => {
                Err(Problem::NotAsShown(paths.iter().map(|path| path.to_path_buf()).collect()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The problem to report for a change that failed. A change that the user was shown could be done then: if a file
    /// is in the way now, it has changed since, and every tool says so in the same words.
    pub(crate) fn problem_since_shown(&self, problem: Problem) -> Problem {
        match problem.changed_file() {
            Some(path) if self.shown.is_some() => Problem::NotAsShown(vec![path.to_owned()]),
            Some(_) | None => problem,
        }
    }

    pub(crate) fn seen_hash(&self, path: &str) -> Option<&Digest> {
        self.seen.iter().find(|seen| seen.path == path).map(|seen| &seen.hash)
    }
}

/// Reads the arguments of a tool as its type. The error names the place of a mistake.
pub(crate) fn read_arguments<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let reason = model_wording(&error.into_inner().to_string());
        Problem::Arguments(if path == "." { reason } else { format!("{path}: {reason}") })
    })
}

/// A number of things, one or several.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// An error of serde without the types of this program and the names that only other toolsets use.
fn model_wording(reason: &str) -> String {
    if let Some(name) = reason.strip_prefix("unknown field ") {
        let name = name.split_once(", ").map_or(name, |(name, _)| name);
        return format!("there is no parameter {name}");
    }
    let Some((what, wanted)) = reason.rsplit_once("expected ") else { return reason.to_owned() };
    let words = match wanted {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        other => match other.strip_prefix("struct ") {
            Some(_) => "an object",
            None => other,
        },
    };
    format!("{what}expected {words}")
}

/// A path as the model gave it, made absolute; `./a` and `a` become the same.
pub(crate) fn absolute(root: &Path, path: &str) -> PathBuf {
    root.join(path).components().collect()
}

/// A path for people: inside the workspace it is relative to the root.
pub(crate) fn display_path(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
