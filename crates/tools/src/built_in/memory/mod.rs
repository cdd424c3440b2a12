//! Remembers facts beyond the session: lines of a section in a file that the user can read and edit.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use lathe_blobs::{Durable, replace};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Digest, Effects, ToolKind};
use lathe_workspace::{Expect, FileOp, WorkspaceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, FaceArguments, Parameters, TypedCall};
use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::faces::modify;
use crate::files::{CommittedChanges, commit};
use crate::outcome::{Data, Outcome, RememberedData};
use crate::preview::Preview;
use crate::problem::{FileAccess, Problem};
use crate::tool::{Invocation, RunContext};

pub(crate) const ID: &str = "memory";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<MemoryArguments>("remember", "Remember", ToolKind::Think, include_str!("lathe.md"))
            .modified_by(modify::memory),
    ),
    command: Some(
        AgentCommand::of::<MemoryWords>(
            "memory",
            ID,
            ToolKind::Think,
            "Remember a fact beyond this session.",
        )
        .with_aliases(&["remember"])
        .with_positions(&["fact"], None)
        .input("fact"),
    ),
    only_if: None,
};

/// The section that Lathe's own toolset uses.
const HEADING: &str = "## Lathe Added Memories";

/// The file for the facts of a project.
const PROJECT_FILE: &str = "AGENTS.md";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MemoryScope {
    User,
    Project,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct MemoryArguments {
    /// One short sentence that will be true and useful later.
    fact: String,
    /// `user` for what holds everywhere (the default), `project` for what holds in this repository.
    #[serde(default)]
    scope: Option<MemoryScope>,
    /// The whole file as the user edited the proposal. The model does not see this parameter.
    #[serde(default)]
    #[schemars(skip)]
    modified: Option<String>,
}

impl FaceArguments for MemoryArguments {
    fn call(self) -> Result<TypedCall, Problem> {
        let Self { fact, scope, modified } = self;
        let scope = scope.unwrap_or(MemoryScope::User);
        Ok(TypedCall::new(MemoryParameters { fact, scope, heading: HEADING, modified }))
    }
}

/// The parameters of the tool, made by a face.
#[derive(Serialize)]
pub(crate) struct MemoryParameters {
    pub(crate) fact: String,
    pub(crate) scope: MemoryScope,
    pub(crate) heading: &'static str,
    /// The whole file as the user edited the proposal.
    pub(crate) modified: Option<String>,
}

/// The words of the command in the shell.
#[derive(Deserialize, JsonSchema)]
struct MemoryWords {
    /// One short sentence that will be true and useful later.
    fact: String,
    /// `user` for what holds everywhere (the default), `project` for this repository.
    scope: Option<MemoryScope>,
}

impl CommandWords for MemoryWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let Self { fact, scope } = self;
        MemoryArguments { fact, scope, modified: None }.calls()
    }
}

impl Parameters for MemoryParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let MemoryParameters { fact, scope, heading, modified } = self;
        let fact = fact.trim_start_matches(|c: char| c == '-' || c.is_whitespace()).trim_end();
        let fact = fact.replace(['\n', '\r'], " ");
        if fact.is_empty() {
            return Err(Problem::Arguments("Parameter \"fact\" must be a non-empty string.".to_owned()));
        }
        let path = match (scope, &ground.setup.memory) {
            (MemoryScope::Project, _) => ground.root.join(PROJECT_FILE),
            (MemoryScope::User, Some(path)) => path.clone(),
            (MemoryScope::User, None) => {
                return Err(Problem::Memory("there is no place for the user's facts".to_owned()));
            }
        };
        Ok(Box::new(Remember { fact, scope, heading, modified, path }))
    }
}

struct Remember {
    fact: String,
    scope: MemoryScope,
    heading: &'static str,
    modified: Option<String>,
    path: PathBuf,
}

impl Invocation for Remember {
    fn describe(&self) -> String {
        format!("remember: {}", self.fact)
    }

    fn effects(&self) -> Effects {
        Effects::writing(self.path.display().to_string())
    }

    fn preview<'a>(&'a self, context: &'a RunContext) -> BoxFuture<'a, Result<Preview, Problem>> {
        Box::pin(async move { Ok(self.proposal(&self.current(context).await?)) })
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match self.remember(&context).await {
                Ok(outcome) => outcome,
                Err(problem) => Err(context.problem_since_shown(problem)).into(),
            }
        })
    }
}

impl Remember {
    fn proposal(&self, current: &str) -> Preview {
        let proposed = self.proposed(current);
        Preview::edit(&self.path.display().to_string(), Some(current.as_bytes()), proposed.as_bytes())
    }

    fn proposed(&self, current: &str) -> String {
        self.modified.clone().unwrap_or_else(|| with_fact(current, self.heading, &self.fact))
    }

    /// The present content of the file. A file that does not exist counts as empty.
    async fn current(&self, context: &RunContext) -> Result<String, Problem> {
        let read = match self.scope {
            MemoryScope::Project => match context.services.workspace.files().read(&self.path, None).await {
                Ok(bytes) => Ok(Some(bytes)),
                Err(WorkspaceError::NotFound(_)) => Ok(None),
                Err(error) => Err(error.to_string()),
            },
            MemoryScope::User => match std::fs::read(&self.path) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error.to_string()),
            },
        };
        let bytes = read.map_err(Problem::Memory)?.unwrap_or_default();
        String::from_utf8(bytes).map_err(|_| Problem::Memory("the file is not UTF-8 text".to_owned()))
    }

    fn keep_origin(&self, context: &RunContext) -> std::io::Result<()> {
        let services = &context.services;
        let session = services.keeper.as_ref().and_then(|keeper| keeper.session.clone());
        let fact = if self.modified.is_some() { "(the whole file was edited)" } else { &self.fact };
        let origin = json!({ "fact": fact, "folder": services.workspace.root().display().to_string(), "session": session });
        let mut options = std::fs::File::options();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.create(true).append(true).open(self.path.with_file_name(ORIGINS))?;
        file.write_all(format!("{origin}\n").as_bytes())
    }

    async fn remember(&self, context: &RunContext) -> Result<Outcome, Problem> {
        let current = self.current(context).await?;
        context.check_shown(&self.path, || self.proposal(&current))?;
        let proposed = self.proposed(&current);
        let done = match self.scope {
            MemoryScope::User => {
                let wrong = |error: std::io::Error| Problem::Memory(error.to_string());
                // A fact whose origin cannot be kept is not kept either.
                self.keep_origin(context).map_err(wrong)?;
                replace(&self.path, proposed.as_bytes(), Durable::Name).map_err(wrong)?;
                CommittedChanges {
                    changes: Vec::new(),
                    files: Vec::new(),
                    between_lines: false,
                    unrecorded: None,
                    not_undoable: Vec::new(),
                    seen: Vec::new(),
                }
            }
            MemoryScope::Project => {
                let expect = if current.is_empty()
                    && context.services.workspace.files().stat(&self.path).await.is_err()
                {
                    Expect::Absent
                } else {
                    Expect::Hash(Digest::of(current.as_bytes()))
                };
                let op = FileOp::Write {
                    path: self.path.clone(),
                    expect,
                    content: Arc::new(proposed.into_bytes()),
                };
                let wrong = |error| match Problem::from_workspace(error, &self.path, FileAccess::Writing) {
                    full @ Problem::NoSpace(_) => full,
                    other => Problem::Memory(other.words()),
                };
                commit(context, vec![op]).await.map_err(wrong)?
            }
        };
        let data = RememberedData {
            fact: self.fact.clone(),
            path: self.path.display().to_string(),
            modified: self.modified.is_some(),
        };
        Ok(done.into_outcome(Data::Remembered(data)))
    }
}

/// The file next to the user's facts that records the origin of each: one JSON object with `fact`, `folder` and
/// `session` per line. The form of the file with the facts is fixed, so it cannot hold them.
const ORIGINS: &str = "memory.origins.jsonl";

/// Adds a line to the section, which ends where the next one begins. The result has one newline at the end.
fn with_fact(text: &str, heading: &str, fact: &str) -> String {
    let line = format!("- {fact}");
    let Some(begin) = section(text, heading) else {
        let gap = match text {
            "" => "",
            text if text.ends_with("\n\n") => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        return format!("{text}{gap}{heading}\n{line}\n");
    };
    let after = begin + heading.len();
    let rest = text.get(after..).unwrap_or_default();
    let end = rest.find("\n## ").map_or(text.len(), |at| after + at);
    let body = text.get(after..end).unwrap_or_default().trim_end();
    let before = text.get(..after).unwrap_or_default();
    let following = text.get(end..).unwrap_or_default().trim_start_matches('\n');
    let gap = if following.is_empty() { "" } else { "\n" };
    let joined = format!("{before}{body}\n{line}\n{gap}{following}");
    format!("{}\n", joined.trim_end_matches('\n'))
}

/// The place of the heading, as a line of its own.
fn section(text: &str, heading: &str) -> Option<usize> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == heading {
            return Some(at);
        }
        at += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::with_fact;

    #[test]
    fn facts_go_to_the_end_of_their_section() {
        let heading = "## Gemini Added Memories";
        for (text, expected) in [
            ("", "## Gemini Added Memories\n- new\n"),
            ("# Mine", "# Mine\n\n## Gemini Added Memories\n- new\n"),
            ("# Mine\n", "# Mine\n\n## Gemini Added Memories\n- new\n"),
            ("## Gemini Added Memories\n- old\n", "## Gemini Added Memories\n- old\n- new\n"),
            (
                "## Gemini Added Memories\n- old\n\n\n## Next\ntext\n",
                "## Gemini Added Memories\n- old\n- new\n\n## Next\ntext\n",
            ),
            (
                "not ## Gemini Added Memories\n",
                "not ## Gemini Added Memories\n\n## Gemini Added Memories\n- new\n",
            ),
        ] {
            assert_eq!(with_fact(text, heading, "new"), expected, "{text:?}");
        }
    }
}
