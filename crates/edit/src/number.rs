//! Line numbers for display.

use std::fmt::Write as _;

/// Puts a number, right-aligned to six columns, and a tab before each line.
///
/// Lines are the pieces between line feeds, so text that ends with a newline shows one more, empty, line; a caller
/// that does not want it leaves the last newline out. Tabs stay tabs: a line that is copied from here into an edit
/// must be found again. The CR of a CRLF belongs to the line break and is not shown.
pub fn number_lines(content_slice: &str, first_line: usize) -> String {
    let mut out = String::with_capacity(content_slice.len() + 64);
    for (index, line) in crate::text::pieces(content_slice).into_iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        // Writing to a String cannot fail.
        let _ = write!(out, "{:>6}\t{line}", first_line + index);
    }
    out
}
