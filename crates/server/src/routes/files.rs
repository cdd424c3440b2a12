//! Files: listed, read, saved, moved, removed and restored, uploaded and downloaded, watched, searched.
//!
//! A client names a folder below the roots of the server, or a session, and paths inside it. The folder is the wall:
//! every path goes through the guard that the tools have.

use std::convert::Infallible;
use std::time::Duration;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt};
use lathe_host::{RemovedItem, blocking};
use lathe_workbench::{Browser, Download, FileContent, Listing, Saved, SearchFound, SearchWish, UPLOAD_MAX};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::multipart::{Parts, Pieces};
use super::workplace::Workplace;
use crate::access::{Identity, Share, WATCHES};
use crate::api::{Api, Endpoint, Exact, ExactResult, Input, PathOf, QueryOf};
use crate::app::App;
use crate::error::ApiError;

/// The time for which an upload may stall.
const PIECE_TIME: Duration = Duration::from_secs(30);

/// The place of a request.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct FolderQuery {
    #[serde(flatten)]
    place: Workplace,
    /// The folder inside, relative to the workspace.
    #[serde(default)]
    relative_dir: Option<String>,
    /// Everything below, this many levels deep, instead of one level.
    #[serde(default)]
    depth: Option<u32>,
}

/// A file or folder as a whole.
#[derive(Debug, Deserialize, JsonSchema)]
struct FilePath {
    #[serde(flatten)]
    place: Workplace,
    /// Relative to the workspace, or absolute.
    file: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FileRange {
    #[serde(flatten)]
    place: Workplace,
    /// Relative to the workspace, or absolute.
    file: String,
    /// The first byte to read.
    #[serde(default)]
    offset: Option<u64>,
    /// The number of bytes to read.
    #[serde(default)]
    length: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Save {
    #[serde(flatten)]
    place: Workplace,
    file: String,
    content: String,
    /// The version that the client read. Without it the file must be new.
    #[serde(default)]
    version: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Move {
    #[serde(flatten)]
    place: Workplace,
    file: String,
    /// The new path; nothing may exist there.
    to: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct NewFolder {
    #[serde(flatten)]
    place: Workplace,
    folder: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Restore {
    #[serde(flatten)]
    place: Workplace,
    /// The id that was returned when the file was removed.
    id: String,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct UploadTo {
    #[serde(flatten)]
    place: Workplace,
    /// The path of the new file. With a form it may be left out: then it is the name in the form, in the workspace.
    #[serde(default)]
    relative_path: Option<String>,
    /// Whatever exists there is moved to where it can be restored from. Without this nothing may exist there.
    #[serde(default)]
    overwrite: Option<bool>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FileSearch {
    #[serde(flatten)]
    place: Workplace,
    q: String,
    /// Search the names of files instead of their text.
    #[serde(default)]
    names: Option<bool>,
    #[serde(default)]
    regex: Option<bool>,
    #[serde(default)]
    case_sensitive: Option<bool>,
    #[serde(default)]
    relative_dir: Option<String>,
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct FolderSummary {
    #[serde(default)]
    path: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FileDone {
    success: bool,
    path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Deleted {
    success: bool,
    path: String,
    /// The id to restore it by.
    quarantine: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Uploaded {
    path: String,
    filename: String,
    size: u64,
    version: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionFiles {
    files: Vec<SessionFile>,
    path: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionFile {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

pub(crate) fn add(api: &mut Api) {
    for path in ["/api/files", "/files/list"] {
        let row = Endpoint::get(path, "Names in a folder").costly();
        api.add(row.query::<FolderQuery>().response::<Listing>(), list);
    }
    for path in ["/api/file", "/files/read"] {
        api.add(
            Endpoint::get(path, "The content of a file").query::<FileRange>().response::<FileContent>(),
            read,
        );
    }
    api.add(
        Endpoint::get("/workspaces", "The folders that are served").response::<Vec<String>>(),
        workspaces,
    )
    .add(
        Endpoint::put("/api/file", "Save a file over the version that was read")
            .body::<Save>()
            .response::<Saved>(),
        save,
    )
    .add(Endpoint::post("/api/file", "Save a file, or create one").body::<Save>().response::<Saved>(), save)
    .add(
        Endpoint::delete("/api/file", "Remove a file or folder; it can be restored")
            .query::<FilePath>()
            .response::<Deleted>(),
        remove,
    )
    .add(
        Endpoint::post("/api/file/restore", "Restore a removed file or folder")
            .body::<Restore>()
            .response::<RemovedItem>(),
        restore,
    )
    .add(
        Endpoint::get("/api/files/removed", "Removed files and folders that can be restored")
            .costly()
            .query::<FolderQuery>()
            .response::<Vec<RemovedItem>>(),
        removed,
    )
    .add(Endpoint::post("/api/file/rename", "Rename or move").body::<Move>().response::<FileDone>(), rename)
    .add(
        Endpoint::post("/api/folder", "Create a folder").body::<NewFolder>().response::<FileDone>(),
        make_folder,
    )
    .add(
        Endpoint::post("/files/upload", "Upload a file, as the body or in a form")
            .query::<UploadTo>()
            .takes("application/octet-stream")
            .response::<Uploaded>(),
        upload,
    )
    .add(
        Endpoint::get("/api/file/download", "Download a file")
            .query::<FileRange>()
            .returns("application/octet-stream"),
        download,
    )
    .add(
        Endpoint::get("/api/files/search", "Text or names in a folder")
            .costly()
            .query::<FileSearch>()
            .response::<SearchFound>(),
        search,
    )
    .add(
        Endpoint::get("/api/files/watch", "Changes in a folder, as server-sent events")
            .query::<FolderQuery>()
            .returns("text/event-stream"),
        watch,
    )
    .add(
        Endpoint::get("/agent/session/{id}/files", "Names in a folder of a session")
            .costly()
            .query::<FolderSummary>()
            .response::<SessionFiles>(),
        session_files,
    );
}

fn browser(app: &App, place: &Workplace) -> Result<Browser, ApiError> {
    Ok(app.workbench.browse(&place.folder(app)?)?)
}

async fn workspaces(State(app): State<App>) -> Exact<Vec<String>> {
    Exact(app.roots.iter().map(|root| root.display().to_string()).collect())
}

async fn list(State(app): State<App>, QueryOf(asked): QueryOf<FolderQuery>) -> ExactResult<Listing> {
    let browser = browser(&app, &asked.place)?;
    let inside = asked.relative_dir.unwrap_or_default();
    let listing = match asked.depth {
        None | Some(0) => browser.list(&inside).await?,
        depth => browser.tree(&inside, depth).await?,
    };
    Ok(Exact(listing))
}

async fn session_files(
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    QueryOf(asked): QueryOf<FolderSummary>,
) -> ExactResult<SessionFiles> {
    let browser = browser(&app, &Workplace::of_session(id))?;
    let listing = browser.list(asked.path.as_deref().unwrap_or_default()).await?;
    let files = listing.items.into_iter().map(|item| SessionFile { name: item.name, kind: item.kind });
    Ok(Exact(SessionFiles { files: files.collect(), path: listing.directory }))
}

async fn read(State(app): State<App>, QueryOf(asked): QueryOf<FileRange>) -> ExactResult<FileContent> {
    let browser = browser(&app, &asked.place)?;
    Ok(Exact(browser.read(&asked.file, asked.offset, asked.length).await?))
}

async fn save(State(app): State<App>, Input(save): Input<Save>) -> ExactResult<Saved> {
    let browser = browser(&app, &save.place)?;
    Ok(Exact(browser.write(&save.file, save.content, save.version.as_deref()).await?))
}

async fn remove(State(app): State<App>, QueryOf(asked): QueryOf<FilePath>) -> ExactResult<Deleted> {
    let browser = browser(&app, &asked.place)?;
    let kept = browser.remove(&asked.file).await?;
    Ok(Exact(Deleted { success: true, path: kept.path, quarantine: kept.id }))
}

async fn removed(
    State(app): State<App>,
    QueryOf(asked): QueryOf<FolderQuery>,
) -> ExactResult<Vec<RemovedItem>> {
    let browser = browser(&app, &asked.place)?;
    Ok(Exact(browser.removed().await?))
}

async fn restore(State(app): State<App>, Input(restore): Input<Restore>) -> ExactResult<RemovedItem> {
    let browser = browser(&app, &restore.place)?;
    Ok(Exact(browser.restore(&restore.id).await?))
}

async fn rename(State(app): State<App>, Input(asked): Input<Move>) -> ExactResult<FileDone> {
    let browser = browser(&app, &asked.place)?;
    browser.rename(&asked.file, &asked.to).await?;
    Ok(Exact(FileDone { success: true, path: asked.to }))
}

async fn make_folder(State(app): State<App>, Input(asked): Input<NewFolder>) -> ExactResult<FileDone> {
    let browser = browser(&app, &asked.place)?;
    browser.make_folder(&asked.folder).await?;
    Ok(Exact(FileDone { success: true, path: asked.folder }))
}

async fn search(State(app): State<App>, QueryOf(asked): QueryOf<FileSearch>) -> ExactResult<SearchFound> {
    let browser = browser(&app, &asked.place)?;
    let wish = SearchWish {
        pattern: asked.q,
        names: asked.names.unwrap_or(false),
        regex: asked.regex.unwrap_or(false),
        case_sensitive: asked.case_sensitive.unwrap_or(false),
        below: asked.relative_dir,
        most: asked.limit,
    };
    Ok(Exact(browser.search(wish).await?))
}

async fn download(
    State(app): State<App>,
    QueryOf(asked): QueryOf<FileRange>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let browser = browser(&app, &asked.place)?;
    let (name, size, mut sent) = browser.send(&asked.file).await?;
    let ranged = headers.get(header::RANGE).and_then(|range| range.to_str().ok());
    // The query says which bytes; without it the header does, if it names one range.
    let (bytes, status) = match (asked.offset, asked.length, ranged.and_then(|range| byte_range(range, size)))
    {
        (None, None, None) => (0..size, StatusCode::OK),
        (None, None, Some(range)) if range.is_empty() => {
            let whole = HeaderValue::from_str(&format!("bytes */{size}"));
            let error = ApiError::wrong_range(format!("The file has {size} bytes."));
            return Ok((
                [(header::CONTENT_RANGE, whole.unwrap_or(HeaderValue::from_static("bytes */*")))],
                error,
            )
                .into_response());
        }
        (None, None, Some(range)) => (range, StatusCode::PARTIAL_CONTENT),
        (offset, length, _) => {
            let start = offset.unwrap_or(0).min(size);
            (start..start.saturating_add(length.unwrap_or(size)).min(size), StatusCode::OK)
        }
    };
    sent.only(bytes.clone()).map_err(|error| ApiError::own_file("The file cannot be read", &error))?;
    // Never shown as a page of this origin, for any type of content.
    let disposition = format!("attachment; filename*=UTF-8''{}", encoded(&name));
    let disposition = HeaderValue::from_str(&disposition).unwrap_or(HeaderValue::from_static("attachment"));
    let mut headers = HeaderMap::from_iter([
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_DISPOSITION, disposition),
        (header::CONTENT_LENGTH, HeaderValue::from(bytes.end - bytes.start)),
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
    ]);
    if status == StatusCode::PARTIAL_CONTENT
        && let Ok(range) = HeaderValue::from_str(&format!("bytes {}-{}/{size}", bytes.start, bytes.end - 1))
    {
        headers.insert(header::CONTENT_RANGE, range);
    }
    Ok((status, headers, Body::from_stream(pieces(sent))).into_response())
}

/// The bytes that a `Range` header requests; empty if the file has none of them, none if the header is not understood
/// or names several ranges, which is treated as if there were no header.
fn byte_range(header: &str, size: u64) -> Option<std::ops::Range<u64>> {
    let (first, last) = header.trim().strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| text.trim().parse::<u64>().ok();
    match (first.trim(), last.trim()) {
        ("", last) => Some(size.saturating_sub(number(last)?)..size),
        (first, "") => Some(number(first)?.min(size)..size),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| first.min(size)..last.saturating_add(1).min(size))
        }
    }
}

fn pieces(sent: Download) -> impl Stream<Item = std::io::Result<Vec<u8>>> {
    futures::stream::unfold(Some(sent), |sent| async {
        let mut sent = sent?;
        let read = tokio::task::spawn_blocking(move || (sent.next_piece(), sent)).await;
        match read {
            Ok((Ok(Some(piece)), sent)) => Some((Ok(piece), Some(sent))),
            Ok((Ok(None), _)) | Err(_) => None,
            Ok((Err(error), _)) => Some((Err(error), None)),
        }
    })
}

fn encoded(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    name.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn too_large() -> ApiError {
    ApiError::too_large(format!("An upload may have {UPLOAD_MAX} bytes."))
}

fn value(request: &Request, name: header::HeaderName) -> Option<String> {
    request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

async fn upload(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    QueryOf(asked): QueryOf<UploadTo>,
    request: Request,
) -> ExactResult<Uploaded> {
    let browser = browser(&app, &asked.place)?;
    let length = value(&request, header::CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    let kind = value(&request, header::CONTENT_TYPE);
    let body = request.into_body().into_data_stream().map(upload_error).boxed();
    // An upload that is announced as too large is not even begun; a form has some bytes of its own.
    if length.is_some_and(|length| length > UPLOAD_MAX + 64 * 1024) {
        return Err(too_large());
    }
    let boundary = kind.as_deref().and_then(super::multipart::boundary);
    let (name, content) = match boundary {
        None => (None, body),
        Some(boundary) => {
            let found = tokio::time::timeout(PIECE_TIME, Parts::new(body, &boundary).first_file()).await;
            let (name, content) = found
                .map_err(|_| ApiError::too_slow("The form did not come to its file within 30 seconds."))??;
            (Some(name), content)
        }
    };
    let path = asked.relative_path.filter(|path| !path.is_empty()).or(name);
    let path = path.ok_or_else(|| ApiError::bad("Say where the file is to be with `relative_path`."))?;
    let mut receiving = browser.receive(&path).await?;
    let mut content = content;
    while let Some(piece) = next_piece(&mut content).await? {
        let (took, back) = tokio::task::spawn_blocking(move || (receiving.add(&piece), receiving))
            .await
            .map_err(|_| ApiError::unavailable("The file cannot be written."))?;
        receiving = back;
        if !took? {
            return Err(too_large());
        }
    }
    // The token may have been removed while the file came.
    blocking(|| app.access.check(&identity))?;
    let (saved, size) = receiving.finish(asked.overwrite.unwrap_or(false)).await?;
    let filename = saved.path.rsplit('/').next().unwrap_or_default().to_owned();
    Ok(Exact(Uploaded { filename, path: saved.path, size, version: saved.version }))
}

/// The next piece of an upload; an error if the upload stalls.
async fn next_piece(content: &mut Pieces) -> Result<Option<Bytes>, ApiError> {
    match tokio::time::timeout(PIECE_TIME, content.next()).await {
        Ok(piece) => piece.transpose(),
        Err(_) => Err(ApiError::too_slow("Nothing of the upload came for 30 seconds.")),
    }
}

fn upload_error(piece: Result<Bytes, axum::Error>) -> Result<Bytes, ApiError> {
    piece.map_err(|error| ApiError::bad(format!("The upload broke off: {error}")))
}

async fn watch(
    State(app): State<App>,
    Extension(share): Extension<Share>,
    QueryOf(asked): QueryOf<FolderQuery>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ApiError> {
    // A response without an end is only for clients that know it has none.
    let accepts = headers.get(header::ACCEPT).and_then(|kinds| kinds.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/event-stream") {
        return Err(ApiError::bad("This has no end: ask with `Accept: text/event-stream`."));
    }
    let browser = browser(&app, &asked.place)?;
    let permit = share.watch().ok_or_else(|| {
        ApiError::too_many(format!("A token watches {WATCHES} folders at once; end another watch first."))
    })?;
    let watching = blocking(|| app.watches.watch(&browser))?;
    // From the first message on, the listener misses nothing.
    let first = futures::stream::once(async { Ok(Event::default().event("ready").data("{}")) });
    let rest = futures::stream::unfold((watching, permit), |(mut watching, permit)| async {
        let data = watching.next().await?;
        Some((Ok(Event::default().event("changed").data(data)), (watching, permit)))
    });
    Ok(Sse::new(first.chain(rest)).keep_alive(KeepAlive::new().interval(Duration::from_secs(15))))
}
