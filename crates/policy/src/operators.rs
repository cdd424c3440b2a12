//! The results of `${x#a}`, `${x:1}`, `${x/a/b}` and similar operators for a value that is known.

/// Longer values and patterns are not computed.
const LONGEST: usize = 512;

/// The value that an operator with plain arguments makes; `None` where it cannot be computed.
pub(crate) fn apply_operator(value: &str, how: &str) -> Option<String> {
    if value.len() > LONGEST || how.len() > LONGEST || how.contains(['$', '`', '(']) {
        return None;
    }
    let text: Vec<char> = value.chars().collect();
    let long = |short: &str| how.strip_prefix(short).map(bare);
    if let Some(pattern) = long("##") {
        return cut(&text, &pattern?, true, true);
    }
    if let Some(pattern) = long("#") {
        return cut(&text, &pattern?, true, false);
    }
    if let Some(pattern) = long("%%") {
        return cut(&text, &pattern?, false, true);
    }
    if let Some(pattern) = long("%") {
        return cut(&text, &pattern?, false, false);
    }
    match how {
        "," | "^" | "~" | "@u" => {
            let mut chars = value.chars();
            let first = chars.next().map(|first| match how {
                "," => first.to_lowercase().to_string(),
                "~" if first.is_uppercase() => first.to_lowercase().to_string(),
                _ => first.to_uppercase().to_string(),
            });
            return Some(first.unwrap_or_default() + chars.as_str());
        }
        ",," | "@L" => return Some(value.to_lowercase()),
        "^^" | "@U" => return Some(value.to_uppercase()),
        "~~" => {
            let other =
                |c: char| if c.is_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
            return Some(value.chars().map(other).collect());
        }
        _ => {}
    }
    if let Some(rest) = how.strip_prefix('/') {
        return replaced(&text, rest);
    }
    how.strip_prefix(':').and_then(|range| part(&text, range))
}

/// A pattern without its quotes. `None` for a backslash, or a quote together with a sign of patterns.
fn bare(pattern: &str) -> Option<Vec<char>> {
    let quoted = pattern.contains(['"', '\'']);
    if pattern.contains('\\') || (quoted && pattern.contains(['*', '?', '['])) {
        return None;
    }
    Some(pattern.chars().filter(|c| !matches!(c, '"' | '\'')).collect())
}

fn cut(text: &[char], pattern: &[char], front: bool, longest: bool) -> Option<String> {
    let mut lengths: Vec<usize> = (0..=text.len()).collect();
    if longest {
        lengths.reverse();
    }
    for length in lengths {
        let (taken, left) = match front {
            true => text.split_at(length),
            false => {
                let (left, taken) = text.split_at(text.len() - length);
                (taken, left)
            }
        };
        if fits(pattern, taken)? {
            return Some(left.iter().collect());
        }
    }
    Some(text.iter().collect())
}

fn replaced(text: &[char], how: &str) -> Option<String> {
    let (kind, rest) = match how.chars().next() {
        Some(kind @ ('/' | '#' | '%')) => (Some(kind), how.get(1..)?),
        _ => (None, how),
    };
    let (pattern, with) = rest.split_once('/').unwrap_or((rest, ""));
    let (pattern, with) = (bare(pattern)?, bare(with)?);
    let with: String = with.into_iter().collect();
    let (mut out, mut at, mut done) = (String::new(), 0, false);
    while at < text.len() {
        let here = text.get(at..)?;
        let tried = !done && (kind != Some('#') || at == 0) && !pattern.is_empty();
        let mut found = None;
        for length in (1..=here.len()).rev().filter(|_| tried) {
            let ends = kind != Some('%') || length == here.len();
            if ends && fits(&pattern, here.get(..length)?)? {
                found = Some(length);
                break;
            }
        }
        match found {
            Some(length) => {
                out.push_str(&with);
                at += length;
                done = kind != Some('/');
            }
            None => {
                out.extend(here.first());
                at += 1;
            }
        }
    }
    Some(out)
}

/// `:1`, `:1:2`, `: -1`.
fn part(text: &[char], range: &str) -> Option<String> {
    let (from, length) = match range.split_once(':') {
        Some((from, length)) => (from, Some(length)),
        None => (range, None),
    };
    let number = |text: &str| text.trim().parse::<isize>().ok();
    let size = isize::try_from(text.len()).ok()?;
    let from = number(from)?;
    let begin = if from < 0 { size + from } else { from };
    let end = match length.map(number) {
        None => size,
        Some(length) => {
            let length = length?;
            if length < 0 { size + length } else { begin + length }
        }
    };
    let (begin, end) = (usize::try_from(begin).ok()?, usize::try_from(end.min(size)).ok()?);
    Some(text.get(begin..end).unwrap_or_default().iter().collect())
}

/// Tells whether a pattern with `*`, `?` and sets matches a text; `None` where it has too many stars to be tried.
fn fits(pattern: &[char], text: &[char]) -> Option<bool> {
    if pattern.iter().filter(|c| **c == '*').count() > 4 {
        return None;
    }
    Some(fits_from(pattern, text))
}

fn fits_from(pattern: &[char], text: &[char]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some(('*', rest)) => (0..=text.len()).any(|at| fits_from(rest, text.get(at..).unwrap_or_default())),
        Some(('[', rest)) if rest.iter().skip(1).any(|c| *c == ']') => {
            let end = 1 + rest.iter().skip(1).position(|c| *c == ']').unwrap_or(0);
            let (set, behind) =
                (rest.get(..end).unwrap_or_default(), rest.get(end + 1..).unwrap_or_default());
            let Some((first, text)) = text.split_first() else { return false };
            let (not, set) = match set.split_first() {
                Some(('!' | '^', set)) => (true, set),
                _ => (false, set),
            };
            let range = |w: &[char]| w[1] == '-' && w[0] <= *first && *first <= w[2];
            let inside = set.contains(first) || set.windows(3).any(range);
            inside != not && fits_from(behind, text)
        }
        Some((want, rest)) => match text.split_first() {
            Some((have, text)) => (*want == '?' || want == have) && fits_from(rest, text),
            None => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::apply_operator;

    #[test]
    fn operators_make_what_bash_makes() {
        for (value, how, made) in [
            ("Z.git", "#Z", ".git"),
            ("Z.git", "#?", ".git"),
            ("a/b/c", "##*/", "c"),
            ("a/b/c", "#*/", "b/c"),
            ("a/b/c", "%/*", "a/b"),
            ("a/b/c", "%%/*", "a"),
            ("a.txt", "%.txt", "a"),
            ("a.txt", "%.md", "a.txt"),
            ("Z.git", ":1", ".git"),
            ("Z.gitZ", ":1:4", ".git"),
            ("Z.git", ": -4", ".git"),
            ("Z.gitZ", ":1:-1", ".git"),
            ("xecret", "/x/s", "secret"),
            ("axa", "//a/b", "bxb"),
            ("axa", "/#a/b", "bxa"),
            ("axa", "/%a/b", "axb"),
            ("a1b2", "//[0-9]/", "ab"),
            ("SECRET", ",,", "secret"),
            ("secret", "^", "Secret"),
            ("secret", "@U", "SECRET"),
            ("Z/", "#[XYZ]", "/"),
        ] {
            assert_eq!(apply_operator(value, how).as_deref(), Some(made), "{value} {how}");
        }
        for how in ["#$y", "@E", ":$i", "@P", "#+(Z)", "/\"*\"/x"] {
            assert_eq!(apply_operator("Z.git", how), None, "{how}");
        }
    }
}
