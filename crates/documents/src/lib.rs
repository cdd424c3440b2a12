//! Documents that are kept beside a workspace, with all their versions: in a store of Lathe's own, or by a service.

mod address;
mod error;
mod service;
mod store;

pub use error::DocumentError;
pub use service::{Service, ServiceOptions};
pub use store::Store;
