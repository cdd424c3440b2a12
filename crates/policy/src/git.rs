//! The subcommand of a git command, and the files that git reads for it.
//!
//! Most of git prints, copies or adds files that no word of the command names. So the table lists the subcommands
//! that show nothing of a file; every other one, and a name that git does not know (an alias, a program called
//! `git-NAME`), reads all that it could reach.

use crate::git_objects::{is_certain, is_commit, names_file, names_tree};
use crate::git_option::{is_long_option, may_be_option, without_values};
use crate::git_tables::{
    BY_CONTENT, FURTHER, GLOBAL, NARROWED, NO_CONTENT, OBJECTS, QUIET, QUIET_LETTERS, QUIET_VALUED, READING,
    SHORT,
};
use crate::harm::option_values;

/// The files of a folder that are read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Every file.
    Every,
    /// Files that git tracks.
    Tracked,
    /// Files that git tracks, or would add: those that no ignore file of git's names.
    Taken,
    /// Files that git neither tracks nor ignores.
    Untracked,
    /// Files that git does not track, ignored or not.
    Loose,
    /// Every file of the work tree that git may write, whether it tracks it or not.
    Worktree,
}

/// The files that a git command reads or writes besides the files that its words name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitFiles<'w> {
    pub(crate) extent: Extent,
    /// Files and folders, each with all that is in it; if empty, the whole repository.
    pub(crate) paths: Vec<&'w str>,
}

/// The words of git, if a program is git: `git x` and `git-x` are the same.
pub(crate) fn git_words<'w>(name: &'w str, words: &[&'w str]) -> Option<Vec<&'w str>> {
    let sub = name.strip_prefix("git-").filter(|sub| !sub.is_empty());
    match (name, sub) {
        ("git", _) => Some(words.to_vec()),
        (_, Some(sub)) => Some(std::iter::once(sub).chain(words.iter().copied()).collect()),
        (_, None) => None,
    }
}

/// The subcommand and the words after it; `None` where git is given no subcommand.
pub(crate) fn split_subcommand<'s, 'w>(words: &'s [&'w str]) -> Option<(&'w str, &'s [&'w str])> {
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if !word.starts_with('-') {
            return Some((word, words.get(at + 1..).unwrap_or_default()));
        }
        at += 1 + usize::from(GLOBAL.contains(word));
    }
    None
}

/// Tells whether git has a subcommand of this name. Any other is an alias, or a program of any origin.
pub(crate) fn is_subcommand(sub: &str) -> bool {
    QUIET.contains(&sub)
        || READING.contains(&sub)
        || FURTHER.contains(&sub)
        || matches!(sub, "worktree" | "fsck-objects" | "checkout--worker" | "version")
}

fn fits(pattern: &str, word: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == word, |begin| word.starts_with(begin))
}

/// The files that a git command reads besides the files that its words name. `words` stand after `git`.
pub(crate) fn files_read<'w>(words: &[&'w str]) -> Option<GitFiles<'w>> {
    let (sub, rest) = split_subcommand(words)?;
    let before = words.get(..words.len() - rest.len()).unwrap_or_default();
    let given: Vec<&str> = rest.iter().copied().take_while(|word| *word != "--").collect();
    let has = |options: &[&str]| given.iter().any(|word| may_be_option(word, options));
    let operands: Vec<&'w str> = given.iter().copied().filter(|word| !word.starts_with('-')).collect();
    let behind = || rest.iter().copied().skip(given.len() + 1);
    let is_narrow =
        NARROWED.contains(&sub) && (!OBJECTS.contains(&sub) || objects(sub, &given).all(is_certain));
    let whole = |extent| {
        let paths = behind().filter(|path| is_narrow && !path.is_empty()).collect();
        Some(GitFiles { extent, paths })
    };
    let named = |extent, paths: Vec<&'w str>| {
        let paths: Vec<&str> = paths.into_iter().chain(behind()).filter(|path| !path.is_empty()).collect();
        (!paths.is_empty()).then_some(GitFiles { extent, paths })
    };
    // With a setting, git may print a difference that is otherwise only counted.
    let is_set = before.iter().any(|word| {
        let key = word.strip_prefix("--config-env=").unwrap_or(word).to_lowercase();
        ["log.", "diff.", "stash.", "commit.", "format.", "include"]
            .iter()
            .any(|begin| key.starts_with(begin))
    });
    let lists = || {
        let quiet = |word: &&str| match word.strip_prefix('-') {
            Some(letters) if !letters.starts_with('-') => {
                let loud = letters.chars().find(|letter| !QUIET_LETTERS.contains(*letter));
                loud.is_none_or(|letter| QUIET_VALUED.contains(letter))
            }
            Some(_) => {
                !may_be_option(word, &BY_CONTENT) && NO_CONTENT.iter().any(|option| fits(option, word))
            }
            None => true,
        };
        given.iter().all(quiet)
    };
    let counts = || {
        let short = |word: &&str| SHORT.iter().any(|option| word.starts_with(option));
        given.iter().any(short) && lists()
    };
    match sub {
        // A list names what it adds.
        "add" | "stage" | "hash-object" | "update-index" | "commit" | "stash"
            if has(&["--stdin-paths", "--pathspec-from-file"])
                || (sub == "update-index" && has(&["--stdin"])) =>
        {
            whole_of_all(Extent::Every)
        }
        "diff" | "diff-tree" | "diff-index" | "diff-files" | "diff-pairs" | "whatchanged" => {
            let extent = if has(&["--no-index"]) { Extent::Every } else { Extent::Tracked };
            if counts() { None } else { whole(extent) }
        }
        "show" => {
            let files = !operands.is_empty() && operands.iter().all(|word| names_file(word));
            // A file is printed by its object, whatever is said about differences.
            let counted = counts() && operands.iter().all(|word| is_certain(word));
            if counted || files { None } else { whole(Extent::Tracked) }
        }
        "log" | "reflog" => {
            if lists() && !is_set {
                None
            } else {
                whole(Extent::Tracked)
            }
        }
        "grep" => {
            let wide = ["--no-index", "--untracked", "--no-exclude-standard"];
            whole(if has(&wide) { Extent::Every } else { Extent::Tracked })
        }
        "cat-file" => {
            let types = ["blob", "tree", "commit", "tag"];
            let objects: Vec<&&str> = operands.iter().filter(|word| !types.contains(word)).collect();
            // A commit is shown by its header and its message, its top folder by the names in it.
            let is_named = |word: &&&str| names_file(word) || is_commit(word);
            let named = !objects.is_empty() && objects.iter().all(is_named);
            if is_about_object(words) || (named && !has(&["--batch"])) {
                None
            } else {
                whole(Extent::Tracked)
            }
        }
        "blame" | "annotate" => named(Extent::Tracked, Vec::new()),
        "add" | "stage" => {
            let extent = match () {
                () if has(&["-f", "--force"]) => Extent::Every,
                () if has(&["-u", "--update"]) && !has(&["-A", "--all", "--no-ignore-removal"]) => {
                    Extent::Tracked
                }
                () => Extent::Taken,
            };
            let all = has(&[
                "-A",
                "-u",
                "-p",
                "-i",
                "-e",
                "--all",
                "--update",
                "--patch",
                "--interactive",
                "--edit",
                "--no-ignore-removal",
                "--renormalize",
                "--refresh",
            ]);
            match named(extent, operands) {
                Some(paths) => Some(paths),
                None if all => whole(extent),
                None => None,
            }
        }
        "commit" => {
            let shows =
                has(&["-a", "-v", "-p", "-i", "--all", "--verbose", "--patch", "--interactive", "--include"]);
            match named(Extent::Tracked, plain_operands(&given)) {
                Some(paths) if !shows => Some(paths),
                Some(_) => whole(Extent::Tracked),
                None if shows || is_set => whole(Extent::Tracked),
                None => None,
            }
        }
        "stash" => match operands.first().copied() {
            Some("list" | "drop" | "clear" | "pop" | "apply" | "branch" | "store") if lists() => None,
            Some("show") if counts() => None,
            Some("show" | "list") => whole(Extent::Tracked),
            _ if has(&["-a", "--all"]) => whole(Extent::Every),
            _ if has(&["-u", "--include-untracked"]) => whole(Extent::Taken),
            _ if has(&["-p", "--patch"]) => whole(Extent::Tracked),
            _ => None,
        },
        "rm" | "mv" => named(Extent::Tracked, operands),
        "update-index" if has(&["--cacheinfo", "--index-info"]) => whole_of_all(Extent::Tracked),
        "hash-object" if has(&["-t"]) => whole_of_all(Extent::Tracked),
        "merge-file" if has(&["--object-id"]) => whole_of_all(Extent::Tracked),
        "hash-object" | "update-index" => named(Extent::Every, operands),
        "bundle" if matches!(operands.first(), Some(&("verify" | "list-heads" | "unbundle"))) => None,
        "archive" if has(&["--list"]) && !has(&["--add"]) => None,
        // What comes from another machine is not a file of this folder.
        "clone" if operands.first().is_some_and(|from| is_far(from)) => None,
        "push"
            if operands.first().is_none_or(|to| is_far(to) || is_plain(to))
                && !operands.iter().skip(1).any(|word| names_tree(word)) =>
        {
            None
        }
        "send-pack" | "http-push" if operands.first().is_some_and(|to| is_far(to)) => None,
        "write-tree" => None,
        "worktree" => {
            operands.first().filter(|sub| **sub == "add").and_then(|_| whole_of_all(Extent::Tracked))
        }
        "status" if has(&["-v", "--verbose"]) => whole_of_all(Extent::Tracked),
        "checkout" | "restore" | "reset" if has(&["-p", "--patch"]) => whole(Extent::Tracked),
        // Files of another folder may get the names of these.
        "restore" if !option_values(&given, &["-s", "--source"]).into_iter().all(is_certain) => {
            whole_of_all(Extent::Tracked)
        }
        // Commits that are chosen by what is in files.
        "rev-list" | "shortlog" if has(&BY_CONTENT) => whole(Extent::Tracked),
        // After another commit is checked out, git may no longer track the file, and its content in older commits
        // would be unprotected.
        "checkout" | "switch" => {
            let creates = has(&["-b", "-c", "--create"]) && !has(&["--orphan"]);
            let other = match rest.contains(&"--") {
                true => is_last_mark(rest) || !is_narrow,
                false => operands.len() > usize::from(creates) || rest.contains(&"-") || has(&["--orphan"]),
            };
            if other { whole_of_all(Extent::Tracked) } else { None }
        }
        "reset" if !has(&["--soft"]) && operands.iter().any(|word| !matches!(*word, "HEAD" | "@")) => {
            whole_of_all(Extent::Tracked)
        }
        "rebase" | "revert" | "cherry-pick" if !has(&["--abort", "--continue", "--quit", "--skip"]) => {
            whole_of_all(Extent::Tracked)
        }
        "bisect" if !matches!(operands.first(), None | Some(&("log" | "reset" | "terms" | "help"))) => {
            whole_of_all(Extent::Tracked)
        }
        "am" | "rebase" if has(&["--show-current-patch"]) => whole_of_all(Extent::Tracked),
        "merge" | "pull" if given.iter().any(|word| word.contains("subtree")) => {
            whole_of_all(Extent::Tracked)
        }
        "notes" if has(&["-C", "-c", "--reuse", "--reedit", "--edit"]) => whole_of_all(Extent::Tracked),
        // These give an object another name or place, and its content is read there later.
        "replace" if !has(&["-l", "-d"]) && !given.is_empty() => whole_of_all(Extent::Tracked),
        "mktree" | "fast-import" | "unpack-objects" | "mktag" | "commit-tree" => {
            whole_of_all(Extent::Tracked)
        }
        "update-ref" if has(&["--stdin"]) => whole_of_all(Extent::Tracked),
        // The first word is the new name, or where it goes.
        "tag" | "update-ref" | "fetch" | "push"
            if plain_operands(&given).iter().skip(1).any(|word| names_tree(word)) =>
        {
            whole_of_all(Extent::Tracked)
        }
        "submodule" if matches!(operands.first(), Some(&("summary" | "add"))) => {
            whole_of_all(Extent::Tracked)
        }
        // The content of the object that a name stands for.
        "for-each-ref" | "branch" | "tag" | "remote" if given.iter().any(|word| word.contains("(raw")) => {
            whole_of_all(Extent::Tracked)
        }
        "fsck" if has(&["--lost-found"]) => whole_of_all(Extent::Tracked),
        _ if QUIET.contains(&sub) => None,
        _ if READING.contains(&sub) => whole(Extent::Tracked),
        _ => whole_of_all(Extent::Every),
    }
}

/// Tells whether git is asked only for the type or the size of an object, or whether the object exists.
pub(crate) fn is_about_object(words: &[&str]) -> bool {
    let Some(("cat-file", rest)) = split_subcommand(words) else { return false };
    let has = |options: &[&str]| rest.iter().any(|word| may_be_option(word, options));
    let checks = has(&["-t", "-s", "-e"]) || rest.iter().any(|word| is_long_option(word, "--batch-check"));
    checks && !has(&["-p", "--textconv", "--filters", "--batch-command"])
}

/// Tells whether git searches for a text in the files of commits.
pub(crate) fn searches_content(words: &[&str]) -> bool {
    let searches = |sub: &str| {
        let lists = ["log", "reflog", "show", "shortlog", "rev-list", "whatchanged", "format-patch", "stash"];
        lists.contains(&sub) || sub.starts_with("diff")
    };
    split_subcommand(words).is_some_and(|(sub, rest)| {
        sub == "grep" || (searches(sub) && rest.iter().any(|word| may_be_option(word, &BY_CONTENT)))
    })
}

/// The words before `--` that are, or may be, objects.
fn objects<'s>(sub: &str, given: &'s [&'s str]) -> impl Iterator<Item = &'s str> {
    let valued: &[&str] = match sub {
        "grep" => &["-e", "-f", "-A", "-B", "-C", "-m"],
        _ => &["-S", "-G", "-I", "-O"],
    };
    let pattern = sub == "grep" && !given.iter().any(|word| may_be_option(word, &["-e", "-f"]));
    let objects = without_values(given, valued).into_iter().filter(|word| !word.starts_with('-'));
    objects.skip(usize::from(pattern))
}

fn whole_of_all<'w>(extent: Extent) -> Option<GitFiles<'w>> {
    Some(GitFiles { extent, paths: Vec::new() })
}

/// The operands of a git command, without the values of the options of `git commit`.
fn plain_operands<'w>(given: &[&'w str]) -> Vec<&'w str> {
    let valued = |word: &str| {
        let long = [
            "--message",
            "--file",
            "--author",
            "--date",
            "--reuse-message",
            "--reedit-message",
            "--fixup",
            "--squash",
            "--template",
            "--cleanup",
            "--trailer",
            "--pathspec-from-file",
        ];
        let short =
            word.starts_with('-') && !word.starts_with("--") && word.ends_with(['m', 'F', 'C', 'c', 't']);
        short || (word.len() > 2 && long.iter().any(|long| long.starts_with(word)))
    };
    let value = |index: usize| {
        index.checked_sub(1).and_then(|before| given.get(before)).is_some_and(|before| valued(before))
    };
    let free = given.iter().enumerate().filter(|(index, word)| !word.starts_with('-') && !value(*index));
    free.map(|(_, word)| *word).collect()
}

/// Tells whether a repository is on another machine.
pub(crate) fn is_far(address: &str) -> bool {
    let scheme = address.split_once("://").is_some_and(|(scheme, _)| scheme != "file");
    let colon = address.find(':').filter(|_| !address.contains("://"));
    scheme || colon.is_some_and(|colon| address.find('/').is_none_or(|slash| colon < slash))
}

/// Tells whether the words end with the mark that no path follows: `git checkout main --`.
pub(crate) fn is_last_mark(words: &[&str]) -> bool {
    words.len() > 1 && words.last() == Some(&"--")
}

/// Tells whether an address is the name of a remote.
fn is_plain(address: &str) -> bool {
    !address.contains(['/', '~', ':', crate::places::UNKNOWN]) && !matches!(address, "." | "..")
}

/// Tells whether a path of git's is a pattern or begins with a sign of its own: it may mean any file of the
/// repository.
pub(crate) fn is_wide(path: &str) -> bool {
    path.starts_with(':') || path.contains(['*', '?', '['])
}
