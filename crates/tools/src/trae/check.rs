//! Trae's order of checks: a path that is wrong is reported before parameters that are wrong.
//!
//! Only running code may look at files, so a call with wrong parameters becomes a call that looks at its path and then
//! fails.

use std::path::PathBuf;

use lathe_policy::Permit;
use lathe_protocol::{Boxed, Effects};
use lathe_workspace::{FileKind, WorkspaceError};
use serde::Serialize;

use crate::call::{Ground, Parameters};
use crate::outcome::Outcome;
use crate::problem::{Doing, Problem};
use crate::tool::{Invocation, RunContext, absolute, shown};

pub(super) const ID: &str = "check";

/// The parameters of the call, made by the face.
#[derive(Serialize)]
pub(super) struct Arguments {
    pub(super) path: String,
    pub(super) create: bool,
    pub(super) view: bool,
    /// What to fail with where the path is right.
    pub(super) problem: String,
}

impl Parameters for Arguments {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &Ground<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let arguments = self;
        let path = absolute(ground.root, &arguments.path);
        Ok(Box::new(Check { shown: shown(ground.root, &path), path, arguments }))
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
