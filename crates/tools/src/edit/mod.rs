//! Changes inside a file: a text replaced, or text inserted after a line.

use std::path::{Path, PathBuf};

use lathe_edit::{EditError, Edited, MatchKind, Occurrence, Text, insert, number_lines, replace};
use lathe_policy::Permit;
use lathe_protocol::{Boxed, Digest, Effects, SeenFile};
use lathe_workspace::{Expect, FileKind, FileOp};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::outcome::{Data, EditKind, EditedData, Outcome, Snippet};
use crate::problem::{Doing, Problem};
use crate::tool::{Invocation, RunContext, Tool, absolute, arguments, shown};

pub(crate) const ID: &str = "edit";

/// Lines shown before and after a change.
const AROUND: usize = 4;

/// Places shown of an edit in many.
const SNIPPETS: usize = 3;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// File to change; relative paths are relative to the workspace.
    path: String,
    /// Text to replace, exactly as it stands in the file, with enough lines around it to be unique.
    #[serde(default)]
    old_str: Option<String>,
    /// Text to put in its place; empty deletes.
    new_str: String,
    /// Replace every occurrence of old_str instead of one.
    #[serde(default)]
    replace_all: Option<bool>,
    /// Instead of old_str: insert new_str after this line; 0 is the beginning of the file.
    #[serde(default)]
    insert_line: Option<usize>,
}

pub(crate) struct EditTool;

impl Tool for EditTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, root: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments {
            path,
            old_str,
            new_str,
            replace_all,
            insert_line,
        } = arguments(value)?;
        let change = match (old_str, insert_line) {
            (Some(old), None) => {
                let how = if replace_all.unwrap_or(false) {
                    Occurrence::All
                } else {
                    Occurrence::Unique
                };
                Change::Replace { old, how }
            }
            (None, Some(line)) => Change::Insert { line },
            (Some(_), Some(_)) | (None, None) => {
                return Err(Problem::Arguments(
                    "give either old_str or insert_line".to_owned(),
                ));
            }
        };
        let path = absolute(root, &path);
        Ok(Box::new(Edit {
            shown: shown(root, &path),
            path,
            new: new_str,
            change,
        }))
    }
}

struct Edit {
    path: PathBuf,
    /// The path for people.
    shown: String,
    new: String,
    change: Change,
}

enum Change {
    Replace { old: String, how: Occurrence },
    Insert { line: usize },
}

impl Invocation for Edit {
    fn describe(&self) -> String {
        match &self.change {
            Change::Replace { .. } => format!("edit {}", self.shown),
            Change::Insert { line } => format!("insert into {} after line {line}", self.shown),
        }
    }

    fn effects(&self) -> Effects {
        let path = self.path.display().to_string();
        Effects {
            reads: vec![path.clone()],
            ..Effects::writing(path)
        }
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> Boxed<'static, Outcome> {
        Box::pin(async move {
            match self.edit(&context).await {
                Ok(outcome) => outcome,
                Err(problem) => Err(problem).into(),
            }
        })
    }
}

impl Edit {
    async fn edit(&self, context: &RunContext) -> Result<Outcome, Problem> {
        let files = &context.services.files;
        let stat = files
            .stat(&self.path)
            .await
            .map_err(|error| self.wrong(error, Doing::Reading))?;
        if stat.kind == FileKind::Directory {
            return Err(Problem::IsFolder(self.path.clone()));
        }
        let before = files
            .read(&self.path, None)
            .await
            .map_err(|error| self.wrong(error, Doing::Reading))?;
        let hash = Digest::of(&before);
        let path = self.path.display().to_string();
        if context.seen_hash(&path).is_some_and(|seen| *seen != hash) {
            return Err(Problem::Stale(self.path.clone()));
        }
        let edited = self.change(&before).map_err(|error| self.problem(error))?;
        let data = self.data(&path, &edited);
        let after = Digest::of(&edited.content);
        let op = FileOp::Write {
            path: self.path.clone(),
            expect: Expect::Hash(hash),
            content: edited.content,
        };
        let applied = files
            .apply(vec![op])
            .await
            .map_err(|error| self.wrong(error, Doing::Writing))?;
        let seen = vec![SeenFile { path, hash: after }];
        Ok(Outcome {
            changes: applied,
            seen,
            ..Ok(Data::Edited(data)).into()
        })
    }

    fn change(&self, before: &[u8]) -> Result<Edited, EditError> {
        match &self.change {
            Change::Replace { old, how } => replace(before, old, &self.new, *how),
            Change::Insert { line } => insert(before, *line, &self.new),
        }
    }

    fn wrong(&self, error: lathe_workspace::WorkspaceError, doing: Doing) -> Problem {
        Problem::from_workspace(error, &self.path, doing)
    }

    fn problem(&self, error: EditError) -> Problem {
        let old = match &self.change {
            Change::Replace { old, .. } => old.clone(),
            Change::Insert { .. } => String::new(),
        };
        let path = self.path.clone();
        match error {
            EditError::Binary => Problem::Binary(path),
            EditError::EmptyOld => Problem::EmptyOld,
            EditError::NoChange => Problem::NoChange(path),
            EditError::NoMatch { nearest } => Problem::NoMatch { path, old, nearest },
            EditError::Ambiguous { lines } => Problem::Ambiguous { path, old, lines },
            EditError::LineOutOfRange { line, lines } => Problem::Line { line, lines },
        }
    }

    fn data(&self, path: &str, edited: &Edited) -> EditedData {
        let text = Text::decode(&edited.content)
            .map(|text| text.lossy().into_owned())
            .unwrap_or_default();
        let lines: Vec<&str> = text.split('\n').collect();
        let snippets = edited.regions.iter().take(SNIPPETS).map(|region| {
            let first = region.start.saturating_sub(AROUND).max(1);
            let last = (region.end.max(region.start + 1) - 1 + AROUND).min(lines.len());
            let shown = lines.get(first - 1..last).unwrap_or_default();
            Snippet {
                first,
                text: shown.join("\n"),
            }
        });
        EditedData {
            path: path.to_owned(),
            kind: match self.change {
                Change::Replace { .. } => EditKind::Replaced,
                Change::Insert { .. } => EditKind::Inserted,
            },
            matched: edited.matched,
            places: edited.replaced,
            snippets: snippets.collect(),
        }
    }
}

pub(crate) fn words(edited: &EditedData) -> String {
    let what = match (edited.kind, edited.places) {
        (EditKind::Inserted, _) => format!("Inserted into {}.", edited.path),
        (EditKind::Replaced, 1) => format!("Edited {}.", edited.path),
        (EditKind::Replaced, places) => format!("Edited {} in {places} places.", edited.path),
    };
    let loose = match edited.matched {
        MatchKind::Exact => "",
        MatchKind::LineEndings => " old_str matched after line endings were made equal.",
        MatchKind::TrailingBlanks => " old_str matched after blanks at line ends were left out.",
        MatchKind::Indentation => " old_str matched with another indentation; new_str was indented to fit.",
    };
    let snippets: Vec<String> = edited
        .snippets
        .iter()
        .map(|snippet| {
            number_lines(&snippet.text, snippet.first)
                .trim_end_matches('\n')
                .to_owned()
        })
        .collect();
    format!(
        "{what}{loose} It now reads:\n<file path=\"{}\">\n{}\n</file>",
        edited.path,
        snippets.join("\n  ...\n")
    )
}
