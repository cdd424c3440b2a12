//! The limits that the system sets for Lathe itself.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};

/// Open files without which nothing works: a journal, the shell's pipes, a search.
const FILES: u64 = 64;
/// Megabytes of addresses without which a thread, a grammar or an answer may be what no memory is left for. The system then
/// ends the program without a word.
const MEGABYTES: u64 = 512;

/// Takes as many open files as there are to be had, and has a write beyond the largest size of a file fail instead of
/// ending the program. Says what is too little to begin.
///
/// It must be called before the first thread is started.
pub fn fit_limits() -> Result<(), String> {
    // SAFETY: the signal is ignored; no handler of ours runs.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    let memory = raised(Resource::RLIMIT_AS) >> 20;
    if memory < MEGABYTES {
        return Err(format!(
            "only {memory} MB of memory may be used here, and Lathe needs {MEGABYTES}: raise the limit (`ulimit -v {}`)",
            MEGABYTES << 10
        ));
    }
    let files = raised(Resource::RLIMIT_NOFILE);
    if files < FILES {
        return Err(format!(
            "only {files} files may be open at once here, and Lathe needs {FILES}: raise the limit (`ulimit -n {FILES}`)"
        ));
    }
    Ok(())
}

/// The limit, after it was raised as far as this user may.
fn raised(resource: Resource) -> u64 {
    let Ok((soft, hard)) = getrlimit(resource) else { return u64::MAX };
    if soft < hard && setrlimit(resource, hard, hard).is_ok() { hard } else { soft }
}
