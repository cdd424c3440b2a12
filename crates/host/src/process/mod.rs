//! This process: its limits, its terminal, and the parts of it that other programs may see.

pub(crate) mod limits;
pub(crate) mod seal;
pub(crate) mod terminal;
