//! Lakeview: what the steps of a session were about, asked for by a client.

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, Sse};
use futures::Stream;
use lathe_host::{Keep, Lakeview, blocking, wire_json};
use lathe_protocol::{SessionId, StepSummarised};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::runs::admin;
use crate::access::Identity;
use crate::api::{Answer, Api, Endpoint, Input, Json};
use crate::app::App;
use crate::error::ApiError;
use crate::live::{Live, SessionWork};

/// Which steps are to be summed up.
#[derive(Debug, Deserialize, JsonSchema)]
struct SummaryRequest {
    #[serde(default)]
    session_id: Option<String>,
    /// Steps of the last run, made anew. All that have ended if left out; what was said of them before is kept.
    #[serde(default)]
    step_numbers: Option<Vec<u32>>,
    /// Whether the summaries are kept in the session, and so reach whoever watches it.
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
    /// Steps that could not be summed up, each with the reason.
    errors: Vec<StepFailure>,
}

pub(crate) fn add(api: &mut Api) {
    api.add(
        Endpoint::post("/lakeview/summary", "Sum up the steps of a session")
            .body::<SummaryRequest>()
            .answer::<Summaries>(),
        summary,
    )
    .add(
        Endpoint::post("/lakeview/summary/stream", "The same, each step when it is there")
            .body::<SummaryRequest>()
            .gives("text/event-stream"),
        stream,
    );
}

/// What a request comes to.
struct Work {
    app: App,
    id: SessionId,
    lakeview: Arc<Lakeview>,
    live: Option<Arc<Live>>,
    steps: Vec<u32>,
    anew: bool,
    keep: bool,
}

impl Work {
    fn of(app: &App, identity: &Identity, request: SummaryRequest) -> Result<Self, ApiError> {
        let id = session(app, identity, &request)?;
        app.may(identity, &id, SessionWork::AskModel)?;
        let live = app.sessions.get(&id);
        let lakeview = match &live {
            Some(live) => live.lakeview().map_err(ApiError::bad)?,
            None => {
                let folder = app.folder(&app.host.workspace(&id)?)?;
                app.host.lakeview_for(&id, &app.overrides(&id, &folder)?)?
            }
        };
        let (steps, anew) = match request.step_numbers {
            Some(steps) => (steps, true),
            None => (app.host.finished_steps(&id)?, false),
        };
        Ok(Self { app: app.clone(), id, lakeview, live, steps, anew, keep: request.update_trajectory })
    }

    /// An open session has one at a time of itself; the others are written to one after the other.
    async fn alone(&self) -> Option<tokio::sync::MutexGuard<'_, ()>> {
        match self.live {
            Some(_) => None,
            None => Some(self.app.lakeview.lock().await),
        }
    }

    async fn step(&self, number: u32, cancel: &CancellationToken) -> Result<StepSummary, StepFailure> {
        let keep = match (&self.live, self.keep) {
            (_, false) => Keep::Nowhere,
            (Some(live), true) => Keep::Session(live.handle()),
            (None, true) => Keep::Journal,
        };
        let (host, anew) = (&self.app.host, self.anew);
        match host.summarise_step(&self.id, &self.lakeview, number, anew, keep, cancel).await {
            Ok(StepSummarised { task, details, tags, .. }) => {
                Ok(StepSummary { step_number: number, task, details, tags })
            }
            Err(message) => Err(StepFailure { step_number: number, message }),
        }
    }

    /// The file of the run tells it too.
    fn finish(&self) {
        if self.keep {
            let _ = blocking(|| self.app.host.write_trajectory_file(&self.id));
        }
    }
}

fn session(app: &App, identity: &Identity, request: &SummaryRequest) -> Result<SessionId, ApiError> {
    let named = match &request.trajectory_file {
        None => None,
        Some(file) => {
            admin(identity, "trajectory_file")?;
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
    let wrong = || ApiError::not_found("That is no trajectory file of this server.");
    let ours = app.host.trajectories().canonicalize().map_err(|_| wrong())?;
    let file = file.canonicalize().map_err(|_| wrong())?;
    let stem = file.file_stem().and_then(|stem| stem.to_str()).ok_or_else(wrong)?;
    if file.parent() != Some(&ours) {
        return Err(wrong());
    }
    // The file of a later run has its number behind the id.
    app.session(stem).or_else(|_| app.session(stem.rsplit_once('-').map_or(stem, |(id, _)| id)))
}

async fn summary(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Input(request): Input<SummaryRequest>,
) -> Answer<Summaries> {
    let work = blocking(|| Work::of(&app, &identity, request))?;
    // If the client goes away this future is dropped, and the question with it.
    let cancel = CancellationToken::new();
    let _one = work.alone().await;
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
    let work = blocking(|| Work::of(&app, &identity, request))?;
    let (sender, receiver) = mpsc::channel(8);
    tokio::spawn(async move {
        let cancel = CancellationToken::new();
        tokio::select! {
            () = tell(&work, &sender, &cancel) => {}
            // Nobody listens any more.
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

async fn tell(work: &Work, sender: &mpsc::Sender<(&'static str, Value)>, cancel: &CancellationToken) {
    let start = json!({ "session_id": work.id.as_str(), "step_numbers": work.steps });
    if sender.send(("start", start)).await.is_err() {
        return;
    }
    let _one = work.alone().await;
    let mut count = 0;
    for number in &work.steps {
        let told = match work.step(*number, cancel).await {
            Ok(summary) => {
                count += 1;
                ("lakeview_step", json!(summary))
            }
            Err(failure) => ("error", json!(failure)),
        };
        if sender.send(told).await.is_err() {
            return;
        }
    }
    work.finish();
    let _ = sender.send(("end", json!({ "count": count }))).await;
}
