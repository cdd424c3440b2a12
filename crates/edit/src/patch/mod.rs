//! Patches: texts that change several files, planned all or nothing.
//!
//! Two forms are read: unified differences, as git and `diff -u` write them, and the `*** Begin Patch` form that
//! models are taught. Both become the same hunks. A hunk is placed by its context with the ladder of the other edits:
//! the place in its header, then another place, then with looser whitespace; every step down is reported, and two
//! places that match equally are refused. Lines of context keep their bytes in the file, even if the patch shows them
//! differently.
//!
//! Rejected: dropping outer lines of context until a hunk matches (`patch --fuzz`), which silently puts right changes
//! into wrong places.

mod apply;
mod begin;
mod plan;
mod unified;

pub use plan::plan;

use crate::{EditError, MatchKind, Nearest};

/// A patch that was read and not yet planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    files: Vec<FilePatch>,
}

impl Patch {
    /// Reads either form. Text around a unified difference is skipped, as git does.
    pub fn parse(text: &str) -> Result<Self, PatchError> {
        let lines: Vec<&str> = text.split('\n').collect();
        let files = match begin::start(&lines) {
            Some(first) => begin::parse(&lines, first)?,
            None => unified::parse(&lines)?,
        };
        if files.is_empty() {
            return Err(PatchError::Empty);
        }
        Ok(Self { files })
    }

    /// The paths that the patch reads or writes, so that they can be judged before it is planned.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<&str> = Vec::new();
        for path in self.files.iter().flat_map(|file| [&file.old, &file.new]).flatten() {
            if !paths.contains(&path.as_str()) {
                paths.push(path);
            }
        }
        paths
    }

    /// Tells whether a file that existed before is gone afterwards, and was not moved.
    pub fn deletes(&self) -> bool {
        self.files.iter().any(|file| file.old.is_some() && file.new.is_none())
    }

    /// Tells whether a file has another path afterwards.
    pub fn moves(&self) -> bool {
        self.files.iter().any(|file| file.old.is_some() && file.new.is_some() && file.old != file.new)
    }
}

/// The change that a patch makes to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    pub path: String,
    /// `None` if there was no file; for a moved file, the content at its old path.
    pub before: Option<Vec<u8>>,
    /// `None` where the file is deleted.
    pub after: Option<Vec<u8>>,
    /// The path that the file leaves. It is to be removed.
    pub moved_from: Option<String>,
    /// The mode the patch asks for, as git writes it (`0o100755`).
    pub mode: Option<u32>,
    pub loosened: Vec<Loosened>,
}

/// A hunk that was not exactly at the place, or with the text, of the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Loosened {
    /// Counted from 1 within its file.
    pub hunk: usize,
    /// The line in the old file where it was applied, counted from 1.
    pub line: usize,
    pub matched: MatchKind,
    /// The number of lines below the place in its header.
    pub shifted: isize,
    /// The numbers of lines in its header were wrong.
    pub miscounted: bool,
}

/// The reasons why a patch was not planned. No file is changed in any case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("the patch changes nothing")]
    Empty,
    /// `line` is a line of the patch, counted from 1.
    #[error("line {line} of the patch: {reason}")]
    Syntax { line: usize, reason: String },
    #[error("{path} does not exist")]
    Missing { path: String },
    #[error("{path} exists already")]
    Exists { path: String },
    #[error("{path} is binary")]
    Binary { path: String },
    /// `line` is the line of the hunk in the patch, `nearest` the place most like it.
    #[error("{path}: hunk {hunk} (line {line} of the patch) fits nowhere")]
    NoMatch { path: String, hunk: usize, line: usize, nearest: Option<Nearest> },
    /// `lines` are the places in the file.
    #[error("{path}: hunk {hunk} fits at lines {lines:?}")]
    Ambiguous { path: String, hunk: usize, lines: Vec<usize> },
    #[error("{path}: the lines to delete are not the whole file")]
    NotWhole { path: String },
    #[error("{path}: {error}")]
    Edit { path: String, error: EditError },
}

/// One file of a patch: added without `old`, deleted without `new`, otherwise changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct FilePatch {
    old: Option<String>,
    new: Option<String>,
    /// True if the old file stays.
    copied: bool,
    mode: Option<u32>,
    hunks: Vec<PatchHunk>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct PatchHunk {
    /// Its line in the patch, counted from 1.
    line: usize,
    /// The first of the old lines, counted from 1; without old lines, the line after which the new ones go.
    start: Option<usize>,
    /// Lines above the place, in order.
    headings: Vec<String>,
    lines: Vec<HunkLine>,
    /// True if the old lines are the last of the file.
    at_end: bool,
    miscounted: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct HunkLine {
    mark: LineMark,
    text: String,
    /// True if no newline follows.
    unended: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineMark {
    Keep,
    Remove,
    Add,
}

impl HunkLine {
    /// Reads a line of a hunk. Editors and models drop the blank of an empty line of context.
    fn parse(line: &str) -> Option<Self> {
        let (mark, text) = match line.as_bytes().first() {
            Some(b' ') => (LineMark::Keep, &line[1..]),
            Some(b'-') => (LineMark::Remove, &line[1..]),
            Some(b'+') => (LineMark::Add, &line[1..]),
            None => (LineMark::Keep, line),
            Some(b'\r') if line.len() == 1 => (LineMark::Keep, line),
            Some(_) => return None,
        };
        Some(Self { mark, text: text.to_owned(), unended: false })
    }
}

impl PatchHunk {
    /// The lines that must be in the file.
    fn old(&self) -> impl Iterator<Item = &HunkLine> {
        self.lines.iter().filter(|line| line.mark != LineMark::Add)
    }
}
