//! Records of what changed in a tree, and undo by these records.
//!
//! A shell line may do anything to the files around it, and which files it will touch is not known beforehand. So
//! before the first line a [`Tracker`] secures everything: files that git has are named by their objects, the rest is
//! copied raw into a pack. After a line [`Tracker::compare`] returns the changes, with the content of both sides in
//! the blobs. [`restore`] needs only these records, in another process or a year later. Packs and the book of the
//! known state are durable before a line begins: if the process is killed in the middle of a line, [`recover`]
//! returns what the line changed.
//!
//! Invariants:
//! - No change stays unseen: the watcher only narrows the scan, and whenever it may have missed something the whole
//!   tree is scanned. A file is read if its time stamps cannot prove that it was not touched.
//! - A change that cannot be undone is reported with the reason, never omitted.
//! - Git's own data is never written or removed, except for names of ours for commits, by git; and a repository that
//!   a line broke is restored from its copy.
//! - No link is followed on the way to a file, neither to read nor to write.
//! - Memory holds the list of paths and one file at a time, not the content of the tree.
//!
//! Rejected: snapshots by a shadow git repository (hashes and compresses every file, seconds where a copy takes one,
//! and does not record empty folders, nor more than one mode bit), overlay mounts (need privileges, and hide the
//! user's own edits), and a preloaded library or tracer (static programs and containers escape it).

mod anypath;
mod attributes;
mod background;
mod beneath;
mod book;
mod book_format;
mod change;
mod error;
mod examine;
mod frame;
mod git;
mod git_content;
mod hard_links;
mod health;
mod layout;
mod linked_parts;
mod lost_parts;
mod manifest;
mod new_repositories;
mod outside_parts;
mod pack;
mod paths;
mod pledge;
mod programs;
mod quarantine;
mod references;
mod refs;
mod repository;
pub mod restore;
mod restore_files;
mod restored;
mod rows;
mod scan;
mod stat;
mod stored_objects;
mod tracker;
mod unfinished;
mod unkept_names;
mod walk;
mod watch;
mod whole_files;

pub use attributes::{ExtraMetadata, keep_extra_metadata};
pub use background::{BackgroundLine, read_background_note, remove_background_note, write_background_note};
pub use change::{NotUndoable, PathState, RestoreTarget, TreeChange, net};
pub use error::{ChangesError, NotUndoableReason};
pub use git_content::ObjectsBefore;
pub use new_repositories::GitPaths;
pub use pledge::{PledgedFile, Pledges};
pub use programs::SetAside;
pub use quarantine::{KeptRepository, LineOrigin, NotKept, OpenEntry, Quarantine, QuarantineEntry};
pub use refs::KeptRef;
pub use repository::{BrokenRepository, Repositories};
pub use restore_files::RestoreReport;
pub use restored::RestoredEntry;
pub use tracker::{
    Compared, Recovered, Secured, Tracker, TrackerLimits, TrackerOptions, Watch, discard, recover,
};
pub use unfinished::{UnfinishedLine, WatchedRepositories};
pub use unkept_names::remove_beneath;
