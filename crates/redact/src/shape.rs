//! Secrets by their shape: for logs, bubbles and screens only, where a guess that is wrong costs nothing but a word.
//!
//! The journal never passes here: what the model saw must stay what it saw.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// What stands where something looked like a secret.
const HIDDEN: &str = "«secret»";

/// Keys that give themselves away by how they begin.
pub(crate) const KEYS: &str = concat!(
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

/// A value that a name, a header, an option or an address says is one. What stays comes first, the value last.
pub(crate) const NAMED: &str = concat!(
    // What is a placeholder already stays as it is.
    r#"(?i)(?P<placeholder>«secret(?::[^»\n]*)?»)"#,
    r#"|(?P<name>(?:[a-z0-9_.-]*"#,
    r#"(?:api[_-]?key|secret(?:[_-][a-z0-9_-]+)?|token|passw(?:or)?d|passphrase|credentials?|cookie|authorization"#,
    r#"|(?:access|private|signing|encryption|master|auth|account|storage|service|shared|deploy)[_-]?key)"#,
    r#"(?:\\?["'])?\s*[:=]\s*"#,
    // As a shell and its files write variables.
    r#"|(?-i:\b[A-Z0-9_]*(?:KEY|SECRET|AUTH|_PWD))=|(?:\b|[a-z0-9][_-])pass="#,
    r#"|(?:^|[\s"'])--[a-z0-9-]*(?:password|passwd|passphrase|token|bearer|secret|(?:api|access|secret|auth|private)-key)"#,
    // In a list of words the value is the next one.
    r#"(?:\s+|=|\\?["'],\s*))"#,
    r#"(?:\\?["'])?(?:(?:bearer|basic)\s+)?)[^\s"'\\&;,<>«»$({]{6,}"#,
    r#"|(?P<scheme>\b(?:bearer|basic)\s+)[A-Za-z0-9+/._~=-]{12,}"#,
    r#"|(?P<login>(?:^|[\s"'])(?-i:-u\s*|--user[\s=]+|--proxy-user[\s=]+|-U\s+)(?:\\?["'])?[^\s:"'\\/$«-][^\s:"'\\/$«]*:)"#,
    r#"(?P<password>[^\s"'\\«»$]+)"#,
    r#"|(?P<program>\b(?:(?:mysql|mariadb)[a-z-]*\b[^\n|;&]*?\s(?-i:-p)|sshpass\s+(?-i:-p)\s*)(?:\\?["'])?)[^\s"'\\|;&«»$]{3,}"#,
    r#"|(?P<user>://[^/\s:@"']+:)[^/\s@"']+@"#,
);

static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEYS).ok());
static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(NAMED).ok());

/// The text without what looks like a secret.
pub fn shape(text: &str) -> Cow<'_, str> {
    let keys = KEY.as_ref().map_or(Cow::Borrowed(text), |key| key.replace_all(text, HIDDEN));
    let hide = |found: &Captures<'_>| {
        // `docker run -u 1000:1000` names a user and a group.
        let is_number = |word: regex::Match<'_>| word.as_str().bytes().all(|byte| byte.is_ascii_digit());
        if found.name("placeholder").is_some() || found.name("password").is_some_and(is_number) {
            return found[0].to_owned();
        }
        let parts = ["name", "scheme", "login", "program", "user"];
        let kept = parts.into_iter().find_map(|part| found.name(part));
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
            (
                "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG aws s3 ls",
                "AWS_SECRET_ACCESS_KEY=«secret» aws s3 ls",
            ),
            ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = «secret»"),
            ("SECRET_KEY=abcdef123456", "SECRET_KEY=«secret»"),
            ("SECRET_KEY_BASE='abcdef123456'", "SECRET_KEY_BASE='«secret»'"),
            (
                "export STRIPE_ACCESS_KEY=\\\"abcdef123456\\\" x",
                "export STRIPE_ACCESS_KEY=\\\"«secret»\\\" x",
            ),
            ("SENTRY_AUTH=abcdef123456", "SENTRY_AUTH=«secret»"),
            ("SENDGRID_KEY=abcdef123456;", "SENDGRID_KEY=«secret»;"),
            (
                "DB_PASS=hunter22 PASS=hunter22 db_pass=hunter22",
                "DB_PASS=«secret» PASS=«secret» db_pass=«secret»",
            ),
            ("curl -u admin:S3cret https://x", "curl -u admin:«secret» https://x"),
            ("curl -uadmin:S3cret x", "curl -uadmin:«secret» x"),
            ("curl --user 'admin:S3c:ret' x", "curl --user 'admin:«secret»' x"),
            ("curl --user=admin:S3cret", "curl --user=admin:«secret»"),
            (r#"{"command":"curl -u \"admin:S3cret\" x"}"#, r#"{"command":"curl -u \"admin:«secret»\" x"}"#),
            ("mysql -h db -P3306 -uroot -pS3cret shop", "mysql -h db -P3306 -uroot -p«secret» shop"),
            ("mysqldump -p'S3cret' shop", "mysqldump -p'«secret»' shop"),
            ("sshpass -p S3cret ssh box", "sshpass -p «secret» ssh box"),
            ("gh --token abcdef123456 x", "gh --token «secret» x"),
            ("lint --bearer PASSPASS1 {file}", "lint --bearer «secret» {file}"),
            ("--bearer PASSPASS1", "--bearer «secret»"),
            ("x --bearer=PASSPASS1 --passphrase PASSPASS2", "x --bearer=«secret» --passphrase «secret»"),
            ("[\"lint\",\"--token\",\"PASSPASS1\",\"x\"]", "[\"lint\",\"--token\",\"«secret»\",\"x\"]"),
            ("['lint', '--password', 'PASSPASS1']", "['lint', '--password', '«secret»']"),
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
            "«secret:OPENAI_API_KEY»",
            "API_KEY=«secret:API_KEY» and «secret» stay",
            "curl -u admin:«secret:PASSWORD» x",
            "curl -u $USER:$PASSWORD x",
            "docker run -u 1000:1000 image",
            "git push -u origin main:main2",
            "sort --key=2,3 -u a",
            "mysql -h db -p shop",
            "mysql -h db -P3306; cp -p source target",
            "PWD=/home/somebody",
            "primary_key=identifier",
            "secrets: inherit",
            "cargo test --pass-through something",
        ] {
            assert_eq!(shape(text), text);
        }
    }
}
