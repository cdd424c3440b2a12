//! Translates JSONPath as people and models write it into the standard (RFC 9535).
//!
//! `$.foo-bar`, `users[0]` and `$.a.0` are not valid in the standard. Each has one meaning in a given file: a key
//! with a hyphen, a path from the root, an element of a list or a key of that name. A path that could mean two things
//! in the file is refused with both spellings. Filters and other expressions are left to the standard.

use lathe_edit::data::DataDocument;
use serde_json::Value;

/// The standard spelling of a path that the standard refuses. The error is a hint at the right spelling.
pub(super) fn standard(path: &str, document: &DataDocument) -> Result<String, String> {
    let path = path.trim();
    let (rest, from_root) = match path.strip_prefix('$') {
        Some(rest) if rest.is_empty() || rest.starts_with(['.', '[']) => (rest, true),
        Some(_) => return Err(hint()),
        None => (path, false),
    };
    let mut found = "$".to_owned();
    let mut rest = rest;
    let mut is_first = !from_root;
    while !rest.is_empty() {
        if rest.starts_with('[') {
            let (inner, after) = bracket(rest).ok_or_else(hint)?;
            found.push_str(&in_brackets(inner));
            rest = after;
        } else {
            let deep = rest.starts_with("..");
            let name = rest.trim_start_matches('.');
            let dots = rest.len() - name.len();
            // Only the first name may stand without a dot.
            if dots > 2 || (dots == 0 && !is_first) {
                return Err(hint());
            }
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (name, after) = name.split_at(end);
            let dot = if deep { ".." } else { "." };
            found = match name {
                "" if deep && after.starts_with('[') => format!("{found}.."),
                "*" => format!("{found}{dot}*"),
                name if is_number(name) && !deep => numbered(&found, name, document)?,
                name if is_plain(name) => format!("{found}{dot}{name}"),
                name if is_name(name) => format!("{found}{}['{name}']", if deep { ".." } else { "" }),
                _ => return Err(hint()),
            };
            rest = after;
        }
        is_first = false;
    }
    if !from_root && is_key(document.value(), path) {
        return Err(format!("write {found} for the value inside, or $['{path}'] for the key of this name"));
    }
    Ok(found)
}

fn hint() -> String {
    "write $.name, $['odd-name'] for a name with other characters than letters, digits and _, and $.list[0] for an element"
        .to_owned()
}

/// A number after a dot: an element of a list, or a key of an object.
fn numbered(parent: &str, number: &str, document: &DataDocument) -> Result<String, String> {
    let (element, key) = (format!("{parent}[{number}]"), format!("{parent}['{number}']"));
    let parents = document.view(parent).unwrap_or_default();
    let all = |is: fn(&Value) -> bool| !parents.is_empty() && parents.iter().all(is);
    if all(Value::is_array) {
        Ok(element)
    } else if all(Value::is_object) {
        Ok(key)
    } else {
        Err(format!("write {element} for an element of a list, or {key} for a key"))
    }
}

/// The inside of the brackets at the beginning of a text, and what follows them.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, ']') => return Some((text.get(1..at)?, text.get(at + 1..)?)),
            // A filter or another path: the error of the standard explains it.
            (None, '[' | '?' | '(') => return None,
            (None, _) => {}
        }
    }
    None
}

/// A name in brackets without quotes is a name.
fn in_brackets(inner: &str) -> String {
    let name = inner.trim();
    let is_bare = is_name(name) && !name.contains(':') && !is_index(name);
    if is_bare { format!("['{name}']") } else { format!("[{inner}]") }
}

fn is_index(text: &str) -> bool {
    is_number(text.strip_prefix('-').unwrap_or(text))
}

fn is_number(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'))
}

/// Tells whether the standard accepts a name after a dot.
fn is_plain(name: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || !c.is_ascii();
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}

/// Tells whether a text can only be a name.
fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-@/:+#$%~".contains(c) || !c.is_ascii();
    !name.is_empty() && name != "@" && name != "$" && name.chars().all(is_part)
}

/// Tells whether the root has a key that is spelled like the whole path.
fn is_key(root: &Value, path: &str) -> bool {
    path.contains(['.', '[']) && root.get(path).is_some()
}

#[cfg(test)]
mod tests {
    use lathe_edit::data::DataLanguage;

    use super::*;

    #[test]
    fn what_has_one_meaning_is_understood_and_the_rest_is_shown_how_to_write() {
        let file = r#"{"a": [1, [2]], "o": {"0": 1}, "users": [{"n": 1}, {"n": 2}], "x.y": 1, "x": {"y": 2},
            "m": [[1], {"0": 2}], "foo-bar": {"b-c": 3}, "@s/p": 1}"#;
        let document = DataDocument::parse(DataLanguage::Json, file).unwrap();
        for (path, spelled) in [
            ("$.foo-bar", "$['foo-bar']"),
            ("$.foo-bar.b-c", "$['foo-bar']['b-c']"),
            ("foo-bar.b-c", "$['foo-bar']['b-c']"),
            ("users[0]", "$.users[0]"),
            ("users[0].n", "$.users[0].n"),
            ("users.1.n", "$.users[1].n"),
            ("$.users[*].n", "$.users[*].n"),
            ("$.a.0", "$.a[0]"),
            ("$.a.1.0", "$.a[1][0]"),
            ("$.a.9", "$.a[9]"),
            ("$.o.0", "$.o['0']"),
            ("$.@s/p", "$['@s/p']"),
            (" users ", "$.users"),
            ("[foo-bar]", "$['foo-bar']"),
            ("$[users][-1]", "$['users'][-1]"),
            ("$..b-c", "$..['b-c']"),
            ("..n", "$..n"),
            (".users", "$.users"),
            ("$['x.y']", "$['x.y']"),
            ("new-key", "$['new-key']"),
        ] {
            assert_eq!(standard(path, &document).as_deref(), Ok(spelled), "{path}");
            document.view(spelled).unwrap();
        }
        for (path, shown) in [
            ("x.y", &["$.x.y", "$['x.y']"][..]),
            ("$.m.*.0", &["$.m.*[0]", "$.m.*['0']"]),
            ("$.none.0", &["$.none[0]", "$.none['0']"]),
            ("$.a b", &["$['odd-name']"]),
            ("$.a[?(@.x)]", &["$['odd-name']"]),
            ("$a", &["$['odd-name']"]),
            ("$...a", &["$['odd-name']"]),
            ("@", &["$['odd-name']"]),
            ("$.a[0", &["$['odd-name']"]),
        ] {
            let error = standard(path, &document).unwrap_err();
            assert!(shown.iter().all(|part| error.contains(part)), "{path}: {error}");
        }
    }
}
