//! Models: requests, streams, recordings and replays.
//!
//! One module per wire, one client for all of them. All other code uses neutral messages; the rope encodes each for
//! the wire once.

mod aside;
mod assembly;
mod body;
mod cassette;
mod chat;
mod client;
#[cfg(test)]
mod cutting_tests;
mod encode;
mod failure;
mod form;
mod frames;
mod gemini;
mod images;
mod lenient;
mod members;
mod messages;
mod ollama;
mod options;
mod part;
mod reach;
mod record;
mod replay;
mod request;
mod responses;
mod retry;
mod rope;
mod schema;
mod shim;
mod variables;

pub use aside::{Aside, AsideAnswer, AsideQuestion};
pub use cassette::{Cassette, CassetteError};
pub use client::HttpClient;
pub use form::{Delivery, Form, Params, Quirks, ToolForm, Wire};
pub use images::{IMAGE_TOKENS, ImageLimits, ImageStore, NoImages, Pictures, takes_text_only};
pub use options::{Address, Auth, ClientOptions, Outage, Patience};
pub use part::Part;
pub use reach::address_refusal;
pub use record::{RecordingClient, cassette_header, cassette_line};
pub use replay::ReplayClient;
pub use request::{Delta, Head, ModelAnswer, ModelClient, ModelError, Purpose, WireRequest};
pub use rope::Rope;
pub use variables::Variables;
