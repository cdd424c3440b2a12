//! The arguments a model would have had to give for what a person made of its proposal, for the faces whose arguments are
//! not Gemini CLI's.

use serde_json::{Map, Value};

use crate::preview::Preview;

/// A whole file: its new content.
pub(crate) fn write(value: Value, _: &Preview, proposed: &str) -> Option<Value> {
    let Value::Object(mut given) = value else { return None };
    given.insert("content".to_owned(), proposed.into());
    Some(Value::Object(given))
}

/// A part of a file: all of it becomes what the person made of it.
pub(crate) fn edit(value: Value, preview: &Preview, proposed: &str) -> Option<Value> {
    let (Value::Object(given), Preview::Edit { current, .. }) = (value, preview) else { return None };
    let mut modified = Map::new();
    modified.insert("path".to_owned(), given.get("path")?.clone());
    // Nothing can be looked for in an empty file.
    if current.is_empty() {
        modified.insert("insert_line".to_owned(), 0.into());
    } else {
        modified.insert("old_str".to_owned(), current.as_str().into());
    }
    modified.insert("new_str".to_owned(), proposed.into());
    Some(Value::Object(modified))
}

/// Trae's tool, which makes files and changes them.
pub(crate) fn trae(value: Value, preview: &Preview, proposed: &str) -> Option<Value> {
    let command = value.get("command").and_then(Value::as_str)?.to_owned();
    match command.as_str() {
        "create" => {
            let Value::Object(mut given) = value else { return None };
            given.insert("file_text".to_owned(), proposed.into());
            Some(Value::Object(given))
        }
        "str_replace" | "insert" => {
            let Value::Object(mut modified) = edit(value, preview, proposed)? else { return None };
            let command = if modified.contains_key("insert_line") { "insert" } else { "str_replace" };
            modified.insert("command".to_owned(), command.into());
            Some(Value::Object(modified))
        }
        _ => None,
    }
}

/// A remembered fact: the whole file.
pub(crate) fn memory(value: Value, _: &Preview, proposed: &str) -> Option<Value> {
    let Value::Object(mut given) = value else { return None };
    given.insert("modified".to_owned(), proposed.into());
    Some(Value::Object(given))
}
