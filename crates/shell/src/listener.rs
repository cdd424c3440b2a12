//! Answers the agent commands of one shell.
//!
//! One connection is one command. The host's answer runs as a task of its own, so that a panic in it is an exit code; the
//! connection owns that task, the accept loop owns the connections, and the session owns the loop.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::client_wire::{Frames, Reply, Request, send};
use crate::peer::{self, Peer};
use crate::session::Shared;
use crate::{CommandCall, CommandEnd, CommandIo, Said};

/// Commands at once; more of them wait to be accepted.
const CONNECTIONS: usize = 512;
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
/// What a command has to wind up when its caller has gone.
const WIND_UP: Duration = Duration::from_secs(5);
/// What all of them have when the shell is closed.
const CLOSE_LIMIT: Duration = Duration::from_secs(1);

const INTERNAL: u8 = 125;
const DENIED: u8 = 126;

/// Accepts until the session ends.
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
                        // The caller has gone; there is nobody to tell.
                        let _ = serve(stream, &shared).await;
                        drop(slot);
                    });
                }
                // No descriptors left: some will be when a command ends.
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
    let peer = peer::look_at(&stream, shared.supervisor());
    let (reader, mut writer) = stream.into_split();
    let mut frames = Frames::new(reader);
    let Ok(Some(request)) = timeout(REQUEST_LIMIT, frames.request()).await else {
        return refuse(&mut writer, "ax", INTERNAL, "this is no request of an agent command").await;
    };
    let name = request.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let refusal = match peer {
        Peer::Ours => None,
        Peer::Stranger => Some((DENIED, "refused: the caller does not belong to this session")),
        Peer::Elsewhere => Some((
            INTERNAL,
            "it cannot be used in another mount namespace or root, where names of files mean other files",
        )),
    };
    if let Some((code, text)) = refusal {
        return refuse(&mut writer, &name, code, text).await;
    }
    let cancel = shared.ending.child_token();
    let Some(call) = call(request, shared, cancel.clone()) else {
        return refuse(&mut writer, &name, INTERNAL, "the current folder does not exist any more").await;
    };
    let (io, mut end) = CommandIo::pair();
    let host = Arc::clone(&shared.host);
    let mut answer = AbortOnDropHandle::new(tokio::spawn(async move { host.run(call, io).await }));
    let carried = carry(&mut frames, &mut writer, &mut end).await;
    // Without its other end the host learns that nobody hears it.
    drop(end);
    if carried.is_ok() {
        tokio::select! {
            code = &mut answer => return match code {
                Ok(code) => send(&mut writer, Reply::Exit(code)).await,
                Err(_) => refuse(&mut writer, &name, INTERNAL, "it failed inside; this is a bug").await,
            },
            // Nothing was asked for, so it is the end.
            _ = frames.piece() => {}
        }
    }
    cancel.cancel();
    let _ = timeout(WIND_UP, answer).await;
    Ok(())
}

fn call(request: Request, shared: &Shared, cancel: CancellationToken) -> Option<CommandCall> {
    let (line, clock) = shared.line();
    Some(CommandCall {
        argv: request.argv,
        cwd: request.cwd?,
        umask: request.umask,
        output: request.output,
        input: request.input,
        line,
        clock,
        cancel,
    })
}

/// Carries the streams until the host has said all; an error when the caller went before.
async fn carry(
    frames: &mut Frames<tokio::net::unix::OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
    end: &mut CommandEnd,
) -> io::Result<()> {
    let mut is_asked = false;
    loop {
        tokio::select! {
            said = end.hear() => match said {
                Some(Said::Out(bytes)) => send(writer, Reply::Out(&bytes)).await?,
                Some(Said::Err(bytes)) => send(writer, Reply::Err(&bytes)).await?,
                Some(Said::WantsInput) => {
                    is_asked = true;
                    send(writer, Reply::WantsInput).await?;
                }
                None => return Ok(()),
            },
            piece = frames.piece() => match piece {
                Some(piece) if is_asked => {
                    is_asked = false;
                    end.give(piece).await;
                }
                _ => return Err(io::ErrorKind::BrokenPipe.into()),
            },
        }
    }
}

async fn refuse(writer: &mut OwnedWriteHalf, name: &str, code: u8, text: &str) -> io::Result<()> {
    send(writer, Reply::Err(format!("{name}: {text}\n").as_bytes())).await?;
    send(writer, Reply::Exit(code)).await
}
