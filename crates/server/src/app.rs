//! State shared by all handlers.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use lathe_host::{Host, ModelSource, Overrides, RemovedItem, blocking};
use lathe_plan::Plans;
use lathe_protocol::SessionId;
use lathe_workbench::Workbench;
use tokio::sync::watch;

use crate::access::{Access, Audit, Identity, Rates, ServerNames, Shares};
use crate::api::RouteTable;
use crate::error::ApiError;
use crate::live::{
    ClaimedCommand, CommandClaims, LiveSession, RoleNeeds, SessionWork, Sessions, client_id, new_command_id,
};
use crate::routes::lakeview::SessionTurns;
use crate::settings::ServerSettings;
use crate::watches::Watches;

/// The treatment of runs that were under way when the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRestart {
    /// They wait until a client resumes them.
    Park,
    Resume,
}

/// Counters for `/metrics`.
#[derive(Default)]
pub(crate) struct Counts {
    pub requests: Count,
    pub frames: Count,
    pub clients: Count,
    pub runs: Count,
}

#[derive(Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub fn subtract(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) struct AppState {
    pub host: Arc<Host>,
    pub workbench: Workbench,
    pub plans: Arc<dyn Plans>,
    pub sessions: Sessions,
    pub roots: Vec<PathBuf>,
    pub names: ServerNames,
    pub tls: bool,
    pub port: u16,
    pub access: Arc<Access>,
    pub rates: Rates,
    pub shares: Shares,
    pub watches: Watches,
    pub audit: Audit,
    pub counts: Arc<Counts>,
    pub table: RouteTable,
    pub began: Instant,
    pub lakeview: SessionTurns,
    pub settings: ServerSettings,
    /// Becomes true when the server ends: then clients are notified and closed.
    pub stopping: watch::Sender<bool>,
}

#[derive(Clone)]
pub(crate) struct App(pub Arc<AppState>);

impl Deref for App {
    type Target = AppState;

    fn deref(&self) -> &AppState {
        &self.0
    }
}

impl App {
    /// Waits until the server ends.
    pub async fn stopped(&self) {
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }

    /// The session of this id.
    pub fn session(&self, id: &str) -> Result<SessionId, ApiError> {
        let known = SessionId::new(id);
        if self.sessions.get(&known).is_some() {
            return Ok(known);
        }
        // Only whole ids count here: a prefix may mean another session tomorrow.
        match blocking(|| self.host.archive().find(Some(id))) {
            Ok(found) if found.as_str() == id && self.serves(&found)? => Ok(found),
            Ok(_) => Err(ApiError::not_found("Session not found.")),
            Err(error) => Err(match ApiError::from(error) {
                error if error.status >= 500 => error,
                _ => ApiError::not_found("Session not found."),
            }),
        }
    }

    /// The error for a session whose journal is damaged.
    pub fn unreadable(&self, id: &SessionId) -> ApiError {
        ApiError::internal(format!("The journal of session {id} cannot be read; see `lathe doctor`."))
    }

    /// Tells whether a session worked in a folder that is served. Of a journal that cannot be read only its name is
    /// given.
    fn serves(&self, id: &SessionId) -> Result<bool, ApiError> {
        let folder = self.host.archive().workspace(id).map_err(|error| match ApiError::from(error) {
            error if error.status == 507 => error,
            error if error.status >= 500 || !self.host.archive().is_running(id) => self.unreadable(id),
            // The session is just being created.
            _ => ApiError::not_found("Session not found."),
        })?;
        Ok(self.roots.iter().any(|root| folder.starts_with(root)))
    }

    /// The session, opened here if it is not, for an identity that may drive it.
    pub async fn open(&self, identity: &Identity, id: &SessionId) -> Result<Arc<LiveSession>, ApiError> {
        self.access.check(identity)?;
        if let Some(live) = self.sessions.get(id) {
            live.role_needs.check(identity, SessionWork::Drive)?;
            return Ok(live);
        }
        let needs = blocking(|| self.role_needs(id))?;
        needs.check(identity, SessionWork::Drive)?;
        let overrides = blocking(|| {
            let folder = self.folder(&self.host.archive().workspace(id)?)?;
            self.overrides(id, &folder)
        })?;
        let seat = self.sessions.make_room(identity).await?;
        let opened = self.sessions.open(id, overrides, seat).await;
        // An obstacle to opening a session is not a fault of the request; a fault of the server stays one.
        let live = opened.map_err(|error| match ApiError::from(error) {
            error if error.status >= 500 => error,
            error => ApiError::conflict(error.detail),
        })?;
        live.role_needs.check(identity, SessionWork::Drive)?;
        Ok(live)
    }

    /// Claims the id of a command to a session, whether it is open here or not. A client that names no id does not
    /// repeat the command.
    pub fn claim(
        &self,
        identity: &Identity,
        id: &SessionId,
        command: Option<&str>,
        what: &str,
    ) -> Result<ClaimedCommand, ApiError> {
        let command = command.map_or_else(new_command_id, client_id)?;
        let events = self.host.archive().events(id)?;
        let bound = match self.sessions.get(id) {
            Some(live) => live.claim(identity, &command, what)?,
            None => CommandClaims::of(&events).claim(identity, &command, what)?,
        };
        let is_known = events.iter().any(|event| event.fact.command() == Some(&bound));
        Ok(ClaimedCommand { id: bound, is_known })
    }

    /// Tells whether this identity may do such work in a session, whether the session is open here or not.
    pub fn may(&self, identity: &Identity, id: &SessionId, work: SessionWork) -> Result<(), ApiError> {
        self.access.check(identity)?;
        let needs = match self.sessions.get(id) {
            Some(live) => live.role_needs,
            None => self.role_needs(id)?,
        };
        needs.check(identity, work)
    }

    /// The needs of a session that is not open here.
    fn role_needs(&self, id: &SessionId) -> Result<RoleNeeds, ApiError> {
        Ok(RoleNeeds::of(&self.host.archive().options(id)?))
    }

    /// Refuses an identity that may not do such work in a session that was removed.
    pub fn may_removed(
        &self,
        identity: &Identity,
        removed: &RemovedItem,
        work: SessionWork,
    ) -> Result<(), ApiError> {
        self.access.check(identity)?;
        RoleNeeds::of(&self.host.archive().removed_options(removed)?).check(identity, work)
    }

    /// Overrides for resuming a session, or for asking its model.
    pub fn overrides(&self, id: &SessionId, folder: &Path) -> Result<Overrides, ApiError> {
        let before = self.host.archive().options(id)?;
        let choice = &before.model;
        let mut overrides = self.plans.overrides(folder, &before).map_err(ApiError::bad)?;
        crate::routes::models::restore_model(self, choice, &mut overrides)?;
        // The address of its model may have come over the wire.
        if let ModelSource::Ask(request) = &mut overrides.source
            && let Some(url) = request.base_url.as_ref().or(choice.base_url.as_ref())
        {
            request.reach = self.plans.reach(url);
        }
        Ok(overrides)
    }

    /// A folder that may be worked in: one of the roots, or inside one.
    pub fn folder(&self, asked: &Path) -> Result<PathBuf, ApiError> {
        let outside = || {
            ApiError::forbidden(
                "That folder is outside of what this server serves: see `--root`. Leave `working_dir` out for the default.",
            )
        };
        let asked = match (asked.as_os_str().is_empty(), self.roots.first()) {
            (true, Some(root)) => root.clone(),
            (_, Some(root)) => root.join(asked),
            (_, None) => return Err(outside()),
        };
        // A client cannot distinguish a folder that does not exist from one that it may not see.
        let found = asked.canonicalize().map_err(|_| outside())?;
        let inside = self.roots.iter().any(|root| found.starts_with(root));
        if inside && found.is_dir() { Ok(found) } else { Err(outside()) }
    }
}
