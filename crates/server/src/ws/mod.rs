//! WebSocket: a run is started or a session attached to, and then both sides send messages.

mod client_message;
mod incoming;
mod outgoing;
mod pump;

use axum::Extension;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse, Response};
use lathe_host::blocking;
use lathe_protocol::SessionId;
use lathe_views::Cursor;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::access::Identity;
use crate::api::QueryOf;
use crate::app::App;
use crate::connections::Peer;
use crate::error::ApiError;
use crate::metered::Meter;

/// Bytes of one message from a client.
const MESSAGE_MAX: usize = 1 << 20;

/// The protocol that is spoken here, for clients that name one.
const PROTOCOL: &str = "lathe";

/// The query of a connection's address.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct Attach {
    /// A session to attach to. Without it, the first message starts or continues one.
    #[serde(default)]
    session_id: Option<String>,
    /// The cursor of the last frame that the client has; everything if left out.
    #[serde(default)]
    from: Option<String>,
    /// Close when a run has ended.
    #[serde(default)]
    until_end: Option<bool>,
    /// Send the events of the journal, each with the changes of a finished call, instead of the frames made from
    /// them.
    #[serde(default)]
    events: Option<bool>,
}

/// The kind of content that a client gets of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Steps, bubbles, questions: a view that is made here.
    Frames,
    /// The events of the journal: the client makes its own view.
    Events,
}

/// The purpose of a connection.
enum Purpose {
    /// The first message is a request for a new session.
    Run,
    /// The first message is a task for a session.
    Task,
    Attach {
        id: SessionId,
        from: Cursor,
        until_end: bool,
    },
}

pub(crate) async fn run_stream(
    upgrade: Upgrade,
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    ConnectInfo(Peer { meter, .. }): ConnectInfo<Peer>,
    QueryOf(attach): QueryOf<Attach>,
) -> Response {
    connect((upgrade, meter), app, identity, &attach, Purpose::Run)
}

pub(crate) async fn interactive(
    upgrade: Upgrade,
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    ConnectInfo(Peer { meter, .. }): ConnectInfo<Peer>,
    QueryOf(attach): QueryOf<Attach>,
) -> Response {
    connect((upgrade, meter), app, identity, &attach, Purpose::Task)
}

/// The upgrade of a connection, or the reason why the request is not one for a WebSocket.
type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

fn connect(
    (upgrade, meter): (Upgrade, Meter),
    app: App,
    identity: Identity,
    attach: &Attach,
    purpose: Purpose,
) -> Response {
    let upgrade = match upgrade {
        Ok(upgrade) => upgrade,
        Err(reason) => {
            return ApiError::bad(format!("This address speaks WebSocket: {}.", reason.body_text()))
                .into_response();
        }
    };
    let purpose = match &attach.session_id {
        None => purpose,
        Some(id) => match attached(&app, id, attach) {
            Ok(purpose) => purpose,
            Err(error) => return error.into_response(),
        },
    };
    let content = if attach.events.unwrap_or(false) { Content::Events } else { Content::Frames };
    // A larger message is refused as soon as its size is known: from the head of a frame, or from the sum of the
    // fragments so far.
    upgrade
        // A page offers this one and another that holds its half of the cookie; a browser needs one of them in the
        // response.
        .protocols([PROTOCOL])
        .max_message_size(MESSAGE_MAX)
        .max_frame_size(MESSAGE_MAX)
        .on_upgrade(move |socket| pump::serve(socket, meter, app, identity, (purpose, content)))
}

fn attached(app: &App, id: &str, attach: &Attach) -> Result<Purpose, ApiError> {
    let from = match attach.from.as_deref() {
        None | Some("") => Cursor::START,
        Some(from) => from.parse().map_err(|error| ApiError::unprocessable(format!("`from`: {error}")))?,
    };
    let id = app.session(id)?;
    // The client would get nothing before the session has reached such a cursor.
    let last = blocking(|| app.host.archive().last_seq(&id))?;
    if from.seq > last {
        return Err(ApiError::unprocessable(format!("`from`: the last event of this session is {last}.")));
    }
    Ok(Purpose::Attach { id, from, until_end: attach.until_end.unwrap_or(false) })
}
