//! Written files whose names are known only when the line runs, in lines that name a guarded place.
//!
//! `t=$(python3 -c 'print(".git/hooks/x")'); tee "$t"`: no reading of the line shows which file it is. So such a line
//! is denied, and the model is told to write the name out.

use lathe_bash::{RedirectKind, SimpleCommand, Word};
use lathe_protocol::{Decision, Verdict};

use crate::gate::decision;
use crate::guard::Spelled;
use crate::guarded::GuardedPlace;
use crate::guarded_writes::{Writer, changes};
use crate::harm;
use crate::places::{UNKNOWN, Values};

/// Commands that print the content of the files they name, and not the names.
const SHOWS_CONTENT: [&str; 12] =
    ["cat", "head", "tail", "less", "more", "test", "[", "[[", "cmp", "sort", "cut", "tac"];

/// Programs that write no file that they name. Deletions are decided elsewhere.
const WRITES_NO_FILE: [&str; 14] = [
    "rm", "rmdir", "unlink", "srm", "trash", "mkdir", "chmod", "chown", "chgrp", "cd", "pushd", "popd",
    "find", "git",
];

/// Names that stand in a `.git`.
const IN_GIT: [&str; 9] =
    ["hooks", "config", "info", "HEAD", "index", "objects", "refs", "modules", "packed-refs"];

/// The denial of a command whose file is known only when it runs.
pub(crate) fn denied(writer: &Writer<'_>) -> Option<Decision> {
    let targets = hidden_targets(writer);
    if targets.is_empty() {
        return extglob_denial(writer);
    }
    // `"$t/hooks/x"`: here the name of the folder alone is enough.
    let tail = |target: &String| {
        let behind = target.rsplit(UNKNOWN).next().unwrap_or_default();
        behind.split('/').nth(1).is_some_and(|part| IN_GIT.contains(&part))
    };
    match targets.iter().any(tail) {
        true => writer.denials.whole.get_or_init(|| named_guarded_place(writer, true)).clone(),
        false => writer.denials.inside.get_or_init(|| named_guarded_place(writer, false)).clone(),
    }
}

/// The files that a command writes and whose names are known only when the line runs.
fn hidden_targets(writer: &Writer<'_>) -> Vec<String> {
    let command = writer.command;
    let opens = command.redirects.iter().any(|redirect| redirect.kind == RedirectKind::Write);
    if !opens && !changes(writer) {
        return Vec::new();
    }
    let values = Values { line: Some(writer.line), ..*writer.values };
    let unknown = |word: &Word| values.spellings(word).into_iter().find(|text| text.contains(UNKNOWN));
    let opened = command.redirects.iter().filter(|redirect| redirect.kind == RedirectKind::Write);
    let mut targets: Vec<String> = opened.filter_map(|redirect| unknown(&redirect.word)).collect();
    let name = command.program_name().unwrap_or_default();
    let fed = writer.is_fed();
    let mut words: Vec<String> = Vec::new();
    for word in command.words.iter().skip(1) {
        let spelled = unknown(word).or_else(|| values.spellings(word).into_iter().next()).unwrap_or_default();
        words.push(writer.filled(&spelled));
    }
    // Words from the pipe follow the command's own words.
    if fed && !words.iter().any(|word| word.contains(UNKNOWN)) {
        words.push(UNKNOWN.to_string());
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_hidden = |word: &&&str| word.contains(UNKNOWN);
    match harm::known_write_targets(&Spelled { name, words: words.clone() }) {
        _ if WRITES_NO_FILE.contains(&name) || command.words.is_empty() => {}
        // `curl -K -`: the name of the file it writes is in its input.
        Some(_) if name == "curl" && !harm::option_values(&words, &["-K", "--config"]).is_empty() => {
            targets.push(UNKNOWN.to_string());
        }
        Some(known) => targets.extend(known.iter().filter(is_hidden).map(|word| (*word).to_owned())),
        None if !changes(writer) => {}
        None => targets.extend(words.iter().filter(is_hidden).map(|word| (*word).to_owned())),
    }
    targets
}

/// The parts of a text that may be names of files.
pub(crate) fn possible_names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || "=:,;|&<>()\"'`[]{}".contains(c))
}

/// The denial for a guarded place that the line names: something in it, `.git` by its plain name or, with `whole`,
/// the place itself by any name.
fn named_guarded_place(writer: &Writer<'_>, whole: bool) -> Option<Decision> {
    let commands = || writer.script.commands.iter();
    let words = commands().flat_map(words_that_name).map(|word| (word, true));
    let opened = |command: &&SimpleCommand| !shows_content(command);
    let read = commands().filter(opened).flat_map(|command| &command.redirects);
    let read = read.filter(|redirect| redirect.kind == RedirectKind::Read);
    let texts = commands().flat_map(|command| &command.redirects);
    let texts = texts.filter(|redirect| redirect.kind == RedirectKind::Text);
    let all = words
        .chain(read.chain(texts).map(|redirect| (redirect.word.show(), true)))
        .chain(writer.script.values.values().flatten().map(|word| (word.show(), false)));
    let place = |part: &str, plain: bool| {
        let is_git = |part: &str| part.eq_ignore_ascii_case(".git");
        let git = part.split('/').any(is_git).then_some(GuardedPlace::Git);
        let of = |part: &str, whole: bool| GuardedPlace::of(writer.gate, part, writer.everywhere, whole);
        // `HOME/../"$t"`
        let before = || part.rsplit_once("/..").map(|(before, _)| before);
        let home =
            || of(part, true).or_else(|| of(before()?, true)).filter(|place| *place == GuardedPlace::Home);
        of(part, whole).or_else(|| git.or_else(home).filter(|_| plain))
    };
    // Behind walls Lathe's own folder is masked, so a line need not be denied for what it may write there.
    let counts = |place: &GuardedPlace| *place != GuardedPlace::Home || !writer.gate.has_walls();
    all.into_iter().find_map(|(text, plain)| {
        possible_names(&text).find_map(|part| {
            let place = place(part, plain).filter(counts)?;
            let why = format!(
                "which file it writes shows only when it runs, and the line names {part}; write the name out"
            );
            Some(decision(Verdict::Deny, place.rule(), &why))
        })
    })
}

fn shows_content(command: &SimpleCommand) -> bool {
    command.program_name().is_some_and(|name| SHOWS_CONTENT.contains(&name))
}

/// The words of a command that may name a file whose name it prints or hands on, without those by which it excludes
/// something.
fn words_that_name(command: &SimpleCommand) -> Vec<String> {
    let shown: Vec<String> = command.words.iter().map(Word::show).collect();
    let Some((program, words)) = shown.split_first() else { return Vec::new() };
    let name = program.rsplit('/').next().unwrap_or(program);
    let inverted = name.ends_with("grep")
        && words.iter().any(|word| word.starts_with('-') && !word.starts_with("--") && word.contains('v'));
    if shows_content(command) || inverted {
        return Vec::new();
    }
    let left_out = |index: &usize| match name {
        "find" => is_spared(words, *index),
        // Git's own folder is named to git itself.
        "git" => words.get(*index).is_some_and(|word| word.starts_with("--git-dir")),
        _ => is_excluded(words, *index),
    };
    let kept = (0..words.len()).filter(|index| !left_out(index));
    kept.filter_map(|index| words.get(index).cloned()).collect()
}

/// `--exclude .git`, `--exclude-dir=.git`, `-x .git`
fn is_excluded(words: &[String], index: usize) -> bool {
    let excludes = |word: &str| {
        let option = word.split('=').next().unwrap_or(word);
        option.starts_with('-') && (option.contains("exclude") || option.contains("ignore"))
    };
    let word = words.get(index).map_or("", String::as_str);
    let before = index.checked_sub(1).and_then(|before| words.get(before)).map_or("", String::as_str);
    excludes(word) || (!before.contains('=') && excludes(before)) || matches!(before, "-x" | "-I" | "-E")
}

/// Tells whether a word of `find` is the name of a test that excludes something: after `!`, or before `-prune`.
fn is_spared(words: &[String], index: usize) -> bool {
    let at = |index: Option<usize>| index.and_then(|index| words.get(index)).map_or("", String::as_str);
    let is_test = |word: &str| {
        ["-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex"]
            .contains(&word)
    };
    if !is_test(at(index.checked_sub(1))) {
        return false;
    }
    if matches!(at(index.checked_sub(2)), "!" | "-not") {
        return true;
    }
    // Only further tests of the same kind may stand between it and `-prune`.
    let mut rest = words.iter().skip(index + 1).map(String::as_str);
    while let Some(word) = rest.next() {
        match word {
            "-prune" => return true,
            "-o" | "-or" | ")" | "\\)" => {}
            "-type" => drop(rest.next()),
            _ if is_test(word) => drop(rest.next()),
            _ => return false,
        }
    }
    false
}

/// The denial of a pattern that is one only with `extglob`, which may mean a guarded place, in a command that changes
/// something. The words of such a line arrive in pieces, so the pattern is searched for in the line itself.
fn extglob_denial(writer: &Writer<'_>) -> Option<Decision> {
    let writes = writer.command.redirects.iter().any(|redirect| redirect.kind == RedirectKind::Write);
    if !(writes || changes(writer)) {
        return None;
    }
    let found = || {
        crate::extglob::patterns(writer.line).iter().find_map(|pattern| {
            Some(GuardedPlace::of(writer.gate, pattern, writer.everywhere, true)?.denial())
        })
    };
    writer.denials.extended.get_or_init(found).clone()
}
