//! Models: how they are asked, streamed, recorded and replayed.
//!
//! One module per wire. Everything above speaks neutral messages; the rope turns each into the wire's bytes once.

mod body;
mod cassette;
mod chat;
mod part;
mod record;
mod replay;
mod request;
mod retry;
mod rope;
mod variables;

pub use cassette::{Cassette, CassetteError};
pub use chat::{ChatClient, ChatOptions};
pub use part::Part;
pub use record::{RecordingClient, cassette_header, cassette_line};
pub use replay::{Pace, ReplayClient, Strictness};
pub use request::{Answer, Delta, Head, ModelClient, ModelError, Purpose, Request, Wire};
pub use rope::Rope;
pub use variables::Variables;
