//! Shell lines: their view of the disk for the gate, the copies made before a line that destroys something, and the
//! changes found after it.

mod disk;
mod git_leads;
mod git_runs;
mod protected_names;
pub(crate) mod secure;
mod tracking;

pub use disk::LocalDisk;
pub(crate) use disk::{LinkPolicy, each_beneath};
pub use secure::{AsideNote, Keeper, aside_note, aside_notes, left_protected_note};
pub use tracking::Tracking;
