//! Connections: accepted, counted, and closed when they stay silent.
//!
//! Descriptors are limited, and a client that connects and sends nothing, or half of a request, costs one. So the
//! head of a request has a time limit, and so has the wait for the next one. When there are too many connections, one
//! is closed for each that arrives: first one without a token, of the address that has the most of them; otherwise
//! one of the token that has the most. A client with a token that uses no more than its share is always answered.

use std::collections::HashMap;
use std::convert::Infallible;
use std::hash::Hash;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::response::Response;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use nix::sys::resource::{Resource, getrlimit};
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::access::TokenKey;
use crate::app::App;
use crate::metered::{Connection, Meter, MeteredStream};

/// The time for the head of a request, and for a connection's wait for its next request.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// The time for the greeting of a TLS client.
const GREETING: Duration = Duration::from_secs(10);
/// The wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(50);

/// The number of descriptors that this process may have.
pub(crate) fn descriptors() -> usize {
    let (soft, _) = getrlimit(Resource::RLIMIT_NOFILE).unwrap_or((1024, 1024));
    usize::try_from(soft).unwrap_or(usize::MAX)
}

/// The origin of a request, and its connection.
#[derive(Debug, Clone)]
pub(crate) struct Peer {
    pub address: SocketAddr,
    /// The address of ours that it came in on.
    pub local: Option<IpAddr>,
    pub meter: Meter,
    pub slot: Arc<ConnectionSlot>,
}

/// The open connections.
#[derive(Debug)]
pub(crate) struct OpenConnections {
    most: usize,
    slots: Mutex<ConnectionSlots>,
}

#[derive(Debug, Default)]
struct ConnectionSlots {
    next: u64,
    /// By the order in which they arrived.
    taken: HashMap<u64, SlotEntry>,
}

#[derive(Debug, Clone)]
struct SlotEntry {
    from: IpAddr,
    /// The token that was last presented on it.
    known: Option<TokenKey>,
    close: CancellationToken,
}

/// The slot of one connection; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    connections: Arc<OpenConnections>,
    number: u64,
    /// Cancelled when the connection must be closed.
    pub close: CancellationToken,
}

impl OpenConnections {
    /// A third of the descriptors: sessions, files and programs need some too.
    pub fn new() -> Arc<Self> {
        Self::of((descriptors() / 3).clamp(8, 4096))
    }

    fn of(most: usize) -> Arc<Self> {
        Arc::new(Self { most, slots: Mutex::default() })
    }

    /// A slot for a new connection. If there are too many, another connection is closed for it.
    pub fn admit(self: &Arc<Self>, from: IpAddr) -> Arc<ConnectionSlot> {
        let mut slots = self.slots.lock();
        while slots.taken.len() >= self.most && slots.close_one() {}
        let (number, close) = (slots.next, CancellationToken::new());
        slots.next += 1;
        slots.taken.insert(number, SlotEntry { from, known: None, close: close.clone() });
        Arc::new(ConnectionSlot { connections: Arc::clone(self), number, close })
    }

    /// Closes a connection if the system has no descriptor for another.
    fn make_room(&self) {
        self.slots.lock().close_one();
    }
}

impl ConnectionSlots {
    /// Closes the connection that matters least; false if there is none.
    fn close_one(&mut self) -> bool {
        let unknown = self.taken.iter().filter(|(_, taken)| taken.known.is_none());
        let number = oldest_of_most(unknown.map(|(number, taken)| (*number, taken.from))).or_else(|| {
            oldest_of_most(self.taken.iter().filter_map(|(number, taken)| Some((*number, taken.known?))))
        });
        match number.and_then(|number| self.taken.remove(&number)) {
            Some(taken) => {
                taken.close.cancel();
                true
            }
            None => false,
        }
    }
}

/// The first number of the owner that has the most.
fn oldest_of_most<K: Hash + Eq>(all: impl Iterator<Item = (u64, K)>) -> Option<u64> {
    let mut owners: HashMap<K, (usize, u64)> = HashMap::new();
    for (number, owner) in all {
        let (count, first) = owners.entry(owner).or_insert((0, number));
        (*count, *first) = (*count + 1, number.min(*first));
    }
    owners
        .into_values()
        .max_by_key(|(count, first)| (*count, std::cmp::Reverse(*first)))
        .map(|(_, first)| first)
}

impl ConnectionSlot {
    /// Records whose token was presented on this connection; none for a request without one.
    pub fn set_token(&self, key: Option<TokenKey>) {
        if let Some(taken) = self.connections.slots.lock().taken.get_mut(&self.number) {
            taken.known = key;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.slots.lock().taken.remove(&self.number);
    }
}

/// Serves connections until the server stops, and then until each has its last response.
pub(crate) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, router: Router, app: App) {
    let (connections, mut tasks) = (OpenConnections::new(), JoinSet::new());
    let stopped = app.stopped();
    tokio::pin!(stopped);
    loop {
        tokio::select! {
            () = &mut stopped => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let slot = connections.admit(address.ip());
                    tasks.spawn(accept_tls(stream, address, slot, tls.clone(), router.clone(), app.clone()));
                }
                Err(_) => {
                    connections.make_room();
                    tokio::time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

async fn accept_tls(
    stream: TcpStream,
    address: SocketAddr,
    slot: Arc<ConnectionSlot>,
    tls: Option<TlsAcceptor>,
    router: Router,
    app: App,
) {
    // Responses are small and needed at once.
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = tls else { return serve_connection(stream, address, slot, router, app).await };
    let close = slot.close.clone();
    let greeted = tokio::select! {
        greeted = tokio::time::timeout(GREETING, acceptor.accept(stream)) => greeted,
        () = close.cancelled() => return,
    };
    if let Ok(Ok(stream)) = greeted {
        serve_connection(stream, address, slot, router, app).await;
    }
}

async fn serve_connection(
    stream: impl Connection,
    address: SocketAddr,
    slot: Arc<ConnectionSlot>,
    router: Router,
    app: App,
) {
    let stream = MeteredStream::new(stream, Arc::clone(&slot));
    let peer = Peer { address, local: stream.local(), meter: stream.meter(), slot };
    let routed = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer.clone()));
        let answered = routed.call(request);
        async move { Ok::<Response, Infallible>(answered.await.unwrap_or_else(|never| match never {})) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        () = app.stopped() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(slots: &[Arc<ConnectionSlot>]) -> Vec<usize> {
        slots.iter().enumerate().filter(|(_, slot)| slot.close.is_cancelled()).map(|(at, _)| at).collect()
    }

    #[test]
    fn who_has_the_most_connections_without_a_token_loses_one_first() {
        let connections = OpenConnections::of(4);
        let (loud, quiet): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let mut slots = vec![
            connections.admit(quiet),
            connections.admit(loud),
            connections.admit(loud),
            connections.admit(loud),
        ];
        assert_eq!(closed(&slots), Vec::<usize>::new());
        slots.push(connections.admit(loud));
        assert_eq!(closed(&slots), [1]);
        slots.push(connections.admit(quiet));
        assert_eq!(closed(&slots), [1, 2]);
    }

    #[test]
    fn connections_with_a_token_outlive_those_without_and_one_token_cannot_have_them_all() {
        let connections = OpenConnections::of(4);
        let from: IpAddr = "127.0.0.1".parse().unwrap();
        let mut slots: Vec<Arc<ConnectionSlot>> = (0..4).map(|_| connections.admit(from)).collect();
        slots[0].set_token(Some(TokenKey::of("owner")));
        slots[1].set_token(Some(TokenKey::of("viewer")));
        slots.extend((0..100).map(|_| connections.admit(from)));
        assert!(!slots[0].close.is_cancelled() && !slots[1].close.is_cancelled());
        // Only tokens are left: the one with the most gives way.
        slots.drain(2..);
        for _ in 0..10 {
            let slot = connections.admit(from);
            slot.set_token(Some(TokenKey::of("viewer")));
            slots.push(slot);
        }
        assert!(!slots[0].close.is_cancelled() && !slots.last().unwrap().close.is_cancelled());
        // A place that was given back is free.
        drop(slots);
        assert_eq!(connections.slots.lock().taken.len(), 0);
    }
}
