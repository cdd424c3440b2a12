//! Trae's three searches in the code graph, in its words.

use std::path::PathBuf;

use lathe_graph::{CkgSearch, ckg};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects, ToolKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, FaceArguments, Parameters, TypedCall};
use crate::code::with_graph;
use crate::commands::AgentCommand;
use crate::faces::{Soft, with_null};
use crate::outcome::{Data, Outcome};
use crate::problem::Problem;
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "ckg";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: None,
    command: Some(
        AgentCommand::of::<CkgWords>(
            "ckg",
            ID,
            ToolKind::Search,
            "Find functions, classes and methods by name in the code knowledge graph.",
        )
        .with_positions(&["command", "identifier", "path"], None)
        .paths(&["path"]),
    ),
    only_if: None,
};

/// One of the three searches. The names are Trae's.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
enum SearchName {
    #[serde(rename = "search_function")]
    Function,
    #[serde(rename = "search_class")]
    Class,
    #[serde(rename = "search_class_method")]
    ClassMethod,
}

impl SearchName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Function => "search_function",
            Self::Class => "search_class",
            Self::ClassMethod => "search_class_method",
        }
    }
}

/// Trae's parameters. What is wrong with them is said in Trae's words.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct TraeCkg {
    /// The command to run: `search_function`, `search_class` or `search_class_method`.
    #[schemars(with = "SearchName")]
    command: Soft<String>,
    /// The path to the codebase.
    path: Soft<String>,
    /// The exact name of the function or class to search for.
    identifier: Soft<String>,
    /// Whether to print the body of the function or class; true if left out.
    #[serde(default, deserialize_with = "with_null")]
    #[schemars(with = "Option<bool>")]
    print_body: Option<Value>,
}

impl FaceArguments for TraeCkg {
    fn call(self) -> Result<TypedCall, Problem> {
        let given = |text: Soft<String>, name: &str| {
            text.get().ok_or_else(|| Problem::Arguments(format!("No {name} provided for the ckg tool")))
        };
        let command = given(self.command, "command")?;
        let path = given(self.path, "path")?;
        let identifier = given(self.identifier, "identifier")?;
        // Null means false, as in Trae.
        let print_body = self.print_body.is_none_or(|given| given.as_bool().unwrap_or(false));
        Ok(TypedCall::new(CkgParameters { command, path, identifier, print_body }))
    }
}

/// The words of the command in the shell.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct CkgWords {
    /// What to look for.
    command: SearchName,
    /// Name of the function, method or class.
    identifier: String,
    /// Folder of the codebase; the workspace if left out.
    #[serde(default)]
    path: Option<String>,
    /// Print the bodies too.
    #[serde(default)]
    print_body: Option<bool>,
}

impl CommandWords for CkgWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        Ok(vec![TypedCall::new(CkgParameters {
            command: self.command.as_str().to_owned(),
            path: self.path.unwrap_or_else(|| ".".to_owned()),
            identifier: self.identifier,
            print_body: self.print_body.unwrap_or(true),
        })])
    }
}

/// The parameters of the tool, made by a face or a command.
#[derive(Serialize)]
pub(crate) struct CkgParameters {
    pub(crate) command: String,
    pub(crate) path: String,
    pub(crate) identifier: String,
    pub(crate) print_body: bool,
}

impl Parameters for CkgParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let CkgParameters { command, path, identifier, print_body } = self;
        let folder: PathBuf = ground.root.join(&path).components().collect();
        Ok(Box::new(Ckg { command, path, folder, identifier, print_body }))
    }
}

struct Ckg {
    command: String,
    /// The path as it was given.
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

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { self.search(context).await.map(Data::Code).into() })
    }
}

impl Ckg {
    async fn search(self: Box<Self>, context: RunContext) -> Result<String, Problem> {
        let root = context.tree(ID)?.root();
        let files = context.services.workspace.files();
        match files.stat(&self.folder).await {
            // An error must not reveal what exists outside of the workspace.
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
        // The graph reads files directly, so it only gets a folder that is really inside.
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
