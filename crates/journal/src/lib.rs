//! The append-only event store of a session.
//!
//! One SQLite file in WAL mode per session: other processes can read and tail it while it is written, a torn tail is
//! found by checksums, and a commit costs microseconds. Invariants:
//!
//! - **One writer.** [`Journal`] holds an flock, which ends with its process, so a dead holder does not block the
//!   session. A [`SessionReader`] takes no lock and never writes the main file.
//! - **Acknowledged events survive.** When [`Journal::append`] returned, the event survives the death of the process;
//!   after [`Syncer::sync`] it survives the loss of power too. Syncing is separate from appending so that it can run
//!   during the model's work.
//! - **Numbers have no gaps.** Event `n` is the `n`th append that succeeded. Nothing is updated or removed.
//! - **A journal is complete or absent.** It is made under another name and renamed, so neither a reader nor a crash
//!   sees half of one.
//! - **A blob comes before its event.** A body over 64 KiB is stored (and synced) first.
//! - **Damage is detected.** Every event has a checksum, a seal records how many events there were when the file was
//!   last closed, and a mark in a separate file how many were committed since. A flipped bit or a lost event is
//!   [`JournalError::Damaged`], never shown as the record.
//!
//! Rejected: JSON lines (a torn last line must be repaired before the next append, and tailing needs a protocol of
//! its own) and one database for all sessions (one writer at a time for all of them).
//!
//! A trap for every change to this crate: POSIX drops all locks of a process on a file when it closes *any*
//! descriptor of it. So only SQLite itself opens the `.db` and the `-shm` file.

mod checksums;
mod dangling;
mod error;
mod files;
mod format;
mod index;
mod journal;
mod live;
mod lock;
mod mark;
mod reader;
mod store;
mod summary;
mod syncer;

pub use error::JournalError;
pub use files::session_ids;
pub use index::{Index, Rebuilt};
pub use journal::Journal;
pub use live::live_branch;
pub use lock::{Holder, is_held};
pub use reader::SessionReader;
pub use summary::summarise;
pub use syncer::Syncer;
