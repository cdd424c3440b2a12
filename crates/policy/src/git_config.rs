//! Settings of git that name a program or another file to read. A line that sets one writes into `.git/config`, or
//! into the user's own configuration, something that runs later without being named in a line. So no line may set
//! one, just as no tool may write that file.

use lathe_protocol::{Decision, Verdict};

use crate::gate::decision;
use crate::git;
use crate::git_option::{may_be_option, operands, without_values};
use crate::guarded::GuardedPlace;
use crate::harm;
use crate::places::UNKNOWN;

/// Keys that name a program or a file to read; `*` stands for any part in the middle and any end.
const PROGRAMS: [&str; 56] = [
    "alias.*",
    "annex.*",
    "lfs.*",
    "browser.*.cmd",
    "browser.*.path",
    "core.alternaterefscommand",
    "core.askpass",
    "core.attributesfile",
    "core.editor",
    "core.fsmonitor",
    "core.gitproxy",
    "core.hookspath",
    "core.pager",
    "core.sshcommand",
    "credential.helper",
    "credential.*.helper",
    "diff.external",
    "diff.*.command",
    "diff.*.textconv",
    "difftool.*.cmd",
    "difftool.*.path",
    "filter.*.clean",
    "filter.*.process",
    "filter.*.smudge",
    "gc.recentobjectshook",
    "gpg.program",
    "gpg.*.program",
    "gpg.*.defaultkeycommand",
    "guitool.*.cmd",
    "help.browser",
    "hook.*",
    "imap.tunnel",
    "include.path",
    "includeif.*",
    "init.templatedir",
    "instaweb.*",
    "interactive.difffilter",
    "man.*.cmd",
    "man.*.path",
    "man.viewer",
    "merge.*.driver",
    "mergetool.*.cmd",
    "mergetool.*.path",
    "pager.*",
    "protocol.*",
    "remote.*.receivepack",
    "remote.*.uploadpack",
    "remote.*.vcs",
    "sendemail.*",
    "sequence.editor",
    "submodule.*.update",
    "tar.*.command",
    "trailer.*.cmd",
    "trailer.*.command",
    "uploadpack.packobjectshook",
    "web.browser",
];

/// Words and options with which `git config` reads or removes.
const HARMLESS: [&str; 17] = [
    "--get",
    "--get-all",
    "--get-regexp",
    "--get-urlmatch",
    "--get-color",
    "--get-colorbool",
    "--list",
    "-l",
    "--unset",
    "--unset-all",
    "--remove-section",
    "get",
    "list",
    "unset",
    "remove-section",
    "--help",
    "-h",
];

/// The reasons of denials that guess: the command, or the key, is known only when the line runs.
const UNKNOWN_COMMAND: &str =
    "which command of git it is shows only when it runs, and it may change git's settings; write it out";
const UNKNOWN_KEY: &str = "which setting of git it changes shows only when it runs; write the key out";

/// Tells whether a denial only guesses that a git command sets such a key.
pub(crate) fn is_guess(denied: &Decision) -> bool {
    matches!(denied.reason.as_str(), UNKNOWN_COMMAND | UNKNOWN_KEY)
}

/// The denial of a git command that sets such a key. `words` stand after `git`.
pub(crate) fn denied(words: &[&str]) -> Option<Decision> {
    let (sub, rest) = git::split_subcommand(words)?;
    if let Some(meant) = alias(words, sub) {
        let words: Vec<&str> = meant.split_whitespace().chain(rest.iter().copied()).collect();
        // `git -c alias.x='!git config k v' x`
        let ran = words.iter().position(|word| word.trim_start_matches('!') == "git");
        let words = ran.and_then(|at| words.get(at + 1..)).unwrap_or(&words);
        return git::split_subcommand(words).filter(|(named, _)| *named != sub).and_then(|_| denied(words));
    }
    if sub.contains(UNKNOWN) {
        return Some(decision(Verdict::Deny, GuardedPlace::Git.rule(), UNKNOWN_COMMAND));
    }
    let keys: Vec<String> = match sub {
        "config" => set_by_config(rest)?,
        // The settings of a clone stay in its configuration.
        "clone" => {
            let given = harm::option_values(rest, &["-c", "--config"]).into_iter();
            given.map(|given| given.split('=').next().unwrap_or(given).to_lowercase()).collect()
        }
        _ => return None,
    };
    let key = keys.iter().find(|key| names_program(key))?;
    let why = match key.contains(UNKNOWN) {
        true => UNKNOWN_KEY.to_owned(),
        false => {
            format!("`{key}` makes git run a program or read another file, so no line sets it; the user can")
        }
    };
    Some(decision(Verdict::Deny, GuardedPlace::Git.rule(), &why))
}

/// Options of `git config` that have a value.
const VALUED: [&str; 8] = ["-f", "--file", "--blob", "-t", "--type", "--default", "--comment", "--value"];

/// The meaning of an alias that the command brings along: `git -c alias.x=config x`.
fn alias<'w>(words: &[&'w str], sub: &str) -> Option<&'w str> {
    let given = words.iter().filter_map(|word| word.strip_prefix("alias.")?.split_once('='));
    given.into_iter().find(|(name, _)| *name == sub).map(|(_, meant)| meant)
}

/// The keys that a `git config` sets; `None` where it only reads or removes.
fn set_by_config(rest: &[&str]) -> Option<Vec<String>> {
    // `--comment --list`: the value of an option is not an option.
    let plain = without_values(rest, &VALUED);
    let given: Vec<&str> = plain.iter().copied().take_while(|word| *word != "--").collect();
    let has = |options: &[&str]| given.iter().any(|word| may_be_option(word, options));
    // A subcommand is always the first word.
    let sub = rest.first().copied().unwrap_or_default();
    // `--get --no-get` cancels the option that made it only read.
    let taken_back = given.iter().any(|word| word.starts_with("--no-") && *word != "--no-includes");
    let reads = given.iter().any(|word| word.starts_with('-') && HARMLESS.contains(word));
    if (reads && !taken_back) || (HARMLESS.contains(&sub) && !sub.starts_with('-')) {
        return None;
    }
    if sub == "edit" || has(&["-e", "--edit"]) {
        // An editor may write anything there.
        return Some(vec!["alias.*".to_owned()]);
    }
    let mut operands: Vec<String> = operands(&plain).iter().map(|word| word.to_lowercase()).collect();
    if sub == "rename-section" || has(&["--rename-section"]) {
        // A renamed section takes its keys with it.
        return Some(operands.iter().flat_map(|section| section_keys(section)).collect());
    }
    operands.retain(|word| word != "set");
    // One key without a value is a query. The value comes last; before the key there may be the value of an option
    // that is not known here.
    operands.pop();
    // A word without a dot is not a key, and stands for one that is known only when the line runs. After a key that
    // is written out, it is a value.
    let first = operands.first().is_some_and(|key| !key.contains('.')).then(|| UNKNOWN.to_string());
    operands.retain(|key| key.contains('.'));
    Some(first.into_iter().chain(operands).collect())
}

/// The keys of a section that name programs.
fn section_keys(section: &str) -> Vec<String> {
    let first = section.split('.').next().unwrap_or(section);
    let of = |key: &&&str| key.split('.').next() == Some(first);
    let mut keys: Vec<String> = PROGRAMS.iter().filter(of).map(|key| (*key).to_owned()).collect();
    keys.extend(section.contains(UNKNOWN).then(|| section.to_owned()));
    keys
}

fn names_program(key: &str) -> bool {
    if let Some((known, _)) = key.split_once(UNKNOWN) {
        let section = known.split_once('.').map(|(section, _)| section);
        let of = |key: &&str| section.is_none_or(|section| key.split('.').next() == Some(section));
        return PROGRAMS.iter().any(of);
    }
    PROGRAMS.iter().any(|pattern| *pattern == key || is_like(pattern, key))
}

/// Tells whether a key matches a pattern of the table. The part in the middle may hold dots of its own.
fn is_like(pattern: &str, key: &str) -> bool {
    let Some((begin, end)) = pattern.split_once('*') else { return pattern == key };
    key.len() > begin.len() + end.len() && key.starts_with(begin) && key.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_name_programs_are_told_from_others() {
        for key in ["core.pager", "filter.a.b.clean", "alias.x", "includeif.gitdir:/x.path", "pager.log"] {
            assert!(names_program(key), "{key}");
        }
        for key in ["user.name", "core.bare", "diff.algorithm", "filter.a.required", "remote.origin.url"] {
            assert!(!names_program(key), "{key}");
        }
    }
}
