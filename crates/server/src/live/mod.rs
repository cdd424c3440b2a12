//! The sessions that are open in this process.

mod claims;
mod hub;
mod needs;
mod seats;
mod sessions;

pub(crate) use claims::{Claimed, Claims, client_id, new_command_id};
pub(crate) use hub::{Hub, Sent};
pub(crate) use needs::{Needs, SessionWork};
pub(crate) use sessions::{Live, Sessions};
