//! Browsers that are signed in.
//!
//! A browser sends a cookie to every port of a host, and so to every program there. So a cookie is only one half: the other
//! half is kept by the page itself, in storage that belongs to its scheme, host and port, and sent in a header. Both are
//! random numbers of this process, so another server knows neither.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Identity;
use super::tokens::{digest, random};

/// The time for which a browser stays signed in.
pub(super) const COOKIE_LIFE: Duration = Duration::from_secs(12 * 3600);
/// Number of browsers signed in with one token. The next one signs out the oldest.
const PER_TOKEN: usize = 16;

/// The two halves that a browser gets when it signs in.
pub(crate) struct SignedIn {
    pub cookie: String,
    /// The page's half.
    pub half: String,
}

struct Cookie {
    cookie: [u8; 32],
    half: [u8; 32],
    identity: Identity,
    ends: Instant,
}

/// The cookies that were issued, oldest first.
#[derive(Default)]
pub(super) struct Cookies(Mutex<VecDeque<Cookie>>);

impl Cookies {
    pub fn add(&self, identity: &Identity) -> io::Result<SignedIn> {
        let signed_in = SignedIn { cookie: random()?, half: random()? };
        let now = Instant::now();
        let mut all = self.0.lock();
        all.retain(|known| known.ends > now);
        let same = |known: &Cookie| known.identity.key == identity.key;
        if all.iter().filter(|known| same(known)).count() >= PER_TOKEN
            && let Some(oldest) = all.iter().position(same)
        {
            all.remove(oldest);
        }
        all.push_back(Cookie {
            cookie: digest(&signed_in.cookie),
            half: digest(&signed_in.half),
            identity: identity.clone(),
            ends: now + COOKIE_LIFE,
        });
        Ok(signed_in)
    }

    /// The identity that has both halves.
    pub fn find(&self, cookie: &str, half: &str) -> Option<Identity> {
        let (cookie, half, now) = (digest(cookie), digest(half), Instant::now());
        let all = self.0.lock();
        let found = all.iter().find(|known| known.cookie == cookie && known.half == half)?;
        (found.ends > now).then(|| found.identity.clone())
    }

    pub fn remove(&self, cookie: &str) {
        let cookie = digest(cookie);
        self.0.lock().retain(|known| known.cookie != cookie);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{Role, TokenKey};

    fn identity(token: &str) -> Identity {
        Identity { name: "eyes".into(), role: Role::Viewer, key: TokenKey::of(token) }
    }

    #[test]
    fn many_sign_ins_of_one_token_sign_out_only_its_own_oldest() {
        let cookies = Cookies::default();
        let other = cookies.add(&identity("b")).unwrap();
        let mine: Vec<SignedIn> = (0..2000).map(|_| cookies.add(&identity("a")).unwrap()).collect();
        let known = mine.iter().filter(|one| cookies.find(&one.cookie, &one.half).is_some()).count();
        assert_eq!(known, PER_TOKEN);
        let newest = mine.last().unwrap();
        assert_eq!(cookies.find(&newest.cookie, &newest.half).unwrap().key, TokenKey::of("a"));
        assert_eq!(cookies.find(&other.cookie, &other.half).unwrap().key, TokenKey::of("b"));
        // The halves of two sign-ins do not fit together.
        assert!(cookies.find(&newest.cookie, &other.half).is_none());
        cookies.remove(&newest.cookie);
        assert!(cookies.find(&newest.cookie, &newest.half).is_none());
    }
}
