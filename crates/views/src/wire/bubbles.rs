//! The text of bubbles: one readable line per call, in the form of the seed documents.

use lathe_protocol::{Arguments, ToolCall};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::frames::text;
use super::mask::mask;

/// The content of a bubble's frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Bubble {
    pub id: String,
    pub role: &'static str,
    pub content: String,
    pub timestamp: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// The user changed the call before it ran; the line shows what ran.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub edited: bool,
}

/// Characters of a text in a bubble.
const TEXT_MAX: usize = 1200;
/// Characters of arguments that are shown whole.
const ARGUMENTS_MAX: usize = 400;
/// Characters of one value where arguments are cut.
const VALUE_MAX: usize = 200;

/// Arguments that are shown first if not all fit.
const KEYS: [&str; 22] = [
    "command",
    "path",
    "file_path",
    "absolute_path",
    "dir_path",
    "paths",
    "json_path",
    "op",
    "operation",
    "pattern",
    "query",
    "url",
    "name",
    "identifier",
    "document_id",
    "title",
    "insert_line",
    "view_range",
    "start_line",
    "end_line",
    "description",
    "task_id",
];

pub(super) const SUMMING_UP: &str = "🧠总结中……";

/// The line of a thought, from a text that [`clip`] gave.
pub(super) fn thought(step: u32, clipped: &str) -> String {
    format!("🧠 sequentialthinking {step}：{clipped}")
}

pub(super) fn marked(content: &str, success: Option<bool>) -> String {
    match success {
        None => content.to_owned(),
        Some(true) => format!("{content} ✅"),
        Some(false) => format!("{content} ❌"),
    }
}

/// At most 1,200 characters, and a mark if there were more. What looks like a secret is not shown.
pub(super) fn clip(content: &str) -> String {
    match lathe_redact::masked_beginning(content, TEXT_MAX) {
        (whole, false) => whole.into_owned(),
        (beginning, true) => format!("{beginning}\n<response clipped>"),
    }
}

/// The line of a call. `workspace` makes paths whole where the form wants them so.
pub(super) fn call(call: &ToolCall, workspace: &str) -> String {
    let content = match &call.arguments {
        Arguments::Malformed(text) => format!("🔧{} {}", call.name, cut(text, ARGUMENTS_MAX)),
        Arguments::Json(raw) => {
            let mut arguments = serde_json::from_str::<Value>(raw.get()).unwrap_or_default();
            // Before they are written: there the beginning of a line looks like the middle of a word.
            mask(&mut arguments);
            match arguments {
                Value::Object(arguments) => of_object(&call.name, &arguments, workspace),
                other => format!("🔧{} {}", call.name, cut(&text(&other), ARGUMENTS_MAX)),
            }
        }
    };
    one_line(&lathe_redact::mask_shapes(&content))
}

fn of_object(name: &str, arguments: &Map<String, Value>, workspace: &str) -> String {
    let word = |key: &str| arguments.get(key).and_then(Value::as_str).filter(|word| !word.is_empty());
    let first = |keys: &[&str]| keys.iter().find_map(|key| word(key));
    let path = |spelled: &str| match spelled.starts_with('/') || workspace.is_empty() {
        true => spelled.to_owned(),
        false => format!("{workspace}/{spelled}"),
    };
    match name {
        "task_done" => return SUMMING_UP.to_owned(),
        "bash" | "Bash" | "run_shell_command" => {
            if let Some(command) = word("command") {
                return line(name, &json!({ "command": cut(command, TEXT_MAX) }));
            }
        }
        "json_edit_tool" | "json_edit_tool_cli" => {
            let op = first(&["op", "operation"]).map(|op| if op == "set" { "update" } else { op });
            let shown = object([
                ("path", first(&["path", "file_path"]).map(path).map(Value::from)),
                ("json_path", word("json_path").map(Value::from)),
                ("op", op.map(Value::from)),
            ]);
            return line(name, &shown);
        }
        "str_replace_based_edit_tool" | "edit_tool" | "edit_tool_cli" => {
            let command =
                word("command").map(|command| if command == "str_replace" { "replace" } else { command });
            let shown = object([
                ("command", command.map(Value::from)),
                ("path", first(&["path", "file_path"]).map(path).map(Value::from)),
                ("insert_line", arguments.get("insert_line").cloned()),
                ("view_range", arguments.get("view_range").cloned()),
            ]);
            return line(if name == "edit_tool_cli" { name } else { "edit_tool" }, &shown);
        }
        "quality_review" | "quality_review_tool" => {
            let rules = first(&["quality_review_rules", "rules"]).unwrap_or_default();
            return review(rules, first(&["file_path", "path", "target"]));
        }
        "docker_tool_executor" => {
            let folder = first(&["workspace", "working_dir"]).unwrap_or("/workspace");
            return line(name, &json!({ "workspace": folder, "routed": true }));
        }
        "online_doc_tool" => {
            if let Some(shown) = online_doc(arguments) {
                return shown;
            }
        }
        "ckg" => {
            if let (Some(command), Some(identifier)) = (word("command"), word("identifier")) {
                return format!("🔧ckg {command}: {}", cut(identifier, VALUE_MAX));
            }
        }
        _ => {
            if let Some(tool) = mcp_name(name, arguments) {
                let inner = arguments
                    .get("args")
                    .or_else(|| arguments.get("arguments"))
                    .filter(|_| name == "mcp_tool");
                let inner = match inner {
                    Some(Value::Object(inner)) => trimmed(inner),
                    _ => trimmed(arguments),
                };
                return line("mcp_tool", &json!({ "name": tool, "args": inner }));
            }
        }
    }
    line(name, &trimmed(arguments))
}

/// The name of a tool of an MCP server, without the server's.
fn mcp_name<'a>(name: &'a str, arguments: &'a Map<String, Value>) -> Option<&'a str> {
    if name == "mcp_tool" {
        return arguments.get("name").and_then(Value::as_str);
    }
    let rest = name.strip_prefix("mcp__").or_else(|| name.strip_prefix("mcp:"))?;
    let tool = rest.split_once("__").or_else(|| rest.split_once(':')).map_or(rest, |(_, tool)| tool);
    Some(tool)
}

fn online_doc(arguments: &Map<String, Value>) -> Option<String> {
    let word = |key: &str| arguments.get(key).and_then(Value::as_str).filter(|word| !word.is_empty());
    let document = || word("document_id").or_else(|| word("documentId")).map(|id| cut(id, VALUE_MAX));
    let shown = match word("command")? {
        "create" => format!("create: {}", cut(word("title")?, VALUE_MAX)),
        "detail" => format!("detail: {}", document()?),
        "edit" => {
            let title = word("title").map(|title| format!(" title={}", cut(title, VALUE_MAX)));
            format!("edit: {}{}", document()?, title.unwrap_or_default())
        }
        _ => return None,
    };
    Some(format!("🔧online_doc_tool {shown}"))
}

/// The line of a review, asked for by the model or made after an edit.
pub(super) fn review(rules: &str, target: Option<&str>) -> String {
    one_line(&line("quality_review", &json!({ "rules": cut(rules, 80), "target": target.unwrap_or("repo") })))
}

fn line(name: &str, arguments: &Value) -> String {
    format!("🔧{name} {}", text(arguments))
}

fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Value {
    Value::Object(members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect())
}

/// The arguments as they are or, if they are long, only those that show what is done.
fn trimmed(arguments: &Map<String, Value>) -> Value {
    let whole = Value::Object(arguments.clone());
    if text(&whole).chars().count() <= ARGUMENTS_MAX {
        return whole;
    }
    let kept = arguments.iter().filter(|(key, _)| KEYS.contains(&key.as_str()));
    let kept: Map<String, Value> = kept.map(|(key, value)| (key.clone(), shortened(value))).collect();
    let left = arguments.len() - kept.len();
    let mut kept = Value::Object(kept);
    if text(&kept).chars().count() > 3 * ARGUMENTS_MAX {
        kept = json!({});
    }
    if left > 0
        && let Value::Object(kept) = &mut kept
    {
        kept.insert("…".to_owned(), json!(left));
    }
    kept
}

fn shortened(value: &Value) -> Value {
    match value {
        Value::String(string) => Value::String(cut(string, VALUE_MAX)),
        other => other.clone(),
    }
}

/// At most so many characters, without what looks like a secret: half of one would not look like it.
fn cut(content: &str, most: usize) -> String {
    match lathe_redact::masked_beginning(content, most) {
        (whole, false) => whole.into_owned(),
        (beginning, true) => format!("{beginning}…"),
    }
}

/// A bubble of a call is one line, even if the model puts line breaks into a name.
fn one_line(content: &str) -> String {
    content
        .chars()
        .map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use lathe_protocol::CallId;

    use super::*;

    fn shown(name: &str, arguments: &str) -> String {
        let arguments = Arguments::from_text(arguments);
        call(&ToolCall { id: CallId::new("c1"), name: name.to_owned(), arguments, raw: None }, "/repo")
    }

    #[test]
    fn every_row_of_the_table_has_its_form() {
        let long = "x".repeat(5000);
        let table = [
            ("grep", r#"{"pattern":"日本","path":"src"}"#.to_owned(), r#"🔧grep {"pattern":"日本","path":"src"}"#.to_owned()),
            ("bash", r#"{"command":"ls -l /workspace","timeout":3}"#.to_owned(), r#"🔧bash {"command":"ls -l /workspace"}"#.to_owned()),
            (
                "json_edit_tool",
                r#"{"operation":"add","file_path":"/repo/trae.yaml","json_path":"$.a[0]","value":{"x":1},"pretty_print":true}"#.to_owned(),
                r#"🔧json_edit_tool {"path":"/repo/trae.yaml","json_path":"$.a[0]","op":"add"}"#.to_owned(),
            ),
            (
                "json_edit_tool_cli",
                r#"{"operation":"set","file_path":"a.json","json_path":"$.x","value":2}"#.to_owned(),
                r#"🔧json_edit_tool_cli {"path":"/repo/a.json","json_path":"$.x","op":"update"}"#.to_owned(),
            ),
            (
                "quality_review",
                r#"{"file_path":"/workspace/a.md","edited_snippet":"…","quality_review_rules":"required README"}"#.to_owned(),
                r#"🔧quality_review {"rules":"required README","target":"/workspace/a.md"}"#.to_owned(),
            ),
            ("mcp__web__search", r#"{"q":"docker compose"}"#.to_owned(), r#"🔧mcp_tool {"name":"search","args":{"q":"docker compose"}}"#.to_owned()),
            ("mcp_tool", r#"{"name":"search","args":{"q":"x"}}"#.to_owned(), r#"🔧mcp_tool {"name":"search","args":{"q":"x"}}"#.to_owned()),
            (
                "edit_tool",
                r#"{"command":"insert","path":"/repo/app.py","insert_line":42,"new_str":"a\nb"}"#.to_owned(),
                r#"🔧edit_tool {"command":"insert","path":"/repo/app.py","insert_line":42}"#.to_owned(),
            ),
            (
                "str_replace_based_edit_tool",
                r#"{"command":"str_replace","path":"/repo/app.py","old_str":"a","new_str":"b"}"#.to_owned(),
                r#"🔧edit_tool {"command":"replace","path":"/repo/app.py"}"#.to_owned(),
            ),
            (
                "edit_tool_cli",
                r#"{"command":"view","path":"app.py","view_range":[1,50]}"#.to_owned(),
                r#"🔧edit_tool_cli {"command":"view","path":"/repo/app.py","view_range":[1,50]}"#.to_owned(),
            ),
            ("docker_tool_executor", "{}".to_owned(), r#"🔧docker_tool_executor {"workspace":"/workspace","routed":true}"#.to_owned()),
            ("online_doc_tool", r#"{"command":"create","title":"项目周报","content":"<p>","description":"d"}"#.to_owned(), "🔧online_doc_tool create: 项目周报".to_owned()),
            ("online_doc_tool", r#"{"command":"detail","document_id":"123456"}"#.to_owned(), "🔧online_doc_tool detail: 123456".to_owned()),
            ("online_doc_tool", r#"{"command":"edit","document_id":"123456","content":"x"}"#.to_owned(), "🔧online_doc_tool edit: 123456".to_owned()),
            ("online_doc_tool", r#"{"command":"edit","document_id":"123456","title":"新标题"}"#.to_owned(), "🔧online_doc_tool edit: 123456 title=新标题".to_owned()),
            ("ckg", r#"{"command":"search_function","path":"/repo","identifier":"main"}"#.to_owned(), "🔧ckg search_function: main".to_owned()),
            ("ckg", r#"{"path":"/repo"}"#.to_owned(), r#"🔧ckg {"path":"/repo"}"#.to_owned()),
            ("task_done", r#"{"summary":"all"}"#.to_owned(), "🧠总结中……".to_owned()),
            ("write", format!(r#"{{"path":"a.rs","content":"{long}"}}"#), r#"🔧write {"path":"a.rs","…":1}"#.to_owned()),
            ("odd", "not json".to_owned(), "🔧odd not json".to_owned()),
            ("no\nname", "[1]".to_owned(), "🔧no name [1]".to_owned()),
        ];
        for (name, arguments, wanted) in table {
            assert_eq!(shown(name, &arguments), wanted);
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_not_shown() {
        let shown = shown("bash", r#"{"command":"API_KEY=sk-abcdefghijklmnopqrst ./run"}"#);
        assert_eq!(shown, r#"🔧bash {"command":"API_KEY=«secret» ./run"}"#);
    }

    #[test]
    fn what_begins_a_line_of_an_argument_is_masked_too() {
        let token = "ghp_abcdefghijklmnopqrstuvwxyz";
        for (name, arguments, wanted) in [
            (
                "create_file",
                format!(r#"{{"path":"a","content":"A\n{token}\nB"}}"#),
                r#"{"path":"a","content":"A\n«secret»\nB"}"#,
            ),
            (
                "edit",
                format!(r#"{{"old":"a\t{token}","new":"b\nSENDGRID_KEY=abcdef123456"}}"#),
                r#"{"old":"a\t«secret»","new":"b\nSENDGRID_KEY=«secret»"}"#,
            ),
            (
                "odd",
                format!(r#"{{"{token}":"x","api_key":"abc-12"}}"#),
                r#"{"«secret»":"x","api_key":"«secret»"}"#,
            ),
            ("odd", format!(r#"{{"broken": "A\n{token}"#), r#"{"broken": "A\n«secret»"#),
            ("odd", format!(r#"["A\n{token}"]"#), r#"["A\n«secret»"]"#),
        ] {
            assert_eq!(shown(name, &arguments), format!("🔧{name} {wanted}"));
        }
    }

    #[test]
    fn a_text_of_more_than_1200_characters_is_clipped() {
        assert_eq!(clip(&"é".repeat(1200)), "é".repeat(1200));
        assert_eq!(clip(&"é".repeat(1201)), format!("{}\n<response clipped>", "é".repeat(1200)));
    }
}
