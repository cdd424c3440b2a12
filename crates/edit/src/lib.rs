//! Edits of a file's bytes.
//!
//! Everything here is a pure function of bytes: no file is opened and no clock is read, so each rule can be tested
//! with a table and a recorded run replays exactly. The one invariant: **no byte outside the edited region ever
//! changes**. A file is therefore never decoded and encoded again as a whole; a byte order mark, invalid UTF-8, tabs,
//! mixed line endings and a missing final newline survive because no code touches them. Text in another encoding is
//! decoded for the search only, and the region is mapped back to its bytes.
//!
//! Rejected: normalising the text first and restoring it afterwards (Trae expands tabs and turns CRLF into LF on
//! every edit), regular expressions (a `$` in code must be a dollar sign), and guessing when several places match.

mod adapt;
mod compare;
mod diff;
mod edited;
mod encoding;
mod find;
mod fuzzy;
mod hunks;
mod indent;
mod insert;
mod many;
mod nearest;
mod number;
mod omission;
mod rawpatch;
mod replace;
mod text;
mod tokens;

pub mod data;
pub mod patch;
pub mod syntax;

pub use diff::{DiffStat, diff_stat, unified_diff};
pub use edited::{EditError, Edited, MatchKind, Nearest};
pub use encoding::Encoding;
pub use hunks::{Hunk, hunks, without_hunks};
pub use insert::{insert, rewrite};
pub use many::{Edit, edit_many};
pub use number::number_lines;
pub use omission::{omission_in_new, omission_line};
pub use rawpatch::{raw_hunks, raw_name};
pub use replace::{Looseness, Occurrence, replace, replace_loosely};
pub use text::{LineEnding, TextContent};
