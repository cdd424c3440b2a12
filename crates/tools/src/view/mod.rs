//! Looks at a file, with line numbers, or at a folder.

use std::path::{Path, PathBuf};

use lathe_edit::{Text, number_lines};
use lathe_policy::Permit;
use lathe_protocol::{Boxed, Digest, Effects, SeenFile};
use lathe_workspace::FileKind;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::face::Adapted;
use crate::outcome::{Data, FileData, FolderData, Outcome};
use crate::problem::{Doing, Problem};
use crate::tool::{Invocation, RunContext, Tool, absolute, arguments, shown};

pub(crate) const ID: &str = "view";

/// Larger files are for bash.
pub(crate) const LARGEST: u64 = 64 << 20;

/// Lines shown when no limit is given.
const LINES: usize = 2000;

/// Levels of a folder that are shown.
const DEPTH: usize = 2;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LatheArguments {
    /// File or folder; relative paths are relative to the workspace.
    path: String,
    /// First line to show, from 1.
    #[serde(default)]
    offset: Option<i64>,
    /// How many lines to show; 2000 if left out.
    #[serde(default)]
    limit: Option<i64>,
}

pub(crate) fn adapt_lathe(value: Value) -> Result<Adapted, Problem> {
    let LatheArguments { path, offset, limit } = arguments(value)?;
    if limit.is_some_and(|limit| limit < 1) {
        return Err(Problem::Arguments("limit: it must be at least 1".to_owned()));
    }
    let last = limit.map(|limit| offset.unwrap_or(1).saturating_add(limit - 1));
    Ok((ID, json!({ "path": path, "first": offset, "last": last })))
}

/// Canonical arguments, made by the face.
#[derive(Deserialize)]
struct Arguments {
    path: String,
    first: Option<i64>,
    /// None is the end of the file.
    last: Option<i64>,
}

pub(crate) struct ViewTool;

impl Tool for ViewTool {
    fn id(&self) -> &'static str {
        ID
    }

    fn build(&self, value: Value, root: &Path) -> Result<Box<dyn Invocation>, Problem> {
        let Arguments { path, first, last } = arguments(value)?;
        let path = absolute(root, &path);
        Ok(Box::new(View { shown: shown(root, &path), path, first, last }))
    }
}

struct View {
    path: PathBuf,
    /// The path for people.
    shown: String,
    first: Option<i64>,
    last: Option<i64>,
}

impl Invocation for View {
    fn describe(&self) -> String {
        let part = match (self.first, self.last) {
            (None, None) => String::new(),
            (first, None) => format!(" from line {}", first.unwrap_or(1)),
            (first, Some(last)) => format!(" lines {}-{last}", first.unwrap_or(1)),
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
            FileKind::File if stat.bytes > LARGEST => {
                Err(Problem::TooLarge { path: self.path.clone(), bytes: stat.bytes })
            }
            FileKind::File => {
                let content = files.read(&self.path, None).await.map_err(wrong)?;
                self.file(&content)
            }
            FileKind::Special => Err(Problem::special(&self.path, Doing::Reading)),
        }
    }

    fn file(&self, content: &[u8]) -> Result<Outcome, Problem> {
        let text = Text::decode(content).map_err(|_| Problem::Binary(self.path.clone()))?;
        let pieces = text.line_count();
        let ends_empty = text.body().is_empty() || text.ends_with_newline();
        let lines = pieces - usize::from(ends_empty);
        let (first, count) = self.window(lines, pieces)?;
        let path = self.path.display().to_string();
        let seen = vec![SeenFile { path: path.clone(), hash: Digest::of(content) }];
        let data = Data::File(FileData {
            path,
            text: lines_of(&text.lossy(), first, count),
            first,
            lines,
            pieces,
            limited: self.last.is_some(),
        });
        Ok(Outcome { seen, ..Ok(data).into() })
    }

    /// The first line to show, and how many at most. A last line past the end means the end.
    fn window(&self, lines: usize, pieces: usize) -> Result<(usize, usize), Problem> {
        let wanted = self.first.unwrap_or(1);
        let first = usize::try_from(wanted)
            .ok()
            .filter(|first| (1..=pieces).contains(first))
            .ok_or(Problem::Range { first: wanted, last: self.last, lines, pieces })?;
        let Some(last) = self.last else {
            return Ok((first, usize::MAX));
        };
        if last < wanted {
            return Err(Problem::Reversed { first: wanted, last });
        }
        Ok((first, usize::try_from(last - wanted + 1).unwrap_or(usize::MAX)))
    }

    async fn folder(&self, context: &RunContext) -> Result<Outcome, Problem> {
        if self.first.is_some() || self.last.is_some() {
            return Err(Problem::RangeOnFolder);
        }
        let walked = context.services.files.walk(&self.path, DEPTH).await;
        let entries = walked.map_err(|error| Problem::from_workspace(error, &self.path, Doing::Reading))?;
        let entries = entries
            .into_iter()
            .map(|entry| {
                let slash = if entry.kind == FileKind::Directory { "/" } else { "" };
                // A line break in a name would look like two names.
                let name: String = entry.path.display().to_string().chars().map(visible).collect();
                format!("{name}{slash}")
            })
            .collect();
        Ok(Ok(Data::Folder(FolderData { path: self.path.display().to_string(), entries })).into())
    }
}

/// Lines from `first` on, `count` at most, without the line break after the last.
pub(crate) fn lines_of(text: &str, first: usize, count: usize) -> String {
    let lines = text.split_inclusive('\n').skip(first - 1).take(count);
    let mut taken = 0;
    let mut out: String = lines.inspect(|_| taken += 1).collect();
    // Fewer lines than asked for means that the text ended: a last line break of the text stays.
    if taken == count && out.ends_with('\n') {
        out.pop();
        if out.ends_with('\r') {
            out.pop();
        }
    }
    out
}

/// A character as it can stand in a list of names.
pub(crate) fn visible(c: char) -> String {
    if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
}

/// At most `cap` bytes, cut at the end of a line where there is one.
pub(crate) fn clip(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let cut = text.get(..text.floor_char_boundary(cap)).unwrap_or_default();
    cut.rfind('\n').map_or(cut, |at| cut.get(..at).unwrap_or(cut))
}

pub(crate) fn file_words(file: &FileData, cap: usize) -> String {
    let lines = file.lines;
    if lines == 0 {
        return format!("{} is empty.", file.path);
    }
    if file.first > lines {
        return format!("{} ends with line {lines}.", file.path);
    }
    let to_the_end = file.first + file.text.matches('\n').count() >= file.pieces;
    let text = match file.text.strip_suffix('\n') {
        Some(text) if to_the_end && lines < file.pieces => text.strip_suffix('\r').unwrap_or(text),
        Some(_) | None => &file.text,
    };
    let most = if file.limited { usize::MAX } else { LINES };
    let shown = clip(first_lines(text, most), cap);
    let last = file.first + shown.matches('\n').count();
    let hidden = text.get(shown.len()..).unwrap_or_default();
    let mut notes = String::new();
    if !hidden.is_empty() && !hidden.starts_with('\n') {
        notes = format!(
            "\nLine {last} is too long to be shown whole; see more of it with bash (`sed -n {last}p`, `cut -c`)."
        );
    }
    if last < lines {
        notes.push_str(&format!(
            "\nLines {}-{last} of {lines} shown; give offset {} for more.",
            file.first,
            last + 1
        ));
    }
    let shown = match shown.strip_suffix('\r') {
        Some(shown) if hidden.starts_with('\n') => shown,
        Some(_) | None => shown,
    };
    format!("<file path=\"{}\">\n{}\n</file>{notes}", file.path, number_lines(shown, file.first))
}

fn first_lines(text: &str, most: usize) -> &str {
    match text.match_indices('\n').nth(most.saturating_sub(1)) {
        Some((at, _)) => text.get(..at).unwrap_or(text),
        None => text,
    }
}

pub(crate) fn folder_words(folder: &FolderData, cap: usize) -> String {
    if folder.entries.is_empty() {
        return format!("{} is an empty folder (hidden names are left out).", folder.path);
    }
    let listed = folder.entries.join("\n");
    let shown = clip(&listed, cap);
    let rest = folder.entries.len().saturating_sub(1 + shown.matches('\n').count());
    let more = if rest > 0 { format!("\n{rest} more entries are not shown.") } else { String::new() };
    format!("<folder path=\"{}\">\n{shown}\n</folder>{more}", folder.path)
}
