//! Looks at a file, with line numbers, or at a folder.

use std::path::{Path, PathBuf};

use lathe_edit::{Text, number_lines};
use lathe_policy::Permit;
use lathe_protocol::{Boxed, Digest, Effects, SeenFile};
use lathe_workspace::FileKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::{Data, FileData, FolderData, Outcome};
use crate::problem::{Doing, Problem};
use crate::tool::{Invocation, RunContext, Tool, absolute, arguments, shown};

pub(crate) const ID: &str = "view";

/// Larger files are looked at with bash.
const LARGEST: u64 = 64 << 20;

/// Lines shown when no limit is given.
const LINES: i64 = 2000;

/// Levels of a folder that are shown.
const DEPTH: usize = 2;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// File or folder; relative paths are relative to the workspace.
    path: String,
    /// First line to show, from 1.
    #[serde(default)]
    offset: Option<i64>,
    /// How many lines to show; 2000 if left out.
    #[serde(default)]
    limit: Option<i64>,
}

pub(crate) struct ViewTool;

impl Tool for ViewTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, root: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { path, offset, limit } = arguments(value)?;
        if limit.is_some_and(|limit| limit < 1) {
            return Err(Problem::Arguments("limit must be at least 1".to_owned()));
        }
        let path = absolute(root, &path);
        Ok(Box::new(View {
            shown: shown(root, &path),
            path,
            offset,
            limit,
        }))
    }
}

struct View {
    path: PathBuf,
    /// The path for people.
    shown: String,
    offset: Option<i64>,
    limit: Option<i64>,
}

impl Invocation for View {
    fn describe(&self) -> String {
        let part = match (self.offset, self.limit) {
            (None, None) => String::new(),
            (from, None) => format!(" from line {}", from.unwrap_or(1)),
            (from, Some(limit)) => {
                let from = from.unwrap_or(1);
                format!(" lines {from}-{}", from.saturating_add(limit) - 1)
            }
        };
        format!("view {}{part}", self.shown)
    }

    fn effects(&self) -> Effects {
        Effects::reading(self.path.display().to_string())
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move {
            match self.view(&context).await {
                Ok(outcome) => outcome,
                Err(problem) => Err(problem).into(),
            }
        })
    }
}

impl View {
    async fn view(&self, context: &RunContext) -> Result<Outcome, Problem> {
        let files = &context.services.files;
        let wrong = |error| Problem::from_workspace(error, &self.path, Doing::Reading);
        let stat = files.stat(&self.path).await.map_err(wrong)?;
        match stat.kind {
            FileKind::Directory => self.folder(context).await,
            FileKind::File if stat.bytes > LARGEST => Err(Problem::TooLarge {
                path: self.path.clone(),
                bytes: stat.bytes,
            }),
            FileKind::File => {
                let content = files.read(&self.path, None).await.map_err(wrong)?;
                self.file(&content)
            }
            FileKind::Special => Err(Problem::Read {
                path: self.path.clone(),
                reason: "it is neither a file nor a folder".to_owned(),
            }),
        }
    }

    fn file(&self, content: &[u8]) -> Result<Outcome, Problem> {
        let text = Text::decode(content).map_err(|_| Problem::Binary(self.path.clone()))?;
        let whole = text.lossy();
        let lines = text.line_count();
        let start = self.offset.unwrap_or(1);
        let first = usize::try_from(start)
            .ok()
            .filter(|first| (1..=lines.max(1)).contains(first))
            .ok_or(Problem::Range {
                start,
                end: self.limit.map(|limit| start.saturating_add(limit) - 1),
                lines,
            })?;
        let count = usize::try_from(self.limit.unwrap_or(LINES)).unwrap_or(usize::MAX);
        let shown: String = whole.split_inclusive('\n').skip(first - 1).take(count).collect();
        let path = self.path.display().to_string();
        let seen = vec![SeenFile {
            path: path.clone(),
            hash: Digest::of(content),
        }];
        let asked_part = self.offset.is_some() || self.limit.is_some();
        let data = Data::File(FileData {
            path,
            text: shown,
            first,
            lines,
            asked_part,
        });
        Ok(Outcome {
            seen,
            ..Ok(data).into()
        })
    }

    async fn folder(&self, context: &RunContext) -> Result<Outcome, Problem> {
        if self.offset.is_some() || self.limit.is_some() {
            return Err(Problem::RangeOnFolder);
        }
        let walked = context.services.files.walk(&self.path, DEPTH).await;
        let entries = walked.map_err(|error| Problem::from_workspace(error, &self.path, Doing::Reading))?;
        let entries = entries
            .into_iter()
            .map(|entry| {
                let slash = if entry.kind == FileKind::Directory {
                    "/"
                } else {
                    ""
                };
                format!("{}{slash}", entry.path.display())
            })
            .collect();
        Ok(Ok(Data::Folder(FolderData {
            path: self.path.display().to_string(),
            entries,
        }))
        .into())
    }
}

/// At most `cap` bytes, cut at the end of a line where there is one.
pub(crate) fn clip(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let mut end = cap;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let cut = text.get(..end).unwrap_or_default();
    cut.rfind('\n').map_or(cut, |at| cut.get(..=at).unwrap_or(cut))
}

pub(crate) fn file_words(file: &FileData, cap: usize) -> String {
    if file.text.is_empty() {
        return format!("{} is empty.", file.path);
    }
    let shown = clip(&file.text, cap);
    let last = file.first + shown.lines().count().saturating_sub(1);
    let rest = if last < file.lines {
        format!(
            "\nLines {}-{} of {} shown; give offset {} for more.",
            file.first,
            last,
            file.lines,
            last + 1
        )
    } else {
        String::new()
    };
    let numbered = number_lines(shown, file.first);
    format!(
        "<file path=\"{}\">\n{}\n</file>{rest}",
        file.path,
        numbered.trim_end_matches('\n')
    )
}

pub(crate) fn folder_words(folder: &FolderData, cap: usize) -> String {
    let listed = folder.entries.join("\n");
    let shown = clip(&listed, cap);
    let rest = folder.entries.len() - shown.lines().count().min(folder.entries.len());
    let more = if rest > 0 {
        format!("\n{rest} more entries are not shown.")
    } else {
        String::new()
    };
    format!(
        "<folder path=\"{}\">\n{}\n</folder>{more}",
        folder.path,
        shown.trim_end_matches('\n')
    )
}
