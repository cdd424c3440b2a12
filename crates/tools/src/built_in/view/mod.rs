//! Shows a file with line numbers, or a folder.
//!
//! Content that is not text is shown in its own form: a notebook as its cells, a PDF as the text of its pages, an
//! image in words and as an attachment. A large file is read in parts, so that the cost of a window depends on the
//! window.

mod bmp;
mod forms;
mod kinds;
mod missing;
mod notebook;
mod pdf;
mod rendering;
mod window;

use std::path::{Path, PathBuf};

use lathe_edit::{Encoding, TextContent};
use lathe_policy::Permit;
use lathe_protocol::{BoxFuture, Digest, Effects, SeenFile, ToolKind};
use lathe_search::{IgnoreOptions, IgnoreRules};
use lathe_workspace::{FileKind, WalkEntry, WorkspaceError};
use memchr::memchr_iter;
use serde::Serialize;

use self::forms::{ViewArguments, ViewWords};
use crate::built_in::BuiltIn;
use crate::call::{BuildContext, Parameters};
use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::files::hidden::{IGNORE_FILES_NOT_READ, ReadPlace};
use crate::outcome::{
    AttachedContent, Data, DocumentData, DocumentKind, FileData, FolderData, ImageData, Outcome,
};
use crate::problem::{FileAccess, Problem};
use crate::tool::{Invocation, RunContext, absolute, display_path};

pub(crate) use kinds::{Media, media};
pub(crate) use rendering::{document_words, file_words, folder_words, image_words};

pub(crate) const ID: &str = "view";

/// The tool in the list of built-in tools.
pub(crate) static TOOL: BuiltIn = BuiltIn {
    face: Some(
        Face::lathe::<ViewArguments>("view", "View", ToolKind::Read, include_str!("lathe.md"))
            .with_cap(48_000),
    ),
    command: Some(
        AgentCommand::of::<ViewWords>(
            "view",
            ID,
            ToolKind::Read,
            "Show files with line numbers, or folders; in a pipe or file, the bytes themselves.",
        )
        .with_aliases(&["read"])
        .with_notes(include_str!("notes.md"))
        .short(&[('n', "show_line_numbers")])
        .with_positions(&[], Some("file_path"))
        .in_callers_folder(&["file_path"]),
    ),
    only_if: None,
};

/// Larger files are not changed by tools.
pub(crate) const LARGEST: u64 = 64 << 20;

/// Larger files are read in parts.
const WHOLE: u64 = 4 << 20;

/// Larger images and documents are not read.
pub const LARGEST_MEDIA: u64 = 20 << 20;

/// The MIME type of an image by the beginning of its content, such as `image/png`.
pub fn image_type(content: &[u8]) -> Option<&'static str> {
    match media(content) {
        // A bitmap is shown as another type, so its own bytes have none.
        Some(Media::Image(kinds::Image::Bmp) | Media::Pdf) | None => None,
        Some(Media::Image(image)) => Some(image.mime()),
    }
}

/// Bytes by which the type of a file is detected.
const HEAD: u64 = 4096;

/// Levels of a folder that are shown.
const DEPTH: usize = 2;

/// The parameters of the tool, made by a face.
#[derive(Default, Serialize)]
pub(crate) struct ViewParameters {
    pub(crate) path: String,
    pub(crate) first: Option<i64>,
    /// None stands for the end of the file.
    pub(crate) last: Option<i64>,
    /// Larger files are refused.
    pub(crate) most: Option<u64>,
    /// True if a file that ignore files name is refused.
    pub(crate) respect_ignore: bool,
    /// True if a folder is refused.
    pub(crate) only_files: bool,
    /// True if a folder is shown without the entries that ignore files name.
    pub(crate) leave_ignored: bool,
}

impl Parameters for ViewParameters {
    const TOOL: &'static str = ID;

    fn invocation(self, ground: &BuildContext<'_>) -> Result<Box<dyn Invocation>, Problem> {
        let ViewParameters { path, first, last, most, respect_ignore, only_files, leave_ignored } = self;
        let path = absolute(ground.root, &path);
        let shown = display_path(ground.root, &path);
        Ok(Box::new(View { shown, path, first, last, most, respect_ignore, only_files, leave_ignored }))
    }

    fn heading(&self) -> Option<&str> {
        Some(&self.path)
    }
}

struct View {
    path: PathBuf,
    /// The path for people.
    shown: String,
    first: Option<i64>,
    last: Option<i64>,
    most: Option<u64>,
    respect_ignore: bool,
    only_files: bool,
    leave_ignored: bool,
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

    fn run(self: Box<Self>, _: Permit, context: RunContext) -> BoxFuture<'static, Outcome> {
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
        let place = ReadPlace::of(context, &self.path, ID, ToolKind::Read);
        let stat = match place.files.stat(&place.path).await {
            Ok(stat) => stat,
            Err(WorkspaceError::NotFound(path)) => {
                let near = missing::similar_paths(context, &self.path).await;
                return Err(Problem::Missing { path, near });
            }
            Err(error) => return Err(self.wrong(error)),
        };
        let mut outcome = match stat.kind {
            FileKind::Directory => self.folder(context, &place).await?,
            FileKind::File => self.any_file(context, &place, stat.bytes).await?,
            FileKind::Special => return Err(Problem::special(&self.path, FileAccess::Reading)),
        };
        if place.tree.is_none() && (self.leave_ignored || self.respect_ignore) {
            outcome.notes.push(IGNORE_FILES_NOT_READ.into());
        }
        Ok(outcome)
    }

    fn wrong(&self, error: WorkspaceError) -> Problem {
        match error {
            WorkspaceError::Ignored(_) => Problem::Ignored(self.shown.clone()),
            error => Problem::from_workspace(error, &self.path, FileAccess::Reading),
        }
    }

    async fn any_file(
        &self,
        context: &RunContext,
        place: &ReadPlace,
        bytes: u64,
    ) -> Result<Outcome, Problem> {
        let respected = if self.respect_ignore { IgnoreOptions::RESPECTED } else { IgnoreOptions::INCLUDED };
        if is_ignored(context, &self.path, respected).await {
            return Err(Problem::Ignored(self.shown.clone()));
        }
        if self.most.is_some_and(|most| bytes > most) {
            return Err(Problem::TooLarge { path: self.path.clone(), bytes });
        }
        let part = (bytes > WHOLE).then_some(0..HEAD);
        let content = place.files.read(&place.path, part.clone()).await.map_err(|error| self.wrong(error))?;
        let is_whole = part.is_none();
        let all = async {
            match is_whole {
                true => Ok(content.clone()),
                false => place.files.read(&place.path, None).await.map_err(|error| self.wrong(error)),
            }
        };
        let too_large = || Problem::TooLarge { path: self.path.clone(), bytes };
        match media(&content) {
            Some(Media::Image(image)) if bytes <= LARGEST_MEDIA => {
                return self.image(image, all.await?).await;
            }
            Some(Media::Image(image)) => return Ok(self.unattached(image, &content, bytes)),
            Some(Media::Pdf) if bytes <= LARGEST_MEDIA => return self.pdf(context, all.await?).await,
            Some(Media::Pdf) => return Err(too_large()),
            None => {}
        }
        let windowed = self.first.is_some() || self.last.is_some();
        if !windowed
            && bytes <= LARGEST_MEDIA
            && self.path.extension().is_some_and(|ending| ending == "ipynb")
        {
            let content = all.await?;
            return match notebook::cells(&context.services.redactor.redact_bytes(&content)) {
                Some(cells) => Ok(self.notebook(cells, &content)),
                None => self.file(&content),
            };
        }
        if is_whole { self.file(&content) } else { self.part(context, place, bytes, &content).await }
    }

    fn file(&self, content: &[u8]) -> Result<Outcome, Problem> {
        let text = TextContent::decode(content).map_err(|_| self.not_text(content))?;
        let pieces = text.line_count();
        let ends_empty = text.body().is_empty() || text.ends_with_newline();
        let lines = pieces - usize::from(ends_empty);
        let (first, count) = self.window(lines, pieces)?;
        let data = Data::File(FileData {
            path: self.path.display().to_string(),
            text: lines_of(&text.lossy(), first, count).text,
            first,
            lines,
            pieces,
            limited: self.last.is_some(),
            open: false,
            encoding: other_than_utf8(text.encoding()),
        });
        Ok(self.seen(data, Digest::of(content)))
    }

    /// Shows lines of a file that is too large to be read whole.
    async fn part(
        &self,
        context: &RunContext,
        place: &ReadPlace,
        bytes: u64,
        head: &[u8],
    ) -> Result<Outcome, Problem> {
        let wanted = self.first.unwrap_or(1);
        let out_of_range = |lines, pieces| Problem::Range { first: wanted, last: self.last, lines, pieces };
        let first = usize::try_from(wanted).ok().filter(|first| *first > 0);
        let first = first.ok_or_else(|| out_of_range(0, 0))?;
        let last = match self.last {
            Some(last) if last < wanted => return Err(Problem::Reversed { first: wanted, last }),
            last => last.map(|last| usize::try_from(last).unwrap_or(usize::MAX)),
        };
        let read = window::window(context, (&*place.files, &place.path), bytes, first, last).await?;
        let part = read.ok_or_else(|| self.not_text(head))?;
        if first > part.pieces {
            return Err(out_of_range(part.lines, part.pieces));
        }
        let data = Data::File(FileData {
            path: self.path.display().to_string(),
            text: part.text,
            first: part.first,
            lines: part.lines,
            pieces: part.pieces,
            limited: self.last.is_some(),
            open: part.open,
            encoding: other_than_utf8(part.encoding),
        });
        Ok(match part.hash {
            Some(hash) => self.seen(data, hash),
            None => Ok(data).into(),
        })
    }

    fn seen(&self, data: Data, hash: Digest) -> Outcome {
        let seen = vec![SeenFile { path: self.path.display().to_string(), hash }];
        Outcome { seen, ..Ok(data).into() }
    }

    fn not_text(&self, content: &[u8]) -> Problem {
        let what = kinds::binary_type(content);
        Problem::NotText { path: self.path.clone(), shown: self.shown.clone(), what }
    }

    async fn image(&self, image: kinds::Image, content: Vec<u8>) -> Result<Outcome, Problem> {
        let data = self.image_data(image, &content, content.len() as u64, true);
        let hash = Digest::of(&content);
        let name = self.path.file_name().map(|name| name.to_string_lossy().into_owned());
        let content = image.shown(&content).await.ok_or_else(|| self.not_text(&content))?;
        let attached = AttachedContent { mime: image.mime(), content, name: name.unwrap_or_default() };
        Ok(Outcome { attached: vec![attached], ..self.seen(data, hash) })
    }

    fn unattached(&self, image: kinds::Image, head: &[u8], bytes: u64) -> Outcome {
        Ok(self.image_data(image, head, bytes, false)).into()
    }

    fn image_data(&self, image: kinds::Image, content: &[u8], bytes: u64, attached: bool) -> Data {
        Data::Image(ImageData {
            path: self.path.display().to_string(),
            name: image.name(),
            pixels: image.pixels(content),
            bytes,
            attached,
        })
    }

    async fn pdf(&self, context: &RunContext, content: Vec<u8>) -> Result<Outcome, Problem> {
        let (wanted, last) = (self.first.unwrap_or(1), self.last);
        let first = usize::try_from(wanted).unwrap_or_default();
        if first == 0 {
            return Err(Problem::Arguments("offset: pages are counted from 1".to_owned()));
        }
        let until = last.map(|last| usize::try_from(last).unwrap_or_default());
        let hash = Digest::of(&content);
        let wrong = |reason| Problem::Read { path: self.path.clone(), reason };
        let pages = pdf::pages(content, first, until, &context.cancel).await.map_err(wrong)?;
        if pages.total > 0 && first > pages.total {
            let total = pages.total;
            return Err(Problem::Arguments(format!("offset: there is no page {first}, the PDF has {total}")));
        }
        let parts = pages.texts.into_iter().zip(first..);
        let parts = parts.map(|(text, number)| match text.is_empty() {
            true => format!("--- page {number} ---\n(no text)"),
            false => format!("--- page {number} ---\n{text}"),
        });
        let data = DocumentData {
            path: self.path.display().to_string(),
            kind: DocumentKind::Pdf,
            parts: parts.collect(),
            first: pages.first,
            total: pages.total,
        };
        Ok(self.seen(Data::Document(data), hash))
    }

    fn notebook(&self, cells: Vec<String>, content: &[u8]) -> Outcome {
        let data = DocumentData {
            path: self.path.display().to_string(),
            kind: DocumentKind::Notebook,
            first: 1,
            total: cells.len(),
            parts: cells,
        };
        self.seen(Data::Document(data), Digest::of(content))
    }

    /// The first line to show, and the most lines. A last line past the end means the end.
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

    /// Decides for each entry of this folder whether it is shown.
    async fn shown_entries(
        &self,
        context: &RunContext,
        place: &ReadPlace,
        entries: &[WalkEntry],
    ) -> Result<Vec<EntryVisibility>, Problem> {
        let files = &place.files;
        // For a tree elsewhere, `.latheignore` is enforced by the files themselves, and a note says that other ignore
        // files are not read.
        let Some(tree) = &place.tree else { return Ok(vec![EntryVisibility::Shown; entries.len()]) };
        let root = files.real(tree.root()).await.map_err(|error| self.wrong(error))?;
        let folder = files.real(&place.path).await.map_err(|error| self.wrong(error))?;
        context.services.unread.check_above(&root, &folder);
        let mut rules = IgnoreRules::new(&root, IgnoreOptions::INCLUDED);
        if rules.excludes(&folder) {
            return Err(Problem::Ignored(self.shown.clone()));
        }
        // A folder that is named is shown with its whole content, as a file that is named is shown.
        let mut respected = IgnoreRules::new(&root, IgnoreOptions::RESPECTED);
        let leave_ignored = self.leave_ignored && !respected.excludes(&folder);
        let showing = entries.iter().map(|entry| {
            let path = folder.join(&entry.path);
            if rules.excludes(&path) {
                return EntryVisibility::Unseen;
            }
            match leave_ignored && respected.excludes(&path) {
                true if path.parent().is_some_and(|parent| respected.excludes(parent)) => {
                    EntryVisibility::Below
                }
                true => EntryVisibility::Ignored,
                false => EntryVisibility::Shown,
            }
        });
        Ok(showing.collect())
    }

    async fn folder(&self, context: &RunContext, place: &ReadPlace) -> Result<Outcome, Problem> {
        if self.only_files {
            return Err(Problem::IsFolder(self.path.clone()));
        }
        if self.first.is_some() || self.last.is_some() {
            return Err(Problem::RangeOnFolder);
        }
        let walked = place.files.walk(&place.path, DEPTH).await;
        let entries = walked.map_err(|error| self.wrong(error))?;
        let showing = self.shown_entries(context, place, &entries).await?;
        let ignored = showing.iter().filter(|showing| **showing == EntryVisibility::Ignored).count();
        let call_gate = context.call_gate.clone();
        let hides =
            |entry: &WalkEntry| call_gate.hides_path(ID, ToolKind::Read, &self.path.join(&entry.path));
        let (mut shown, mut left_out) = (Vec::new(), 0);
        for (entry, _) in
            entries.into_iter().zip(showing).filter(|(_, showing)| *showing == EntryVisibility::Shown)
        {
            if hides(&entry) {
                left_out += 1;
            } else {
                shown.push(entry);
            }
        }
        let entries = shown
            .into_iter()
            .map(|entry| {
                let slash = if entry.kind == FileKind::Directory { "/" } else { "" };
                // A line break in a name would look like two names.
                let name: String = entry.path.display().to_string().chars().map(visible).collect();
                format!("{name}{slash}")
            })
            .collect();
        let folder = Data::Folder(FolderData { path: self.path.display().to_string(), entries, ignored });
        Ok(Outcome { left_out, ..Ok(folder).into() })
    }
}

/// The treatment of an entry of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryVisibility {
    Shown,
    /// No model may see it.
    Unseen,
    /// An ignore file leaves it out.
    Ignored,
    /// It lies in a folder that is left out.
    Below,
}

/// The name of an encoding, if it is worth a note.
fn other_than_utf8(encoding: Encoding) -> Option<&'static str> {
    (encoding != Encoding::Utf8).then(|| encoding.name())
}

/// The text of a document's first pages or cells, for tools that show many files.
pub(crate) async fn document_text(
    context: &RunContext,
    media: Option<Media>,
    path: &Path,
    content: Vec<u8>,
) -> Option<String> {
    match media {
        Some(Media::Pdf) => {
            let read = pdf::pages(content, 1, None, &context.cancel).await;
            read.ok().map(|pages| pages.texts.join("\n\n"))
        }
        Some(Media::Image(_)) => None,
        None if path.extension().is_some_and(|ending| ending == "ipynb") => {
            notebook::cells(&context.services.redactor.redact_bytes(&content)).map(|cells| cells.join("\n\n"))
        }
        None => None,
    }
}

/// Tells whether ignore files leave a path out.
async fn is_ignored(context: &RunContext, path: &Path, respected: IgnoreOptions) -> bool {
    let files = context.services.workspace.files();
    let Some(tree) = context.services.workspace.local() else { return false };
    match (files.real(tree.root()).await, files.real(path).await) {
        (Ok(root), Ok(path)) => lathe_search::is_ignored(&root, &path, respected),
        (Ok(_), Err(_)) | (Err(_), _) => false,
    }
}

/// Some lines of a text.
pub(crate) struct LineSlice {
    pub(crate) text: String,
    /// True if the text ended before the requested number of lines.
    pub(crate) ended: bool,
}

/// Lines from `first` on, `count` at most, without the line break after the last.
pub(crate) fn lines_of(text: &str, first: usize, count: usize) -> LineSlice {
    let lines = text.get(line_start(text, first)..).unwrap_or_default().split_inclusive('\n').take(count);
    let mut taken = 0;
    let mut out: String = lines.inspect(|_| taken += 1).collect();
    let ended = taken < count;
    // A last line break of the text stays.
    if !ended && out.ends_with('\n') {
        out.pop();
        if out.ends_with('\r') {
            out.pop();
        }
    }
    LineSlice { text: out, ended }
}

/// The offset of a line, counted from 1. Line breaks are counted chunk by chunk, which is many times as fast as
/// finding each of them.
fn line_start(text: &str, line: usize) -> usize {
    const PIECE: usize = 4096;
    let (mut before, mut start) = (line.saturating_sub(1), 0);
    for piece in text.as_bytes().chunks(PIECE) {
        let breaks = memchr_iter(b'\n', piece).count();
        if breaks >= before {
            return match before.checked_sub(1) {
                Some(last) => start + memchr_iter(b'\n', piece).nth(last).map_or(0, |at| at + 1),
                None => start,
            };
        }
        before -= breaks;
        start += piece.len();
    }
    text.len()
}

/// A character in a form that can stand in a list of names.
pub(crate) fn visible(c: char) -> String {
    if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
}

/// A name in a form that can stand in a list: a line break in it would look like the next name.
pub(crate) fn visible_name(name: &str) -> String {
    name.chars().map(visible).collect()
}

/// At most `cap` bytes, cut at the end of a line if there is one.
pub(crate) fn clip(text: &str, cap: usize) -> &str {
    if text.len() <= cap {
        return text;
    }
    let cut = lathe_redact::beginning(text, cap);
    cut.rfind('\n').map_or(cut, |at| cut.get(..at).unwrap_or(cut))
}
