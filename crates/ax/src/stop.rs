//! Ending a line, such that nothing more of it runs.
//!
//! Bash continues with the rest of a line when one of its children was killed, so first everything is halted, bash
//! too. Then bash is made to give up the line: [`SIGNAL`] has a trap, whose statements are written now
//! ([`unwind`](crate::bash::unwind)). Bash runs a trap between two commands, and when it is interrupted in its own
//! work, in a `wait` or while it reads the output of a `$(...)`. So there are two steps:
//!
//! 1. With all children still halted bash continues. If it reaches the trap, it saves its state and exits: that works
//!    at any depth, without the rest of the command that it was about to expand.
//! 2. If it sleeps, it waits for a foreground child, and the trap is due when that child has gone. The trap is
//!    changed so that outside of functions it only breaks out of the loop that surrounds every line: then bash need
//!    not be replaced. Now the children get TERM and then KILL.
//!
//! Bash is killed, and its last saved state used, if it has no such trap (any more), if it reads from a pipe of the
//! line in spite of the signal (it would run its command with half of the words), if it starts anything new, and if
//! it neither answers nor ends in time.

use std::collections::HashSet;
use std::ffi::c_int;
use std::thread;
use std::time::{Duration, Instant};

use crate::system::{SIGCONT, SIGKILL, SIGSTKFLT, SIGSTOP, SIGTERM, send};
use crate::tree::{self, Live, Process, live, live_for_certain};

/// Makes bash give up its line. Nothing uses this signal, it kills by default, and its number is lower than that of
/// CHLD, so its trap comes before one that the death of a child triggers.
pub const SIGNAL: c_int = SIGSTKFLT;

/// The time until everything is halted; only a flood of forks takes longer.
const HALT_MAX: Duration = Duration::from_millis(50);
/// Bash that sleeps after this time has gone back to waiting.
const SETTLE: Duration = Duration::from_millis(10);
/// Bash that is busy and has not reached its trap after this time never will.
const UNWIND_MAX: Duration = Duration::from_millis(500);
/// The number of times that bash gets the signal again, if it came just before bash began to read.
const REPEATS: u32 = 2;
/// The time that bash has to answer or to end after the line's processes are gone.
const ANSWER_WAIT: Duration = Duration::from_millis(300);
/// The time after which a process that not even KILL ends (it hangs in the kernel) is abandoned.
pub const GIVE_UP: Duration = Duration::from_secs(2);

#[derive(Clone, Copy)]
enum Phase {
    /// Bash runs, and all others are halted.
    Unwind {
        since: Instant,
    },
    Term {
        until: Instant,
    },
    Kill {
        since: Instant,
    },
}

/// The results of a step of a stop.
#[derive(PartialEq)]
pub enum StopStep {
    Wait,
    /// Bash sleeps, so from now on its trap may leave it alive.
    Relent,
    Done,
}

pub struct LineStop {
    /// Bash, which is not a part of the line. 0 if the line has replaced it by a program, or it is gone.
    shell: c_int,
    grace: Duration,
    /// The processes that were halted or got TERM.
    known: HashSet<Process>,
    phase: Phase,
    /// The time since which only bash itself keeps the line from ending.
    alone: Option<Instant>,
    /// True once bash got the signal to give up the line.
    pub is_signalled: bool,
    repeats: u32,
    has_killed: bool,
}

impl LineStop {
    /// Halts bash and all processes of the line.
    pub fn begin(shell: c_int, old: &HashSet<Process>, grace: Duration) -> Self {
        send(shell, SIGSTOP);
        let began = Instant::now();
        let pause = || {
            thread::sleep(Duration::from_micros(200));
            began.elapsed() < HALT_MAX
        };
        // Bash first: a CHLD before its halt would restart its read, which the signal has to interrupt.
        while !tree::is_halted(shell) && pause() {}
        let mut known = HashSet::new();
        loop {
            let mut is_quiet = true;
            for process in live(shell, old) {
                let is_new = known.insert(process.process);
                if is_new {
                    send(process.process.0, SIGSTOP);
                }
                is_quiet &= !is_new && process.is_halted();
            }
            if is_quiet || !pause() {
                break;
            }
        }
        Self {
            shell,
            grace,
            known,
            phase: Phase::Unwind { since: began },
            alone: None,
            is_signalled: false,
            repeats: REPEATS,
            has_killed: false,
        }
    }

    /// Continues without bash, which has ended the line already, or is gone: only processes are left to end.
    pub fn continue_without_shell(&mut self, old: &HashSet<Process>) {
        send(self.shell, SIGCONT);
        self.send_term(&live(self.shell, old));
    }

    /// Continues after the line has replaced bash by a program, which gets TERM like all others.
    pub fn include_shell(&mut self, old: &HashSet<Process>) {
        self.shell = 0;
        self.send_term(&live(0, old));
    }

    /// Makes bash run into its trap, if it has one and its statements could be written.
    pub fn signal_shell(&mut self, is_prepared: bool) {
        self.phase = Phase::Unwind { since: Instant::now() };
        if is_prepared && tree::catches(self.shell, SIGNAL) {
            self.is_signalled = true;
            send(self.shell, SIGNAL);
            send(self.shell, SIGCONT);
        } else {
            send(self.shell, SIGKILL);
        }
    }

    /// Shortens the grace time.
    pub fn shorten_grace(&mut self, grace: Duration) {
        self.grace = self.grace.min(grace);
        if let Phase::Term { until } = &mut self.phase {
            *until = (*until).min(Instant::now() + grace);
        }
    }

    pub fn shell_ended(&mut self) {
        self.shell = 0;
    }

    /// The signal that ended the line's processes.
    pub fn signal(&self) -> c_int {
        if self.has_killed { SIGKILL } else { SIGTERM }
    }

    /// Does the next step. `has_ended` is true if bash has answered or is gone.
    pub fn step(&mut self, old: &HashSet<Process>, has_ended: bool) -> StopStep {
        let alive = live_for_certain(self.shell, old);
        if let Phase::Unwind { since } = self.phase {
            return self.unwind(&alive, since.elapsed(), has_ended);
        }
        let is_new_child =
            |process: &Live| process.parent == self.shell && !self.known.contains(&process.process);
        if self.shell != 0 && !has_ended && alive.iter().any(is_new_child) {
            send(self.shell, SIGKILL);
            kill(&alive);
        }
        let now = Instant::now();
        match self.phase {
            Phase::Unwind { .. } => {}
            Phase::Term { until } if now < until => self.send_term_to_new(&alive),
            Phase::Term { .. } if alive.is_empty() => {}
            Phase::Term { .. } => {
                kill(&alive);
                self.has_killed = true;
                self.phase = Phase::Kill { since: now };
            }
            Phase::Kill { .. } => kill(&alive),
        }
        let is_hopeless = matches!(self.phase, Phase::Kill { since } if since.elapsed() >= GIVE_UP);
        if !alive.is_empty() && !is_hopeless {
            self.alone = None;
        } else if has_ended {
            return StopStep::Done;
        } else if self.alone.get_or_insert(now).elapsed() >= ANSWER_WAIT {
            send(self.shell, SIGKILL);
        }
        StopStep::Wait
    }

    fn unwind(&mut self, alive: &[Live], elapsed: Duration, has_ended: bool) -> StopStep {
        for process in alive {
            if self.known.insert(process.process) {
                send(process.process.0, SIGSTOP);
            }
        }
        let is_asleep = !has_ended && elapsed >= SETTLE && tree::is_asleep(self.shell);
        if has_ended || elapsed >= UNWIND_MAX + GIVE_UP {
            self.send_term(alive);
        } else if elapsed >= UNWIND_MAX {
            send(self.shell, SIGKILL);
        } else if is_asleep {
            if !tree::may_read_from(self.shell, alive) {
                return StopStep::Relent;
            }
            let is_last = self.repeats == 0;
            self.repeats = self.repeats.saturating_sub(1);
            self.phase = Phase::Unwind { since: Instant::now() };
            send(self.shell, if is_last { SIGKILL } else { SIGNAL });
        }
        StopStep::Wait
    }

    /// Begins the second step, in which the trap of bash leaves it alive.
    pub fn relent(&mut self, old: &HashSet<Process>) {
        self.send_term(&live(self.shell, old));
    }

    /// Sends first TERM to all, parents before children, then CONT to all: a shell that wakes up dies of its own
    /// signal before it notices the death of its child.
    fn send_term(&mut self, alive: &[Live]) {
        self.known.clear();
        self.send_term_to_new(alive);
        self.phase = Phase::Term { until: Instant::now() + self.grace };
    }

    fn send_term_to_new(&mut self, alive: &[Live]) {
        let is_new = |process: &&Live| self.known.insert(process.process);
        let new: Vec<c_int> = alive.iter().filter(is_new).map(|process| process.process.0).collect();
        for pid in &new {
            // Some ignore TERM; an interactive shell (`bash -ic '...'`) would just continue.
            let is_deaf = tree::ignores(*pid, SIGTERM);
            send(*pid, if is_deaf { SIGKILL } else { SIGTERM });
            self.has_killed |= is_deaf;
        }
        new.iter().for_each(|pid| send(*pid, SIGCONT));
    }
}

fn kill(alive: &[Live]) {
    alive.iter().for_each(|process| send(process.process.0, SIGKILL));
}
