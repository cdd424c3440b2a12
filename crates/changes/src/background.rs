//! The way back from what background processes do while no line runs.
//!
//! A book tells how the tree was before a line, until the journal has the result of that line. Processes that the line left
//! in the background change files after that. So while such processes live, the book is brought up to date once the journal
//! has the result, and a note names the line: after a kill, what the tree differs from the book is their doing.

use std::path::{Path, PathBuf};

use lathe_blobs::{Durable, replace};
use serde::{Deserialize, Serialize};

/// A line whose processes run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Background {
    pub call: String,
    /// The text of the line.
    pub line: String,
}

impl Background {
    /// The mark of the book while it is held for this line. No call has such an id.
    pub fn mark(&self) -> String {
        format!("in the background of {}", self.call)
    }
}

/// The name of the note, beside the book.
const NOTE: &str = "background";

fn note(scratch: &Path) -> PathBuf {
    scratch.join(NOTE)
}

/// The line whose processes ran when the process that kept `scratch` was killed. None if that ended in order.
pub fn background_left(scratch: &Path) -> Option<Background> {
    serde_json::from_slice(&std::fs::read(note(scratch)).ok()?).ok()
}

/// Forgets the line: its processes have ended, and the journal has what they changed.
pub fn forget_background(scratch: &Path) {
    let _ = std::fs::remove_file(note(scratch));
}

/// Notes the line down. The book must have its mark by then, and the journal everything that was found so far.
pub fn note_background(scratch: &Path, left: &Background) -> std::io::Result<()> {
    replace(&note(scratch), &serde_json::to_vec(left)?, Durable::Nothing)
}
