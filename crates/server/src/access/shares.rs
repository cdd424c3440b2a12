//! One token's share of what all tokens share: searches and git runs at a time, and watched folders.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::TokenKey;

/// Searches and git runs of one token at once; more wait for these.
const COSTLY: usize = 4;
/// Folders that one token watches at once; more are refused.
pub(crate) const WATCHES: usize = 8;
/// Tokens that are remembered.
const KNOWN_MAX: usize = 10_000;

#[derive(Debug, Clone)]
pub(crate) struct Share {
    costly: Arc<Semaphore>,
    watches: Arc<Semaphore>,
}

impl Share {
    /// Waits until a costly request of this token may begin. It ends when the permit is dropped.
    pub async fn costly(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.costly).acquire_owned().await.ok()
    }

    /// A permit to watch a folder; none if the token already watches as many as it may.
    pub fn watch(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.watches).try_acquire_owned().ok()
    }

    fn is_unused(&self) -> bool {
        self.costly.available_permits() == COSTLY && self.watches.available_permits() == WATCHES
    }
}

#[derive(Default)]
pub(crate) struct Shares(Mutex<HashMap<TokenKey, Share>>);

impl Shares {
    pub fn of(&self, key: TokenKey) -> Share {
        let mut all = self.0.lock();
        if all.len() >= KNOWN_MAX {
            all.retain(|_, share| !share.is_unused());
        }
        let new =
            || Share { costly: Arc::new(Semaphore::new(COSTLY)), watches: Arc::new(Semaphore::new(WATCHES)) };
        all.entry(key).or_insert_with(new).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_token_has_its_share_and_leaves_the_others_theirs() {
        let shares = Shares::default();
        let (a, b) = (TokenKey::of("a"), TokenKey::of("b"));
        let mut held: Vec<_> = (0..WATCHES).map(|_| shares.of(a).watch().unwrap()).collect();
        assert!(shares.of(a).watch().is_none() && shares.of(b).watch().is_some());
        held.pop();
        assert!(shares.of(a).watch().is_some());
    }
}
