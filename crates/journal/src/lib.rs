//! The append-only event store of a session.
//!
//! One SQLite file in WAL mode per session, because then other processes can read and tail it while it is
//! written, a torn tail is found by checksums, and a commit costs microseconds. These invariants hold:
//!
//! - **One writer.** [`Journal`] holds an flock; it goes with its process, so a dead holder is no obstacle.
//!   A [`Reader`] takes no lock and never writes the main file.
//! - **Acknowledged is kept.** When [`Journal::append`] returned, the event survives the death of the process;
//!   after [`Syncer::sync`] it survives the loss of power too. Syncing is apart from appending so that it can
//!   run beside the model's work.
//! - **Numbers have no gaps.** Event `n` is the `n`th append that succeeded. Nothing is updated or removed.
//! - **A journal is there whole or not at all.** It is made under another name and renamed, so neither a reader
//!   nor a crash meets half of one.
//! - **A blob comes before its event.** A body over 64 KiB is put (synced) first.
//! - **What is read is what was written.** Every event has a checksum, a seal says how many there were when the file was
//!   last closed, and a mark beside the file how many were committed since: a flipped bit or a lost event is
//!   [`JournalError::Damaged`], never shown as the record.
//!
//! Rejected: JSON lines (a torn last line must be repaired before the next append, and tailing needs a protocol
//! of its own) and one database for all sessions (one writer at a time for all of them).
//!
//! A trap for whoever changes this crate: POSIX drops all locks a process has on a file when it closes *any*
//! descriptor of it. So nothing here opens the `.db` or the `-shm` file except SQLite itself.

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
mod sums;
mod syncer;

pub use error::JournalError;
pub use files::session_ids;
pub use index::{Index, Rebuilt};
pub use journal::Journal;
pub use live::live;
pub use lock::{Holder, is_held};
pub use reader::Reader;
pub use summary::summarise;
pub use syncer::Syncer;
