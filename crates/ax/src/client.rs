//! An agent command: carries the words, the standard streams and the exit code between its caller and the host.
//!
//! Only the host interprets the words; `crates/shell/src/client_wire.rs` is the other end of the frames. Standard
//! input is read only when the host asks for a piece, so a command that needs no input takes none from a loop that
//! reads from a file. The end of the connection is the end of the command, for both sides.

use std::ffi::{OsStr, OsString, c_int};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::system::{self, PollFd};

const VERSION: u8 = 1;
/// The largest payload of a frame, in both directions, except for the request.
const PIECE_MAX: usize = 64 * 1024;
const HEAD: usize = 5;
/// The exit code if the host is unreachable, or its reply is malformed.
const NO_HOST: u8 = 125;
const FAILED: u8 = 1;
/// The result of `makedev` for /dev/null.
const DEV_NULL: u64 = 0x103;

pub struct AgentCall<'a> {
    pub name: &'a OsStr,
    pub arguments: &'a [OsString],
    /// The folder of the links; the socket is in its parent.
    pub links: &'a Path,
}

enum CallError {
    Host(io::Error),
    Input(io::Error),
    Output(io::Error),
}

/// Runs the command to its exit code.
pub fn run(call: &AgentCall<'_>) -> u8 {
    let (code, text) = match exchange(call) {
        Ok(code) => return code,
        Err(CallError::Host(error)) => (NO_HOST, format!("the session does not answer: {error}")),
        Err(CallError::Input(error)) => (FAILED, format!("standard input: {error}")),
        Err(CallError::Output(error)) => (FAILED, format!("write error: {error}")),
    };
    let mut line = call.name.as_bytes().to_vec();
    line.extend_from_slice(format!(": {text}\n").as_bytes());
    // If this fails, there is no channel left to report it.
    let _ = write_all(2, &line);
    code
}

fn exchange(call: &AgentCall<'_>) -> Result<u8, CallError> {
    let mut host = UnixStream::connect(call.links.join("../s")).map_err(CallError::Host)?;
    host.write_all(&request(call)).map_err(CallError::Host)?;
    let mut buffer = vec![0; HEAD + PIECE_MAX];
    let mut filled = 0;
    let mut is_asked = false;
    loop {
        let mut taken = 0;
        while let Some((kind, payload)) = frame(&buffer[taken..filled]).map_err(CallError::Host)? {
            match (kind, payload) {
                (b'O', bytes) => write_all(1, bytes).map_err(CallError::Output)?,
                (b'E', bytes) => write_all(2, bytes).map_err(CallError::Output)?,
                (b'R', _) => is_asked = true,
                (b'X', [code]) => return Ok(*code),
                _ => return Err(CallError::Host(ErrorKind::InvalidData.into())),
            }
            taken += HEAD + payload.len();
        }
        buffer.copy_within(taken..filled, 0);
        filled -= taken;
        if is_asked && system::wait_for_either(host.as_raw_fd(), 0).map_err(CallError::Host)? {
            send_input(&mut host)?;
            is_asked = false;
            continue;
        }
        match host.read(&mut buffer[filled..]) {
            Ok(0) => return Err(CallError::Host(ErrorKind::UnexpectedEof.into())),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(CallError::Host(error)),
        }
    }
}

/// The first complete frame.
fn frame(bytes: &[u8]) -> io::Result<Option<(u8, &[u8])>> {
    let Some(([kind, size @ ..], rest)) = bytes.split_first_chunk::<HEAD>() else {
        return Ok(None);
    };
    match u32::from_le_bytes(*size) as usize {
        0..=PIECE_MAX => {
            let size = u32::from_le_bytes(*size) as usize;
            Ok(rest.get(..size).map(|payload| (*kind, payload)))
        }
        _ => Err(ErrorKind::InvalidData.into()),
    }
}

/// Sends the next piece of standard input; an empty one at its end.
fn send_input(host: &mut UnixStream) -> Result<(), CallError> {
    let mut piece = vec![0; HEAD + PIECE_MAX];
    let count = loop {
        match system::standard(0).read(&mut piece[HEAD..]) {
            Ok(count) => break count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // An earlier process made it non-blocking, and another one read the data first.
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                system::wait(&mut [PollFd::reader(0)], None).map_err(CallError::Input)?;
            }
            // An empty piece would mean that everything was read.
            Err(error) => return Err(CallError::Input(error)),
        }
    };
    piece[0] = b'I';
    piece[1..HEAD].copy_from_slice(&(count as u32).to_le_bytes());
    host.write_all(&piece[..HEAD + count]).map_err(CallError::Host)
}

fn request(call: &AgentCall<'_>) -> Vec<u8> {
    let mut frame = Vec::with_capacity(1024);
    frame.extend_from_slice(&[b'C', 0, 0, 0, 0, VERSION]);
    frame.push(u8::from(is_stream(0)));
    frame.push(u8::from(is_session_output(call.links)));
    frame.extend_from_slice(&system::current_umask().to_le_bytes());
    frame.extend_from_slice(&(1 + call.arguments.len() as u32).to_le_bytes());
    for word in [call.name].into_iter().chain(call.arguments.iter().map(OsString::as_os_str)) {
        frame.extend_from_slice(&(word.len() as u32).to_le_bytes());
        frame.extend_from_slice(word.as_bytes());
    }
    // The host reports a folder that was deleted.
    let cwd = std::env::current_dir().unwrap_or_default();
    frame.extend_from_slice(cwd.as_os_str().as_bytes());
    let size = (frame.len() - HEAD) as u32;
    frame[1..HEAD].copy_from_slice(&size.to_le_bytes());
    frame
}

/// Tells whether input may come from a descriptor. A terminal is not waited for: no user types at an agent.
fn is_stream(fd: c_int) -> bool {
    let Ok(data) = system::standard(fd).metadata() else {
        return false;
    };
    !(data.file_type().is_char_device() && (data.rdev() == DEV_NULL || system::is_terminal(fd)))
}

/// Tells whether standard output is one of the two pipes of a line, which are in the supervisor's folder.
fn is_session_output(links: &Path) -> bool {
    let Ok(ours) = system::standard(1).metadata() else {
        return false;
    };
    if !ours.file_type().is_fifo() {
        return false;
    }
    let Ok(path) = fs::read_link("/proc/self/fd/1") else {
        return false;
    };
    let Some(name) = path.file_name().filter(|name| matches!(name.as_bytes(), [b'o' | b'e', ..])) else {
        return false;
    };
    // The name alone proves nothing: a line may make a FIFO with that name.
    let theirs = fs::metadata(links.join("../io").join(name));
    theirs.is_ok_and(|theirs| (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino()))
}

fn write_all(fd: c_int, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match system::standard(fd).write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => system::wait(&mut [PollFd::writer(fd)], None)?,
                ErrorKind::BrokenPipe => system::die_of_broken_pipe(),
                _ => return Err(error),
            },
        }
    }
    Ok(())
}
