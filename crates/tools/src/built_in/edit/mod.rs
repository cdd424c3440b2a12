//! Changes inside a file: replaces a text, or inserts text after a line.

mod blocks;

use std::borrow::Cow;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use lathe_edit::{
    EditError, Edited, Looseness, MatchKind, Nearest, Occurrence, TextContent, insert, number_lines,
    omission_in_new, replace_loosely,
};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Digest, Effects, ToolKind};
use lathe_workspace::{Expect, FileKind, FileOp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::built_in::BuiltIn;
use crate::call::{BuildContext, CommandWords, Parameters, TypedCall};
use crate::commands::{AgentCommand, InputForm};
use crate::faces::Face;
use crate::faces::modify;
use crate::files::commit_known;
use crate::files::syntax;
use crate::outcome::{Data, EditKind, EditedData, Outcome, Snippet};
use crate::preview::Preview;
use crate::problem::{FileAccess, Problem};
use crate::tool::{Invocation, RunContext, absolute, display_path};
use crate::view::{LARGEST, LineSlice, clip, lines_of};

pub(crate) const ID: &str = "edit";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<EditParameters>("edit", "Edit", ToolKind::Edit, include_str!("lathe.md"))
            .modified_by(modify::edit),
    ),
    command: Some(
        AgentCommand::of::<EditWords>(
            "edit",
            ID,
            ToolKind::Edit,
            "Replace a text in a file: exactly one place, or all with --replace-all.",
        )
        .with_notes(include_str!("notes.md"))
        .with_positions(&["file_path", "old_string", "new_string"], None)
        .input_as("blocks", InputForm::Exact)
        .in_callers_folder(&["file_path"]),
    ),
    only_if: None,
};

/// Lines shown before and after a change.
const AROUND: usize = 4;

/// Places shown of an edit with many.
const SNIPPETS: usize = 3;

#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditParameters {
    /// File to change; relative paths are relative to the workspace.
    pub(crate) path: String,
    /// Text to replace, exactly as it stands in the file, with enough lines around it to be unique.
    #[serde(default)]
    pub(crate) old_str: Option<String>,
    /// Text to put in its place; empty deletes.
    pub(crate) new_str: String,
    /// Replace every occurrence of old_str instead of one.
    #[serde(default)]
    pub(crate) replace_all: Option<bool>,
    /// Instead of old_str: insert new_str after this line; 0 is the beginning of the file.
    #[serde(default)]
    pub(crate) insert_line: Option<i64>,
    /// The number of occurrences that old_str must have in the file. Only other toolsets have this parameter.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) expected: Option<usize>,
    /// Accept a text that is nearly the same, if no other place fits.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) fuzzy: Option<bool>,
    /// The file ends with a line break afterwards if and only if it did before.
    #[serde(default)]
    #[schemars(skip)]
    pub(crate) keep_end: Option<bool>,
}

/// The words of the command in the shell.
#[derive(Deserialize, JsonSchema)]
struct EditWords {
    /// File to change.
    file_path: String,
    /// Text to replace, exactly as it stands in the file; it must stand there once.
    #[serde(default)]
    old_string: Option<String>,
    /// Text to put in its place; an empty word deletes.
    #[serde(default)]
    new_string: Option<String>,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: Option<bool>,
    /// Instead of old_string: insert new_string after this line; 0 is the beginning.
    #[serde(default)]
    insert_line: Option<i64>,
    /// Search/replace blocks; read from standard input where old_string and new_string are left out.
    #[serde(default)]
    blocks: Option<String>,
}

impl CommandWords for EditWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let Self { file_path: path, old_string, new_string, replace_all, insert_line, blocks } = self;
        match (old_string, new_string, blocks) {
            (None, None, Some(text)) => blocks::calls(&path, &text),
            (old_str, Some(new_str), None) => Ok(vec![TypedCall::new(EditParameters {
                path,
                old_str,
                new_str,
                replace_all,
                insert_line,
                ..EditParameters::default()
            })]),
            (Some(_), None, _) => {
                Err(Problem::Arguments("Missing required parameter: new_string".to_owned()))
            }
            (None, None, None) => {
                Err(Problem::Arguments("Missing required parameter: old_string".to_owned()))
            }
            (_, Some(_), Some(_)) => {
                Err(Problem::Arguments("give either old_string and new_string, or blocks".to_owned()))
            }
        }
    }
}

impl Parameters for EditParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let EditParameters { path, old_str, new_str, replace_all, insert_line, expected, fuzzy, keep_end } =
            self;
        let change = match (old_str, insert_line) {
            (Some(old), None) => {
                let how = match (replace_all.unwrap_or(false), expected) {
                    (true, _) => Occurrence::All,
                    (false, Some(count)) => Occurrence::Exactly(count),
                    (false, None) => Occurrence::Unique,
                };
                let loose = if fuzzy.unwrap_or(false) { Looseness::Fuzzy } else { Looseness::Whitespace };
                Change::Replace { old, how, loose }
            }
            (None, Some(line)) => Change::Insert { line },
            (Some(_), Some(_)) | (None, None) => {
                return Err(Problem::Arguments("give either old_str or insert_line".to_owned()));
            }
        };
        let path = absolute(ground.root, &path);
        let keep_end = keep_end.unwrap_or(false);
        Ok(Box::new(Edit { shown: display_path(ground.root, &path), path, new: new_str, change, keep_end }))
    }
}

struct Edit {
    path: PathBuf,
    /// The path for people.
    shown: String,
    new: String,
    change: Change,
    keep_end: bool,
}

enum Change {
    Replace { old: String, how: Occurrence, loose: Looseness },
    Insert { line: i64 },
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
        Effects { reads: vec![path.clone()], ..Effects::writing(path) }
    }

    fn preview<'a>(&'a self, context: &'a RunContext) -> BoxFuture<'a, Result<Preview, Problem>> {
        Box::pin(async move {
            let (before, edited) = self.work_out(context).await?;
            Ok(self.proposal(&before, &edited.content))
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

impl Edit {
    fn proposal(&self, before: &[u8], after: &[u8]) -> Preview {
        Preview::edit(&self.path.display().to_string(), Some(before), after)
    }

    /// Computes the content as it is, and as it would be.
    async fn work_out(&self, context: &RunContext) -> Result<(Vec<u8>, Edited), Problem> {
        let files = context.services.workspace.files();
        let stat = files.stat(&self.path).await.map_err(|error| self.wrong(error, FileAccess::Reading))?;
        match stat.kind {
            FileKind::Directory => return Err(Problem::IsFolder(self.path.clone())),
            FileKind::Special => return Err(Problem::special(&self.path, FileAccess::Reading)),
            FileKind::File if stat.bytes > LARGEST => {
                return Err(Problem::TooLarge { path: self.path.clone(), bytes: stat.bytes });
            }
            FileKind::File => {}
        }
        let before =
            files.read(&self.path, None).await.map_err(|error| self.wrong(error, FileAccess::Reading))?;
        let edited = self.change(&before).map_err(|problem| {
            match context.seen_hash(&self.path.display().to_string()) {
                // Another program may have removed the text that is to be replaced.
                Some(seen) if *seen != Digest::of(&before) => Problem::Stale(self.path.clone()),
                // The edit could be done when the user was asked.
                _ if context.shown.is_some() => Problem::NotAsShown(vec![self.path.clone()]),
                Some(_) | None => problem,
            }
        })?;
        // A loose match that breaks the file is a misunderstanding; an exact one may be an intermediate step.
        if edited.matched >= MatchKind::Indentation
            && syntax::introduces_errors(&context.services, &self.path, &before, &edited.content).await
        {
            return Err(Problem::Unclear { path: self.path.clone(), place: place(&before, &edited) });
        }
        Ok((before, edited))
    }

    async fn edit(&self, context: &RunContext) -> Result<Outcome, Problem> {
        let (before, mut edited) = self.work_out(context).await?;
        context.check_shown(&self.path, || self.proposal(&before, &edited.content))?;
        let before = Arc::new(before);
        let path = self.path.display().to_string();
        let seen = context.seen_hash(&path).cloned();
        let content = Arc::new(std::mem::take(&mut edited.content));
        // Content that is known to be what the model saw need not be hashed again.
        let unsure = seen.clone().filter(|seen| !context.services.last_written.is(&before, seen));
        let expect = Expect::Held(before, unsure);
        let op = FileOp::Write { path: self.path.clone(), expect, content: Arc::clone(&content) };
        // The data is computed while the disk works.
        let (done, data) = tokio::join!(commit_known(context, vec![op], vec![seen]), async {
            self.data(&path, &edited, &content)
        });
        let done = done.map_err(|error| self.wrong(error, FileAccess::Writing))?;
        Ok(done.into_outcome(Data::Edited(data)))
    }

    fn change(&self, before: &[u8]) -> Result<Edited, Problem> {
        if let (Change::Insert { .. }, Some(line)) = (&self.change, omission_in_new(&self.new)) {
            return Err(Problem::LeftOut { path: self.path.clone(), line });
        }
        let edited = match &self.change {
            Change::Replace { old, how, loose } => replace_loosely(before, old, &self.new, *how, *loose),
            Change::Insert { line } => match usize::try_from(*line) {
                Ok(line) => insert(before, line, &self.new),
                Err(_) => {
                    let lines = TextContent::decode(before).map_or(0, |text| text.line_count());
                    return Err(Problem::Line { line: *line, lines });
                }
            },
        };
        let mut edited = edited.map_err(|error| self.problem(error))?;
        if self.keep_end {
            keep_end(before, &mut edited.content);
            if edited.content == before {
                return Err(Problem::NoChange(self.path.clone()));
            }
        }
        Ok(edited)
    }

    fn wrong(&self, error: lathe_workspace::WorkspaceError, doing: FileAccess) -> Problem {
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
            EditError::Unclear { place } => Problem::Unclear { path, place },
            EditError::LeftOut { line } => Problem::LeftOut { path, line },
            EditError::Ambiguous { lines } => Problem::Ambiguous { path, old, lines, expected: 1 },
            EditError::WrongCount { wanted, lines } => {
                Problem::Ambiguous { path, old, lines, expected: wanted }
            }
            EditError::LineOutOfRange { line, lines } => {
                Problem::Line { line: i64::try_from(line).unwrap_or(i64::MAX), lines }
            }
            EditError::Unencodable { .. } => Problem::Prepare { path, reason: error.to_string() },
            EditError::Overlap { .. } | EditError::In { .. } => Problem::Arguments(error.to_string()),
        }
    }

    /// The data of the edit, for its words. `content` is the edited content.
    fn data(&self, path: &str, edited: &Edited, content: &[u8]) -> EditedData {
        let text = text_of(content);
        // After a line break or a deletion the place continues in the next line, which is shown with it.
        let goes_on = match self.change {
            Change::Replace { .. } => self.new.is_empty() || self.new.ends_with('\n'),
            Change::Insert { .. } => false,
        };
        let windows = windows(&edited.regions, AROUND + usize::from(goes_on));
        let snippets = windows.iter().take(SNIPPETS).map(|window| {
            let LineSlice { text: shown, ended } = lines_of(&text, window.start, window.len());
            Snippet { first: window.start, text: shown, final_newline: ended && text.ends_with('\n') }
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
            more: windows.len().saturating_sub(SNIPPETS),
        }
    }
}

/// Gives a text the end that it had. A text that is or was empty, or is not plain text, is left alone.
fn keep_end(before: &[u8], after: &mut Vec<u8>) {
    if before.is_empty() || after.is_empty() || before.contains(&0) {
        return;
    }
    let ending: &[u8] = if before.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
    match (before.ends_with(b"\n"), after.ends_with(b"\n")) {
        (true, false) => after.extend_from_slice(ending),
        (false, true) => {
            after.pop();
            after.pop_if(|last| *last == b'\r');
        }
        (true, true) | (false, false) => {}
    }
}

/// The lines that the first match covered.
fn place(before: &[u8], edited: &Edited) -> Nearest {
    let lines = edited.found.first().cloned().unwrap_or(1..1);
    let text = lines_of(&text_of(before), lines.start, lines.len().max(1)).text;
    Nearest { line: lines.start, text: text.trim_end_matches(['\n', '\r']).to_owned() }
}

/// Content as text for people. For plain text, the work of detecting the encoding is skipped.
fn text_of(content: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(content) {
        Ok(text) if !text.starts_with('\u{feff}') && !text.contains('\0') => text.into(),
        Ok(_) | Err(_) => {
            TextContent::decode(content).map_or("".into(), |text| text.lossy().into_owned().into())
        }
    }
}

/// The lines to show: each region with the lines around it, those that touch joined, so that no line is shown twice.
fn windows(regions: &[Range<usize>], after: usize) -> Vec<Range<usize>> {
    let mut windows: Vec<Range<usize>> = Vec::new();
    for region in regions {
        let start = region.start.saturating_sub(AROUND).max(1);
        let end = region.end + after;
        match windows.last_mut() {
            Some(last) if start <= last.end => last.end = end.max(last.end),
            Some(_) | None => windows.push(start..end),
        }
    }
    windows
}

/// The note for the model if the text was not found exactly as given.
pub(crate) fn looseness(matched: MatchKind) -> Option<&'static str> {
    match matched {
        MatchKind::Exact => None,
        MatchKind::LineEndings => Some("old_str matched after line endings were made equal."),
        MatchKind::TrailingBlanks => Some("old_str matched after blanks at line ends were left out."),
        MatchKind::Indentation => {
            Some("old_str matched with another indentation; new_str was indented to fit.")
        }
        MatchKind::Tokens => Some(
            "old_str matched with other whitespace between its words; check that this is the place that was meant.",
        ),
        MatchKind::Fuzzy => Some("old_str matched only nearly: check that this is the place that was meant."),
    }
}

pub(crate) fn words(edited: &EditedData, cap: usize) -> String {
    let what = match (edited.kind, edited.places) {
        (EditKind::Inserted, _) => format!("Inserted into {}.", edited.path),
        (EditKind::Replaced, 1) => format!("Edited {}.", edited.path),
        (EditKind::Replaced, places) => format!("Edited {} in {places} places.", edited.path),
    };
    let loose = looseness(edited.matched).map_or(String::new(), |text| format!(" {text}"));
    let snippets: Vec<String> = edited
        .snippets
        .iter()
        .map(|snippet| {
            let text = match snippet.text.strip_suffix('\n') {
                Some(text) if snippet.final_newline => text.strip_suffix('\r').unwrap_or(text),
                Some(_) | None => &snippet.text,
            };
            number_lines(text, snippet.first)
        })
        .collect();
    let now = snippets.join("\n  ...\n");
    let shown = clip(&now, cap);
    let more = if edited.more > 0 || shown.len() < now.len() { "\n  ..." } else { "" };
    format!("{what}{loose} It now reads:\n<file path=\"{}\">\n{shown}{more}\n</file>", edited.path,)
}

#[cfg(test)]
mod tests {
    use super::windows;

    #[test]
    fn windows_that_touch_are_joined() {
        for (regions, expected) in [
            (vec![], vec![]),
            (vec![1..2, 10..11, 30..30], vec![1..15, 26..34]),
            (vec![1..2, 11..12], vec![1..6, 7..16]),
        ] {
            assert_eq!(windows(&regions, 4), expected);
        }
    }
}
