//! Listening, and what goes on beside the requests.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::DefaultBodyLimit;
use axum::extract::connect_info::Connected;
use axum::middleware::from_fn_with_state;
use axum::serve::{IncomingStream, Listener};
use lathe_host::Host;
use lathe_protocol::{CommandBody, CommandId, SessionId};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;

use crate::access::{Access, Audit, Names, Rates, check, literal, random};
use crate::api::BODY_MAX;
use crate::app::{App, Counts, OnRestart, Plans, Shared};
use crate::error::ServerError;
use crate::live::Sessions;
use crate::metered::{Connection, Meter, Metering};
use crate::routes;
use crate::settings::Settings;

/// How long requests may take to end when the server is stopped.
const GRACE: Duration = Duration::from_secs(5);
/// How long clients may take to be told that the server stops.
const FAREWELL: Duration = Duration::from_secs(1);
/// Between two looks for sessions nobody uses.
const TIDY: Duration = Duration::from_secs(60);
/// How often a run that was left is tried, twice a second.
const RESUME_TRIES: u32 = 60;
/// How long the greeting of a TLS client may take.
const GREETING: Duration = Duration::from_secs(10);

/// A certificate and its key, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, Clone)]
pub struct ServerOptions {
    pub address: SocketAddr,
    /// Names beside its addresses that the server answers to.
    pub names: Vec<String>,
    /// Folders that may be worked in; the first is the default.
    pub roots: Vec<PathBuf>,
    pub tls: Option<TlsFiles>,
    pub on_restart: OnRestart,
    /// The token of this start; a new one if left out.
    pub token: Option<String>,
}

/// A server that listens and does not answer yet.
pub struct Bound {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: App,
    router: axum::Router,
    on_restart: OnRestart,
    /// The first name it was given.
    name: Option<String>,
    /// Where it listens.
    pub address: SocketAddr,
    /// The token of this start.
    pub token: String,
    /// Sessions whose runs were under way when the last server was killed.
    pub left: Vec<SessionId>,
    /// What the one who starts it should know.
    pub warnings: Vec<String>,
}

pub async fn bind(
    host: Arc<Host>,
    plans: Arc<dyn Plans>,
    options: ServerOptions,
) -> Result<Bound, ServerError> {
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
        if host.home().overlaps(&found) {
            return Err(ServerError::HomeInRoot { root: found, home: host.home().path().to_owned() });
        }
        roots.push(found);
    }
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
    let sessions = Sessions::new(Arc::clone(&host));
    let left = sessions.left_behind();
    let app = App(Arc::new(Shared {
        names: Names::new(address, &options.names, tls.is_some()),
        settings: Settings::new(&home),
        access: Access::new(home, &token),
        rates: Rates::default(),
        counts: Arc::new(Counts::default()),
        began: Instant::now(),
        lakeview: tokio::sync::Mutex::default(),
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
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(from_fn_with_state(app.clone(), check))
        .with_state(app.clone());
    let (name, on_restart) = (options.names.into_iter().next(), options.on_restart);
    Ok(Bound { listener, tls, app, router, on_restart, name, address, token, left, warnings })
}

async fn unknown() -> crate::error::ApiError {
    crate::error::ApiError::not_found("There is nothing at this address: see /openapi.json.")
}

impl Bound {
    /// An address that a browser here can open: one that means every address of this machine is none.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let host = match (self.address.ip(), &self.name) {
            (ip, Some(name)) if ip.is_unspecified() => name.clone(),
            (IpAddr::V4(ip), _) if ip.is_unspecified() => literal(Ipv4Addr::LOCALHOST.into()),
            (IpAddr::V6(ip), _) if ip.is_unspecified() => literal(Ipv6Addr::LOCALHOST.into()),
            (ip, _) => literal(ip),
        };
        format!("{scheme}://{host}:{}/#token={}", self.address.port(), self.token)
    }

    /// Answers until `stop` comes; then sessions are closed, and their runs can be gone on with.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), ServerError> {
        let Self { listener, tls, app, router, on_restart, left, address, .. } = self;
        if on_restart == OnRestart::Resume {
            tokio::spawn(resume(app.clone(), left));
        }
        let tidy = tokio::spawn(tidy(app.clone()));
        let ended = app.clone();
        let waiting = tokio::spawn(async move {
            stop.await;
            // Runs are closed first: their clients see it, and then the connections end.
            ended.sessions.close_all().await;
            ended.stopping.send_replace(true);
        });
        let make = router.into_make_service_with_connect_info::<Peer>();
        let (graceful, late) = (app.clone(), app.clone());
        let signal = async move { graceful.stopped().await };
        let serving = async move {
            match tls {
                None => axum::serve(Metering(listener), make).with_graceful_shutdown(signal).await,
                Some(acceptor) => {
                    let listener = TlsListener::new(listener, acceptor, address);
                    axum::serve(Metering(listener), make).with_graceful_shutdown(signal).await
                }
            }
        };
        let hurry = async move {
            late.stopped().await;
            tokio::time::sleep(GRACE).await;
        };
        let served = tokio::select! {
            served = serving => served,
            () = hurry => Ok(()),
        };
        tidy.abort();
        waiting.abort();
        farewells(&app).await;
        app.sessions.close_all().await;
        served
            .map_err(|error| ServerError::Listen { address: address.to_string(), reason: error.to_string() })
    }
}

/// Waits, not for long, until every client was told that the server ends.
async fn farewells(app: &App) {
    app.stopping.send_replace(true);
    let told = async {
        while app.counts.clients.get() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let _ = tokio::time::timeout(FAREWELL, told).await;
}

/// Goes on with what a killed server left.
async fn resume(app: App, left: Vec<SessionId>) {
    for id in left {
        // What the killed server started ends by itself, and lets go of the session then.
        for _ in 0..RESUME_TRIES {
            if let Ok(live) = app.open(&id).await {
                let command = CommandId::new(random().unwrap_or_default());
                live.submit(command, CommandBody::GoOn).await;
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

/// Connections that have been greeted. Each is greeted in a task of its own, so one that says nothing holds nobody up.
struct TlsListener {
    greeted: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl TlsListener {
    fn new(listener: TcpListener, acceptor: TlsAcceptor, address: SocketAddr) -> Self {
        let (sender, greeted) = mpsc::channel(64);
        tokio::spawn(async move {
            while !sender.is_closed() {
                let Ok((stream, address)) = listener.accept().await else {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                };
                let (sender, acceptor) = (sender.clone(), acceptor.clone());
                tokio::spawn(async move {
                    if let Ok(Ok(stream)) = tokio::time::timeout(GREETING, acceptor.accept(stream)).await {
                        let _ = sender.send((stream, address)).await;
                    }
                });
            }
        });
        Self { greeted, address }
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.greeted.recv().await {
            Some(greeted) => greeted,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        Ok(self.address)
    }
}

/// Where a request comes from, and by which connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub address: SocketAddr,
    /// The address of ours it came in on.
    pub local: Option<IpAddr>,
    pub meter: Meter,
}

impl<L> Connected<IncomingStream<'_, Metering<L>>> for Peer
where
    L: Listener<Addr = SocketAddr>,
    L::Io: Connection,
{
    fn connect_info(stream: IncomingStream<'_, Metering<L>>) -> Self {
        Self { address: *stream.remote_addr(), local: stream.io().local(), meter: stream.io().meter() }
    }
}
