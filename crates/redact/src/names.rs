//! Environment variables that hold secrets: by their names, and by their values.
//!
//! A name alone is a guess. `AUTH=true`, `SSL_KEY=/etc/ssl/key.pem` and `KEY=production` are not secrets, and
//! redacting their values would redact ordinary words everywhere. So a name with other meanings counts only with a
//! value that looks like a secret; a name with no other meaning counts with every value but the shortest and the
//! plainest.

/// Last parts of names that mean a secret and nothing else.
const SURE: [&str; 7] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "APIKEY"];

/// Such parts as the end of a longer word: `PGPASSWORD`, `ACCESSTOKEN`.
const SURE_ENDS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY"];

/// Parts before `KEY` with which it always means a secret.
const SURE_KEYS: [&str; 4] = ["API", "SECRET", "ACCESS", "PRIVATE"];

/// Last parts of names that mean a secret if the value looks like one.
const LIKELY: [&str; 8] = ["KEY", "AUTH", "DSN", "PAT", "PWD", "COOKIE", "CREDENTIAL", "CREDENTIALS"];

/// Words that end like a key and are not keys.
const NO_KEYS: [&str; 9] =
    ["MONKEY", "DONKEY", "TURKEY", "HOCKEY", "JOCKEY", "WHISKEY", "HOTKEY", "PUBKEY", "PUBLICKEY"];

/// Values that describe a secret, and are not secrets.
const WORDS: [&str; 24] = [
    "true",
    "false",
    "enabled",
    "disabled",
    "required",
    "optional",
    "default",
    "always",
    "never",
    "none",
    "null",
    "basic",
    "bearer",
    "digest",
    "password",
    "secret",
    "token",
    "prompt",
    "ask",
    "agent",
    "keyring",
    "auto",
    "changeme",
    "undefined",
];

/// Folders at the top of a machine: a value that begins with one is a path.
const TOPS: [&str; 22] = [
    "home",
    "root",
    "etc",
    "usr",
    "var",
    "tmp",
    "opt",
    "srv",
    "mnt",
    "media",
    "run",
    "dev",
    "proc",
    "sys",
    "nix",
    "Users",
    "private",
    "Library",
    "Volumes",
    "workspace",
    "workspaces",
    "app",
];

/// Shorter values are never secrets.
const SHORTEST: usize = 6;

/// The certainty that a name means a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameCertainty {
    Sure,
    Likely,
    No,
}

fn certainty(name: &str) -> NameCertainty {
    let name = name.to_ascii_uppercase();
    let parts: Vec<&str> = name.split(['_', '-', '.']).collect();
    let (last, before) = match parts.as_slice() {
        [before @ .., last] => (*last, before.last().copied().unwrap_or_default()),
        [] => return NameCertainty::No,
    };
    if SURE.contains(&last) || SURE_ENDS.iter().any(|end| last.ends_with(end)) {
        return NameCertainty::Sure;
    }
    if last == "KEY" && SURE_KEYS.contains(&before) {
        return NameCertainty::Sure;
    }
    let is_public = matches!(before, "PUBLIC" | "PUB") && last == "KEY";
    // The current and the previous folder of a shell.
    let is_folder = last == "PWD" && parts.len() == 1;
    let is_key = last.ends_with("KEY") && !NO_KEYS.contains(&last);
    if (LIKELY.contains(&last) || is_key) && !is_public && !is_folder {
        NameCertainty::Likely
    } else {
        NameCertainty::No
    }
}

/// Tells whether a variable has the name of a secret, with any value.
pub fn is_secret_name(name: &str) -> bool {
    certainty(name) == NameCertainty::Sure
}

/// The secrets in a variable; empty if it is an ordinary one. A part of an address is secret under any name.
pub fn secrets_in(name: &str, value: &str) -> Vec<String> {
    let judged = certainty(name);
    let mut secrets = in_addresses(value, judged != NameCertainty::No);
    let is_secret = match judged {
        NameCertainty::Sure => !is_ordinary(value),
        // An address without a password in it, or with one that is already known, is not secret as a whole.
        NameCertainty::Likely => !is_ordinary(value) && !is_word(value) && !value.contains("://"),
        NameCertainty::No => false,
    };
    if is_secret {
        secrets.push(value.to_owned());
    }
    secrets
}

fn is_ordinary(value: &str) -> bool {
    let folded = value.to_ascii_lowercase();
    value.len() < SHORTEST
        || WORDS.contains(&folded.as_str())
        || (value.len() < 8 && value.bytes().all(|byte| byte.is_ascii_digit()))
        || is_path(value)
}

/// Tells whether a value is one path, or several with colons between them.
fn is_path(value: &str) -> bool {
    let is_one = |part: &str| {
        let plain = part.bytes().all(|byte| byte.is_ascii_graphic() && !b"+=".contains(&byte));
        let rooted = part.strip_prefix('/').is_some_and(|rest| {
            let top = rest.split('/').next().unwrap_or_default();
            TOPS.contains(&top)
        });
        plain && (rooted || ["~/", "./", "../"].iter().any(|begin| part.starts_with(begin)))
    };
    value.split(':').all(|part| !part.is_empty() && is_one(part))
}

/// Tells whether a value has only letters, like a word: `production`, `Ask-Me`.
fn is_word(value: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || b"-_ ".contains(&byte);
    let (first, rest) = value.split_at_checked(1).unwrap_or(("", value));
    let upper = value.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    value.len() < 20
        && (upper || (first.bytes().all(|byte| byte.is_ascii_alphabetic()) && rest.bytes().all(is_letter)))
}

/// The secrets of an address: its password, a lone user, and values of its query by their names.
pub fn secrets_in_address(address: &str) -> Vec<String> {
    let mut secrets = in_addresses(address, true);
    let query = address.split_once('?').map_or("", |(_, query)| query);
    for part in query.split(['&', '#']) {
        let Some((name, value)) = part.split_once('=') else { continue };
        if certainty(name) != NameCertainty::No && value.len() >= SHORTEST && !is_word(value) {
            secrets.push(value.to_owned());
        }
    }
    secrets
}

/// `user:password` of every address in a value, and the password by itself where it is not a word. A user without a
/// password is a secret in a variable that is named like one.
fn in_addresses(value: &str, lone_users: bool) -> Vec<String> {
    let mut secrets = Vec::new();
    for (at, _) in value.match_indices("://") {
        let rest = value.get(at + 3..).unwrap_or_default();
        let end = rest.find(['/', '?', '#', ' ', '"', '\'', ',']).unwrap_or(rest.len());
        // The last one: a careless password may contain another.
        let Some((user, _)) = rest.get(..end).and_then(|host| host.rsplit_once('@')) else { continue };
        let Some((_, password)) = user.split_once(':').filter(|(_, password)| !password.is_empty()) else {
            let user = user.trim_end_matches(':');
            if lone_users && user.len() >= SHORTEST && !is_word(user) {
                secrets.push(user.to_owned());
            }
            continue;
        };
        if user.len() >= SHORTEST {
            secrets.push(user.to_owned());
        }
        if password.len() >= SHORTEST && !is_word(password) && !is_ordinary(password) {
            secrets.push(password.to_owned());
        }
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_decide_together() {
        for (name, value, expected) in [
            ("STRIPE_KEY", "rk_live_8dh3", &["rk_live_8dh3"][..]),
            ("STRIPEKEY", "rk_live_8dh3", &["rk_live_8dh3"]),
            ("AWS_ACCESS_KEY_ID", "AKIA1234", &[]),
            ("AWS_SECRET_ACCESS_KEY", "/8dj3kd/9dk+3k", &["/8dj3kd/9dk+3k"]),
            ("AUTH", "dXNlcjpwYXNz", &["dXNlcjpwYXNz"]),
            ("NPM_CONFIG__AUTH", "dXNlcjpwYXNz", &["dXNlcjpwYXNz"]),
            ("SENTRY_DSN", "me:pw88@tcp(h)/db", &["me:pw88@tcp(h)/db"]),
            ("SENTRY_DSN", "https://8dh3k7@sentry.io/4", &["8dh3k7"]),
            ("ANYTHING", "https://8dh3k7@sentry.io/4", &[]),
            ("GITHUB_PAT", "github_pat_11A", &["github_pat_11A"]),
            ("PASSPHRASE", "correct horse battery", &["correct horse battery"]),
            ("COOKIE", "sid=8d7f6a", &["sid=8d7f6a"]),
            ("AWS_SESSION_TOKEN", "IQoJb3Jp", &["IQoJb3Jp"]),
            ("PGPASSWORD", "letmein", &["letmein"]),
            ("MYSQL_PWD", "l3tmein!", &["l3tmein!"]),
            ("DATABASE_URL", "postgres://app:s3cr3tpw@db/x", &["app:s3cr3tpw", "s3cr3tpw"]),
            ("DATABASE_URL", "postgres://postgres:postgres@db/x", &["postgres:postgres"]),
            ("DATABASE_URL", "postgres://db/x", &[]),
            ("ANYTHING", "x=http://me:p4ssw0rd@proxy:3128,amqp://q:p@h", &["me:p4ssw0rd", "p4ssw0rd"]),
            // Not these.
            ("KEYMAP", "qwertz-12", &[]),
            ("MONKEY", "a-monkey-99", &[]),
            ("KEYBOARD", "us-intl-1", &[]),
            ("SSH_PUBLIC_KEY", "ssh-ed25519 AAAA", &[]),
            ("SSH_AUTH_SOCK", "/tmp/ssh-XX/agent.1", &[]),
            ("GIT_ASKPASS", "/usr/bin/ask", &[]),
            ("GIT_AUTHOR_NAME", "Somebody 1", &[]),
            ("MAX_TOKENS", "4096000", &[]),
            ("PWD", "/srv/work/x9", &[]),
            ("OLDPWD", "/srv/work/x9", &[]),
            ("SSL_KEY", "/etc/ssl/key.pem", &[]),
            ("SSL_KEY", "~/keys/one.pem", &[]),
            ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json", &[]),
            ("USE_AUTH", "true", &[]),
            ("DB_PASSWORD", "12345", &[]),
            ("AUTH", "required", &[]),
            ("KEY", "production", &[]),
            ("A_KEY", "Ask-me", &[]),
            ("PORT_KEY", "8080", &[]),
            ("", "whatever1", &[]),
        ] {
            assert_eq!(secrets_in(name, value), expected, "{name}={value}");
        }
    }
}
