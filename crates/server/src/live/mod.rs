//! The sessions that are open in this process.

mod hub;
mod sessions;

pub(crate) use hub::{Hub, Sent};
pub(crate) use sessions::{Live, Sessions};
