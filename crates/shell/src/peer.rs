//! Who is at the other end of the socket.
//!
//! The folder of the socket keeps other users out. A process of the same user that does not descend from the supervisor is
//! refused as well: the session's rights are for its own commands. One that sees other files than the host does is told so:
//! the host acts on files by their names.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::unistd::geteuid;
use tokio::net::UnixStream;

use crate::outer::parent;

/// Deeper trees are not looked through.
const DEPTH_MAX: usize = 256;
/// A parent may end while we look, and its child has another one then.
const TRIES: usize = 3;

pub(crate) enum Peer {
    /// A process of the session, with those it descends from, itself first.
    Ours(Vec<i32>),
    Stranger,
    /// It lives in another mount namespace, or has another root.
    Elsewhere,
}

/// Where the names of files mean what they mean to us.
#[derive(PartialEq, Eq)]
pub(crate) struct View {
    mounts: PathBuf,
    root: (u64, u64),
}

pub(crate) fn look_at(stream: &UnixStream, supervisor: Option<i32>, ours: Option<&View>) -> Peer {
    let Ok(credentials) = stream.peer_cred() else {
        return Peer::Stranger;
    };
    let Some(pid) = credentials.pid().filter(|_| credentials.uid() == geteuid().as_raw()) else {
        return Peer::Stranger;
    };
    let chain = supervisor.and_then(|supervisor| (0..TRIES).find_map(|_| chain(pid, supervisor)));
    let Some(chain) = chain else { return Peer::Stranger };
    match (View::of(&pid.to_string()), ours) {
        (Some(theirs), Some(ours)) if theirs == *ours => Peer::Ours(chain),
        _ => Peer::Elsewhere,
    }
}

/// The processes from one up to, and without, another that it descends from.
fn chain(pid: i32, from: i32) -> Option<Vec<i32>> {
    let parents = std::iter::successors(Some(pid), |pid| parent(*pid).filter(|above| *above > 0));
    let mut chain: Vec<i32> = Vec::new();
    for pid in parents.take(DEPTH_MAX) {
        if pid == from {
            return Some(chain);
        }
        chain.push(pid);
    }
    None
}

impl View {
    pub(crate) fn ours() -> Option<Self> {
        Self::of("self")
    }

    fn of(pid: &str) -> Option<Self> {
        let mounts = fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()?;
        let root = fs::metadata(format!("/proc/{pid}/root")).ok()?;
        Some(Self { mounts, root: (root.dev(), root.ino()) })
    }
}
