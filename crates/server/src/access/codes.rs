//! Codes that sign a browser in once.
//!
//! `serve --open` must pass something to a browser through a file. A token there would be worth as much as the server
//! for as long as it runs; a code is worth one sign-in from this machine, within a minute.

use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::tokens::{digest, random};

/// The lifetime of a code.
const CODE_LIFE: Duration = Duration::from_secs(60);

/// The digest of the code issued last. A new code replaces it.
#[derive(Default)]
pub(super) struct Codes(Mutex<Option<([u8; 32], Instant)>>);

impl Codes {
    /// Makes a code that can be used from now on.
    pub fn make(&self, now: Instant) -> std::io::Result<String> {
        let code = random()?;
        *self.0.lock() = Some((digest(&code), now + CODE_LIFE));
        Ok(code)
    }

    /// Uses up a code; false if it is unknown or expired. A wrong code uses up nothing.
    pub fn take(&self, code: &str, now: Instant) -> bool {
        let mut kept = self.0.lock();
        match *kept {
            Some((known, ends)) if known == digest(code) => {
                *kept = None;
                now < ends
            }
            Some(_) | None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once_and_within_a_minute() {
        let (codes, now) = (Codes::default(), Instant::now());
        assert!(!codes.take("", now));
        let code = codes.make(now).unwrap();
        assert!(!codes.take("wrong", now));
        assert!(codes.take(&code, now + CODE_LIFE - Duration::from_secs(1)));
        assert!(!codes.take(&code, now));
        let late = codes.make(now).unwrap();
        assert!(!codes.take(&late, now + CODE_LIFE));
        assert!(!codes.take(&late, now));
        let (old, new) = (codes.make(now).unwrap(), codes.make(now).unwrap());
        assert!(!codes.take(&old, now) && codes.take(&new, now));
    }
}
