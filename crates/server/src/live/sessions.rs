//! The sessions that are open here, and how they are opened and closed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lathe_host::{
    Host, HostError, OpenSession, Overrides, SessionPlan, Summariser, SummaryProgress, blocking, own_folder,
};
use lathe_protocol::{
    Actor, Command, CommandBody, CommandId, Event, EventStream, Receipt, ReceiptAnswer, SESSION_ENDED, Seq,
    SessionHandle, SessionId, SessionOptions, SessionState,
};
use lathe_views::Cursor;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::seats::{SeatRefusal, SessionSeat, SessionSeats};
use super::{CommandClaims, Hub, RoleNeeds, SessionWork};
use crate::access::{Access, Identity, TokenKey};
use crate::error::ApiError;

/// The time for which an unused session stays open.
const IDLE: Duration = Duration::from_secs(600);

/// Descriptors that are counted for each open session. It has about thirteen, and connections need some too.
const DESCRIPTORS_EACH: usize = 24;

/// A session that is open here.
pub(crate) struct LiveSession {
    pub id: SessionId,
    pub options: SessionOptions,
    pub folder: PathBuf,
    pub tools: Vec<String>,
    pub hub: Hub,
    pub role_needs: RoleNeeds,
    opener: TokenKey,
    /// Its number in the order of opening.
    number: u64,
    access: Arc<Access>,
    handle: Arc<dyn SessionHandle>,
    lakeview: Result<Summariser, String>,
    /// The progress of its step summaries.
    summary_progress: Option<SummaryProgress>,
    /// With its seat, which is free when the session was closed.
    session: Mutex<Option<(OpenSession, SessionSeat)>>,
    /// Seconds since the server began.
    used: AtomicU64,
    /// Ids of commands that were submitted.
    claims: Mutex<CommandClaims>,
}

impl LiveSession {
    /// Submits a command of this identity, if its token still exists and may do such work here.
    pub async fn submit(
        &self,
        identity: &Identity,
        id: CommandId,
        body: CommandBody,
    ) -> Result<Receipt, ApiError> {
        let bound = self.claim(identity, &id, &format!("{body:?}"))?;
        let receipt = self.submit_claimed(identity, bound, body).await?;
        Ok(Receipt { command: id, ..receipt })
    }

    /// The id that the session knows a command of this client by.
    pub fn claim(&self, identity: &Identity, id: &CommandId, what: &str) -> Result<CommandId, ApiError> {
        self.claims.lock().claim(identity, id, what)
    }

    /// Submits a command whose id was claimed.
    pub async fn submit_claimed(
        &self,
        identity: &Identity,
        id: CommandId,
        body: CommandBody,
    ) -> Result<Receipt, ApiError> {
        self.access.check(identity)?;
        self.role_needs.check(identity, SessionWork::of(&body))?;
        self.mark_used();
        let receipt = self.handle.submit(Command { id: id.clone(), actor: Actor::Person, body }).await;
        if matches!(receipt.answer, ReceiptAnswer::Accepted { .. }) {
            self.claims.lock().remember(&id);
        }
        match &receipt.answer {
            ReceiptAnswer::Refused { reason } if reason == SESSION_ENDED => {
                self.ended_by_fault().await?;
                Ok(receipt)
            }
            ReceiptAnswer::Refused { .. } | ReceiptAnswer::Accepted { .. } => Ok(receipt),
        }
    }

    /// Returns the fault that ended the session, if one did: its journal could not be written. The next request opens
    /// it again.
    pub async fn ended_by_fault(&self) -> Result<(), ApiError> {
        let session = self.session.lock().take();
        match session {
            Some((session, _seat)) => Ok(session.close().await?),
            None => Ok(()),
        }
    }

    /// Tells whether the session was closed, or ended by a fault that was reported.
    fn has_ended(&self) -> bool {
        self.session.lock().is_none()
    }

    pub fn handle(&self) -> &dyn SessionHandle {
        self.mark_used();
        &*self.handle
    }

    /// The summariser of its steps.
    pub fn lakeview(&self) -> Result<Summariser, String> {
        self.lakeview.clone()
    }

    /// The progress of its step summaries; none if steps are not summarised.
    pub fn summary_progress(&self) -> Option<&SummaryProgress> {
        self.summary_progress.as_ref()
    }

    pub fn subscribe(&self, from: Seq) -> Box<dyn EventStream> {
        self.mark_used();
        self.handle.subscribe(from)
    }

    /// Tells whether it neither runs nor has a client.
    fn is_free(&self) -> bool {
        self.has_ended() || (!self.hub.is_running() && self.hub.listeners() == 0)
    }

    fn mark_used(&self) {
        self.used.store(now(), Ordering::Relaxed);
    }
}

/// Seconds of this process.
fn now() -> u64 {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed().as_secs()
}

pub(crate) struct Sessions {
    host: Arc<Host>,
    access: Arc<Access>,
    live: Mutex<HashMap<SessionId, Arc<LiveSession>>>,
    /// Held while a session is opened or closed: one at a time.
    opening: tokio::sync::Mutex<()>,
    /// A request waits for a session to be opened.
    opened: Notify,
    /// A file for each session that is open here: the next server reads it after a kill.
    marks: PathBuf,
    seats: SessionSeats,
    /// Sessions that were opened so far.
    count: AtomicU64,
}

impl Sessions {
    pub fn new(host: Arc<Host>, access: Arc<Access>) -> Self {
        let marks = host.home().server().join("open");
        Self {
            host,
            access,
            live: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            opened: Notify::new(),
            marks,
            seats: SessionSeats::new((crate::connections::descriptors() / DESCRIPTORS_EACH).clamp(4, 256)),
            count: AtomicU64::new(0),
        }
    }

    pub fn get(&self, id: &SessionId) -> Option<Arc<LiveSession>> {
        self.live.lock().get(id).filter(|live| !live.has_ended()).cloned()
    }

    pub fn list(&self) -> Vec<Arc<LiveSession>> {
        self.live.lock().values().cloned().collect()
    }

    /// Wakes when some session is opened.
    pub fn opened(&self) -> tokio::sync::futures::Notified<'_> {
        self.opened.notified()
    }

    pub async fn start(&self, plan: SessionPlan, seat: SessionSeat) -> Result<Arc<LiveSession>, HostError> {
        let folder = plan.folder.clone();
        // All of it reads, writes and prepares secrets: no worker of the runtime may wait for that.
        let session = blocking(|| Handle::current().block_on(self.host.start(plan)))?;
        // The folder was checked before: one that is reached through a link by now may lead out of the served folders.
        if session.workspace != folder.to_string_lossy() {
            session.close().await?;
            let reason = "a link was put in its place".to_owned();
            return Err(HostError::Folder { path: folder, reason });
        }
        self.add(session, folder, seat)
    }

    /// Makes room for one more session of this identity: its least recently used session is closed, and opened again
    /// on demand. Refused if all are working, watched or being opened.
    pub async fn make_room(&self, identity: &Identity) -> Result<SessionSeat, ApiError> {
        let (each, most) = (self.seats.each(), self.seats.most());
        loop {
            match self.seats.take(identity.key) {
                Ok(seat) => return Ok(seat),
                Err(SeatRefusal::OfToken) => {
                    if !self.close_oldest(|live| live.opener == identity.key).await {
                        return Err(ApiError::too_many(format!(
                            "{each} sessions of this token are open and at work; close one or wait for its end."
                        )));
                    }
                }
                Err(SeatRefusal::OfAll) => {
                    if !self.close_oldest(|_| true).await {
                        return Err(ApiError::unavailable(format!(
                            "{most} sessions are open and at work, and this server has no room for another; try again later."
                        )));
                    }
                }
            }
        }
    }

    /// Closes the least recently used of these that is not needed; false if there is none.
    async fn close_oldest(&self, of: impl Fn(&Arc<LiveSession>) -> bool) -> bool {
        let all = self.list();
        let free = all.iter().filter(|live| live.is_free() && of(live));
        let used = |live: &&Arc<LiveSession>| (live.used.load(Ordering::Relaxed), live.number);
        let Some(oldest) = free.min_by_key(used) else { return false };
        self.close(&oldest.id).await.is_ok()
    }

    /// The session; it is opened again if it is closed.
    pub async fn open(
        &self,
        id: &SessionId,
        overrides: Overrides,
        seat: SessionSeat,
    ) -> Result<Arc<LiveSession>, HostError> {
        let _one = self.opening.lock().await;
        if let Some(live) = self.get(id) {
            return Ok(live);
        }
        blocking(|| {
            let folder = self.host.archive().workspace(id)?;
            let session = Handle::current().block_on(self.host.resume(id, overrides))?;
            self.add(session, folder, seat)
        })
    }

    fn add(
        &self,
        session: OpenSession,
        folder: PathBuf,
        seat: SessionSeat,
    ) -> Result<Arc<LiveSession>, HostError> {
        let id = session.id.clone();
        let handle = session.shared_handle();
        let last = self.host.archive().last_seq(&id)?;
        let frames = self.host.archive().frames(&id, Cursor::after(last), None);
        let mut frames = frames?;
        // Earlier frames were sent by others, or are read from the journal by clients that want them.
        frames.read()?;
        let (host, ended) = (Arc::clone(&self.host), id.clone());
        let ended = move |_: &Event| {
            let (host, id) = (Arc::clone(&host), ended.clone());
            tokio::task::spawn_blocking(move || {
                host.archive().update_index(&id);
                let _ = host.archive().write_trajectory_file(&id);
            });
        };
        let hub = Hub::follow(id.clone(), &*handle, frames, ended);
        let live = Arc::new(LiveSession {
            id: id.clone(),
            options: session.options.clone(),
            folder,
            tools: session.tool_names.clone(),
            hub,
            role_needs: RoleNeeds::of(&session.options),
            opener: seat.key,
            number: self.count.fetch_add(1, Ordering::Relaxed),
            access: Arc::clone(&self.access),
            handle,
            lakeview: session.lakeview(),
            summary_progress: session.summary_progress(),
            session: Mutex::new(Some((session, seat))),
            used: AtomicU64::new(now()),
            claims: Mutex::new(CommandClaims::of(&self.host.archive().events(&id)?)),
        });
        write_mark(&self.marks, &id);
        self.live.lock().insert(id, Arc::clone(&live));
        self.opened.notify_waiters();
        Ok(live)
    }

    /// Closes a session. A run in it is cancelled.
    pub async fn close(&self, id: &SessionId) -> Result<bool, HostError> {
        let _one = self.opening.lock().await;
        let Some(live) = self.live.lock().remove(id) else { return Ok(false) };
        let was_running = live.hub.is_running();
        let session = live.session.lock().take();
        let closed = match session {
            Some((session, _seat)) => session.close().await,
            None => Ok(()),
        };
        // The next server must know of a run that was under way.
        if !was_running {
            let _ = std::fs::remove_file(self.marks.join(id.as_str()));
        }
        self.host.archive().update_index(id);
        closed.map(|()| true)
    }

    /// Closes sessions that were not used for a while. They are opened again on demand.
    pub async fn close_idle(&self) {
        let idle = |live: &Arc<LiveSession>| {
            live.is_free() && now().saturating_sub(live.used.load(Ordering::Relaxed)) > IDLE.as_secs()
        };
        let old: Vec<SessionId> =
            self.list().iter().filter(|live| idle(live)).map(|live| live.id.clone()).collect();
        for id in old {
            let _ = self.close(&id).await;
        }
    }

    /// Closes everything, at the end of the server. Runs stay as they are and can be resumed.
    pub async fn close_all(&self) {
        let all: Vec<SessionId> = self.live.lock().keys().cloned().collect();
        for id in all {
            let _ = self.close(&id).await;
        }
    }

    /// Sessions of a server that was killed, with a run that is not finished.
    pub fn unfinished(&self) -> Vec<SessionId> {
        let Ok(marks) = std::fs::read_dir(&self.marks) else { return Vec::new() };
        let ids: Vec<String> =
            marks.flatten().filter_map(|mark| mark.file_name().into_string().ok()).collect();
        let known = self.host.archive().sessions().unwrap_or_default();
        let mut left = Vec::new();
        for id in ids {
            let found = known.iter().find(|summary| summary.id.as_str() == id);
            // A process that the killed server started may hold the session for a moment longer: then it still looks
            // like it is running.
            let is_open = |state| matches!(state, SessionState::Interrupted | SessionState::Running);
            match found.filter(|summary| is_open(summary.state)) {
                Some(summary) => left.push(summary.id.clone()),
                None => drop(std::fs::remove_file(self.marks.join(id))),
            }
        }
        left
    }
}

fn write_mark(folder: &Path, id: &SessionId) {
    let made = own_folder(folder);
    let _ = made.and_then(|()| std::fs::write(folder.join(id.as_str()), b""));
}
