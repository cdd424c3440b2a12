//! The reference is made from the same types, and reads as it did.

use lathe_config::{Settings, documentation};

#[test]
fn the_reference_is_as_it_was_looked_at() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/config/golden/reference.md");
    let actual = documentation();
    if std::env::var_os("UPDATE_GOLDEN").is_some_and(|value| value == "1") {
        std::fs::write(path, &actual).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    for (number, (is, was)) in actual.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, was, "line {}; if it is right now, run with UPDATE_GOLDEN=1", number + 1);
    }
    assert_eq!(
        actual.lines().count(),
        golden.lines().count(),
        "run with UPDATE_GOLDEN=1 and look at `git diff`"
    );
}

/// By the serialised types, not by the schema the reference is made from.
#[test]
fn the_reference_mentions_each_key() {
    let text = documentation();
    let mut missing = Vec::new();
    let settings = serde_json::to_value(Settings::default()).unwrap();
    for (section, value) in settings.as_object().unwrap() {
        let keys: Vec<String> = match value.as_object() {
            Some(members) if !members.is_empty() => {
                members.keys().map(|key| format!("`{section}.{key}`")).collect()
            }
            Some(_) if section == "check" => vec!["`[check]`".to_owned()],
            Some(_) => vec![format!("`[{section}.NAME]`")],
            None => vec![format!("`{section}`")],
        };
        missing.extend(keys.into_iter().filter(|key| !text.contains(key)));
    }
    for (section, value) in [
        ("providers", serde_json::to_value(lathe_config::ProviderSection::default()).unwrap()),
        ("mcp_servers", serde_json::to_value(lathe_config::McpServerSection::default()).unwrap()),
        ("models", serde_json::to_value(lathe_config::ModelSection::default()).unwrap()),
    ] {
        let keys = value.as_object().unwrap().keys().map(|key| format!("`{section}.NAME.{key}`"));
        missing.extend(keys.filter(|key| !text.contains(key)));
    }
    assert_eq!(missing, [] as [String; 0]);
}
