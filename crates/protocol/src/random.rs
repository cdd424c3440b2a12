//! Random numbers, for names that no other process and no other call draws.
//!
//! The numbers come from the seeds of the standard library's hash tables, which the system draws for each process.
//! They keep names apart and spread retries. They are not secret: keys and tokens use the system's own random
//! numbers.

use std::hash::{BuildHasher as _, RandomState};

/// A random number, different at each call.
pub fn random_number() -> u64 {
    // Each state has a new seed, so hashing the same value gives another number.
    RandomState::new().hash_one(0_u8)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_number_comes_twice() {
        let drawn: BTreeSet<u64> = (0..10_000).map(|_| random_number()).collect();
        assert_eq!(drawn.len(), 10_000);
    }
}
