//! Identification of the process at the other end of the socket.
//!
//! The folder of the socket keeps other users out. A process of the same user that does not descend from the
//! supervisor is refused as well: the session's rights are for its own commands. A process that sees other files than
//! the host is refused with that reason: the host acts on files by their names.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use nix::unistd::geteuid;
use tokio::net::UnixStream;

use crate::outer::parent;
use crate::wire::Supervisor;

/// The maximum depth of a searched process tree.
const DEPTH_MAX: usize = 256;
/// The number of attempts. A parent may end meanwhile, and its child has another one then.
const TRIES: usize = 3;

pub(crate) enum Peer {
    /// A process of the session.
    Ours(SessionProcess),
    Stranger,
    /// It runs in another mount namespace, or has another root.
    Elsewhere,
}

/// A process below the supervisor.
pub(crate) struct SessionProcess {
    /// Its number on this machine.
    pub(crate) pid: i32,
    /// The numbers that it and its ancestors have for the supervisor, itself first.
    pub(crate) numbers: Vec<i32>,
}

/// The mount namespace and root of a process, which decide the meaning of file names.
#[derive(PartialEq, Eq)]
pub(crate) struct View {
    mounts: PathBuf,
    root: (u64, u64),
}

pub(crate) fn identify(stream: &UnixStream, supervisor: Option<&Supervisor>, ours: Option<&View>) -> Peer {
    let Ok(credentials) = stream.peer_cred() else {
        return Peer::Stranger;
    };
    let Some(pid) = credentials.pid().filter(|_| credentials.uid() == geteuid().as_raw()) else {
        return Peer::Stranger;
    };
    let Some(supervisor) = supervisor else { return Peer::Stranger };
    let Some(chain) = (0..TRIES).find_map(|_| chain(pid, supervisor.root)) else { return Peer::Stranger };
    if !supervisor.has_own_numbers {
        let is_same =
            matches!((View::of(&pid.to_string()), ours), (Some(theirs), Some(ours)) if theirs == *ours);
        return if is_same { Peer::Ours(SessionProcess { pid, numbers: chain }) } else { Peer::Elsewhere };
    }
    // In a jail the supervisor sees what all of its processes see, unless they moved on.
    let numbers: Option<Vec<i32>> = chain.iter().map(|pid| inner_number(*pid)).collect();
    let Some(numbers) = numbers else { return Peer::Stranger };
    let of_supervisor = numbers.iter().position(|number| *number == supervisor.pid);
    let Some(above) = of_supervisor.and_then(|at| chain.get(at)) else { return Peer::Stranger };
    match (View::of(&pid.to_string()), View::of(&above.to_string())) {
        (Some(theirs), Some(expected)) if theirs == expected => Peer::Ours(SessionProcess { pid, numbers }),
        _ => Peer::Elsewhere,
    }
}

/// The number that a process has in its own namespace.
fn inner_number(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    numbers.split_ascii_whitespace().next_back()?.parse().ok()
}

/// The chain of processes from `pid` up to its ancestor `from`, without the latter.
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
