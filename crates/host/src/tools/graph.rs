//! The code graph for users: building, queries, counts and export.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lathe_graph::{
    BackgroundBuild, DefKind, Graph, GraphDatabase, GraphError, GraphLimits, Query, UNUSED, expire_databases,
    unused_databases,
};
use serde_json::{Value, json};

use crate::archive::Archive;
use crate::error::HostError;
use crate::home::Home;

/// The reply to a question about a graph.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphAnswer {
    pub text: String,
    pub json: Value,
}

/// A session that ends before this time never pays for an index.
const SETTLED: Duration = Duration::from_millis(200);

/// The form in which the definitions are exported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GraphExport {
    /// One JSON object per definition and line.
    Lines,
    /// One JSON object per call and line, with what it refers to.
    Calls,
    Dot,
    /// A page about one symbol.
    Picture(String),
}

impl Archive {
    /// The graphs that were not queried for this long, or for a month.
    pub(crate) fn old_graphs(&self, older: Duration) -> Vec<GraphDatabase> {
        unused_databases(&self.home().graphs(), older.min(UNUSED))
    }
}

/// The code graphs of one home.
pub struct Graphs {
    databases: PathBuf,
}

impl Graphs {
    pub fn new(home: &Home) -> Self {
        Self { databases: home.graphs() }
    }

    /// Begins to index a session's folder in the background, if it should be indexed.
    pub(crate) fn index(&self, root: &Path) -> Option<BackgroundBuild> {
        BackgroundBuild::start(root, &self.databases, SETTLED)
    }

    fn graph(&self, folder: &Path) -> Result<Graph, HostError> {
        expire_databases(&self.databases, UNUSED);
        Graph::open(folder, &self.databases, GraphLimits::default())
            .map_err(|error| graph_error(folder, &error))
    }

    /// Brings the graph up to date and counts its content.
    pub fn build(&self, folder: &Path, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<Value, HostError> {
        let mut graph = self.graph(folder)?;
        let (snapshot, refreshed) = graph.fresh(progress).map_err(|error| graph_error(folder, &error))?;
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for symbol in snapshot.symbols() {
            *kinds.entry(snapshot.def(symbol).kind.name()).or_default() += 1;
        }
        let uses: usize = snapshot.files.iter().map(|file| file.facts.sites.len()).sum();
        let left_out: Vec<Value> = (snapshot.left_out.iter())
            .map(|(path, gap)| json!({ "path": path, "why": gap.description() }))
            .collect();
        Ok(json!({
            "root": snapshot.root.display().to_string(),
            "database": graph.database().display().to_string(),
            "bytes": graph.size(),
            "files": snapshot.files.len(),
            "lines": snapshot.lines(),
            "definitions": kinds.values().sum::<usize>(),
            "uses": uses,
            "kinds": kinds,
            "left_out": left_out,
            "parsed": refreshed.parsed,
            "reused": refreshed.reused,
            "removed": refreshed.removed,
            "walk_ms": refreshed.walk.as_secs_f64() * 1000.0,
            "total_ms": refreshed.total.as_secs_f64() * 1000.0,
            "notes": graph.take_messages(),
        }))
    }

    /// Answers a question about a folder.
    pub fn query(
        &self,
        folder: &Path,
        question: &str,
        target: &str,
        budget: usize,
    ) -> Result<GraphAnswer, HostError> {
        let mut graph = self.graph(folder)?;
        let diff = if question == "impact" && target.trim().is_empty() { git_diff(folder) } else { None };
        if question == "impact"
            && target.trim().is_empty()
            && diff.as_deref().is_none_or(|diff| diff.trim().is_empty())
        {
            let reason = match diff {
                Some(_) => "nothing differs from the last commit: name a definition, or give a diff",
                None => "there is no git repository here to compare with: name a definition, or give a diff",
            };
            return Err(HostError::Graph(reason.to_owned()));
        }
        let target = diff.as_deref().unwrap_or(target);
        let reply = lathe_graph::ask(&mut graph, question, target, budget)
            .map_err(|error| graph_error(folder, &error))?;
        Ok(GraphAnswer { text: reply.text, json: reply.json })
    }

    /// Exports the graph of a folder in one of its forms.
    pub fn export(&self, folder: &Path, form: &GraphExport) -> Result<String, HostError> {
        let mut graph = self.graph(folder)?;
        let (snapshot, _) = graph.fresh(&|_, _| ()).map_err(|error| graph_error(folder, &error))?;
        let query = Query::new(&snapshot);
        match form {
            GraphExport::Dot => Ok(query.dot()),
            GraphExport::Calls => Ok(query.calls()),
            GraphExport::Picture(symbol) => query.picture(symbol).ok_or_else(|| {
                let hint = format!("try `lathe graph query find {symbol}`");
                HostError::Graph(format!("nothing in {} is named `{symbol}`: {hint}", folder.display()))
            }),
            GraphExport::Lines => {
                let mut out = String::new();
                for symbol in snapshot.symbols() {
                    let (facts, def) = (snapshot.facts(symbol.file), snapshot.def(symbol));
                    if def.kind == DefKind::Impl {
                        continue;
                    }
                    let container = facts.container(def);
                    let line = json!({
                        "name": facts.name(def),
                        "kind": def.kind,
                        "path": snapshot.path(symbol.file),
                        "start_line": def.start_line,
                        "end_line": def.end_line,
                        "parent": if container.is_empty() { Value::Null } else { json!(container) },
                        "signature": facts.str(def.signature),
                    });
                    out.push_str(&format!("{line}\n"));
                }
                Ok(out)
            }
        }
    }
}

fn graph_error(folder: &Path, error: &GraphError) -> HostError {
    match error {
        GraphError::Root { .. } => HostError::Folder { path: folder.to_owned(), reason: error.to_string() },
        GraphError::Folder { .. } | GraphError::Database(_) | GraphError::Question(_) => {
            HostError::Graph(error.to_string())
        }
    }
}

/// The changes in the work tree, as git sees them.
fn git_diff(folder: &Path) -> Option<String> {
    let repository = lathe_git::Repository::find(folder, &lathe_git::Boundary::Anywhere).ok()?;
    let arguments = [
        "diff",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--submodule=short",
        "--ignore-submodules=all",
        "HEAD",
        "--",
    ];
    let index = lathe_git::IndexUse::Read;
    let call =
        repository.indexed(index, lathe_git::ContentRules::Bytes, lathe_git::CallFolder::Folder).ok()?;
    let diff = call.args(arguments).output()?;
    Some(String::from_utf8_lossy(&diff).into_owned())
}
