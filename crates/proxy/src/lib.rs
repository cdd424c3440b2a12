//! The way out of a jail: connections to allowed hosts, each decided and reported.
//!
//! A session's processes have no network. Where the user allows hosts, the processes get the address of a [`Proxy`] that
//! speaks HTTP (`CONNECT`, and plain requests) and SOCKS5 on one port. It runs outside of the jail and resolves names
//! itself.
//!
//! **An allowed host can carry data out.** The proxy decides which hosts are reached, not what they are sent: a path, a header,
//! an upload or the timing of requests can hold anything that the jail can read, and TLS hides it from the proxy. A host
//! that serves other names on the same address may pass requests on to them. So the list holds hosts that the user
//! would trust with the workspace. What the proxy does promise:
//!
//! - A host is decided by its normal form, before any name is resolved: a denied name makes no query.
//! - Everything that a resolver would take as an address is judged as an address, and is reached only if the user's list has
//!   it.
//! - A name is resolved once, *all* of its addresses are checked, and exactly those are connected to. There is no second query
//!   that could answer otherwise.
//! - One connection is one decision: a request that names a second host (in `Host`, in the name of TLS, in a second request
//!   on the connection) is refused or not served.
//! - Every connection gives exactly one [`ConnectionRecord`], in whatever way it ends.
//!
//! Rejected: an HTTP framework (it normalises what must be refused here); ending TLS to see requests (every tool would need
//! a certificate of ours, and the keys of the user's services would pass through this process in the clear).

mod addresses;
mod admit;
mod body;
mod connection;
mod error;
mod forward;
mod groups;
mod head;
mod names;
mod record;
mod refusal;
mod rules;
mod seams;
mod serve;
mod socks;
mod tls;
mod tunnel;

pub use error::ProxyError;
pub use groups::{
    HOST_GROUPS, HostGroup, REGISTRY_CARGO, REGISTRY_DEBIAN, REGISTRY_GO, REGISTRY_MAVEN, REGISTRY_NPM,
    REGISTRY_PYPI,
};
pub use record::{ConnectionDecision, ConnectionEnd, ConnectionRecord, ProxyProtocol};
pub use rules::{HostRules, UnlistedHosts};
pub use seams::{Boxed, HostAnswer, Seams, SystemSeams};
pub use serve::{Proxy, ProxyLimits};
