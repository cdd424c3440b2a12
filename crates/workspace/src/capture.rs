//! Runs a program to its end and captures its output. The output is bounded, the time is bounded, and a program that
//! is stopped leaves nothing running.

use std::future::Future;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};

use crate::{Ended, Processes, Spawn, WorkspaceError, breach_of};

/// The time to wait for output after the program has ended: one of its own children may hold the pipes.
const GRACE: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy)]
pub struct CaptureLimits {
    pub time: Duration,
    /// The maximum number of bytes kept of each stream; the rest is read and dropped.
    pub keep: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// True if a stream was longer than the kept part.
    pub cut: bool,
    pub end: CaptureEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureEnd {
    Ended(Ended),
    /// Killed with all processes that it started, because it took too long.
    TimedOut,
    /// Killed with all processes that it started, because `stop` completed.
    Stopped,
}

impl Captured {
    /// The result for a program that never ran.
    pub fn nothing() -> Self {
        Self { stdout: Vec::new(), stderr: Vec::new(), cut: false, end: CaptureEnd::Stopped }
    }
}

/// The code by which a shell names the end of a program.
fn shell_code(ended: Ended) -> i32 {
    match ended {
        Ended::Code(code) => code,
        Ended::Signal(signal) => 128 + signal,
    }
}

/// Starts a program, gives it `input`, and waits for its end. A program that passes a limit of its jail is killed
/// with all processes that it started, which is an error.
pub async fn capture(
    processes: &dyn Processes,
    what: Spawn,
    input: &[u8],
    limits: CaptureLimits,
    stop: impl Future<Output = ()> + Send,
) -> Result<Captured, WorkspaceError> {
    let mut child = processes.spawn(what).await?;
    let (out, err) = (KeptOutput::new(limits.keep), KeptOutput::new(limits.keep));
    let mut span = child.watch().map(|watch| watch.begin());
    let pipes = child.pipes();
    let pumping = async {
        let Some(mut pipes) = pipes else { return };
        let feeding = async move {
            // A program need not read its input.
            let _ = pipes.stdin.write_all(input).await;
            drop(pipes.stdin);
        };
        tokio::join!(feeding, out.fill(pipes.stdout), err.fill(pipes.stderr));
    };
    tokio::pin!(pumping, stop);
    let deadline = tokio::time::Instant::now() + limits.time;
    let mut pumped = false;
    let end = {
        let breaching = breach_of(&mut span);
        tokio::pin!(breaching);
        loop {
            tokio::select! {
                () = &mut pumping, if !pumped => pumped = true,
                ended = child.wait() => break CaptureEnd::Ended(ended?),
                () = tokio::time::sleep_until(deadline) => break CaptureEnd::TimedOut,
                () = &mut stop => break CaptureEnd::Stopped,
                breach = &mut breaching => {
                    child.kill_tree().await?;
                    return Err(WorkspaceError::Limit(breach));
                }
            }
        }
    };
    if let CaptureEnd::Ended(ended) = end
        && let Some(breach) = span.and_then(|span| span.enforced(shell_code(ended)))
    {
        return Err(WorkspaceError::Limit(breach));
    }
    if !pumped {
        let _ = tokio::time::timeout(GRACE, &mut pumping).await;
    }
    match end {
        CaptureEnd::Ended(_) => {}
        CaptureEnd::TimedOut | CaptureEnd::Stopped => child.kill_tree().await?,
    }
    let ((stdout, out_cut), (stderr, err_cut)) = (out.take(), err.take());
    Ok(Captured { stdout, stderr, cut: out_cut || err_cut, end })
}

/// The beginning of a stream.
struct KeptOutput {
    most: usize,
    bytes: Mutex<(Vec<u8>, bool)>,
}

impl KeptOutput {
    fn new(most: usize) -> Self {
        Self { most, bytes: Mutex::default() }
    }

    async fn fill(&self, mut from: Box<dyn AsyncRead + Send + Unpin>) {
        let mut chunk = vec![0; 16 << 10];
        while let Ok(read @ 1..) = from.read(&mut chunk).await {
            let mut kept = self.bytes.lock();
            let room = self.most - kept.0.len();
            kept.1 |= read > room;
            kept.0.extend_from_slice(&chunk[..read.min(room)]);
        }
    }

    fn take(&self) -> (Vec<u8>, bool) {
        std::mem::take(&mut *self.bytes.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fence, LocalProcesses};

    async fn run(script: &str, input: &[u8], millis: u64) -> Captured {
        let what = Spawn {
            argv: ["/bin/sh", "-c", script].map(Into::into).to_vec(),
            cwd: "/".into(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            fence: Fence::default(),
            shown: Vec::new(),
        };
        let limits = CaptureLimits { time: Duration::from_millis(millis), keep: 1000 };
        capture(&LocalProcesses, what, input, limits, std::future::pending()).await.unwrap()
    }

    #[tokio::test]
    async fn a_program_gets_its_input_and_its_output_is_kept_up_to_the_limit() {
        let ran = run("cat; echo no >&2; exit 3", b"in", 10_000).await;
        let end = CaptureEnd::Ended(Ended::Code(3));
        assert_eq!(ran, Captured { stdout: b"in".into(), stderr: b"no\n".into(), cut: false, end });
        let ran = run("head -c 5000 /dev/zero", &vec![0; 1 << 20], 10_000).await;
        assert_eq!((ran.stdout.len(), ran.cut), (1000, true));
    }

    #[tokio::test]
    async fn what_takes_too_long_or_is_stopped_ends_with_all_it_started() {
        let ran = run("echo begun; sleep 97 & sleep 97", b"", 300).await;
        assert_eq!((ran.end, ran.stdout.as_slice()), (CaptureEnd::TimedOut, &b"begun\n"[..]));
        let ran = run("sleep 97 & echo left", b"", 10_000).await;
        assert_eq!((ran.end, ran.stdout.as_slice()), (CaptureEnd::Ended(Ended::Code(0)), &b"left\n"[..]));
    }
}
