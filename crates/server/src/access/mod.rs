//! Access: the checks that decide which requests are served.
//!
//! A request is checked in this order: the `Host` it names (a page elsewhere may point a name of its own at this
//! machine), the `Origin` it comes from (a page elsewhere may send requests here), then its token, then the rate of
//! that token. Only the few public routes need no token.
//!
//! An [`Identity`] is that of a token, not of a name: it is known by the token's digest. Removing a token ends
//! everything that was opened with it, even in the middle of a response: see [`Access::removed`].

mod audit;
mod codes;
mod cookies;
mod guard;
mod rate;
mod shares;
mod tokens;

use std::fmt;
use std::sync::Arc;

use lathe_protocol::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use audit::Audit;
pub(crate) use guard::{ServerNames, check, cookie_name, cookie_of, host_literal, wrong_token};
pub(crate) use rate::Rates;
pub(crate) use shares::{Share, Shares, WATCHES};
pub(crate) use tokens::{Access, TokenState, follow_tokens, random};
pub use tokens::{TokenRow, Tokens};

/// The rights of a token; each role includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Viewer,
    Operator,
    Admin,
}

impl Role {
    pub const ALL: [Role; 3] = [Role::Viewer, Role::Operator, Role::Admin];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Viewer => "viewer",
            Role::Operator => "operator",
            Role::Admin => "admin",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The digest of a token, by which an identity is known. A name may be given to another token later.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenKey([u8; 32]);

impl TokenKey {
    pub fn of(token: &str) -> Self {
        Self(tokens::digest(token))
    }

    fn hex(self) -> String {
        tokens::hex(&self.0)
    }

    /// A digest that binds a text to this token. It reveals nothing about either to a client that does not know both.
    pub fn binding(self, text: &[u8]) -> Digest {
        Digest::of(&self.0).chained(&Digest::of(text))
    }

    /// Enough digits of it to distinguish tokens in a log.
    fn short(self) -> String {
        self.hex().chars().take(12).collect()
    }
}

impl fmt::Debug for TokenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())
    }
}

/// A presented token, with its name and its role.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub name: Arc<str>,
    pub role: Role,
    pub key: TokenKey,
}
