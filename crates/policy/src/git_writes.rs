//! Files of the work tree that git writes or deletes without a word that names each of them: `git stash`, `git
//! restore .`.

use crate::git::{Extent, GitFiles, is_last_mark, is_subcommand, split_subcommand};
use crate::git_option::{is_long_option, may_be_option, operands, without_values};

/// Subcommands whose words name commits, patches or steps, and which may write every file that git tracks.
const WHOLE: [&str; 6] = ["merge", "pull", "rebase", "am", "cherry-pick", "revert"];

/// The files that a git command writes or deletes. `words` stand after `git`.
pub(crate) fn files_written<'w>(words: &[&'w str]) -> Option<GitFiles<'w>> {
    let (sub, rest) = split_subcommand(words)?;
    let given: Vec<&'w str> = rest.iter().copied().take_while(|word| *word != "--").collect();
    let has = |options: &[&str]| given.iter().any(|word| may_be_option(word, options));
    let whole = |extent| Some(GitFiles { extent, paths: Vec::new() });
    // Files that another file names are not known.
    let listed = has(&["--pathspec-from-file"]);
    let named = |extent, paths: Vec<&'w str>| {
        let paths: Vec<&str> = paths.into_iter().filter(|path| !path.is_empty()).collect();
        let paths = if listed { Vec::new() } else { paths };
        Some(GitFiles { extent, paths })
    };
    let first = operands(rest).first().copied();
    match sub {
        "restore" if stages_only(&given) => None,
        "restore" => {
            named(Extent::Tracked, operands(&without_values(rest, &["-s", "--source", "--conflict", "-U"])))
        }
        "checkout" | "switch" => {
            let behind = rest.get(given.len() + 1..).unwrap_or_default();
            let creates = has(&["-b", "-c", "--create"]) && !has(&["--orphan"]);
            let count = given.iter().filter(|word| !word.starts_with('-') || **word == "-").count();
            // The word after these letters is the name of a branch.
            let letters =
                |word: &&str| ['f', 'p', 'm'].iter().any(|wanted| has_letter(word, *wanted, "bBcC"));
            let forced =
                has(&["--force", "--discard-changes", "--patch", "--merge"]) || given.iter().any(letters);
            match () {
                () if !behind.is_empty() && sub == "checkout" => named(Extent::Tracked, behind.to_vec()),
                () if count > usize::from(creates) || forced || listed || is_last_mark(rest) => {
                    whole(Extent::Tracked)
                }
                () => None,
            }
        }
        "reset" if has(&["--hard", "--merge", "--keep"]) => whole(Extent::Tracked),
        "stash" => match first {
            Some("list" | "show" | "drop" | "clear" | "store" | "create" | "export" | "import") => None,
            Some("push") | None => {
                let extent = match () {
                    () if has(&["-a", "--all"]) => Extent::Worktree,
                    () if has(&["-u", "--include-untracked"]) => Extent::Taken,
                    () => Extent::Tracked,
                };
                let free = operands(&without_values(rest, &["-m", "--message"]));
                named(extent, free.into_iter().skip(1).collect())
            }
            Some(_) => whole(Extent::Tracked),
        },
        // A patch names its files itself, and git finds them whether it tracks them or not.
        "apply" if only_inspects(&given) => None,
        "apply" => whole(Extent::Worktree),
        "clean" if is_dry(&given) => None,
        "clean" => {
            let extent = if has(&["-x", "-X"]) { Extent::Loose } else { Extent::Untracked };
            named(extent, operands(&without_values(rest, &["-e", "--exclude"])))
        }
        "sparse-checkout" if first != Some("list") => whole(Extent::Tracked),
        "bisect" if !matches!(first, None | Some("log" | "terms" | "help" | "view" | "visualize")) => {
            whole(Extent::Tracked)
        }
        "submodule" if matches!(first, Some("update" | "add" | "deinit" | "absorbgitdirs")) => {
            whole(Extent::Worktree)
        }
        "worktree" if matches!(first, Some("remove" | "move")) => {
            named(Extent::Worktree, operands(rest).into_iter().skip(1).collect())
        }
        _ if WHOLE.contains(&sub) => whole(Extent::Tracked),
        _ => None,
    }
}

/// Tells whether a letter stands in a row of letters, before one that has the rest of the word as its value.
fn has_letter(word: &str, wanted: char, valued: &str) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    let letters = letters.and_then(|letters| letters.split(|c| valued.contains(c)).next());
    letters.is_some_and(|letters| letters.contains(wanted))
}

/// Tells whether it is a `git restore --staged`, which changes only what would be committed, and no file.
fn stages_only(given: &[&str]) -> bool {
    // The word after the letter `s` is the name of a commit.
    let letter = |word: &&str, wanted: char| has_letter(word, wanted, "s");
    let staged = given.iter().any(|word| letter(word, 'S') || is_long_option(word, "--staged"));
    let files = given.iter().any(|word| {
        letter(word, 'W')
            || may_be_option(word, &["--worktree", "--patch", "--no-staged"])
            || letter(word, 'p')
    });
    staged && !files
}

/// `git apply --check`: the patch is only inspected, or goes to the index.
fn only_inspects(given: &[&str]) -> bool {
    let looks = ["--check", "--stat", "--numstat", "--summary", "--cached"];
    let applies = |word: &&str| may_be_option(word, &["--apply"]) || word.starts_with("--no-");
    given.iter().any(|word| looks.contains(word)) && !given.iter().any(applies)
}

/// `git clean -n`. The word after the letter `e` is a pattern.
fn is_dry(given: &[&str]) -> bool {
    let dry = |word: &&str| *word == "--dry-run" || has_letter(word, 'n', "e");
    let taken_back = given.iter().any(|word| word.starts_with("--no-"));
    without_values(given, &["-e", "--exclude"]).iter().any(dry) && !taken_back
}

/// Tells whether a command may change git's ignore files without naming them.
pub(crate) fn changes_ignore_files(words: &[&str]) -> bool {
    let Some((sub, rest)) = split_subcommand(words) else { return false };
    let has = |options: &[&str]| rest.iter().any(|word| may_be_option(word, options));
    match sub {
        "checkout" => !has(&["-b"]) || rest.contains(&"--"),
        "switch" => !has(&["-c", "--create"]),
        "reset" => has(&["--hard", "--merge", "--keep"]),
        "stash" => !matches!(rest.first(), Some(&("list" | "show" | "drop" | "clear"))),
        "restore" | "apply" | "am" | "merge" | "pull" | "rebase" | "cherry-pick" | "revert" | "read-tree"
        | "checkout-index" | "rm" | "mv" | "clean" | "sparse-checkout" | "filter-branch" | "bisect" => true,
        _ => !is_subcommand(sub),
    }
}
