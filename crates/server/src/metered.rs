//! Connections that count the bytes they received.
//!
//! The WebSocket library reports whole messages only. A message that arrives in pieces, with pings between them,
//! would look like a quiet client, however long it takes. So bytes are counted where they are read, below everything
//! else, and the reader of messages compares. Only this layer can also close politely: a connection that is closed
//! while the client is still sending is reset, and the client never reads the reason. So the rest of its bytes is
//! read and discarded.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::connections::ConnectionSlot;

/// The time and the number of bytes for which a client is still read after its connection was closed.
const PARTING: Duration = Duration::from_secs(3);
const PARTING_BYTES: u64 = 64 << 20;

/// The time for which a client may accept nothing that is sent to it.
const STALLED: Duration = Duration::from_secs(60);

/// The counts of a connection, for its handler.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    read: AtomicU64,
    parts: AtomicBool,
}

impl Meter {
    /// Bytes that were read so far.
    pub fn read(&self) -> u64 {
        self.0.read.load(Ordering::Relaxed)
    }

    /// Reads the client for a moment longer after the connection is dropped.
    pub fn linger(&self) {
        self.0.parts.store(true, Ordering::Relaxed);
    }
}

pub(crate) struct MeteredStream<S: Connection> {
    /// None only while it is dropped.
    stream: Option<S>,
    meter: Meter,
    /// Its slot among the connections, for as long as it is open.
    _slot: Arc<ConnectionSlot>,
    /// Ends when the slot is needed.
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Runs while the client accepts nothing of what is written.
    stalled: Option<Pin<Box<Sleep>>>,
}

pub(crate) trait Connection: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// The address of this machine that it came in on.
    fn local(&self) -> Option<IpAddr>;
}

impl Connection for TcpStream {
    fn local(&self) -> Option<IpAddr> {
        self.local_addr().ok().map(|address| address.ip())
    }
}

impl Connection for TlsStream<TcpStream> {
    fn local(&self) -> Option<IpAddr> {
        self.get_ref().0.local()
    }
}

impl<S: Connection> MeteredStream<S> {
    pub fn new(stream: S, slot: Arc<ConnectionSlot>) -> Self {
        let closing = Box::pin(slot.close.clone().cancelled_owned());
        Self { stream: Some(stream), meter: Meter::default(), _slot: slot, closing, stalled: None }
    }

    pub fn meter(&self) -> Meter {
        self.meter.clone()
    }

    pub fn local(&self) -> Option<IpAddr> {
        self.stream.as_ref().and_then(Connection::local)
    }

    fn with<T>(&mut self, act: impl FnOnce(Pin<&mut S>) -> Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match &mut self.stream {
            Some(stream) => act(Pin::new(stream)),
            None => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    }
}

impl<S: Connection> MeteredStream<S> {
    /// Writes something. A client that accepts nothing for too long is given up.
    fn writing<T>(
        &mut self,
        cx: &mut Context<'_>,
        act: impl FnOnce(Pin<&mut S>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let polled = self.with(|stream| act(stream, cx));
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(STALLED)));
        let is_over = stalled.as_mut().poll(cx).is_ready() || self.closing.as_mut().poll(cx).is_ready();
        if is_over { Poll::Ready(Err(io::ErrorKind::TimedOut.into())) } else { Poll::Pending }
    }
}

impl<S: Connection> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.closing.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        let before = buffer.filled().len();
        let polled = self.with(|stream| stream.poll_read(cx, buffer));
        let more = buffer.filled().len().saturating_sub(before) as u64;
        self.meter.0.read.fetch_add(more, Ordering::Relaxed);
        polled
    }
}

impl<S: Connection> AsyncWrite for MeteredStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.writing(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.writing(cx, |stream, cx| stream.poll_write_vectored(cx, bytes))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writing(cx, |stream, cx| stream.poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.with(|stream| stream.poll_shutdown(cx))
    }
}

impl<S: Connection> Drop for MeteredStream<S> {
    fn drop(&mut self) {
        let parts = self.meter.0.parts.load(Ordering::Relaxed);
        let stream = self.stream.take().filter(|_| parts);
        if let (Some(stream), Ok(runtime)) = (stream, tokio::runtime::Handle::try_current()) {
            // It ends by itself within seconds, and keeps only the connection alive.
            runtime.spawn(tokio::time::timeout(PARTING, part(stream)));
        }
    }
}

async fn part(mut stream: impl Connection) {
    let _ = stream.shutdown().await;
    let _ = tokio::io::copy(&mut stream.take(PARTING_BYTES), &mut tokio::io::sink()).await;
}
