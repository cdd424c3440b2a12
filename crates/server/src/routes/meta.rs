//! Routes about the server itself: health, metrics, its description; and the sign-in of browsers.

use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::access::{Identity, Role, cookie_name, cookie_of, wrong_token};
use crate::api::{Api, ApiResult, Endpoint, Exact, Input, Json};
use crate::app::App;
use crate::connections::Peer;
use crate::error::ApiError;
use crate::ws;

#[derive(Serialize, JsonSchema)]
struct Health {
    status: &'static str,
    version: &'static str,
}

#[derive(Deserialize, JsonSchema)]
struct SignIn {
    #[serde(default)]
    token: Option<String>,
    /// The code that `lathe serve --open` hands to a browser instead of a token. It works once, within a minute, from
    /// this machine.
    #[serde(default)]
    code: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct TokenIdentity {
    name: String,
    role: Role,
}

#[derive(Serialize, JsonSchema)]
struct SignedInAs {
    name: String,
    role: Role,
    /// The other half of the cookie: sent as `X-Lathe-Page`, or on a WebSocket as the protocol `lathe.page.HALF` next
    /// to `lathe`. The cookie is worth nothing without it.
    page: String,
}

pub(crate) fn add(api: &mut Api) {
    api.add(Endpoint::get("/health", "Check that the server responds").public().response::<Health>(), health)
        .add(
            Endpoint::post("/auth", "Exchange a token, or a code, for a cookie and its other half")
                .public()
                .body::<SignIn>()
                .response::<SignedInAs>(),
            sign_in,
        )
        .add(Endpoint::delete("/auth", "Sign out").role(Role::Viewer), sign_out)
        .add(Endpoint::get("/auth", "The name and role of this token").response::<TokenIdentity>(), identity)
        .add(Endpoint::get("/openapi.json", "This description"), openapi)
        .add(Endpoint::get("/metrics", "Metrics in the format of Prometheus").returns("text/plain"), metrics)
        .add(
            Endpoint::get("/ws/agent/run/stream", "WebSocket: start a run, or attach to a session")
                .query::<ws::Attach>(),
            ws::run_stream,
        )
        .add(
            Endpoint::get("/ws/agent/interactive/task", "WebSocket: give a session a task, or attach to it")
                .query::<ws::Attach>(),
            ws::interactive,
        );
}

async fn health() -> Json<Health> {
    Json(Health { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

async fn sign_in(
    State(app): State<App>,
    ConnectInfo(Peer { address: from, local, .. }): ConnectInfo<Peer>,
    Input(asked): Input<SignIn>,
) -> Result<Response, ApiError> {
    let is_from_here = from.ip().to_canonical().is_loopback()
        || local.is_some_and(|local| local.to_canonical() == from.ip().to_canonical());
    let signed_in = match (&asked.token, &asked.code) {
        (Some(token), None) => app.access.sign_in(token),
        (None, Some(code)) if is_from_here => app.access.sign_in_by_code(code),
        (None, Some(_)) => Ok(None),
        (Some(_), Some(_)) | (None, None) => {
            return Err(ApiError::unprocessable("Give `token` or `code`."));
        }
    };
    let Some((signed_in, identity)) = signed_in? else {
        wrong_token(&app, from.ip(), "sign in", "/auth")?;
        return Err(ApiError::unauthorized());
    };
    if !app.rates.may_send(identity.key) {
        return Err(ApiError::too_many("Too many requests; wait a moment."));
    }
    app.audit.note(Some(&identity), "sign in", "/auth", "ok");
    let secure = if app.tls { "; Secure" } else { "" };
    let cookie = format!(
        "{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=43200{secure}",
        cookie_name(app.port),
        signed_in.cookie
    );
    let who = SignedInAs { name: identity.name.to_string(), role: identity.role, page: signed_in.half };
    let mut response = Exact(who).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

async fn sign_out(State(app): State<App>, headers: HeaderMap) -> Json<Value> {
    if let Some(cookie) = cookie_of(&app, &headers) {
        app.access.forget(cookie);
    }
    Json(json!({ "signed_out": true }))
}

async fn identity(Extension(identity): Extension<Identity>) -> ApiResult<TokenIdentity> {
    Ok(Json(TokenIdentity { name: identity.name.to_string(), role: identity.role }))
}

async fn openapi(State(app): State<App>) -> Exact<Value> {
    Exact(app.table.document.clone())
}

async fn metrics(State(app): State<App>) -> Response {
    let live = app.sessions.list();
    let running = live.iter().filter(|live| live.hub.is_running()).count() as u64;
    let rows = [
        ("lathe_up_seconds", "gauge", app.began.elapsed().as_secs()),
        ("lathe_requests_total", "counter", app.counts.requests.get()),
        ("lathe_frames_sent_total", "counter", app.counts.frames.get()),
        ("lathe_runs_started_total", "counter", app.counts.runs.get()),
        ("lathe_clients", "gauge", app.counts.clients.get()),
        ("lathe_sessions_open", "gauge", live.len() as u64),
        ("lathe_sessions_running", "gauge", running),
    ];
    let text: String =
        rows.iter().map(|(name, kind, value)| format!("# TYPE {name} {kind}\n{name} {value}\n")).collect();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}
