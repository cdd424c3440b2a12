//! The check that every request passes, upgrades to WebSocket included.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use futures::StreamExt as _;

use super::Identity;
use crate::app::App;
use crate::connections::Peer;
use crate::error::ApiError;

/// The names this server answers to.
#[derive(Debug, Clone)]
pub(crate) struct ServerNames {
    hosts: Vec<String>,
    /// True if it listens on every address of this machine; then it is known by the address that a connection came in
    /// on.
    everywhere: bool,
    port: u16,
    scheme: &'static str,
}

impl ServerNames {
    pub fn new(address: SocketAddr, given: &[String], tls: bool) -> Self {
        let mut hosts: Vec<String> = given.iter().map(|name| name.to_ascii_lowercase()).collect();
        let everywhere = address.ip().is_unspecified();
        if address.ip().is_loopback() || everywhere {
            hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(str::to_owned));
        } else {
            hosts.push(host_literal(address.ip()));
        }
        Self { hosts, everywhere, port: address.port(), scheme: if tls { "https" } else { "http" } }
    }

    /// Tells whether a `Host` header names this server. `local` is the address of ours that the connection came in
    /// on. It counts only as an address: a name that its owner points at this machine is not ours.
    pub fn is_host(&self, host: &str, local: Option<IpAddr>) -> bool {
        let host = host.to_ascii_lowercase();
        let bare = if self.scheme == "https" { 443 } else { 80 };
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.contains(']') => match port.parse::<u16>() {
                Ok(port) => (name.to_owned(), port),
                Err(_) => return false,
            },
            _ => (host, bare),
        };
        let came_in =
            || self.everywhere && local.is_some_and(|local| address(&name) == Some(local.to_canonical()));
        port == self.port && (self.hosts.contains(&name) || came_in())
    }

    /// Tells whether an origin is one of our own pages.
    pub fn is_origin(&self, origin: &str, local: Option<IpAddr>) -> bool {
        origin
            .strip_prefix(self.scheme)
            .and_then(|rest| rest.strip_prefix("://"))
            .is_some_and(|host| self.is_host(host, local))
    }
}

/// An address as it stands in `Host`.
pub(crate) fn host_literal(address: IpAddr) -> String {
    match address {
        IpAddr::V4(ip) => ip.to_string(),
        IpAddr::V6(ip) => format!("[{ip}]"),
    }
}

/// The address that `Host` names; none if it is a name.
fn address(host: &str) -> Option<IpAddr> {
    match host.strip_prefix('[') {
        Some(rest) => {
            rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok().map(|ip| IpAddr::V6(ip).to_canonical())
        }
        None => host.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
    }
}

/// The name of our cookie. Cookies do not know ports, so the port is part of it.
pub(crate) fn cookie_name(port: u16) -> String {
    format!("lathe_{port}")
}

/// The header that holds the page's half of a cookie.
const PAGE_HEADER: &str = "x-lathe-page";
/// The prefix of the page's half in the name of a WebSocket protocol.
const PAGE_PROTOCOL: &str = "lathe.page.";

const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                   form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

pub(crate) async fn check(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let identity = match identify_request(&app, &peer, request.headers(), request.uri(), &method) {
        Ok(identity) => identity,
        Err(error) => {
            if error.code != "unauthorized" {
                app.audit.note(None, method.as_str(), &path, error.code);
            }
            return with_headers(error.into_response());
        }
    };
    app.counts.requests.add(1);
    peer.slot.set_token(identity.as_ref().map(|identity| identity.key));
    let response = match &identity {
        None => next.run(request).await,
        Some(identity) => {
            request.extensions_mut().insert(identity.clone());
            request.extensions_mut().insert(app.shares.of(identity.key));
            respond_while_known(&app, identity, next.run(request)).await
        }
    };
    // Requests that only read are not logged.
    if !matches!(method, Method::GET | Method::HEAD) {
        app.audit.note(identity.as_ref(), method.as_str(), &path, response.status().as_str());
    }
    with_headers(response)
}

/// The response, for as long as the token exists: a response that takes time ends in the middle when the token is
/// removed. This is done here for all routes alike.
async fn respond_while_known(
    app: &App,
    identity: &Identity,
    answering: impl Future<Output = Response>,
) -> Response {
    let response = tokio::select! {
        biased;
        response = answering => response,
        () = app.access.removed(identity) => return ApiError::token_removed().into_response(),
    };
    // A complete response is on its way already.
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let (app, identity) = (app.clone(), identity.clone());
    let removed = Box::pin(async move { app.access.removed(&identity).await });
    response.map(|body| Body::from_stream(body.into_data_stream().take_until(removed)))
}

fn identify_request(
    app: &App,
    peer: &Peer,
    headers: &HeaderMap,
    uri: &Uri,
    method: &Method,
) -> Result<Option<Identity>, ApiError> {
    let (from, local) = (peer.address.ip(), peer.local);
    let named = uri.authority().map(|host| host.as_str());
    let host = match (only_value(headers, &header::HOST)?, named) {
        (Some(host), Some(named)) if !host.eq_ignore_ascii_case(named) => {
            return Err(ApiError::bad("The request names two hosts."));
        }
        (host, named) => host.or(named),
    };
    match host {
        None => return Err(ApiError::bad("The request names no host.")),
        Some(host) if !app.names.is_host(host, local) => {
            return Err(ApiError::forbidden(
                "This server is not known by that name: see `lathe serve --help`.",
            ));
        }
        Some(_) => {}
    }
    match only_value(headers, &header::ORIGIN)? {
        Some(origin) if !app.names.is_origin(origin, local) => {
            return Err(ApiError::forbidden("Requests from other pages are not answered."));
        }
        Some(_) | None => {}
    }
    let open = app.table.is_public(method, uri.path());
    let asked = token(app, headers)?;
    // A right token is accepted even if wrong ones came from its address before: clients may share an address.
    let identity = match asked {
        Credential::Nothing => None,
        Credential::Token(token) => match app.access.identify(token)? {
            Some(found) => Some(found),
            None => {
                wrong_token(app, from, method.as_str(), uri.path())?;
                None
            }
        },
        Credential::Cookie(cookie) => app.access.by_cookie(cookie, page_half(headers)?)?,
    };
    match identity {
        None if open => Ok(None),
        None => Err(ApiError::unauthorized()),
        Some(identity) if app.rates.may_send(identity.key) => Ok(Some(identity)),
        Some(_) => Err(ApiError::too_many("Too many requests; wait a moment.")),
    }
}

/// Counts an unknown token. An address that sends too many of them has to wait, and is no longer logged.
pub(crate) fn wrong_token(app: &App, from: IpAddr, did: &str, on: &str) -> Result<(), ApiError> {
    app.rates.count_wrong(from);
    if app.rates.is_guessing(from) {
        return Err(ApiError::too_many("Too many wrong tokens came from this address; wait a minute."));
    }
    app.audit.note(None, did, on, "wrong token");
    Ok(())
}

enum Credential<'a> {
    Nothing,
    Token(&'a str),
    Cookie(&'a str),
}

/// The token or the cookie of a request. A right cookie does not make up for a wrong token.
fn token<'a>(app: &App, headers: &'a HeaderMap) -> Result<Credential<'a>, ApiError> {
    if let Some(given) = only_value(headers, &header::AUTHORIZATION)? {
        let token = given.strip_prefix("Bearer ").or_else(|| given.strip_prefix("bearer "));
        return Ok(Credential::Token(token.unwrap_or(given).trim()));
    }
    Ok(cookie_of(app, headers).map_or(Credential::Nothing, Credential::Cookie))
}

/// Our cookie among those of a request.
pub(crate) fn cookie_of<'a>(app: &App, headers: &'a HeaderMap) -> Option<&'a str> {
    let name = cookie_name(app.names.port);
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut found = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    found.find(|(known, _)| *known == name).map(|(_, cookie)| cookie)
}

/// The page's half of a cookie. A script cannot set a header on a WebSocket, so there it is sent as the name of a
/// protocol.
fn page_half(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    if let Some(half) = only_value(headers, &HeaderName::from_static(PAGE_HEADER))? {
        return Ok(Some(half));
    }
    let offered = only_value(headers, &header::SEC_WEBSOCKET_PROTOCOL)?.unwrap_or_default();
    Ok(offered.split(',').find_map(|name| name.trim().strip_prefix(PAGE_PROTOCOL)))
}

/// The only value of a header. Two are refused: the second may be meant to be read by code other than the check.
fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let wrong = || ApiError::bad(format!("The header {name} cannot be read."));
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| wrong()),
        (Some(_), Some(_)) => Err(wrong()),
    }
}

/// The headers of every response.
fn with_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, CSP),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_loopback_answers_to_its_own_names_and_port_only() {
        let names = ServerNames::new("127.0.0.1:8090".parse().unwrap(), &["box.lan".to_owned()], false);
        for host in ["127.0.0.1:8090", "localhost:8090", "LOCALHOST:8090", "[::1]:8090", "box.lan:8090"] {
            assert!(names.is_host(host, None), "{host}");
            assert!(names.is_origin(&format!("http://{host}"), None), "{host}");
        }
        for host in [
            "",
            "localhost",
            "localhost:8091",
            "evil.test:8090",
            "127.0.0.1.evil.test:8090",
            "localhost:8090:1",
            "[::1]",
        ] {
            assert!(!names.is_host(host, Some(IpAddr::V4(Ipv4Addr::LOCALHOST))), "{host}");
        }
        for origin in [
            "null",
            "https://localhost:8090",
            "http://localhost:8090/",
            "http://evil@localhost:8090",
            "http://",
        ] {
            assert!(!names.is_origin(origin, None), "{origin}");
        }
    }

    #[test]
    fn a_server_on_every_address_is_known_by_the_one_a_connection_came_in_on_and_by_no_name_it_was_not_given()
    {
        let given = ["box.lan".to_owned()];
        for (listens, local, known, unknown) in [
            ("0.0.0.0:8090", "192.0.2.7", "192.0.2.7:8090", "192.0.2.8:8090"),
            ("[::]:8090", "2001:db8::7", "[2001:db8::7]:8090", "[2001:db8::8]:8090"),
            ("[::]:8090", "::ffff:192.0.2.7", "192.0.2.7:8090", "192.0.2.8:8090"),
        ] {
            let (names, local) =
                (ServerNames::new(listens.parse().unwrap(), &given, true), local.parse().ok());
            for host in [known, "127.0.0.1:8090", "localhost:8090", "[::1]:8090", "box.lan:8090"] {
                assert!(names.is_host(host, local), "{listens} {host}");
                assert!(names.is_origin(&format!("https://{host}"), local), "{listens} {host}");
            }
            for host in [
                unknown,
                "evil.test:8090",
                "0.0.0.0:8090",
                "[::]:8090",
                "192.0.2.7:8091",
                "192.0.2.7.evil.test:8090",
            ] {
                assert!(!names.is_host(host, local), "{listens} {host}");
            }
        }
        // On one address only that one counts.
        let one = ServerNames::new("192.0.2.7:8090".parse().unwrap(), &[], true);
        assert!(
            one.is_host("192.0.2.7:8090", None) && !one.is_host("127.0.0.1:8090", "127.0.0.1".parse().ok())
        );
    }
}
