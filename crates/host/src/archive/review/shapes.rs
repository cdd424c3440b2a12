//! Edits of a session as a user reviews them: files, hunks, and the selection among them.

use lathe_protocol::{Change, EditsReviewed, RunNo};
use schemars::JsonSchema;
use serde::Serialize;

/// A file that a session changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FileReview {
    /// Relative to the workspace.
    pub path: String,
    /// `created`, `deleted` or `changed`.
    pub change: &'static str,
    pub binary: bool,
    /// True if another program or user changed it between two changes of the agent: the hunks include that change.
    pub mixed: bool,
    pub hunks: Vec<HunkReview>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HunkReview {
    pub id: String,
    /// Counted from 1; for an empty side, the number of the line before it.
    pub old_start: usize,
    pub old_lines: usize,
    pub new_start: usize,
    pub new_lines: usize,
    /// Lines with ` `, `-` or `+` before each: the change, and up to three lines before and after it.
    pub lines: Vec<String>,
    /// The `@@` line for `lines`, context included. The numbers above are of the change alone.
    pub header: String,
    /// Number of lines left out of `lines` because there are too many; 0 where it is complete.
    pub left_out: usize,
    /// `pending`, `accepted` or `rejected`.
    pub state: &'static str,
}

/// The selection of hunks. The server binds the ids of commands to its `Debug` text, so names in it must stay.
#[derive(Debug, Clone, Default)]
pub struct ReviewWish {
    pub hunks: Vec<String>,
    pub path: Option<String>,
    pub all: bool,
    pub run: Option<RunNo>,
}

/// A decision to be recorded, with the changes that it made to the file.
pub type ReviewOutcome = (EditsReviewed, Vec<Change>);
