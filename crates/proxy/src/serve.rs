//! Listening, with a bounded number of connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::admit::Answers;
use crate::connection::carry;
use crate::record::Recording;
use crate::rules::HostRules;
use crate::seams::Seams;

/// The pause after a connection could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The limits of a proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyLimits {
    /// Connections that are served at once; others wait to be accepted.
    pub connections: usize,
    /// Hosts that the user is asked about; others are denied.
    pub asked_hosts: usize,
    /// Time for the head of a request, and for the first message of TLS once it has begun.
    pub head: Duration,
    /// Time to resolve a name, and again to connect.
    pub connect: Duration,
    /// Time in which a client that was refused may read the refusal.
    pub linger: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connections: 1024,
            asked_hosts: 1000,
            head: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            linger: Duration::from_secs(1),
        }
    }
}

/// The way out of a session's jail.
pub struct Proxy {
    pub(crate) rules: Arc<HostRules>,
    pub(crate) seams: Arc<dyn Seams>,
    pub(crate) limits: ProxyLimits,
    pub(crate) answers: Answers,
    places: Arc<Semaphore>,
    accepted: AtomicU64,
}

impl Proxy {
    pub fn new(rules: Arc<HostRules>, seams: Arc<dyn Seams>, limits: ProxyLimits) -> Arc<Self> {
        let places = Arc::new(Semaphore::new(limits.connections));
        Arc::new(Self {
            rules,
            seams,
            limits,
            answers: Answers::default(),
            places,
            accepted: AtomicU64::new(0),
        })
    }

    /// Serves the clients of a listener until `stop`. When it returns, every connection has ended and was recorded; if it is
    /// dropped instead, they end with it. A proxy may serve several listeners: its limits and the user's answers hold for
    /// all of them.
    pub async fn serve(self: Arc<Self>, listener: TcpListener, stop: CancellationToken) {
        let mut connections = JoinSet::new();
        let _ = stop.run_until_cancelled(self.accept(&listener, &stop, &mut connections)).await;
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    async fn accept(
        self: &Arc<Self>,
        listener: &TcpListener,
        stop: &CancellationToken,
        connections: &mut JoinSet<()>,
    ) {
        // The semaphore is never closed.
        while let Ok(place) = Arc::clone(&self.places).acquire_owned().await {
            while connections.try_join_next().is_some() {}
            let Ok((client, _)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            let id = self.accepted.fetch_add(1, Ordering::Relaxed) + 1;
            let recording = Recording::new(id, Arc::clone(&self.seams));
            let (proxy, stop) = (Arc::clone(self), stop.clone());
            connections.spawn(async move {
                let _place = place;
                stop.run_until_cancelled(carry(client, &proxy, recording)).await;
            });
        }
    }
}
