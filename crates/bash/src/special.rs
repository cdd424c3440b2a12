//! Programs whose words do more than their options say: an operand is written, changes a setting or is a subcommand.

use crate::script::{Floor, FloorRule, Piece, SimpleCommand, Word};

/// Adds the effects of some programs' words beyond the table. `end` is the index after program and subcommand.
pub(crate) fn doubts(command: &SimpleCommand, end: usize, floors: &mut Vec<Floor>) {
    let words = command.words.as_slice();
    match command.program_name() {
        Some("printf") => floors.extend(format_assigns(words)),
        Some("uniq") => second(words, &UNIQ, floors),
        Some("xxd") => second(words, &XXD, floors),
        Some("date") => second(words, &DATE, floors),
        Some("git") => floors.extend(reflog(words, end).or_else(|| sets(words))),
        Some(name @ ("pytest" | "py.test" | "mypy" | "flake8" | "pylint" | "black")) => {
            shortened(name, words, floors)
        }
        _ => {}
    }
}

/// The floor of `printf %n NAME`, which assigns the variable.
fn format_assigns(words: &[Word]) -> Option<Floor> {
    let ended = words.get(1).and_then(Word::literal) == Some("--");
    let option = |word: &Word| word.literal().is_some_and(|word| word.starts_with('-') && word.len() > 1);
    let from = 1 + usize::from(ended);
    let at = from + words.iter().skip(from).take_while(|word| !ended && option(word)).count();
    match words.get(at)?.literal() {
        Some(format) if !assigns(format) => None,
        Some(_) => Some(Floor::at(FloorRule::State, "%n of printf assigns a variable", at)),
        None => {
            Some(Floor::at(FloorRule::State, "a format only known when it runs may assign a variable", at))
        }
    }
}

/// Tells whether a format contains a `%n`, with any flags between the two.
fn assigns(format: &str) -> bool {
    let mut rest = format;
    while let Some((_, after)) = rest.split_once('%') {
        if let Some(after) = after.strip_prefix('%') {
            rest = after;
            continue;
        }
        let between = |c: char| c.is_ascii_digit() || "#'-+ *.$hlLqjztI".contains(c);
        rest = after.trim_start_matches(between);
        if rest.starts_with('n') {
            return true;
        }
    }
    false
}

/// The options of a program that take the next word, and the operands that have an effect.
struct OperandRule {
    /// Letters whose value is in the same word or the next.
    letters: &'static str,
    /// Letters after which the rest of the word is a value.
    glued: &'static str,
    /// Whole words that take the next one.
    long: &'static [&'static str],
    /// True if letters do not stand together after one dash.
    apart: bool,
    /// The number of operands that are only read.
    read: usize,
    /// Operands that begin with this have no effect.
    fine: Option<char>,
    why: &'static str,
}

const UNIQ: OperandRule = OperandRule {
    letters: "fsw",
    glued: "",
    long: &["--skip-fields", "--skip-chars", "--check-chars"],
    apart: false,
    read: 1,
    fine: None,
    why: "a second operand of uniq is written",
};

const XXD: OperandRule = OperandRule {
    letters: "cglos",
    glued: "",
    long: &["-cols", "-len", "-seek", "-groupsize", "-offset"],
    apart: true,
    read: 1,
    fine: None,
    why: "a second operand of xxd is written",
};

const DATE: OperandRule = OperandRule {
    letters: "dr",
    glued: "If",
    long: &["--date", "--reference"],
    apart: false,
    read: 0,
    fine: Some('+'),
    why: "an operand of date sets the clock",
};

/// Adds a floor for a surplus operand, or a word that may become one.
fn second(words: &[Word], shape: &OperandRule, floors: &mut Vec<Floor>) {
    let (mut operands, mut ended, mut value) = (0, false, false);
    for (index, word) in words.iter().enumerate().skip(1) {
        let many = |piece: &Piece| !matches!(piece, Piece::Text(_) | Piece::Tilde(_) | Piece::Process(_));
        if word.pieces.iter().any(many) {
            let why = format!("{} may become several words, and {}", word.show(), shape.why);
            floors.push(Floor::at(FloorRule::Glob, why, index));
            return;
        }
        if std::mem::take(&mut value) {
            continue;
        }
        let text = word.literal().unwrap_or("/");
        // Not every system accepts options after the first operand.
        let option = !ended && operands == 0 && text.len() > 1 && text.starts_with('-');
        if option && text == "--" {
            ended = true;
        } else if option {
            value = takes_next(text, shape);
        } else if !shape.fine.is_some_and(|fine| text.starts_with(fine)) {
            operands += 1;
            if operands > shape.read {
                floors.push(Floor::at(FloorRule::Option, shape.why, index));
                return;
            }
        }
    }
}

fn takes_next(text: &str, shape: &OperandRule) -> bool {
    let letters = text.strip_prefix('-').unwrap_or(text);
    if shape.long.contains(&text) || letters.starts_with('-') {
        return shape.long.contains(&text);
    }
    if shape.apart {
        return letters.len() == 1 && shape.letters.contains(letters);
    }
    let at = letters.find(|letter| shape.letters.contains(letter) || shape.glued.contains(letter));
    at.is_some_and(|at| at + 1 == letters.len() && !letters.ends_with(|last| shape.glued.contains(last)))
}

/// The floor of a `git reflog` with a subcommand other than these, which only read. Later versions of git may add
/// others.
fn reflog(words: &[Word], end: usize) -> Option<Floor> {
    if words.get(end.checked_sub(1)?)?.literal() != Some("reflog") {
        return None;
    }
    let next = words.get(end)?;
    let known = |text: &str| text.starts_with('-') || matches!(text, "show" | "list" | "exists" | "HEAD");
    if next.literal().is_some_and(known) {
        return None;
    }
    let why = format!("{} may be a subcommand that changes the reflog", next.show());
    Some(Floor::at(FloorRule::Option, why, end))
}

/// Options of `git config` that only decide how values are shown, or where the shown ones come from.
const SHOWS: [&str; 15] = [
    "--local",
    "--worktree",
    "--bool",
    "--int",
    "--bool-or-int",
    "--path",
    "--expiry-date",
    "--show-origin",
    "--show-scope",
    "--name-only",
    "-z",
    "--null",
    "--includes",
    "--no-includes",
    "--type",
];

/// The floor of a `git config` that does more than read, at the word of its key.
fn sets(words: &[Word]) -> Option<Floor> {
    let at = words.iter().position(|word| word.literal() == Some("config"))?;
    let before =
        words.get(1..at)?.iter().all(|word| word.literal().is_some_and(|word| word.starts_with('-')));
    if !before || reads_config(words.get(at + 1..)?) {
        return None;
    }
    let option = |word: &Word| word.literal().is_some_and(|word| word.starts_with('-'));
    let key = at + 1 + words.iter().skip(at + 1).take_while(|word| option(word)).count();
    Some(Floor::at(FloorRule::Option, "git config changes a setting", key.min(words.len() - 1)))
}

/// Tells whether a command is a `git config` that only reads. `end` is the index of the first word after the
/// subcommand.
pub(crate) fn reads_setting(words: &[Word], end: usize) -> bool {
    let literal = |at: usize| words.get(at).and_then(Word::literal);
    let sub = end.checked_sub(1).and_then(literal);
    literal(0).is_some_and(|name| crate::script::base_name(name) == "git")
        && sub == Some("config")
        && words.get(end..).is_some_and(reads_config)
}

/// Tells whether the words after `git config` only read: an option or a word that says so, or one key without a
/// value.
fn reads_config(words: &[Word]) -> bool {
    let literal = |word: &Word| word.literal().map(str::to_owned);
    let Some(words) = words.iter().map(literal).collect::<Option<Vec<String>>>() else {
        // A part that is known only when it runs may be a second word.
        return false;
    };
    let shows = |word: &String| SHOWS.contains(&word.split('=').next().unwrap_or(word));
    let reads = ["--get", "--get-all", "--get-regexp", "--list", "-l", "get", "list"];
    let rest: Vec<&String> = words.iter().filter(|word| !shows(word)).collect();
    match rest.as_slice() {
        [first, ..] if reads.contains(&first.as_str()) => true,
        [key] => !key.starts_with('-') && key.contains('.'),
        _ => false,
    }
}

/// Tells whether the first word after the subcommand makes git list or show, so that the others are patterns or
/// names. Only the first counts: after another option, the word may be that option's value.
pub(crate) fn lists(words: &[Word], end: usize) -> bool {
    let literal = |at: usize| words.get(at).and_then(Word::literal);
    let (Some(sub), Some(first)) = (end.checked_sub(1).and_then(literal), literal(end)) else { return false };
    let filters = ["--contains", "--no-contains", "--merged", "--no-merged", "--points-at"];
    let filters = filters.contains(&first) && words.len() <= end + 2;
    // `--list --no-list x`: no option cancels another except these, which only filter.
    let back = |word: &Word| {
        word.literal().is_none_or(|word| {
            word.starts_with("--no")
                && !matches!(word, "--no-contains" | "--no-merged" | "--no-color" | "--no-column")
        })
    };
    if words.iter().skip(end).any(back) {
        return false;
    }
    match sub {
        "branch" => filters || first == "--list",
        "tag" => filters || matches!(first, "--list" | "-l"),
        "remote" => first == "get-url",
        _ => false,
    }
}

const PYTEST: &[&str] = &[
    "--help",
    "--version",
    "--verbose",
    "--quiet",
    "--exitfirst",
    "--maxfail",
    "--lf",
    "--last-failed",
    "--ff",
    "--failed-first",
    "--nf",
    "--new-first",
    "--sw",
    "--stepwise",
    "--sw-skip",
    "--stepwise-skip",
    "--collect-only",
    "--co",
    "--tb",
    "--durations",
    "--durations-min",
    "--capture",
    "--no-header",
    "--no-summary",
    "--showlocals",
    "--no-showlocals",
    "--color",
    "--fixtures",
    "--fixtures-per-test",
    "--markers",
    "--strict",
    "--strict-markers",
    "--strict-config",
    "--ignore",
    "--ignore-glob",
    "--deselect",
    "--runxfail",
    "--setup-plan",
    "--setup-only",
    "--disable-warnings",
    "--disable-pytest-warnings",
    "--keep-duplicates",
    "--doctest-modules",
    "--log-level",
    "--log-cli-level",
    "--show-capture",
    "--full-trace",
    "--code-highlight",
    "--verbosity",
    "--cov",
    "--cov-fail-under",
    "--cov-report",
    "--cov-branch",
    "--no-cov",
    "--numprocesses",
    "--maxprocesses",
    "--timeout",
    "--reruns",
    "--forked",
    "--random-order",
    "--asyncio-mode",
    "--runslow",
    "--run-slow",
    "--slow",
    "--benchmark-skip",
    "--benchmark-disable",
    "--benchmark-only",
    "--xfail-tb",
    "--force-short-summary",
    "--last-failed-no-failures",
    "--lfnf",
];

const MYPY: &[&str] = &[
    "--help",
    "--version",
    "--verbose",
    "--strict",
    "--ignore-missing-imports",
    "--follow-imports",
    "--module",
    "--package",
    "--python-version",
    "--platform",
    "--pretty",
    "--no-pretty",
    "--show-error-codes",
    "--hide-error-codes",
    "--show-error-context",
    "--show-column-numbers",
    "--show-error-end",
    "--no-error-summary",
    "--error-summary",
    "--no-color-output",
    "--color-output",
    "--show-absolute-path",
    "--soft-error-limit",
    "--no-incremental",
    "--incremental",
    "--no-site-packages",
    "--no-silence-site-packages",
    "--namespace-packages",
    "--no-namespace-packages",
    "--explicit-package-bases",
    "--exclude",
    "--check-untyped-defs",
    "--no-check-untyped-defs",
    "--disallow-untyped-defs",
    "--allow-untyped-defs",
    "--disallow-any-generics",
    "--disallow-any-unimported",
    "--disallow-any-expr",
    "--disallow-any-decorated",
    "--disallow-any-explicit",
    "--disallow-subclassing-any",
    "--disallow-untyped-calls",
    "--disallow-incomplete-defs",
    "--disallow-untyped-decorators",
    "--no-implicit-optional",
    "--implicit-optional",
    "--no-strict-optional",
    "--warn-redundant-casts",
    "--warn-unused-ignores",
    "--no-warn-unused-ignores",
    "--warn-no-return",
    "--no-warn-no-return",
    "--warn-return-any",
    "--warn-unreachable",
    "--warn-unused-configs",
    "--allow-redefinition",
    "--no-implicit-reexport",
    "--implicit-reexport",
    "--strict-equality",
    "--strict-optional",
    "--enable-error-code",
    "--disable-error-code",
    "--non-interactive",
    "--allow-untyped-globals",
    "--local-partial-types",
    "--skip-cache-mtime-checks",
    "--always-true",
    "--always-false",
    "--output",
];

const FLAKE8: &[&str] = &[
    "--help",
    "--version",
    "--verbose",
    "--quiet",
    "--count",
    "--statistics",
    "--select",
    "--ignore",
    "--extend-ignore",
    "--extend-select",
    "--max-line-length",
    "--max-complexity",
    "--max-doc-length",
    "--exclude",
    "--extend-exclude",
    "--filename",
    "--show-source",
    "--no-show-source",
    "--format",
    "--color",
    "--diff",
    "--hang-closing",
    "--per-file-ignores",
    "--exit-zero",
    "--disable-noqa",
    "--benchmark",
    "--jobs",
    "--indent-size",
    "--isolated",
    "--stdin-display-name",
    "--doctests",
    "--builtins",
    "--require-plugins",
];

const PYLINT: &[&str] = &[
    "--help",
    "--version",
    "--verbose",
    "--disable",
    "--enable",
    "--errors-only",
    "--score",
    "--reports",
    "--jobs",
    "--ignore",
    "--ignore-patterns",
    "--ignore-paths",
    "--max-line-length",
    "--msg-template",
    "--recursive",
    "--fail-under",
    "--fail-on",
    "--list-msgs",
    "--list-msgs-enabled",
    "--exit-zero",
    "--confidence",
];

const BLACK: &[&str] = &[
    "--help",
    "--version",
    "--verbose",
    "--quiet",
    "--check",
    "--diff",
    "--color",
    "--no-color",
    "--line-length",
    "--target-version",
    "--skip-string-normalization",
    "--preview",
    "--include",
    "--exclude",
    "--extend-exclude",
    "--workers",
];

/// Adds floors for unknown long options: these programs accept abbreviated ones, and plugins add more, so only listed
/// options are known.
fn shortened(name: &str, words: &[Word], floors: &mut Vec<Floor>) {
    let known = match name {
        "mypy" => MYPY,
        "flake8" => FLAKE8,
        "pylint" => PYLINT,
        "black" => BLACK,
        _ => PYTEST,
    };
    for (index, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.literal().filter(|text| text.len() > 2 && text.starts_with("--")) else {
            continue;
        };
        let bare = text.split('=').next().unwrap_or(text);
        if !known.contains(&bare) {
            floors.push(Floor::at(
                FloorRule::Option,
                format!("{bare} of {name} is not known to be harmless"),
                index,
            ));
        }
    }
}
