//! Tokens: named, with a role, kept as digests only; and the cookies they were exchanged for.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::{Identity, Role};
use crate::error::ServerError;

/// How long a browser stays signed in.
const COOKIE_LIFE: Duration = Duration::from_secs(12 * 3600);
/// Cookies kept at once.
const COOKIES_MAX: usize = 1024;

/// The tokens that were given names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tokens {
    #[serde(default)]
    tokens: Vec<Stored>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Stored {
    name: String,
    role: Role,
    /// SHA-256 in hex. The token itself was shown once.
    digest: String,
}

/// What a list of tokens says about one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TokenRow {
    pub name: String,
    pub role: Role,
}

impl Tokens {
    fn file(home: &Path) -> PathBuf {
        home.join("server").join("tokens.json")
    }

    pub fn load(home: &Path) -> Result<Self, ServerError> {
        let path = Self::file(home);
        let wrong = |reason: String| ServerError::File { path: path.clone(), reason };
        match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    fn save(&self, home: &Path) -> Result<(), ServerError> {
        let path = Self::file(home);
        let wrong =
            |error: std::io::Error| ServerError::File { path: path.clone(), reason: error.to_string() };
        let folder = home.join("server");
        make_folder(&folder).map_err(wrong)?;
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        let beside = folder.join(format!(".tokens.{}", std::process::id()));
        let written = private(&beside).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()
        });
        written.and_then(|()| std::fs::rename(&beside, &path)).map_err(wrong)
    }

    pub fn rows(&self) -> Vec<TokenRow> {
        let row = |stored: &Stored| TokenRow { name: stored.name.clone(), role: stored.role };
        self.tokens.iter().map(row).collect()
    }

    /// Makes a token and gives it, this one time.
    pub fn add(home: &Path, name: &str, role: Role) -> Result<String, ServerError> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || name.len() > 64 || !name.chars().all(fits) {
            let rule = "the name of a token has 1 to 64 letters, digits, dots, dashes or underscores";
            return Err(ServerError::Token(rule.to_owned()));
        }
        let mut tokens = Self::load(home)?;
        if tokens.tokens.iter().any(|stored| stored.name == name) {
            return Err(ServerError::Token(format!("there is a token `{name}` already; remove it first")));
        }
        let token = random().map_err(|error| ServerError::Token(format!("no random numbers: {error}")))?;
        tokens.tokens.push(Stored { name: name.to_owned(), role, digest: hex(&digest(&token)) });
        tokens.save(home)?;
        Ok(token)
    }

    pub fn remove(home: &Path, name: &str) -> Result<(), ServerError> {
        let mut tokens = Self::load(home)?;
        let before = tokens.tokens.len();
        tokens.tokens.retain(|stored| stored.name != name);
        if tokens.tokens.len() == before {
            return Err(ServerError::Token(format!(
                "there is no token `{name}`: see `lathe serve token list`"
            )));
        }
        tokens.save(home)
    }
}

/// Who is known to a running server.
pub(crate) struct Access {
    /// The token of this start, for whoever started it.
    own: [u8; 32],
    home: PathBuf,
    cookies: Mutex<HashMap<[u8; 32], (Identity, Instant)>>,
}

impl Access {
    /// Access with the token of this start.
    pub fn new(home: PathBuf, token: &str) -> Self {
        Self { own: digest(token), home, cookies: Mutex::default() }
    }

    /// Whose token this is. The file is read each time, so that a removed token is worth nothing at once. Digests are
    /// compared, so the time it takes says nothing about a token.
    pub fn identify(&self, token: &str) -> Option<Identity> {
        let asked = digest(token);
        if asked == self.own {
            return Some(Identity { name: "owner".into(), role: Role::Admin });
        }
        let asked = hex(&asked);
        let tokens = Tokens::load(&self.home).ok()?;
        let found = tokens.tokens.into_iter().find(|stored| stored.digest == asked)?;
        Some(Identity { name: found.name.into(), role: found.role })
    }

    /// A cookie for a token. The cookie is not the token: it ends with the server or after some hours.
    pub fn cookie_for(&self, token: &str) -> Option<(String, Identity)> {
        let identity = self.identify(token)?;
        let cookie = random().ok()?;
        let mut cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        cookies.retain(|_, (_, ends)| *ends > now);
        if cookies.len() >= COOKIES_MAX {
            return None;
        }
        cookies.insert(digest(&cookie), (identity.clone(), now + COOKIE_LIFE));
        Some((cookie, identity))
    }

    pub fn by_cookie(&self, cookie: &str) -> Option<Identity> {
        let cookies = self.cookies.lock().unwrap_or_else(PoisonError::into_inner);
        let (identity, ends) = cookies.get(&digest(cookie))?;
        let (identity, living) = (identity.clone(), *ends > Instant::now());
        drop(cookies);
        // A named token that was removed takes its cookies with it.
        let known = || {
            Tokens::load(&self.home).is_ok_and(|tokens| {
                tokens.rows().iter().any(|row| *row.name == *identity.name && row.role == identity.role)
            })
        };
        (living && (&*identity.name == "owner" || known())).then_some(identity)
    }

    pub fn forget(&self, cookie: &str) {
        self.cookies.lock().unwrap_or_else(PoisonError::into_inner).remove(&digest(cookie));
    }
}

/// 32 random bytes in hex.
pub(crate) fn random() -> std::io::Result<String> {
    let mut bytes = [0u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn make_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// A new file that only this user can read.
fn private(path: &Path) -> std::io::Result<std::fs::File> {
    let _ = std::fs::remove_file(path);
    std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// A name for somebody who has none.
pub(crate) fn nobody() -> Arc<str> {
    "nobody".into()
}
