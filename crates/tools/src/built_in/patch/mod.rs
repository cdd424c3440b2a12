//! Applies a patch with several changes in several files: all or none.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_edit::patch::{FileChange, Loosened, Patch, PatchError, plan};
use lathe_edit::{MatchKind, diff_stat, unified_diff};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Digest, Effects, ToolErrorKind, ToolKind};
use lathe_workspace::{Expect, FileKind, FileOp, WorkspaceError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, Parameters};
use crate::commands::{AgentCommand, InputForm};
use crate::faces::Face;
use crate::files::commit;
use crate::outcome::{Data, Outcome, PatchedData, PatchedFile};
use crate::preview::Preview;
use crate::problem::{FileAccess, Problem, line_list};
use crate::tool::{Invocation, RunContext, absolute, display_path};
use crate::view::LARGEST;

pub(crate) const ID: &str = "patch";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(Face::lathe::<PatchParameters>(
        "apply_patch",
        "Patch",
        ToolKind::Edit,
        include_str!("lathe.md"),
    )),
    command: Some(
        AgentCommand::of::<PatchParameters>(
            "apply_patch",
            ID,
            ToolKind::Edit,
            "Apply a patch to files, all of it or nothing; the patch comes from standard input.",
        )
        .with_notes(include_str!("notes.md"))
        .with_positions(&["patch"], None)
        .input_as("patch", InputForm::Exact)
        .in_callers_folder(&[]),
    ),
    only_if: None,
};

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchParameters {
    /// The patch. Paths are relative to the workspace.
    pub(crate) patch: String,
}

impl Parameters for PatchParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let PatchParameters { patch } = self;
        let patch = Patch::parse(&patch).map_err(|error| Problem::Arguments(error.to_string()))?;
        let paths =
            patch.paths().into_iter().map(|path| (path.to_owned(), absolute(ground.root, path))).collect();
        Ok(Box::new(Apply { patch, paths, root: ground.root.to_owned() }))
    }
}

struct Apply {
    patch: Patch,
    /// Each path as the patch names it, and its place.
    paths: Vec<(String, PathBuf)>,
    root: PathBuf,
}

impl Invocation for Apply {
    fn describe(&self) -> String {
        let names: Vec<String> = self.paths.iter().map(|(_, path)| display_path(&self.root, path)).collect();
        format!("patch {}", names.join(", "))
    }

    fn effects(&self) -> Effects {
        let paths: Vec<String> = self.paths.iter().map(|(_, path)| path.display().to_string()).collect();
        Effects { reads: paths.clone(), writes: paths, ..Effects::default() }
    }

    fn kinds(&self) -> Vec<ToolKind> {
        let deletes = self.patch.deletes().then_some(ToolKind::Delete);
        deletes.into_iter().chain(self.patch.moves().then_some(ToolKind::Move)).collect()
    }

    fn preview<'a>(&'a self, context: &'a RunContext) -> BoxFuture<'a, Result<Preview, Problem>> {
        Box::pin(async move { Ok(self.proposal(&self.work_out(context).await?)) })
    }

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
        Box::pin(async move {
            match self.apply(&context).await {
                Ok(outcome) => outcome,
                Err(problem) => Err(context.problem_since_shown(problem)).into(),
            }
        })
    }
}

impl Apply {
    fn proposal(&self, planned: &[FileChange]) -> Preview {
        let diff = |change: &FileChange| {
            let named = |name: &str| unified_diff(change.before.as_deref(), change.after.as_deref(), name);
            let diff = named(&change.path);
            let Some(from) = &change.moved_from else { return diff };
            let head =
                format!("diff --git a/{from} b/{to}\nrename from {from}\nrename to {to}\n", to = change.path);
            // The old name is on the first line.
            let old = named(from);
            let (Some((old, _)), Some((_, rest))) = (old.split_once('\n'), diff.split_once('\n')) else {
                return head;
            };
            format!("{head}{old}\n{rest}")
        };
        let paths = self.paths.iter().map(|(_, path)| display_path(&self.root, path)).collect();
        let places = self.paths.iter().map(|(_, path)| path.clone()).collect();
        Preview::Patch { paths, diff: planned.iter().map(diff).collect(), places }
    }

    async fn work_out(&self, context: &RunContext) -> Result<Vec<FileChange>, Problem> {
        let files = context.services.workspace.files();
        let mut contents: HashMap<&str, Vec<u8>> = HashMap::new();
        for (name, path) in &self.paths {
            let wrong = |error| Problem::from_workspace(error, path, FileAccess::Reading);
            let stat = match files.stat(path).await {
                Ok(stat) => stat,
                Err(WorkspaceError::NotFound(_)) => continue,
                Err(error) => return Err(wrong(error)),
            };
            match stat.kind {
                FileKind::Directory => return Err(Problem::IsFolder(path.clone())),
                FileKind::Special => return Err(Problem::special(path, FileAccess::Reading)),
                FileKind::File if stat.bytes > LARGEST => {
                    return Err(Problem::TooLarge { path: path.clone(), bytes: stat.bytes });
                }
                FileKind::File => {}
            }
            let content = files.read(path, None).await.map_err(wrong)?;
            let shown = path.display().to_string();
            if context.seen_hash(&shown).is_some_and(|seen| *seen != Digest::of(&content)) {
                return Err(Problem::Stale(path.clone()));
            }
            contents.insert(name, content);
        }
        plan(&self.patch, &|path| contents.get(path).cloned()).map_err(|error| match &error {
            // The patch fitted when the user was shown it.
            PatchError::NoMatch { path, .. } | PatchError::Ambiguous { path, .. }
                if context.shown.is_some() =>
            {
                Problem::NotAsShown(vec![absolute(&self.root, path)])
            }
            _ => self.problem(error),
        })
    }

    async fn apply(&self, context: &RunContext) -> Result<Outcome, Problem> {
        let planned = self.work_out(context).await?;
        let paths: Vec<&Path> = self.paths.iter().map(|(_, path)| path.as_path()).collect();
        context.check_all_shown(&paths, || self.proposal(&planned))?;
        let mut ops = Vec::new();
        let mut data = PatchedData { files: Vec::new() };
        for change in planned {
            let path = absolute(&self.root, &change.path);
            data.files.push(patched_file(&self.root, &path, &change));
            let left = change.moved_from.as_deref().map(|from| absolute(&self.root, from));
            let before = change.before.as_deref().map(Digest::of);
            if let (Some(left), Some(hash)) = (&left, &before) {
                ops.push(FileOp::Remove { path: left.clone(), expect: Expect::Hash(hash.clone()) });
            }
            let here = before.filter(|_| left.is_none());
            let expect = here.map_or(Expect::Absent, Expect::Hash);
            match change.after {
                None => ops.push(FileOp::Remove { path, expect }),
                Some(content) => {
                    ops.push(FileOp::Write { path, expect, content: Arc::new(content) });
                }
            }
        }
        let place = self.paths.first().map(|(_, path)| path.clone()).unwrap_or_else(|| self.root.clone());
        let done = commit(context, ops).await;
        let done = done.map_err(|error| Problem::from_workspace(error, &place, FileAccess::Writing))?;
        Ok(done.into_outcome(Data::Patched(data)))
    }

    fn problem(&self, error: PatchError) -> Problem {
        let at = |path: &str| absolute(&self.root, path);
        match error {
            PatchError::Missing { path } => Problem::NotFound(at(&path)),
            PatchError::Exists { path } => Problem::Exists(at(&path)),
            PatchError::Binary { path } => Problem::Binary(at(&path)),
            PatchError::NoMatch { path, hunk, line, nearest } => {
                let place = match nearest {
                    Some(near) => format!("The nearest place is at line {}:\n{}", near.line, near.text),
                    None => "View the file and copy its lines exactly.".to_owned(),
                };
                Problem::Foreign {
                    kind: ToolErrorKind::EditNoOccurrenceFound,
                    message: format!(
                        "Hunk {hunk} (line {line} of the patch) does not fit {}: its lines were not found. {place}",
                        at(&path).display()
                    ),
                }
            }
            PatchError::Ambiguous { path, hunk, lines } => Problem::Foreign {
                kind: ToolErrorKind::EditExpectedOccurrenceMismatch,
                message: format!(
                    "Hunk {hunk} fits {} in several places, at lines {}. Give it more lines around the change.",
                    at(&path).display(),
                    line_list(&lines)
                ),
            },
            PatchError::Empty | PatchError::Syntax { .. } => Problem::Arguments(error.to_string()),
            PatchError::NotWhole { ref path } | PatchError::Edit { ref path, .. } => {
                Problem::Prepare { path: at(path), reason: error.to_string() }
            }
        }
    }
}

fn patched_file(root: &Path, path: &Path, change: &FileChange) -> PatchedFile {
    let stat = diff_stat(change.before.as_deref(), change.after.as_deref());
    PatchedFile {
        path: display_path(root, path),
        moved_from: change.moved_from.clone(),
        existed: change.before.is_some(),
        exists: change.after.is_some(),
        added: stat.added,
        removed: stat.removed,
        notes: change.loosened.iter().map(note).collect(),
    }
}

fn note(loosened: &Loosened) -> String {
    let mut what = Vec::new();
    if loosened.shifted != 0 {
        what.push(format!("{} lines from the place it named", loosened.shifted.unsigned_abs()));
    }
    if let Some(words) = match loosened.matched {
        MatchKind::Exact => None,
        MatchKind::LineEndings => Some("after line endings were made equal"),
        MatchKind::TrailingBlanks => Some("after blanks at line ends were left out"),
        MatchKind::Indentation => Some("with another indentation"),
        MatchKind::Tokens => Some("with other whitespace"),
        MatchKind::Fuzzy => Some("only nearly"),
    } {
        what.push(words.to_owned());
    }
    if loosened.miscounted {
        what.push("although its header counted wrong".to_owned());
    }
    format!("hunk {} fitted at line {} {}", loosened.hunk, loosened.line, what.join(", "))
}

pub(crate) fn words(data: &PatchedData) -> String {
    let row = |file: &PatchedFile| {
        let verb = match (file.existed, file.exists, &file.moved_from) {
            (_, _, Some(_)) => "moved",
            (false, _, None) => "created",
            (true, false, None) => "deleted",
            (true, true, None) => "changed",
        };
        let from = file.moved_from.as_ref().map_or(String::new(), |from| format!(" from {from}"));
        let notes: String = file.notes.iter().map(|note| format!("\n    {note}")).collect();
        format!("  {verb} {}{from} (+{} -{}){notes}", file.path, file.added, file.removed)
    };
    let rows: Vec<String> = data.files.iter().map(row).collect();
    format!("The patch is applied:\n{}", rows.join("\n"))
}
