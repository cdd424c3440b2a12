//! Sessions: listed, searched, named, forked, rewound, exported.

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use lathe_host::{RemovedItem, RewindAction, RewindReport, RewindScope, blocking, blocking_in_turn};
use lathe_protocol::{
    CommandBody, CommandId, Digest, Forked, ReceiptAnswer, RunNo, SessionId, SessionSummary, StepNo,
};
use lathe_views::{Language, Projector, masked_bytes, masked_file};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::access::Identity;
use crate::api::{Api, ApiResult, Endpoint, Exact, ExactResult, Input, Json, PathOf, QueryOf};
use crate::app::App;
use crate::error::ApiError;
use crate::live::SessionWork;

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct SessionSearch {
    /// Words that the title or the folder must hold.
    #[serde(default)]
    q: Option<String>,
    /// The largest number of sessions in the list, newest first.
    #[serde(default)]
    limit: Option<u32>,
}

/// One session, as a list shows it.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionRow {
    id: String,
    title: String,
    created_at: String,
    updated_at: String,
    state: &'static str,
    model: String,
    workspace: String,
    steps: u32,
    input_tokens: u64,
    output_tokens: u64,
    /// True if it is open in this server; and the number of attached clients.
    open: bool,
    clients: usize,
    /// The reason why the journal cannot be read, if a cheap check finds that it is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    damaged: Option<String>,
    /// The origin of a fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    forked_from: Option<ForkOrigin>,
}

/// The session that a fork was made from, and the last step that it took over.
#[derive(Debug, Serialize, JsonSchema)]
struct ForkOrigin {
    id: String,
    session_step: u32,
}

impl From<Forked> for ForkOrigin {
    fn from(forked: Forked) -> Self {
        Self { id: forked.from.to_string(), session_step: forked.at.0 }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RenameRequest {
    title: String,
    /// A repeated request with the same id has no further effect.
    #[serde(default)]
    id: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct ForkRequest {
    /// The last step that is taken over, counted through the whole session (`session_step`); all if left out.
    #[serde(default)]
    at: Option<u32>,
    /// A repeated request with the same id makes no second fork.
    #[serde(default)]
    id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CreatedSession {
    id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RewindRequest {
    /// The step to rewind to the end of, counted through the whole session (`session_step`); 0 is before the first.
    to: u32,
    /// Rewind the files too, not only the conversation.
    #[serde(default)]
    files: bool,
    /// Only report what would be done.
    #[serde(default)]
    preview: bool,
    /// A repeated request with the same id has no further effect.
    #[serde(default)]
    id: Option<String>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct UndoRequest {
    /// Only report what would be done.
    #[serde(default)]
    preview: bool,
    /// A repeated request with the same id has no further effect.
    #[serde(default)]
    id: Option<String>,
}

/// The result of going back, or of its preview.
#[derive(Debug, Serialize, JsonSchema)]
struct RewindResult {
    about: String,
    restored: Vec<PathAct>,
    conflicts: Vec<PathAct>,
    /// Paths that another program or user wrote while a line ran: there was nothing to undo.
    others: Vec<String>,
    not_undoable: Vec<String>,
    steps: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct PathAct {
    path: String,
    act: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Message {
    id: String,
    role: String,
    content: String,
    /// The step, counted from the beginning of its run.
    step: Option<u64>,
    /// The same step, counted through the whole session: the number that `rewind` and `fork` take.
    session_step: Option<u64>,
    /// The whole bubble.
    meta: Value,
    created_at: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct ExportQuery {
    #[serde(default)]
    format: Option<Format>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Format {
    #[default]
    Jsonl,
    Trajectory,
    Html,
    Text,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct RunOfSession {
    #[serde(default)]
    run: Option<u32>,
}

pub(crate) fn add(api: &mut Api) {
    api.add(
        Endpoint::get("/api/sessions", "The sessions, newest first")
            .query::<SessionSearch>()
            .response::<Vec<SessionRow>>(),
        list,
    )
    .add(Endpoint::get("/api/sessions/{id}", "One session").response::<SessionRow>(), get)
    .add(
        Endpoint::delete("/api/sessions/{id}", "Remove a session; it can be restored")
            .response::<RemovedItem>(),
        remove,
    )
    .add(
        Endpoint::post("/api/sessions/{id}/restore", "Restore a removed session")
            .response::<CreatedSession>(),
        restore,
    )
    .add(
        Endpoint::post("/api/sessions/{id}/rename", "Give a session a title")
            .body::<RenameRequest>()
            .response::<SessionRow>(),
        rename,
    )
    .add(
        Endpoint::post("/api/sessions/{id}/fork", "Fork a session: make a new one that begins like it")
            .body::<ForkRequest>()
            .response::<CreatedSession>(),
        fork,
    )
    .add(
        Endpoint::post("/api/sessions/{id}/rewind", "Rewind a session to the end of a step")
            .body::<RewindRequest>()
            .response::<RewindResult>(),
        rewind,
    )
    .add(
        Endpoint::post("/api/sessions/{id}/undo", "Undo the newest change")
            .body::<UndoRequest>()
            .response::<RewindResult>(),
        undo,
    )
    .add(
        Endpoint::get("/api/sessions/{id}/messages", "The bubbles of a session in their last form")
            .response::<Vec<Message>>(),
        messages,
    )
    .add(
        Endpoint::get("/api/sessions/{id}/export", "A session as a file")
            .query::<ExportQuery>()
            .returns("application/octet-stream"),
        export,
    )
    .add(
        Endpoint::get(
            "/api/sessions/{id}/trajectory",
            "The trajectory of a run; of the last run if none is named",
        )
        .query::<RunOfSession>(),
        trajectory,
    )
    .add(
        Endpoint::get("/api/sessions/{id}/blob/{digest}", "Bytes that an event of the session names")
            .returns("application/octet-stream"),
        blob,
    );
}

fn session_row(app: &App, summary: SessionSummary) -> SessionRow {
    let live = app.sessions.get(&summary.id);
    SessionRow {
        damaged: app.host.archive().damage(&summary.id),
        id: summary.id.to_string(),
        title: Projector::shown(&summary.title).into_owned(),
        created_at: summary.created.to_string(),
        updated_at: summary.updated.to_string(),
        state: summary.state.as_str(),
        model: summary.model,
        workspace: summary.workspace,
        steps: summary.steps,
        input_tokens: summary.input_tokens,
        output_tokens: summary.output_tokens,
        open: live.is_some(),
        clients: live.map_or(0, |live| live.hub.listeners()),
        forked_from: summary.forked.map(ForkOrigin::from),
    }
}

/// The sessions in folders that this server serves.
fn served(app: &App) -> Result<Vec<SessionSummary>, ApiError> {
    let inside = |summary: &SessionSummary| {
        app.roots.iter().any(|root| std::path::Path::new(&summary.workspace).starts_with(root))
    };
    let archive = app.host.archive();
    let mut found = archive.sessions()?;
    // Of a journal that cannot be read the index still knows something.
    let damaged: Vec<SessionId> = archive.unreadable(&found).into_iter().map(|(id, _)| id).collect();
    if !damaged.is_empty() {
        found.extend(archive.indexed_summaries(&damaged));
        found.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| b.id.cmp(&a.id)));
    }
    Ok(found.into_iter().filter(inside).collect())
}

async fn list(State(app): State<App>, QueryOf(search): QueryOf<SessionSearch>) -> ApiResult<Vec<SessionRow>> {
    let words: Vec<String> =
        search.q.unwrap_or_default().to_lowercase().split_whitespace().map(str::to_owned).collect();
    let most = search.limit.unwrap_or(1000) as usize;
    let found = blocking(|| served(&app))?;
    let fits = |summary: &SessionSummary| {
        // The search covers only what is shown: a client that may not read a secret must not find it out letter by
        // letter.
        let title = Projector::shown(&summary.title);
        let text = format!("{title} {}", summary.workspace).to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    let fitting: Vec<SessionSummary> = found.into_iter().filter(fits).take(most).collect();
    Ok(Json(blocking(|| fitting.into_iter().map(|summary| session_row(&app, summary)).collect())))
}

async fn get(State(app): State<App>, PathOf(id): PathOf<String>) -> ApiResult<SessionRow> {
    let id = app.session(&id)?;
    let found = blocking(|| served(&app))?.into_iter().find(|summary| summary.id == id);
    // It was found a moment ago, so if it is not in the list it cannot be read.
    let row = found.map(|found| blocking(|| session_row(&app, found)));
    row.filter(|row| row.damaged.is_none()).map(Json).ok_or_else(|| app.unreadable(&id))
}

/// Closes a session that is open here, so that its journal can be written. Refused while a run is under way.
async fn close_for_writing(app: &App, id: &SessionId) -> Result<(), ApiError> {
    if let Some(live) = app.sessions.get(id) {
        // A client may know the end of a run before the hub has come to it.
        if let Ok(last) = blocking(|| app.host.archive().last_seq(id)) {
            live.hub.wait_until_sent(last).await;
        }
        if live.hub.is_running() {
            return Err(ApiError::conflict("A run is under way in this session; cancel it first."));
        }
        app.sessions.close(id).await?;
    }
    Ok(())
}

async fn rename(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    PathOf(id): PathOf<String>,
    Input(asked): Input<RenameRequest>,
) -> ApiResult<SessionRow> {
    let id = app.session(&id)?;
    let title: String = asked.title.split_whitespace().collect::<Vec<_>>().join(" ");
    if title.is_empty() || title.chars().count() > 200 {
        return Err(ApiError::bad("A title has between 1 and 200 characters."));
    }
    let what = format!("rename {title}");
    let claimed = blocking(|| -> Result<_, ApiError> {
        app.may(&identity, &id, SessionWork::Drive)?;
        app.claim(&identity, &id, asked.id.as_deref(), &what)
    })?;
    match app.sessions.get(&id) {
        _ if claimed.is_known => {}
        Some(live) => {
            let body = CommandBody::Rename { title };
            let answer = live.submit_claimed(&identity, claimed.id, body).await?.answer;
            if let ReceiptAnswer::Refused { reason } = answer {
                return Err(ApiError::conflict(reason));
            }
        }
        None => blocking(|| app.host.archive().rename(&id, &title, claimed.id))?,
    }
    blocking(|| app.host.archive().update_index(&id));
    get(State(app), PathOf(id.to_string())).await
}

async fn fork(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    PathOf(id): PathOf<String>,
    Input(asked): Input<ForkRequest>,
) -> ApiResult<CreatedSession> {
    let id = app.session(&id)?;
    // A fork has the mode and the model of its origin.
    let made = blocking(|| -> Result<SessionId, ApiError> {
        app.may(&identity, &id, SessionWork::Drive)?;
        let command = match &asked.id {
            Some(_) => {
                Some(app.claim(&identity, &id, asked.id.as_deref(), &format!("fork {:?}", asked.at))?.id)
            }
            None => None,
        };
        Ok(app.host.archive().fork(&id, asked.at.map(StepNo), command)?)
    })?;
    Ok(Json(CreatedSession { id: made.to_string() }))
}

async fn rewind(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    PathOf(id): PathOf<String>,
    Input(asked): Input<RewindRequest>,
) -> ApiResult<RewindResult> {
    let id = app.session(&id)?;
    let what = if asked.files { RewindScope::Both } else { RewindScope::Conversation };
    let named = UndoCommand { id: asked.id.as_deref(), what: format!("rewind {} {what:?}", asked.to) };
    let (action, command) = rewind_action(&app, &identity, &id, asked.preview, named).await?;
    let done =
        blocking_in_turn(|| app.host.archive().rewind(&id, StepNo(asked.to), what, action, command)).await?;
    Ok(Json(rewind_result(done)))
}

async fn undo(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    PathOf(id): PathOf<String>,
    Input(asked): Input<UndoRequest>,
) -> ApiResult<RewindResult> {
    let id = app.session(&id)?;
    let named = UndoCommand { id: asked.id.as_deref(), what: "undo".to_owned() };
    let (action, command) = rewind_action(&app, &identity, &id, asked.preview, named).await?;
    let done = blocking_in_turn(|| app.host.archive().undo(&id, action, command)).await?;
    Ok(Json(rewind_result(done)))
}

/// A command to undo something, with the id that its client gave it.
struct UndoCommand<'a> {
    id: Option<&'a str>,
    what: String,
}

/// Done or only shown, and the id of the command. Undoing a session's work needs the role that the work needs.
async fn rewind_action(
    app: &App,
    identity: &Identity,
    id: &SessionId,
    preview: bool,
    command: UndoCommand<'_>,
) -> Result<(RewindAction, Option<CommandId>), ApiError> {
    if preview {
        return Ok((RewindAction::Preview, None));
    }
    let claimed = blocking(|| -> Result<_, ApiError> {
        app.may(identity, id, SessionWork::Drive)?;
        match command.id {
            Some(named) => Ok(Some(app.claim(identity, id, Some(named), &command.what)?.id)),
            None => Ok(None),
        }
    })?;
    close_for_writing(app, id).await?;
    Ok((RewindAction::Apply, claimed))
}

fn rewind_result(report: RewindReport) -> RewindResult {
    let acts = |acts: Vec<lathe_host::PathAct>| {
        acts.into_iter().map(|act| PathAct { path: act.path, act: act.act }).collect()
    };
    RewindResult {
        about: report.about,
        restored: acts(report.restored),
        conflicts: acts(report.conflicts),
        others: report.others,
        not_undoable: report.not_undoable,
        steps: report.steps,
    }
}

async fn remove(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    PathOf(id): PathOf<String>,
) -> ApiResult<RemovedItem> {
    let id = app.session(&id)?;
    blocking(|| app.may(&identity, &id, SessionWork::Drive))?;
    close_for_writing(&app, &id).await?;
    Ok(Json(blocking(|| app.host.archive().remove(&id))?))
}

async fn restore(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    PathOf(id): PathOf<String>,
) -> ApiResult<CreatedSession> {
    let removed = blocking(|| app.host.archive().removed_sessions());
    let is_served = |kept: &&RemovedItem| {
        app.roots.iter().any(|root| std::path::Path::new(&kept.workspace).starts_with(root))
    };
    let kept = removed.iter().filter(is_served).find(|kept| kept.path == id);
    let kept = kept.ok_or_else(|| ApiError::not_found("No session of that id was removed."))?;
    blocking(|| -> Result<(), ApiError> {
        app.may_removed(&identity, kept, SessionWork::Drive)?;
        app.host.archive().restore_session(&kept.id)?;
        Ok(())
    })?;
    Ok(Json(CreatedSession { id: kept.path.clone() }))
}

/// The frames that bubbles are made from are masked already.
async fn messages(State(app): State<App>, PathOf(id): PathOf<String>) -> ExactResult<Vec<Message>> {
    let id = app.session(&id)?;
    let (bubbles, _) = blocking(|| crate::page::bubbles(&app, &id))?;
    let text = |bubble: &Value, key: &str| bubble[key].as_str().unwrap_or_default().to_owned();
    let messages = bubbles.into_iter().map(|bubble| Message {
        id: text(&bubble, "key"),
        role: text(&bubble, "role"),
        content: text(&bubble, "content"),
        created_at: text(&bubble, "timestamp"),
        step: bubble["step"].as_u64(),
        session_step: bubble["session_step"].as_u64(),
        meta: bubble,
    });
    Ok(Exact(messages.collect()))
}

async fn export(
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    QueryOf(asked): QueryOf<ExportQuery>,
) -> Result<Response, ApiError> {
    let id = app.session(&id)?;
    let (ending, text) = blocking(|| -> Result<_, ApiError> {
        Ok(match asked.format.unwrap_or_default() {
            Format::Jsonl => ("jsonl", masked_file(&app.host.archive().json_lines(&id)?, true)),
            Format::Trajectory => ("json", masked_file(&app.host.archive().trajectory(&id)?, false)),
            Format::Html => ("html", app.host.archive().html(&id, Language::English)?),
            Format::Text => {
                let (bubbles, _) = crate::page::bubbles(&app, &id)?;
                let lines = bubbles.iter().map(|bubble| bubble["content"].as_str().unwrap_or_default());
                // Safe for a terminal: printing the file runs nothing that a model wrote.
                ("txt", lines.fold(String::new(), |text, line| text + &lathe_protocol::clean(line) + "\n"))
            }
        })
    })?;
    Ok(attachment(&format!("{id}.{ending}"), text.into_bytes()))
}

/// A file to save, which the browser must not show as a page of this origin.
fn attachment(name: &str, bytes: Vec<u8>) -> Response {
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_DISPOSITION, disposition.unwrap_or(HeaderValue::from_static("attachment"))),
    ];
    (headers, bytes).into_response()
}

async fn trajectory(
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    QueryOf(asked): QueryOf<RunOfSession>,
) -> Result<Response, ApiError> {
    let id = app.session(&id)?;
    let text = blocking(|| -> Result<_, ApiError> {
        Ok(masked_file(&app.host.archive().trajectory_of(&id, asked.run.map(RunNo))?, false))
    })?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response())
}

async fn blob(
    State(app): State<App>,
    PathOf((id, digest)): PathOf<(String, String)>,
) -> Result<Response, ApiError> {
    let id = app.session(&id)?;
    let digest = Digest::parse(&digest).ok_or_else(|| ApiError::bad("A digest has 64 hex digits."))?;
    let found = blocking(|| app.host.archive().session_blob(&id, &digest))?;
    let bytes = found.ok_or_else(|| ApiError::not_found("No event of this session names these bytes."))?;
    Ok(attachment(digest.as_str(), masked_bytes(bytes)))
}
