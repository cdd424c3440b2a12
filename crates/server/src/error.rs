//! Errors of the server: for the user who starts it, and for clients.

use crate::api::Json;
use std::io::ErrorKind;
use std::path::PathBuf;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use lathe_host::{FileProblem, HostError};
use lathe_views::wire_json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// The reasons why the server cannot be started or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("cannot listen on {address}: {reason}")]
    Listen { address: String, reason: String },
    #[error(
        "{address} is reachable from other machines, so it needs TLS: name a certificate and its key with --tls-cert and --tls-key, or listen on 127.0.0.1"
    )]
    NeedsTls { address: String },
    #[error("the certificate or its key cannot be used: {0}")]
    Tls(String),
    #[error("{path}: {reason}")]
    File { path: PathBuf, reason: String },
    #[error("the folder {path} cannot be served: {reason}")]
    Root { path: PathBuf, reason: String },
    #[error(
        "{root} cannot be served: it shares files with Lathe's own folder {home}, which holds keys, tokens and sessions. \
         Serve another folder with `--root`, or set LATHE_HOME to a folder outside of it."
    )]
    HomeInRoot { root: PathBuf, home: PathBuf },
    #[error(transparent)]
    Host(#[from] HostError),
    #[error("{0}")]
    Token(String),
}

/// Characters of the detail of a refusal. It often repeats text of the request.
const DETAIL_MAX: usize = 2000;

/// A detail, or the beginning of a long one. Secrets of a long one are redacted before it is cut, so that none is cut
/// into something that does not look like a secret.
fn shortened_detail(detail: String) -> String {
    if detail.len() <= DETAIL_MAX {
        return detail;
    }
    let window: String = detail.chars().take(4 * DETAIL_MAX).collect();
    let masked: String = serde_json::from_str(&wire_json(&Value::from(window))).unwrap_or_default();
    let shown: String = masked.chars().take(DETAIL_MAX).collect();
    format!("{shown}… ({} bytes in all)", detail.len())
}

/// A refusal. `detail` is for users, `code` for programs.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ApiError {
    #[serde(skip)]
    pub status: u16,
    pub detail: String,
    pub code: &'static str,
}

impl ApiError {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status: status.as_u16(), detail: shortened_detail(detail.into()), code }
    }

    pub fn bad(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", detail)
    }

    pub fn unprocessable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
    }

    pub fn unauthorized() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "unauthorized",
            "A token is needed: send it in the header `Authorization`, after the word `Bearer`, or open the page with the address `lathe serve` printed.",
        )
    }

    pub fn token_removed() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "The token was removed.")
    }

    /// It is unknown at the moment whether the token exists.
    pub fn tokens_unreadable() -> Self {
        Self::unavailable("The server cannot read its file of tokens; try again later.")
    }

    pub fn no_random(error: std::io::Error) -> Self {
        Self::unavailable(format!("There are no random numbers: {error}"))
    }

    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", detail)
    }

    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    pub fn wrong_method(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "wrong_method", detail)
    }

    pub fn wrong_range(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "wrong_range", detail)
    }

    /// The disk of the server is full.
    pub fn disk_full(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "disk_full", detail)
    }

    /// A file of the server's own could not be read or written.
    pub fn own_file(what: &str, error: &std::io::Error) -> Self {
        let detail = format!("{what}: {error}");
        match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
                Self::disk_full(detail)
            }
            _ => Self::internal(detail),
        }
    }

    pub fn conflict(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "conflict", detail)
    }

    pub fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", detail)
    }

    pub fn too_slow(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", detail)
    }

    pub fn too_many(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many", detail)
    }

    pub fn internal(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    pub fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(self)).into_response()
    }
}

impl From<HostError> for ApiError {
    /// The status of an error of the host, and advice for a client of the server, which cannot use a flag or a
    /// command. Every variant is named, so that a new one is considered.
    fn from(error: HostError) -> Self {
        let message = error.to_string();
        if error.is_disk_full() {
            return Self::disk_full(message);
        }
        match error {
            HostError::NoSuchSession(_) | HostError::NoSessionHere(_) | HostError::EmptyId => {
                Self::not_found(format!("{message}; `GET /api/sessions` lists them"))
            }
            HostError::NoSuchEntry(_) | HostError::NoSuchRun { .. } | HostError::NoSessions => {
                Self::not_found(message)
            }
            HostError::ManySessions { .. }
            | HostError::NothingToUndo
            | HostError::IdInUse(_)
            | HostError::Git(_)
            | HostError::Review(_) => Self::conflict(message),
            HostError::Journal(_) if error.code() == "session-held" => Self::conflict(message),
            HostError::File { problem, .. } => match problem {
                FileProblem::NotFound => Self::not_found(message),
                FileProblem::Exists | FileProblem::Changed => Self::conflict(message),
                FileProblem::Forbidden => Self::forbidden(message),
                FileProblem::TooLarge => Self::too_large(message),
                FileProblem::Full => Self::disk_full(message),
                FileProblem::Broken => Self::internal(message),
                FileProblem::Bad => Self::bad(message),
            },
            HostError::InsideSession { .. } => Self::forbidden(message),
            // Nothing is wrong with the request.
            HostError::Crashed(_) => Self::internal(format!("{message}; it can be resumed")),
            HostError::Home { .. }
            | HostError::Journal(_)
            | HostError::Agent(_)
            | HostError::Shell { .. }
            | HostError::Graph(_)
            | HostError::Restore { .. }
            | HostError::NoSpace(_)
            | HostError::Trust { .. }
            | HostError::Secrets { .. }
            | HostError::Prices(_) => Self::internal(message),
            HostError::NoKey { variable, .. } => {
                Self::bad(format!("{message}; send `api_key`, or have {variable} set where the server runs"))
            }
            HostError::UnknownProvider(_) => Self::bad(format!(
                "{message}; send `model_base_url` for any server that speaks OpenAI's Chat Completions"
            )),
            HostError::OtherAddress { address, .. } => Self::bad(format!(
                "{message}; to use another key there, send `model_base_url` {address} with `api_key`"
            )),
            HostError::NoPrice { .. } => Self::bad(format!("{message}; limit its tokens instead")),
            HostError::NoModelName => Self::bad(format!("{message}; send `model`")),
            HostError::NoModel
            | HostError::BadModel(_)
            | HostError::BadKey { .. }
            | HostError::Folder { .. }
            | HostError::NoSandbox(_)
            | HostError::OtherToolset { .. }
            | HostError::Cassette(_)
            | HostError::NoSuchTool { .. }
            | HostError::ToolArguments(_)
            | HostError::NotModifiable(_)
            | HostError::Discovery(_)
            | HostError::Field { .. }
            | HostError::Documents(_)
            | HostError::Policy(_)
            | HostError::NotTrusted(_)
            | HostError::Check(_)
            | HostError::NoSuchStep { .. }
            | HostError::BaseCommit { .. }
            | HostError::Patch(_)
            | HostError::Rewind(_)
            | HostError::Replay(_)
            | HostError::Demo(_) => Self::bad(message),
        }
    }
}
