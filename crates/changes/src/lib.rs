//! What changed in a tree, and the way back.
//!
//! A shell line may do anything to the files around it, and nobody knows beforehand which it will touch. So before the
//! first one a [`Tracker`] secures everything: files that git has are named by their objects, the rest is copied raw
//! into a pack. After a line [`Tracker::compare`] says what changed, with the content of both sides in the blobs;
//! [`restore`] goes back by such records alone, in another process or a year later. Packs and the book of what is known
//! are durable before a line begins: if the process is killed in its middle, [`recover`] says what the line changed.
//!
//! What holds:
//! - Nothing changes unseen: the watcher only narrows the look, and whenever it may have missed something the whole
//!   tree is looked at. A file whose time stamps cannot prove that it was not touched is read.
//! - What cannot be brought back is told, with the reason, never left out.
//! - Nothing of git's own is written or removed, except names of ours for commits, by git; and a repository that a line
//!   broke is put back from its copy.
//! - No link is followed on the way to a file, neither to read nor to write.
//! - Memory holds the list of paths and one file at a time, not the content of the tree.
//!
//! Rejected: snapshots by a shadow git repository (hashes and compresses every file, seconds where a copy takes one, and
//! knows no empty folders and no modes but one bit), overlay mounts (need rights, and hide the user's own edits), and a
//! preloaded library or tracer (static programs and containers escape it).

mod anypath;
mod attributes;
mod background;
mod begun;
mod beneath;
mod book;
mod change;
mod code;
mod error;
mod examine;
mod frame;
mod git;
mod health;
mod layout;
mod linked;
mod links;
mod look;
mod manifest;
mod named;
mod pack;
mod parts;
mod paths;
mod pledge;
mod programs;
mod putback;
mod quarantine;
mod references;
mod refs;
mod repository;
pub mod restore;
mod returned;
mod rows;
mod stat;
mod stored;
mod tracker;
mod walk;
mod watch;
mod whole;

pub use attributes::{Beside, beside};
pub use background::{Background, background_left, forget_background, note_background};
pub use begun::{Unfinished, Watched};
pub use change::{NotUndoable, State, TreeChange, Wanted, net};
pub use error::{ChangesError, Why};
pub use pledge::{Before, Pledges};
pub use programs::SetAside;
pub use putback::PutBack;
pub use quarantine::{Keeping, Kept, KeptRepository, NotKept, Note, Quarantine};
pub use refs::KeptRef;
pub use repository::{Broken, Repositories};
pub use returned::Returned;
pub use tracker::{Compared, Limits, Recovered, Secured, Tracker, TrackerOptions, Watch, discard, recover};
