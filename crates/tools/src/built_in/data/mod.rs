//! Values in JSON, TOML and YAML files by JSONPath, with the file's formatting and comments kept.

mod json_path;

use std::path::PathBuf;
use std::sync::Arc;

use lathe_edit::data::{DataDocument, DataError, DataLanguage, Layout};
use lathe_edit::{TextContent, rewrite};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Digest, Effects, SeenFile, ToolKind};
use lathe_workspace::{Expect, FileKind, FileOp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, Parameters, TypedCall};
use crate::commands::{AgentCommand, InputForm};
use crate::files::commit;
use crate::outcome::{Data, Outcome, ValuesData, ValuesResult};
use crate::preview::Preview;
use crate::problem::{FileAccess, Problem};
use crate::tool::{Invocation, RunContext, absolute, display_path};
use crate::view::LARGEST;

pub(crate) const ID: &str = "data";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: None,
    command: Some(
        AgentCommand::of::<DataWords>(
            "json_edit",
            ID,
            ToolKind::Edit,
            "View, set, add or remove values of a JSON, TOML or YAML file by JSONPath.",
        )
        .with_notes(include_str!("notes.md"))
        .with_positions(&["operation", "file_path", "json_path", "value"], None)
        .input_as("value", InputForm::Json)
        .in_callers_folder(&["file_path"]),
    ),
    only_if: None,
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Operation {
    View,
    Set,
    Add,
    Remove,
}

/// The parameters of the tool, made by a face.
#[derive(Serialize)]
pub(crate) struct DataParameters {
    pub(crate) operation: Operation,
    pub(crate) path: String,
    pub(crate) json_path: Option<String>,
    pub(crate) value: Value,
    pub(crate) pretty: bool,
}

/// The words of the command in the shell.
#[derive(Deserialize, JsonSchema)]
struct DataWords {
    /// The operation.
    operation: Operation,
    /// JSON, TOML or YAML file.
    file_path: String,
    /// Which values, as a JSONPath: `$.a.b`, `$..name`.
    #[serde(default)]
    json_path: Option<String>,
    /// The new value, as JSON; what is no JSON is a text.
    #[serde(default)]
    value: Option<Value>,
    /// Format the whole file anew, instead of keeping it as it is.
    #[serde(default)]
    pretty_print: Option<bool>,
}

impl CommandWords for DataWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let Self { operation, file_path: path, json_path, value, pretty_print } = self;
        let (value, pretty) = (value.unwrap_or_default(), pretty_print.unwrap_or(false));
        Ok(vec![TypedCall::new(DataParameters { operation, path, json_path, value, pretty })])
    }
}

impl Parameters for DataParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let DataParameters { operation, path, json_path, value, pretty } = self;
        let path = absolute(ground.root, &path);
        Ok(Box::new(DataEdit {
            shown: display_path(ground.root, &path),
            path,
            operation,
            json_path,
            value,
            pretty,
        }))
    }
}

struct DataEdit {
    path: PathBuf,
    /// The path for people.
    shown: String,
    operation: Operation,
    json_path: Option<String>,
    value: Value,
    pretty: bool,
}

impl Invocation for DataEdit {
    fn describe(&self) -> String {
        let place = self.json_path.as_deref().unwrap_or("$");
        let verb = match self.operation {
            Operation::View => "view",
            Operation::Set => "set",
            Operation::Add => "add",
            Operation::Remove => "remove",
        };
        format!("{verb} {place} in {}", self.shown)
    }

    fn effects(&self) -> Effects {
        let path = self.path.display().to_string();
        match self.operation {
            Operation::View => Effects::reading(path),
            Operation::Set | Operation::Add | Operation::Remove => {
                Effects { reads: vec![path.clone()], ..Effects::writing(path) }
            }
        }
    }

    fn preview<'a>(&'a self, context: &'a RunContext) -> BoxFuture<'a, Result<Preview, Problem>> {
        Box::pin(async move {
            let (before, after, _) = self.work_out(context).await?;
            Ok(self.proposal(&before, after.as_deref()))
        })
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match self.edit(&context).await {
                Ok(outcome) => outcome,
                Err(problem) => Err(context.problem_since_shown(problem)).into(),
            }
        })
    }
}

impl DataEdit {
    fn proposal(&self, before: &[u8], after: Option<&[u8]>) -> Preview {
        match after {
            Some(after) => Preview::edit(&self.path.display().to_string(), Some(before), after),
            None => Preview::Info { text: self.describe() },
        }
    }

    async fn edit(&self, context: &RunContext) -> Result<Outcome, Problem> {
        let (before, after, done) = self.work_out(context).await?;
        context.check_shown(&self.path, || self.proposal(&before, after.as_deref()))?;
        let path = self.path.display().to_string();
        let data = Data::Values(ValuesData { path: path.clone(), json_path: self.json_path.clone(), done });
        let hash = Digest::of(&before);
        let Some(after) = after else {
            let seen = vec![SeenFile { path, hash }];
            return Ok(Outcome { seen, ..Ok(data).into() });
        };
        if context.seen_hash(&path).is_some_and(|seen| *seen != hash) {
            return Err(Problem::Stale(self.path.clone()));
        }
        let op =
            FileOp::Write { path: self.path.clone(), expect: Expect::Hash(hash), content: Arc::new(after) };
        let done = commit(context, vec![op]).await;
        let done = done.map_err(|error| Problem::from_workspace(error, &self.path, FileAccess::Writing))?;
        Ok(done.into_outcome(data))
    }

    /// Computes the content before, and the content after if there is a change.
    async fn work_out(
        &self,
        context: &RunContext,
    ) -> Result<(Vec<u8>, Option<Vec<u8>>, ValuesResult), Problem> {
        let files = context.services.workspace.files();
        let wrong = |error| Problem::from_workspace(error, &self.path, FileAccess::Reading);
        let stat = files.stat(&self.path).await.map_err(wrong)?;
        match stat.kind {
            FileKind::Directory => return Err(Problem::IsFolder(self.path.clone())),
            FileKind::Special => return Err(Problem::special(&self.path, FileAccess::Reading)),
            FileKind::File if stat.bytes > LARGEST => {
                return Err(Problem::TooLarge { path: self.path.clone(), bytes: stat.bytes });
            }
            FileKind::File => {}
        }
        let before = files.read(&self.path, None).await.map_err(wrong)?;
        let text = TextContent::decode(&before).map_err(|_| Problem::Binary(self.path.clone()))?;
        let Some(text) = text.as_str() else {
            return Err(Problem::Prepare {
                path: self.path.clone(),
                reason: "it is not text in one encoding".to_owned(),
            });
        };
        let problem = |error| Problem::Data {
            path: self.path.clone(),
            json_path: self.json_path.clone().unwrap_or_default(),
            error,
        };
        let kind = DataLanguage::of_path(&self.path.display().to_string()).unwrap_or(DataLanguage::Json);
        let layout = if self.pretty { Layout::Fitting } else { Layout::Compact };
        let mut document = DataDocument::parse(kind, text).map_err(problem)?.with_layout(layout);
        let done = self.act(&mut document).map_err(problem)?;
        if self.operation == Operation::View || document.text() == text {
            return Ok((before, None, done));
        }
        let after = rewrite(&before, document.text())
            .map_err(|error| Problem::Prepare { path: self.path.clone(), reason: error.to_string() })?;
        Ok((before, Some(after.content), done))
    }

    fn act(&self, document: &mut DataDocument) -> Result<ValuesResult, DataError> {
        match self.act_at(self.json_path.as_deref(), document) {
            // The path may not be in standard spelling; nothing was changed yet.
            Err(DataError::Path { path, reason }) => match json_path::standard(&path, document) {
                Ok(standard) if standard != path => self.act_at(Some(&standard), document),
                Ok(_) => Err(DataError::Path { path, reason }),
                Err(hint) => Err(DataError::Path { path, reason: format!("{reason}; {hint}") }),
            },
            done => done,
        }
    }

    fn act_at(&self, place: Option<&str>, document: &mut DataDocument) -> Result<ValuesResult, DataError> {
        match self.operation {
            Operation::View => match place {
                None => Ok(ValuesResult::Whole { text: self.written(document.value()) }),
                Some(place) => {
                    let found = document.view(place)?;
                    Ok(ValuesResult::Found {
                        count: found.len(),
                        text: match found.as_slice() {
                            [only] => self.written(only),
                            several => self.written(&Value::Array(several.to_vec())),
                        },
                    })
                }
            },
            Operation::Set => {
                let count = document.set(place.unwrap_or("$"), &self.value)?;
                Ok(ValuesResult::Set { count, value: self.value.to_string() })
            }
            Operation::Add => {
                document.add(place.unwrap_or("$"), &self.value)?;
                Ok(ValuesResult::Added)
            }
            Operation::Remove => Ok(ValuesResult::Removed { count: document.remove(place.unwrap_or("$"))? }),
        }
    }

    fn written(&self, value: &Value) -> String {
        if self.pretty { format!("{value:#}") } else { value.to_string() }
    }
}

/// The result in Lathe's words.
pub(crate) fn words(data: &ValuesData) -> String {
    let ValuesData { path, json_path, done } = data;
    let place = json_path.as_deref().unwrap_or("$");
    match done {
        ValuesResult::Whole { text } => format!("<file path=\"{path}\">\n{text}\n</file>"),
        ValuesResult::Found { count: 0, .. } => format!("Nothing in {path} matches {place}."),
        ValuesResult::Found { text, .. } => {
            format!("<value path=\"{path}\" at=\"{place}\">\n{text}\n</value>")
        }
        ValuesResult::Set { count, .. } => format!("Set {place} in {path} ({count} places)."),
        ValuesResult::Added => format!("Added {place} to {path}."),
        ValuesResult::Removed { count } => format!("Removed {count} values at {place} from {path}."),
    }
}
