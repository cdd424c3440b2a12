//! The record of a connection: made once, when it has ended, in whatever way it ended.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::names::RequestedHost;
use crate::refusal::Refusal;
use crate::seams::Seams;

/// The longest host, as a client wrote it, that is recorded.
const ASKED_MAX: usize = 300;

/// The way in which a client asked for a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// A tunnel by HTTP `CONNECT`.
    Connect,
    /// One plain HTTP request.
    Http,
    /// A tunnel by SOCKS5.
    Socks5,
}

/// The decision about a connection, and who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionDecision {
    Allowed,
    /// The user was asked, now or for an earlier connection.
    AllowedByAnswer,
    Denied,
    DeniedByAnswer,
}

/// The way in which a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectionEnd {
    /// It was denied.
    Refused,
    /// It was allowed, but the host could not be reached.
    Unreachable(String),
    /// Both sides closed it.
    Closed,
    /// One side broke it off.
    Broken(String),
    /// The proxy was stopped.
    Stopped,
}

/// The record of one connection of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// The number of the connection, counted by its proxy from 1.
    pub id: u64,
    /// Absent if the client sent no readable request.
    pub protocol: Option<ProxyProtocol>,
    /// The host (with its port, in HTTP) as the client wrote it, shortened, control characters replaced.
    pub asked: String,
    /// The same host in its normal form, which was decided on.
    pub host: Option<String>,
    pub port: Option<u16>,
    pub decision: ConnectionDecision,
    /// The reason of the decision, for people.
    pub reason: String,
    /// The addresses that the host led to.
    pub addresses: Vec<SocketAddr>,
    /// Bytes that the server was sent.
    pub bytes_up: u64,
    /// Bytes that the client was sent from the server.
    pub bytes_down: u64,
    pub ended: ConnectionEnd,
}

/// The bytes that were written to each side.
#[derive(Debug, Default)]
pub(crate) struct ByteCounts {
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
}

/// A record that is being written. It is delivered when this is dropped, so that a connection whose task is stopped or fails
/// has its record too.
pub(crate) struct Recording {
    record: ConnectionRecord,
    counts: ByteCounts,
    seams: Arc<dyn Seams>,
}

impl Recording {
    pub(crate) fn new(id: u64, seams: Arc<dyn Seams>) -> Self {
        let record = ConnectionRecord {
            id,
            protocol: None,
            asked: String::new(),
            host: None,
            port: None,
            decision: ConnectionDecision::Denied,
            reason: "the connection ended before it was decided".to_owned(),
            addresses: Vec::new(),
            bytes_up: 0,
            bytes_down: 0,
            ended: ConnectionEnd::Stopped,
        };
        Self { record, counts: ByteCounts::default(), seams }
    }

    pub(crate) fn counts(&self) -> &ByteCounts {
        &self.counts
    }

    /// Notes what the client asks for, as it wrote it.
    pub(crate) fn note_asked(&mut self, protocol: ProxyProtocol, asked: &[u8]) {
        let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
        self.record.protocol = Some(protocol);
        self.record.asked = String::from_utf8_lossy(asked).chars().take(ASKED_MAX).map(visible).collect();
    }

    /// Notes the host that is decided on.
    pub(crate) fn note_host(&mut self, host: &RequestedHost, port: u16) {
        self.record.host = Some(host.to_string());
        self.record.port = Some(port);
    }

    pub(crate) fn note_addresses(&mut self, addresses: &[SocketAddr]) {
        self.record.addresses = addresses.to_vec();
    }

    pub(crate) fn note_decision(&mut self, decision: ConnectionDecision, reason: String) {
        self.record.decision = decision;
        self.record.reason = reason;
    }

    /// Ends the recording of a connection that was carried.
    pub(crate) fn end(mut self, end: ConnectionEnd) {
        self.record.ended = end;
    }

    /// Ends the recording of a connection that was not carried.
    pub(crate) fn end_refused(mut self, refusal: &Refusal) {
        match refusal.decision() {
            Some(decision) => {
                self.note_decision(decision, refusal.why.clone());
                self.record.ended = ConnectionEnd::Refused;
            }
            None => self.record.ended = ConnectionEnd::Unreachable(refusal.why.clone()),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let mut record = self.record.clone();
        record.bytes_up = self.counts.up.load(Ordering::Relaxed);
        record.bytes_down = self.counts.down.load(Ordering::Relaxed);
        self.seams.record(record);
    }
}
