//! `docs/server.md` names everything that is sent over the wire.

use std::collections::BTreeSet;
use std::path::Path;

use lathe_protocol::Mode;
use serde_json::Value;

use crate::kit::{Server, cassette};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn document() -> String {
    std::fs::read_to_string(repository().join("docs/server.md")).unwrap()
}

/// Quoted words that directly follow one of these beginnings, apart from blanks.
fn quoted_after(text: &str, beginnings: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for beginning in beginnings {
        for rest in text.split(beginning).skip(1) {
            let quoted = rest.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let word = quoted
                .map(|(word, _)| word)
                .filter(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c == '_'));
            found.extend(word.map(str::to_owned));
        }
    }
    found
}

/// Every type of frame, from where frames are made.
fn frame_types() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for folder in ["crates/views/src/wire", "crates/server/src/ws"] {
        for file in std::fs::read_dir(repository().join(folder)).unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            found.extend(quoted_after(
                &text,
                &["out.push(", "out.push_raw(", "self.push(", "note(", "reply("],
            ));
            found.extend(quoted_after(&text, &["json!({ \"type\":"]));
            // What is happening this moment is a pair of its type and its data.
            for line in text.lines().filter(|line| line.contains(", Data::")) {
                found.extend(quoted_after(line, &["("]));
            }
        }
    }
    found
}

#[test]
fn every_frame_is_in_the_document_and_the_unusual_ones_have_an_example() {
    let (document, frames) = (document(), frame_types());
    // This checks the search itself: it finds what is known to be sent.
    for known in
        ["bubble", "step", "delta", "tool_output", "file_changed", "completed", "receipt", "ping", "question"]
    {
        assert!(frames.contains(known), "{known} is not found in the source: {frames:?}");
    }
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    for frame in &frames {
        let named = rows
            .iter()
            .any(|row| row.split('|').nth(1).is_some_and(|cell| cell.contains(&format!("`{frame}`"))));
        assert!(named, "`{frame}` is sent and has no row in docs/server.md");
    }
    for frame in ["status", "receipt", "warning"] {
        let example =
            document.lines().find(|line| line.trim_start().starts_with(&format!("{{\"type\": \"{frame}\"")));
        let example = example.unwrap_or_else(|| panic!("`{frame}` has no example in docs/server.md"));
        let example: Value = serde_json::from_str(example.trim()).unwrap();
        assert!(example["data"].is_object(), "{example}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_parameter_and_every_field_of_a_run_request_is_in_the_document() {
    let server = Server::start(cassette([]), Mode::Default).await;
    let (document, (_, described)) = (document(), server.get("/openapi.json").await);
    let mut missing = BTreeSet::new();
    let mut look = |name: &str, place: &str| {
        if !document.contains(&format!("`{name}`")) {
            missing.insert(format!("{name} ({place})"));
        }
    };
    for (path, item) in described["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            let parameters = operation["parameters"].as_array().unwrap();
            for parameter in parameters.iter().filter(|parameter| parameter["in"] == "query") {
                look(parameter["name"].as_str().unwrap(), path);
            }
        }
    }
    let request = described["components"]["schemas"]["RunRequest"]["properties"].as_object().unwrap();
    assert!(request.len() > 15, "{}", request.len());
    request.keys().for_each(|name| look(name, "RunRequest"));
    assert!(missing.is_empty(), "not in docs/server.md: {missing:?}");
    server.stop().await;
}
