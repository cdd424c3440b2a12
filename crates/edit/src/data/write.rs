//! New values as text, in each of the languages.

use serde_json::Value;

use super::tree::Style;
use super::{DataError, DataLanguage};

/// A value on one line.
pub(super) fn inline(kind: DataLanguage, value: &Value, tight: bool) -> Result<String, DataError> {
    let (comma, colon, open, close) = match (kind, tight) {
        (DataLanguage::Toml, _) => (", ", " = ", "{ ", " }"),
        (DataLanguage::Json, true) => (",", ":", "{", "}"),
        (DataLanguage::Json | DataLanguage::Yaml, _) => (", ", ": ", "{", "}"),
    };
    match value {
        Value::Array(list) => {
            let items: Result<Vec<String>, DataError> =
                list.iter().map(|item| inline(kind, item, tight)).collect();
            Ok(format!("[{}]", items?.join(comma)))
        }
        Value::Object(map) if map.is_empty() => Ok("{}".to_owned()),
        Value::Object(map) => {
            let mut items = Vec::with_capacity(map.len());
            for (name, value) in map {
                items.push(format!("{}{colon}{}", key(kind, name), inline(kind, value, tight)?));
            }
            Ok(format!("{open}{}{close}", items.join(comma)))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            scalar(kind, value, Style::Double)
        }
    }
}

/// A value over several lines, for JSON only: the others have functions of their own for lines.
pub(super) fn pretty(value: &Value, indent: &str, unit: &str, newline: &str) -> Result<String, DataError> {
    let deeper = format!("{indent}{unit}");
    let group = |open: char, close: char, items: Vec<String>| {
        let between = format!(",{newline}{deeper}");
        format!("{open}{newline}{deeper}{}{newline}{indent}{close}", items.join(&between))
    };
    match value {
        Value::Array(list) if !list.is_empty() => {
            let items: Result<Vec<String>, DataError> =
                list.iter().map(|item| pretty(item, &deeper, unit, newline)).collect();
            Ok(group('[', ']', items?))
        }
        Value::Object(map) if !map.is_empty() => {
            let mut items = Vec::with_capacity(map.len());
            for (name, value) in map {
                items.push(format!(
                    "{}: {}",
                    key(DataLanguage::Json, name),
                    pretty(value, &deeper, unit, newline)?
                ));
            }
            Ok(group('{', '}', items))
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => inline(DataLanguage::Json, value, false),
    }
}

pub(super) fn key(kind: DataLanguage, name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    match kind {
        DataLanguage::Json => quoted(name),
        DataLanguage::Toml if bare => name.to_owned(),
        DataLanguage::Toml => toml_string(name),
        DataLanguage::Yaml if is_plain(name) => name.to_owned(),
        DataLanguage::Yaml => quoted(name),
    }
}

pub(super) fn scalar(kind: DataLanguage, value: &Value, style: Style) -> Result<String, DataError> {
    match (kind, value) {
        (DataLanguage::Toml, Value::Null) => Err(DataError::unsupported("TOML has no null")),
        (DataLanguage::Toml, Value::String(text)) => Ok(match style {
            Style::Single if !text.contains('\'') && !text.chars().any(char::is_control) => {
                format!("'{text}'")
            }
            Style::Single | Style::Plain | Style::Double | Style::Block => toml_string(text),
        }),
        (DataLanguage::Yaml, Value::String(text)) => Ok(yaml_string(text, style)),
        (DataLanguage::Json, Value::String(text)) => Ok(quoted(text)),
        // A whole float must stay one: `1e20` and `1.0` are floats in all three.
        (DataLanguage::Json | DataLanguage::Toml | DataLanguage::Yaml, value) => Ok(value.to_string()),
    }
}

fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}

fn toml_string(text: &str) -> String {
    // JSON's escapes are TOML's, except for the control character that JSON allows.
    quoted(text).replace('\u{7f}', "\\u007f")
}

fn yaml_string(text: &str, style: Style) -> String {
    let printable =
        !text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}'));
    match style {
        Style::Single if printable => format!("'{}'", text.replace('\'', "''")),
        Style::Plain if is_plain(text) => text.to_owned(),
        Style::Single | Style::Plain | Style::Double | Style::Block => {
            quoted(text).replace('\u{7f}', "\\u007f").replace('\u{85}', "\\u0085")
        }
    }
}

/// Tells whether YAML reads a text without quotes as that text, in every version of it and in every place of a
/// scalar.
fn is_plain(text: &str) -> bool {
    const WORDS: [&str; 11] = ["true", "false", "yes", "no", "on", "off", "null", "y", "n", "nan", "inf"];
    let first = text.chars().next().is_some_and(|c| c.is_alphabetic() || c == '_' || c == '/');
    let rest =
        text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ' ' | '+' | '@'));
    first && rest && !text.ends_with(' ') && !WORDS.contains(&text.to_ascii_lowercase().as_str())
}
