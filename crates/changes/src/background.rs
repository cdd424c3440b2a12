//! Undo for changes that background processes make while no line runs.
//!
//! A book describes the tree as it was before a line, until the journal has the result of that line. Processes that
//! the line left in the background change files after that. So while such processes live, the book is updated as soon
//! as the journal has the result, and a note names the line. After a kill, every difference between the tree and the
//! book is attributed to those processes.

use std::path::{Path, PathBuf};

use lathe_blobs::{Durable, replace};
use serde::{Deserialize, Serialize};

/// A line whose processes are still running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundLine {
    pub call: String,
    /// The text of the line.
    pub line: String,
}

impl BackgroundLine {
    /// The mark of the book while it is held for this line. No call has such an id.
    pub fn mark(&self) -> String {
        format!("in the background of {}", self.call)
    }
}

/// The name of the note. It lies in the same folder as the book.
const NOTE: &str = "background";

fn note(scratch: &Path) -> PathBuf {
    scratch.join(NOTE)
}

/// The line whose processes were running when the process that kept `scratch` was killed. None if that process ended
/// in order.
pub fn read_background_note(scratch: &Path) -> Option<BackgroundLine> {
    serde_json::from_slice(&std::fs::read(note(scratch)).ok()?).ok()
}

/// Removes the note: the processes have ended, and the journal has their changes.
pub fn remove_background_note(scratch: &Path) {
    let _ = std::fs::remove_file(note(scratch));
}

/// Writes the note. Before that the book must have its mark, and the journal all changes found so far.
pub fn write_background_note(scratch: &Path, left: &BackgroundLine) -> std::io::Result<()> {
    replace(&note(scratch), &serde_json::to_vec(left)?, Durable::Nothing)
}
