//! The one place where text becomes a glob or a set of ignore rules.
//!
//! `globset` turns nested braces into a regular expression by recursion, and drops them by recursion. A pattern of a
//! few thousand braces therefore overflows the stack, which ends the process and cannot be caught. Patterns come from
//! models, from clients and from ignore files of any folder, so each is measured here before `globset` sees it. A
//! test of the repository forbids the builders of `globset` and `ignore` everywhere else.

use std::path::Path;

use globset::{Glob, GlobBuilder, GlobMatcher, GlobSet};
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::overrides::{Override, OverrideBuilder};

use crate::SearchError;

/// The most bytes of a pattern. A path has at most 4,096 bytes, and escaping turns one into three.
const PATTERN_BYTES: usize = 3 * 4096;

/// The most opening braces of a pattern, nested or not. Hand-written patterns have a few. A debug build overflows a
/// thread's stack at several hundred.
/// several hundred.
const PATTERN_BRACES: usize = 64;

/// The most patterns of one set or one ignore file. The largest collections of `.gitignore` files together have a
/// tenth of that.
const PATTERNS: usize = 20_000;

/// Style of matching a glob.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GlobStyle {
    /// `*` and `?` do not match a slash.
    pub literal_separator: bool,
    pub case_insensitive: bool,
}

/// Refuses a pattern that is too long or has too many braces to be compiled safely.
fn check(pattern: &str) -> Result<(), String> {
    if pattern.len() > PATTERN_BYTES {
        return Err(format!(
            "it has {} bytes, and a pattern may have {PATTERN_BYTES} at most",
            pattern.len()
        ));
    }
    let bytes = pattern.as_bytes();
    let braces = bytes.iter().enumerate().filter(|&(at, byte)| *byte == b'{' && !is_escaped(bytes, at));
    match braces.count() {
        0..=PATTERN_BRACES => Ok(()),
        count => Err(format!("it has {count} braces `{{`, and a pattern may have {PATTERN_BRACES} at most")),
    }
}

/// Tells whether the brace at this place is `[{]`, as `globset::escape` writes it. After a backslash the bracket does
/// not open a class, so the brace counts.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let before = |steps: usize| at.checked_sub(steps).and_then(|at| bytes.get(at));
    before(1) == Some(&b'[') && bytes.get(at + 1) == Some(&b']') && before(2) != Some(&b'\\')
}

/// Shows the beginning of a pattern: it may be as long as a message.
fn shown(pattern: &str) -> String {
    const SHOWN: usize = 100;
    match pattern.char_indices().nth(SHOWN) {
        None => pattern.to_owned(),
        Some((end, _)) => format!("{}…", pattern.get(..end).unwrap_or_default()),
    }
}

fn glob_error(pattern: &str, reason: impl ToString) -> SearchError {
    SearchError::Glob { glob: shown(pattern), reason: reason.to_string() }
}

fn glob(pattern: &str, style: GlobStyle) -> Result<Glob, SearchError> {
    check(pattern).map_err(|reason| glob_error(pattern, reason))?;
    GlobBuilder::new(pattern)
        .literal_separator(style.literal_separator)
        .case_insensitive(style.case_insensitive)
        .build()
        .map_err(|error| glob_error(pattern, error.kind()))
}

/// Compiles one glob.
pub fn glob_matcher(pattern: &str, style: GlobStyle) -> Result<GlobMatcher, SearchError> {
    glob(pattern, style).map(|glob| glob.compile_matcher())
}

/// Compiles a set of globs. A set of one is faster than a matcher: it has shortcuts for common patterns.
pub fn glob_set<T: AsRef<str>>(patterns: &[T], style: GlobStyle) -> Result<GlobSet, SearchError> {
    check_count(patterns.len())?;
    let mut set = GlobSet::builder();
    for pattern in patterns {
        set.add(glob(pattern.as_ref(), style)?);
    }
    set.build().map_err(|error| glob_error(error.glob().unwrap_or("list"), error.kind()))
}

fn check_count(count: usize) -> Result<(), SearchError> {
    match count <= PATTERNS {
        true => Ok(()),
        false => {
            Err(glob_error("list", format!("it has {count} patterns, and it may have {PATTERNS} at most")))
        }
    }
}

/// Compiles the globs of a walk. One that begins with `!` excludes, any other includes.
pub(crate) fn overrides(
    start: &Path,
    globs: &[String],
    case_insensitive: bool,
) -> Result<Override, SearchError> {
    check_count(globs.len())?;
    let mut overrides = OverrideBuilder::new(start);
    overrides.case_insensitive(case_insensitive).map_err(|error| glob_error("case", error))?;
    for glob in globs {
        let plain = glob.trim_start_matches(['!', '\\']);
        check(glob).map_err(|reason| glob_error(plain, reason))?;
        overrides.add(glob).map_err(|error| glob_error(plain, error))?;
    }
    overrides.build().map_err(|error| glob_error("list", error))
}

/// The rules that ignore files of a folder state.
pub(crate) struct StatedRules {
    pub(crate) rules: Gitignore,
    /// The first line that is not a pattern. It has no effect, and the others count, as in git.
    pub(crate) bad_line: Option<usize>,
}

/// Compiles the lines of ignore files. A later line has more weight.
pub(crate) fn ignore_rules<'a>(
    folder: &Path,
    lines: impl Iterator<Item = &'a str>,
) -> Result<StatedRules, ignore::Error> {
    let mut builder = GitignoreBuilder::new(folder);
    let (mut bad_line, mut count) = (None, 0);
    for (at, line) in lines.enumerate() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        count += 1;
        if count > PATTERNS || check(line).is_err() || builder.add_line(None, line).is_err() {
            bad_line = bad_line.or(Some(at + 1));
        }
    }
    Ok(StatedRules { rules: builder.build()?, bad_line })
}

/// The rules that exclude all of a folder.
pub(crate) fn everything(folder: &Path) -> Option<Gitignore> {
    ignore_rules(folder, ["*"].into_iter()).ok().map(|stated| stated.rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_brace_counts_unless_it_is_escaped_as_a_class() {
        let many = |part: &str| part.repeat(PATTERN_BRACES + 1);
        for pattern in [many("{"), many("{a,"), many("{a}"), many("\\{"), many("\\[{]"), many("[[{")] {
            assert!(check(&pattern).is_err(), "{pattern}");
        }
        for pattern in [many("[{]"), many("}"), many("["), globset::escape(&many("{"))] {
            assert_eq!(check(&pattern), Ok(()), "{pattern}");
        }
        assert_eq!(check(&"{a,b}".repeat(PATTERN_BRACES)), Ok(()));
    }

    #[test]
    fn what_is_allowed_compiles_on_a_small_stack() {
        let nested = format!("{}a{}", "{".repeat(PATTERN_BRACES), "}".repeat(PATTERN_BRACES));
        let compile = move || {
            assert!(glob_matcher(&nested, GlobStyle::default()).is_ok());
            assert_eq!(ignore_rules(Path::new("/"), [nested.as_str()].into_iter()).unwrap().bad_line, None);
        };
        std::thread::Builder::new().stack_size(512 << 10).spawn(compile).unwrap().join().unwrap();
    }

    #[test]
    fn the_words_about_a_long_pattern_are_short() {
        let error = glob_matcher(&"ä".repeat(1 << 20), GlobStyle::default()).unwrap_err().to_string();
        assert!(error.len() < 400 && error.contains("2097152 bytes"), "{error}");
    }
}
