//! Shows a Jupyter notebook as its cells: sources in full, outputs shortened, pictures named.

use serde_json::Value;

/// Lines and bytes shown of one output.
const LINES: usize = 20;
const BYTES: usize = 2000;

/// The cells as text. None if the content is not a notebook.
pub(super) fn cells(content: &[u8]) -> Option<Vec<String>> {
    let notebook: Value = serde_json::from_slice(content).ok()?;
    let language = notebook
        .pointer("/metadata/kernelspec/language")
        .or_else(|| notebook.pointer("/metadata/language_info/name"))
        .and_then(Value::as_str)
        .unwrap_or("code");
    let cells = notebook.get("cells")?.as_array()?;
    Some(cells.iter().enumerate().map(|(at, cell)| shown(at + 1, cell, language)).collect())
}

fn shown(number: usize, cell: &Value, language: &str) -> String {
    let kind = cell.get("cell_type").and_then(Value::as_str).unwrap_or("raw");
    let kind = if kind == "code" { language } else { kind };
    let mut text = format!("--- cell {number} ({kind}) ---\n{}", lines(cell.get("source")).trim_end());
    for output in cell.get("outputs").and_then(Value::as_array).into_iter().flatten() {
        text.push_str(&format!("\n[output] {}", output_of(output)));
    }
    text
}

fn output_of(output: &Value) -> String {
    let name = |key: &str| output.get(key).and_then(Value::as_str).unwrap_or_default();
    match name("output_type") {
        "stream" => short(&lines(output.get("text"))),
        "error" => short(&format!("{}: {}", name("ename"), name("evalue"))),
        _ => {
            let data = output.get("data").and_then(Value::as_object);
            let text = data.and_then(|data| data.get("text/plain")).map(|text| short(&lines(Some(text))));
            let others =
                data.into_iter().flat_map(serde_json::Map::keys).filter(|kind| *kind != "text/plain");
            let others: Vec<&str> = others.map(String::as_str).collect();
            match (text, others.is_empty()) {
                (Some(text), true) => text,
                (Some(text), false) => format!("{text} [{}]", others.join(", ")),
                (None, _) => format!("[{}]", others.join(", ")),
            }
        }
    }
}

/// Text that may be one string or a list of lines.
fn lines(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(lines)) => lines.iter().filter_map(Value::as_str).collect(),
        Some(_) | None => String::new(),
    }
}

fn short(text: &str) -> String {
    let text = text.trim_end();
    let end = text.match_indices('\n').nth(LINES - 1).map_or(text.len(), |(at, _)| at);
    let end = lathe_redact::beginning(text, end.min(BYTES)).len();
    match text.get(..end) {
        Some(shown) if shown.len() < text.len() => {
            format!("{shown}\n... ({} more bytes)", text.len() - shown.len())
        }
        Some(_) | None => text.to_owned(),
    }
}
