//! Pathspecs of git that exclude files: `:!private`, `:(exclude)private`, `:(top,exclude)private`.
//!
//! Only a plain name counts. The meaning of a pattern depends on options, and on variables that an earlier line may
//! have exported; a plain name means the same in all of these ways, or the pathspec shows nothing at all. Every other
//! exclusion is treated as a pattern that may show any file.

use crate::git::split_subcommand;
use crate::git_option::may_be_option;
use crate::git_tables::TAKES_PATHSPECS;
use crate::places::UNKNOWN;

/// A file or folder that a pathspec excludes, with all that is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exclusion<'w> {
    pub(crate) path: &'w str,
    /// True if the path begins at the top of the repository, and not in the folder that git runs in.
    pub(crate) is_from_top: bool,
}

/// Reads a word as an exclusion; `None` where it is something else, or an exclusion by a pattern.
fn exclusion(word: &str) -> Option<Exclusion<'_>> {
    let rest = word.strip_prefix(':')?;
    let (path, excludes, is_from_top) = match rest.strip_prefix('(') {
        Some(signs) => {
            let (signs, path) = signs.split_once(')')?;
            let signs: Vec<&str> = signs.split(',').map(str::trim).collect();
            let is_known = |sign: &&str| matches!(*sign, "exclude" | "top" | "literal");
            if !signs.iter().all(is_known) {
                return None;
            }
            (path, signs.contains(&"exclude"), signs.contains(&"top"))
        }
        None => {
            let path = rest.trim_start_matches(['!', '^', '/']);
            let signs = rest.get(..rest.len() - path.len())?;
            (path.strip_prefix(':').unwrap_or(path), signs.contains(['!', '^']), signs.contains('/'))
        }
    };
    let path = path.strip_suffix('/').unwrap_or(path);
    let is_plain = !path.is_empty()
        && !path.starts_with(['/', ':', '~'])
        && !path.contains(['*', '?', '[', '\\', UNKNOWN])
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    (excludes && is_plain).then_some(Exclusion { path, is_from_top })
}

/// The exclusions among the words of git, by their index. Words that may be the value of an option are not counted.
pub(crate) fn exclusions<'w>(words: &[&'w str]) -> Vec<(usize, Exclusion<'w>)> {
    let Some((sub, rest)) = split_subcommand(words) else { return Vec::new() };
    let is_push = sub == "stash" && rest.first() == Some(&"push");
    if !TAKES_PATHSPECS.contains(&sub) && !is_push {
        return Vec::new();
    }
    let before = words.len() - rest.len();
    let mark = words.iter().skip(before).position(|word| *word == "--").map(|at| before + at + 1);
    // Every operand of `add` is a path.
    let from = if matches!(sub, "add" | "stage") { Some(before) } else { mark };
    // `--full-diff` shows whole commits, and a list may name anything.
    let is_overruled = rest.iter().any(|word| may_be_option(word, &["--full-diff", "--pathspec-from-file"]));
    // Another work tree, or a setting for one, has its own top.
    let moves = |word: &&str| !matches!(*word, "--no-pager" | "-P" | "--no-optional-locks");
    let is_overruled = is_overruled || words.iter().take(before - 1).any(moves);
    let Some(from) = from.filter(|_| !is_overruled) else { return Vec::new() };
    let all = words.iter().enumerate().skip(from);
    all.filter_map(|(index, word)| Some((index, exclusion(word)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_exclusions_are_read() {
        for (word, path, is_from_top) in [
            (":!private", "private", false),
            (":^private", "private", false),
            (":(exclude)private", "private", false),
            (":(exclude,top)a/b", "a/b", true),
            (":(top, exclude)a", "a", true),
            (":(exclude,literal)a", "a", false),
            (":!/private", "private", true),
            (":/!private", "private", true),
            (":!:private", "private", false),
            (":!private/", "private", false),
        ] {
            assert_eq!(exclusion(word), Some(Exclusion { path, is_from_top }), "{word}");
        }
        for word in [
            "private",
            ":private",
            ":/private",
            ":(top)private",
            ":(literal)private",
            ":!*",
            ":!private/*",
            ":!private/**",
            ":!pri?ate",
            ":!pr[i]vate",
            ":!pri\\vate",
            ":(exclude,icase)private",
            ":(exclude,glob)private",
            ":(exclude,attr:x)private",
            ":(exclude",
            ":!",
            ":!.",
            ":!../private",
            ":!a//b",
            ":(exclude)/w/private",
            ":!:/private",
            ":!\u{1}",
        ] {
            assert_eq!(exclusion(word), None, "{word}");
        }
    }

    #[test]
    fn exclusions_stand_behind_the_mark() {
        let found = |line: &'static str| {
            let words: Vec<&str> = line.split(' ').collect();
            exclusions(&words).len()
        };
        for (line, count) in [
            ("diff -- :!a", 1),
            ("diff -- . :!a :^b", 2),
            ("--no-pager log -p -- :!a", 1),
            ("add . :!a", 1),
            ("stash push -- :!a", 1),
            ("diff :!a", 0),
            ("-c core.worktree=/ diff -- :!a", 0),
            ("--work-tree=/ diff -- :!a", 0),
            ("log --grep :!a -p", 0),
            ("log --full-diff -p -- :!a", 0),
            ("stash show -p -- :!a", 0),
            ("cat-file -p 1a2b3c4 -- :!a", 0),
            ("add --pathspec-from-file=x :!a", 0),
        ] {
            assert_eq!(found(line), count, "{line}");
        }
    }
}
