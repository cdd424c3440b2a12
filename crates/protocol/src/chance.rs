//! Chance: names that no other process and no other call draws.
//!
//! The numbers come from the seeds of the standard library's hash tables, which the system draws for each process. They keep
//! names apart and spread retries. They are no secrets: keys and tokens read the system's own random numbers.

use std::hash::{BuildHasher as _, RandomState};

/// A number that is another one at each call.
pub fn chance() -> u64 {
    // Each state is seeded anew, so hashing the same value gives another number.
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_number_comes_twice() {
        let drawn: BTreeSet<u64> = (0..10_000).map(|_| chance()).collect();
        assert_eq!(drawn.len(), 10_000);
    }
}
