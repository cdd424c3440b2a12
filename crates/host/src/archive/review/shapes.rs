//! Edits of a session as a person reviews them: files, hunks, and what is chosen of them.

use lathe_protocol::{Change, EditsReviewed, RunNo};
use schemars::JsonSchema;
use serde::Serialize;

/// A file that a session changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileReview {
    /// From the workspace on.
    pub path: String,
    /// `created`, `deleted` or `changed`.
    pub change: &'static str,
    pub binary: bool,
    /// Somebody else changed it between two changes of the agent: the hunks hold that too.
    pub mixed: bool,
    pub hunks: Vec<HunkReview>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HunkReview {
    pub id: String,
    /// Counted from 1; the line before for an empty side.
    pub old_start: usize,
    pub old_lines: usize,
    pub new_start: usize,
    pub new_lines: usize,
    /// With ` `, `-` or `+` before each: the change, and up to three lines before and after it.
    pub lines: Vec<String>,
    /// The `@@` line for `lines`, lines around included. The numbers above are of the change alone.
    pub header: String,
    /// Lines that are left out of `lines` because there are too many; 0 where it is whole.
    pub left_out: usize,
    /// `pending`, `accepted` or `rejected`.
    pub state: &'static str,
}

/// Which hunks are meant.
#[derive(Debug, Clone, Default)]
pub struct ReviewWish {
    pub hunks: Vec<String>,
    pub path: Option<String>,
    pub all: bool,
    pub run: Option<RunNo>,
}

/// Record to be written down: what was said, and what was done to the file.
pub type ReviewOutcome = (EditsReviewed, Vec<Change>);
