//! The frames between host and supervisor: one type byte, a little-endian `u32` length, the payload.
//! `crates/shell/src/wire.rs` is the other end.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::jobs::JobProcesses;

pub enum HostRequest {
    /// `session` is the folder of the agent commands, empty if there are none. `expected` is the requirement on
    /// bash's folder: `device:inode`, `path` for exactly the folder at that path, empty for any.
    Start {
        shell: Vec<u8>,
        cwd: Vec<u8>,
        session: Vec<u8>,
        expected: Vec<u8>,
    },
    Run {
        id: u64,
        text: Vec<u8>,
    },
    Stop {
        id: u64,
        grace_ms: u32,
    },
    /// The value of `$?` for the next line.
    Code(i32),
    Fresh,
    /// Requests the processes that lines have left running.
    Jobs {
        query: u64,
    },
    EndJob {
        id: u64,
        grace_ms: u32,
    },
    Quit,
}

pub enum ExitKind {
    Code(i32),
    ShellExit(i32),
    ShellSignal(i32),
}

/// Removes the first complete frame from `input`; a malformed frame counts as the end.
pub fn take_request(input: &mut Vec<u8>) -> Option<HostRequest> {
    let (kind, rest) = input.split_first()?;
    let (size, rest) = rest.split_first_chunk()?;
    let size = u32::from_le_bytes(*size) as usize;
    let payload = rest.get(..size)?;
    let request = parse(*kind, payload).unwrap_or(HostRequest::Quit);
    input.drain(..5 + size);
    Some(request)
}

fn parse(kind: u8, payload: &[u8]) -> Option<HostRequest> {
    let with_id = || payload.split_first_chunk().map(|(id, rest)| (u64::from_le_bytes(*id), rest));
    match kind {
        b'S' => {
            let mut parts = payload.split(|byte| *byte == 0).map(<[u8]>::to_vec);
            Some(HostRequest::Start {
                shell: parts.next()?,
                cwd: parts.next()?,
                session: parts.next()?,
                expected: parts.next()?,
            })
        }
        b'R' => with_id().map(|(id, text)| HostRequest::Run { id, text: text.to_vec() }),
        b'K' => {
            let (id, grace) = with_id()?;
            Some(HostRequest::Stop { id, grace_ms: u32::from_le_bytes(*grace.first_chunk()?) })
        }
        b'C' => Some(HostRequest::Code(i32::from_le_bytes(*payload.first_chunk()?))),
        b'F' => Some(HostRequest::Fresh),
        b'J' => with_id().map(|(query, _)| HostRequest::Jobs { query }),
        b'T' => {
            let (id, grace) = with_id()?;
            Some(HostRequest::EndJob { id, grace_ms: u32::from_le_bytes(*grace.first_chunk()?) })
        }
        _ => None,
    }
}

/// Sends our process id and the folder of our outputs, by which the host recognises processes and pipes as ours.
pub fn put_ready(out: &mut Vec<u8>, folder: &Path) {
    put(out, b'r', &[&std::process::id().to_le_bytes(), folder.as_os_str().as_bytes()]);
}

pub fn put_output(out: &mut Vec<u8>, id: u64, which: usize, bytes: &[u8]) {
    put(out, [b'o', b'e'][which], &[&id.to_le_bytes(), bytes]);
}

pub fn put_failure(out: &mut Vec<u8>, text: &str) {
    put(out, b'f', &[text.as_bytes()]);
}

pub fn put_done(out: &mut Vec<u8>, id: u64, how: &ExitKind, respawned: bool, jobs: usize, cwd: &[u8]) {
    let (kind, value) = match how {
        ExitKind::Code(value) => (0, value),
        ExitKind::ShellExit(value) => (1, value),
        ExitKind::ShellSignal(value) => (2, value),
    };
    let flags = [kind, u8::from(respawned)];
    put(out, b'd', &[&id.to_le_bytes(), &flags, &value.to_le_bytes(), &(jobs as u32).to_le_bytes(), cwd]);
}

/// All jobs with their live processes. `query` is 0 if there was no request.
pub fn put_jobs(out: &mut Vec<u8>, query: u64, jobs: &[JobProcesses]) {
    let mut list = Vec::new();
    for job in jobs {
        list.extend_from_slice(&job.id.to_le_bytes());
        list.extend_from_slice(&(job.processes.len() as u32).to_le_bytes());
        job.processes.iter().for_each(|process| list.extend_from_slice(&process.0.to_le_bytes()));
    }
    put(out, b'j', &[&query.to_le_bytes(), &list]);
}

fn put(out: &mut Vec<u8>, kind: u8, parts: &[&[u8]]) {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    out.push(kind);
    out.extend_from_slice(&(size as u32).to_le_bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}
