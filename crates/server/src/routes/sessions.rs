//! Sessions: listed, searched, named, forked, taken back, exported.

use axum::Json;
use axum::extract::State;
use lathe_host::Summary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Answer, Api, Asked, Endpoint, Named};
use crate::app::App;

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Search {
    /// Words that the title or the folder must hold.
    #[serde(default)]
    q: Option<String>,
    /// At most so many, the newest first.
    #[serde(default)]
    limit: Option<u32>,
}

/// One session, as a list shows it.
#[derive(Debug, Serialize, JsonSchema)]
struct Row {
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
    /// Whether it is open in this server, and how many clients are attached.
    open: bool,
    clients: usize,
}

pub(crate) fn add(api: &mut Api) {
    api.add(
        Endpoint::get("/api/sessions", "The sessions, newest first").query::<Search>().answer::<Vec<Row>>(),
        list,
    )
    .add(Endpoint::get("/api/sessions/{id}", "One session").answer::<Row>(), get);
}

fn row(app: &App, summary: Summary) -> Row {
    let live = app.sessions.get(&summary.id);
    Row {
        id: summary.id.to_string(),
        title: summary.title,
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
    }
}

/// The sessions in folders that this server serves.
fn served(app: &App) -> Result<Vec<Summary>, crate::error::ApiError> {
    let inside = |summary: &Summary| {
        app.roots.iter().any(|root| std::path::Path::new(&summary.workspace).starts_with(root))
    };
    Ok(app.host.sessions()?.into_iter().filter(inside).collect())
}

async fn list(State(app): State<App>, Asked(search): Asked<Search>) -> Answer<Vec<Row>> {
    let words: Vec<String> =
        search.q.unwrap_or_default().to_lowercase().split_whitespace().map(str::to_owned).collect();
    let most = search.limit.unwrap_or(1000) as usize;
    let found = tokio::task::block_in_place(|| served(&app))?;
    let fits = |summary: &Summary| {
        let text = format!("{} {}", summary.title, summary.workspace).to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    Ok(Json(found.into_iter().filter(fits).take(most).map(|summary| row(&app, summary)).collect()))
}

async fn get(State(app): State<App>, Named(id): Named<String>) -> Answer<Row> {
    let id = app.session(&id)?;
    let found = tokio::task::block_in_place(|| served(&app))?.into_iter().find(|summary| summary.id == id);
    let found = found.ok_or_else(|| crate::error::ApiError::not_found("Session not found."))?;
    Ok(Json(row(&app, found)))
}
