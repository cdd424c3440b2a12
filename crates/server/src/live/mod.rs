//! The sessions that are open in this process.

mod claims;
mod hub;
mod role_needs;
mod seats;
mod sessions;

pub(crate) use claims::{ClaimedCommand, CommandClaims, client_id, new_command_id};
pub(crate) use hub::{Hub, HubMessage};
pub(crate) use role_needs::{RoleNeeds, SessionWork};
pub(crate) use sessions::{LiveSession, Sessions};
