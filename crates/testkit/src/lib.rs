//! The test kit of Lathe: a fake model server, temporary repositories, the real binary on a leash.
//!
//! Only the model is fake. The server speaks a provider's wire over real TCP and refuses every request that a strict
//! provider would refuse, so a test that ends well has also shown that the conversation was well formed. This crate
//! knows the protocol and no other part of Lathe: it sees the program as a user and a provider see it.

// All code here runs inside tests, where a panic with a good text is how a failure is reported.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod disk;
mod eventually;
mod faults;
mod golden;
mod http;
mod lathe;
mod listing;
mod options;
mod prefix;
mod processes;
mod programs;
mod repo;
mod script;
mod server;
mod sizes;
mod stream;
mod wires;

pub use disk::SmallDisk;
pub use eventually::eventually;
pub use faults::{Expected, FaultCase, FaultOutcome, fault_cases};
pub use golden::golden;
pub use lathe::{FinishedLathe, Lathe, RunningLathe, Signal, events};
pub use listing::{ListingEntry, differing_paths, listing};
pub use options::{Chunking, LineEnd, Options};
pub use prefix::{check_prefix, check_prefix_on};
pub use processes::{descendants_of, no_process_with, processes_with};
pub use programs::{PROGRAM_SETTINGS, plant_setting};
pub use repo::TempRepo;
pub use script::{FakeAnswer, Fault, FaultPoint, Script, call, done, say};
pub use server::{FakeModel, ReceivedRequest};
pub use sizes::{is_full, sample, size};
pub use stream::recorded_answer;
pub use wires::{Thoughts, Wire, check_pairing};
