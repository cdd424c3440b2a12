//! Trae's three searches in the code graph, in its words.

use std::path::{Path, PathBuf};

use lathe_graph::{CkgSearch, ckg};
use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::code::with_graph;
use crate::face::Adapted;
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext, Tool, arguments};

pub(crate) const ID: &str = "ckg";

// Only read for its schema: Trae's checks come with Trae's words, below.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
// The names are Trae's.
#[allow(dead_code, clippy::enum_variant_names)]
pub(crate) enum TraeCommand {
    SearchFunction,
    SearchClass,
    SearchClassMethod,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
pub(crate) struct TraeArguments {
    /// The command to run: `search_function`, `search_class` or `search_class_method`.
    command: TraeCommand,
    /// The path to the codebase.
    path: String,
    /// The exact name of the function or class to search for.
    identifier: String,
    /// Whether to print the body of the function or class; true if left out.
    print_body: Option<bool>,
}

pub(crate) fn adapt_trae(value: Value) -> Result<Adapted, Problem> {
    let wrong = |text: String| Err(Problem::Arguments(text));
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let Some(command) = text("command") else { return wrong("No command provided for the ckg tool".into()) };
    let Some(path) = text("path") else { return wrong("No path provided for the ckg tool".into()) };
    let Some(identifier) = text("identifier") else {
        return wrong("No identifier provided for the ckg tool".into());
    };
    // Null means false, as in Trae.
    let body = value.get("print_body").is_none_or(|given| given.as_bool().unwrap_or(false));
    Ok((ID, json!({ "command": command, "path": path, "identifier": identifier, "print_body": body })))
}

#[derive(Deserialize)]
struct Arguments {
    command: String,
    path: String,
    identifier: String,
    print_body: bool,
}

pub(crate) struct CkgTool;

impl Tool for CkgTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, root: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { command, path, identifier, print_body } = arguments(value)?;
        let folder: PathBuf = root.join(&path).components().collect();
        Ok(Box::new(Ckg { command, path, folder, identifier, print_body }))
    }
}

struct Ckg {
    command: String,
    /// As it was given.
    path: String,
    folder: PathBuf,
    identifier: String,
    print_body: bool,
}

impl Invocation for Ckg {
    fn describe(&self) -> String {
        format!("{} {}", self.command, self.identifier)
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.folder.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move { self.search(context).await.map(Data::Code).into() })
    }
}

impl Ckg {
    async fn search(self: Box<Self>, context: RunContext) -> Result<String, Problem> {
        let root = context.tree(ID)?.root();
        let files = context.services.workspace.files();
        match files.stat(&self.folder).await {
            // Nothing is said about what is or is not there.
            Err(_) if !self.folder.starts_with(root) => {
                return Err(Problem::Outside(self.folder.clone()));
            }
            Err(_) => return Err(Problem::Arguments(format!("Codebase path {} does not exist", self.path))),
            Ok(stat) if stat.kind != lathe_workspace::FileKind::Directory => {
                return Err(Problem::Arguments(format!("Codebase path {} is not a directory", self.path)));
            }
            Ok(_) => {}
        }
        let Some(search) = CkgSearch::parse(&self.command) else {
            return Err(Problem::Arguments(format!("Invalid command: {}", self.command)));
        };
        // The graph reads by itself, so it is only given a folder that is really inside.
        let folder = files.real(&self.folder).await.map_err(|_| Problem::Outside(self.folder.clone()))?;
        if !folder.starts_with(root) {
            return Err(Problem::Outside(self.folder.clone()));
        }
        with_graph(&context, ID, folder, move |graph| {
            let (snapshot, refreshed) = graph.present()?;
            let mut text = ckg(graph, &snapshot, search, &self.identifier, self.print_body);
            if let Some(word) = refreshed.partial() {
                text.push_str(&format!("\n({word})"));
            }
            Ok(text)
        })
        .await
    }
}
