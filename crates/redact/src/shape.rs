//! Secrets by their shape: for logs, bubbles and screens only, where a wrong guess costs nothing but a word.
//!
//! The journal never passes here: it must hold exactly what the model saw.
//!
//! The rules are several expressions, each of which reads a text once. An expression gives the leftmost match, so it
//! reads on for as long as an earlier beginning may still become one: a rule that stays possible to the end of a
//! line, next to one that matches often in that line, would read the rest of the line for every match. So a rule
//! whose end may be far from its beginning stands alone.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::{Captures, Regex};

use crate::shadow::{BreakHandling, ControlHandling, Shadow};

/// The placeholder of something that looks like a secret.
const HIDDEN: &str = "«secret»";

/// The end of something before a word in escaped text: a line break of JSON or of a shell, a control, the end of a
/// colour.
macro_rules! escaped {
    () => {
        r"\\[abefnrtv]|\\u00[01][0-9A-Fa-f]|\[[0-9;]{0,20}m"
    };
}

/// The beginning of a word. A letter outside of ASCII ends the word before it.
macro_rules! begins {
    () => {
        concat!(r"(?:(?-u:\b)|", escaped!(), ")")
    };
}

/// Spaces, also escaped ones.
macro_rules! space {
    () => {
        r"(?:\s|\\[nrt])"
    };
}

/// A quote, also an escaped one.
macro_rules! quote {
    () => {
        r#"(?:\\*["'])?"#
    };
}

/// Keys that are recognised by their beginning.
const KEYS: &str = concat!(
    r"(?P<before>",
    begins!(),
    r")(?:(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}",
    r"|gh[pousr]_[A-Za-z0-9]{20,}",
    r"|github_pat_[A-Za-z0-9_]{20,}",
    r"|glpat-[A-Za-z0-9_-]{16,}",
    r"|xox[abeprs]-[A-Za-z0-9-]{10,}",
    r"|(?:AKIA|ASIA)[0-9A-Z]{16}(?-u:\b)",
    r"|AIza[0-9A-Za-z_-]{30,}",
    r"|hf_[A-Za-z0-9]{20,}",
    r"|npm_[A-Za-z0-9]{20,}",
    r"|pypi-[A-Za-z0-9_-]{20,})",
    // At full length, a key is recognised in the middle of a word too. Words of ordinary text contain these letters,
    // but not so many letters and digits after them.
    r"|gh[pousr]_[A-Za-z0-9]{36,}",
    r"|github_pat_[A-Za-z0-9_]{60,}",
    r"|sk-ant-[a-z]{3,5}[0-9]{2}-[A-Za-z0-9_-]{32,}",
    r"|sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{64,}",
    r"|sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}",
    r"|glpat-[A-Za-z0-9_-]{20,}",
    r"|xox[abeprs]-[0-9]{8,}-[A-Za-z0-9-]{16,}",
    r"|AKIA[0-9A-Z]{16}(?-u:\b)",
    r"|(?P<letter>[a-z0-9_])ASIA[0-9A-Z]{16}(?-u:\b)",
    r"|AIza[0-9A-Za-z_-]{35,}",
    r"|hf_[A-Za-z0-9]{34,}",
    r"|npm_[A-Za-z0-9]{36,}",
    r"|pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}",
);

/// Signed tokens: three parts, of which the second begins like the first in the middle of a word.
const SIGNED: &str = concat!(
    r"(?P<before>",
    begins!(),
    r")eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",
    r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}",
);

/// A private key, to the end of the text where its own is not there.
const PRIVATE: &str = concat!(
    r"-----BEGIN [A-Z ]{0,64}PRIVATE KEY-----",
    r"(?s-u:.*?)(?:-----END [A-Z ]{0,64}PRIVATE KEY-----|\z)",
);

/// A value that a name, a header, an option or an address marks as a secret. The part that stays comes first, the
/// value last.
const NAMED: &str = concat!(
    // Text that is a placeholder already stays as it is.
    r#"(?i)(?P<placeholder>«secret(?::[^«»\n]*)?»)"#,
    r#"|(?P<name>(?:[a-z0-9_.-]*"#,
    r#"(?:api[_-]?key|secret(?:[_-][a-z0-9_-]+)?|token|passw(?:or)?d|passphrase|credentials?|cookie|authorization"#,
    r#"|(?:access|private|signing|encryption|master|auth|account|storage|service|shared|deploy)[_-]?key)"#,
    quote!(),
    r#"\s*[:=]"#,
    space!(),
    "*",
    // Variables, as shells and their files write them.
    r#"|(?-i:"#,
    begins!(),
    r#"[A-Z0-9_]*(?:KEY|SECRET|AUTH|_PWD))=|(?:"#,
    begins!(),
    r#"|[a-z0-9][_-])pass="#,
    r#"|(?:^|[\s"']|"#,
    escaped!(),
    r#")--[a-z0-9-]*(?:password|passwd|passphrase|token|bearer|secret|(?:api|access|secret|auth|private)-key)"#,
    // In a list of words the value is the next one.
    r#"(?:"#,
    space!(),
    r#"+|=|\\*["'],\s*))"#,
    quote!(),
    r#"(?:(?:bearer|basic)\s+)?)[^\s"'\\&;,<>«»$({]{6,}"#,
    r#"|(?P<scheme>"#,
    begins!(),
    r#"(?:bearer|basic)\s+)[A-Za-z0-9+/._~=-]{12,}"#,
    r#"|(?P<login>(?:^|[\s"']|"#,
    escaped!(),
    r#")(?-i:-u\s*|--user[\s=]+|--proxy-user[\s=]+|-U\s+)"#,
    quote!(),
    r#"[^\s:"'\\/$«-][^\s:"'\\/$«]*:)(?P<password>[^\s"'\\«»$]+)"#,
    r#"|(?P<program>"#,
    begins!(),
    r#"sshpass\s+(?-i:-p)\s*"#,
    quote!(),
    r#")[^\s"'\\|;&«»$]{3,}"#,
    r#"|(?P<user>://[^/\s:@"']+:)[^/\s@"']+@"#,
);

/// Programs that take a password after `-p`, and that option with its value among the other words of their command.
const CLIENTS: &str = concat!("(?i)", begins!(), r"(?:mysql|mariadb)[a-z-]*(?-u:\b)");
const OPTION: &str = concat!(space!(), "-p", quote!(), r#"(?P<value>[^\s"'\\|;&«»$]{3,})"#);

/// The groups of a match are searched for in this many bytes of it; most matches are shorter.
const HEAD: usize = 4096;

/// A text with invisible characters is read as a whole: shapes have no longest form.
const WHOLE: usize = usize::MAX >> 8;

/// Something that looks like a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShapeMatch {
    /// The whole match, with the part that marks the secret.
    pub(crate) whole: Range<usize>,
    pub(crate) hidden: Range<usize>,
}

struct Shapes {
    keys: Regex,
    signed: Regex,
    private: Regex,
    named: Regex,
    clients: Regex,
    option: Regex,
}

static SHAPES: LazyLock<Option<Shapes>> = LazyLock::new(|| Shapes::new().ok());

/// The text with everything that looks like a secret masked.
pub fn mask_shapes(text: &str) -> Cow<'_, str> {
    let mut hidden: Vec<Range<usize>> =
        find_shapes(text.as_bytes()).into_iter().map(|found| found.hidden).collect();
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    hidden.sort_by_key(|range| range.start);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for range in hidden {
        // Two rules may find the same value, and one more of it than the other.
        if range.start >= from {
            out.push_str(text.get(from..range.start).unwrap_or_default());
            out.push_str(HIDDEN);
        }
        from = from.max(range.end);
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

/// All that looks like a secret, unordered, and some of it twice.
pub(crate) fn find_shapes(text: &[u8]) -> Vec<ShapeMatch> {
    let mut found = Vec::new();
    let Some(shapes) = SHAPES.as_ref() else { return found };
    shapes.look(text, &mut found);
    // Screens drop colours and other controls, so the text on both sides of them is one word there.
    let mut read: Vec<Vec<u8>> = Vec::new();
    for reading in [ControlHandling::Dropped, ControlHandling::ByLine, ControlHandling::Terminal] {
        let Some(shadow) = Shadow::cast(text, reading, BreakHandling::Kept, WHOLE, |_| {}) else { break };
        if !read.iter().any(|read| read == shadow.seen()) {
            let mut seen = Vec::new();
            shapes.look(shadow.seen(), &mut seen);
            let place = |found: ShapeMatch| ShapeMatch {
                whole: shadow.range(found.whole),
                hidden: shadow.range(found.hidden),
            };
            found.extend(seen.into_iter().map(place));
            read.push(shadow.seen().to_vec());
        }
        if !shadow.is_ambiguous {
            break;
        }
    }
    found
}

impl Shapes {
    fn new() -> Result<Self, regex::Error> {
        Ok(Self {
            keys: Regex::new(KEYS)?,
            signed: Regex::new(SIGNED)?,
            private: Regex::new(PRIVATE)?,
            named: Regex::new(NAMED)?,
            clients: Regex::new(CLIENTS)?,
            option: Regex::new(OPTION)?,
        })
    }

    /// Adds the secrets that one reading of a text shows.
    fn look(&self, text: &[u8], found: &mut Vec<ShapeMatch>) {
        for keys in [&self.keys, &self.signed] {
            found.extend(keys.find_iter(text).map(|key| {
                let groups = groups(keys, text, &key.range());
                let begin = end_of(groups.as_ref(), &["before", "letter"]).unwrap_or(key.start());
                ShapeMatch { whole: begin..key.end(), hidden: begin..key.end() }
            }));
        }
        let private = self.private.find_iter(text).map(|key| key.range());
        found.extend(private.map(|key| ShapeMatch { whole: key.clone(), hidden: key }));
        found.extend(self.named.find_iter(text).filter_map(|named| self.value(text, named.range())));
        self.passwords(text, found);
    }

    /// Gives the hidden part of a match of `named`.
    fn value(&self, text: &[u8], whole: Range<usize>) -> Option<ShapeMatch> {
        let groups = groups(&self.named, text, &whole);
        let has = |name: &str| groups.as_ref().is_some_and(|groups| groups.name(name).is_some());
        let begin = end_of(groups.as_ref(), &["name", "scheme", "login", "program", "user"]);
        let hidden = begin.unwrap_or(whole.start)..whole.end - usize::from(has("user"));
        // `docker run -u 1000:1000` names a user and a group.
        let is_group = has("password") && text.get(hidden.clone())?.iter().all(u8::is_ascii_digit);
        (!has("placeholder") && !is_group).then_some(ShapeMatch { whole, hidden })
    }

    /// Adds the values after `-p` in commands of clients of databases.
    fn passwords(&self, text: &[u8], found: &mut Vec<ShapeMatch>) {
        let mut from = 0;
        while let Some(client) = self.clients.find_at(text, from) {
            let rest = text.get(client.end()..).unwrap_or_default();
            let command = rest.iter().position(|byte| b"\n|;&".contains(byte)).unwrap_or(rest.len());
            let words = rest.get(..command).unwrap_or_default();
            if let Some(value) = self.option.captures(words).and_then(|option| option.name("value")) {
                let hidden = client.end() + value.start()..client.end() + value.end();
                found.push(ShapeMatch { whole: client.start()..hidden.end, hidden });
            }
            from = client.end() + command;
        }
    }
}

/// The groups of a match, read from its beginning where that is enough: a value may be long.
fn groups<'t>(regex: &Regex, text: &'t [u8], whole: &Range<usize>) -> Option<Captures<'t>> {
    let up_to = |end: usize| {
        let groups = regex.captures_at(text.get(..end)?, whole.start)?;
        (groups.get(0)?.start() == whole.start).then_some(groups)
    };
    up_to(whole.end.min(whole.start + HEAD)).or_else(|| up_to(whole.end))
}

/// The end of the first of these groups that exists.
fn end_of(groups: Option<&Captures<'_>>, names: &[&str]) -> Option<usize> {
    names.iter().find_map(|name| groups?.name(name)).map(|group| group.end())
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
            ("mysql -uroot --password=hunter22 -pS3cret", "mysql -uroot --password=«secret» -p«secret»"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- x", "«secret» x"),
        ];
        for (text, wanted) in hidden {
            assert_eq!(mask_shapes(text), wanted, "{text}");
        }
    }

    /// A token of full length.
    const TOKEN: &str = "ghp_aB3dE6gH9aB3dE6gH9aB3dE6gH9aB3dE6gH9";

    #[test]
    fn a_secret_after_an_escaped_line_break_is_hidden() {
        for before in ["\\n", "\\t", "\\r", "\\\"", "\\\\n", "\\u000a", "\\u001b[31m", "^[[1;31m", "\\e[0m"] {
            for (secret, wanted) in [
                ("ghp_abcdefghijklmnopqrstuvwxyz", "«secret»"),
                ("sk-abcdefghijklmnop1234", "«secret»"),
                ("AKIAABCDEFGHIJKLMNOP", "«secret»"),
                ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJabc.SflKxwRJ", "«secret»"),
                ("SENDGRID_KEY=abcdef123456", "SENDGRID_KEY=«secret»"),
                ("pass=hunter22", "pass=«secret»"),
                ("Bearer abcdefghijkl123", "Bearer «secret»"),
                ("curl -u admin:S3cret", "curl -u admin:«secret»"),
                ("mysql -pS3cret", "mysql -p«secret»"),
                ("sshpass -p S3cret", "sshpass -p «secret»"),
            ] {
                let text = format!("{{\"a\":\"x{before}{secret}\\ny\"}}");
                assert_eq!(mask_shapes(&text), format!("{{\"a\":\"x{before}{wanted}\\ny\"}}"));
            }
        }
        for (text, wanted) in [
            (r#""x\n--token abcdef123456""#, r#""x\n--token «secret»""#),
            (r#""x\n-u me:hunter2""#, r#""x\n-u me:«secret»""#),
            (r#""--token\tabcdef123456""#, r#""--token\t«secret»""#),
            (r#""password:\thunter22""#, r#""password:\t«secret»""#),
            (
                r#"{"a":"{\"b\":\"{\\\"token\\\":\\\"abcdef12\\\"}\"}"}"#,
                r#"{"a":"{\"b\":\"{\\\"token\\\":\\\"«secret»\\\"}\"}"}"#,
            ),
        ] {
            assert_eq!(mask_shapes(text), wanted);
        }
    }

    #[test]
    fn a_secret_among_controls_is_hidden() {
        for (text, wanted) in [
            (format!("\u{1b}[31m{TOKEN}\u{1b}[0m x"), "\u{1b}[31m«secret»\u{1b}[0m x"),
            (format!("ghp_\u{1b}[1m{}\u{1b}[0m x", &TOKEN[4..]), "«secret»\u{1b}[0m x"),
            (format!("ghp_aB3d\u{200b}{}\n", &TOKEN[8..]), "«secret»\n"),
            (
                "\u{1b}[32mSENDGRID_KEY=\u{1b}[0mabcdef123456 x".to_owned(),
                "\u{1b}[32mSENDGRID_KEY=«secret» x",
            ),
            (
                "\u{1b}[32mpass\u{1b}[1mword: hunt\u{1b}[0mer22".to_owned(),
                "\u{1b}[32mpass\u{1b}[1mword: «secret»",
            ),
            ("x \u{1b}(Bpass=hunter22".to_owned(), "x \u{1b}(Bpass=«secret»"),
            ("语ghp_abcdefghijklmnopqrstuvwxyz".to_owned(), "语«secret»"),
        ] {
            assert_eq!(mask_shapes(&text), wanted, "{text:?}");
        }
    }

    #[test]
    fn a_key_of_full_length_is_hidden_in_the_middle_of_a_word() {
        for key in [
            TOKEN,
            "sk-ant-api03-Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9Zq9",
            "AKIAABCDEFGHIJKLMNOP",
            "ASIAABCDEFGHIJKLMNOP",
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
            "glpat-abcdefghij0123456789",
            "xoxb-123456789012-123456789012-abcdefghijklmnopqrstuvwx",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJabc.SflKxwRJ",
        ] {
            for before in ["prefix_", "1", "pre", "x_y_9"] {
                assert_eq!(mask_shapes(&format!("a {before}{key} b")), format!("a {before}«secret» b"));
            }
        }
    }

    #[test]
    fn a_text_that_repeats_beginnings_of_shapes_is_read_once() {
        // Each was read to the end of its line or word for every match in it: 4 MiB would take hours. The bound is
        // the time that the test runner gives a test.
        let masked = mask_shapes(&"mysql token=abcdef ".repeat((4 << 20) / 19)).into_owned();
        assert!(!masked.contains("=abcdef"));
        for unit in [
            "mysql -pabcdef ",
            "«secret:token=abcdef ",
            "eyJabcdefgh-ghp_abcdefghijklmnopqrstuvwx-",
            "://x:token=abcdef,",
            "-utoken=abcdef,",
            "-----BEGIN RSA token=abcdef ",
            "\u{1b}[31mmysql token=abcdef ",
            "\u{1b}]0;token=abcdef ",
            "token=abcdef\\\\\\",
            "[1;1;1;1;",
        ] {
            let text = unit.repeat((1 << 18) / unit.len());
            let masked = mask_shapes(&text);
            assert!(!masked.contains("=abcdef"), "{unit}");
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
            "task-proj-a-long-name-of-a-task",
            "highs_andlowsofthelastquarter",
            "the desk-lamp and task-list are risk-free",
            "disk-0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9",
            "MALAYSIAINTERNATIONALSHIPPING",
            "half_abcdefghijklmnopqrstuvwxyz",
            "C:\\new\\table\\results.txt",
            "let a = \"x\\nbasic usage\\tkey\";",
            "\u{1b}[1mtoken\u{1b}[0m by \u{1b}[31mtoken\u{1b}[0m",
            "\u{1b}[32mok\u{1b}[0m \u{1b}[31mpassword\u{1b}[0m: short",
            "10%\r20%\r100% of 4096 tokens",
        ] {
            assert_eq!(mask_shapes(text), text);
        }
    }
}
