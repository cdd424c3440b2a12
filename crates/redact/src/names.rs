//! Which variables of the environment hold secrets: by their names, and by what is in them.
//!
//! A name alone is a guess. `AUTH=true`, `SSL_KEY=/etc/ssl/key.pem` and `KEY=production` are no secrets, and hiding their
//! values would hide ordinary words everywhere. So a name that may mean something else counts only with a value that looks
//! like one; a name that can mean nothing else counts with every value but the shortest and the plainest.

/// Last parts of names that mean a secret and nothing else.
const SURE: [&str; 7] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASS", "PASSPHRASE", "APIKEY"];

/// The same as the end of a part: `PGPASSWORD`, `ACCESSTOKEN`.
const SURE_ENDS: [&str; 6] = ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "APIKEY"];

/// Parts before `KEY` with which it means nothing else.
const SURE_KEYS: [&str; 4] = ["API", "SECRET", "ACCESS", "PRIVATE"];

/// Last parts of names that mean a secret if the value looks like one.
const LIKELY: [&str; 8] = ["KEY", "AUTH", "DSN", "PAT", "PWD", "COOKIE", "CREDENTIAL", "CREDENTIALS"];

/// Words that end like a key and are none.
const NO_KEYS: [&str; 9] =
    ["MONKEY", "DONKEY", "TURKEY", "HOCKEY", "JOCKEY", "WHISKEY", "HOTKEY", "PUBKEY", "PUBLICKEY"];

/// Values that say something about a secret, and are none.
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

/// Folders at the top of a machine: what begins with one is a path.
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

/// How sure a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Sure,
    Likely,
    No,
}

fn judge(name: &str) -> Name {
    let name = name.to_ascii_uppercase();
    let parts: Vec<&str> = name.split(['_', '-', '.']).collect();
    let (last, before) = match parts.as_slice() {
        [before @ .., last] => (*last, before.last().copied().unwrap_or_default()),
        [] => return Name::No,
    };
    if SURE.contains(&last) || SURE_ENDS.iter().any(|end| last.ends_with(end)) {
        return Name::Sure;
    }
    if last == "KEY" && SURE_KEYS.contains(&before) {
        return Name::Sure;
    }
    let is_public = matches!(before, "PUBLIC" | "PUB") && last == "KEY";
    // The folder that a shell is in, and was in.
    let is_folder = last == "PWD" && parts.len() == 1;
    let is_key = last.ends_with("KEY") && !NO_KEYS.contains(&last);
    if (LIKELY.contains(&last) || is_key) && !is_public && !is_folder { Name::Likely } else { Name::No }
}

/// Whether a variable is named like a secret, whatever is in it.
pub fn is_secret_name(name: &str) -> bool {
    judge(name) == Name::Sure
}

/// What is secret in a variable; nothing, if it is an ordinary one. Part of an address is secret by whatever name.
pub fn secrets_in(name: &str, value: &str) -> Vec<String> {
    let judged = judge(name);
    let mut secrets = in_addresses(value, judged != Name::No);
    let is_secret = match judged {
        Name::Sure => !is_ordinary(value),
        // An address without a password in it, or with one that is known by now, is no secret as a whole.
        Name::Likely => !is_ordinary(value) && !is_word(value) && !value.contains("://"),
        Name::No => false,
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

/// One path, or several with colons between them.
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

/// Letters only, as somebody writes a word: `production`, `Ask-Me`.
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
        if judge(name) != Name::No && value.len() >= SHORTEST && !is_word(value) {
            secrets.push(value.to_owned());
        }
    }
    secrets
}

/// `user:password` of every address in a value, and the password by itself where it is no word. A user without a password
/// is one in a variable that is named like a secret.
fn in_addresses(value: &str, lone_users: bool) -> Vec<String> {
    let mut secrets = Vec::new();
    for (at, _) in value.match_indices("://") {
        let rest = value.get(at + 3..).unwrap_or_default();
        let end = rest.find(['/', '?', '#', ' ', '"', '\'', ',']).unwrap_or(rest.len());
        // The last one: a careless password may hold another.
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
