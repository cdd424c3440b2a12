//! This process: its limits, its terminal, and the parts of it that are visible to other programs.

pub(crate) mod limits;
pub(crate) mod seal;
pub(crate) mod terminal;
