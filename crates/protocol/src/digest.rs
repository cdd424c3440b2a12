//! SHA-256 digests: of content, of messages, of requests.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256, written as 64 hex digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(Sha256::digest(bytes).as_slice())
    }

    /// Reads 64 hex digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        (text.len() == 64 && text.bytes().all(is_hex)).then(|| Self(text.to_owned()))
    }

    /// The next link of a chain: the digest of this one and `next`.
    pub fn chained(&self, next: &Digest) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(self.0.as_bytes());
        hasher.update(next.0.as_bytes());
        Self::from_hash(hasher.finalize().as_slice())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first digits, for people.
    pub fn short(&self) -> &str {
        self.0.get(..12).unwrap_or(&self.0)
    }

    fn from_hash(hash: &[u8]) -> Self {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let mut text = String::with_capacity(hash.len() * 2);
        for byte in hash {
            text.push(char::from(HEX[usize::from(byte >> 4)]));
            text.push(char::from(HEX[usize::from(byte & 15)]));
        }
        Self(text)
    }
}

/// A digest of content that comes in pieces.
#[derive(Default)]
pub struct DigestBuilder(Sha256);

impl DigestBuilder {
    pub fn add(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    pub fn finish(self) -> Digest {
        Digest::from_hash(self.0.finalize().as_slice())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({})", self.short())
    }
}
