//! Makes the arguments that a model would have had to give for the text that the user made of its proposal. This is
//! for the faces whose arguments are not Gemini CLI's.

use serde_json::{Map, Value};

use crate::preview::Preview;

/// Arguments for a whole file: its new content.
pub(crate) fn write(value: Value, _: &Preview, proposed: &str) -> Option<Value> {
    let Value::Object(mut given) = value else { return None };
    given.insert("content".to_owned(), proposed.into());
    Some(Value::Object(given))
}

/// Arguments for a part of a file: the whole text becomes the user's version.
pub(crate) fn edit(value: Value, preview: &Preview, proposed: &str) -> Option<Value> {
    let (Value::Object(given), Preview::Edit { current, .. }) = (value, preview) else { return None };
    let mut modified = Map::new();
    modified.insert("path".to_owned(), given.get("path")?.clone());
    // An empty file has no text to find.
    if current.is_empty() {
        modified.insert("insert_line".to_owned(), 0.into());
    } else {
        modified.insert("old_str".to_owned(), current.as_str().into());
    }
    modified.insert("new_str".to_owned(), proposed.into());
    Some(Value::Object(modified))
}

/// Arguments for Trae's tool, which creates and changes files.
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

/// Arguments for a remembered fact: the whole file.
pub(crate) fn memory(value: Value, _: &Preview, proposed: &str) -> Option<Value> {
    let Value::Object(mut given) = value else { return None };
    given.insert("modified".to_owned(), proposed.into());
    Some(Value::Object(given))
}
