//! The way from a host to a connection: decide, resolve once, check all addresses, connect to one of exactly those.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout};

use crate::names::RequestedHost;
use crate::record::{ConnectionDecision, Recording};
use crate::refusal::{Refusal, RefusalKind};
use crate::rules::{AddressRefusal, HostJudgement, HostRules};
use crate::seams::{HostAnswer, Seams};
use crate::serve::ProxyLimits;

/// The least time for one address, so that a host with many does not get too little for each.
const ATTEMPT_MIN: Duration = Duration::from_secs(2);

/// An answer that several connections wait for.
type SharedAnswer = Arc<OnceCell<HostAnswer>>;

/// Questions to the user, by host and port. Each is asked once, and all connections that need the answer wait for it.
#[derive(Default)]
pub(crate) struct Answers {
    asked: Mutex<HashMap<(String, u16), SharedAnswer>>,
}

impl Answers {
    /// The user's answer; `None` if too many hosts were asked about.
    async fn answer(&self, seams: &dyn Seams, host: &str, port: u16, max: usize) -> Option<HostAnswer> {
        let question = {
            let mut asked = self.asked.lock();
            let key = (host.to_owned(), port);
            if asked.len() >= max && !asked.contains_key(&key) {
                return None;
            }
            Arc::clone(asked.entry(key).or_default())
        };
        Some(*question.get_or_init(|| seams.ask(host, port)).await)
    }
}

/// Connects to a host, if it is allowed.
pub(crate) async fn admit(
    rules: &HostRules,
    answers: &Answers,
    seams: &dyn Seams,
    limits: &ProxyLimits,
    (host, port): (&RequestedHost, u16),
    recording: &mut Recording,
) -> Result<TcpStream, Refusal> {
    decide(rules, answers, seams, limits, (host, port), recording).await?;
    let addresses = match host {
        RequestedHost::Address(address) => vec![SocketAddr::new(*address, port)],
        RequestedHost::Name(name) => resolve(seams, limits, name, (host, port)).await?,
    };
    recording.note_addresses(&addresses);
    check(rules, (host, port), &addresses)?;
    connect(seams, limits, (host, port), &addresses).await
}

/// Decides about a host by its name alone.
async fn decide(
    rules: &HostRules,
    answers: &Answers,
    seams: &dyn Seams,
    limits: &ProxyLimits,
    (host, port): (&RequestedHost, u16),
    recording: &mut Recording,
) -> Result<(), Refusal> {
    match rules.judge(host, port) {
        HostJudgement::Allowed { pattern } => {
            recording.note_decision(ConnectionDecision::Allowed, format!("allowed by `{pattern}`"));
            Ok(())
        }
        HostJudgement::Denied { pattern } => Err(Refusal::denied_by_rule(host, port, &pattern)),
        HostJudgement::Unlisted { why } => Err(Refusal::unlisted(host, port, why)),
        HostJudgement::Ask => {
            match answers.answer(seams, &host.to_string(), port, limits.asked_hosts).await {
                Some(HostAnswer::Allow) => {
                    let reason = "the user allowed it".to_owned();
                    recording.note_decision(ConnectionDecision::AllowedByAnswer, reason);
                    Ok(())
                }
                Some(HostAnswer::Refuse) => Err(Refusal::denied_by_answer(host, port)),
                None => Err(Refusal::unlisted(host, port, "not listed, and too many hosts were asked about")),
            }
        }
    }
}

/// Resolves a name, once.
async fn resolve(
    seams: &dyn Seams,
    limits: &ProxyLimits,
    name: &str,
    (host, port): (&RequestedHost, u16),
) -> Result<Vec<SocketAddr>, Refusal> {
    let failed = |why: String| Refusal::unreachable(RefusalKind::NoAnswer, host, port, why);
    let found = match timeout(limits.connect, seams.resolve(name, port)).await {
        Ok(Ok(found)) if found.is_empty() => return Err(failed("its name has no address".to_owned())),
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err(failed(format!("its name cannot be resolved: {error}"))),
        Err(_) => {
            let why = "its name was not resolved in time".to_owned();
            return Err(Refusal::unreachable(RefusalKind::TimedOut, host, port, why));
        }
    };
    let mut addresses = Vec::new();
    for mut address in found {
        // The form in which it is checked is the form in which it is connected to.
        let canonical = address.ip().to_canonical();
        if canonical != address.ip() {
            address.set_ip(canonical);
        }
        address.set_port(port);
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// Checks all addresses: one that is refused makes the name unusable, because a name with both kinds is an attack.
fn check(
    rules: &HostRules,
    (host, port): (&RequestedHost, u16),
    addresses: &[SocketAddr],
) -> Result<(), Refusal> {
    for address in addresses {
        match rules.check_address(host, port, address.ip()) {
            Ok(()) => {}
            Err(AddressRefusal::Special(words)) => {
                let why = format!("leads to {}, {words}", address.ip());
                return Err(Refusal::inward(host, port, words, why));
            }
            Err(AddressRefusal::Denied { pattern }) => {
                let why = format!("leads to {}, denied by `{pattern}`", address.ip());
                return Err(Refusal { why, ..Refusal::denied_by_rule(host, port, &pattern) });
            }
        }
    }
    Ok(())
}

/// Connects to the first address that accepts. Each gets its share of the time, so one that is silent does not use it up.
async fn connect(
    seams: &dyn Seams,
    limits: &ProxyLimits,
    (host, port): (&RequestedHost, u16),
    addresses: &[SocketAddr],
) -> Result<TcpStream, Refusal> {
    let deadline = Instant::now() + limits.connect;
    let mut failure = (RefusalKind::TimedOut, "no connection in time".to_owned());
    for (left, address) in (1..=addresses.len()).rev().zip(addresses) {
        let time = deadline.saturating_duration_since(Instant::now());
        if time.is_zero() {
            break;
        }
        let share = time / u32::try_from(left).unwrap_or(u32::MAX);
        match timeout(share.max(ATTEMPT_MIN).min(time), seams.connect(*address)).await {
            Ok(Ok(server)) => {
                // Small messages are not held back.
                let _ = server.set_nodelay(true);
                return Ok(server);
            }
            Ok(Err(error)) => failure = (RefusalKind::NotConnected, error.to_string()),
            Err(_) => failure = (RefusalKind::TimedOut, "no connection in time".to_owned()),
        }
    }
    Err(Refusal::unreachable(failure.0, host, port, failure.1))
}
