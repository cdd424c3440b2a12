//! A call that is ready to run, and what it is given to run.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_policy::Permit;
use lathe_protocol::{
    Boxed, CallId, Decision, Digest, Effects, Kind, Lane, Question, Raw, SeenFile, Verdict,
};
use lathe_workspace::LocalTree;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::commands::{Judge, Ledger};
use crate::outcome::Outcome;
use crate::outputs::Handle;
use crate::preview::Preview;
use crate::problem::Problem;
use crate::review::Review;
use crate::services::{LiveOutput, Services};

/// A call with good arguments.
pub(crate) trait Invocation: Send + Sync {
    /// What it does, for people. A shell line or a thought is shown as it is, with all its lines.
    fn describe(&self) -> String;

    fn effects(&self) -> Effects;

    /// The kinds that only these arguments make it.
    fn kinds(&self) -> Vec<Kind> {
        Vec::new()
    }

    /// The shell line it is, if it is one: then the gate looks at its commands.
    fn line(&self) -> Option<ShellLine> {
        None
    }

    /// What it would do, for the person who decides. Nothing is changed by looking. The error is why it cannot be done: then
    /// there is nothing to ask about.
    fn preview<'a>(&'a self, _: &'a RunContext) -> Boxed<'a, Result<Preview, Problem>> {
        Box::pin(async move { Ok(Preview::Info { text: self.describe() }) })
    }

    /// When it may run beside others. What only reads runs beside readers; the rest keeps the order of the calls.
    fn lane(&self) -> Lane {
        if self.effects().change_something() { Lane::Alone } else { Lane::Reader }
    }

    fn run(self: Box<Self>, permit: Permit, context: RunContext) -> Boxed<'static, Outcome>;
}

/// A line for the session's shell, as the gate is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellLine {
    pub text: String,
    /// Where it runs, if not where the shell is.
    pub folder: Option<String>,
}

/// What a running invocation is given.
#[derive(Clone)]
pub struct RunContext {
    pub services: Arc<Services>,
    pub call: CallId,
    /// The name its output will have; none where there is no session.
    pub handle: Option<Handle>,
    pub live: LiveOutput,
    pub cancel: CancellationToken,
    /// What the model has seen of the files this call touches.
    pub seen: Vec<SeenFile>,
    /// What this tool asked to be given again.
    pub memory: Option<Raw>,
    /// The digest of the preview that a person allowed; nothing else may be done then.
    pub shown: Option<Digest>,
    pub line_seconds: u32,
    /// Seconds for which a line may print nothing.
    pub silent_seconds: Option<u32>,
    /// What the call means for reviews, in a session with rules for that.
    pub review: Option<Review>,
    /// The umask of the process that called, for what it makes; none is Lathe's own.
    pub umask: Option<u32>,
    /// Whoever can put a question to the user; none where nobody is there.
    pub asker: Option<Arc<dyn Asker>>,
    /// Decides about the commands of a shell line.
    pub judge: Judge,
    /// What those commands know of the session, and tell it.
    pub ledger: Arc<dyn Ledger>,
}

impl RunContext {
    /// The tree that a tool reads by itself, for the tool of this canonical name. A workspace elsewhere has none.
    pub(crate) fn tree(&self, tool: &'static str) -> Result<&LocalTree, Problem> {
        self.services.workspace.local().ok_or(Problem::NoLocalTree(tool))
    }
}

/// Puts questions to the user and waits for the answers; none if they were dismissed.
pub trait Asker: Send + Sync {
    fn ask<'a>(&'a self, call: &'a CallId, questions: Vec<Question>) -> Boxed<'a, Option<Vec<String>>>;

    /// Asks whether a command of the call's line may go on, and waits for the answer. Nobody to answer is a no.
    fn approve<'a>(&'a self, _: &'a CallId, wanted: Wanted) -> Boxed<'a, Decision> {
        Box::pin(async move { Decision { verdict: Verdict::Deny, ..wanted.decision } })
    }
}

/// What a command of a running line wants to do.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub tool: String,
    /// The names of a tool that is not built in.
    pub also: Vec<String>,
    /// Kinds that only these arguments make it.
    pub kinds: Vec<Kind>,
    pub kind: Kind,
    pub effects: Effects,
    /// Its arguments, for rules about them.
    pub arguments: Vec<Value>,
    pub words: Vec<String>,
    /// What it would do: a diff, or words.
    pub about: String,
    pub decision: Decision,
}

impl RunContext {
    /// Refuses a change that is not the one a person was shown. Called with what is about to be done, on content that the
    /// write itself expects, so that nothing fits between the check and the write.
    pub(crate) fn check_shown(&self, path: &Path, now: impl FnOnce() -> Preview) -> Result<(), Problem> {
        self.check_all_shown(&[path], now)
    }

    /// The same for a change of several files.
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

    /// Why a change failed. What a person was shown could be done then: if a file is in the way now, it has changed since,
    /// and every tool says so in the same words.
    pub(crate) fn since_shown(&self, problem: Problem) -> Problem {
        match problem.changed_file() {
            Some(path) if self.shown.is_some() => Problem::NotAsShown(vec![path.to_owned()]),
            Some(_) | None => problem,
        }
    }

    pub(crate) fn seen_hash(&self, path: &str) -> Option<&Digest> {
        self.seen.iter().find(|seen| seen.path == path).map(|seen| &seen.hash)
    }
}

/// Arguments of a tool by its type, with the place of a mistake in the words.
pub(crate) fn arguments<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, Problem> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let reason = for_a_model(&error.into_inner().to_string());
        Problem::Arguments(if path == "." { reason } else { format!("{path}: {reason}") })
    })
}

/// A number of things, one or several.
pub(crate) fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// What serde says, without the types of this program and the names that only other toolsets use.
fn for_a_model(reason: &str) -> String {
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

/// A path as people want to read it: inside the workspace without the way to it.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    match path.strip_prefix(root) {
        Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
        Ok(inside) => inside.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
