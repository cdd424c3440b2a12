//! Arguments against the schema of their tool.
//!
//! The schemas are our own or come from servers, and use little: types, required, enums, items, bounds. A validator for all
//! of JSON Schema costs a minute of building for keywords nobody sends; what this one does not know it lets pass, as the
//! tool checks its values anyway. The words are AJV's, because models trained on Gemini CLI know them.

use serde_json::Value;

/// Reads numbers and booleans that were given as strings as what the schema wants, and says so. Nothing else is guessed.
pub(crate) fn coerce(schema: &Value, value: &mut Value) -> Vec<String> {
    let mut notes = Vec::new();
    let (Some(properties), Value::Object(object)) = (schema.get("properties"), value) else {
        return notes;
    };
    for (name, given) in object.iter_mut() {
        let Some(wanted) = properties.get(name).and_then(|property| property.get("type")) else {
            continue;
        };
        let Some(text) = given.as_str() else { continue };
        let read = match wanted.as_str() {
            Some("integer") => text.trim().parse::<i64>().ok().map(Value::from),
            Some("number") => text.trim().parse::<f64>().ok().and_then(as_number),
            Some("boolean") => text.trim().parse::<bool>().ok().map(Value::from),
            Some(_) | None => None,
        };
        if let Some(read) = read {
            notes.push(format!("`{name}` was given as a string and read as {read}."));
            *given = read;
        }
    }
    notes
}

fn as_number(number: f64) -> Option<Value> {
    serde_json::Number::from_f64(number).map(Value::Number)
}

/// Drops what an optional parameter says by null: models that were told of every parameter fill them in.
pub(crate) fn drop_nulls(schema: &Value, value: &mut Value) {
    let required: Vec<&str> = names(schema.get("required"));
    if let (Some(properties), Value::Object(object)) = (schema.get("properties"), value) {
        object.retain(|name, given| {
            let takes_null = properties.get(name).is_some_and(|property| allows(property, "null"));
            !given.is_null() || takes_null || required.contains(&name.as_str())
        });
    }
}

/// Everything that does not fit, or nothing.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let mut problems = Vec::new();
    look(schema, value, "params", &mut problems);
    if problems.is_empty() { Ok(()) } else { Err(problems.join(", ")) }
}

fn look(schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
    let mut wrong = |what: String| problems.push(format!("{place} {what}"));
    if let Some(kinds) = schema.get("type") {
        let kinds: Vec<&str> = names(Some(kinds)).into_iter().chain(kinds.as_str()).collect();
        if !kinds.iter().any(|kind| is_a(value, kind)) {
            return wrong(format!("must be {}", kinds.join(",")));
        }
    }
    if let Some(Value::Array(allowed)) = schema.get("enum")
        && !allowed.contains(value)
    {
        wrong("must be equal to one of the allowed values".to_owned());
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(number) = value.as_f64() {
        if let Some(least) = bound("minimum").filter(|least| number < *least) {
            wrong(format!("must be >= {least}"));
        }
        if let Some(most) = bound("maximum").filter(|most| number > *most) {
            wrong(format!("must be <= {most}"));
        }
    }
    let count = |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    match value {
        Value::String(text) => {
            if let Some(least) = count("minLength").filter(|least| text.chars().count() < *least) {
                wrong(format!("must NOT have fewer than {least} characters"));
            }
        }
        Value::Array(items) => {
            if let Some(least) = count("minItems").filter(|least| items.len() < *least) {
                wrong(format!("must NOT have fewer than {least} items"));
            }
            if let Some(most) = count("maxItems").filter(|most| items.len() > *most) {
                wrong(format!("must NOT have more than {most} items"));
            }
            if let Some(inner) = schema.get("items").filter(|inner| inner.is_object()) {
                for (at, item) in items.iter().enumerate() {
                    look(inner, item, &format!("{place}/{at}"), problems);
                }
            }
        }
        Value::Object(object) => {
            for name in names(schema.get("required")) {
                if !object.contains_key(name) {
                    wrong(format!("must have required property '{name}'"));
                }
            }
            let properties = schema.get("properties").and_then(Value::as_object);
            let known = |name: &str| properties.and_then(|properties| properties.get(name));
            if schema.get("additionalProperties") == Some(&Value::Bool(false))
                && object.keys().any(|name| known(name).is_none())
            {
                wrong("must NOT have additional properties".to_owned());
            }
            for (name, inner) in object {
                if let Some(schema) = known(name) {
                    look(schema, inner, &format!("{place}/{name}"), problems);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn names(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn allows(schema: &Value, kind: &str) -> bool {
    schema.get("type").is_some_and(|kinds| kinds == kind || names(Some(kinds)).contains(&kind))
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        // A type nobody knows cannot be held against the model.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1 },
                "limit": { "type": "integer", "minimum": 1 },
                "all": { "type": "boolean" },
                "what": { "type": "string", "enum": ["a", "b"] },
                "list": { "type": "array", "minItems": 1, "items": { "type": "object", "required": ["x"] } },
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn each_mistake_is_told_with_its_place() {
        for (value, expected) in [
            (json!({ "path": "a" }), Ok(())),
            (json!({}), Err("params must have required property 'path'")),
            (json!({ "path": 1 }), Err("params/path must be string")),
            (json!({ "path": "" }), Err("params/path must NOT have fewer than 1 characters")),
            (json!({ "path": "a", "limit": 0 }), Err("params/limit must be >= 1")),
            (json!({ "path": "a", "limit": 1.5 }), Err("params/limit must be integer")),
            (json!({ "path": "a", "limit": 2.0 }), Ok(())),
            (
                json!({ "path": "a", "what": "c" }),
                Err("params/what must be equal to one of the allowed values"),
            ),
            (json!({ "path": "a", "list": [] }), Err("params/list must NOT have fewer than 1 items")),
            (json!({ "path": "a", "list": [{}] }), Err("params/list/0 must have required property 'x'")),
            (json!({ "path": "a", "odd": 1 }), Err("params must NOT have additional properties")),
            (
                json!({ "limit": "x" }),
                Err("params must have required property 'path', params/limit must be integer"),
            ),
            (json!([]), Err("params must be object")),
        ] {
            assert_eq!(check(&schema(), &value), expected.map_err(str::to_owned), "{value}");
        }
    }

    #[test]
    fn numbers_and_booleans_given_as_strings_are_read_and_noted() {
        let mut value = json!({ "path": "5", "limit": "5", "all": "true", "what": "a" });
        let notes = coerce(&schema(), &mut value);
        assert_eq!(value, json!({ "path": "5", "limit": 5, "all": true, "what": "a" }));
        assert_eq!(
            notes,
            ["`limit` was given as a string and read as 5.", "`all` was given as a string and read as true."]
        );
        let mut value = json!({ "limit": "five", "all": "yes" });
        assert!(coerce(&schema(), &mut value).is_empty());
        assert_eq!(value, json!({ "limit": "five", "all": "yes" }));
    }

    #[test]
    fn null_means_left_out_where_that_is_allowed() {
        let mut value = json!({ "path": null, "limit": null });
        drop_nulls(&schema(), &mut value);
        assert_eq!(value, json!({ "path": null }));
    }
}
