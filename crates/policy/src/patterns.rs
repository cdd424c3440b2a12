//! Patterns of rules: `*` within a part of a path, `**` across parts, `?` for one character.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use lathe_protocol::Verdict;

use crate::disk::FileId;
use crate::gate::Gate;
use crate::touch::fixed_folder;

/// The patterns of a rule's `path`, in every spelling that they have for absolute paths.
#[derive(Debug)]
pub(crate) struct PathPatterns {
    patterns: Vec<String>,
    /// The files of these names that have further names; searched for when first needed.
    links: OnceCell<HardLinks>,
}

/// Files with several names.
#[derive(Debug, Default)]
struct HardLinks {
    found: BTreeSet<FileId>,
    /// True if there was too much to search through, so that any file may be one.
    unknown: bool,
}

/// The patterns of the rules that were used for one decision, so that the disk is searched once for each.
#[derive(Debug, Default)]
pub(crate) struct PatternCache(RefCell<BTreeMap<PatternKey, Rc<PathPatterns>>>);

/// Patterns as a rule has them, and true if it allows.
type PatternKey = (Vec<String>, bool);

impl PatternCache {
    pub(crate) fn of(&self, written: &[String], decision: Verdict, gate: Option<&Gate>) -> Rc<PathPatterns> {
        let key = (written.to_vec(), decision == Verdict::Allow);
        let mut known = self.0.borrow_mut();
        known.entry(key).or_insert_with(|| Rc::new(PathPatterns::of(written, decision, gate))).clone()
    }
}

impl PathPatterns {
    /// Makes the spellings of the patterns. A denial or a question covers more than an approval does: a folder with
    /// all that is in it, and a bare name wherever it stands.
    pub(crate) fn of(written: &[String], decision: Verdict, gate: Option<&Gate>) -> Self {
        let mut patterns = Vec::new();
        for pattern in written {
            let bare = pattern.strip_prefix("./").unwrap_or(pattern);
            let mut forms = vec![bare.to_owned()];
            let home = gate.and_then(|gate| gate.user_home.as_deref());
            match (bare.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => forms.push(format!("{}/{rest}", home.display())),
                (Some(_), None) => {}
                (None, _) if bare.starts_with('/') || bare.starts_with("**") => {}
                (None, _) => {
                    forms.extend(gate.map(|gate| format!("{}/{bare}", gate.root.display())));
                    forms.extend(
                        (decision != Verdict::Allow && !bare.contains('/')).then(|| format!("**/{bare}")),
                    );
                }
            }
            if let Some(disk) = gate.and_then(|gate| gate.disk.get()) {
                let real = |form: &String| {
                    let folder = fixed_folder(form);
                    let rest = form.strip_prefix(&folder).filter(|_| folder.len() > 1)?;
                    Some(format!("{}{rest}", disk.real(Path::new(&folder)).display()))
                };
                // A link in the workspace may be the model's own: what is allowed there is allowed as it is named.
                let fixed_there = |form: &&String| {
                    decision != Verdict::Allow
                        || gate.is_none_or(|gate| !Path::new(form.as_str()).starts_with(&gate.root))
                };
                let absolute = forms.iter().filter(|form| form.starts_with('/'));
                let reals: Vec<String> = absolute.filter(fixed_there).filter_map(real).collect();
                forms.extend(reals);
            }
            if decision != Verdict::Allow {
                let inside: Vec<String> =
                    forms.iter().map(|form| format!("{}/**", form.trim_end_matches('/'))).collect();
                forms.extend(inside);
                let whole: Vec<String> =
                    forms.iter().filter_map(|form| form.strip_suffix("/").map(str::to_owned)).collect();
                forms.extend(whole);
            }
            patterns.append(&mut forms);
        }
        patterns.sort();
        patterns.dedup();
        Self { patterns, links: OnceCell::new() }
    }

    /// Tells whether a file is one of these by another name of it: a hard link.
    pub(crate) fn is_linked(&self, path: &Path, gate: &Gate) -> bool {
        let Some(disk) = gate.disk.get() else { return false };
        let Some(id) = disk.hard_link_id(path) else { return false };
        let links = self.links(gate);
        links.unknown || links.found.contains(&id)
    }

    /// Tells whether any of these has other names.
    pub(crate) fn has_links(&self, gate: &Gate) -> bool {
        !self.links(gate).found.is_empty()
    }

    fn links(&self, gate: &Gate) -> &HardLinks {
        self.links.get_or_init(|| {
            let mut links = HardLinks::default();
            let Some(disk) = gate.disk.get() else { return links };
            let absolute = self.patterns.iter().filter(|pattern| pattern.starts_with('/'));
            let outside = absolute.filter(|pattern| !Path::new(pattern).starts_with(&gate.root));
            let (files, wide): (Vec<&String>, Vec<&String>) =
                outside.partition(|pattern| !pattern.contains(['*', '?', '[']));
            links.found.extend(files.iter().filter_map(|file| disk.hard_link_id(Path::new(file))));
            let folders = wide.iter().map(|pattern| PathBuf::from(fixed_folder(pattern)));
            let mut folders: Vec<PathBuf> = folders.filter(|folder| folder.parent().is_some()).collect();
            folders.push(gate.root.clone());
            folders.sort();
            folders.dedup();
            for folder in &folders {
                let stopped = disk.holds_any(folder, &mut |path| {
                    if self.names(&path.to_string_lossy()) {
                        links.found.extend(disk.hard_link_id(path));
                    }
                    false
                });
                links.unknown |= stopped;
            }
            links
        })
    }

    pub(crate) fn names(&self, path: &str) -> bool {
        self.patterns.iter().any(|pattern| glob(pattern, path))
    }

    /// Tells whether the patterns cover something that the other pattern stands for.
    pub(crate) fn overlaps(&self, other: &str) -> bool {
        self.patterns.iter().any(|pattern| may_overlap(pattern, other))
    }
}

/// `*` stands for anything within a part of a path, `**` for anything, `?` for one character.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    // The usual backtracking to the last star, kept apart for the one that does not cross a slash.
    let (mut p, mut t) = (0, 0);
    let mut back: Vec<(usize, usize, bool)> = Vec::new();
    loop {
        let wide = pattern.get(p) == Some(&'*') && pattern.get(p + 1) == Some(&'*');
        if wide || pattern.get(p) == Some(&'*') {
            p += if wide { 2 } else { 1 };
            // A later star makes earlier ones needless, but a narrow one cannot replace a wide one.
            back.retain(|(_, _, earlier_is_wide)| *earlier_is_wide && !wide);
            back.push((p, t, wide));
            continue;
        }
        match (pattern.get(p), text.get(t)) {
            (None, None) => return true,
            (Some(want), Some(have)) if want == have || (*want == '?' && *have != '/') => {
                p += 1;
                t += 1;
                continue;
            }
            _ => {}
        }
        loop {
            let Some((after, from, wide)) = back.pop() else { return false };
            if from < text.len() && (wide || text.get(from) != Some(&'/')) {
                back.push((after, from + 1, wide));
                (p, t) = (after, from + 1);
                break;
            }
        }
    }
}

/// Tells whether a name in a rule, which may be a pattern, means the name of a tool. Upper and lower case are the
/// same.
pub fn tool_name_matches(pattern: &str, name: &str) -> bool {
    glob(&pattern.to_lowercase(), &name.to_lowercase())
}

/// A pattern of bash that stands for the same names in letters of any case, as with `nocaseglob`, which an earlier
/// line may have switched on. A text that is not a pattern stays as it is.
pub(crate) fn in_any_case(pattern: &str) -> String {
    let part = |part: &str| {
        if !part.contains(['*', '?', '[']) {
            return part.to_owned();
        }
        let each = |c: char| match (c.to_ascii_lowercase(), c.to_ascii_uppercase()) {
            (lower, upper) if lower != upper => format!("[{lower}{upper}]"),
            _ => c.to_string(),
        };
        crate::sets::simplified(part).chars().map(each).collect::<String>()
    };
    pattern.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Tells whether two patterns could stand for the same text.
pub(crate) fn may_overlap(one: &str, other: &str) -> bool {
    let (one, other) = (tokens(one), tokens(other));
    let width = other.len() + 1;
    // Marks the pairs of rests that were tried.
    let mut seen = vec![false; (one.len() + 1) * width];
    let mut left = vec![(0, 0)];
    while let Some((a, b)) = left.pop() {
        if a > one.len() || b > other.len() || std::mem::replace(&mut seen[a * width + b], true) {
            continue;
        }
        match (one.get(a), other.get(b)) {
            (None, None) => return true,
            (Some(x), y) if x.is_star() => {
                left.push((a + 1, b));
                // The star takes the other's sign there, or both move on.
                if y.is_some_and(|y| y.is_star() || x.takes(*y)) {
                    left.push((a, b + 1));
                }
                if y.is_some_and(|y| y.is_star()) {
                    left.push((a + 1, b));
                }
            }
            (x, Some(y)) if y.is_star() => {
                left.push((a, b + 1));
                if x.is_some_and(|x| y.takes(*x)) {
                    left.push((a + 1, b));
                }
            }
            (Some(x), Some(y)) if x.is_same(*y) => left.push((a + 1, b + 1)),
            (Some(_) | None, Some(_) | None) => {}
        }
    }
    false
}

/// A sign of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    One(char),
    /// `?`
    Any,
    /// `*`
    Narrow,
    /// `**`
    Wide,
}

impl Sign {
    fn is_star(self) -> bool {
        matches!(self, Self::Narrow | Self::Wide)
    }

    /// Tells whether a star may stand for this one sign.
    fn takes(self, sign: Self) -> bool {
        match (self, sign) {
            (Self::Wide, _) => true,
            (_, Self::One(c)) => c != '/',
            (_, Self::Any) => true,
            (_, Self::Narrow | Self::Wide) => false,
        }
    }

    fn is_same(self, other: Self) -> bool {
        match (self, other) {
            (Self::One(a), Self::One(b)) => a == b,
            (Self::Any, Self::One(c)) | (Self::One(c), Self::Any) => c != '/',
            (Self::Any, Self::Any) => true,
            (Self::Narrow | Self::Wide, _) | (_, Self::Narrow | Self::Wide) => false,
        }
    }
}

fn tokens(pattern: &str) -> Vec<Sign> {
    let mut signs = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        signs.push(match c {
            '*' if chars.peek() == Some(&'*') => {
                chars.next();
                Sign::Wide
            }
            '*' => Sign::Narrow,
            '?' => Sign::Any,
            c => Sign::One(c),
        });
    }
    signs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_meet_where_one_text_fits_both() {
        for (one, other, meets) in [
            ("**/secret.txt", "/w/**", true),
            ("**/secret.txt", "/w/*", true),
            ("**/secret.txt", "/w/*.rs", false),
            ("/w/a/secret.txt", "/w/*", false),
            ("/w/a/secret.txt", "/w/**", true),
            ("/w/sub/**", "/w/*/b", true),
            ("/w/sub/**", "/w/other/**", false),
            ("/w/s?cret", "/w/se*", true),
            ("/x/**", "/w/**", false),
            ("**", "/", true),
            ("a", "a", true),
            ("a", "b", false),
        ] {
            assert_eq!(may_overlap(one, other), meets, "{one} {other}");
            assert_eq!(may_overlap(other, one), meets, "{other} {one}");
        }
    }
}
