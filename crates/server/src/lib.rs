//! The server: sessions over HTTP and WebSocket.
//!
//! It is a surface like the console: it holds a [`lathe_host::Host`], submits commands and reads events, and keeps no
//! record of its own. A client that disconnects changes nothing, and one that returns reads on from its cursor.
//!
//! - [`access`]: the checks that every request passes: the host and origin it names, its token, its role, its rate.
//! - [`api`]: the table of routes. A route says what it needs and what it gives, once; the router, the check of roles
//!   and the OpenAPI document are all made from that.
//! - [`connections`]: their number, and the time for which they may stay silent.
//! - [`live`]: the sessions that are open here, and the frames of each, made once and given to all clients.
//! - [`ws`]: connections. Each reads at its own pace: one that is stuck delays no other, least of all the agent.
//! - [`routes`]: the routes.

mod access;
mod api;
mod app;
mod connections;
mod error;
mod live;
mod metered;
mod page;
mod routes;
mod serve;
mod settings;
mod watches;
mod ws;

pub use access::{Role, TokenRow, Tokens};
pub use app::OnRestart;
pub use error::ServerError;
pub use serve::{BoundServer, ServerOptions, TlsFiles, bind};
