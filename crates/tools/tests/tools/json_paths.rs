//! Tests JSONPath in the forms in which Trae's users write it.

use lathe_protocol::Toolset;
use serde_json::{Value, json};

use crate::bench::trae;

const FILE: &str = "{\n  \"foo-bar\": 1,\n  \"users\": [{\"n\": 1}, {\"n\": 2}],\n  \"o\": {\"0\": 1},\n  \"x\": {\"y\": 1},\n  \"x.y\": 2\n}\n";

#[tokio::test]
async fn paths_with_one_meaning_are_understood_by_every_operation() {
    for (operation, path, value, (old, new)) in [
        ("set", "$.foo-bar", json!([1]), ("\"foo-bar\": 1", "\"foo-bar\": [1]")),
        ("set", "users[0].n", json!("a"), ("[{\"n\": 1}", "[{\"n\": \"a\"}")),
        ("set", "$.users.1.n", json!(null), ("{\"n\": 2}]", "{\"n\": null}]")),
        ("set", "$.o.0", json!(true), ("{\"0\": 1}", "{\"0\": true}")),
        ("remove", "users.0", Value::Null, ("[{\"n\": 1}, {\"n\": 2}]", "[{\"n\": 2}]")),
        ("add", "x.new-key", json!(3), ("{\"y\": 1}", "{\"y\": 1,\"new-key\": 3}")),
    ] {
        let mut bench = trae();
        let file = bench.put("a.json", FILE);
        let call = json!({ "operation": operation, "file_path": file, "json_path": path, "value": value, "pretty_print": false });
        let told = bench.told("json_edit_tool", call).await;
        assert!(told.starts_with("Successfully"), "{path}: {told}");
        assert_eq!(bench.get("a.json"), FILE.replace(old, new), "{path}");
    }
}

#[tokio::test]
async fn what_could_mean_two_things_shows_the_right_spelling_and_changes_nothing() {
    for (path, spellings) in [
        ("x.y", &["$.x.y", "$['x.y']"][..]),
        ("$.none.0", &["$.none[0]", "$.none['0']"]),
        ("$.foo bar", &["$['odd-name']"]),
    ] {
        let mut bench = trae();
        let file = bench.put("a.json", FILE);
        let call = json!({ "operation": "set", "file_path": file, "json_path": path, "value": 9 });
        let (_, told) = bench.refused("json_edit_tool", call).await;
        assert!(
            told.contains("Invalid JSONPath") && spellings.iter().all(|spelling| told.contains(spelling)),
            "{told}"
        );
        assert_eq!(bench.get("a.json"), FILE);
    }
}

#[tokio::test]
async fn an_empty_path_views_the_whole_file() {
    let mut bench = trae();
    let file = bench.put("a.json", FILE);
    let told = bench
        .told("json_edit_tool", json!({ "operation": "view", "file_path": file, "json_path": "" }))
        .await;
    assert!(told.starts_with("JSON content of"), "{told}");
    let call = json!({ "operation": "remove", "file_path": file, "json_path": " " });
    assert!(bench.refused("json_edit_tool", call).await.1.contains("json_path parameter is required"));
}

#[test]
fn any_value_may_be_given() {
    let specs = lathe_tools::Toolbox::specs(Toolset::Trae);
    let spec = specs.iter().find(|spec| spec.name == "json_edit_tool").unwrap();
    let schema: Value = serde_json::from_str(spec.schema.get()).unwrap();
    let value = schema["properties"]["value"].as_object().unwrap();
    assert!(!value.contains_key("type") && value.contains_key("description"), "{value:?}");
}
