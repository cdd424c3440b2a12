//! The persistent bash of an agent session.
//!
//! [`Shell`] is the host side: it starts `ax supervise` through the workspace's `Processes`, sends it
//! lines and receives output and ends over the two pipes of that process. Everything that needs to be
//! next to bash (descriptors, signals, the process tree, the state that survives bash) is in `ax`; its
//! module `supervise` says how. What is here would work the same with `ax` in a container.
//!
//! Invariants:
//! * [`Shell::run`] ends within its limits plus a few seconds, whatever the line does.
//! * Memory is flat whatever the volume: [`Spool`] keeps head and tail, the rest is counted.
//! * After [`Shell::close`], or soon after a drop, or after the death of the host, no process is left.
//! * A line's result has only what came before its end. What its background children print later is kept
//!   for [`Jobs::read`], head and tail: it never appears in a later line, and never blocks its writer.
//! * Agent commands ([`CommandHost`]) are programs to everything below bash: whatever can start a program
//!   can start them, and where their caller goes they end.

mod client_wire;
mod clock;
mod command;
mod error;
mod functions;
mod jobs;
mod line;
mod link;
mod listener;
mod outer;
mod peer;
mod place;
mod session;
mod shell;
mod spool;
mod sweep;
mod wire;

pub use clock::{ClockHold, Deadline, LineClock};
pub use command::{Caller, CallerGone, CommandCall, CommandEnd, CommandHost, CommandIo, Input, Output, Said};
pub use error::ShellError;
pub use jobs::{Job, Jobs};
pub use line::{LineEnd, LineExit, LineLimits, LiveChunk, Stream};
pub use outer::OuterShells;
pub use place::place_ax;
pub use shell::{Shell, ShellOptions, StartFolder};
pub use spool::{HeadTail, Spool};
