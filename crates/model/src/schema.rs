//! Tool schemas in the forms that the wires require.

use lathe_protocol::{Arguments, Raw};
use serde_json::{Map, Value, json};

use crate::members::Members;

/// OpenAI's strict form: every property is required, optional ones may be null, and no others are allowed. None if a
/// schema leaves the content of an object open, or uses features that strictness does not support: then it is sent as
/// it is.
pub(crate) fn strict(schema: &Raw) -> Option<Raw> {
    let value = inlined(schema)?;
    let value = strict_value(value)?;
    value.get("properties")?;
    Raw::from_serialize(&value).ok()
}

fn strict_value(value: Value) -> Option<Value> {
    let Value::Object(mut map) = value else { return None };
    for dropped in ["$schema", "title", "default", "examples", "minLength", "maxLength", "format"] {
        map.shift_remove(dropped);
    }
    if ["oneOf", "allOf", "not", "if", "patternProperties", "$ref", "const"]
        .iter()
        .any(|key| map.contains_key(*key))
    {
        return None;
    }
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        for choice in choices.iter_mut() {
            *choice = strict_value(choice.take())?;
        }
    }
    if let Some(items) = map.get_mut("items") {
        *items = strict_value(items.take())?;
    }
    if is_type(&map, "object") {
        let required: Vec<String> = match map.get("required") {
            Some(Value::Array(names)) => {
                names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
            }
            _ => Vec::new(),
        };
        let Some(Value::Object(properties)) = map.get_mut("properties") else {
            // An object with any content.
            return None;
        };
        for (name, property) in properties.iter_mut() {
            let strict = strict_value(property.take())?;
            *property = if required.contains(name) { strict } else { nullable(strict) };
        }
        let all: Vec<Value> = properties.keys().map(|name| Value::String(name.clone())).collect();
        map.insert("required".to_owned(), Value::Array(all));
        map.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Some(Value::Object(map))
}

fn is_type(map: &Map<String, Value>, name: &str) -> bool {
    match map.get("type") {
        Some(Value::String(one)) => one == name,
        Some(Value::Array(many)) => many.iter().any(|one| one == name),
        _ => false,
    }
}

fn nullable(value: Value) -> Value {
    let Value::Object(mut map) = value else { return value };
    if let Some(Value::Array(choices)) = map.get_mut("anyOf") {
        choices.push(json!({ "type": "null" }));
        return Value::Object(map);
    }
    let kinds = match map.get("type") {
        Some(Value::String(one)) if one != "null" => json!([one, "null"]),
        Some(Value::Array(many)) if !many.contains(&json!("null")) => {
            Value::Array(many.iter().cloned().chain([json!("null")]).collect())
        }
        Some(same) => same.clone(),
        None => return json!({ "anyOf": [Value::Object(map), { "type": "null" }] }),
    };
    map.insert("type".to_owned(), kinds);
    if let Some(Value::Array(words)) = map.get_mut("enum") {
        words.push(Value::Null);
    }
    Value::Object(map)
}

/// The arguments without null members: with a strict schema a model omits an argument by null.
pub(crate) fn without_nulls(arguments: Arguments) -> Arguments {
    match arguments {
        Arguments::Json(raw) if raw.get().contains("null") => Arguments::Json(drop_nulls(raw)),
        other => other,
    }
}

fn drop_nulls(raw: Raw) -> Raw {
    match raw.get().as_bytes().first() {
        Some(b'{') => {
            let Some(Members(members)) = Members::parse(raw.get()) else { return raw };
            let kept = members.into_iter().filter(|(_, value)| value.get() != "null");
            Members(kept.map(|(name, value)| (name, drop_nulls(value))).collect()).raw().unwrap_or(raw)
        }
        Some(b'[') => {
            let Ok(items) = serde_json::from_str::<Vec<Raw>>(raw.get()) else { return raw };
            Raw::from_serialize(&items.into_iter().map(drop_nulls).collect::<Vec<_>>()).unwrap_or(raw)
        }
        Some(_) | None => raw,
    }
}

/// The part of JSON Schema that Gemini accepts. None for a tool without parameters: an object without properties is
/// refused.
pub(crate) fn gemini(schema: &Raw) -> Option<Raw> {
    let value = gemini_value(inlined(schema)?);
    let properties = value.get("properties")?.as_object()?;
    if properties.is_empty() { None } else { Raw::from_serialize(&value).ok() }
}

const GEMINI_FORMATS: [&str; 6] = ["int32", "int64", "float", "double", "date-time", "enum"];

const GEMINI: [&str; 16] = [
    "type",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minLength",
    "maxLength",
    "pattern",
    "anyOf",
    "items",
    "minimum",
    "maximum",
];

fn gemini_value(value: Value) -> Value {
    let Value::Object(map) = value else { return json!({}) };
    let mut out = Map::new();
    for (name, value) in map {
        match (name.as_str(), value) {
            ("type", Value::Array(kinds)) => {
                let mut real = kinds.iter().filter(|kind| *kind != "null");
                if let Some(first) = real.next() {
                    out.insert("type".to_owned(), first.clone());
                }
                if kinds.iter().any(|kind| kind == "null") {
                    out.insert("nullable".to_owned(), Value::Bool(true));
                }
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.into_iter().map(|(name, value)| (name, gemini_value(value)));
                out.insert("properties".to_owned(), Value::Object(properties.collect()));
            }
            ("items", items @ Value::Object(_)) => {
                out.insert("items".to_owned(), gemini_value(items));
            }
            ("anyOf" | "oneOf", Value::Array(choices)) => {
                let (nulls, real): (Vec<Value>, Vec<Value>) =
                    choices.into_iter().partition(|choice| choice["type"] == "null");
                if !nulls.is_empty() {
                    out.insert("nullable".to_owned(), Value::Bool(true));
                }
                let mut real: Vec<Value> = real.into_iter().map(gemini_value).collect();
                match (real.len(), real.pop()) {
                    // A single choice is not a choice.
                    (1, Some(Value::Object(only))) => out.extend(only),
                    (_, last) => {
                        real.extend(last);
                        out.insert("anyOf".to_owned(), Value::Array(real));
                    }
                }
            }
            ("const", Value::String(word)) => {
                out.insert("enum".to_owned(), json!([word]));
            }
            // Only strings can be listed.
            ("enum", Value::Array(words)) => {
                let words: Vec<Value> = words.into_iter().filter(Value::is_string).collect();
                if !words.is_empty() {
                    out.insert("enum".to_owned(), Value::Array(words));
                }
            }
            ("format", Value::String(format)) if GEMINI_FORMATS.contains(&format.as_str()) => {
                out.insert("format".to_owned(), Value::String(format));
            }
            (name, value) if GEMINI.contains(&name) => {
                out.insert(name.to_owned(), value);
            }
            _ => {}
        }
    }
    Value::Object(out)
}

/// The schema with its references replaced by their definitions. None if they are circular or the schema is not an
/// object.
fn inlined(schema: &Raw) -> Option<Value> {
    let mut value = schema.to_value().ok()?;
    let definitions =
        ["$defs", "definitions"].iter().find_map(|name| value.as_object_mut()?.shift_remove(*name));
    replace_references(&mut value, definitions.as_ref().unwrap_or(&Value::Null), 0)?;
    value.is_object().then_some(value)
}

fn replace_references(value: &mut Value, definitions: &Value, depth: u32) -> Option<()> {
    if depth > 32 {
        return None;
    }
    match value {
        Value::Object(map) => {
            let name = map
                .get("$ref")
                .and_then(|reference| reference.as_str()?.rsplit('/').next().map(str::to_owned));
            if let Some(name) = name {
                let mut meant = definitions.get(&name)?.clone();
                // A description next to a reference is specific to this place.
                if let (Value::Object(meant), Some(Value::String(words))) =
                    (&mut meant, map.get("description"))
                {
                    meant.insert("description".to_owned(), Value::String(words.clone()));
                }
                *value = meant;
                return replace_references(value, definitions, depth + 1);
            }
            for (_, inner) in map.iter_mut() {
                replace_references(inner, definitions, depth + 1)?;
            }
        }
        Value::Array(list) => {
            for inner in list {
                replace_references(inner, definitions, depth + 1)?;
            }
        }
        _ => {}
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(value: Value) -> Raw {
        Raw::from_serialize(&value).unwrap()
    }

    fn tool() -> Raw {
        raw(json!({
            "$schema": "x", "type": "object",
            "properties": {
                "path": { "type": "string", "description": "where" },
                "range": { "type": ["array", "null"], "items": { "type": "integer", "format": "uint32" }, "minItems": 2 },
                "kind": { "$ref": "#/$defs/Kind", "description": "which" },
                "n": { "type": "integer", "default": 3 }
            },
            "required": ["path"],
            "additionalProperties": false,
            "$defs": { "Kind": { "type": "string", "enum": ["a", "b"] } }
        }))
    }

    #[test]
    fn strict_requires_everything_and_lets_what_was_optional_be_null() {
        assert_eq!(
            strict(&tool()).unwrap().to_value().unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "where" },
                    "range": { "type": ["array", "null"], "items": { "type": "integer" }, "minItems": 2 },
                    "kind": { "type": ["string", "null"], "enum": ["a", "b", null], "description": "which" },
                    "n": { "type": ["integer", "null"] }
                },
                "required": ["path", "range", "kind", "n"],
                "additionalProperties": false
            })
        );
        assert_eq!(strict(&raw(json!({ "type": "object" }))), None);
        let free = json!({ "type": "object", "properties": { "x": { "type": "object", "additionalProperties": true } } });
        assert_eq!(strict(&raw(free)), None);
    }

    #[test]
    fn nulls_are_left_out_and_numbers_stay_as_written() {
        let arguments = Arguments::from_text(r#"{"a":null,"b":[{"c":null,"d":1e2}],"e":"null"}"#);
        assert_eq!(without_nulls(arguments).as_text(), r#"{"b":[{"d":1e2}],"e":"null"}"#);
    }

    #[test]
    fn gemini_is_given_only_what_it_knows() {
        assert_eq!(
            gemini(&tool()).unwrap().to_value().unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "path": { "type": "string", "description": "where" },
                    "range": { "type": "array", "nullable": true, "items": { "type": "integer" }, "minItems": 2 },
                    "kind": { "type": "string", "enum": ["a", "b"], "description": "which" },
                    "n": { "type": "integer" }
                },
                "required": ["path"]
            })
        );
        assert_eq!(gemini(&raw(json!({ "type": "object", "properties": {} }))), None);
        let choice = json!({ "type": "object", "properties": { "x": { "anyOf": [{ "type": "string" }, { "type": "null" }] } } });
        assert_eq!(
            gemini(&raw(choice)).unwrap().to_value().unwrap()["properties"]["x"],
            json!({ "nullable": true, "type": "string" })
        );
    }
}
