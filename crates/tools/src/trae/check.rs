//! Trae's order of checks: a path that is wrong is reported before parameters that are wrong.
//!
//! Only running code may look at files, so a call with wrong parameters becomes a call that looks at its path and then
//! fails.

use std::path::{Path, PathBuf};

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects};
use lathe_workspace::{FileKind, WorkspaceError};
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::Outcome;
use crate::problem::{Doing, Problem};
use crate::tool::{Invocation, RunContext, Tool, absolute, arguments, shown};

pub(super) const ID: &str = "check";

/// Canonical arguments, made by the face.
#[derive(Deserialize)]
struct Arguments {
    path: String,
    create: bool,
    view: bool,
    /// What to fail with where the path is right.
    problem: String,
}

pub(crate) struct CheckTool;

impl Tool for CheckTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, root: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let arguments: Arguments = arguments(value)?;
        let path = absolute(root, &arguments.path);
        Ok(Box::new(Check { shown: shown(root, &path), path, arguments }))
    }
}

struct Check {
    path: PathBuf,
    /// The path for people.
    shown: String,
    arguments: Arguments,
}

impl Invocation for Check {
    fn describe(&self) -> String {
        format!("look at {}", self.shown)
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.path.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move { Err(self.problem(&context).await).into() })
    }
}

impl Check {
    async fn problem(self, context: &RunContext) -> Problem {
        let Arguments { create, view, problem, .. } = self.arguments;
        match context.services.workspace.files().stat(&self.path).await {
            Err(WorkspaceError::NotFound(_)) if create => Problem::Arguments(problem),
            Err(error) => Problem::from_workspace(error, &self.path, Doing::Reading),
            Ok(_) if create => Problem::Exists(self.path),
            Ok(stat) if stat.kind == FileKind::Directory && !view => Problem::IsFolder(self.path),
            Ok(_) => Problem::Arguments(problem),
        }
    }
}
