//! JSON schemas of parameters, derived from their types and limited to what every provider accepts.

use lathe_protocol::Raw;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of `T` as an object of plain parameters. An optional parameter is one that is not required, not one that may
/// be null: models fill in nulls where they see them.
pub(crate) fn schema_of<T: JsonSchema>() -> Raw {
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    let mut value = schema.to_value();
    tidy(&mut value);
    if let Value::Object(object) = &mut value {
        object.shift_remove("title");
        object.shift_remove("description");
        object.entry("properties").or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    // A JSON value always serialises; a null here would fail the golden test.
    Raw::from_serialize(&value).unwrap_or_else(|_| Raw::null())
}

fn tidy(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.shift_remove("format");
            if object.get("default") == Some(&Value::Null) {
                object.shift_remove("default");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    object.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(variants)) = object.get_mut("enum") {
                variants.retain(|variant| !variant.is_null());
            }
            object.values_mut().for_each(tidy);
        }
        Value::Array(values) => values.iter_mut().for_each(tidy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
