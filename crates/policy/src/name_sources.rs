//! Commands that print names of files, and commands that may be given such names while a line runs.
//!
//! Names that come through a pipe or out of `$(…)` can be anything: a file may be called `-x`, `a /etc/shadow` or be
//! a link. So the only producers known here print names which lie in the places their words name, and nothing else,
//! and the only filters hand on whole lines. Where names are split on their way, the disk must hold none that would
//! be broken.

use lathe_bash::{Piece, RedirectKind, Script, SimpleCommand, Stage, Word};

use crate::dot_patterns::may_climb;
use crate::pattern;

/// Names that a pipe or a substitution brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameSource {
    /// Files and folders, as they are spelled. Every name is one of them or lies in one.
    pub(crate) places: Vec<String>,
    /// True if the names end with a zero byte, as with `find -print0`.
    pub(crate) zero: bool,
    /// True if a name is printed without a folder before it, so that it may begin with a dash.
    pub(crate) bare: bool,
    /// True if they are names in git's index, whatever is on the disk.
    pub(crate) index: bool,
}

/// Returns the tool of the agent's that prints names and that a command starts.
pub(crate) type OwnTool<'a> = &'a dyn Fn(&SimpleCommand) -> Option<&'static str>;

/// The options of a program that do not change the facts stated here.
struct OptionTable {
    flags: &'static str,
    valued: &'static str,
    long: &'static [&'static str],
    long_valued: &'static [&'static str],
    /// True if the first operand ends the options.
    stops: bool,
}

/// The words of a program whose options are all known.
#[derive(Default)]
struct ParsedWords<'w> {
    letters: String,
    long: Vec<&'w str>,
    values: Vec<(char, &'w str)>,
    operands: Vec<&'w str>,
    /// The index of the first operand.
    first: usize,
}

const fn plain(flags: &'static str, valued: &'static str, long: &'static [&'static str]) -> OptionTable {
    OptionTable { flags, valued, long, long_valued: &[], stops: false }
}

/// Without `-a`, which prints `..` as well.
const LS: OptionTable = plain("1AtrSdUXv", "", &[]);
const SORT: OptionTable = plain("urnVfhzb", "", &[]);
const UNIQ: OptionTable = plain("udiz", "", &[]);
/// Without `-c`, which cuts names.
const HEAD: OptionTable = plain("0123456789qz", "n", &[]);
const TAIL: OptionTable = plain("0123456789qz", "n", &[]);
/// As a filter it must not print parts of lines, or anything else besides them.
const GREP_LINES: OptionTable = plain(
    "viEFGPwxzyas",
    "em",
    &["invert-match", "ignore-case", "fixed-strings", "extended-regexp", "word-regexp", "null-data"],
);
const GREP_NAMES: OptionTable = OptionTable {
    long_valued: &["include", "exclude", "exclude-dir"],
    ..plain(
        "lLrRiwxEFGPsIvZayn",
        "em",
        &[
            "files-with-matches",
            "files-without-match",
            "recursive",
            "ignore-case",
            "fixed-strings",
            "extended-regexp",
            "word-regexp",
            "null",
        ],
    )
};
const RG: OptionTable = OptionTable {
    long_valued: &["type", "type-not", "glob", "iglob"],
    ..plain(
        "liwFSsxUu0P",
        "tTge",
        &[
            "files",
            "files-with-matches",
            "files-without-match",
            "hidden",
            "no-ignore",
            "ignore-case",
            "smart-case",
            "fixed-strings",
            "word-regexp",
            "null",
        ],
    )
};
const LS_FILES: OptionTable =
    plain("zcmod", "", &["cached", "modified", "others", "deleted", "exclude-standard", "deduplicate"]);
const GIT_DIFF: OptionTable = OptionTable {
    long_valued: &["diff-filter"],
    ..plain("z", "", &["name-only", "cached", "staged", "no-renames", "no-ext-diff", "no-color"])
};
const GIT_GREP: OptionTable = plain(
    "liwEFPIz",
    "e",
    &["files-with-matches", "name-only", "ignore-case", "fixed-strings", "word-regexp", "cached"],
);
const SEARCH: OptionTable = plain("liF", "gC", &["files-only", "ignore-case", "literal"]);
const XARGS: OptionTable =
    OptionTable { stops: true, ..plain("0rtx", "nLPIds", &["null", "no-run-if-empty", "verbose"]) };

/// Tests and actions of `find` that print names and nothing else, without a value and with one.
const FIND_PLAIN: [&str; 22] = [
    "-not",
    "!",
    "-a",
    "-and",
    "-o",
    "-or",
    "(",
    ")",
    "-prune",
    "-print",
    "-print0",
    "-mount",
    "-xdev",
    "-depth",
    "-daystart",
    "-readable",
    "-writable",
    "-executable",
    "-follow",
    "-empty",
    "-true",
    "-false",
];
const FIND_VALUED: [&str; 23] = [
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-regextype",
    "-type",
    "-xtype",
    "-size",
    "-mtime",
    "-atime",
    "-ctime",
    "-mmin",
    "-amin",
    "-cmin",
    "-maxdepth",
    "-mindepth",
    "-perm",
    "-user",
    "-group",
    "-newer",
];

/// Programs that read the files they are given and nothing else, whatever names these have, as long as no name is an
/// option. Left out are programs that write a second operand (`uniq`, `xxd`), or read one as a program (`awk`,
/// `find`), as a pathspec or as a list of words (`strings @x`).
const READERS: [&str; 39] = [
    "cat",
    "tac",
    "nl",
    "rev",
    "head",
    "tail",
    "wc",
    "cut",
    "fold",
    "expand",
    "unexpand",
    "paste",
    "column",
    "cmp",
    "comm",
    "cksum",
    "sum",
    "md5sum",
    "sha1sum",
    "sha224sum",
    "sha256sum",
    "sha384sum",
    "sha512sum",
    "b2sum",
    "base64",
    "od",
    "hexdump",
    "ls",
    "stat",
    "du",
    "realpath",
    "readlink",
    "echo",
    "grep",
    "egrep",
    "fgrep",
    "file",
    "diff",
    "sort",
];

impl OptionTable {
    /// Reads the words of the program, without its name. `None` where an option is not known.
    fn read<'w>(&self, words: &[&'w str]) -> Option<ParsedWords<'w>> {
        let mut given = ParsedWords { first: words.len(), ..ParsedWords::default() };
        let (mut ended, mut at) = (false, 0);
        while let Some(word) = words.get(at).copied() {
            at += 1;
            let is_option = !ended && word.len() > 1 && word.starts_with('-');
            if !is_option {
                if self.stops {
                    given.first = at - 1;
                    given.operands = words.get(at - 1..)?.to_vec();
                    return Some(given);
                }
                given.operands.push(word);
            } else if word == "--" {
                // Another use of it in front of `xargs` is rare, and not needed.
                ended = !self.stops;
                ended.then_some(())?;
            } else if let Some(long) = word.strip_prefix("--") {
                let (key, value) =
                    long.split_once('=').map_or((long, None), |(key, value)| (key, Some(value)));
                if self.long_valued.contains(&key) {
                    at += usize::from(value.is_none());
                } else if value.is_some() || !self.long.contains(&key) {
                    return None;
                }
                given.long.push(key);
            } else {
                for (place, letter) in word.char_indices().skip(1) {
                    given.letters.push(letter);
                    if self.valued.contains(letter) {
                        let glued = word.get(place + letter.len_utf8()..).filter(|rest| !rest.is_empty());
                        let value = glued.or_else(|| words.get(at).copied())?;
                        at += usize::from(glued.is_none());
                        given.values.push((letter, value));
                        break;
                    }
                    self.flags.contains(letter).then_some(())?;
                }
            }
        }
        Some(given)
    }
}

impl ParsedWords<'_> {
    fn has(&self, letters: &[char], long: &[&str]) -> bool {
        self.letters.contains(letters) || self.long.iter().any(|key| long.contains(key))
    }
}

/// Words as texts, patterns as they are spelled. `None` where one is known only when the line runs.
pub(crate) fn texts(words: &[Word]) -> Option<Vec<String>> {
    let known = |piece: &Piece| matches!(piece, Piece::Text(_) | Piece::Glob(_));
    words.iter().map(|word| word.pieces.iter().all(known).then(|| word.show())).collect()
}

/// Tells whether a spelling stays in the folder it begins in. A pattern that begins with a dot may mean the folder
/// above.
fn stays(place: &str) -> bool {
    let leaves = |part: &str| part == ".." || may_climb(part);
    !place.is_empty() && !place.starts_with(['-', '~']) && !place.split('/').any(leaves)
}

fn all_stay(places: &[&str]) -> Option<Vec<String>> {
    places.iter().all(|place| stays(place)).then(|| places.iter().map(|place| (*place).to_owned()).collect())
}

fn here() -> Vec<String> {
    vec![".".to_owned()]
}

/// Tells whether at most errors are discarded, and nothing else comes in or goes out.
fn is_quiet(command: &SimpleCommand) -> bool {
    let thrown = command
        .redirects
        .iter()
        .all(|redirect| redirect.kind == RedirectKind::Write && redirect.word.literal() == Some("/dev/null"));
    thrown && command.assignments.is_empty() && !command.broken && !command.evaluated
}

/// The names that a whole text prints. Bash drops zero bytes, which would make one name of several.
pub(crate) fn of_text(text: &str, own: OwnTool<'_>) -> Option<NameSource> {
    let script = lathe_bash::read(text);
    if !script.floors.is_empty() || !script.functions.is_empty() || script.endless {
        return None;
    }
    match script.commands.as_slice() {
        [command] if command.stage.is_none() => produced(command, own).filter(|source| !source.zero),
        [.., last] => {
            let stage = last.stage?;
            let behind = Stage { index: stage.index + 1, ..stage };
            let (source, zero) = of_pipe(&script, behind, own)?;
            (script.commands.len() == behind.index && !zero).then_some(source)
        }
        [] => None,
    }
}

/// The names that come to a stage of a pipe, and true if they end with a zero byte there.
pub(crate) fn of_pipe(script: &Script, at: Stage, own: OwnTool<'_>) -> Option<(NameSource, bool)> {
    let stage = |index: usize| {
        let here = |command: &&SimpleCommand| {
            command.wrapper.is_none()
                && command.stage.is_some_and(|stage| stage.pipe == at.pipe && stage.index == index)
        };
        let mut commands = script.commands.iter().filter(here);
        let only = commands.next().filter(|command| command.stage.is_some_and(|stage| stage.alone))?;
        commands.next().is_none().then_some(only)
    };
    let mut source = produced(stage(0)?, own)?;
    let mut zero = source.zero;
    for index in 1..at.index {
        zero = passed_on(stage(index)?, zero)?;
        source.zero &= zero;
    }
    Some((source, zero))
}

/// Tells whether a filter hands on whole names only, separated as they come (`zero`): true if its own output is
/// separated by zero bytes, `None` if it does not.
fn passed_on(command: &SimpleCommand, zero: bool) -> Option<bool> {
    let words = texts(&command.words).filter(|_| is_quiet(command))?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (name, rest) = words.split_first()?;
    let (known, operands) = match *name {
        "sort" => (&SORT, 0),
        "uniq" => (&UNIQ, 0),
        "head" => (&HEAD, 0),
        "tail" => (&TAIL, 0),
        "cat" | "tac" => return (rest.is_empty()).then_some(zero),
        "grep" | "egrep" | "fgrep" => (&GREP_LINES, 1),
        // `find . | xargs grep -l x | xargs wc`: some of the names.
        "xargs" => {
            let given = XARGS.read(rest)?;
            let (name, rest) = given.operands.split_first()?;
            let mark = given.values.iter().any(|(letter, _)| matches!(letter, 'I' | 'd'));
            let grep =
                GREP_NAMES.read(rest).filter(|_| matches!(*name, "grep" | "egrep" | "fgrep") && !mark)?;
            let pattern = usize::from(!grep.letters.contains('e'));
            let lists = grep.has(&['l', 'L'], &["files-with-matches", "files-without-match"])
                && given.has(&['0'], &["null"]) == zero;
            return (lists && grep.operands.len() == pattern).then(|| grep.has(&['Z'], &["null"]));
        }
        _ => return None,
    };
    let given = known.read(rest)?;
    let operands = if given.letters.contains('e') { 0 } else { operands };
    (given.operands.len() == operands && given.has(&['z'], &["null-data"]) == zero).then_some(zero)
}

/// The names that a command prints.
fn produced(command: &SimpleCommand, own: OwnTool<'_>) -> Option<NameSource> {
    let words = texts(&command.words).filter(|_| is_quiet(command) && command.wrapper.is_none())?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (name, rest) = words.split_first()?;
    if let Some(tool) = own(command) {
        let given = SEARCH.read(rest)?;
        let lists = tool == "glob" || given.has(&['l'], &["files-only"]);
        let mut places = all_stay(given.operands.get(usize::from(tool == "search")..)?)?;
        places.extend(here());
        return lists.then_some(NameSource { places, zero: false, bare: true, index: false });
    }
    match *name {
        "find" => found(rest),
        "ls" => {
            let given = LS.read(rest)?;
            let mut places = all_stay(&given.operands)?;
            // The content of a folder is named without the folder.
            places.extend(here());
            Some(NameSource { places, zero: false, bare: true, index: false })
        }
        "grep" | "egrep" | "fgrep" => {
            let given = GREP_NAMES.read(rest)?;
            let files = given.operands.get(usize::from(!given.letters.contains('e'))..)?;
            let deep = given.has(&['r', 'R'], &["recursive"]);
            let lists = given.has(&['l', 'L'], &["files-with-matches", "files-without-match"]);
            let places = if files.is_empty() && deep { here() } else { all_stay(files)? };
            let source = NameSource {
                bare: files.is_empty(),
                zero: given.has(&['Z'], &["null"]),
                places,
                index: false,
            };
            Some(source).filter(|source| lists && !source.places.is_empty())
        }
        "rg" => {
            let given = RG.read(rest)?;
            let all = given.long.contains(&"files");
            let lists = all || given.has(&['l'], &["files-with-matches", "files-without-match"]);
            let files = given.operands.get(usize::from(!all && !given.letters.contains('e'))..)?;
            let places = if files.is_empty() { here() } else { all_stay(files)? };
            let source = NameSource {
                bare: files.is_empty(),
                zero: given.has(&['0'], &["null"]),
                places,
                index: false,
            };
            Some(source).filter(|_| lists)
        }
        "git" => listed_by_git(rest),
        // For `echo` every word, for `printf` those after the format.
        "echo" => Some(NameSource { places: all_stay(rest)?, zero: false, bare: true, index: false }),
        "printf" => {
            let (format, rest) = rest.split_first()?;
            let zero = *format == "%s\\0";
            let source = NameSource { places: all_stay(rest)?, zero, bare: true, index: false };
            (zero || *format == "%s\\n").then_some(source)
        }
        _ => None,
    }
}

/// The names that `find` selects, by the words that are left of it.
pub(crate) fn found_by(words: &[Word]) -> Option<NameSource> {
    let words = texts(words)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    found(words.get(1..)?)
}

fn found(words: &[&str]) -> Option<NameSource> {
    let begins = |word: &&&str| word.starts_with('-') || matches!(**word, "(" | "!" | ",");
    let options = words.iter().take_while(|word| matches!(**word, "-L" | "-H" | "-P")).count();
    let words = words.get(options..)?;
    let starts = words.iter().take_while(|word| !begins(word)).count();
    let (starts, mut tests) = words.split_at(starts);
    let places = if starts.is_empty() { here() } else { all_stay(starts)? };
    let prints = |action: &str| tests.contains(&action);
    let zero = prints("-print0") && !prints("-print");
    while let Some((test, rest)) = tests.split_first() {
        tests = if FIND_PLAIN.contains(test) {
            rest
        } else if FIND_VALUED.contains(test) {
            rest.get(1..)?
        } else {
            return None;
        };
    }
    Some(NameSource { places, zero, bare: false, index: false })
}

fn listed_by_git(words: &[&str]) -> Option<NameSource> {
    let (sub, rest) = words.split_first()?;
    let magic = |place: &&str| place.starts_with(':') || place.starts_with('/');
    let source = |zero: bool, places: Vec<String>| Some(NameSource { places, zero, bare: true, index: true });
    match *sub {
        "ls-files" => {
            let given = LS_FILES.read(rest).filter(|given| !given.operands.iter().any(magic))?;
            // A pattern of git's matches across folders.
            let named = !given.operands.is_empty()
                && !given.operands.iter().any(|place| place.contains(['*', '?', '[', '\\']));
            let places = all_stay(&given.operands)?;
            source(given.letters.contains('z'), if named { places } else { here() })
        }
        // With a revision, the names are not known.
        "diff" => {
            let given = GIT_DIFF.read(rest).filter(|given| given.long.contains(&"name-only"))?;
            given.operands.is_empty().then_some(())?;
            source(given.letters.contains('z'), here())
        }
        "grep" => {
            let given = GIT_GREP.read(rest)?;
            let lists = given.has(&['l'], &["files-with-matches", "name-only"]);
            let pattern = usize::from(!given.letters.contains('e'));
            (lists && given.operands.len() == pattern).then_some(())?;
            source(given.letters.contains('z'), here())
        }
        _ => None,
    }
}

/// A command that `xargs` or `find` starts with names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StartedCommand {
    pub(crate) words: Vec<String>,
    /// The sign for a name; without it, names follow the last word.
    pub(crate) mark: Option<String>,
    /// True if names end with a zero byte only.
    pub(crate) zero: bool,
    /// True if names are separated as usual: at blanks, line feeds or zero bytes.
    pub(crate) usual: bool,
    /// True if it runs in the folder of each file.
    pub(crate) moves: bool,
}

/// The command that `xargs` runs, if its options are plain.
pub(crate) fn run_by_xargs(command: &SimpleCommand) -> Option<StartedCommand> {
    let words = texts(&command.words)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let given = XARGS.read(words.get(1..)?)?;
    let of = |wanted: char| {
        let mut values = given.values.iter().filter(|(letter, _)| *letter == wanted);
        values.next_back().map(|(_, value)| *value)
    };
    let mark = of('I').map(str::to_owned);
    // With both options, the last one counts.
    let null = given.has(&['0'], &["null"]);
    let usual = of('d').is_none_or(|value| !null && matches!(value, "\\n" | "\n" | "\\0"));
    let zero = null || of('d') == Some("\\0");
    let words = given.operands.iter().map(|word| (*word).to_owned()).collect::<Vec<String>>();
    // `2>&1`; any other redirection may be another input.
    let quiet = command.redirects.iter().all(|redirect| match redirect.kind {
        RedirectKind::Write => true,
        RedirectKind::Duplicate => matches!(redirect.word.literal(), Some("1" | "2")),
        RedirectKind::Read | RedirectKind::Text => false,
    });
    (!words.is_empty() && quiet).then_some(StartedCommand { words, mark, zero, usual, moves: false })
}

/// The commands that `find` runs, with the words that are left of it. `None` where one of them is asked about or has
/// no end.
pub(crate) fn run_by_find(command: &SimpleCommand) -> Option<(Vec<StartedCommand>, Vec<Word>)> {
    let words = texts(&command.words)?;
    let (mut runs, mut left, mut at) = (Vec::new(), Vec::new(), 0);
    while let Some(word) = words.get(at) {
        if !matches!(word.as_str(), "-exec" | "-execdir") {
            left.push(command.words.get(at)?.clone());
            at += 1;
            continue;
        }
        let rest = words.get(at + 1..)?;
        let ends = |index: &usize| match rest.get(*index).map(String::as_str) {
            Some(";") => true,
            Some("+") => {
                index.checked_sub(1).and_then(|before| rest.get(before)).is_some_and(|word| word == "{}")
            }
            _ => false,
        };
        let end = (0..rest.len()).find(ends)?;
        let words = rest.get(..end)?.to_vec();
        // Another `+` is a word to `find` and an end to other programs.
        (!words.is_empty() && !words.iter().any(|word| word == "+")).then_some(())?;
        let mark = Some("{}".to_owned());
        runs.push(StartedCommand { words, mark, zero: true, usual: true, moves: word == "-execdir" });
        at += end + 2;
    }
    (!runs.is_empty()).then_some((runs, left))
}

/// Tells whether a command only reads the names it is given, each of them as a file.
pub(crate) fn takes_names(run: &StartedCommand) -> bool {
    let Some((name, rest)) = run.words.split_first() else { return false };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let split = |mark: &String| run.words.iter().any(|word| word != mark && word.contains(mark.as_str()));
    if run.mark.as_ref().is_some_and(|mark| mark.is_empty() || mark == name || split(mark)) {
        return false;
    }
    let is_mark = |word: &&str| run.mark.as_deref() == Some(*word);
    // The first name would become the value of an option that may want one.
    let last = rest.last().filter(|_| run.mark.is_none());
    let wants = |word: &&&str| word.starts_with("--") && !word.contains('=');
    if last.filter(wants).is_some() || (name == "file" && last.is_some_and(|word| word.starts_with('-'))) {
        return false;
    }
    // In another folder, no other word may name a file.
    let texts = pattern::word_roles(name, &rest).map_or_else(Vec::new, |read| read.texts);
    let text = |index: usize| texts.contains(&index);
    let harmless = |(index, word): (usize, &&str)| {
        is_mark(word) || text(index) || (word.starts_with('-') && !word.contains(['/', '=', '.']))
    };
    if run.moves && !rest.iter().enumerate().all(harmless) {
        return false;
    }
    match name.as_str() {
        // Without a program of their own, the first name would become the program.
        "sed" | "jq" => {
            !texts.is_empty() && texts.iter().all(|at| rest.get(*at).is_some_and(|word| !is_mark(word)))
        }
        "rg" => !texts.is_empty(),
        "printf" => rest.first().is_some_and(|format| !is_mark(format) && !format.starts_with('-')),
        name => READERS.contains(&name),
    }
}
