//! Questions to the code graph of the workspace.
//!
//! The graph reads files of this machine. A workspace elsewhere has no graph, and the tool says so.

use std::path::{Path, PathBuf};

use lathe_graph::{Graph, GraphError, GraphLimits, ask, language_of};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, Parameters};
use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::files::hidden::HiddenPaths;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "code";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<CodeParameters>("code", "Code", ToolKind::Search, include_str!("lathe.md"))
            .with_cap(48_000),
    ),
    command: Some(
        AgentCommand::of::<CodeParameters>(
            "code",
            ID,
            ToolKind::Search,
            "Ask the code graph: definitions, references, callers, tests, a map, what a diff can reach.",
        )
        .with_notes(include_str!("notes.md"))
        .with_positions(&["command", "target"], None)
        .input("target"),
    ),
    only_if: None,
};

const BUDGET: usize = 2000;

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CodeQuestion {
    Find,
    Def,
    Refs,
    Callers,
    Callees,
    Implements,
    Imports,
    TestsOf,
    Outline,
    Map,
    Impact,
}

impl CodeQuestion {
    fn name(self) -> &'static str {
        match self {
            Self::Find => "find",
            Self::Def => "def",
            Self::Refs => "refs",
            Self::Callers => "callers",
            Self::Callees => "callees",
            Self::Implements => "implements",
            Self::Imports => "imports",
            Self::TestsOf => "tests-of",
            Self::Outline => "outline",
            Self::Map => "map",
            Self::Impact => "impact",
        }
    }
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CodeParameters {
    /// What to ask.
    command: CodeQuestion,
    /// A name, a file, words or a diff, as the command wants it.
    #[serde(default)]
    target: Option<String>,
    /// At most about so many tokens of answer; 2000 if left out.
    budget: Option<usize>,
}

impl Parameters for CodeParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let CodeParameters { command, target, budget } = self;
        let target = target.unwrap_or_default();
        if target.trim().is_empty() && !matches!(command, CodeQuestion::Map) {
            return Err(Problem::Arguments(format!("target: `{}` needs one", command.name())));
        }
        let budget = budget.unwrap_or(BUDGET).clamp(100, 12_000);
        Ok(Box::new(Code { root: ground.root.to_owned(), command, target, budget }))
    }

    /// A file that a line names is resolved against the folder that the line runs in.
    fn resolve(&mut self, folder: &Path) {
        let is_file = matches!(self.command, CodeQuestion::Outline | CodeQuestion::Imports);
        let Some(target) = self.target.as_ref().filter(|_| is_file) else { return };
        let path = folder.join(target);
        if path.is_file() {
            self.target = Some(path.display().to_string());
        }
    }
}

struct Code {
    root: PathBuf,
    command: CodeQuestion,
    target: String,
    budget: usize,
}

impl Invocation for Code {
    fn describe(&self) -> String {
        let target = self.target.lines().next().unwrap_or("");
        format!("code {} {target}", self.command.name()).trim_end().to_owned()
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.root.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            let asked = with_graph(&context, ID, self.root.clone(), move |graph| {
                ask(graph, self.command.name(), &self.target, self.budget)
            });
            asked.await.map(|asked| Data::Code(asked.text)).into()
        })
    }
}

/// Runs a question on the graph of a folder. The session keeps the graph that was asked last. `tool` is the canonical
/// name of the asking tool.
pub(crate) async fn with_graph<T: Send + 'static>(
    context: &RunContext,
    tool: &'static str,
    folder: PathBuf,
    ask: impl FnOnce(&mut Graph) -> Result<T, GraphError> + Send + 'static,
) -> Result<T, Problem> {
    context.tree(tool)?;
    // The graph has read every file of code, and its replies about some files reveal others: it cannot leave one out.
    let hidden = HiddenPaths::scan(context, ID, ToolKind::Search, &folder).await?;
    let code = hidden.files().filter(|file| language_of(&file.to_string_lossy(), "").is_some());
    if let Some(file) = code.min() {
        // The error does not reveal which files exist either.
        let call_gate = &context.call_gate;
        let rule = call_gate
            .hiding_decision(ID, ToolKind::Search, file)
            .map(|decided| decided.rule)
            .unwrap_or_default();
        let what = match call_gate.rules.paths_of(&rule).as_slice() {
            [] => "some code here".to_owned(),
            paths => paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", "),
        };
        return Err(Problem::Search(format!(
            "a rule does not let {what} be read, and the code graph would tell of it; search and view instead"
        )));
    }
    let home = context.services.plan.home.join("graph");
    let kept = context.services.graph.clone();
    let done = tokio::task::spawn_blocking(move || {
        let mut kept = kept.lock();
        let mut graph = match kept.take().filter(|graph| graph.root() == folder) {
            Some(graph) => graph,
            None => Graph::open(&folder, &home, GraphLimits::default())?.watching(),
        };
        let answer = ask(&mut graph);
        *kept = Some(graph);
        answer
    });
    match done.await {
        Ok(answer) => answer.map_err(|error| Problem::Search(error.to_string())),
        Err(error) => Err(Problem::Search(error.to_string())),
    }
}
