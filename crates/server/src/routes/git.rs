//! Git of a folder, with ai-ide's names and shapes. Nothing is staged or committed unless a request says so.

use axum::Extension;
use axum::extract::State;
use lathe_host::RemovedItem;
use lathe_workbench::{CommitWish, GitCommit, GitPlace, GitStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::workplace::Workplace;
use crate::access::{Identity, Role};
use crate::api::{Api, Endpoint, Exact, ExactResult, Input};
use crate::app::App;
use crate::error::ApiError;

#[derive(Debug, Deserialize, JsonSchema)]
struct DiffRequest {
    #[serde(flatten)]
    place: Workplace,
    /// One file; all if left out.
    #[serde(default)]
    path: Option<String>,
    #[serde(default)]
    context_lines: Option<u32>,
    /// The staged content instead of the files.
    #[serde(default)]
    staged: Option<bool>,
    /// Returned unchanged.
    #[serde(default)]
    request_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Diff {
    diff: String,
    request_id: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ShowRequest {
    #[serde(flatten)]
    place: Workplace,
    path: String,
    /// A commit, branch or tag; `HEAD` if left out.
    #[serde(default)]
    revision: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FileAtRevision {
    content: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FilesRequest {
    #[serde(flatten)]
    place: Workplace,
    files: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct GitDone {
    success: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CheckedOut {
    success: bool,
    /// The files before; each can be restored.
    removed: Vec<RemovedItem>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CommitRequest {
    #[serde(flatten)]
    place: Workplace,
    message: String,
    #[serde(default)]
    author_name: Option<String>,
    #[serde(default)]
    author_email: Option<String>,
    /// Run the hooks of the repository (admin).
    #[serde(default)]
    run_hooks: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Committed {
    success: bool,
    hash: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct LogRequest {
    #[serde(flatten)]
    place: Workplace,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    offset: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Log {
    commits: Vec<GitCommit>,
}

pub(crate) fn add(api: &mut Api) {
    let look = |path, about| Endpoint::post(path, about).role(Role::Viewer).costly();
    let act = |path, about| Endpoint::post(path, about).costly();
    api.add(
        look("/api/git/status", "Changes since the last commit").body::<Workplace>().response::<GitStatus>(),
        status,
    )
    .add(
        look("/api/git/diff", "The difference to the last commit").body::<DiffRequest>().response::<Diff>(),
        diff,
    )
    .add(
        look("/api/git/show", "A file as it is in a commit")
            .body::<ShowRequest>()
            .response::<FileAtRevision>(),
        show,
    )
    .add(look("/api/git/log", "Commits, newest first").body::<LogRequest>().response::<Log>(), log)
    .add(act("/api/git/add", "Stage files").body::<FilesRequest>().response::<GitDone>(), stage)
    .add(
        act("/api/git/reset", "Take files out of what is staged")
            .body::<FilesRequest>()
            .response::<GitDone>(),
        reset,
    )
    .add(
        act("/api/git/checkout", "Restore files to git's version; the replaced files are kept")
            .body::<FilesRequest>()
            .response::<CheckedOut>(),
        checkout,
    )
    .add(
        act("/api/git/commit", "Commit what is staged").body::<CommitRequest>().response::<Committed>(),
        commit,
    )
    .add(act("/api/git/init", "Make a folder a repository").body::<Workplace>().response::<GitDone>(), init);
}

async fn place(app: &App, asked: &Workplace) -> Result<GitPlace, ApiError> {
    Ok(app.workbench.git(&asked.folder(app)?, &app.roots).await?)
}

async fn status(State(app): State<App>, Input(asked): Input<Workplace>) -> ExactResult<GitStatus> {
    Ok(Exact(place(&app, &asked).await?.status().await?))
}

async fn diff(State(app): State<App>, Input(asked): Input<DiffRequest>) -> ExactResult<Diff> {
    let git = place(&app, &asked.place).await?;
    let context = asked.context_lines.unwrap_or(3);
    let path = asked.path.as_deref().filter(|path| !path.is_empty());
    let diff = git.diff(path, context, asked.staged.unwrap_or(false)).await?;
    Ok(Exact(Diff { diff, request_id: asked.request_id }))
}

async fn show(State(app): State<App>, Input(asked): Input<ShowRequest>) -> ExactResult<FileAtRevision> {
    let git = place(&app, &asked.place).await?;
    let content = git.show(&asked.path, asked.revision.as_deref().unwrap_or("HEAD")).await?;
    Ok(Exact(FileAtRevision { content }))
}

async fn log(State(app): State<App>, Input(asked): Input<LogRequest>) -> ExactResult<Log> {
    let git = place(&app, &asked.place).await?;
    Ok(Exact(Log { commits: git.log(asked.limit.unwrap_or(10), asked.offset.unwrap_or(0)).await? }))
}

async fn stage(State(app): State<App>, Input(asked): Input<FilesRequest>) -> ExactResult<GitDone> {
    place(&app, &asked.place).await?.add(&asked.files).await?;
    Ok(Exact(GitDone { success: true }))
}

async fn reset(State(app): State<App>, Input(asked): Input<FilesRequest>) -> ExactResult<GitDone> {
    place(&app, &asked.place).await?.reset(&asked.files).await?;
    Ok(Exact(GitDone { success: true }))
}

async fn checkout(State(app): State<App>, Input(asked): Input<FilesRequest>) -> ExactResult<CheckedOut> {
    let removed = place(&app, &asked.place).await?.checkout(&asked.files).await?;
    Ok(Exact(CheckedOut { success: true, removed }))
}

async fn commit(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Input(asked): Input<CommitRequest>,
) -> ExactResult<Committed> {
    let hooks = asked.run_hooks.unwrap_or(false);
    if hooks && identity.role < Role::Admin {
        return Err(ApiError::forbidden("`run_hooks` is for tokens with the role admin."));
    }
    let author = match (asked.author_name, asked.author_email) {
        (Some(name), Some(email)) => Some((name, email)),
        (None, None) => None,
        _ => return Err(ApiError::bad("Give `author_name` and `author_email`, or neither.")),
    };
    let git = place(&app, &asked.place).await?;
    let hash = git.commit(&CommitWish { message: asked.message, author, hooks }).await?;
    Ok(Exact(Committed { success: true, hash }))
}

async fn init(State(app): State<App>, Input(asked): Input<Workplace>) -> ExactResult<GitDone> {
    app.workbench.git_init(&asked.folder(&app)?, &app.roots).await?;
    Ok(Exact(GitDone { success: true }))
}
