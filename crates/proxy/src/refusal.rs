//! Refusals: what the client is told, and what is recorded.
//!
//! Both are separate. A client is a program of the jail, and often a model reads its output: it gets one line that says what to
//! do, and nothing about the network outside, such as the addresses that a name leads to.

use crate::names::{HostDefect, RequestedHost};
use crate::record::ConnectionDecision;

/// The reason why a connection is not carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) kind: RefusalKind,
    /// One line for the client, in ASCII.
    pub(crate) told: String,
    /// The reason for the record.
    pub(crate) why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusalKind {
    /// The client left before it asked for anything. Nobody is told.
    Gone,
    /// The request is not one that a proxy serves.
    Malformed,
    /// The head of the request is too large.
    TooLarge,
    /// The request did not arrive in time.
    Late,
    /// SOCKS: a command other than CONNECT.
    OtherCommand,
    /// SOCKS: an address of an unknown kind.
    OtherAddress,
    Denied,
    DeniedByAnswer,
    /// The name has no address, or the server answered nothing that can be passed on.
    NoAnswer,
    /// No address accepted the connection.
    NotConnected,
    /// No address accepted the connection in time.
    TimedOut,
}

impl Refusal {
    fn new(kind: RefusalKind, told: impl Into<String>, why: impl Into<String>) -> Self {
        Self { kind, told: told.into(), why: why.into() }
    }

    pub(crate) fn gone() -> Self {
        Self::new(RefusalKind::Gone, "", "the client closed before it asked for a host")
    }

    pub(crate) fn malformed(why: &str) -> Self {
        Self::new(RefusalKind::Malformed, format!("this proxy cannot take the request: {why}"), why)
    }

    pub(crate) fn too_large() -> Self {
        let why = "the head of the request is too large";
        Self::new(RefusalKind::TooLarge, why, why)
    }

    pub(crate) fn late() -> Self {
        let why = "the request did not arrive in time";
        Self::new(RefusalKind::Late, why, why)
    }

    pub(crate) fn of_defect(defect: HostDefect) -> Self {
        match defect {
            HostDefect::Malformed(why) => Self::malformed(why),
            HostDefect::Impossible(why) => Self::new(RefusalKind::Denied, format!("not allowed: {why}"), why),
        }
    }

    pub(crate) fn other_command() -> Self {
        Self::new(RefusalKind::OtherCommand, "", "a SOCKS command other than CONNECT")
    }

    pub(crate) fn other_address() -> Self {
        Self::new(RefusalKind::OtherAddress, "", "a SOCKS address of an unknown kind")
    }

    /// No rule names the host.
    pub(crate) fn unlisted(host: &RequestedHost, port: u16, why: impl Into<String>) -> Self {
        let told =
            format!("`{host}:{port}` is not an allowed host of this session; allow it with `sandbox.hosts`");
        Self::new(RefusalKind::Denied, told, why)
    }

    pub(crate) fn denied_by_rule(host: &RequestedHost, port: u16, pattern: &str) -> Self {
        let told = format!("`{host}:{port}` is a denied host of this session");
        Self::new(RefusalKind::Denied, told, format!("denied by `{pattern}`"))
    }

    pub(crate) fn denied_by_answer(host: &RequestedHost, port: u16) -> Self {
        let told = format!("`{host}:{port}` was refused by the user for this session");
        Self::new(RefusalKind::DeniedByAnswer, told, "the user refused it")
    }

    /// The host leads to an address that is not reached.
    pub(crate) fn inward(host: &RequestedHost, port: u16, words: &str, why: String) -> Self {
        let told = format!(
            "`{host}:{port}` leads to {words}, which is not allowed in this session; allow the address with `sandbox.hosts`"
        );
        Self::new(RefusalKind::Denied, told, why)
    }

    /// TLS inside of a tunnel is not for the host that was allowed. Nobody is told: the tunnel is open already.
    pub(crate) fn of_greeting(why: String) -> Self {
        Self::new(RefusalKind::Denied, "", why)
    }

    pub(crate) fn unreachable(kind: RefusalKind, host: &RequestedHost, port: u16, why: String) -> Self {
        Self::new(kind, format!("`{host}:{port}` is allowed, but cannot be reached: {why}"), why)
    }

    /// The decision that a refusal stands for; `None` if the host was allowed and could not be reached.
    pub(crate) fn decision(&self) -> Option<ConnectionDecision> {
        match self.kind {
            RefusalKind::Gone
            | RefusalKind::Malformed
            | RefusalKind::TooLarge
            | RefusalKind::Late
            | RefusalKind::OtherCommand
            | RefusalKind::OtherAddress
            | RefusalKind::Denied => Some(ConnectionDecision::Denied),
            RefusalKind::DeniedByAnswer => Some(ConnectionDecision::DeniedByAnswer),
            RefusalKind::NoAnswer | RefusalKind::NotConnected | RefusalKind::TimedOut => None,
        }
    }

    /// The status of an HTTP response.
    fn status(&self) -> u16 {
        match self.kind {
            RefusalKind::Gone
            | RefusalKind::Malformed
            | RefusalKind::OtherCommand
            | RefusalKind::OtherAddress => 400,
            RefusalKind::TooLarge => 431,
            RefusalKind::Late => 408,
            RefusalKind::Denied | RefusalKind::DeniedByAnswer => 403,
            RefusalKind::NoAnswer | RefusalKind::NotConnected => 502,
            RefusalKind::TimedOut => 504,
        }
    }

    /// The reply code of SOCKS5.
    pub(crate) fn socks_code(&self) -> u8 {
        match self.kind {
            RefusalKind::Gone | RefusalKind::Malformed | RefusalKind::TooLarge | RefusalKind::Late => 1,
            RefusalKind::Denied | RefusalKind::DeniedByAnswer => 2,
            RefusalKind::NoAnswer | RefusalKind::TimedOut => 4,
            RefusalKind::NotConnected => 5,
            RefusalKind::OtherCommand => 7,
            RefusalKind::OtherAddress => 8,
        }
    }

    /// The HTTP response. The line is the reason phrase as well: it is all that many clients show of an answer to `CONNECT`.
    pub(crate) fn response(&self) -> Vec<u8> {
        let line: String = self.told.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect();
        let status = self.status();
        let length = line.len() + 1;
        format!(
            "HTTP/1.1 {status} {line}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
             Connection: close\r\n\r\n{line}\n"
        )
        .into_bytes()
    }
}
