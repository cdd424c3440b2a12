//! Writes whole files: creates them, or replaces them if the model has seen the content.

use std::path::PathBuf;
use std::sync::Arc;

use lathe_edit::{EditError, TextContent, omission_in_new, omission_line, rewrite};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Digest, Effects, ToolKind};
use lathe_workspace::{Expect, FileKind, FileOp, WorkspaceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, FaceArguments, Parameters, TypedCall};
use crate::commands::{AgentCommand, InputForm};
use crate::faces::Face;
use crate::faces::modify;
use crate::files::commit;
use crate::outcome::{Data, Outcome, WrittenData};
use crate::preview::Preview;
use crate::problem::{FileAccess, Problem};
use crate::tool::{Invocation, RunContext, absolute, display_path};

pub(crate) const ID: &str = "write";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<WriteArguments>("write", "Write", ToolKind::Edit, include_str!("lathe.md"))
            .modified_by(modify::write),
    ),
    command: Some(
        AgentCommand::of::<WriteWords>(
            "write",
            ID,
            ToolKind::Edit,
            "Write a whole file, content by word or from standard input.",
        )
        .with_notes(include_str!("notes.md"))
        .with_positions(&["file_path", "content"], None)
        .input_as("content", InputForm::Content)
        .in_callers_folder(&["file_path"]),
    ),
    only_if: None,
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteArguments {
    /// File to write; relative paths are relative to the workspace.
    path: String,
    /// The whole content.
    content: String,
}

impl FaceArguments for WriteArguments {
    fn call(self) -> Result<TypedCall, Problem> {
        let Self { path, content } = self;
        Ok(TypedCall::new(WriteParameters {
            path,
            content: Content::Text(content),
            overwrite: Overwrite::Seen,
            as_is: false,
        }))
    }
}

/// The parameters of the tool, made by a face.
#[derive(Serialize)]
pub(crate) struct WriteParameters {
    pub(crate) path: String,
    pub(crate) content: Content,
    pub(crate) overwrite: Overwrite,
    /// True if the content is written byte for byte, whatever encoding and line endings the file has.
    pub(crate) as_is: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Content {
    Text(String),
    /// Content that is not text, one character per byte.
    Bytes {
        bytes: String,
    },
}

impl Content {
    fn into_bytes(self) -> Vec<u8> {
        match self {
            Self::Text(text) => text.into_bytes(),
            Self::Bytes { bytes } => {
                bytes.chars().map(|byte| u8::try_from(u32::from(byte)).unwrap_or(b'?')).collect()
            }
        }
    }
}

/// The existing files that may be replaced.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Overwrite {
    Never,
    /// Those whose content the model has seen.
    Seen,
    /// All of them; a file that was seen must still be what it was.
    Unseen,
}

/// The words of the command in the shell.
#[derive(Deserialize, JsonSchema)]
struct WriteWords {
    /// File to write; folders on the way are made.
    file_path: String,
    /// The whole content. Left out, it is read from standard input, byte for byte.
    #[schemars(with = "String")]
    content: Content,
}

impl CommandWords for WriteWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let Self { file_path: path, content } = self;
        Ok(vec![TypedCall::new(WriteParameters { path, content, overwrite: Overwrite::Unseen, as_is: true })])
    }
}

impl Parameters for WriteParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let WriteParameters { path, content, overwrite, as_is } = self;
        let path = absolute(ground.root, &path);
        let content = match content {
            Content::Text(text) if !as_is => NewContent::Text(text),
            content @ (Content::Text(_) | Content::Bytes { .. }) => NewContent::Bytes(content.into_bytes()),
        };
        Ok(Box::new(Write { shown: display_path(ground.root, &path), path, content, overwrite }))
    }
}

struct Write {
    path: PathBuf,
    /// The path for people.
    shown: String,
    content: NewContent,
    overwrite: Overwrite,
}

/// The file as it is, with its digest, and as it would be.
struct Planned {
    before: Option<(Vec<u8>, Digest)>,
    after: Vec<u8>,
}

/// The content as it was given.
enum NewContent {
    /// Text that takes the encoding and line endings of the existing file.
    Text(String),
    Bytes(Vec<u8>),
}

impl NewContent {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Invocation for Write {
    fn describe(&self) -> String {
        format!("write {}", self.shown)
    }

    fn effects(&self) -> Effects {
        Effects::writing(self.path.display().to_string())
    }

    fn preview<'a>(&'a self, context: &'a RunContext) -> BoxFuture<'a, Result<Preview, Problem>> {
        Box::pin(async move { Ok(self.proposal(&self.work_out(context).await?)) })
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match self.write(&context).await {
                Ok(outcome) => outcome,
                Err(problem) => Err(context.problem_since_shown(problem)).into(),
            }
        })
    }
}

impl Write {
    /// The new text in the encoding and with the line endings of the file. A binary file becomes plain UTF-8.
    fn in_the_manner_of(&self, now: &[u8]) -> Result<Vec<u8>, Problem> {
        let text = match &self.content {
            NewContent::Text(text) => text,
            NewContent::Bytes(bytes) => return Ok(bytes.clone()),
        };
        match rewrite(now, text) {
            Ok(edited) => Ok(edited.content),
            Err(EditError::NoChange) => Ok(now.to_vec()),
            Err(EditError::Binary) => Ok(text.clone().into_bytes()),
            Err(error) => Err(Problem::Prepare { path: self.path.clone(), reason: error.to_string() }),
        }
    }

    fn proposal(&self, planned: &Planned) -> Preview {
        let before = planned.before.as_ref().map(|(before, _)| before.as_slice());
        Preview::edit(&self.path.display().to_string(), before, &planned.after)
    }

    /// Computes the content as it is, and as it would be.
    async fn work_out(&self, context: &RunContext) -> Result<Planned, Problem> {
        let files = context.services.workspace.files();
        let path = self.path.display().to_string();
        let wrong = |doing| move |error| Problem::from_workspace(error, &self.path, doing);
        let now = match files.stat(&self.path).await {
            Err(WorkspaceError::NotFound(_)) => None,
            Err(error) => return Err(Problem::from_workspace(error, &self.path, FileAccess::Writing)),
            Ok(_) if self.overwrite == Overwrite::Never => return Err(Problem::Exists(self.path.clone())),
            Ok(stat) => match stat.kind {
                FileKind::Directory => return Err(Problem::IsFolder(self.path.clone())),
                FileKind::Special => return Err(Problem::special(&self.path, FileAccess::Writing)),
                FileKind::File => {
                    let now = files.read(&self.path, None).await.map_err(wrong(FileAccess::Reading))?;
                    let hash = Digest::of(&now);
                    match (context.seen_hash(&path), self.overwrite) {
                        (Some(seen), _) if *seen != hash => return Err(Problem::Stale(self.path.clone())),
                        (Some(_), _) | (None, Overwrite::Unseen) => {}
                        (None, Overwrite::Seen | Overwrite::Never) => {
                            return Err(Problem::NotSeen(self.path.clone()));
                        }
                    }
                    Some((now, hash))
                }
            },
        };
        if let Ok(text) = std::str::from_utf8(self.content.as_bytes()) {
            let left_out = match &now {
                None => omission_in_new(text),
                Some((now, _)) => {
                    let before =
                        TextContent::decode(now).map_or(String::new(), |before| before.lossy().into_owned());
                    omission_line(&before, text)
                }
            };
            if let Some(line) = left_out {
                return Err(Problem::LeftOut { path: self.path.clone(), line });
            }
        }
        let after = match &now {
            None => self.content.as_bytes().to_vec(),
            Some((now, _)) => self.in_the_manner_of(now)?,
        };
        Ok(Planned { before: now, after })
    }

    async fn write(&self, context: &RunContext) -> Result<Outcome, Problem> {
        let planned = self.work_out(context).await?;
        context.check_shown(&self.path, || self.proposal(&planned))?;
        let path = self.path.display().to_string();
        let wrong = |doing| move |error| Problem::from_workspace(error, &self.path, doing);
        let Planned { before, after: content } = planned;
        let existed = before.is_some();
        let lines = line_count(self.content.as_bytes());
        let expect = before.map_or(Expect::Absent, |(_, hash)| Expect::Hash(hash));
        let op = FileOp::Write { path: self.path.clone(), expect, content: Arc::new(content) };
        let done = commit(context, vec![op]).await.map_err(wrong(FileAccess::Writing))?;
        let data = Data::Written(WrittenData { path, existed, lines });
        Ok(done.into_outcome(data))
    }
}

/// The number of lines as people count them: a last line without its line break counts too.
fn line_count(content: &[u8]) -> usize {
    let ends = content.iter().filter(|byte| **byte == b'\n').count();
    ends + usize::from(!content.is_empty() && !content.ends_with(b"\n"))
}

pub(crate) fn words(written: &WrittenData) -> String {
    let verb = if written.existed { "Replaced" } else { "Created" };
    let lines = match written.lines {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    };
    format!("{verb} {} ({lines}).", written.path)
}
