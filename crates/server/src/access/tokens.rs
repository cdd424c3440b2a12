//! Tokens with a name and a role, stored as digests only; and the identities that a running server knows by them.

use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_host::{own_folder, own_lock, own_text, own_write};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::sync::watch;

use super::codes::Codes;
use super::cookies::{Cookies, SignedIn};
use super::{Identity, Role, TokenKey};
use crate::error::{ApiError, ServerError};

/// The interval between two reads of the file of tokens.
const READ_INTERVAL: Duration = Duration::from_millis(200);
/// The name of the user who started the server.
const OWNER: &str = "owner";
/// The name of a client without a token.
const NOBODY: &str = "nobody";

/// The tokens that were given names.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tokens {
    #[serde(default)]
    tokens: Vec<StoredToken>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct StoredToken {
    name: String,
    role: Role,
    /// SHA-256 in hex. The token itself was shown once.
    digest: String,
}

/// The row of one token in a list.
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
        let wrong = |reason: String| ServerError::File {
            path: path.clone(),
            reason: format!(
                "the tokens cannot be read: {reason}. Correct the file, or remove it and make the tokens again with `lathe serve token add`"
            ),
        };
        match own_text(&path) {
            Ok(Some(text)) => serde_json::from_str(&text).map_err(|error| wrong(error.to_string())),
            Ok(None) => Ok(Self::default()),
            Err(error) => Err(wrong(error.to_string())),
        }
    }

    /// One writer at a time: two that read the same list would undo each other's change. The lock is the kernel's, so a
    /// process that dies leaves none.
    fn lock(home: &Path) -> Result<std::fs::File, ServerError> {
        let path = home.join("server/tokens.lock");
        let wrong =
            |error: std::io::Error| ServerError::File { path: path.clone(), reason: error.to_string() };
        own_folder(&home.join("server")).map_err(wrong)?;
        own_lock(&path).map_err(wrong)
    }

    fn save(&self, home: &Path) -> Result<(), ServerError> {
        let path = Self::file(home);
        let wrong =
            |error: std::io::Error| ServerError::File { path: path.clone(), reason: error.to_string() };
        let folder = home.join("server");
        own_folder(&folder).map_err(wrong)?;
        let bytes = serde_json::to_vec_pretty(self).unwrap_or_default();
        own_write(&path, &bytes).map_err(wrong)
    }

    pub fn rows(&self) -> Vec<TokenRow> {
        let row = |stored: &StoredToken| TokenRow { name: stored.name.clone(), role: stored.role };
        self.tokens.iter().map(row).collect()
    }

    /// Makes a token and returns it; it is never shown again.
    pub fn add(home: &Path, name: &str, role: Role) -> Result<String, ServerError> {
        good_token_name(name)?;
        let _lock = Self::lock(home)?;
        let mut tokens = Self::load(home)?;
        if tokens.tokens.iter().any(|stored| stored.name == name) {
            return Err(ServerError::Token(format!("there is a token `{name}` already; remove it first")));
        }
        let token = random().map_err(|error| ServerError::Token(format!("no random numbers: {error}")))?;
        tokens.tokens.push(StoredToken { name: name.to_owned(), role, digest: hex(&digest(&token)) });
        tokens.save(home)?;
        Ok(token)
    }

    pub fn remove(home: &Path, name: &str) -> Result<(), ServerError> {
        let _lock = Self::lock(home)?;
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

/// The state of a token that was presented before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenState {
    Known,
    Removed,
    /// The file of tokens cannot be read.
    Unreadable,
}

/// The tokens and cookies that a running server accepts.
pub(crate) struct Access {
    /// The token of this start, for the user who started it.
    own: TokenKey,
    home: PathBuf,
    cookies: Cookies,
    codes: Codes,
    /// Changes when the file of tokens changes.
    changed: watch::Sender<u64>,
}

impl Access {
    /// Access with the token of this start.
    pub fn new(home: PathBuf, token: &str) -> Self {
        Self {
            own: TokenKey::of(token),
            home,
            cookies: Cookies::default(),
            codes: Codes::default(),
            changed: watch::Sender::new(0),
        }
    }

    /// The identity of the user who started the server.
    pub fn owner(&self) -> Identity {
        Identity { name: OWNER.into(), role: Role::Admin, key: self.own }
    }

    /// The identity of a token. The file is read each time, so that a removed token is worth nothing at once. Digests
    /// are compared, so the time it takes says nothing about a token. While the file cannot be read, no client is
    /// told that its token is unknown.
    pub fn identify(&self, token: &str) -> Result<Option<Identity>, ApiError> {
        let key = TokenKey::of(token);
        if key == self.own {
            return Ok(Some(self.owner()));
        }
        let asked = key.hex();
        let tokens = Tokens::load(&self.home).map_err(|_| ApiError::tokens_unreadable())?;
        let found = tokens.tokens.into_iter().find(|stored| stored.digest == asked);
        Ok(found.map(|found| Identity { name: found.name.into(), role: found.role, key }))
    }

    /// Checks whether the token of this identity still exists, with the same role. Only a file that was read and
    /// lacks it shows that it was removed: a file that cannot be read, for want of descriptors, shows nothing.
    pub fn token_state(&self, identity: &Identity) -> TokenState {
        if identity.key == self.own {
            return TokenState::Known;
        }
        let asked = identity.key.hex();
        match Tokens::load(&self.home) {
            Err(_) => TokenState::Unreadable,
            Ok(Tokens { tokens }) => {
                let is_same = |stored: &StoredToken| stored.digest == asked && stored.role == identity.role;
                if tokens.iter().any(is_same) { TokenState::Known } else { TokenState::Removed }
            }
        }
    }

    /// Refuses an identity whose token was removed, and any but the owner while that cannot be known.
    pub fn check(&self, identity: &Identity) -> Result<(), ApiError> {
        match self.token_state(identity) {
            TokenState::Known => Ok(()),
            TokenState::Removed => Err(ApiError::token_removed()),
            TokenState::Unreadable => Err(ApiError::tokens_unreadable()),
        }
    }

    /// Ends when the token of this identity is removed.
    pub async fn removed(&self, identity: &Identity) {
        if identity.key == self.own {
            return std::future::pending().await;
        }
        let mut changes = self.changed.subscribe();
        loop {
            match self.token_state(identity) {
                TokenState::Removed => return,
                // Nothing reports when it can be read again.
                TokenState::Unreadable => tokio::time::sleep(READ_INTERVAL).await,
                TokenState::Known => {
                    if changes.changed().await.is_err() {
                        return std::future::pending().await;
                    }
                }
            }
        }
    }

    /// A cookie and the page's half for a token. Neither is the token: they end with the server, with the token, or
    /// after some hours. None if the token is unknown.
    pub fn sign_in(&self, token: &str) -> Result<Option<(SignedIn, Identity)>, ApiError> {
        let Some(identity) = self.identify(token)? else { return Ok(None) };
        Ok(Some((self.cookies.add(&identity).map_err(ApiError::no_random)?, identity)))
    }

    /// A code that signs one browser of this machine in as the owner, once and within a minute.
    pub fn one_time_code(&self) -> std::io::Result<String> {
        self.codes.make(Instant::now())
    }

    /// The same as [`Self::sign_in`] for a code, which it uses up.
    pub fn sign_in_by_code(&self, code: &str) -> Result<Option<(SignedIn, Identity)>, ApiError> {
        if !self.codes.take(code, Instant::now()) {
            return Ok(None);
        }
        let owner = self.owner();
        Ok(Some((self.cookies.add(&owner).map_err(ApiError::no_random)?, owner)))
    }

    /// The identity of this cookie and its other half. One of them alone is worth nothing.
    pub fn by_cookie(&self, cookie: &str, half: Option<&str>) -> Result<Option<Identity>, ApiError> {
        let Some(identity) = half.and_then(|half| self.cookies.find(cookie, half)) else { return Ok(None) };
        match self.token_state(&identity) {
            TokenState::Known => Ok(Some(identity)),
            TokenState::Removed => Ok(None),
            TokenState::Unreadable => Err(ApiError::tokens_unreadable()),
        }
    }

    pub fn forget(&self, cookie: &str) {
        self.cookies.remove(cookie);
    }

    fn file_state(&self) -> FileState {
        let about = std::fs::metadata(Tokens::file(&self.home)).ok()?;
        Some((about.ino(), about.len(), about.mtime(), about.mtime_nsec()))
    }
}

type FileState = Option<(u64, u64, i64, i64)>;

/// Checks again and again whether the file of tokens has changed, and notifies all that wait for it. Tokens are
/// removed by another process.
pub(crate) async fn follow_tokens(access: Arc<Access>) {
    let mut known = access.file_state();
    loop {
        tokio::time::sleep(READ_INTERVAL).await;
        let now = access.file_state();
        if now != known {
            known = now;
            access.changed.send_modify(|count| *count = count.wrapping_add(1));
        }
    }
}

/// Words that are not names of tokens: those that the log uses for others, and roles.
const RESERVED: [&str; 9] =
    [OWNER, NOBODY, "admin", "operator", "viewer", "anonymous", "root", "system", "localhost"];

/// Checks the name of a new token. A word that means something else in the log, or looks like it, is not a name:
/// reserved words in any spelling, numbers and addresses.
fn good_token_name(name: &str) -> Result<(), ServerError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 32 || name.starts_with('-') || !name.chars().all(fits) {
        let rule = "the name of a token has 1 to 32 small letters, digits or dashes, and begins with a letter or a digit";
        return Err(ServerError::Token(rule.to_owned()));
    }
    let folded: String = name.chars().filter(|c| *c != '-').map(folded).collect();
    let plain: String = name.chars().filter(|c| *c != '-').collect();
    let hex = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_hexdigit());
    let is_number = plain.chars().all(|c| c.is_ascii_digit()) || plain.strip_prefix("0x").is_some_and(hex);
    // `aa-bb-cc-dd`: a name that looks like an address.
    let groups: Vec<&str> = name.split('-').collect();
    let all_hex = groups.iter().all(|group| group.is_empty() || (group.len() <= 4 && hex(group)));
    let is_address = all_hex && (groups.len() >= 4 || groups.contains(&""));
    if ["admin", "operator", "viewer"].contains(&name) {
        return Err(ServerError::Token(format!(
            "`{name}` is the name of a role, and cannot be the name of a token. Name the token first: `lathe serve token add ci-runner --role {name}`"
        )));
    }
    if RESERVED.contains(&folded.as_str()) || is_number || is_address {
        return Err(ServerError::Token(format!(
            "`{name}` cannot be the name of a token: it reads like a number, an address or a word that stands for something else in the log. Choose another name, such as `ci-runner`"
        )));
    }
    Ok(())
}

/// The letter that a digit is read as.
fn folded(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '7' => 't',
        '8' => 'b',
        c => c,
    }
}

/// 32 random bytes in hex.
pub(crate) fn random() -> std::io::Result<String> {
    let mut bytes = [0u8; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

pub(super) fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_nothing_else() {
        for good in [
            "ci",
            "eyes",
            "ci-runner",
            "t0-1",
            "x-2",
            "owner2",
            "my-phone",
            "7th",
            "ad",
            "ada",
            "cafe",
            "fed",
            "a-1",
            "beef",
        ] {
            assert!(good_token_name(good).is_ok(), "{good}");
        }
        let long = "x".repeat(33);
        for bad in [
            "",
            "-",
            "-x",
            "owner",
            "owner.",
            "Owner",
            "Owner-",
            "o-w-n-e-r",
            "0wner",
            "own3r",
            "nobody",
            "n0b0dy",
            "no8ody",
            "admin",
            "4dmin",
            "viewer-",
            "root",
            "r00t",
            "0x7f.1",
            "0x7f-1",
            "0x7f",
            "127",
            "127-0-0-1",
            "1",
            "aa-bb-cc-dd-ee-ff",
            "10.1",
            "fe80--1",
            "a b",
            "a_b",
            "é",
            "ci\n",
            "ci/",
            &long,
        ] {
            assert!(good_token_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing_and_bring_nothing_back() {
        let home = tempfile::tempdir().unwrap();
        for round in 0..5 {
            Tokens::add(home.path(), "gone", Role::Viewer).unwrap();
            std::thread::scope(|scope| {
                for at in 0..6 {
                    let home = home.path();
                    scope.spawn(move || Tokens::add(home, &format!("t{round}-{at}"), Role::Viewer).unwrap());
                }
                scope.spawn(|| Tokens::remove(home.path(), "gone").unwrap());
            });
            let rows = Tokens::load(home.path()).unwrap().rows();
            assert_eq!(rows.len(), (round + 1) * 6);
            assert!(rows.iter().all(|row| row.name != "gone"));
        }
    }
}
