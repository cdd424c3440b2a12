//! Documents that are kept next to a workspace, with all their versions: in Lathe's own store, or by a service.

mod address;
mod error;
mod service;
mod store;

pub use error::DocumentError;
pub use service::{DocumentService, ServiceOptions};
pub use store::DocumentStore;
