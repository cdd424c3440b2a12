//! The frames between host and supervisor: one type byte, a little-endian `u32` length, the payload.
//! `crates/ax/src/wire.rs` is the other end; both come out of one build, so there is no version.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::Stream;

/// Larger frames do not come from our supervisor.
const FRAME_MAX: usize = 1024 * 1024;

pub(crate) enum SupervisorEvent {
    /// Bash can take a line.
    Ready(Supervisor),
    Output {
        id: u64,
        stream: Stream,
        bytes: Vec<u8>,
    },
    Done(LineDone),
    /// The processes that lines have left running and that are alive, by line.
    Jobs {
        query: u64,
        jobs: Vec<(u64, Vec<u32>)>,
    },
    Failed(String),
    /// No more frames will come. The text is the supervisor's explanation.
    Gone(String),
}

#[derive(Clone)]
pub(crate) struct Supervisor {
    /// Its number among its own processes.
    pub(crate) pid: i32,
    /// The process on this machine that everything of the shell descends from.
    pub(crate) root: i32,
    /// True if the numbers of its processes differ from those on this machine.
    pub(crate) has_own_numbers: bool,
    /// The folder of its lines' outputs.
    pub(crate) folder: PathBuf,
}

pub(crate) struct LineDone {
    pub(crate) id: u64,
    pub(crate) how: WireExit,
    pub(crate) respawned: bool,
    pub(crate) jobs: usize,
    pub(crate) cwd: PathBuf,
}

pub(crate) enum WireExit {
    Code(i32),
    ShellSignal(i32),
}

/// `session` is the folder of the agent commands; empty if there are none. `expected` is the requirement on bash's
/// folder.
pub(crate) fn start(shell: &Path, cwd: &Path, session: &Path, expected: &str) -> Vec<u8> {
    let [shell, cwd, session] = [shell, cwd, session].map(|path| path.as_os_str().as_bytes());
    frame(b'S', &[shell, b"\0", cwd, b"\0", session, b"\0", expected.as_bytes()])
}

pub(crate) fn run(id: u64, line: &[u8]) -> Vec<u8> {
    frame(b'R', &[&id.to_le_bytes(), line])
}

/// Sets `$?` for the next line.
pub(crate) fn code(code: i32) -> Vec<u8> {
    frame(b'C', &[&code.to_le_bytes()])
}

pub(crate) fn stop(id: u64, grace_ms: u32) -> Vec<u8> {
    frame(b'K', &[&id.to_le_bytes(), &grace_ms.to_le_bytes()])
}

pub(crate) fn fresh() -> Vec<u8> {
    frame(b'F', &[])
}

/// Requests [`SupervisorEvent::Jobs`].
pub(crate) fn jobs(query: u64) -> Vec<u8> {
    frame(b'J', &[&query.to_le_bytes()])
}

pub(crate) fn end_job(id: u64, grace_ms: u32) -> Vec<u8> {
    frame(b'T', &[&id.to_le_bytes(), &grace_ms.to_le_bytes()])
}

pub(crate) fn quit() -> Vec<u8> {
    frame(b'Q', &[])
}

fn frame(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    let mut frame = Vec::with_capacity(5 + size);
    frame.push(kind);
    frame.extend_from_slice(&(size as u32).to_le_bytes());
    parts.iter().for_each(|part| frame.extend_from_slice(part));
    frame
}

/// The next event. None at the end of the stream, or if it is malformed.
pub(crate) async fn read_event(from: &mut (impl AsyncRead + Unpin)) -> Option<SupervisorEvent> {
    let mut head = [0; 5];
    from.read_exact(&mut head).await.ok()?;
    let [kind, size @ ..] = head;
    let size = u32::from_le_bytes(size) as usize;
    if size > FRAME_MAX {
        return None;
    }
    let mut payload = vec![0; size];
    from.read_exact(&mut payload).await.ok()?;
    match kind {
        b'r' => ready(&payload).map(SupervisorEvent::Ready),
        b'o' => output(Stream::Stdout, payload),
        b'e' => output(Stream::Stderr, payload),
        b'd' => done(&payload).map(SupervisorEvent::Done),
        b'j' => jobs_of(&payload),
        b'f' => Some(SupervisorEvent::Failed(String::from_utf8_lossy(&payload).into_owned())),
        _ => None,
    }
}

fn ready(payload: &[u8]) -> Option<Supervisor> {
    let (pid, folder) = payload.split_first_chunk()?;
    Some(Supervisor {
        pid: i32::from_le_bytes(*pid),
        root: i32::from_le_bytes(*pid),
        has_own_numbers: false,
        folder: PathBuf::from(OsString::from_vec(folder.to_vec())),
    })
}

fn output(stream: Stream, mut bytes: Vec<u8>) -> Option<SupervisorEvent> {
    let id = u64::from_le_bytes(*bytes.first_chunk()?);
    bytes.drain(..8);
    Some(SupervisorEvent::Output { id, stream, bytes })
}

fn jobs_of(payload: &[u8]) -> Option<SupervisorEvent> {
    let (query, mut rest) = payload.split_first_chunk()?;
    let mut jobs = Vec::new();
    while !rest.is_empty() {
        let (id, more) = rest.split_first_chunk()?;
        let (count, more) = more.split_first_chunk()?;
        let (pids, more) = more.split_at_checked(4 * u32::from_le_bytes(*count) as usize)?;
        let (pids, _) = pids.as_chunks();
        jobs.push((u64::from_le_bytes(*id), pids.iter().map(|pid| u32::from_le_bytes(*pid)).collect()));
        rest = more;
    }
    Some(SupervisorEvent::Jobs { query: u64::from_le_bytes(*query), jobs })
}

fn done(payload: &[u8]) -> Option<LineDone> {
    let (id, rest) = payload.split_first_chunk()?;
    let ([kind, respawned], rest) = rest.split_first_chunk()?;
    let (value, rest) = rest.split_first_chunk()?;
    let (jobs, cwd) = rest.split_first_chunk()?;
    let value = i32::from_le_bytes(*value);
    Some(LineDone {
        id: u64::from_le_bytes(*id),
        how: match kind {
            2 => WireExit::ShellSignal(value),
            _ => WireExit::Code(value),
        },
        respawned: *respawned != 0,
        jobs: u32::from_le_bytes(*jobs) as usize,
        cwd: PathBuf::from(OsString::from_vec(cwd.to_vec())),
    })
}
