//! Tests the tool specifications that the model is given.

use lathe_protocol::Toolset;
use lathe_testkit::golden;
use lathe_tools::Toolbox;
use serde_json::Value;

fn pretty(toolset: Toolset) -> String {
    // By way of a value, because a raw schema would stay on one line.
    let specs = serde_json::to_value(Toolbox::about(toolset)).unwrap();
    serde_json::to_string_pretty(&specs).unwrap() + "\n"
}

#[test]
fn all_toolsets_are_told_as_the_golden_files_say() {
    for toolset in Toolset::ALL {
        let path = format!("{}/tests/golden/{}.json", env!("CARGO_MANIFEST_DIR"), toolset.as_str());
        golden(path, &pretty(toolset));
    }
}

#[test]
fn they_are_told_the_same_every_time() {
    for toolset in Toolset::ALL {
        assert_eq!(pretty(toolset), pretty(toolset));
    }
}

#[test]
fn schemas_are_plain_objects() {
    for toolset in Toolset::ALL {
        for spec in Toolbox::specs(toolset) {
            let schema = spec.schema.to_value().unwrap();
            assert_eq!(schema["type"], "object", "{}", spec.name);
            assert!(schema["properties"].is_object(), "{}", spec.name);
            for (name, parameter) in schema["properties"].as_object().unwrap() {
                assert!(parameter["description"].is_string(), "{} {name}", spec.name);
                // The one parameter that takes any JSON (issue 16, line 14).
                let takes_any = (spec.name.as_str(), name.as_str()) == ("json_edit_tool", "value");
                assert_eq!(parameter["type"].is_string(), !takes_any, "{} {name}", spec.name);
            }
            check_plain(&schema, &spec.name);
        }
    }
}

/// Nothing that some provider refuses or that says nothing to a model.
fn check_plain(value: &Value, of: &str) {
    match value {
        Value::Object(object) => {
            for odd in [
                "$schema",
                "$ref",
                "$defs",
                "definitions",
                "format",
                "title",
                "default",
                "anyOf",
                "oneOf",
                "allOf",
            ] {
                assert!(!object.contains_key(odd), "{of}: {odd} in {value}");
            }
            object.values().for_each(|value| check_plain(value, of));
        }
        Value::Array(values) => values.iter().for_each(|value| check_plain(value, of)),
        Value::Null => panic!("{of}: null"),
        Value::String(text) => assert_ne!(text, "null", "{of}"),
        Value::Bool(_) | Value::Number(_) => {}
    }
}

#[test]
fn only_what_a_call_cannot_do_without_is_required() {
    let required = |toolset| -> Vec<(String, Vec<String>)> {
        let specs = Toolbox::specs(toolset).into_iter();
        let names = |schema: &Value| -> Vec<String> {
            serde_json::from_value(schema.get("required").cloned().unwrap_or(Value::Array(Vec::new())))
                .unwrap()
        };
        specs.map(|spec| (spec.name, names(&spec.schema.to_value().unwrap()))).collect()
    };
    let expect = |list: &[(&str, &[&str])]| -> Vec<(String, Vec<String>)> {
        list.iter()
            .map(|(name, fields)| (name.to_string(), fields.iter().map(|field| field.to_string()).collect()))
            .collect()
    };
    assert_eq!(
        required(Toolset::Lathe),
        expect(&[
            ("bash", &[]),
            ("view", &["path"]),
            ("search", &["pattern"]),
            ("glob", &["pattern"]),
            ("code", &["command"]),
            ("edit", &["path", "new_str"]),
            ("write", &["path", "content"]),
            ("apply_patch", &["patch"]),
            ("think", &["thought"]),
            ("todo", &["todos"]),
            ("remember", &["fact"]),
            ("ask_user", &["question"]),
            ("task_done", &[]),
        ])
    );
    assert_eq!(
        required(Toolset::Trae),
        expect(&[
            ("bash", &["command"]),
            ("str_replace_based_edit_tool", &["command", "path"]),
            ("json_edit_tool", &["operation", "file_path"]),
            ("sequentialthinking", &["thought", "next_thought_needed", "thought_number", "total_thoughts"]),
            ("ckg", &["command", "path", "identifier"]),
            ("task_done", &[]),
        ])
    );
}

#[test]
fn lathes_own_tools_cost_under_2400_tokens() {
    let specs = Toolbox::specs(Toolset::Lathe);
    let chars: usize =
        specs.iter().map(|spec| spec.name.len() + spec.description.len() + spec.schema.get().len()).sum();
    assert!(chars / 4 < 2400, "about {} tokens", chars / 4);
}
