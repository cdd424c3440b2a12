//! One line: its two outputs and how it is brought to an end.

use std::collections::HashSet;
use std::ffi::c_int;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::time::{Duration, Instant};

use crate::folder::Folder;
use crate::system::{SIGCONT, SIGINT, SIGKILL, SIGTERM, send};
use crate::tree::{Process, descendants};
use crate::wire::put_output;

/// How long bash may take to answer after its children were killed, and after it was interrupted.
const ANSWER_WAIT: Duration = Duration::from_millis(150);
/// A process that not even KILL ends (it hangs in the kernel) is given up after this.
pub const GIVE_UP: Duration = Duration::from_secs(2);

/// The stdout and stderr FIFO of one line; a `None` is at its end.
pub struct Outputs {
    pub id: u64,
    pub number: u32,
    pub ends: [Option<File>; 2],
}

impl Outputs {
    pub fn open(folder: &Folder, id: u64, number: u32) -> io::Result<Self> {
        let [out, err] = Self::names(number);
        Ok(Self {
            id,
            number,
            ends: [Some(folder.open_output(&out)?), Some(folder.open_output(&err)?)],
        })
    }

    pub fn names(number: u32) -> [String; 2] {
        [format!("o{number}"), format!("e{number}")]
    }

    /// Whether some process may still write to them.
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

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Running,
    Term { until: Instant },
    Kill { until: Instant },
    Interrupt { until: Instant },
}

pub struct Line {
    pub token: String,
    pub outputs: Outputs,
    /// What was alive before: these and their descendants are not ours to kill.
    pub old: HashSet<Process>,
    pub answer: Option<i32>,
    told: HashSet<Process>,
    phase: Phase,
}

impl Line {
    pub fn new(token: String, outputs: Outputs, old: HashSet<Process>) -> Self {
        Self {
            token,
            outputs,
            old,
            answer: None,
            told: HashSet::new(),
            phase: Phase::Running,
        }
    }

    pub fn is_stopping(&self) -> bool {
        self.phase != Phase::Running
    }

    pub fn stop(&mut self, grace: Duration) {
        self.phase = Phase::Term {
            until: Instant::now() + grace,
        };
    }

    /// Presses on with a stop; true when an answered line has nothing more to wait for.
    ///
    /// Bash goes on with the rest of its script when a child was killed, so new children are looked for
    /// on every tick, and bash itself is interrupted, then killed, when it does not come to an end.
    pub fn press(&mut self, shell: c_int) -> bool {
        if self.phase == Phase::Running {
            return self.answer.is_some();
        }
        let alive = descendants(shell, &self.old);
        let kill_all = || alive.iter().for_each(|process| send(process.0, SIGKILL));
        let now = Instant::now();
        match self.phase {
            Phase::Running => {}
            Phase::Term { until } if now < until => {
                for process in alive.iter().filter(|process| self.told.insert(**process)) {
                    send(process.0, SIGTERM);
                    send(process.0, SIGCONT);
                }
            }
            Phase::Term { .. } => {
                kill_all();
                self.phase = Phase::Kill {
                    until: now + ANSWER_WAIT,
                };
            }
            Phase::Kill { until } => {
                kill_all();
                if self.answer.is_some() {
                    return alive.is_empty() || now >= until + GIVE_UP;
                }
                if now >= until {
                    send(shell, SIGINT);
                    self.phase = Phase::Interrupt {
                        until: now + ANSWER_WAIT,
                    };
                }
            }
            Phase::Interrupt { until } => {
                kill_all();
                if now >= until && self.answer.is_none() {
                    send(shell, SIGKILL);
                }
            }
        }
        self.answer.is_some() && alive.is_empty()
    }
}
