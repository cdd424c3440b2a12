//! Files outside the workspace: those that a user names, those that a run writes, and those of the user's own configuration.

pub(crate) mod named;
pub(crate) mod output;
pub(crate) mod own;
