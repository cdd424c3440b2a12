//! Online documents, with the names of the server fork. A request reaches the same shelf as the tool of a session.

use axum::extract::State;
use lathe_host::{Shelf, ShelfError, blocking};
use lathe_protocol::{Document, DocumentRow, DocumentVersion};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::access::Role;
use crate::api::{Api, Endpoint, Exact, ExactResult, Input, PathOf, QueryOf};
use crate::app::App;
use crate::error::ApiError;

/// Documents on a page, at most.
const PAGE_MAX: u32 = 200;

#[derive(Debug, Deserialize, JsonSchema)]
struct DocumentSearch {
    /// Words that the title, the description or the content holds.
    #[serde(default)]
    keyword: Option<String>,
    /// Counted from 1.
    #[serde(default, rename = "pageNum")]
    page_num: Option<u32>,
    #[serde(default, rename = "pageSize")]
    page_size: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DocumentId {
    #[serde(rename = "documentId", alias = "document_id")]
    document_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Create {
    title: String,
    content: String,
    #[serde(default)]
    description: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Edit {
    #[serde(rename = "documentId", alias = "document_id")]
    document_id: String,
    content: String,
    #[serde(default)]
    title: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct VersionQuery {
    /// The content of this version instead of the list.
    #[serde(default)]
    version: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DocumentView {
    document_id: String,
    version: u32,
    title: String,
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
    updated_at: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DocumentPage {
    items: Vec<DocumentView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EditedDocument {
    document_id: String,
    success: bool,
    title_changed: bool,
    version: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Versions {
    versions: Vec<VersionRow>,
    /// The document in that version, if the request names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<DocumentView>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct VersionRow {
    version: u32,
    title: String,
    updated_at: String,
    bytes: u64,
}

pub(crate) fn add(api: &mut Api) {
    api.add(
        Endpoint::post("/online/docs/search", "Find documents")
            .role(Role::Viewer)
            .body::<DocumentSearch>()
            .response::<DocumentPage>(),
        search,
    )
    .add(
        Endpoint::post("/online/docs/detail", "One document")
            .role(Role::Viewer)
            .body::<DocumentId>()
            .response::<DocumentView>(),
        detail,
    )
    .add(
        Endpoint::post("/online/docs/create", "Create a document")
            .body::<Create>()
            .response::<DocumentView>(),
        create,
    )
    .add(
        Endpoint::post("/online/report/create", "Create a document")
            .body::<Create>()
            .response::<DocumentView>(),
        create,
    )
    .add(
        Endpoint::post("/online/report/edit", "Replace a document; the old version is kept")
            .body::<Edit>()
            .response::<EditedDocument>(),
        edit,
    )
    .add(
        Endpoint::get("/online/docs/{id}/versions", "All versions of a document, or one of them")
            .query::<VersionQuery>()
            .response::<Versions>(),
        versions,
    );
}

fn shelf(app: &App) -> Result<Shelf, ApiError> {
    let plan = blocking(|| app.plans.online()).map_err(ApiError::bad)?;
    Ok(blocking(|| app.host.archive().shelf(&plan))?)
}

/// The message of the store or the service about a failure.
fn shelf_error(error: ShelfError) -> ApiError {
    match error {
        ShelfError { message: words, disk_full: true } => ApiError::disk_full(words),
        ShelfError { message: words, .. } if words.starts_with("HTTP 404") => ApiError::not_found(words),
        ShelfError { message: words, .. } => ApiError::bad(words),
    }
}

fn document_view(document: Document) -> DocumentView {
    let Document { document_id, version, title, description, content, updated_at } = document;
    DocumentView { document_id, version, title, description, content: Some(content), updated_at }
}

async fn search(State(app): State<App>, Input(asked): Input<DocumentSearch>) -> ExactResult<DocumentPage> {
    let size = asked.page_size.unwrap_or(20).clamp(1, PAGE_MAX);
    let page = asked.page_num.unwrap_or(1).max(1);
    let found =
        shelf(&app)?.search(asked.keyword.unwrap_or_default(), page, size).await.map_err(shelf_error)?;
    let row = |DocumentRow { document_id, version, title, description, updated_at }| DocumentView {
        document_id,
        version,
        title,
        description,
        content: None,
        updated_at,
    };
    Ok(Exact(DocumentPage { items: found.into_iter().map(row).collect() }))
}

async fn detail(State(app): State<App>, Input(asked): Input<DocumentId>) -> ExactResult<DocumentView> {
    Ok(Exact(document_view(shelf(&app)?.detail(asked.document_id).await.map_err(shelf_error)?)))
}

async fn create(State(app): State<App>, Input(asked): Input<Create>) -> ExactResult<DocumentView> {
    if asked.title.trim().is_empty() {
        return Err(ApiError::unprocessable("`title` is empty."));
    }
    let made = shelf(&app)?.create(asked.title, asked.content, asked.description).await;
    Ok(Exact(document_view(made.map_err(shelf_error)?)))
}

async fn edit(State(app): State<App>, Input(asked): Input<Edit>) -> ExactResult<EditedDocument> {
    let title = asked.title.filter(|title| !title.trim().is_empty());
    let edited = shelf(&app)?.edit(asked.document_id.clone(), asked.content, title).await;
    let (document, title_changed) = edited.map_err(shelf_error)?;
    Ok(Exact(EditedDocument {
        document_id: asked.document_id,
        success: true,
        title_changed,
        version: document.version,
    }))
}

async fn versions(
    State(app): State<App>,
    PathOf(id): PathOf<String>,
    QueryOf(asked): QueryOf<VersionQuery>,
) -> ExactResult<Versions> {
    let shelf = shelf(&app)?;
    let missing = || ApiError::not_found("There is no such document or version.");
    let rows = shelf.versions(id.clone()).await.map_err(shelf_error)?;
    if rows.is_empty() {
        return Err(missing());
    }
    let document = match asked.version {
        None => None,
        Some(version) => {
            Some(document_view(shelf.version(id, version).await.map_err(shelf_error)?.ok_or_else(missing)?))
        }
    };
    let row = |DocumentVersion { version, title, updated_at, bytes }| VersionRow {
        version,
        title,
        updated_at,
        bytes,
    };
    Ok(Exact(Versions { versions: rows.into_iter().map(row).collect(), document }))
}
