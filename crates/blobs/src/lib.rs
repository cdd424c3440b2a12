//! A content-addressed, compressed byte store.
//!
//! A blob is named by the SHA-256 of its plain bytes, so equal content is kept once, nothing is ever overwritten, and
//! a reader can tell damage from content. Events name blobs; therefore these invariants hold:
//!
//! - When [`Blobs::put`] returns, the blob survives the loss of power: its file was synced before it got its name,
//!   and the folder after. An event that names a blob can then never be more durable than the blob.
//! - When [`Batch::finish`] returns, the same is true of all blobs of the batch.
//! - A file under its final name is whole. Writers make a temporary file in the store and rename; a writer that dies
//!   leaves only a `.tmp-…` file, which no reader opens.
//! - The bytes that [`Blobs::get`] returns hash to the requested name. Damage is an error, never other bytes.
//! - Only 64 lower-case hex digits become a path. A digest is read from events as plain text, so a hostile one must
//!   not be able to reach outside the folder.
//!
//! Folders are 0700 and files 0600: blobs hold source code and output of commands.
//!
//! Rejected: a table in SQLite (one writer at a time, and large rows bloat the write-ahead log), and zstd
//! (a C library for a gain of a few percent on files of this size).

mod batch;
mod error;
mod replace;
mod store;

pub use batch::Batch;
pub use error::BlobError;
pub use replace::{Durable, replace};
pub use store::Blobs;
