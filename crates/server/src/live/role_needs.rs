//! The role that work in a session needs.
//!
//! A session continues as it was begun: with its mode, and with the model and key it was given. So a client that
//! works in it needs the role that beginning it would need, no matter who began it and by which route the command
//! arrives. Every command of a client passes [`RoleNeeds::check`]: see `LiveSession::submit`.

use lathe_protocol::{CommandBody, Mode, SessionOptions};

use crate::access::{Identity, Role};
use crate::error::ApiError;

/// Kinds of work in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionWork {
    /// Work that makes the agent act, or that undoes, names or changes what it did.
    Drive,
    /// Work that only asks the session's model something.
    AskModel,
    /// Work that stops or tidies the session.
    Manage,
}

impl SessionWork {
    pub fn of(body: &CommandBody) -> Self {
        match body {
            CommandBody::GiveTask { .. }
            | CommandBody::GoOn
            | CommandBody::Steer { .. }
            | CommandBody::Answer { .. }
            | CommandBody::Rename { .. }
            | CommandBody::Review { .. }
            | CommandBody::Approve { .. } => SessionWork::Drive,
            CommandBody::Summarise { .. } | CommandBody::Cancel | CommandBody::CancelCall { .. } => {
                SessionWork::Manage
            }
        }
    }
}

/// Options of a session that not every role may choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoleNeeds {
    pub mode: Mode,
    /// True if an admin, or the user at the terminal, chose the model's address, key or configuration file for this session
    /// alone.
    pub own_model: bool,
}

impl RoleNeeds {
    /// The needs of a session, from what its own request chose. The settings and flags of the server that reads it do
    /// not count: they may name another model by now, and they are the owner's.
    pub fn of(options: &SessionOptions) -> Self {
        Self { mode: options.mode, own_model: options.own_model }
    }

    /// Refuses an identity without the role for this work.
    pub fn check(self, identity: &Identity, work: SessionWork) -> Result<(), ApiError> {
        let mode_needs = match self.mode {
            Mode::Plan | Mode::Default | Mode::AutoEdit => Role::Operator,
            Mode::FullAuto => Role::Admin,
        };
        let model_needs = if self.own_model { Role::Admin } else { Role::Operator };
        let has = identity.role;
        let refused = |why: String, needed: Role| {
            Err(ApiError::forbidden(format!(
                "{why}, so this needs a token with the role {needed}; {} has the role {has}.",
                identity.name
            )))
        };
        match work {
            SessionWork::Drive if has < mode_needs => {
                refused(format!("This session works in the mode {}", self.mode.as_str()), mode_needs)
            }
            SessionWork::Drive | SessionWork::AskModel if has < model_needs => {
                refused("An admin chose the model, address or key of this session".to_owned(), model_needs)
            }
            SessionWork::Drive | SessionWork::AskModel | SessionWork::Manage if has < Role::Operator => {
                refused("This changes a session".to_owned(), Role::Operator)
            }
            SessionWork::Drive | SessionWork::AskModel | SessionWork::Manage => Ok(()),
        }
    }
}
