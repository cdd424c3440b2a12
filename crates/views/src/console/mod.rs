//! The console's view of a session: the lines of `run`, `resume`, `show`, `watch` and `connect`.
//!
//! Everything here is a function of events and of plain values, and gives text with marks ([`Styled`]). The surface
//! that prints it knows the terminal, so a terminal UI or an editor shows the same lines in its own way.

mod closing;
mod questions;
mod session;
mod styled;

pub use closing::{
    AsideFile, Closing, FileDiff, ModeSource, cache_lines, cached_share, opening, unusual_mode,
};
pub use questions::{Consent, approval_text, block_text, chosen_answer, question_text};
pub use session::Console;
pub use styled::{Style, Styled, name_text};
