//! A quick hash for names. Nothing here is stored on disk, or comes from an attacker who gains from collisions.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

#[derive(Default, Clone)]
pub struct QuickHasher(u64);

impl Hasher for QuickHasher {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

pub type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;
pub type QuickSet<K> = HashSet<K, BuildHasherDefault<QuickHasher>>;

/// A checksum that tells whether bytes are those that were written. It is stored on disk next to them.
pub fn checksum(bytes: &[u8]) -> i64 {
    let mut hasher = QuickHasher::default();
    hasher.write(bytes);
    hasher.write_usize(bytes.len());
    hasher.finish().cast_signed()
}
