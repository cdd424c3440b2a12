//! Serves the agent commands of one shell.
//!
//! One connection is one command and one task; the accept loop owns these tasks, and the session owns the loop. A
//! panic in the host's code is caught and becomes an exit code.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::client_wire::{CommandRequest, Frames, Replies, Reply};
use crate::command_session::Shared;
use crate::peer::{self, Peer};
use crate::{Caller, CommandCall, CommandEnd, CommandHost, CommandIo, HostMessage, LineClock};

/// The maximum number of concurrent commands; further ones wait to be accepted.
const CONNECTIONS: usize = 512;
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// The time that a command has to finish after its caller has gone.
const WIND_UP: Duration = Duration::from_secs(5);
/// The time that all of them have when the shell is closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

const INTERNAL: u8 = 125;
const DENIED: u8 = 126;

/// Accepts connections until the session ends.
pub(crate) async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    let mut calls = JoinSet::new();
    loop {
        let slot = tokio::select! {
            slot = Arc::clone(&slots).acquire_owned() => slot,
            () = shared.ending.cancelled() => break,
        };
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let shared = Arc::clone(&shared);
                    calls.spawn(async move {
                        // The caller has gone; there is no recipient for an error.
                        let _ = serve(stream, &shared).await;
                        drop(slot);
                    });
                }
                // No descriptors are left: some will be when a command ends.
                Err(_) => sleep(Duration::from_millis(10)).await,
            },
            Some(_) = calls.join_next() => {}
            () = shared.ending.cancelled() => break,
        }
    }
    drop(listener);
    let _ = timeout(CLOSE_LIMIT, async { while calls.join_next().await.is_some() {} }).await;
    calls.shutdown().await;
}

async fn serve(stream: UnixStream, shared: &Shared) -> io::Result<()> {
    let peer = peer::identify(&stream, shared.supervisor().as_ref(), shared.view.as_ref());
    let (reader, writer) = stream.into_split();
    let (mut frames, mut replies) = (Frames::new(reader), Replies::new(writer));
    let Ok(Some(request)) = timeout(REQUEST_LIMIT, frames.request()).await else {
        return refuse(&mut replies, "ax", INTERNAL, "this is not a request of an agent command").await;
    };
    let name = request.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let refusal = match &peer {
        Peer::Ours(_) => None,
        Peer::Stranger => Some((DENIED, "refused: the caller does not belong to this session")),
        Peer::Elsewhere => Some((
            INTERNAL,
            "it cannot be used in another mount namespace or root, where names of files mean other files",
        )),
    };
    if let Some((code, text)) = refusal {
        return refuse(&mut replies, &name, code, text).await;
    }
    let cancel = shared.ending.child_token();
    let (left_by, pid) = match &peer {
        Peer::Ours(process) => (shared.jobs.line_of(&process.numbers).await, Some(process.pid)),
        Peer::Stranger | Peer::Elsewhere => (None, None),
    };
    let caller = pid.map(|pid| Caller { pid, umask: request.umask });
    let Some(call) = call(request, caller, shared, left_by, cancel.clone()) else {
        return refuse(&mut replies, &name, INTERNAL, "the current folder does not exist any more").await;
    };
    let (io, mut end) = CommandIo::pair();
    let mut answer = pin!(caught(&shared.host, call, io));
    let mut answered = None;
    match carry(&mut frames, &mut replies, &mut end, answer.as_mut(), &mut answered).await {
        Ok(Some(code)) => {
            replies.put(Reply::Exit(code)).await?;
            replies.flush().await
        }
        Ok(None) => refuse(&mut replies, &name, INTERNAL, "it failed inside; this is a bug").await,
        Err(error) => {
            // Without its other end the host learns that its output is not read.
            drop(end);
            cancel.cancel();
            // A host that has finished must not be polled again.
            if answered.is_none() {
                let _ = timeout(WIND_UP, answer).await;
            }
            Err(error)
        }
    }
}

/// The host's exit code. None if it panics. Not a task of its own, since that would wake up another thread.
async fn caught(host: &Arc<dyn CommandHost>, call: CommandCall, io: CommandIo) -> Option<u8> {
    let mut answer = catch_unwind(AssertUnwindSafe(|| host.run(call, io))).ok()?;
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context))) {
        Ok(poll) => poll.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

/// The command as its host sees it. A process that an earlier line left in the background belongs to that line.
fn call(
    request: CommandRequest,
    caller: Option<Caller>,
    shared: &Shared,
    left_by: Option<u64>,
    cancel: CancellationToken,
) -> Option<CommandCall> {
    let (line, clock) = match left_by {
        Some(line) => (Some(line), LineClock::default()),
        None => shared.line(),
    };
    Some(CommandCall {
        argv: request.argv,
        cwd: request.cwd?,
        caller,
        output: request.output,
        input: request.input,
        line,
        clock,
        cancel,
    })
}

/// Carries the streams until the host has finished and everything is sent. Returns an error if the caller goes
/// before.
async fn carry(
    frames: &mut Frames<OwnedReadHalf>,
    replies: &mut Replies<OwnedWriteHalf>,
    end: &mut CommandEnd,
    mut answer: Pin<&mut impl Future<Output = Option<u8>>>,
    answered: &mut Option<Option<u8>>,
) -> io::Result<Option<u8>> {
    let mut is_asked = false;
    loop {
        tokio::select! {
            // First poll the host, then read its messages, and flush only when it has no more.
            biased;
            code = &mut answer, if answered.is_none() => *answered = Some(code),
            said = end.next_message() => match said {
                Some(HostMessage::Out(bytes)) => replies.put(Reply::Out(&bytes)).await?,
                Some(HostMessage::Err(bytes)) => replies.put(Reply::Err(&bytes)).await?,
                Some(HostMessage::WantsInput) => {
                    is_asked = true;
                    replies.put(Reply::WantsInput).await?;
                }
                None => match *answered {
                    Some(code) => return Ok(code),
                    // It has dropped its streams and still computes its code.
                    None => {
                        replies.flush().await?;
                        tokio::select! {
                            code = &mut answer => {
                                *answered = Some(code);
                                return Ok(code);
                            }
                            _ = frames.piece() => return Err(io::ErrorKind::BrokenPipe.into()),
                        }
                    }
                },
            },
            flushed = replies.flush(), if !replies.is_empty() => flushed?,
            piece = frames.piece() => match piece {
                Some(piece) if is_asked => {
                    is_asked = false;
                    end.send_input(piece).await;
                }
                _ => return Err(io::ErrorKind::BrokenPipe.into()),
            },
        }
    }
}

async fn refuse(replies: &mut Replies<OwnedWriteHalf>, name: &str, code: u8, text: &str) -> io::Result<()> {
    replies.put(Reply::Err(format!("{name}: {text}\n").as_bytes())).await?;
    replies.put(Reply::Exit(code)).await?;
    replies.flush().await
}
