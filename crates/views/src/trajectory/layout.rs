//! JSON laid out as Python's `json.dump(…, indent=2, ensure_ascii=False)` does it.
//!
//! Compact text is laid out rather than a value serialised prettily, because arguments are kept as the model wrote them: a
//! pretty serialiser copies raw JSON as one line, and a value in between would change numbers.

/// Appends compact JSON, with `depth` steps of indentation after each line break.
pub(crate) fn lay_out(json: &str, mut depth: usize, out: &mut String) {
    let bytes = json.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                let end = end_of_string(bytes, at);
                out.push_str(&json[at..end]);
                at = end;
                continue;
            }
            open @ (b'{' | b'[') => {
                out.push(char::from(open));
                if let Some(close @ (b'}' | b']')) = bytes.get(at + 1) {
                    out.push(char::from(*close));
                    at += 2;
                    continue;
                }
                depth += 1;
                new_line(depth, out);
            }
            close @ (b'}' | b']') => {
                depth = depth.saturating_sub(1);
                new_line(depth, out);
                out.push(char::from(close));
            }
            b',' => {
                out.push(',');
                new_line(depth, out);
            }
            b':' => out.push_str(": "),
            // Outside strings JSON is ASCII.
            other => out.push(char::from(other)),
        }
        at += 1;
    }
}

/// The place after the closing quote.
fn end_of_string(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn new_line(depth: usize, out: &mut String) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_laid_out_as_python_does_it_and_keeps_every_token() {
        let mut out = String::new();
        lay_out(r#"{"a":[1e2,{},[]],"b":{"c":"x, \"y\": {é}\\"}}"#, 0, &mut out);
        assert_eq!(
            out,
            "{\n  \"a\": [\n    1e2,\n    {},\n    []\n  ],\n  \"b\": {\n    \"c\": \"x, \\\"y\\\": {é}\\\\\"\n  }\n}"
        );
    }

    #[test]
    fn it_agrees_with_serde_on_values_without_raw_json() {
        let value = serde_json::json!({"a": [], "b": [{"c": null, "d": "\n\u{1}"}], "e": {"f": 1.5}});
        let mut out = String::new();
        lay_out(&value.to_string(), 0, &mut out);
        assert_eq!(out, serde_json::to_string_pretty(&value).unwrap());
    }
}
