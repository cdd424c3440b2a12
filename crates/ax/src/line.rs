//! One line: its two outputs and its end.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read};

use crate::bash::BROKE_OUT;
use crate::private_folder::PrivateFolder;
use crate::stop::{LineStop, StopStep};
use crate::tree::Process;
use crate::wire::{ExitKind, put_output};

/// The number of consecutive checks at which bash must have been silent.
const SILENT_LOOKS: u32 = 2;

/// The stdout and stderr FIFO of one line. None for one that has ended.
pub struct Outputs {
    pub id: u64,
    pub number: u32,
    pub ends: [Option<File>; 2],
}

impl Outputs {
    pub fn open(folder: &PrivateFolder, id: u64, number: u32) -> io::Result<Self> {
        let [out, err] = Self::names(number);
        Ok(Self { id, number, ends: [Some(folder.open_output(&out)?), Some(folder.open_output(&err)?)] })
    }

    pub fn names(number: u32) -> [String; 2] {
        [format!("o{number}"), format!("e{number}")]
    }

    /// Tells whether a process may still write to them.
    pub fn are_held(&self) -> bool {
        self.ends.iter().any(Option::is_some)
    }

    /// Moves output into frames: until the pipe is empty or ends, or at least `limit` bytes were moved.
    pub fn pump(&mut self, which: usize, limit: usize, scratch: &mut [u8], out: &mut Vec<u8>) {
        let mut moved = 0;
        while moved < limit {
            let Some(file) = &mut self.ends[which] else { return };
            match file.read(scratch) {
                Ok(0) => self.ends[which] = None,
                Ok(count) => {
                    moved += count;
                    put_output(out, self.id, which, &scratch[..count]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

pub struct CurrentLine {
    pub token: String,
    pub outputs: Outputs,
    /// The processes that were alive before: these and their descendants are not ours to kill.
    pub old: HashSet<Process>,
    pub answer: Option<i32>,
    /// True if it left the loop around it before its end.
    pub broke_out: bool,
    /// The number of consecutive checks at which bash had read everything and had not answered.
    pub silent: u32,
    pub stop: Option<LineStop>,
}

impl CurrentLine {
    pub fn new(token: String, outputs: Outputs, old: HashSet<Process>) -> Self {
        Self { token, outputs, old, answer: None, broke_out: false, silent: 0, stop: None }
    }

    /// The next step towards the end of the line. Done if it has ended.
    pub fn step(&mut self, has_shell: bool) -> StopStep {
        let has_ended = self.answer.is_some() || !has_shell;
        match &mut self.stop {
            Some(stop) => stop.step(&self.old, has_ended),
            None if has_ended => StopStep::Done,
            None => StopStep::Wait,
        }
    }

    /// Accepts the first answer.
    pub fn take_answer(&mut self, code: &str) {
        if self.answer.is_some() {
            return;
        }
        self.broke_out = code == BROKE_OUT;
        self.answer = if self.broke_out { Some(0) } else { code.parse().ok() };
    }

    /// Tells whether bash reads without running anything.
    pub fn is_silent(&self) -> bool {
        self.silent >= SILENT_LOOKS
    }

    /// Tells whether a `break` or `continue` of its own ended it early.
    pub fn has_dropped_its_rest(&self) -> bool {
        self.broke_out && self.stop.is_none()
    }

    pub fn exit(&self) -> ExitKind {
        match (self.answer, &self.stop) {
            (None, Some(stop)) => ExitKind::ShellSignal(stop.signal()),
            // Bash that broke out of a loop has lost the exit code of its last command.
            (Some(0), Some(stop)) if stop.is_signalled => ExitKind::Code(128 + stop.signal()),
            _ if self.has_dropped_its_rest() => ExitKind::Code(1),
            (answer, _) => ExitKind::Code(answer.unwrap_or_default()),
        }
    }
}
