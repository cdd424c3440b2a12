//! Listening, and the tasks that run next to the requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::DefaultBodyLimit;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use lathe_host::Host;
use lathe_plan::Plans;
use lathe_protocol::{CommandBody, SessionId};
use lathe_workbench::Workbench;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::access::{
    Access, Audit, Rates, ServerNames, Shares, Tokens, check, follow_tokens, host_literal, random,
};
use crate::api::BODY_MAX;
use crate::app::{App, AppState, Counts, OnRestart};
use crate::connections;
use crate::error::ServerError;
use crate::live::{Sessions, new_command_id};
use crate::routes;
use crate::routes::lakeview::SessionTurns;
use crate::settings::ServerSettings;
use crate::watches::Watches;

/// The time for requests to end when the server is stopped.
const GRACE: Duration = Duration::from_secs(5);
/// The time for clients to be notified that the server stops.
const FAREWELL: Duration = Duration::from_secs(1);
/// The interval between two searches for unused sessions.
const TIDY: Duration = Duration::from_secs(60);
/// The number of attempts to resume a run that was left, two a second.
const RESUME_TRIES: u32 = 60;

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub address: SocketAddr,
    /// Names, in addition to its addresses, that the server answers to.
    pub names: Vec<String>,
    /// Folders that may be worked in; the first is the default.
    pub roots: Vec<PathBuf>,
    pub tls: Option<TlsFiles>,
    pub on_restart: OnRestart,
    /// The token of this start; a new one if left out.
    pub token: Option<String>,
}

/// A server that listens and does not answer yet.
pub struct BoundServer {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: App,
    router: axum::Router,
    on_restart: OnRestart,
    /// The first name it was given.
    name: Option<String>,
    /// The addresses it listens on.
    pub address: SocketAddr,
    /// The token of this start.
    pub token: String,
    /// Sessions whose runs were under way when the last server was killed.
    pub unfinished: Vec<SessionId>,
    /// Notices for the user who starts it.
    pub warnings: Vec<String>,
}

pub async fn bind(
    host: Arc<Host>,
    plans: Arc<dyn Plans>,
    options: ServerOptions,
) -> Result<BoundServer, ServerError> {
    if !options.address.ip().is_loopback() && options.tls.is_none() {
        return Err(ServerError::NeedsTls { address: options.address.to_string() });
    }
    let tls = options.tls.as_ref().map(acceptor).transpose()?;
    let mut roots = Vec::new();
    for root in &options.roots {
        let wrong = |reason: String| ServerError::Root { path: root.clone(), reason };
        let found = root.canonicalize().map_err(|error| wrong(error.to_string()))?;
        if !found.is_dir() {
            return Err(wrong("it is not a folder".to_owned()));
        }
        if host.home().shares_with(&found) {
            return Err(ServerError::HomeInRoot { root: found, home: host.home().path().to_owned() });
        }
        roots.push(found);
    }
    // A server that knows none of its tokens would refuse every client without saying why.
    Tokens::load(host.home().path())?;
    let failed = |error: std::io::Error| ServerError::Listen {
        address: options.address.to_string(),
        reason: match error.kind() {
            std::io::ErrorKind::AddrInUse => {
                "something else listens there; choose another with --port".to_owned()
            }
            _ => error.to_string(),
        },
    };
    let listener = TcpListener::bind(options.address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let token = match options.token {
        Some(token) => token,
        None => random().map_err(|error| ServerError::Token(format!("no random numbers: {error}")))?,
    };
    let (router, table) = routes::all();
    let home = host.home().path().to_owned();
    let audit = Audit::open(&home);
    let mut warnings = Vec::new();
    if !audit.works() {
        warnings.push(format!("the audit log in {} cannot be written", home.join("server").display()));
    }
    let access = Arc::new(Access::new(home.clone(), &token));
    let sessions = Sessions::new(Arc::clone(&host), Arc::clone(&access));
    let left = sessions.unfinished();
    let app = App(Arc::new(AppState {
        names: ServerNames::new(address, &options.names, tls.is_some()),
        settings: ServerSettings::new(&home),
        workbench: Workbench::new(host.home().clone()),
        access,
        rates: Rates::default(),
        shares: Shares::default(),
        watches: Watches::default(),
        counts: Arc::new(Counts::default()),
        began: Instant::now(),
        lakeview: SessionTurns::default(),
        stopping: tokio::sync::watch::Sender::new(false),
        tls: tls.is_some(),
        port: address.port(),
        host,
        plans,
        sessions,
        roots,
        audit,
        table,
    }));
    let router = router
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(app.clone(), check))
        .layer(from_fn(catch_panics))
        .with_state(app.clone());
    let (name, on_restart) = (options.names.into_iter().next(), options.on_restart);
    Ok(BoundServer {
        listener,
        tls,
        app,
        router,
        on_restart,
        name,
        address,
        token,
        unfinished: left,
        warnings,
    })
}

/// Responds to a request whose handler panicked; otherwise its connection would end without a response.
async fn catch_panics(request: axum::extract::Request, next: Next) -> Response {
    match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => crate::error::ApiError::internal(
            "The server met a fault of its own; its report is in the folder of the server.",
        )
        .into_response(),
    }
}

async fn unknown() -> crate::error::ApiError {
    crate::error::ApiError::not_found("There is nothing at this address: see /openapi.json.")
}

async fn wrong_method(method: axum::http::Method) -> crate::error::ApiError {
    crate::error::ApiError::wrong_method(format!("{method} is not known at this address: see /openapi.json."))
}

impl BoundServer {
    /// An address that a browser on this machine can open; an address that means every address of the machine cannot
    /// be.
    pub fn url(&self) -> String {
        format!("{}#token={}", self.page(), self.token)
    }

    /// The same address with a code in place of the token, for a browser on this machine. It works once, within a
    /// minute.
    pub fn opening_url(&self) -> std::io::Result<String> {
        Ok(format!("{}#code={}", self.page(), self.app.access.one_time_code()?))
    }

    fn page(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host = match (self.address.ip(), &self.name) {
            (ip, Some(name)) if ip.is_unspecified() => name.clone(),
            (IpAddr::V4(ip), _) if ip.is_unspecified() => host_literal(Ipv4Addr::LOCALHOST.into()),
            (IpAddr::V6(ip), _) if ip.is_unspecified() => host_literal(Ipv6Addr::LOCALHOST.into()),
            (ip, _) => host_literal(ip),
        };
        format!("{scheme}://{host}:{}/", self.address.port())
    }

    /// Serves until `stop` arrives; then sessions are closed, and their runs can be resumed.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), ServerError> {
        let Self { listener, tls, app, router, on_restart, unfinished: left, .. } = self;
        if on_restart == OnRestart::Resume {
            tokio::spawn(resume(app.clone(), left));
        }
        let tidy = tokio::spawn(tidy(app.clone()));
        let tokens = tokio::spawn(follow_tokens(Arc::clone(&app.access)));
        let ended = app.clone();
        let waiting = tokio::spawn(async move {
            stop.await;
            // Runs are closed first: their clients see it, and then the connections end.
            ended.sessions.close_all().await;
            ended.stopping.send_replace(true);
        });
        let late = app.clone();
        let serving = connections::serve(listener, tls, router, app.clone());
        let hurry = async move {
            late.stopped().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            () = serving => {}
            () = hurry => {}
        }
        tidy.abort();
        tokens.abort();
        waiting.abort();
        wait_for_farewells(&app).await;
        app.sessions.close_all().await;
        Ok(())
    }
}

/// Waits briefly until every client was notified that the server ends.
async fn wait_for_farewells(app: &App) {
    app.stopping.send_replace(true);
    let notified = async {
        while app.counts.clients.get() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL, notified).await;
}

/// Resumes what a killed server left.
async fn resume(app: App, left: Vec<SessionId>) {
    for id in left {
        // Processes of the killed server end by themselves, and the session is free then.
        for _ in 0..RESUME_TRIES {
            let owner = app.access.owner();
            if let Ok(live) = app.open(&owner, &id).await {
                if let Ok(command) = new_command_id() {
                    let _ = live.submit(&owner, command, CommandBody::GoOn).await;
                }
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

async fn tidy(app: App) {
    loop {
        tokio::time::sleep(TIDY).await;
        app.sessions.close_idle().await;
    }
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServerError> {
    let wrong =
        |path: &Path, error: &dyn std::fmt::Display| ServerError::Tls(format!("{}: {error}", path.display()));
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.certificate)
        .map_err(|error| wrong(&files.certificate, &error))?
        .collect::<Result<_, _>>()
        .map_err(|error| wrong(&files.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, &error))?;
    let config =
        ServerConfig::builder_with_provider(Arc::new(tokio_rustls::rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key))
            .map_err(|error| wrong(&files.certificate, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
