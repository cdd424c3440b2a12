//! Names of git's objects: `HEAD~2`, `v1:src/a`, `1a2b3c4:a`, `:(glob)**/a`.
//!
//! After a branch, a tag or `HEAD`, a path begins at the top of the repository. After anything else it may begin in
//! any folder: `git rev-parse HEAD:sub` gives the hash of a folder, and `HASH:a` is then `sub/a`.

use crate::places::UNKNOWN;

/// The file or folder that a word names in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InObject<'w> {
    /// From the top of the repository, or from the folder that git runs in.
    Top(&'w str),
    /// From a folder that is not known.
    Anywhere(&'w str),
}

/// The name that a word has in an object; `None` where it is not such a name.
pub(crate) fn in_object(word: &str) -> Option<InObject<'_>> {
    if let Some(path) = pathspec(word) {
        return Some(InObject::Top(path));
    }
    let (object, path) = word.split_once(':')?;
    if path.is_empty() {
        return None;
    }
    // `:a` and `:2:a` are in the index.
    if object.is_empty() || is_commit(object) {
        return Some(InObject::Top(path));
    }
    Some(InObject::Anywhere(path))
}

/// The path of a pathspec with signs in front: `:/a`, `:!a`, `:(top,glob)a`.
fn pathspec(word: &str) -> Option<&str> {
    let rest = word.strip_prefix(':')?;
    if let Some(signs) = rest.strip_prefix('(') {
        return Some(signs.split_once(')').map_or(signs, |(_, path)| path));
    }
    let path = rest.trim_start_matches(['/', '!', '^']);
    (path.len() < rest.len()).then(|| path.strip_prefix(':').unwrap_or(path))
}

/// Tells whether a word is `OBJECT:PATH`, which names the one file that is shown; `:/TEXT` is a commit.
pub(crate) fn names_file(word: &str) -> bool {
    word.contains(':') && !word.starts_with(":/") && !word.contains("^{/")
}

/// Tells whether a word, or a part of one, may be the name of an object that is not a commit, so that a new name for
/// it would hide what it is.
pub(crate) fn names_tree(word: &str) -> bool {
    !word.starts_with('-')
        && word.trim_start_matches('+').split(':').any(|part| {
            !part.is_empty() && (!is_commit(part) || word.contains("^{tree}") || word.contains("^{}"))
        })
}

/// Tells whether a word is a commit, a range of commits or the top folder of one, so that the paths after it begin at
/// the top. Any other object may be a folder, in which they begin, or a file, which is shown whatever they say.
pub(crate) fn is_certain(word: &str) -> bool {
    let ends = word.strip_prefix('^').unwrap_or(word).split("..").map(|end| end.trim_start_matches('.'));
    !word.contains(':') && ends.filter(|end| !end.is_empty()).all(is_commit)
}

/// Tells whether an expression surely is a commit: a name with a letter in it that no hash has, or one of its
/// ancestors.
pub(crate) fn is_commit(object: &str) -> bool {
    if object.contains(UNKNOWN) {
        return false;
    }
    let end = object.find(['~', '^', '@']).unwrap_or(object.len());
    // `@{1}` is a step from the branch that is checked out, `@` is `HEAD`.
    let (name, steps) = match object.strip_prefix('@') {
        Some(rest) if rest.starts_with('{') => ("@", object),
        Some(rest) => ("@", rest),
        None => object.split_at(end),
    };
    let is_name = |c: char| c.is_alphanumeric() || "/._-+#%=,".contains(c);
    let is_hash = |text: &str| text.len() >= 4 && text.chars().all(|c| c.is_ascii_hexdigit());
    // `v1-3-g1a2b3c4`, as `git describe` prints it, is the hash.
    let described = name.rsplit_once("-g").is_some_and(|(_, hash)| is_hash(hash));
    let named = name == "@" || (!name.is_empty() && name.chars().all(is_name));
    // Only a commit has ancestors.
    let has_ancestors = steps.starts_with(['~', '^']) && !steps.starts_with("^{");
    let has_ancestors = has_ancestors || steps.starts_with("^{commit}");
    let known = !is_hash(name) && !described;
    named && are_steps(steps) && (known || has_ancestors)
}

/// Tells whether the part after a name leads from a commit to another, or to its top folder: `~2`, `^`, `@{1}`,
/// `^{tree}`.
fn are_steps(mut steps: &str) -> bool {
    while !steps.is_empty() {
        let rest = if let Some(rest) = steps.strip_prefix(['~', '^']) {
            match rest.strip_prefix('{') {
                Some(inner) => match inner.split_once('}') {
                    Some(("commit" | "tree", rest)) => rest,
                    _ => return false,
                },
                None => rest.trim_start_matches(|c: char| c.is_ascii_digit()),
            }
        } else {
            match steps.strip_prefix("@{").and_then(|inner| inner.split_once('}')) {
                Some((_, rest)) => rest,
                None => return false,
            }
        };
        steps = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_told_from_objects_of_any_kind() {
        for commit in [
            "HEAD",
            "@",
            "HEAD~2",
            "HEAD^",
            "@~1",
            "main",
            "origin/main",
            "v1.0",
            "HEAD@{1}",
            "main@{u}",
            "HEAD^{tree}",
            "stash@{0}^3",
            "1a2b3c4~1",
            "1a2b3c4^{commit}",
            "feature/x-1",
            "@{1}",
            "@{-1}",
        ] {
            assert!(is_commit(commit), "{commit}");
        }
        for other in [
            "1a2b3c4",
            "DEADBEEF",
            "abcd",
            "v1-3-g1a2b3c4",
            "HEAD^{/x}",
            "1a2b3c4^{tree}",
            "1a2b^{}",
            "\u{1}",
            "a b",
            "1a2b3c4^{}~",
        ] {
            assert!(!is_commit(other), "{other}");
        }
    }

    #[test]
    fn ranges_of_commits_are_certain() {
        for word in ["HEAD", "main..x", "HEAD~2...@", "..main", "^main", "HEAD^{tree}", "1a2b^{commit}"] {
            assert!(is_certain(word), "{word}");
        }
        for word in ["1a2b3c4", "HEAD..1a2b3c4", "HEAD:sub", "^DEADBEEF", ":a", "\u{1}"] {
            assert!(!is_certain(word), "{word}");
        }
    }

    #[test]
    fn paths_are_found_behind_objects_and_signs() {
        for (word, expected) in [
            ("HEAD:a/b", Some(InObject::Top("a/b"))),
            (":a", Some(InObject::Top("a"))),
            ("1a2b3c4:b", Some(InObject::Anywhere("b"))),
            ("HEAD:a:b", Some(InObject::Top("a:b"))),
            (":(glob)**/b", Some(InObject::Top("**/b"))),
            (":/b", Some(InObject::Top("b"))),
            (":!b", Some(InObject::Top("b"))),
            ("HEAD", None),
            ("HEAD:", None),
        ] {
            assert_eq!(in_object(word), expected, "{word}");
        }
    }
}
