//! The public compliance suite of RFC 9535, through the same call the tool makes.

use lathe_edit::data::{DataDocument, DataError, DataLanguage};
use serde_json::Value;

/// Cases that fail, each with its reason. A case that begins to pass must leave the list.
const KNOWN: [(&str, &str); 0] = [];

#[test]
fn the_jsonpath_compliance_suite_passes() {
    let suite: Value = serde_json::from_str(include_str!("../data/jsonpath-compliance/cts.json")).unwrap();
    let cases = suite["tests"].as_array().unwrap();
    let mut failed: Vec<String> = Vec::new();
    for case in cases {
        let name = case["name"].as_str().unwrap();
        if let Err(why) = passes(case) {
            failed.push(format!("{name}: {} {why}", case["selector"]));
        }
    }
    let known: Vec<&str> = KNOWN.iter().map(|(name, _)| *name).collect();
    let names: Vec<&str> = failed.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(names, known, "of {}: {failed:#?}", cases.len());
    assert!(cases.len() >= 680);
}

fn passes(case: &Value) -> Result<(), String> {
    let selector = case["selector"].as_str().unwrap();
    let text = case.get("document").unwrap_or(&Value::Null).to_string();
    let got = DataDocument::parse(DataLanguage::Json, &text).unwrap().view(selector);
    if case["invalid_selector"] == Value::Bool(true) {
        return match got {
            Err(DataError::Path { .. }) => Ok(()),
            other => Err(format!("accepted: {other:?}")),
        };
    }
    let got = Value::Array(got.map_err(|error| error.to_string())?);
    let right = match case.get("results") {
        Some(any) => any.as_array().unwrap().contains(&got),
        None => case["result"] == got,
    };
    if right { Ok(()) } else { Err(format!("gave {got}")) }
}
