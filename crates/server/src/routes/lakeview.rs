//! Lakeview: summaries of the steps of a session, requested by a client.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use futures::Stream;
use lathe_host::{Summariser, SummaryDestination, blocking};
use lathe_protocol::{SessionId, StepSummarised};
use lathe_views::wire_json;
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::runs::require_admin;
use crate::access::Identity;
use crate::api::{Api, ApiResult, Endpoint, Input, Json};
use crate::app::App;
use crate::error::ApiError;
use crate::live::{LiveSession, SessionWork};

/// Steps that one request may name.
const STEPS_MAX: usize = 1_000;

/// The steps to summarise.
#[derive(Debug, Deserialize, JsonSchema)]
struct SummaryRequest {
    #[serde(default)]
    session_id: Option<String>,
    /// Steps of the last run, summarised again; at most 1,000. Without a list all steps that have ended; their
    /// earlier summaries are kept.
    #[serde(default)]
    step_numbers: Option<Vec<u32>>,
    /// Store the summaries in the session, so that every client that watches it gets them.
    #[serde(default = "yes")]
    update_trajectory: bool,
    /// A trajectory file of this server, instead of the session (admin).
    #[serde(default)]
    trajectory_file: Option<String>,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Serialize, JsonSchema)]
struct StepSummary {
    step_number: u32,
    task: String,
    details: String,
    tags: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StepFailure {
    step_number: u32,
    message: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Summaries {
    summaries: Vec<StepSummary>,
    count: usize,
    /// Steps that could not be summarised, each with the reason.
    errors: Vec<StepFailure>,
}

pub(crate) fn add(api: &mut Api) {
    api.add(
        Endpoint::post("/lakeview/summary", "Summarise the steps of a session")
            .body::<SummaryRequest>()
            .response::<Summaries>(),
        summary,
    )
    .add(
        Endpoint::post(
            "/lakeview/summary/stream",
            "Summarise the steps of a session, and send each summary when it is ready",
        )
        .body::<SummaryRequest>()
        .returns("text/event-stream"),
        stream,
    );
}

/// The work of one request.
struct SummaryWork {
    app: App,
    id: SessionId,
    lakeview: Summariser,
    live: Option<Arc<LiveSession>>,
    steps: Vec<u32>,
    /// The steps that have ended.
    ended: HashSet<u32>,
    anew: bool,
    store: bool,
}

/// Turns in sessions that are not open here: each step is summarised and stored before the next of the same session,
/// for all clients. Sessions do not wait for each other, and a list of steps waits for one step at a time.
#[derive(Default)]
pub(crate) struct SessionTurns(Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<()>>>>);

impl SessionTurns {
    async fn of(&self, id: &SessionId) -> tokio::sync::OwnedMutexGuard<()> {
        let turn = {
            let mut all = self.0.lock();
            // Only the turns of sessions with a waiting request are kept.
            all.retain(|_, turn| Arc::strong_count(turn) > 1);
            Arc::clone(all.entry(id.clone()).or_default())
        };
        turn.lock_owned().await
    }
}

impl SummaryWork {
    fn of(app: &App, identity: &Identity, request: SummaryRequest) -> Result<Self, ApiError> {
        if request.step_numbers.as_ref().is_some_and(|steps| steps.len() > STEPS_MAX) {
            return Err(ApiError::unprocessable(format!("`step_numbers` may have {STEPS_MAX} numbers.")));
        }
        let id = session(app, identity, &request)?;
        app.may(identity, &id, SessionWork::AskModel)?;
        let live = app.sessions.get(&id);
        let lakeview = match &live {
            Some(live) => live.lakeview().map_err(ApiError::bad)?,
            None => {
                let folder = app.folder(&app.host.archive().workspace(&id)?)?;
                app.host.summariser_for(&id, &app.overrides(&id, &folder)?)?
            }
        };
        let all = app.host.archive().finished_steps(&id)?;
        let ended: HashSet<u32> = all.iter().copied().collect();
        let (steps, anew) = match request.step_numbers {
            Some(steps) => {
                // A step that is named twice is summarised once.
                let mut named = HashSet::new();
                (steps.into_iter().filter(|step| named.insert(*step)).collect(), true)
            }
            None => (all, false),
        };
        let keep = request.update_trajectory;
        Ok(Self { app: app.clone(), id, lakeview, live, steps, ended, anew, store: keep })
    }

    async fn step(&self, number: u32, cancel: &CancellationToken) -> Result<StepSummary, StepFailure> {
        if !self.ended.contains(&number) {
            let message = "there is no such step, or it has not ended".to_owned();
            return Err(StepFailure { step_number: number, message });
        }
        // An open session gives one turn at a time by itself.
        let _turn = match self.live {
            Some(_) => None,
            None => Some(self.app.lakeview.of(&self.id).await),
        };
        let keep = match (&self.live, self.store) {
            (_, false) => SummaryDestination::Nowhere,
            (Some(live), true) => SummaryDestination::Session(live.handle()),
            (None, true) => SummaryDestination::Journal,
        };
        let (host, anew) = (&self.app.host, self.anew);
        match host.summarise_step(&self.id, &self.lakeview, number, anew, keep, cancel).await {
            Ok(StepSummarised { task, details, tags, .. }) => {
                Ok(StepSummary { step_number: number, task, details, tags })
            }
            Err(message) => Err(StepFailure { step_number: number, message }),
        }
    }

    /// Writes the summaries into the file of the run too.
    fn finish(&self) {
        if self.store {
            let _ = blocking(|| self.app.host.archive().write_trajectory_file(&self.id));
        }
    }
}

fn session(app: &App, identity: &Identity, request: &SummaryRequest) -> Result<SessionId, ApiError> {
    let named = match &request.trajectory_file {
        None => None,
        Some(file) => {
            require_admin(identity, "trajectory_file")?;
            Some(of_file(app, Path::new(file))?)
        }
    };
    match (&request.session_id, named) {
        (Some(id), named) => {
            let id = app.session(id)?;
            if named.is_some_and(|named| named != id) {
                return Err(ApiError::bad("`trajectory_file` is not of that session."));
            }
            Ok(id)
        }
        (None, Some(named)) => Ok(named),
        (None, None) => Err(ApiError::bad("Give `session_id`.")),
    }
}

/// The session of a trajectory file that this server wrote.
fn of_file(app: &App, file: &Path) -> Result<SessionId, ApiError> {
    let wrong = || ApiError::not_found("That is not a trajectory file of this server.");
    let ours = app.host.archive().trajectories().canonicalize().map_err(|_| wrong())?;
    let file = file.canonicalize().map_err(|_| wrong())?;
    let stem = file.file_stem().and_then(|stem| stem.to_str()).ok_or_else(wrong)?;
    if file.parent() != Some(&ours) {
        return Err(wrong());
    }
    // The file of a later run has its number after the id.
    app.session(stem).or_else(|_| app.session(stem.rsplit_once('-').map_or(stem, |(id, _)| id)))
}

async fn summary(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Input(request): Input<SummaryRequest>,
) -> ApiResult<Summaries> {
    let work = blocking(|| SummaryWork::of(&app, &identity, request))?;
    // If the client disconnects this future is dropped, and the question with it.
    let cancel = CancellationToken::new();
    let (mut summaries, mut errors) = (Vec::new(), Vec::new());
    for number in work.steps.clone() {
        match work.step(number, &cancel).await {
            Ok(summary) => summaries.push(summary),
            Err(failure) => errors.push(failure),
        }
    }
    work.finish();
    Ok(Json(Summaries { count: summaries.len(), summaries, errors }))
}

async fn stream(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Input(request): Input<SummaryRequest>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    let work = blocking(|| SummaryWork::of(&app, &identity, request))?;
    let (sender, receiver) = mpsc::channel(8);
    tokio::spawn(async move {
        let cancel = CancellationToken::new();
        tokio::select! {
            () = stream_summaries(&work, &sender, &cancel) => {}
            // The client is gone.
            () = sender.closed() => {}
        }
    });
    let events =
        futures::stream::unfold(receiver, |mut receiver: mpsc::Receiver<(&'static str, Value)>| async {
            let (kind, data) = receiver.recv().await?;
            Some((Ok(Event::default().event(kind).data(wire_json(&data))), receiver))
        });
    Ok(Sse::new(events))
}

async fn stream_summaries(
    work: &SummaryWork,
    sender: &mpsc::Sender<(&'static str, Value)>,
    cancel: &CancellationToken,
) {
    let start = json!({ "session_id": work.id.as_str(), "step_numbers": work.steps });
    if sender.send(("start", start)).await.is_err() {
        return;
    }
    let mut count = 0;
    for number in &work.steps {
        let event = match work.step(*number, cancel).await {
            Ok(summary) => {
                count += 1;
                ("lakeview_step", json!(summary))
            }
            Err(failure) => ("error", json!(failure)),
        };
        if sender.send(event).await.is_err() {
            return;
        }
    }
    work.finish();
    let _ = sender.send(("end", json!({ "count": count }))).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by an attack on the server (F7): one lock of all sessions was held for a whole list.
    #[tokio::test]
    async fn sessions_do_not_wait_for_each_other_and_no_turn_is_kept() {
        let turns = SessionTurns::default();
        let [a, b] = ["a", "b"].map(SessionId::new);
        let first = turns.of(&a).await;
        let mut second = std::pin::pin!(turns.of(&a));
        assert!(futures::poll!(&mut second).is_pending());
        drop(turns.of(&b).await);
        drop(first);
        drop(second.await);
        drop(turns.of(&b).await);
        assert_eq!(turns.0.lock().len(), 1);
    }
}
