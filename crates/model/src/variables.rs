//! The values that differ between machines or runs, and must not count as a difference.
//!
//! Before a message is digested or written to a cassette, the workspace root, home, temporary folder, host name and
//! date become `${workspace}`, `${home}`, `${tmp}`, `${host}` and `${date}`; process ids and durations, which cannot
//! be filled in again, become `${pid}` and `${duration}`. On replay the first five are filled in, in answers too. A
//! text that already contains such a variable is escaped as `$${word}`, so both directions are exact.
//!
//! Masking works on JSON text, so that one pass serves every field of a message; the values are JSON-escaped first.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, MatchKind};
use lathe_protocol::Surroundings;

const NAMES: [&str; 7] = ["workspace", "home", "tmp", "host", "date", "pid", "duration"];

pub struct Variables {
    /// Value and name, values JSON-escaped.
    values: Vec<(String, &'static str)>,
    finder: Option<AhoCorasick>,
}

impl Variables {
    pub fn none() -> Self {
        Self::new(&Surroundings::default())
    }

    pub fn new(surroundings: &Surroundings) -> Self {
        let Surroundings { workspace, home, tmp, host, date } = surroundings;
        let mut values: Vec<(String, &'static str)> = Vec::new();
        for (value, name) in
            [(workspace, "workspace"), (home, "home"), (tmp, "tmp"), (host, "host"), (date, "date")]
        {
            let value = value.trim_end_matches('/');
            // A short host name such as `vm` is an ordinary word: masking it would do more harm than a drift.
            if value.len() >= 4 && !values.iter().any(|(known, _)| known == value) {
                values.push((json_escaped(value), name));
            }
        }
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(values.iter().map(|(value, _)| value.as_str()))
            .ok();
        Self { values, finder }
    }

    /// Replaces the variables' values by their names. Most texts contain none, and are only searched.
    pub fn mask<'a>(&self, json: &'a str) -> Cow<'a, str> {
        match self.mask_fillable(json) {
            Cow::Borrowed(text) => mask_numbers(text),
            Cow::Owned(text) => Cow::Owned(mask_numbers(&text).into_owned()),
        }
    }

    /// The same for the variables that can be filled in again: an answer's `sleep 5s` must stay as it is.
    pub fn mask_fillable<'a>(&self, json: &'a str) -> Cow<'a, str> {
        match escape_words(json) {
            Cow::Borrowed(text) => self.mask_values(text),
            Cow::Owned(text) => Cow::Owned(self.mask_values(&text).into_owned()),
        }
    }

    /// Replaces names by values, as far as that is possible.
    pub fn fill(&self, json: &str) -> String {
        let mut out = String::with_capacity(json.len());
        let mut rest = json;
        while let Some(at) = rest.find("${") {
            let (before, from) = rest.split_at(at);
            let escaped = before.ends_with('$') && word_at(from).is_some();
            match word_at(from) {
                Some(name) if escaped => {
                    out.push_str(before.get(..before.len() - 1).unwrap_or_default());
                    out.push_str(from.get(..name.len() + 3).unwrap_or_default());
                    rest = from.get(name.len() + 3..).unwrap_or_default();
                }
                Some(name) => {
                    out.push_str(before);
                    match self.values.iter().find(|(_, known)| *known == name) {
                        Some((value, _)) => out.push_str(value),
                        None => out.push_str(from.get(..name.len() + 3).unwrap_or_default()),
                    }
                    rest = from.get(name.len() + 3..).unwrap_or_default();
                }
                None => {
                    out.push_str(before);
                    out.push_str("${");
                    rest = from.get(2..).unwrap_or_default();
                }
            }
        }
        out.push_str(rest);
        out
    }

    fn mask_values<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let Some(finder) = &self.finder else { return Cow::Borrowed(text) };
        let mut out = String::new();
        let mut done = 0;
        for found in finder.find_iter(text) {
            let (Some((_, name)), Some(between)) =
                (self.values.get(found.pattern().as_usize()), text.get(done..found.start()))
            else {
                continue;
            };
            if !stands_alone(text, found.start(), found.end()) {
                continue;
            }
            out.push_str(between);
            out.push_str("${");
            out.push_str(name);
            out.push('}');
            done = found.end();
        }
        changed(text, out, done)
    }
}

/// The text assembled so far and the rest; the text itself, if nothing was found in it.
fn changed(text: &str, mut out: String, done: usize) -> Cow<'_, str> {
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(out)
}

/// `/root` is not part of `/rooted`, and `2026-11-15` not of `12026-11-159`.
fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    let bytes = text.as_bytes();
    let word = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_'));
    let before = start.checked_sub(1).and_then(|at| bytes.get(at));
    // `\n/home/u`: the n belongs to the escape.
    let after_escape = start.checked_sub(2).and_then(|at| bytes.get(at)) == Some(&b'\\');
    (!word(before) || after_escape) && !word(bytes.get(end))
}

/// The variable at the beginning of `text`, which begins with `${`.
fn word_at(text: &str) -> Option<&'static str> {
    let inner = text.strip_prefix("${")?;
    NAMES.into_iter().find(|name| inner.strip_prefix(name).is_some_and(|rest| rest.starts_with('}')))
}

fn escape_words(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    for (at, _) in text.match_indices("${") {
        if word_at(text.get(at..).unwrap_or_default()).is_some() {
            out.push_str(text.get(done..at).unwrap_or_default());
            out.push_str("$${");
            done = at + 2;
        }
    }
    changed(text, out, done)
}

/// Durations (`0.12s`, `35 ms`) and process ids (`pid 123`, `[1] 123`).
fn mask_numbers(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let (mut at, mut done) = (0, 0);
    while let Some(skipped) = bytes.get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_digit)) {
        let start = at + skipped;
        at = start;
        while bytes.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'.') {
            at += 1;
        }
        let before = start.checked_sub(1).and_then(|i| bytes.get(i));
        let word_before = before.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
        let after_escape = start >= 2 && bytes.get(start - 2) == Some(&b'\\');
        if word_before && !after_escape {
            continue;
        }
        let (name, end) = if let Some(unit) = unit_at(text.get(at..).unwrap_or_default()) {
            ("${duration}", at + unit)
        } else if is_pid_place(text.get(..start).unwrap_or_default())
            && !text.get(start..at).unwrap_or_default().contains('.')
        {
            ("${pid}", at)
        } else {
            continue;
        };
        out.push_str(text.get(done..start).unwrap_or_default());
        out.push_str(name);
        done = end;
        at = end;
    }
    changed(text, out, done)
}

/// The length of a unit of time at the beginning of `rest`, if there is one.
fn unit_at(rest: &str) -> Option<usize> {
    let blank = usize::from(rest.starts_with(' '));
    let after = rest.get(blank..)?;
    // After a blank, a single `s` could be a word of its own.
    let units: &[&str] = if blank == 1 { &["ms", "seconds"] } else { &["ms", "µs", "us", "ns", "s"] };
    let unit = units.iter().find(|unit| after.starts_with(**unit))?;
    let next = after.get(unit.len()..)?.chars().next();
    let ends = next.is_none_or(|c| !c.is_alphanumeric() && c != '_');
    ends.then_some(blank + unit.len())
}

fn is_pid_place(before: &str) -> bool {
    let tail = before.trim_end_matches([' ', '=', ':']);
    if tail.len() < before.len() && (tail.ends_with("pid") || tail.ends_with("PID")) {
        return true;
    }
    // Bash's message about a background job: `[1] 12345`.
    let Some(job) = before.strip_suffix("] ") else {
        return false;
    };
    let number = job.trim_end_matches(|c: char| c.is_ascii_digit());
    number.len() < job.len() && number.ends_with('[')
}

fn json_escaped(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap_or_default();
    quoted.trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables() -> Variables {
        Variables::new(&Surroundings {
            workspace: "/tmp/w1".into(),
            home: "/root".into(),
            tmp: "/tmp".into(),
            host: "bigbox".into(),
            date: "2026-11-15".into(),
        })
    }

    #[test]
    fn masks_the_longest_value_that_stands_alone() {
        for (text, masked) in [
            ("/tmp/w1/a.c and /tmp/x", "${workspace}/a.c and ${tmp}/x"),
            ("/rooted /root/x", "/rooted ${home}/x"),
            (r"a\n/root\n", r"a\n${home}\n"),
            ("on bigbox, 2026-11-15.", "on ${host}, ${date}."),
            ("ran in 0.12s, 35 ms, 5 seconds", "ran in ${duration}, ${duration}, ${duration}"),
            ("3 tests, 2 sets, 10 s, v1.2s", "3 tests, 2 sets, 10 s, v1.2s"),
            ("[1] 4242 pid=17 pid: 9", "[1] ${pid} pid=${pid} pid: ${pid}"),
            ("[1] 2.5 x[1] y", "[1] 2.5 x[1] y"),
            ("echo ${home} ${HOME}", "echo $${home} ${HOME}"),
        ] {
            assert_eq!(variables().mask(text), masked);
        }
    }

    #[test]
    fn filling_in_undoes_masking() {
        for text in ["/tmp/w1/a.c", "see /root/.x on bigbox", "echo ${home} ${date} ${X} $${tmp}", "$ ${ ${}"]
        {
            assert_eq!(variables().fill(&variables().mask(text)), text);
        }
    }

    #[test]
    fn filling_in_uses_the_values_of_the_machine_at_hand() {
        let other =
            Variables::new(&Surroundings { workspace: "/other/place".into(), ..Surroundings::default() });
        assert_eq!(other.fill(&variables().mask("cat /tmp/w1/f")), "cat /other/place/f");
    }
}
