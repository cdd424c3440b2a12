//! What a person has typed at a terminal and nobody has read.

use std::io::IsTerminal as _;

use nix::sys::termios::{FlushArg, tcflush};

/// Drops it, the line that has no end yet with it. Does nothing where the standard input is no terminal.
pub fn drop_typed() {
    let input = std::io::stdin();
    if input.is_terminal() {
        // Where it cannot be done, what is typed counts as it did.
        let _ = tcflush(&input, FlushArg::TCIFLUSH);
    }
}
