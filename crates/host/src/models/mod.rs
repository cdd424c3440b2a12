//! Models: providers and their keys, the model that a request means, and the guard around its client.

pub(crate) mod auth;
pub(crate) mod budget;
pub(crate) mod guarded;
pub(crate) mod keys;
pub(crate) mod local;
pub(crate) mod probe;
pub(crate) mod providers;
pub(crate) mod request;

use crate::home::Home;

/// The keys and prices of one home, and requests for a model made with them.
pub struct Models {
    home: Home,
}

impl Models {
    pub fn new(home: Home) -> Self {
        Self { home }
    }

    pub(crate) fn home(&self) -> &Home {
        &self.home
    }
}
