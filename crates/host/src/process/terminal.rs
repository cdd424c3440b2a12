//! The terminal of the process: what was typed and not read, its modes, and signals that concern it.

use std::io::IsTerminal as _;

use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{FlushArg, SetArg, Termios, tcflush, tcgetattr, tcsetattr};
use nix::unistd::Pid;

/// Drops it, the line that has no end yet with it. Does nothing where the standard input is no terminal.
pub fn drop_typed() {
    let input = std::io::stdin();
    if input.is_terminal() {
        // Where it cannot be done, what is typed counts as it did.
        let _ = tcflush(&input, FlushArg::TCIFLUSH);
    }
}

/// The modes of the terminal at standard input, kept while another program uses it.
pub struct TerminalModes(Option<Termios>);

impl TerminalModes {
    /// Reads the modes. Holds nothing where standard input is not a terminal.
    pub fn save() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// Sets the terminal to the saved modes. A terminal that is gone needs none.
    pub fn restore(&self) {
        if let Some(modes) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSADRAIN, modes);
        }
    }
}

/// Asks a child process to end (SIGTERM). One that has ended already needs no asking.
pub fn ask_to_end(child: u32) {
    if let Ok(pid) = i32::try_from(child) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}

/// Tells whether the process that started this one wants it to outlive its terminal, as `nohup` does.
pub fn ignores_hangup() -> bool {
    // SIGHUP is signal 1, the lowest bit of the mask.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// A program that the person at the terminal asked for, as an editor or a browser.
pub fn user_program(program: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
    lathe_workspace::program_command(program)
}
