//! Validates arguments against the schema of their tool.
//!
//! The schemas are Lathe's own or come from programs and servers of the user's. A validator for all of JSON Schema
//! costs a minute of building for keywords that no server sends (`if`, `dependentSchemas`, `unevaluatedProperties`,
//! formats). This one passes over keywords that it does not know, as the tool checks its values anyway. References
//! lead into the schema itself only. The wording is AJV's, because models trained on Gemini CLI know it.

use std::cell::Cell;

use serde_json::Value;

/// Reads numbers and booleans that were given as strings as the type that the schema wants. Returns a note for each.
/// Nothing else is guessed.
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

/// Drops optional parameters whose value is null: models that know every parameter fill them in.
pub(crate) fn drop_nulls(schema: &Value, value: &mut Value) {
    let required: Vec<&str> = names(schema.get("required"));
    if let (Some(properties), Value::Object(object)) = (schema.get("properties"), value) {
        object.retain(|name, given| {
            let takes_null = properties.get(name).is_some_and(|property| allows(property, "null"));
            !given.is_null() || takes_null || required.contains(&name.as_str())
        });
    }
}

/// Checks a value against a schema. The error lists everything that does not fit.
pub(crate) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    let mut problems = Vec::new();
    SchemaCheck { whole: schema, left: STEPS.into(), depth: 0.into() }.look(
        schema,
        value,
        "params",
        &mut problems,
    );
    if problems.is_empty() { Ok(()) } else { Err(problems.join(", ")) }
}

/// Schemas that are inspected for one value; more means a schema that leads to itself.
const STEPS: u32 = 20_000;

/// Levels of nested schemas.
const DEPTH: u32 = 64;

/// Bytes of a compiled pattern.
const PATTERN: usize = 1 << 20;

struct SchemaCheck<'a> {
    /// The schema that references lead into.
    whole: &'a Value,
    left: Cell<u32>,
    depth: Cell<u32>,
}

impl SchemaCheck<'_> {
    fn fits(&self, schema: &Value, value: &Value) -> bool {
        let mut problems = Vec::new();
        self.look(schema, value, "", &mut problems);
        problems.is_empty()
    }

    fn look(&self, schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
        let Some(left) = self.left.get().checked_sub(1).filter(|_| self.depth.get() < DEPTH) else { return };
        self.left.set(left);
        self.depth.set(self.depth.get() + 1);
        self.one(schema, value, place, problems);
        self.depth.set(self.depth.get() - 1);
    }

    fn one(&self, schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
        if *schema == Value::Bool(false) {
            return problems.push(format!("{place} boolean schema is false"));
        }
        if let Some(kinds) = schema.get("type") {
            let kinds: Vec<&str> = names(Some(kinds)).into_iter().chain(kinds.as_str()).collect();
            if !kinds.iter().any(|kind| is_a(value, kind)) {
                return problems.push(format!("{place} must be {}", kinds.join(",")));
            }
        }
        self.combined(schema, value, place, problems);
        let mut wrong = |what: String| problems.push(format!("{place} {what}"));
        if let Some(Value::Array(allowed)) = schema.get("enum")
            && !allowed.contains(value)
        {
            wrong("must be equal to one of the allowed values".to_owned());
        }
        if schema.get("const").is_some_and(|only| only != value) {
            wrong("must be equal to constant".to_owned());
        }
        match value {
            Value::Number(_) => number(schema, value.as_f64().unwrap_or_default(), &mut wrong),
            Value::String(text) => string(schema, text, &mut wrong),
            Value::Array(items) => self.array(schema, items, place, problems),
            Value::Object(object) => self.object(schema, object, place, problems),
            Value::Null | Value::Bool(_) => {}
        }
    }

    /// Checks the parts of the schema that are other schemas.
    fn combined(&self, schema: &Value, value: &Value, place: &str, problems: &mut Vec<String>) {
        let list = |key: &str| schema.get(key).and_then(Value::as_array);
        let reference = schema.get("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'));
        if let Some(target) = reference.and_then(|path| self.whole.pointer(path)) {
            self.look(target, value, place, problems);
        }
        for each in list("allOf").into_iter().flatten() {
            self.look(each, value, place, problems);
        }
        let mut wrong = |what: &str| problems.push(format!("{place} {what}"));
        if list("anyOf").is_some_and(|all| !all.iter().any(|one| self.fits(one, value))) {
            wrong("must match a schema in anyOf");
        }
        if list("oneOf").is_some_and(|all| all.iter().filter(|one| self.fits(one, value)).count() != 1) {
            wrong("must match exactly one schema in oneOf");
        }
        if schema.get("not").is_some_and(|not| self.fits(not, value)) {
            wrong("must NOT be valid");
        }
    }

    fn array(&self, schema: &Value, items: &[Value], place: &str, problems: &mut Vec<String>) {
        let mut wrong = |what: String| problems.push(format!("{place} {what}"));
        if let Some(least) = count(schema, "minItems").filter(|least| items.len() < *least) {
            wrong(format!("must NOT have fewer than {least} items"));
        }
        if let Some(most) = count(schema, "maxItems").filter(|most| items.len() > *most) {
            wrong(format!("must NOT have more than {most} items"));
        }
        let twice =
            || items.iter().enumerate().find(|(at, item)| items.iter().take(*at).any(|one| one == *item));
        if schema.get("uniqueItems") == Some(&Value::Bool(true))
            && let Some((at, _)) = twice()
        {
            wrong(format!("must NOT have duplicate items (item {at} is one)"));
        }
        let first = schema.get("prefixItems").and_then(Value::as_array);
        for (at, item) in items.iter().enumerate() {
            let own = first.and_then(|first| first.get(at)).or_else(|| schema.get("items"));
            if let Some(inner) = own {
                self.look(inner, item, &format!("{place}/{at}"), problems);
            }
        }
    }

    fn object(
        &self,
        schema: &Value,
        object: &serde_json::Map<String, Value>,
        place: &str,
        problems: &mut Vec<String>,
    ) {
        let mut wrong = |what: String| problems.push(format!("{place} {what}"));
        for name in names(schema.get("required")) {
            if !object.contains_key(name) {
                wrong(format!("must have required property '{name}'"));
            }
        }
        if let Some(least) = count(schema, "minProperties").filter(|least| object.len() < *least) {
            wrong(format!("must NOT have fewer than {least} properties"));
        }
        if let Some(most) = count(schema, "maxProperties").filter(|most| object.len() > *most) {
            wrong(format!("must NOT have more than {most} properties"));
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        let patterns = schema.get("patternProperties").and_then(Value::as_object);
        let others = schema.get("additionalProperties");
        let mut has_others = false;
        for (name, inner) in object {
            let place = format!("{place}/{name}");
            let own = properties.and_then(|properties| properties.get(name));
            let by_pattern = patterns.into_iter().flatten().filter(|(pattern, _)| matches(pattern, name));
            let known: Vec<&Value> = own.into_iter().chain(by_pattern.map(|(_, schema)| schema)).collect();
            match others {
                Some(Value::Bool(false)) if known.is_empty() => has_others = true,
                Some(schema) if known.is_empty() => self.look(schema, inner, &place, problems),
                Some(_) | None => known.iter().for_each(|schema| self.look(schema, inner, &place, problems)),
            }
        }
        if has_others {
            problems.push(format!("{place} must NOT have additional properties"));
        }
    }
}

fn number(schema: &Value, number: f64, wrong: &mut impl FnMut(String)) {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(least) = bound("minimum").filter(|least| number < *least) {
        wrong(format!("must be >= {least}"));
    }
    if let Some(most) = bound("maximum").filter(|most| number > *most) {
        wrong(format!("must be <= {most}"));
    }
    if let Some(least) = bound("exclusiveMinimum").filter(|least| number <= *least) {
        wrong(format!("must be > {least}"));
    }
    if let Some(most) = bound("exclusiveMaximum").filter(|most| number >= *most) {
        wrong(format!("must be < {most}"));
    }
    let is_whole = |step: f64| ((number / step) - (number / step).round()).abs() < 1e-9;
    if let Some(step) = bound("multipleOf").filter(|step| *step > 0.0 && !is_whole(*step)) {
        wrong(format!("must be multiple of {step}"));
    }
}

fn string(schema: &Value, text: &str, wrong: &mut impl FnMut(String)) {
    if let Some(least) = count(schema, "minLength").filter(|least| text.chars().count() < *least) {
        wrong(format!("must NOT have fewer than {least} characters"));
    }
    if let Some(most) = count(schema, "maxLength").filter(|most| text.chars().count() > *most) {
        wrong(format!("must NOT have more than {most} characters"));
    }
    if let Some(pattern) =
        schema.get("pattern").and_then(Value::as_str).filter(|pattern| !matches(pattern, text))
    {
        wrong(format!("must match pattern \"{pattern}\""));
    }
}

fn count(schema: &Value, key: &str) -> Option<usize> {
    schema.get(key).and_then(Value::as_u64).and_then(|count| usize::try_from(count).ok())
}

/// Tells whether a text matches a pattern. A pattern that does not compile is not held against the model.
fn matches(pattern: &str, text: &str) -> bool {
    let compiled = regex::RegexBuilder::new(pattern).size_limit(PATTERN).build();
    compiled.map_or(true, |pattern| pattern.is_match(text))
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
        // A type that is not known cannot be held against the model.
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
    fn the_keywords_of_foreign_schemas_count() {
        let cases = [
            (json!({ "pattern": "^a+$" }), json!("aa"), json!("ab"), "must match pattern \"^a+$\""),
            (json!({ "maxLength": 2 }), json!("äö"), json!("abc"), "must NOT have more than 2 characters"),
            (json!({ "const": 3 }), json!(3), json!(4), "must be equal to constant"),
            (json!({ "exclusiveMinimum": 1 }), json!(2), json!(1), "must be > 1"),
            (json!({ "multipleOf": 0.5 }), json!(1.5), json!(1.2), "must be multiple of 0.5"),
            (
                json!({ "uniqueItems": true }),
                json!([1, 2]),
                json!([1, 1]),
                "must NOT have duplicate items (item 1 is one)",
            ),
            (json!({ "not": { "type": "null" } }), json!(1), json!(null), "must NOT be valid"),
            (
                json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] }),
                json!("x"),
                json!(true),
                "must match exactly one schema in oneOf",
            ),
            (
                json!({ "anyOf": [{ "minimum": 5 }, { "const": 1 }] }),
                json!(1),
                json!(2),
                "must match a schema in anyOf",
            ),
            (
                json!({ "$ref": "#/$defs/n", "$defs": { "n": { "type": "integer" } } }),
                json!(1),
                json!("x"),
                "must be integer",
            ),
            (json!({ "allOf": [{ "minimum": 2 }] }), json!(2), json!(1), "must be >= 2"),
        ];
        for (schema, good, bad, expected) in cases {
            assert_eq!(check(&schema, &good), Ok(()), "{schema}");
            assert_eq!(check(&schema, &bad), Err(format!("params {expected}")), "{schema}");
        }
        let others = json!({ "properties": { "a": {} }, "additionalProperties": { "type": "integer" } });
        assert_eq!(check(&others, &json!({ "a": "x", "b": 1 })), Ok(()));
        assert_eq!(check(&others, &json!({ "b": "x" })), Err("params/b must be integer".to_owned()));
    }

    #[test]
    fn a_schema_that_leads_to_itself_comes_to_an_end() {
        let tree = json!({ "properties": { "next": { "$ref": "#" } }, "additionalProperties": false });
        assert_eq!(check(&tree, &json!({ "next": { "next": {} } })), Ok(()));
        assert!(check(&tree, &json!({ "next": { "odd": 1 } })).is_err());
        let endless = json!({ "anyOf": [{ "$ref": "#" }, { "$ref": "#" }] });
        let _ = check(&endless, &json!(1));
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
