//! The process above the supervisor: what is left when the supervisor is killed comes to it and is ended.
//!
//! The supervisor ends all that is below it, also when the host dies. If host and supervisor are killed together, nobody
//! else would: what has a session of its own (`setsid`) would go on. The keeper holds no descriptor, so that the host sees
//! the end of the supervisor at once, and does nothing as long as that lives.

use std::collections::HashSet;
use std::ffi::c_int;
use std::time::Duration;

use crate::system::{self, Forked, SIGKILL, Waited};
use crate::tree;

/// Between two looks at what is still there.
const PAUSE: Duration = Duration::from_millis(5);

/// Goes on in a child of this process, which stays behind as the keeper. Without a second process to be had there is none.
pub fn stay_behind() {
    if let Ok(Forked::Parent(supervisor)) = system::fork_under_subreaper() {
        keep(supervisor)
    }
}

fn keep(supervisor: c_int) -> ! {
    system::let_go_of_everything();
    let code = loop {
        match system::wait_for_child() {
            Waited::Ended(pid, code) if pid == supervisor => break code,
            Waited::Ended(..) => {}
            Waited::Nobody => break 1,
        }
    };
    while let Some(left) = left() {
        left.into_iter().for_each(|pid| system::send(pid, SIGKILL));
        std::thread::sleep(PAUSE);
    }
    std::process::exit(code)
}

/// The processes still below this one; None if there are none.
fn left() -> Option<Vec<c_int>> {
    while system::reap().is_some() {}
    let left = tree::live_for_certain(0, &HashSet::new());
    (!left.is_empty()).then(|| left.iter().map(|live| live.process.0).collect())
}
