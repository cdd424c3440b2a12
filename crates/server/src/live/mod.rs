//! The sessions that are open in this process.

mod hub;
mod needs;
mod sessions;

pub(crate) use hub::{Hub, Sent};
pub(crate) use needs::{Needs, SessionWork};
pub(crate) use sessions::{Live, Opener, Sessions};
