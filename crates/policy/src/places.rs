//! The place that a word means, in any spelling: `/`, `//`, `/./`, `/usr/..`, `~`, `$HOME`, `d=/; $d`.

use std::cell::Cell;
use std::collections::BTreeMap;

use lathe_bash::{Piece, Word};

use crate::dot_patterns::meanings;
use crate::operators::apply_operator;
use crate::patterns::glob;
use crate::sets::simplified;

/// Stands for something unknown. No file has this name.
pub(crate) const UNKNOWN: char = '\u{1}';
/// Stands for the folder the line runs in.
pub(crate) const HERE: &str = "\u{2}";
/// Stands for the name of the user.
const USER: &str = "\u{3}";

/// Stands for Lathe's own folder, as `$LATHE_HOME` names it.
pub(crate) const LATHE: &str = "\u{5}";

/// Stands for values that are too many to be judged one by one. It always comes with [`UNKNOWN`], and the guard
/// denies a change of anything it may mean.
pub(crate) const OVERFLOW: char = '\u{4}';

/// The most spellings of one line, all words together. A list of values costs one each; only products come near this.
const MOST: usize = 200_000;

/// Variables that are given each other's values in a longer chain than this are not followed.
const DEEPEST: usize = 32;

/// Counts the spellings of a line that were made.
#[derive(Default)]
pub(crate) struct Spent(Cell<usize>);

impl Spent {
    /// Counts one more spelling of this length; false if there were too many.
    fn afford(&self, length: usize) -> bool {
        let spent = self.0.get() + 1 + length / 64;
        self.0.set(spent);
        spent < MOST
    }
}

/// The variables that are being expanded, from the innermost to the outermost.
#[derive(Clone, Copy)]
struct Within<'w> {
    name: &'w str,
    outer: Option<&'w Within<'w>>,
    depth: usize,
}

const OUTSIDE: Within<'static> = Within { name: "", outer: None, depth: 0 };

impl<'w> Within<'w> {
    fn into(&'w self, name: &'w str) -> Within<'w> {
        Within { name, outer: Some(self), depth: self.depth + 1 }
    }

    /// Counts how often a variable is being expanded: `x=$x/a` is given itself.
    fn times(&self, name: &str) -> usize {
        let mut all = std::iter::successors(Some(self), |within| within.outer);
        all.by_ref().filter(|within| within.name == name).count()
    }
}

/// Tells whether a spelling stands for more values than were judged.
pub(crate) fn overflows(spelling: &str) -> bool {
    spelling.contains(OVERFLOW)
}

fn too_many() -> String {
    format!("{UNKNOWN}{OVERFLOW}")
}

/// Folders whose loss breaks a system.
const SYSTEM: [&str; 30] = [
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "lib32",
    "lib64",
    "libx32",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    "mnt",
    "media",
    "snap",
    "nix",
    "System",
    "Library",
    "Applications",
    "Users",
    "Volumes",
    "private",
    "cores",
    "Network",
];

/// A place that must not be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VitalPlace {
    Root,
    System,
    Home,
    /// The folder the line runs in, by an absolute name.
    Here,
    /// The folder `.git`.
    Git,
}

/// The values that the variables of a line may hold.
#[derive(Clone, Copy)]
pub(crate) struct Values<'a> {
    pub(crate) assigned: &'a BTreeMap<String, Vec<Word>>,
    /// True if a variable without an assignment may be empty. For the name of a program it may, because `r${x}m` is a
    /// way to write `rm`; for a path it may not, because `rm -rf $dir/x` would be denied for what is only likely a
    /// mistake.
    pub(crate) may_be_empty: bool,
    /// The line, where a variable that it sets before use has the values it is given there and no others.
    pub(crate) line: Option<&'a str>,
    /// The spellings that were made so far for this line.
    pub(crate) spent: &'a Spent,
}

impl Values<'_> {
    /// Every spelling of a word that can be known, split at blanks where bash would split it.
    pub(crate) fn spellings(&self, word: &Word) -> Vec<String> {
        self.ways(word).into_iter().flatten().collect()
    }

    /// The words that a word may become, each way by itself.
    pub(crate) fn ways(&self, word: &Word) -> Vec<Vec<String>> {
        let mut all = Vec::new();
        // With `IFS=,`, `$x` is split elsewhere.
        let separators: String =
            self.assigned.get("IFS").into_iter().flatten().filter_map(Word::literal).collect();
        for (text, split) in self.alternatives(word, &OUTSIDE) {
            if split {
                let parts = text.split(|c: char| c.is_whitespace() || separators.contains(c));
                // A part that is known only later may hold blanks: `-$(x)` may be an option, a pattern and a file.
                let more = if word.splits && text.contains(UNKNOWN) { 2 } else { 0 };
                let parts = parts.filter(|part| !part.is_empty()).map(str::to_owned);
                all.push(parts.chain(std::iter::repeat_n(UNKNOWN.to_string(), more)).collect());
            } else {
                all.push(vec![text]);
            }
        }
        all
    }

    fn alternatives(&self, word: &Word, within: &Within<'_>) -> Vec<(String, bool)> {
        let mut all = vec![(String::new(), false)];
        for piece in word.pieces.iter() {
            let (texts, split) = self.piece(piece, within);
            let mut next = Vec::new();
            for (begin, was_split) in &all {
                for text in &texts {
                    if !self.spent.afford(begin.len() + text.len()) {
                        return vec![(too_many(), false)];
                    }
                    next.push((format!("{begin}{text}"), *was_split || split));
                }
            }
            all = next;
        }
        all
    }

    fn piece(&self, piece: &Piece, within: &Within<'_>) -> (Vec<String>, bool) {
        match piece {
            Piece::Text(text) => (vec![text.to_string()], false),
            Piece::Glob(c) => (vec![c.to_string()], false),
            Piece::Tilde(user) => match user.as_str() {
                // As `$PWD`, `$OLDPWD` and `$HOME`, with the values that the line gives them.
                "+" => (self.variable("PWD", within), false),
                "-" => (self.variable("OLDPWD", within), false),
                "" => (self.variable("HOME", within), false),
                _ => (vec!["~".to_owned()], false),
            },
            Piece::Variable { name, quoted } => (self.variable(name, within), !quoted),
            Piece::Operator { name, how } => {
                let mut texts = match name.strip_prefix('!') {
                    // `${!#}`: the last of the positional words.
                    Some("#" | "@" | "*") => self.variable("@", within),
                    // The variables that it may name.
                    Some(named) if !named.is_empty() => {
                        let names = self.variable(named, within).into_iter();
                        names.flat_map(|name| self.variable(&name, &within.into(""))).collect()
                    }
                    Some(_) | None => self.variable(name, within),
                };
                match lathe_bash::fallback_text(how) {
                    Some(or) => texts.extend(self.instead(or, within)),
                    None => texts = self.operated(texts, name, how, within),
                }
                (texts, true)
            }
            Piece::Substitution(text) => (self.substituted(text.as_deref(), within), true),
            Piece::Arithmetic { .. } if self.line.is_some() => (vec!["0".to_owned()], false),
            Piece::Brace { endless: true } => (vec![too_many()], false),
            Piece::Process(_) | Piece::Arithmetic { .. } | Piece::Brace { endless: false } => {
                (vec![UNKNOWN.to_string()], false)
            }
        }
    }

    /// The values of the text after `:-` and similar operators.
    fn instead(&self, or: &str, within: &Within<'_>) -> Vec<String> {
        let plain = or.replace("$HOME", "~").replace("${HOME}", "~");
        if !plain.contains(['$', '`', '\\', '"', '\'']) {
            return vec![plain];
        }
        self.substituted(Some(&format!("echo {or}")), within)
    }

    /// The results of an operator on the values of a variable; a result that cannot be computed is unknown.
    fn operated(&self, texts: Vec<String>, name: &str, how: &str, within: &Within<'_>) -> Vec<String> {
        let indexed = how.starts_with('[').then(|| how.split_once(']')).flatten();
        let how = indexed.map_or(how, |(_, behind)| behind);
        // `${#x}` is a number; `${x:?}` the value or nothing.
        if how.is_empty() || name == "#" || how.trim_start_matches(':').starts_with('?') {
            return texts;
        }
        // For a part of the positional words it is the same.
        if matches!(name, "@" | "*" | "!#") && how.starts_with(':') {
            return texts;
        }
        // A part of an array is some of its values.
        let mut made = if indexed.is_some() && how.starts_with(':') { texts.clone() } else { Vec::new() };
        let mut hows = vec![how.to_owned()];
        if how.contains(['$', '`']) {
            let sign = how.find(|c: char| !"#%/,^:@".contains(c)).unwrap_or(0);
            let (sign, pattern) = how.split_at(sign);
            let patterns = self.substituted(Some(&format!("echo {pattern}")), within).into_iter();
            let known = patterns.filter(|pattern| !pattern.contains(UNKNOWN));
            hows = known.map(|pattern| format!("{sign}{pattern}")).collect();
            made.push(UNKNOWN.to_string());
        }
        for text in &texts {
            // `${HOME%/}`, `${PWD%/*}`: a place whose name only the gate knows.
            if text.starts_with('~') || text.starts_with(HERE) || text.starts_with(USER) {
                made.push(text.clone());
                made.extend((how.starts_with('%') && how.contains("/*")).then(|| format!("{text}/..")));
                made.push(UNKNOWN.to_string());
                continue;
            }
            let known = !text.contains(UNKNOWN);
            let each: Vec<Option<String>> = hows.iter().map(|how| apply_operator(text, how)).collect();
            if known && !each.is_empty() && each.iter().all(Option::is_some) {
                made.extend(each.into_iter().flatten());
            } else if known && !text.is_empty() {
                made.push(too_many());
            } else {
                made.push(UNKNOWN.to_string());
            }
            if !self.spent.afford(text.len()) {
                return vec![too_many()];
            }
        }
        made
    }

    /// The texts that `$(echo …)` and a few other commands print.
    fn substituted(&self, text: Option<&str>, within: &Within<'_>) -> Vec<String> {
        let mut texts = vec![UNKNOWN.to_string()];
        if let Some(text) = text.filter(|_| within.times("$(") < 4) {
            if !self.spent.afford(text.len() * 64) {
                return vec![too_many()];
            }
            let words = lathe_bash::printed_words(text);
            let within = within.into("$(");
            let mut whole = String::new();
            for word in &words {
                let ways = self.alternatives(word, &within);
                if let Some((first, _)) = ways.first().filter(|_| words.len() > 1) {
                    whole.push_str(if whole.is_empty() { "" } else { " " });
                    whole.push_str(first);
                }
                texts.extend(ways.into_iter().map(|(text, _)| text));
            }
            // `-$(echo n file)` becomes `-n` and `file`.
            texts.extend((!whole.is_empty()).then_some(whole));
        }
        texts
    }

    fn variable(&self, name: &str, within: &Within<'_>) -> Vec<String> {
        let mut texts = Vec::new();
        if within.depth > DEEPEST {
            return vec![too_many()];
        }
        // The value that a variable gets from itself is followed twice: `x=$x/a`.
        if within.times(name) < 3 {
            let within = within.into(name);
            for value in self.assigned.get(name).into_iter().flatten() {
                texts.extend(self.alternatives(value, &within).into_iter().map(|(text, _)| text));
            }
        }
        // An assignment may not happen, or happen only for one command.
        let kept = matches!(name, "HOME" | "OLDPWD" | "PWD");
        if !kept && !texts.is_empty() && self.line.is_some_and(|line| is_set_first(line, name)) {
            return texts;
        }
        // A line does not say where the shell was before.
        if name == "OLDPWD" {
            texts.extend([HERE.to_owned(), UNKNOWN.to_string()]);
            return texts;
        }
        texts.push(match name {
            // In `/proc/$$` it means the process itself.
            "$" if self.line.is_some() => "self".to_owned(),
            "?" | "#" | "!" | "RANDOM" | "LINENO" | "SECONDS" | "UID" | "EUID" | "PPID"
                if self.line.is_some() =>
            {
                "0".to_owned()
            }
            "HOME" => "~".to_owned(),
            "PWD" => HERE.to_owned(),
            "LATHE_HOME" => LATHE.to_owned(),
            "USER" | "LOGNAME" => USER.to_owned(),
            "IFS" => " ".to_owned(),
            "@" | "*" => String::new(),
            _ if self.may_be_empty => String::new(),
            _ => UNKNOWN.to_string(),
        });
        texts
    }
}

/// Tells whether a line gives a variable a value before it uses it, and reads no value for one from the input.
fn is_set_first(line: &str, name: &str) -> bool {
    let used = [format!("${name}"), format!("${{{name}")];
    let used = used.iter().filter_map(|used| line.find(used.as_str())).min();
    let set = [format!("for {name} "), format!("{name}=")];
    let set = set.iter().filter_map(|set| line.find(set.as_str())).min();
    let asks = line
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| matches!(word, "read" | "mapfile" | "readarray" | "getopts"));
    set.zip(used).is_some_and(|(set, used)| set < used) && !asks
}

/// The place that a spelling means, if it is one that must not be lost. `from` are the folders the line may be in.
pub(crate) fn vital_place(spelling: &str, from: &[String]) -> Option<VitalPlace> {
    meanings(spelling).iter().find_map(|meaning| vital_place_as_spelled(meaning, from))
}

fn vital_place_as_spelled(spelling: &str, from: &[String]) -> Option<VitalPlace> {
    let spelling = spelling.strip_prefix("file://").unwrap_or(spelling);
    if spelling.starts_with('/') || spelling.starts_with('~') || spelling.starts_with(HERE) {
        return absolute(spelling);
    }
    if matches!(parts(spelling).as_slice(), [".git"] | [".git", "*"]) {
        return Some(VitalPlace::Git);
    }
    from.iter().find_map(|from| absolute(&format!("{from}/{spelling}"))).or_else(|| {
        // So many steps up that every folder ends at the root.
        let parts = parts(spelling);
        let ups = parts.iter().take_while(|part| **part == "..").count();
        (ups >= 6 && parts.iter().skip(ups).all(|part| is_all(part))).then_some(VitalPlace::Root)
    })
}

pub(crate) fn parts(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    parts
}

/// Tells whether a part of a path is a pattern for everything in a folder.
pub(crate) fn is_all(part: &str) -> bool {
    let plain = simplified(part);
    (part.contains(['*', '?']) || plain.contains('*')) && plain.chars().all(|c| "*?.".contains(c))
}

/// A path without the links of a process in it: `/proc/self/root/usr` is `/usr`, `/proc/self/cwd` the folder it runs
/// in.
pub(crate) fn outside_proc(path: &str) -> String {
    let mut path = path.to_owned();
    // One link may lead to the next: `/proc/self/root/proc/self/cwd`.
    while let Some((_, link, rest)) = link_of_process(&path) {
        path = if link == "root" { format!("/{rest}") } else { format!("{HERE}/{rest}") };
    }
    path
}

/// The path after the folder that a command itself runs in: `/proc/self/cwd/a`.
pub(crate) fn behind_own_folder(path: &str) -> Option<String> {
    let mut path = path.to_owned();
    while let Some((process, link, rest)) = link_of_process(&path) {
        match link {
            "root" => path = format!("/{rest}"),
            _ => return is_own_process(process).then(|| format!("./{rest}")),
        }
    }
    None
}

/// Tells whether a path leads through a link of another process, which may lead anywhere.
pub(crate) fn leads_through_process(path: &str) -> bool {
    link_of_process(path).is_some_and(|(process, _, rest)| {
        !is_own_process(process) || leads_through_process(&format!("/{rest}"))
    })
}

fn is_own_process(process: &str) -> bool {
    matches!(process, "self" | "thread-self")
}

/// The process, the link and the rest of a path that leads through one.
fn link_of_process(path: &str) -> Option<(&str, &'static str, String)> {
    let mut parts = path.strip_prefix('/')?.split('/').filter(|part| !part.is_empty() && *part != ".");
    let (Some("proc"), Some(process), Some(link)) = (parts.next(), parts.next(), parts.next()) else {
        return None;
    };
    let link = match link {
        "root" => "root",
        "cwd" => "cwd",
        _ => return None,
    };
    Some((process, link, parts.collect::<Vec<_>>().join("/")))
}

fn absolute(path: &str) -> Option<VitalPlace> {
    let path = outside_proc(path);
    let rooted = path.starts_with('/');
    let parts = parts(&path);
    match parts.as_slice() {
        _ if parts.last() == Some(&".git") => Some(VitalPlace::Git),
        [] if rooted => Some(VitalPlace::Root),
        // `~/..`: the folder of all homes, or the root.
        [] | [".."] | ["..", _] if !rooted => Some(VitalPlace::System),
        [home] | [home, _] if home.starts_with('~') => {
            parts.get(1).is_none_or(|part| is_all(part)).then_some(VitalPlace::Home)
        }
        [here] | [here, _] if *here == HERE => {
            parts.get(1).is_none_or(|part| is_all(part)).then_some(VitalPlace::Here)
        }
        ["home" | "Users", user] | ["home" | "Users", user, _] if *user == USER || user.contains(USER) => {
            parts.get(2).is_none_or(|part| is_all(part)).then_some(VitalPlace::Home)
        }
        [first] if rooted && is_all(first) => Some(VitalPlace::Root),
        [first] if rooted && *first == "tmp" => Some(VitalPlace::System),
        [first] if rooted && SYSTEM.iter().any(|name| folder(first, name)) => Some(VitalPlace::System),
        [first, all] if rooted && is_all(all) && (SYSTEM.contains(first) || is_all(first)) => {
            Some(VitalPlace::System)
        }
        _ => None,
    }
}

/// Tells whether a part, which may be a pattern, means the folder.
fn folder(part: &str, name: &str) -> bool {
    glob(&simplified(part), name)
}

/// Tells whether a spelling means a disk or a part of one.
pub(crate) fn is_block_device(spelling: &str) -> bool {
    if !spelling.starts_with('/') {
        return false;
    }
    let parts = parts(spelling);
    let ["dev", name, ..] = parts.as_slice() else { return false };
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit() || "*?[".contains(c) || c == UNKNOWN)
        })
    };
    let lettered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_lowercase() || "*?[".contains(c) || c == UNKNOWN)
        })
    };
    ["sd", "hd", "vd", "xvd"].iter().any(|prefix| lettered(prefix))
        || ["nvme", "mmcblk", "loop", "dm-", "md", "sr", "ram", "zram", "nbd", "disk", "rdisk", "pmem", "zd"]
            .iter()
            .any(|prefix| numbered(prefix))
        || matches!(*name, "mapper" | "disk" | "mem" | "kmem" | "port" | "*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_a_place() {
        for (spelling, meant) in [
            ("/", VitalPlace::Root),
            ("//", VitalPlace::Root),
            ("/./", VitalPlace::Root),
            ("/usr/..", VitalPlace::Root),
            ("/../..", VitalPlace::Root),
            ("/*", VitalPlace::Root),
            ("/.*", VitalPlace::Root),
            ("/[a-z]*", VitalPlace::Root),
            ("/proc/self/root/", VitalPlace::Root),
            ("/usr", VitalPlace::System),
            ("/usr/", VitalPlace::System),
            ("/usr/*", VitalPlace::System),
            ("/us?", VitalPlace::System),
            ("/e*", VitalPlace::System),
            ("/tmp", VitalPlace::System),
            ("~", VitalPlace::Home),
            ("~/", VitalPlace::Home),
            ("~/*", VitalPlace::Home),
            ("~/.*", VitalPlace::Home),
            ("~/x/..", VitalPlace::Home),
            ("~/..", VitalPlace::System),
            ("../../../../../../../../..", VitalPlace::Root),
            (".git", VitalPlace::Git),
            ("./.git/", VitalPlace::Git),
            ("/w/.git", VitalPlace::Git),
        ] {
            assert_eq!(vital_place(spelling, &[]), Some(meant), "{spelling}");
        }
        for spelling in [
            "/tmp/x",
            "/tmp/*",
            "/usr/local/x",
            "~/x",
            "x",
            "*",
            ".",
            "..",
            "/w/*",
            "/workspace",
            "/home/me/x",
            ".gitignore",
        ] {
            assert_eq!(vital_place(spelling, &[]), None, "{spelling}");
        }
        assert_eq!(vital_place("*", &["/".to_owned()]), Some(VitalPlace::Root));
        assert_eq!(vital_place(".", &["~".to_owned()]), Some(VitalPlace::Home));
    }

    #[test]
    fn disks_are_told_from_other_devices() {
        for disk in [
            "/dev/sda",
            "/dev/sda1",
            "/dev/nvme0n1",
            "/dev//sdb",
            "/dev/mapper/x",
            "/dev/disk/by-id/x",
            "/dev/sd*",
        ] {
            assert!(is_block_device(disk), "{disk}");
        }
        for other in
            ["/dev/null", "/dev/stdout", "/dev/zero", "/dev/shm/x", "dev/sda", "/dev/stderr", "/dev/sdr0/.."]
        {
            assert!(!is_block_device(other), "{other}");
        }
    }
}
