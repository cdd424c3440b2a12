//! Review of edits: hunks accepted or rejected, in a session that is open here or not.

use axum::Extension;
use axum::extract::State;
use lathe_host::{FileReview, HostError, ReviewOutcome, ReviewWish, blocking, blocking_in_turn};
use lathe_protocol::{CommandBody, Event, Fact, ReceiptAnswer, RunNo, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Identity;
use crate::api::{Api, Endpoint, Exact, ExactResult, Input, PathOf, QueryOf};
use crate::app::App;
use crate::error::ApiError;
use crate::live::{ClaimedCommand, SessionWork};

/// Hunks that one request may name.
const HUNKS_MAX: usize = 1_000;

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct RunQuery {
    /// Only the changes of this run.
    #[serde(default)]
    run: Option<u32>,
}

/// The edits: hunks by their ids, those of a file, or all.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct ChosenEdits {
    #[serde(default)]
    hunks: Vec<String>,
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    all: bool,
    /// The run that was named when the edits were listed.
    #[serde(default)]
    run: Option<u32>,
    /// A repeated request with the same id has no further effect.
    #[serde(default)]
    id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReviewDone {
    success: bool,
    /// The edits as they are now.
    files: Vec<FileReview>,
}

pub(crate) fn add(api: &mut Api) {
    api.add(
        Endpoint::get("/api/sessions/{id}/changes", "The edits of a session, hunk by hunk")
            .query::<RunQuery>()
            .response::<Vec<FileReview>>(),
        changes,
    )
    .add(
        Endpoint::post("/api/sessions/{id}/changes/accept", "Accept edits")
            .body::<ChosenEdits>()
            .response::<ReviewDone>(),
        accept,
    )
    .add(
        Endpoint::post("/api/sessions/{id}/changes/reject", "Reject edits: take them out of their files")
            .body::<ChosenEdits>()
            .response::<ReviewDone>(),
        reject,
    );
}

async fn changes(
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    QueryOf(asked): QueryOf<RunQuery>,
) -> ExactResult<Vec<FileReview>> {
    let id = app.session(&id)?;
    Ok(Exact(blocking(|| edits(&app, &id, asked.run.map(RunNo)))?))
}

/// The edits of a session or of one of its runs. A run that a rewind dropped may have left some.
fn edits(app: &App, id: &SessionId, run: Option<RunNo>) -> Result<Vec<FileReview>, ApiError> {
    let files = app.host.archive().edits(id, run)?;
    let began = |event: &Event, run| event.place.run == run && matches!(event.fact, Fact::TaskGiven(_));
    if let (Some(run), true) = (run, files.is_empty())
        && !app.host.archive().events(id)?.iter().any(|event| began(event, run))
    {
        return Err(HostError::NoSuchRun { id: id.clone(), run }.into());
    }
    Ok(files)
}

async fn accept(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    PathOf(id): PathOf<String>,
    Input(chosen): Input<ChosenEdits>,
) -> ExactResult<ReviewDone> {
    let (id, named, wish) = (app.session(&id)?, chosen.id.clone(), selection(chosen)?);
    let (claimed, reviewed) = blocking(|| {
        app.may(&identity, &id, SessionWork::Drive)?;
        let claimed = app.claim(&identity, &id, named.as_deref(), &format!("accept {wish:?}"))?;
        if claimed.is_known {
            return Ok((claimed, Vec::new()));
        }
        edits(&app, &id, wish.run)?;
        Ok::<_, ApiError>((claimed, app.host.archive().accepted_edits(&id, &wish)?))
    })?;
    record(&app, &identity, &id, &claimed, reviewed, wish.run).await
}

async fn reject(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    PathOf(id): PathOf<String>,
    Input(chosen): Input<ChosenEdits>,
) -> ExactResult<ReviewDone> {
    let (id, named, wish) = (app.session(&id)?, chosen.id.clone(), selection(chosen)?);
    // A session that another process works on cannot be written: then its files are not touched either.
    if app.sessions.get(&id).is_none() && app.host.archive().is_running(&id) {
        return Err(ApiError::conflict("Another process works on this session."));
    }
    let (claimed, reviewed) = blocking_in_turn(|| {
        app.may(&identity, &id, SessionWork::Drive)?;
        let claimed = app.claim(&identity, &id, named.as_deref(), &format!("reject {wish:?}"))?;
        if claimed.is_known {
            return Ok((claimed, Vec::new()));
        }
        edits(&app, &id, wish.run)?;
        Ok::<_, ApiError>((claimed, app.host.archive().reject_edits(&id, &wish)?))
    })
    .await?;
    record(&app, &identity, &id, &claimed, reviewed, wish.run).await
}

fn selection(chosen: ChosenEdits) -> Result<ReviewWish, ApiError> {
    if chosen.hunks.len() > HUNKS_MAX {
        return Err(ApiError::unprocessable(format!("`hunks` may have {HUNKS_MAX} names.")));
    }
    let given = [!chosen.hunks.is_empty(), chosen.path.is_some(), chosen.all];
    match given.into_iter().filter(|given| *given).count() {
        0 => return Err(ApiError::bad("Say which edits: `hunks`, `path` or `all`.")),
        1 => {}
        // A request that names a file does not mean all files.
        _ => return Err(ApiError::unprocessable("Say only one of `hunks`, `path` and `all`.")),
    }
    Ok(ReviewWish { hunks: chosen.hunks, path: chosen.path, all: chosen.all, run: chosen.run.map(RunNo) })
}

/// Through the session if it is open, so that all clients see it at once; otherwise into its journal.
async fn record(
    app: &App,
    identity: &Identity,
    id: &SessionId,
    claimed: &ClaimedCommand,
    mut reviewed: Vec<ReviewOutcome>,
    run: Option<RunNo>,
) -> ExactResult<ReviewDone> {
    for (number, (word, _)) in reviewed.iter_mut().enumerate() {
        word.command = Some(claimed.sub_id(number));
    }
    match app.sessions.get(id) {
        _ if claimed.is_known => {}
        Some(live) => {
            for (number, (reviewed, changes)) in reviewed.into_iter().enumerate() {
                let body = CommandBody::Review { reviewed, changes };
                let receipt = live.submit_claimed(identity, claimed.sub_id(number), body).await?;
                if let ReceiptAnswer::Refused { reason } = receipt.answer {
                    return Err(ApiError::conflict(reason));
                }
            }
        }
        None => blocking(|| app.host.archive().record_review(id, reviewed))?,
    }
    let files = blocking(|| app.host.archive().edits(id, run))?;
    Ok(Exact(ReviewDone { success: true, files }))
}
