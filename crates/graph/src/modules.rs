//! placeholder
pub struct Modules;
