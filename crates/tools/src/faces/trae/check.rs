//! Trae's order of checks: a wrong path is reported before wrong parameters.
//!
//! Only a running call may access files, so a call with wrong parameters becomes a call that checks its path and then
//! fails.

use std::path::PathBuf;

use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Effects};
use lathe_workspace::{FileKind, WorkspaceError};
use serde::Serialize;

use crate::call::{BuildContext, Parameters};
use crate::outcome::Outcome;
use crate::problem::{FileAccess, Problem};
use crate::tool::{Invocation, RunContext, absolute, display_path};

pub(super) const ID: &str = "check";

/// The parameters of the call, made by the face.
#[derive(Serialize)]
pub(super) struct PathCheckParameters {
    pub(super) path: String,
    pub(super) create: bool,
    pub(super) view: bool,
    /// The error to fail with if the path is right.
    pub(super) problem: String,
}

impl Parameters for PathCheckParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let arguments = self;
        let path = absolute(ground.root, &arguments.path);
        Ok(Box::new(PathCheck { shown: display_path(ground.root, &path), path, arguments }))
    }
}

struct PathCheck {
    path: PathBuf,
    /// The path for people.
    shown: String,
    arguments: PathCheckParameters,
}

impl Invocation for PathCheck {
    fn describe(&self) -> String {
        format!("look at {}", self.shown)
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.path.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move { Err(self.problem(&context).await).into() })
    }
}

impl PathCheck {
    async fn problem(self, context: &RunContext) -> Problem {
        let PathCheckParameters { create, view, problem, .. } = self.arguments;
        match context.services.workspace.files().stat(&self.path).await {
            Err(WorkspaceError::NotFound(_)) if create => Problem::Arguments(problem),
            Err(error) => Problem::from_workspace(error, &self.path, FileAccess::Reading),
            Ok(_) if create => Problem::Exists(self.path),
            Ok(stat) if stat.kind == FileKind::Directory && !view => Problem::IsFolder(self.path),
            Ok(_) => Problem::Arguments(problem),
        }
    }
}
