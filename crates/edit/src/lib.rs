//! Edits of a file's bytes.
//!
//! Everything here is a pure function of bytes: no file is opened, no clock is
//! asked, so each rule can be tested with a table and a recorded run replays
//! exactly. The one invariant all of it keeps: **no byte outside the edited
//! region ever changes**. Files are therefore never decoded to a `String` and
//! encoded again; a byte order mark, invalid UTF-8, tabs, mixed line endings and
//! a missing final newline survive because nobody touches them.
//!
//! What was rejected: normalising the text first and restoring it afterwards
//! (Trae expands tabs and turns CRLF into LF on every edit), regular expressions
//! (a `$` in code must be a dollar sign), and guessing when several places fit.

mod compare;
mod diff;
mod edited;
mod find;
mod indent;
mod insert;
mod nearest;
mod number;
mod replace;
mod text;

pub use diff::{DiffStat, diff_stat, unified_diff};
pub use edited::{EditError, Edited, MatchKind, Nearest};
pub use insert::insert;
pub use number::number_lines;
pub use replace::{Occurrence, replace};
pub use text::{LineEnding, Text};
