//! Ids of commands, each of which belongs to one client and one command for the life of a session's journal.
//!
//! A session answers an id that its journal holds with the first receipt and does nothing. Clients choose their ids,
//! and many count from 0 again, so an id alone is ambiguous: the session gets the id bound to a digest of the client
//! and the command. The digests are read from the journal when a session is opened again.

use std::collections::HashMap;

use lathe_protocol::{CommandId, Digest, Event};

use crate::access::{Identity, random};
use crate::error::ApiError;

/// Bytes of an id.
const LONGEST: usize = 128;

/// The id that a client gave a command. Ids are kept as long as their session, so long ones are refused.
pub(crate) fn client_id(id: impl Into<String>) -> Result<CommandId, ApiError> {
    let id = id.into();
    match id.len() <= LONGEST {
        true => Ok(CommandId::new(id)),
        false => Err(ApiError::unprocessable(format!("`id` may have {LONGEST} bytes."))),
    }
}

/// Ids that are remembered in addition to those of the journal.
const MOST: usize = 4096;

/// Ids that were used in a session.
#[derive(Debug, Default)]
pub(crate) struct CommandClaims {
    /// The bindings, by the id as the client sent it. None: the id was used where nothing is bound, such as in a
    /// terminal.
    bindings: HashMap<String, Option<Digest>>,
    /// Ids of this opening that may not be in the journal, oldest first.
    recent: std::collections::VecDeque<String>,
}

impl CommandClaims {
    /// The ids that a journal holds.
    pub fn of(events: &[Event]) -> Self {
        let used = events.iter().filter_map(|event| event.fact.command());
        let bindings = used.map(|id| (id.as_sent().to_owned(), id.binding())).collect();
        Self { bindings, ..Self::default() }
    }

    /// The id that the session gets for a client's command. An id that another client, or another command, has used
    /// is refused: the session would take it for a repetition.
    pub fn claim(&mut self, identity: &Identity, id: &CommandId, what: &str) -> Result<CommandId, ApiError> {
        let binding = identity.key.binding(format!("{id} {what}").as_bytes());
        match self.bindings.get(id.as_str()) {
            Some(Some(known)) if *known == binding => {}
            Some(_) => {
                return Err(ApiError::conflict("This id was used for another command: use a new one."));
            }
            None => {
                if self.recent.len() >= MOST
                    && let Some(oldest) = self.recent.pop_front()
                {
                    self.bindings.remove(&oldest);
                }
                self.recent.push_back(id.to_string());
                self.bindings.insert(id.to_string(), Some(binding.clone()));
            }
        }
        Ok(id.bound_to(&binding))
    }

    /// Keeps the id of a command that was accepted: the journal holds it from now on, so it is never forgotten.
    pub fn remember(&mut self, id: &CommandId) {
        self.recent.retain(|recent| recent != id.as_sent());
        self.bindings.insert(id.as_sent().to_owned(), id.binding());
    }
}

/// A command of a client over HTTP, with the id that the session knows it by.
pub(crate) struct ClaimedCommand {
    pub id: CommandId,
    /// True if the journal holds it: it is a repetition, and has no effect.
    pub is_known: bool,
}

impl ClaimedCommand {
    /// The id of one of several commands that one request becomes.
    pub fn sub_id(&self, number: usize) -> CommandId {
        match (number, self.id.binding()) {
            (0, _) | (_, None) => self.id.clone(),
            (number, Some(binding)) => {
                CommandId::new(format!("{}#{number}", self.id.as_sent())).bound_to(&binding)
            }
        }
    }
}

/// An unused id for a command of the server's own.
pub(crate) fn new_command_id() -> Result<CommandId, ApiError> {
    let id = random().map_err(|error| {
        ApiError::unavailable(format!("The command was not given: there are no random numbers ({error})."))
    })?;
    Ok(CommandId::new(id))
}
