//! The persistent bash of an agent session.
//!
//! [`Shell`] is the host side: it starts `ax supervise` through the workspace's `Processes`, sends it lines and
//! receives output and ends over the two pipes of that process. Everything that needs to be next to bash
//! (descriptors, signals, the process tree, the state that survives bash) is in `ax`; its module `supervise`
//! describes it. The code here would work the same with `ax` in a container.
//!
//! Invariants:
//! * [`Shell::run`] ends within its limits plus a few seconds, for any line.
//! * Memory is bounded for any volume of output: [`Spool`] keeps head and tail, the rest is counted.
//! * After [`Shell::close`], or soon after a drop, or after the death of the host, no process is left.
//! * A line's result contains only output from before its end. The later output of its background children is kept
//!   for [`Jobs::read`], head and tail: it never appears in a later line, and never blocks its writer.
//! * Agent commands ([`CommandHost`]) are programs to everything below bash: any code that can start a program can
//!   start them, and they end when their caller does.

mod client_wire;
mod clock;
mod command;
mod command_session;
mod error;
mod functions;
mod jobs;
mod line;
mod link;
mod listener;
mod outer;
mod peer;
mod place;
mod shell;
mod spool;
mod sweep;
mod wire;

pub use clock::{ClockHold, Deadline, LineClock};
pub use command::{
    Caller, CallerGone, CommandCall, CommandEnd, CommandHost, CommandIo, HostMessage, InputSource,
    OutputTarget,
};
pub use error::ShellError;
pub use jobs::{BackgroundJob, Jobs};
pub use line::{LineEnd, LineExit, LineLimits, LiveChunk, Stream};
pub use outer::OuterShells;
pub use place::place_ax;
pub use shell::{Shell, ShellOptions, StartFolder};
pub use spool::{HeadTail, Spool};
