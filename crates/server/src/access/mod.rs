//! Who may come in.
//!
//! A request is looked at in this order: the `Host` it names (a page elsewhere may point a name of its own at this machine),
//! the `Origin` it comes from (a page elsewhere may send requests here), the rate, then its token. Only what is open to
//! everybody passes without one, and that is little.

mod audit;
mod guard;
mod rate;
mod tokens;

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use audit::Audit;
pub(crate) use guard::{Names, check, cookie_name, literal, wrong_token};
pub(crate) use rate::Rates;
pub(crate) use tokens::{Access, make_folder, random};
pub use tokens::{TokenRow, Tokens};

/// What a token may do; each role may do what those before it may.
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

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub name: Arc<str>,
    pub role: Role,
}
