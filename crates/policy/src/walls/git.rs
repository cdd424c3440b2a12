//! Git behind walls: which of its commands change history or configuration, or reach other machines.
//!
//! The commands that do none of that are listed, and every other one is asked about: a name that git does not know is
//! an alias or a program of any origin. Losses in the work tree (`clean`, `checkout`, `restore`) are not history; undo
//! covers them.

use crate::git::{is_far, split_subcommand};
use crate::git_option::{may_be_option, operands, without_values};
use crate::places::UNKNOWN;

/// The effect of a git command that the walls do not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitAct {
    /// It changes or drops commits that have a name.
    History,
    /// It changes settings, or works with other ones.
    Configuration,
    /// It reaches other machines.
    Network,
    /// An unknown command: it shows only when it runs, or git does not know it.
    Unknown,
}

impl GitAct {
    /// The rule that asks about it.
    pub(super) fn rule(self) -> &'static str {
        match self {
            Self::Network => crate::walls::NETWORK,
            Self::History | Self::Configuration | Self::Unknown => crate::walls::GIT,
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::History => "it changes git's history",
            Self::Configuration => "it changes the configuration of git, or works with another one",
            Self::Network => "it reaches other machines",
            Self::Unknown => "it may change git's history or configuration",
        }
    }
}

/// Subcommands that change neither history nor configuration, whatever their words are. Some add commits, and many
/// write the work tree.
const SAFE: [&str; 66] = [
    "add",
    "am",
    "annotate",
    "apply",
    "bisect",
    "blame",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "column",
    "commit-tree",
    "count-objects",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fmt-merge-msg",
    "for-each-ref",
    "format-patch",
    "fsck",
    "get-tar-commit-id",
    "grep",
    "hash-object",
    "help",
    "init",
    "init-db",
    "interpret-trailers",
    "log",
    "ls-files",
    "ls-tree",
    "mailinfo",
    "mailsplit",
    "merge",
    "merge-base",
    "merge-file",
    "merge-tree",
    "mergetool",
    "mktree",
    "mv",
    "name-rev",
    "patch-id",
    "range-diff",
    "read-tree",
    "rerere",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "shortlog",
    "show",
    "show-branch",
    "show-ref",
    "stage",
    "status",
    "stripspace",
];

/// More of them, which are rarely typed.
const SAFE_PLUMBING: [&str; 10] = [
    "unpack-file",
    "update-index",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "write-tree",
    "show-index",
];

/// Subcommands that reach other machines.
const NETWORK: [&str; 23] = [
    "archimport",
    "cvsexportcommit",
    "cvsimport",
    "cvsserver",
    "daemon",
    "fetch",
    "fetch-pack",
    "http-fetch",
    "http-push",
    "imap-send",
    "instaweb",
    "lfs",
    "ls-remote",
    "p4",
    "pull",
    "push",
    "request-pull",
    "send-email",
    "send-pack",
    "subtree",
    "svn",
    "upload-archive",
    "upload-pack",
];

/// Subcommands that rewrite or drop history in any case.
const HISTORY: [&str; 11] = [
    "fast-import",
    "filter-branch",
    "filter-repo",
    "gc",
    "maintenance",
    "pack-redundant",
    "prune",
    "prune-packed",
    "rebase",
    "repack",
    "update-ref",
];

/// Options before the subcommand that bring another configuration or repository.
const SETTINGS: [&str; 8] = [
    "-c",
    "--config-env",
    "--git-dir",
    "--work-tree",
    "--exec-path",
    "--namespace",
    "--attr-source",
    "--super-prefix",
];

/// Options of `commit` whose value is a text or a name, so that a value is not taken for an option.
const COMMIT_TEXTS: [&str; 15] = [
    "-m",
    "--message",
    "-F",
    "--file",
    "-C",
    "--reuse-message",
    "-c",
    "--reedit-message",
    "--author",
    "--date",
    "-t",
    "--template",
    "--trailer",
    "--fixup",
    "--squash",
];

/// Options of `tag` whose value is a text or a name.
const TAG_TEXTS: [&str; 12] = [
    "-m",
    "--message",
    "-F",
    "--file",
    "-u",
    "--local-user",
    "--trailer",
    "--sort",
    "--format",
    "--contains",
    "--no-contains",
    "--points-at",
];

/// Tells what a git command does that the walls do not hold. `words` stand after `git`; `fed` is true if others follow
/// that are not known. `is_file` tells whether a word names a file that is there.
pub(super) fn act(words: &[&str], fed: bool, is_file: &dyn Fn(&str) -> bool) -> Option<GitAct> {
    let Some((sub, rest)) = split_subcommand(words) else {
        return (fed || words.iter().any(|word| is_setting(word) || word.contains(UNKNOWN)))
            .then_some(GitAct::Unknown);
    };
    let before = words.get(..words.len() - rest.len() - 1).unwrap_or_default();
    let is_set = before.iter().any(|word| is_setting(word));
    if sub.contains(UNKNOWN) {
        return Some(GitAct::Unknown);
    }
    let found = by_subcommand(sub, rest, fed, is_file);
    found.or_else(|| is_set.then_some(GitAct::Configuration))
}

fn is_setting(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    // `--exec-path` alone prints it.
    SETTINGS.contains(&name) && (name != "--exec-path" || word.contains('='))
}

fn by_subcommand(sub: &str, rest: &[&str], fed: bool, is_file: &dyn Fn(&str) -> bool) -> Option<GitAct> {
    let plain = match sub {
        "commit" => without_values(rest, &COMMIT_TEXTS),
        "tag" => without_values(rest, &TAG_TEXTS),
        "stash" => without_values(rest, &["-m", "--message"]),
        "checkout" => without_values(rest, &["-b", "--conflict"]),
        "switch" => without_values(rest, &["-c", "--create", "--conflict"]),
        "branch" => {
            without_values(rest, &["--sort", "--format", "--contains", "--no-contains", "--points-at"])
        }
        _ => rest.to_vec(),
    };
    let given: Vec<&str> = plain.iter().copied().take_while(|word| *word != "--").collect();
    let has = |options: &[&str]| given.iter().any(|word| may_be_option(word, options));
    // A word that is known only when the line runs may be such an option.
    let open = fed || given.iter().any(|word| is_open(word));
    let first = operands(&plain).first().copied();
    let is_first = |known: &[&str]| first.is_none_or(|first| known.contains(&first));
    let history = |yes: bool| yes.then_some(GitAct::History);
    let configuration = |yes: bool| yes.then_some(GitAct::Configuration);
    match sub {
        _ if SAFE.contains(&sub) || SAFE_PLUMBING.contains(&sub) => None,
        _ if NETWORK.contains(&sub) || sub.starts_with("credential") => Some(GitAct::Network),
        _ if HISTORY.contains(&sub) => Some(GitAct::History),
        "archive" => (open || has(&["--remote"])).then_some(GitAct::Network),
        "commit" => history(open || has(&["--amend"])),
        "branch" => {
            let settings = ["-u", "--set-upstream-to", "--unset-upstream", "--edit-description"];
            let drops = ["-d", "-D", "-m", "-M", "-f", "-C", "--delete", "--move", "--force"];
            configuration(has(&settings)).or_else(|| history(open || has(&drops)))
        }
        "tag" => history(open || has(&["-d", "-f", "--delete", "--force"])),
        "checkout" => history(open || has(&["-B"])),
        "switch" => {
            let forced = |word: &&&str| **word != "--force" && may_be_option(word, &["-C", "--force-create"]);
            history(open || given.iter().any(|word| forced(&word)))
        }
        "reset" => history(resets_branch(rest, &given, is_file) || open),
        "stash" => {
            let keeps = ["push", "save", "list", "show", "pop", "apply", "branch", "create"];
            history(first.is_some_and(is_open) || (fed && first.is_none()) || !is_first(&keeps))
        }
        "reflog" => history(
            first.is_some_and(is_open) || fed || is_first_of(first, &["expire", "delete", "drop", "write"]),
        ),
        "symbolic-ref" => history(open || operands(&plain).len() > 1 || has(&["-d", "--delete"])),
        "notes" => history(open || !is_first(&["list", "show", "add", "append", "copy", "edit", "get-ref"])),
        "replace" => history(!given.is_empty() && !has(&["-l", "--list"])),
        "worktree" => {
            let known = ["list", "add", "lock", "unlock", "prune", "move", "repair", "remove"];
            let forced = first == Some("remove") && has(&["-f", "--force"]);
            history(open || !is_first(&known) || forced || has(&["-B"]))
        }
        "submodule" if is_first_of(first, &["update", "add"]) => Some(GitAct::Network),
        "submodule" => configuration(fed || !is_first(&["status", "summary", "foreach"])),
        "sparse-checkout" => configuration(fed || !is_first(&["list", "check-rules"])),
        "remote" if is_first_of(first, &["update", "prune", "set-head"]) => Some(GitAct::Network),
        "remote" if first == Some("show") => {
            (operands(&plain).len() > 1 && !has(&["-n"])).then_some(GitAct::Network)
        }
        "remote" => configuration(fed || !is_first(&["get-url"])),
        "config" => configuration(fed || !only_reads_settings(rest)),
        "clone" => {
            let far = operands(&plain).iter().any(|from| is_far(from) || from.contains(UNKNOWN)) || fed;
            let far = far || has(&["--recurse-submodules", "--remote-submodules", "--bundle-uri"]);
            far.then_some(GitAct::Network).or_else(|| configuration(has(&["-c", "--config"])))
        }
        _ => Some(GitAct::Unknown),
    }
}

fn is_first_of(first: Option<&str>, known: &[&str]) -> bool {
    first.is_some_and(|first| known.contains(&first))
}

/// Tells whether a word may be an option that is known only when the line runs.
fn is_open(word: &str) -> bool {
    word.starts_with(UNKNOWN) || (word.starts_with('-') && word.contains(UNKNOWN))
}

/// Tells whether a `git reset` gives the branch another commit, or drops changes that were not committed. With paths
/// it changes only what would be committed.
fn resets_branch(rest: &[&str], given: &[&str], is_file: &dyn Fn(&str) -> bool) -> bool {
    let has = |options: &[&str]| given.iter().any(|word| may_be_option(word, options));
    if has(&["--hard", "--merge", "--keep"]) {
        return true;
    }
    let behind = rest.iter().skip(given.len() + 1).count();
    let named: Vec<&str> = given.iter().copied().filter(|word| !word.starts_with('-')).collect();
    match named.as_slice() {
        [] => false,
        [one] => behind == 0 && !matches!(*one, "HEAD" | "@") && !is_file(one),
        _ => false,
    }
}

/// Tells whether a `git config` changes nothing.
fn only_reads_settings(rest: &[&str]) -> bool {
    let valued = ["-f", "--file", "--blob", "-t", "--type", "--default", "--comment", "--value", "--url"];
    let plain = without_values(rest, &valued);
    let has = |options: &[&str]| plain.iter().any(|word| may_be_option(word, options));
    let given = operands(&plain);
    let first = given.first().copied().unwrap_or_default();
    let changes =
        ["--add", "--replace-all", "--unset", "--rename-section", "--remove-section", "-e", "--edit"];
    if has(&changes)
        || matches!(first, "set" | "unset" | "edit" | "rename-section" | "remove-section")
        || plain.iter().any(|word| is_open(word) || word.starts_with("--no-"))
    {
        return false;
    }
    let asks = plain.iter().any(|word| word.starts_with("--get") || matches!(*word, "-l" | "--list"));
    asks || matches!(first, "get" | "list") || given.len() < 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<GitAct> {
        let words: Vec<&str> = line.split_whitespace().collect();
        act(&words, false, &|word| word == "src/a.rs")
    }

    #[test]
    fn history_configuration_and_other_machines_are_told_from_work() {
        for line in [
            "status",
            "commit -m --amend",
            "commit -am x",
            "commit --allow-empty -m x",
            "branch",
            "branch -avv",
            "branch --contains D",
            "branch new",
            "tag v1",
            "tag -a v1 -m delete-it",
            "checkout -b new",
            "checkout -f",
            "checkout -- .",
            "switch -c new",
            "switch --force main",
            "reset",
            "reset HEAD",
            "reset HEAD src/a.rs",
            "reset -- x",
            "reset src/a.rs",
            "reset main -- x",
            "stash",
            "stash -u",
            "stash push -m drop",
            "stash pop",
            "reflog",
            "reflog show main",
            "symbolic-ref HEAD",
            "worktree add ../x",
            "worktree remove x",
            "submodule",
            "submodule status",
            "remote -v",
            "remote",
            "remote get-url origin",
            "config user.name",
            "config --get user.name",
            "config --global --list",
            "clone . x",
            "clone ../y x",
            "--no-pager log",
            "-C sub status",
            "--version",
            "",
            "clean -fdx",
            "merge --no-ff x",
            "log -\u{1}",
            "commit -m \u{1}",
            "checkout v\u{1}",
        ] {
            assert_eq!(of(line), None, "{line}");
        }
        for (line, expected) in [
            ("push", GitAct::Network),
            ("fetch --all", GitAct::Network),
            ("clone https://e.org/x", GitAct::Network),
            ("clone me@e.org:x", GitAct::Network),
            ("clone --depth 1 https://e.org/x y", GitAct::Network),
            ("clone \u{1}", GitAct::Network),
            ("remote show origin", GitAct::Network),
            ("remote update", GitAct::Network),
            ("submodule update --init", GitAct::Network),
            ("archive --remote=x HEAD", GitAct::Network),
            ("commit --amend", GitAct::History),
            ("commit --ame -m x", GitAct::History),
            ("commit \u{1}", GitAct::History),
            ("branch -D x", GitAct::History),
            ("branch --del x", GitAct::History),
            ("branch -rd origin/x", GitAct::History),
            ("branch -f main HEAD~1", GitAct::History),
            ("branch -m new", GitAct::History),
            ("branch -u origin/main", GitAct::Configuration),
            ("tag -d v1", GitAct::History),
            ("tag -fa v1 -m x", GitAct::History),
            ("checkout -B main", GitAct::History),
            ("switch -C main", GitAct::History),
            ("switch --force-create main", GitAct::History),
            ("reset --hard", GitAct::History),
            ("reset --soft HEAD~1", GitAct::History),
            ("reset HEAD^", GitAct::History),
            ("reset main", GitAct::History),
            ("reset \u{1}", GitAct::History),
            ("stash drop", GitAct::History),
            ("stash clear", GitAct::History),
            ("stash \u{1}", GitAct::History),
            ("reflog expire --all", GitAct::History),
            ("symbolic-ref HEAD refs/heads/x", GitAct::History),
            ("rebase main", GitAct::History),
            ("gc", GitAct::History),
            ("update-ref -d refs/heads/x", GitAct::History),
            ("worktree remove --force x", GitAct::History),
            ("config user.name me", GitAct::Configuration),
            ("config --unset user.name", GitAct::Configuration),
            ("config set user.name me", GitAct::Configuration),
            ("config --get --no-get a.b c", GitAct::Configuration),
            ("remote add origin x", GitAct::Configuration),
            ("remote set-url origin x", GitAct::Configuration),
            ("submodule deinit -f x", GitAct::Configuration),
            ("-c a.b=c status", GitAct::Configuration),
            ("--git-dir=x log", GitAct::Configuration),
            ("--git-dir x log", GitAct::Configuration),
            ("\u{1}", GitAct::Unknown),
            ("st", GitAct::Unknown),
        ] {
            assert_eq!(of(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn words_that_come_through_a_pipe_may_be_options() {
        let fed = |line: &str| act(&line.split_whitespace().collect::<Vec<_>>(), true, &|_| false);
        for line in ["add", "rm --cached", "log", "diff --"] {
            assert_eq!(fed(line), None, "{line}");
        }
        for line in ["", "commit", "branch", "config", "stash", "reset"] {
            assert!(fed(line).is_some(), "{line}");
        }
    }
}
