//! Secrets by their shape: for logs, bubbles and screens only, where a guess that is wrong costs nothing but a word.
//!
//! The journal never passes here: what the model saw must stay what it saw.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What stands where something looked like a secret.
const HIDDEN: &str = "«secret»";

/// Keys that give themselves away by how they begin.
const KEYS: &str = concat!(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}",
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"|\bgithub_pat_[A-Za-z0-9_]{20,}",
    r"|\bglpat-[A-Za-z0-9_-]{16,}",
    r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}",
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    r"|\bAIza[0-9A-Za-z_-]{30,}",
    r"|\bhf_[A-Za-z0-9]{20,}",
    r"|\bnpm_[A-Za-z0-9]{20,}",
    r"|\bpypi-[A-Za-z0-9_-]{20,}",
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|\z)",
);

/// A value that a name, a header or an address says is one. What stays comes first, the value last.
const NAMED: &str = concat!(
    r#"(?i)(?P<name>[a-z0-9_.-]*(?:api[_-]?key|secret|token|passw(?:or)?d|passphrase|credentials?|cookie|authorization)"#,
    r#"(?:\\?["'])?\s*[:=]\s*(?:\\?["'])?(?:(?:bearer|basic)\s+)?)[^\s"'\\&;,<>«»$({]{6,}"#,
    r#"|(?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9+/._~=-]{12,}"#,
    r#"|(?P<user>://[^/\s:@"']+:)[^/\s@"']+@"#,
);

static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEYS).ok());
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NAMED).ok());

/// The text without what looks like a secret.
pub fn shape(text: &str) -> Cow<'_, str> {
    let keys = KEY.as_ref().map_or(Cow::Borrowed(text), |key| key.replace_all(text, HIDDEN));
    let hide = |found: &Captures<'_>| {
        let kept = ["name", "scheme", "user"].into_iter().find_map(|part| found.name(part));
        let end = if found.name("user").is_some() { "@" } else { "" };
        format!("{}{HIDDEN}{end}", kept.map_or("", |kept| kept.as_str()))
    };
    match (NAME.as_ref(), keys) {
        (None, keys) => keys,
        (Some(name), Cow::Borrowed(text)) => name.replace_all(text, hide),
        (Some(name), Cow::Owned(text)) => Cow::Owned(name.replace_all(&text, hide).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_secret_is_hidden() {
        let hidden = [
            ("export API_KEY=sk-abcdefghijklmnop1234", "export API_KEY=«secret»"),
            (
                r#"{"command":"curl -H \"Authorization: Bearer abcdefghijkl123\" x"}"#,
                r#"{"command":"curl -H \"Authorization: Bearer «secret»\" x"}"#,
            ),
            ("git clone https://me:hunter2@host/x", "git clone https://me:«secret»@host/x"),
            ("password = 'correct-horse'", "password = '«secret»'"),
            ("AKIAABCDEFGHIJKLMNOP", "«secret»"),
            ("ghp_abcdefghijklmnopqrstuvwxyz", "«secret»"),
            ("Cookie: sid=abcdef", "Cookie: «secret»"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- x", "«secret» x"),
        ];
        for (text, wanted) in hidden {
            assert_eq!(shape(text), wanted, "{text}");
        }
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "max_tokens: 4096",
            "the token is read in lexer.rs",
            "let token = next();",
            "sk-learn",
            "https://host:8080/x@y",
            "basic usage of it",
            "PASSWORD=$1",
            "git commit -m 'hide the secret'",
        ] {
            assert_eq!(shape(text), text);
        }
    }
}
