//! The way out of a session's jail, served by the proxy.
//!
//! Hosts of the user's list can be reached at any time, every other public host only while a line runs whose use of
//! the network the user approved. Each of the two is a proxy of its own: an answer for an approved line is not
//! remembered for the next one.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;

use lathe_proxy::{
    ConnectionDecision, ConnectionRecord, HostAnswer, HostRules, Proxy, ProxyLimits, SystemSeams,
    UnlistedHosts,
};
use lathe_workspace::{NetworkDoor, NetworkVisit};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::error::HostError;

/// The most connections that are kept until somebody takes them.
const VISITS: usize = 10_000;

/// Hosts by the user's settings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostLists {
    pub allow: Vec<String>,
    pub deny: Vec<String>,
}

/// The proxies of a session.
pub(crate) struct ProxyDoor(Arc<Shared>);

struct Shared {
    listed: Arc<HostRules>,
    any: Arc<HostRules>,
    visits: Arc<Mutex<Vec<NetworkVisit>>>,
    state: Mutex<DoorState>,
}

#[derive(Default)]
struct DoorState {
    is_open: bool,
    last: u64,
    served: BTreeMap<u64, ServedListener>,
}

struct ServedListener {
    listener: TcpListener,
    stop: CancellationToken,
}

impl ProxyDoor {
    pub(crate) fn new(lists: &HostLists) -> Result<Self, HostError> {
        let parse = |unlisted| {
            HostRules::parse(&lists.allow, &lists.deny, unlisted)
                .map_err(|error| HostError::NoSandbox(error.to_string()))
        };
        let (listed, any) = (Arc::new(parse(UnlistedHosts::Deny)?), Arc::new(parse(UnlistedHosts::Ask)?));
        Ok(Self(Arc::new(Shared { listed, any, visits: Arc::default(), state: Mutex::default() })))
    }
}

impl Shared {
    /// Begins to serve a listener. The value stops it.
    fn start(&self, listener: &TcpListener, is_open: bool) -> CancellationToken {
        let stop = CancellationToken::new();
        let rules = Arc::clone(if is_open { &self.any } else { &self.listed });
        let visits = Arc::clone(&self.visits);
        let take = move |record: ConnectionRecord| {
            let mut visits = visits.lock();
            if visits.len() < VISITS {
                visits.push(visit(record));
            }
        };
        let seams = SystemSeams::new(take, |_, _| Box::pin(std::future::ready(HostAnswer::Allow)));
        let proxy = Proxy::new(rules, Arc::new(seams), ProxyLimits::default());
        let listener = listener.try_clone().and_then(|listener| {
            listener.set_nonblocking(true)?;
            tokio::net::TcpListener::from_std(listener)
        });
        if let Ok(listener) = listener {
            tokio::spawn(proxy.serve(listener, stop.clone()));
        }
        stop
    }
}

impl NetworkDoor for ProxyDoor {
    fn serve(&self, listener: TcpListener) -> Box<dyn Send> {
        let mut state = self.0.state.lock();
        state.last += 1;
        let (id, stop) = (state.last, self.0.start(&listener, state.is_open));
        state.served.insert(id, ServedListener { listener, stop });
        Box::new(ServedGuard { door: Arc::clone(&self.0), id })
    }

    fn set_open(&self, is_open: bool) {
        let mut state = self.0.state.lock();
        if state.is_open == is_open {
            return;
        }
        state.is_open = is_open;
        for served in state.served.values_mut() {
            served.stop.cancel();
            served.stop = self.0.start(&served.listener, is_open);
        }
    }

    fn take_visits(&self) -> Vec<NetworkVisit> {
        std::mem::take(&mut self.0.visits.lock())
    }
}

struct ServedGuard {
    door: Arc<Shared>,
    id: u64,
}

impl Drop for ServedGuard {
    fn drop(&mut self) {
        if let Some(served) = self.door.state.lock().served.remove(&self.id) {
            served.stop.cancel();
        }
    }
}

fn visit(record: ConnectionRecord) -> NetworkVisit {
    let host = match (&record.host, record.port) {
        (Some(host), Some(port)) => format!("{host}:{port}"),
        (Some(host), None) => host.clone(),
        (None, _) => record.asked.clone(),
    };
    let is_allowed = match record.decision {
        ConnectionDecision::Allowed | ConnectionDecision::AllowedByAnswer => true,
        ConnectionDecision::Denied | ConnectionDecision::DeniedByAnswer => false,
    };
    NetworkVisit {
        host,
        is_allowed,
        reason: record.reason,
        bytes_up: record.bytes_up,
        bytes_down: record.bytes_down,
    }
}
