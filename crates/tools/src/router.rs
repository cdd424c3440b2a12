//! The contract of the design document's router, as a library for programs that were written against it.
//!
//! Lathe itself does not read commands this way: bash does, and words are typed by a tool's schema. What is here keeps the
//! document's shapes and its rules of conversion, by which a value is a number, a truth or a text by its looks.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Number, Value};

use crate::commands::COMMANDS;

/// A command as the document reads it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParsedCommand {
    pub name: String,
    /// Words without a name.
    pub args: Vec<String>,
    pub kwargs: Map<String, Value>,
    pub raw: String,
    /// Neither an agent nor a field command.
    pub is_native: bool,
    pub is_help_request: bool,
    /// `--help` instead of `-h`.
    pub help_verbose: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolResult {
    pub success: bool,
    pub output: Value,
    pub error: Option<String>,
}

impl ToolResult {
    pub fn success(output: impl Into<Value>) -> Self {
        Self { success: true, output: output.into(), error: None }
    }

    pub fn failure(error: impl Into<String>) -> Self {
        Self { success: false, output: Value::Null, error: Some(error.into()) }
    }
}

/// What a shell command came to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BashOutput {
    pub stdout: String,
    pub stderr: String,
    pub exit_code: i32,
    pub timed_out: bool,
    pub truncated: bool,
}

/// Reads a command. An unclosed quote or an empty command is an error.
pub fn parse(command: &str) -> Result<ParsedCommand, String> {
    let mut words = split(command)?.into_iter().peekable();
    let name = words.next().ok_or("Empty command")?;
    let known = |name: &str| COMMANDS.iter().any(|known| known.name == name || known.aliases.contains(&name));
    let mut parsed = ParsedCommand {
        is_native: !known(&name) && !["field:", "mcp:", "skill:"].iter().any(|layer| name.starts_with(layer)),
        name,
        args: Vec::new(),
        kwargs: Map::new(),
        raw: command.to_owned(),
        is_help_request: false,
        help_verbose: false,
    };
    while let Some(word) = words.next() {
        match word.strip_prefix("--") {
            _ if word == "-h" || word == "--help" => {
                parsed.is_help_request = true;
                parsed.help_verbose = word == "--help";
            }
            Some(option) => {
                // All of the value counts; the document loses what follows a second `=`.
                let (key, value) = match option.split_once('=') {
                    Some((key, value)) => (key, convert(value)),
                    None => match words.next_if(|next| !next.starts_with('-')) {
                        Some(value) => (option, convert(&value)),
                        None => (option, Value::Bool(true)),
                    },
                };
                parsed.kwargs.insert(key.replace('-', "_"), value);
            }
            None => parsed.args.push(word),
        }
    }
    Ok(parsed)
}

/// The document's conversion: whole numbers, then decimals, then words for yes and no, else a text.
pub fn convert(value: &str) -> Value {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if all_digits(digits)
        && let Ok(number) = value.parse::<i64>()
    {
        return Value::from(number);
    }
    if digits.split_once('.').is_some_and(|(whole, part)| all_digits(whole) && all_digits(part))
        && let Some(number) = value.parse::<f64>().ok().and_then(Number::from_f64)
    {
        return Value::Number(number);
    }
    match value.to_ascii_lowercase().as_str() {
        "true" | "yes" => Value::Bool(true),
        "false" | "no" => Value::Bool(false),
        _ => Value::String(value.to_owned()),
    }
}

/// Words as Python's `shlex` has them: quotes of both kinds, backslashes outside of single ones.
fn split(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            _ if c.is_whitespace() => words.extend(word.take()),
            '\'' | '"' => {
                let quoted = word.get_or_insert_default();
                loop {
                    match chars.next().ok_or("Unclosed quote in arguments")? {
                        end if end == c => break,
                        '\\' if c == '"' => match chars.next().ok_or("Unclosed quote in arguments")? {
                            escaped @ ('"' | '\\' | '$' | '`') => quoted.push(escaped),
                            other => quoted.extend(['\\', other]),
                        },
                        inside => quoted.push(inside),
                    }
                }
            }
            '\\' => word.get_or_insert_default().extend(chars.next()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// A tool as the document registers it.
pub trait RoutedTool {
    fn name(&self) -> &str;
    fn description(&self) -> &str;
    /// `input_schema` of the document.
    fn schema(&self) -> Value;
    fn execute(&self, kwargs: Map<String, Value>) -> ToolResult;

    /// The parameters that are missing, in words.
    fn validate_args(&self, kwargs: &Map<String, Value>) -> Vec<String> {
        let missing = required(&self.schema()).into_iter().filter(|name| !kwargs.contains_key(name));
        missing.map(|name| format!("Missing required parameter: {name}")).collect()
    }

    /// One line, or everything the schema knows.
    fn help(&self, verbose: bool) -> String {
        if verbose {
            let grammar = crate::commands::Grammar::by_schema(&self.schema());
            crate::commands::whole_help(self.name(), self.description(), &grammar)
        } else {
            format!("{}: {}", self.name(), self.description())
        }
    }
}

fn required(schema: &Value) -> Vec<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The document's registry.
#[derive(Default)]
pub struct Registry {
    tools: BTreeMap<String, Box<dyn RoutedTool>>,
}

impl Registry {
    pub fn register(&mut self, tool: Box<dyn RoutedTool>) {
        self.tools.insert(tool.name().to_owned(), tool);
    }

    pub fn get(&self, name: &str) -> Option<&dyn RoutedTool> {
        self.tools.get(name).map(AsRef::as_ref)
    }

    pub fn execute(&self, name: &str, kwargs: Map<String, Value>) -> ToolResult {
        let Some(tool) = self.get(name) else { return ToolResult::failure(format!("Unknown tool: {name}")) };
        let errors = tool.validate_args(&kwargs);
        if !errors.is_empty() {
            return ToolResult::failure(format!("Validation errors:\n{}", errors.join("\n")));
        }
        let run = std::panic::AssertUnwindSafe(|| tool.execute(kwargs));
        std::panic::catch_unwind(run).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            ToolResult::failure(format!("Tool execution failed: {text}"))
        })
    }

    /// Reads a command and runs the registered tool it names; help is a result too.
    pub fn route(&self, command: &str) -> ToolResult {
        let parsed = match parse(command) {
            Ok(parsed) => parsed,
            Err(error) => return ToolResult::failure(error),
        };
        if parsed.name.starts_with("field:")
            && parsed.name.split(':').filter(|part| !part.is_empty()).count() != 3
        {
            let words = format!("Invalid field command: {}\nExpected format: field:domain:tool", parsed.name);
            return ToolResult::failure(words);
        }
        let Some(tool) = self.get(&parsed.name) else {
            return ToolResult::failure(format!("Unknown tool: {}", parsed.name));
        };
        if parsed.is_help_request {
            return ToolResult::success(tool.help(parsed.help_verbose));
        }
        let mut kwargs = parsed.kwargs;
        for (name, value) in required(&tool.schema()).into_iter().zip(parsed.args) {
            kwargs.entry(name).or_insert(Value::String(value));
        }
        self.execute(&parsed.name, kwargs)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_is_read_as_the_document_says() {
        let parsed = parse("read 'a b.txt' --offset 3 --limit=5 --show-line-numbers").unwrap();
        assert_eq!(
            parsed,
            ParsedCommand {
                name: "read".to_owned(),
                args: vec!["a b.txt".to_owned()],
                kwargs: [("offset", json!(3)), ("limit", json!(5)), ("show_line_numbers", json!(true))]
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect(),
                raw: "read 'a b.txt' --offset 3 --limit=5 --show-line-numbers".to_owned(),
                is_native: false,
                is_help_request: false,
                help_verbose: false,
            }
        );
        for (command, native, help, verbose) in [
            ("ls -la", true, false, false),
            ("git status -h", true, true, false),
            ("edit --help", false, true, true),
            ("field:a:b x", false, false, false),
            ("mcp:a:b", false, false, false),
        ] {
            let parsed = parse(command).unwrap();
            assert_eq!(
                (parsed.is_native, parsed.is_help_request, parsed.help_verbose),
                (native, help, verbose),
                "{command}"
            );
        }
        assert_eq!(parse("  "), Err("Empty command".to_owned()));
        assert_eq!(parse("read 'a"), Err("Unclosed quote in arguments".to_owned()));
        assert_eq!(parse("write f ''").unwrap().args, ["f", ""]);
        assert_eq!(parse("write f --k=a=b").unwrap().kwargs["k"], json!("a=b"));
    }

    #[test]
    fn values_are_converted_by_their_looks() {
        for (text, expected) in [
            ("1", json!(1)),
            ("0", json!(0)),
            ("-12", json!(-12)),
            ("1.5", json!(1.5)),
            ("true", json!(true)),
            ("YES", json!(true)),
            ("no", json!(false)),
            ("1e3", json!("1e3")),
            ("1.", json!("1.")),
            ("-", json!("-")),
            ("text", json!("text")),
            ("", json!("")),
        ] {
            assert_eq!(convert(text), expected, "{text}");
        }
    }

    struct Shout;

    impl RoutedTool for Shout {
        fn name(&self) -> &str {
            "shout"
        }

        fn description(&self) -> &str {
            "Say it loud."
        }

        fn schema(&self) -> Value {
            json!({ "properties": { "text": { "type": "string" }, "times": { "type": "integer" } }, "required": ["text"] })
        }

        fn execute(&self, kwargs: Map<String, Value>) -> ToolResult {
            let text = kwargs["text"].as_str().unwrap_or_default().to_uppercase();
            assert!(text != "BREAK", "it broke");
            ToolResult::success(
                text.repeat(kwargs.get("times").and_then(Value::as_u64).unwrap_or(1) as usize),
            )
        }
    }

    #[test]
    fn a_registered_tool_is_found_checked_run_and_explained() {
        let mut registry = Registry::default();
        registry.register(Box::new(Shout));
        assert!(registry.get("shout").is_some() && registry.get("whisper").is_none());
        for (command, expected) in [
            ("shout hi", ToolResult::success("HI")),
            ("shout hi --times 2", ToolResult::success("HIHI")),
            ("shout --text=hi", ToolResult::success("HI")),
            ("shout", ToolResult::failure("Validation errors:\nMissing required parameter: text")),
            ("whisper hi", ToolResult::failure("Unknown tool: whisper")),
            ("shout -h", ToolResult::success("shout: Say it loud.")),
            ("shout break", ToolResult::failure("Tool execution failed: it broke")),
            (
                "field:a",
                ToolResult::failure("Invalid field command: field:a\nExpected format: field:domain:tool"),
            ),
        ] {
            assert_eq!(registry.route(command), expected, "{command}");
        }
        let whole = registry.route("shout --help").output;
        assert!(whole.as_str().unwrap().contains("Usage: shout <text> [OPTIONS]"), "{whole}");
    }
}
