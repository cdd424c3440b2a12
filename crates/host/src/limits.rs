//! The limits that the system sets for Lathe itself.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, Signal, signal};

/// Open files without which nothing works: a journal, the shell's pipes, a search.
const FILES: u64 = 64;

/// Takes as many open files as there are to be had, and has a write beyond the largest size of a file fail instead of
/// ending the program. Says what is too little to begin.
///
/// It must be called before the first thread is started.
pub fn fit_limits() -> Result<(), String> {
    // SAFETY: the signal is ignored; no handler of ours runs.
    let _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return Ok(()) };
    let raised = soft < hard && setrlimit(Resource::RLIMIT_NOFILE, hard, hard).is_ok();
    let files = if raised { hard } else { soft };
    if files < FILES {
        return Err(format!(
            "only {files} files may be open at once here, and Lathe needs {FILES}: raise the limit (`ulimit -n {FILES}`)"
        ));
    }
    Ok(())
}
