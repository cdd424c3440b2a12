//! The terminal of the process: typed but unread input, its modes, and related signals.

use std::io::IsTerminal as _;

use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{FlushArg, SetArg, Termios, tcflush, tcgetattr, tcsetattr};
use nix::unistd::Pid;

/// Discards typed but unread input, including an unfinished line. Does nothing if standard input is not a terminal.
pub fn discard_typed_input() {
    let input = std::io::stdin();
    if input.is_terminal() {
        // If it fails, the input counts as before.
        let _ = tcflush(&input, FlushArg::TCIFLUSH);
    }
}

/// The modes of the terminal at standard input, saved while another program uses it.
pub struct TerminalModes(Option<Termios>);

impl TerminalModes {
    /// Reads the modes. Empty if standard input is not a terminal.
    pub fn save() -> Self {
        Self(tcgetattr(std::io::stdin()).ok())
    }

    /// Sets the terminal to the saved modes. If the terminal is gone it does nothing.
    pub fn restore(&self) {
        if let Some(modes) = &self.0 {
            let _ = tcsetattr(std::io::stdin(), SetArg::TCSADRAIN, modes);
        }
    }
}

/// Asks a child process to end (SIGTERM). For one that has ended it does nothing.
pub fn ask_to_end(child: u32) {
    if let Ok(pid) = i32::try_from(child) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGTERM);
    }
}

/// Tells whether the parent process wants this one to outlive its terminal, as `nohup` does.
pub fn ignores_hangup() -> bool {
    // SIGHUP is signal 1, the lowest bit of the mask.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}

/// The command for a program that the user at the terminal asked for, such as an editor or a browser.
pub fn user_program(program: impl AsRef<std::ffi::OsStr>) -> std::process::Command {
    lathe_workspace::program_command(program)
}
