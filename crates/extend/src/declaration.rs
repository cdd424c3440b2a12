//! Function declarations, in the forms in which programs print them.

use lathe_protocol::Raw;
use serde_json::{Value, json};

/// Tools taken from one program at most.
const MOST: usize = 500;

/// A tool as its program declares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveredTool {
    /// The name that the program knows.
    pub name: String,
    /// The tool's own description, and the way it is called.
    pub description: String,
    pub schema: Raw,
}

impl DiscoveredTool {
    /// The name that the model calls: in characters that every provider accepts, and within every provider's length
    /// limit.
    pub fn model_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        let name: String = format!("discovered_tool_{}", self.name).chars().map(plain).collect();
        if name.len() <= 63 {
            return name;
        }
        // All of it is ASCII here.
        let (head, tail) = (name.get(..28), name.get(name.len() - 32..));
        format!("{}___{}", head.unwrap_or_default(), tail.unwrap_or_default())
    }
}

/// The declarations of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Discovery {
    pub tools: Vec<DiscoveredTool>,
    /// The number of declarations without a name, which are skipped.
    pub nameless: usize,
    /// The number of tools beyond the maximum of one program.
    pub left_out: usize,
}

impl Discovery {
    /// Warnings for the author of the program.
    pub fn warnings(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.nameless > 0 {
            let what = if self.nameless == 1 { "a function" } else { "functions" };
            words.push(format!(
                "the tool discovery command declares {what} without a name: {} passed over",
                self.nameless
            ));
        }
        if self.left_out > 0 {
            words.push(format!(
                "the tool discovery command declares more than {MOST} functions: {} left out",
                self.left_out
            ));
        }
        words
    }
}

/// Parses a list of declarations, or of objects with such lists.
pub(crate) fn read(printed: &[u8], discovery: &str, call: &str) -> Result<Discovery, String> {
    let value: Value =
        serde_json::from_slice(printed).map_err(|error| format!("its output is not JSON ({error})"))?;
    let Value::Array(items) = value else {
        return Err("its output is not a JSON list of functions".to_owned());
    };
    let mut found = Discovery::default();
    for item in &items {
        let inner = item.get("function_declarations").or_else(|| item.get("functionDeclarations"));
        let declared = match inner {
            Some(Value::Array(inner)) => inner.as_slice(),
            Some(_) | None => std::slice::from_ref(item),
        };
        for one in declared {
            match tool(one, discovery, call) {
                Some(tool) => found.tools.push(tool),
                None => found.nameless += 1,
            }
        }
    }
    found.left_out = found.tools.len().saturating_sub(MOST);
    found.tools.truncate(MOST);
    Ok(found)
}

/// Returns None for a declaration without a name.
fn tool(declared: &Value, discovery: &str, call: &str) -> Option<DiscoveredTool> {
    let name = declared.get("name")?.as_str().filter(|name| !name.trim().is_empty())?;
    let own = declared.get("description").and_then(Value::as_str).unwrap_or_default();
    let schema = match declared.get("parametersJsonSchema") {
        Some(Value::Object(schema)) if !schema.is_empty() => Value::Object(schema.clone()),
        // Any object is accepted; some providers require the schema to say so.
        Some(_) | None => json!({ "type": "object", "properties": {} }),
    };
    Some(DiscoveredTool {
        name: name.to_owned(),
        description: format!("{own}\n\n{}", protocol(name, discovery, call)).trim_start().to_owned(),
        schema: Raw::from_serialize(&schema).ok()?,
    })
}

/// Parses function-calling schemas that a user keeps in a file: in the form of any provider, alone or in a list.
pub fn parse_declarations(text: &str) -> Result<Vec<DiscoveredTool>, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
    let items = match value {
        Value::Array(items) => items,
        one => vec![one],
    };
    let mut tools: Vec<DiscoveredTool> = Vec::new();
    for item in &items {
        let inner = ["function_declarations", "functionDeclarations", "tools"];
        let inner = inner.iter().find_map(|name| item.get(name)?.as_array());
        for one in inner.map_or(std::slice::from_ref(item), Vec::as_slice) {
            let tool = declaration(one)?;
            if tools.iter().any(|known| known.name == tool.name) {
                return Err(format!("`{}` is declared twice", tool.name));
            }
            tools.push(tool);
        }
    }
    if tools.is_empty() { Err("it declares nothing".to_owned()) } else { Ok(tools) }
}

fn declaration(item: &Value) -> Result<DiscoveredTool, String> {
    let item = item.get("function").unwrap_or(item);
    let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!("a function needs a name of letters, digits, `_`, `-` and `.`, not {name:?}"));
    }
    let schema = ["parameters", "input_schema", "inputSchema", "parametersJsonSchema"];
    let schema = schema.iter().find_map(|key| item.get(key)).cloned();
    let schema = match schema {
        Some(schema @ Value::Object(_)) => schema,
        None | Some(Value::Null) => json!({ "type": "object", "properties": {} }),
        Some(_) => return Err(format!("the parameters of `{name}` are not a schema")),
    };
    Ok(DiscoveredTool {
        name: name.to_owned(),
        description: item.get("description").and_then(Value::as_str).unwrap_or_default().to_owned(),
        schema: Raw::from_serialize(&schema).map_err(|error| error.to_string())?,
    })
}

fn protocol(name: &str, discovery: &str, call: &str) -> String {
    format!(
        "This tool was found in the project by running `{discovery}`. A call runs `{call} {name}` in the project's folder, with the parameters as JSON on standard input.\nIf that succeeds, what it printed on standard output is returned. If not, these lines are:\n\nStdout: what it printed on standard output; `(empty)` if nothing, perhaps only a part.\nStderr: what it printed on standard error; `(empty)` if nothing, perhaps only a part.\nError: what went wrong with the process; `(none)` if nothing did.\nExit Code: a number; `(none)` if a signal ended it.\nSignal: a number; `(none)` if no signal ended it."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_of_every_provider_are_read() {
        let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
        for text in [
            format!(
                r#"[{{"type":"function","function":{{"name":"a","description":"d","parameters":{schema}}}}}]"#
            ),
            format!(r#"[{{"name":"a","description":"d","input_schema":{schema}}}]"#),
            format!(r#"{{"name":"a","description":"d","inputSchema":{schema}}}"#),
            format!(
                r#"[{{"functionDeclarations":[{{"name":"a","description":"d","parametersJsonSchema":{schema}}}]}}]"#
            ),
            format!(r#"{{"tools":[{{"name":"a","description":"d","parameters":{schema}}}]}}"#),
        ] {
            let [tool] = &parse_declarations(&text).unwrap()[..] else { panic!("{text}") };
            assert_eq!(
                (tool.name.as_str(), tool.description.as_str(), tool.schema.get()),
                ("a", "d", schema)
            );
        }
        for (text, expected) in [
            ("[", "it is not JSON"),
            ("[]", "it declares nothing"),
            ("[{}]", "a function needs a name"),
            (r#"[{"name":"a b"}]"#, "a function needs a name"),
            (r#"[{"name":"a"},{"name":"a"}]"#, "`a` is declared twice"),
            (r#"[{"name":"a","parameters":7}]"#, "the parameters of `a` are not a schema"),
        ] {
            let wrong = parse_declarations(text).unwrap_err();
            assert!(wrong.starts_with(expected), "{text}: {wrong}");
        }
    }

    fn names(printed: &str) -> Result<Vec<String>, String> {
        let found = read(printed.as_bytes(), "d", "c")?;
        Ok(found.tools.iter().map(DiscoveredTool::model_name).collect())
    }

    #[test]
    fn the_three_forms_are_read_and_the_nameless_are_passed_over() {
        let printed = r#"[
            {"function_declarations": [{"name": "one"}, {"description": "nameless"}]},
            {"functionDeclarations": [{"name": "two"}]},
            {"name": "three/3", "parameters": {"ignored": true}},
            {"other": 1}, 7, "text", null
        ]"#;
        assert_eq!(
            names(printed),
            Ok(["one", "two", "three_3"].map(|name| format!("discovered_tool_{name}")).to_vec())
        );
        let found = read(printed.as_bytes(), "d", "c").unwrap();
        assert_eq!(found.nameless, 5);
        assert_eq!(
            found.warnings(),
            ["the tool discovery command declares functions without a name: 5 passed over"]
        );
        assert!(names("{}").unwrap_err().contains("not a JSON list"));
        assert!(names("nothing").unwrap_err().contains("not JSON"));
    }

    #[test]
    fn only_a_json_schema_is_a_schema_and_long_names_are_shortened() {
        let printed = r#"[{"name": "a", "description": "Does a.", "parametersJsonSchema": {"type": "object", "required": ["x"]}, "parameters": {}}]"#;
        let [tool] = &read(printed.as_bytes(), "find it", "call").unwrap().tools[..] else { panic!() };
        assert_eq!(tool.schema.get(), r#"{"type":"object","required":["x"]}"#);
        assert!(tool.description.starts_with(
            "Does a.\n\nThis tool was found in the project by running `find it`. A call runs `call a` in"
        ));
        let long = format!("[{{\"name\": \"{}\"}}]", "x".repeat(90));
        let name = &names(&long).unwrap()[0];
        assert!(
            name.len() == 63 && name.starts_with("discovered_tool_xxx") && name.contains("___"),
            "{name}"
        );
    }
}
