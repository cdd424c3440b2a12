//! JSONPath expressions, and the further facts about them that an edit needs besides their matches.

use serde_json::Value;
use serde_json_path::{JsonPath, PathElement};

use super::DataError;
use super::tree::PathStep;

pub(super) fn parse(path: &str) -> Result<JsonPath, DataError> {
    JsonPath::parse(path)
        .map_err(|error| DataError::Path { path: path.to_owned(), reason: error.message().to_owned() })
}

/// The places an expression matches, each once, in the order of the matches.
pub(super) fn locate(path: &JsonPath, value: &Value) -> Vec<Vec<PathStep>> {
    let mut found: Vec<Vec<PathStep>> = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for node in path.query_located(value).all() {
        let steps: Vec<PathStep> = node
            .location()
            .iter()
            .map(|element| match element {
                PathElement::Name(name) => PathStep::Key((*name).to_owned()),
                PathElement::Index(index) => PathStep::Index(*index),
            })
            .collect();
        if seen.insert(steps.clone()) {
            found.push(steps);
        }
    }
    found
}

/// The places that do not lie inside another of them.
pub(super) fn outermost(mut places: Vec<Vec<PathStep>>) -> Vec<Vec<PathStep>> {
    places.sort();
    let mut kept: Vec<Vec<PathStep>> = Vec::new();
    for place in places {
        if !kept.last().is_some_and(|last| place.starts_with(last)) {
            kept.push(place);
        }
    }
    kept
}

/// The target of an expression that adds a value: the name or index of its last segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AddTarget {
    Key(String),
    /// As written: negative ones count from the end.
    Index(i64),
}

/// Splits a valid expression before its last segment. `serde_json_path` does not expose the segments, so the text is
/// read once more; only their bounds are determined.
pub(super) fn split(path: &str) -> Result<(&str, AddTarget), DataError> {
    let bytes = path.as_bytes();
    let mut starts = Vec::new();
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'[' => {
                starts.push(at);
                at = bracket_end(bytes, at);
            }
            b'.' => {
                starts.push(at);
                at += 1;
                while at < bytes.len() && !matches!(bytes[at], b'[' | b' ' | b'\t' | b'\n' | b'\r') {
                    if bytes[at] == b'.' && bytes[at - 1] != b'.' {
                        break;
                    }
                    at += 1;
                }
                // `..[` is one segment.
                if bytes[at - 1] == b'.' && bytes.get(at) == Some(&b'[') {
                    at = bracket_end(bytes, at);
                }
            }
            _ => at += 1,
        }
    }
    let Some(&last) = starts.last() else {
        return Err(DataError::Root);
    };
    let (parent, segment) = (path[..last].trim_end(), path[last..].trim_end());
    match target(segment) {
        Some(target) => Ok((parent, target)),
        None => Err(DataError::Target { segment: segment.to_owned() }),
    }
}

fn bracket_end(bytes: &[u8], open: usize) -> usize {
    let (mut depth, mut quote, mut at) = (0_usize, None, open);
    while at < bytes.len() {
        match (quote, bytes[at]) {
            (Some(_), b'\\') => at += 1,
            (Some(end), byte) if byte == end => quote = None,
            (Some(_), _) => {}
            (None, byte @ (b'"' | b'\'')) => quote = Some(byte),
            (None, b'[') => depth += 1,
            (None, b']') => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            (None, _) => {}
        }
        at += 1;
    }
    bytes.len()
}

fn target(segment: &str) -> Option<AddTarget> {
    if let Some(name) = segment.strip_prefix('.') {
        let plain = !name.is_empty() && name != "*" && !name.starts_with('.');
        return plain.then(|| AddTarget::Key(name.to_owned()));
    }
    let inner = segment.strip_prefix('[')?.strip_suffix(']')?.trim();
    if let Ok(index) = inner.parse::<i64>() {
        return Some(AddTarget::Index(index));
    }
    let quote = inner.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let text = inner.strip_prefix(quote)?.strip_suffix(quote)?;
    // One quoted name, not several: no unescaped quote inside.
    let mut json = String::from('"');
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                '\'' => json.push('\''),
                other => json.extend(['\\', other]),
            },
            c if c == quote => return None,
            '"' => json.push_str("\\\""),
            c => json.push(c),
        }
    }
    json.push('"');
    serde_json::from_str(&json).ok().map(AddTarget::Key)
}

#[cfg(test)]
mod tests {
    use super::{AddTarget, split};
    use crate::data::DataError;

    #[test]
    fn the_last_segment_is_split_off() {
        let key = |name: &str| AddTarget::Key(name.to_owned());
        for (path, parent, target) in [
            ("$.a", "$", key("a")),
            ("$.a.b", "$.a", key("b")),
            ("$['a']['b.c']", "$['a']", key("b.c")),
            ("$.a[0]", "$.a", AddTarget::Index(0)),
            ("$.a[-1]", "$.a", AddTarget::Index(-1)),
            ("$..a.b", "$..a", key("b")),
            ("$.a[?@.x == ']'].b", "$.a[?@.x == ']']", key("b")),
            ("$[\"q\\\"]\"]", "$", key("q\"]")),
            ("$['it\\'s']", "$", key("it's")),
            ("$ .a [ 'b' ]", "$ .a", key("b")),
            ("$['\\u00e9']", "$", key("\u{e9}")),
        ] {
            assert_eq!(split(path), Ok((parent, target)), "{path}");
        }
        assert_eq!(split("$"), Err(DataError::Root));
        for path in ["$.*", "$..a", "$..[0]", "$[*]", "$['a','b']", "$[0,1]", "$[1:2]", "$[?@.a]"] {
            assert!(matches!(split(path), Err(DataError::Target { .. })), "{path}: {:?}", split(path));
        }
    }
}
