//! Placeholders of secrets in arguments.
//!
//! The model sees `«secret:NAME»` where a secret stands. If it copies that into a file or a command, the secret would be
//! overwritten by its placeholder; so a call that may change something is refused when it holds one.

use serde_json::Value;

const OPEN: &str = "«secret:";
const CLOSE: char = '»';

/// The first placeholder in any string of the arguments.
pub(crate) fn find_placeholder(arguments: &Value) -> Option<String> {
    match arguments {
        Value::String(text) => in_text(text),
        Value::Array(values) => values.iter().find_map(find_placeholder),
        Value::Object(object) => object.values().find_map(find_placeholder),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn in_text(text: &str) -> Option<String> {
    text.split(OPEN).skip(1).find_map(|rest| {
        let (name, _) = rest.split_once(CLOSE)?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        (!name.is_empty() && name.chars().all(is_name)).then(|| format!("{OPEN}{name}{CLOSE}"))
    })
}

#[cfg(test)]
mod tests {
    use super::in_text;

    #[test]
    fn only_a_whole_placeholder_counts() {
        for (text, expected) in [
            ("", None),
            ("«secret:KEY»", Some("«secret:KEY»")),
            ("a «secret:{name}» b «secret:A_1» c", Some("«secret:A_1»")),
            ("«secret:»", None),
            ("«secret:KEY", None),
            ("«secret:two words»", None),
            ("secret:KEY", None),
        ] {
            assert_eq!(in_text(text).as_deref(), expected, "{text}");
        }
    }
}
