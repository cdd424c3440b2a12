//! Files: the changes that tools make and check, and the files that they do not show.

mod check;
mod commit;
pub(crate) mod hidden;
mod last_written;
pub(crate) mod syntax;
mod unseen;

pub use check::{CheckRule, Checks};
pub(crate) use commit::{CommittedChanges, commit, commit_known};
pub(crate) use last_written::LastWritten;
pub(crate) use unseen::without_unseen;
