//! The process above the supervisor: the processes that remain when the supervisor is killed become its children and
//! are ended.
//!
//! The supervisor ends everything below it, also when the host dies. If host and supervisor are killed together,
//! nothing else would: a process with a session of its own (`setsid`) would continue. The keeper holds no descriptor,
//! so that the host notices the end of the supervisor at once, and does nothing as long as the supervisor lives.

use std::collections::HashSet;
use std::ffi::c_int;
use std::time::Duration;

use crate::system::{self, Forked, SIGKILL, Waited};
use crate::tree;

/// The time between two checks for remaining processes.
const PAUSE: Duration = Duration::from_millis(5);

/// Continues in a child of this process, which stays as the keeper. If no second process can be made, there is no
/// keeper.
pub fn fork_keeper() {
    if let Ok(Forked::Parent(supervisor)) = system::fork_under_subreaper() {
        keep(supervisor)
    }
}

fn keep(supervisor: c_int) -> ! {
    system::close_everything();
    let code = loop {
        match system::wait_for_child() {
            Waited::Ended(pid, code) if pid == supervisor => break code,
            Waited::Ended(..) => {}
            Waited::NoChild => break 1,
        }
    };
    while let Some(left) = remaining() {
        left.into_iter().for_each(|pid| system::send(pid, SIGKILL));
        std::thread::sleep(PAUSE);
    }
    std::process::exit(code)
}

/// The processes still below this one. None if there are none.
fn remaining() -> Option<Vec<c_int>> {
    while system::reap().is_some() {}
    let left = tree::live_for_certain(0, &HashSet::new());
    (!left.is_empty()).then(|| left.iter().map(|live| live.process.0).collect())
}
