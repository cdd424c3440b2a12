//! The way out of a jail's own network: a listener that is made inside, and served outside.
//!
//! `ax wall` makes the listener in the jail's network before the program begins, and sends it over an inherited socket.
//! So the jail needs no socket with a path and no process of its own for it, and nothing inside can take its place.

use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// The port of the listener, in the jail's own network.
pub(super) const PORT: u16 = 3128;

/// Far longer than a jail takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Serves the way out of the jails of a session.
pub trait NetworkDoor: Send + Sync {
    /// Serves a listener until the returned value is dropped.
    fn serve(&self, listener: TcpListener) -> Box<dyn Send>;
    /// While a line runs whose use of the network the user approved, every public host can be reached.
    fn set_open(&self, is_open: bool);
    /// Takes the connections since the last call.
    fn take_visits(&self) -> Vec<NetworkVisit>;
}

/// A connection that a process of a jail asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkVisit {
    /// The host and port, as they were decided on.
    pub host: String,
    pub is_allowed: bool,
    pub reason: String,
    pub bytes_up: u64,
    pub bytes_down: u64,
}

/// A served listener, as long as its jail lives.
pub(crate) struct Served(Arc<Mutex<ServedState>>);

enum ServedState {
    Awaited,
    Serving { _guard: Box<dyn Send> },
    Closed,
}

impl Drop for Served {
    fn drop(&mut self) {
        let before = std::mem::replace(&mut *self.0.lock(), ServedState::Closed);
        drop(before);
    }
}

/// Serves the listener that comes over the socket, once it comes.
pub(super) fn serve_when_sent(door: Arc<dyn NetworkDoor>, socket: UnixStream) -> Served {
    let state = Arc::new(Mutex::new(ServedState::Awaited));
    let shared = Arc::clone(&state);
    let runtime = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        // A jail that could not be built sends none.
        let Some(listener) = received(&socket) else { return };
        let _runtime = runtime.enter();
        let mut state = shared.lock();
        match *state {
            ServedState::Awaited => {
                *state = ServedState::Serving { _guard: door.serve(TcpListener::from(listener)) };
            }
            ServedState::Serving { .. } | ServedState::Closed => {}
        }
    });
    Served(state)
}

fn received(socket: &UnixStream) -> Option<OwnedFd> {
    socket.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(socket, &mut [IoSliceMut::new(&mut byte)], &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
    control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut sent) => sent.next(),
        _ => None,
    })
}

/// The variables that lead programs to the listener, without those that the user has set.
pub(super) fn variables(has: impl Fn(&str) -> bool) -> Vec<(&'static str, String)> {
    let http = format!("http://127.0.0.1:{PORT}");
    let none = "localhost,127.0.0.1,::1".to_owned();
    let java = format!(
        "-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort={PORT} -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort={PORT}"
    );
    let mut set: Vec<(&'static str, String)> =
        ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"].map(|name| (name, http.clone())).to_vec();
    set.extend(["ALL_PROXY", "all_proxy"].map(|name| (name, format!("socks5h://127.0.0.1:{PORT}"))));
    set.extend(["NO_PROXY", "no_proxy"].map(|name| (name, none.clone())));
    // The JVM reads none of these.
    set.extend((!has("MAVEN_OPTS")).then_some(("MAVEN_OPTS", java)));
    set
}
