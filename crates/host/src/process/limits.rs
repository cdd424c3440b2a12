//! Limits that the system sets for Lathe itself.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};

/// Open files that are needed at least: for a journal, the pipes of a shell, a search.
const FILES: u64 = 64;
/// Megabytes of address space that are needed at least. With less there may be no memory left for a thread, a grammar
/// or an answer, and the system then ends the program without a message.
const MEGABYTES: u64 = 512;

/// Raises the limit of open files as far as possible, and makes a write beyond the largest size of a file fail
/// instead of ending the program. Returns a message if a limit is too low to begin.
///
/// It must be called before the first thread is started.
pub fn raise_limits() -> Result<(), String> {
    // SAFETY: the signal is ignored; no handler of ours runs.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    let memory = raise_limit(Resource::RLIMIT_AS) >> 20;
    if memory < MEGABYTES {
        return Err(format!(
            "only {memory} MB of memory may be used here, and Lathe needs {MEGABYTES}: raise the limit (`ulimit -v {}`)",
            MEGABYTES << 10
        ));
    }
    let files = raise_limit(Resource::RLIMIT_NOFILE);
    if files < FILES {
        return Err(format!(
            "only {files} files may be open at once here, and Lathe needs {FILES}: raise the limit (`ulimit -n {FILES}`)"
        ));
    }
    Ok(())
}

/// The limit, after it was raised as far as this user may.
fn raise_limit(resource: Resource) -> u64 {
    let Ok((soft, hard)) = getrlimit(resource) else { return u64::MAX };
    if soft < hard && setrlimit(resource, hard, hard).is_ok() { hard } else { soft }
}
