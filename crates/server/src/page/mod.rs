//! The status page: sessions and their bubbles, made here and kept fresh by a small script.
//!
//! A browser that opens an address sends only the cookie, and a cookie alone is worth nothing. So the first response
//! is an empty page, whose script requests the same address again with its half of the cookie.

use std::collections::{BTreeMap, HashMap};

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{Html, IntoResponse, Response};
use lathe_host::blocking;
use lathe_protocol::{SessionId, SessionSummary};
use lathe_views::{Cursor, Language, Projector, Say, Tell, WireFrame};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::access::Identity;
use crate::api::{Api, Endpoint, PathOf, QueryOf};
use crate::app::App;
use crate::error::ApiError;

/// Sessions on the page.
const SHOWN: usize = 100;
/// Bubbles on the page, the last ones.
const BUBBLES: usize = 500;

#[derive(Debug, Default, Deserialize, JsonSchema)]
struct PageQuery {
    /// The session to show.
    #[serde(default)]
    session: Option<String>,
}

pub(crate) fn add(api: &mut Api) {
    api.add(Endpoint::get("/", "The status page").public().query::<PageQuery>().returns("text/html"), page)
        .add(Endpoint::get("/assets/{name}", "What the page needs").public().returns("text/plain"), asset);
}

async fn asset(PathOf(name): PathOf<String>) -> Result<Response, ApiError> {
    let (kind, content) = match name.as_str() {
        "page.js" => ("text/javascript; charset=utf-8", include_str!("page.js")),
        "page.css" => ("text/css; charset=utf-8", include_str!("page.css")),
        _ => return Err(ApiError::not_found("There is no such asset.")),
    };
    Ok(([(header::CONTENT_TYPE, kind)], content).into_response())
}

async fn page(
    State(app): State<App>,
    identity: Option<Extension<Identity>>,
    QueryOf(look): QueryOf<PageQuery>,
    headers: HeaderMap,
) -> Response {
    let accepted = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
    let language = Language::of(accepted.unwrap_or_default().trim_start());
    // Without a token the page can only offer to enter one.
    let Some(Extension(identity)) = identity else {
        let sign_in = Tell::SignIn { command: "<code>lathe serve</code>" }.text(language);
        return Html(page_frame(language, &format!("<p id=\"sign-in\">{sign_in}</p>"))).into_response();
    };
    let body = blocking(|| match &look.session {
        Some(id) => session(&app, id, language),
        None => list(&app, &identity, language),
    });
    match body {
        Ok(body) => Html(page_frame(language, &body)).into_response(),
        Err(error) => error.into_response(),
    }
}

fn page_frame(language: Language, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"{}\">\n<head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Lathe</title><link rel=\"stylesheet\" href=\"/assets/page.css\"></head>\n<body>\n\
         <header><a href=\"/\">Lathe</a></header>\n<main>{body}</main>\n<script src=\"/assets/page.js\"></script>\n</body>\n</html>\n",
        language.primary_tag()
    )
}

fn list(app: &App, identity: &Identity, language: Language) -> Result<String, ApiError> {
    let inside = |summary: &SessionSummary| {
        app.roots.iter().any(|root| std::path::Path::new(&summary.workspace).starts_with(root))
    };
    let sessions: Vec<SessionSummary> =
        app.host.archive().sessions()?.into_iter().filter(inside).take(SHOWN).collect();
    let mut out = format!(
        "<h1>{}</h1>\n<p class=\"who\">{} · {}</p>\n",
        Say::StatusSessions.text(language),
        escape(&identity.name),
        identity.role
    );
    if sessions.is_empty() {
        out.push_str(&format!("<p>{}</p>", Say::StatusNone.text(language)));
        return Ok(out);
    }
    out.push_str(&format!(
        "<table><thead><tr><th>{}</th><th>{}</th><th>{}</th><th>{}</th><th>{}</th></tr></thead><tbody>\n",
        Say::StatusState.text(language),
        Say::TaskLabel.text(language),
        Say::StatusSteps.text(language),
        Say::StatusFolder.text(language),
        Say::StatusUpdated.text(language)
    ));
    for summary in sessions {
        let title = match summary.title.as_str() {
            "" => Say::StatusUntitled.text(language).into(),
            title => Projector::shown(title),
        };
        let clients = app.sessions.get(&summary.id).map_or(0, |live| live.hub.listeners());
        let watching = if clients > 0 {
            format!(" <small>{clients} {}</small>", Say::StatusWatching.text(language))
        } else {
            String::new()
        };
        out.push_str(&format!(
            "<tr><td class=\"state {0}\">{0}{watching}</td><td><a href=\"/?session={1}\">{2}</a></td><td>{3}</td><td>{4}</td><td><time>{5}</time></td></tr>\n",
            summary.state,
            escape(summary.id.as_str()),
            escape(&title),
            summary.steps,
            escape(&summary.workspace),
            summary.updated
        ));
    }
    out.push_str("</tbody></table>\n");
    Ok(out)
}

fn session(app: &App, id: &str, language: Language) -> Result<String, ApiError> {
    let id = app.session(id)?;
    let title = app
        .host
        .archive()
        .title(&id)
        .filter(|title| !title.is_empty())
        .unwrap_or_else(|| Say::StatusUntitled.text(language).to_owned());
    let (bubbles, cursor) = bubbles(app, &id)?;
    let mut out = format!(
        "<h1>{}</h1>\n<p class=\"who\">{} · <span id=\"state\"></span> <button id=\"cancel\" hidden>{}</button></p>\n\
         <section id=\"bubbles\" data-session=\"{}\" data-cursor=\"{cursor}\" data-allow=\"{}\" data-deny=\"{}\">\n",
        escape(&Projector::shown(&title)),
        escape(id.as_str()),
        Say::StatusCancel.text(language),
        escape(id.as_str()),
        Say::StatusAllow.text(language),
        Say::StatusDeny.text(language)
    );
    for bubble in bubbles.iter().skip(bubbles.len().saturating_sub(BUBBLES)) {
        let text = |key: &str| bubble[key].as_str().unwrap_or_default();
        out.push_str(&format!(
            "<article class=\"{}\" data-id=\"{}\"><pre>{}</pre></article>\n",
            escape(text("role")),
            escape(text("key")),
            escape(text("content"))
        ));
    }
    out.push_str("</section>\n<section id=\"approvals\"></section>\n<pre id=\"live\"></pre>\n");
    Ok(out)
}

/// The kinds of frames that bubbles, and the cursor from which a page continues, are made from.
const KINDS: [&str; 6] = ["approval", "rewound", "rewind_undone", "start", "input", "bubble"];

/// The bubbles of a session's live branch in their last form, in order, and between them the user's messages with the
/// role `user`. `key` distinguishes runs; `step` and `session_step` are the numbers of the step.
pub(crate) fn bubbles(app: &App, id: &SessionId) -> Result<(Vec<Value>, Cursor), ApiError> {
    let (frames, end) = app.host.archive().live_frames(id, &KINDS)?;
    let (mut found, mut places, mut cursor) = (Vec::<Value>::new(), HashMap::new(), Cursor::START);
    // The position before each open question.
    let mut open: BTreeMap<u64, Cursor> = BTreeMap::new();
    for frame in frames {
        let before = std::mem::replace(&mut cursor, frame.cursor);
        match frame.kind {
            "approval" => {
                let data = serde_json::from_str::<Value>(frame.data.get()).unwrap_or_default();
                if let Some(question) = data["question"].as_u64() {
                    match data["state"] == "asked" {
                        true => drop(open.insert(question, before)),
                        false => drop(open.remove(&question)),
                    }
                }
            }
            // The session was closed for it, and its questions with it.
            "rewound" | "rewind_undone" => open.clear(),
            "start" => found.extend(user_bubble(&frame, "task", "task")),
            "input" => found.extend(user_bubble(&frame, &format!("input-{}", frame.cursor.seq), "text")),
            "bubble" => {
                let Ok(mut bubble) = serde_json::from_str::<Value>(frame.data.get()) else { continue };
                let id = bubble["id"].as_str().unwrap_or_default();
                // The text of an answer is also in the bubble of its thought.
                if id.starts_with("llm-") {
                    continue;
                }
                let key = format!("{}:{id}", frame.run);
                bubble["key"] = Value::String(key.clone());
                if let Some(step) = frame.step {
                    bubble["step"] = step.in_run.into();
                    bubble["session_step"] = step.in_session.0.into();
                }
                match places.get(&key) {
                    Some(at) => found[*at] = bubble,
                    None => {
                        places.insert(key, found.len());
                        found.push(bubble);
                    }
                }
            }
            _ => {}
        }
    }
    // An open question is sent again: the page shows bubbles only.
    Ok((found, open.values().min().copied().unwrap_or(end)))
}

/// A message of the user in a frame, as a bubble.
fn user_bubble(frame: &WireFrame, id: &str, member: &str) -> Option<Value> {
    let data = serde_json::from_str::<Value>(frame.data.get()).ok()?;
    let text = data[member].as_str().filter(|text| !text.is_empty())?;
    Some(json!({
        "id": id,
        "key": format!("{}:{id}", frame.run),
        "role": "user",
        "content": text,
        "timestamp": data["timestamp"],
    }))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => out.push('�'),
            c if c.is_control() && c != '\n' && c != '\t' => out.push('�'),
            c => out.push(c),
        }
    }
    out
}
