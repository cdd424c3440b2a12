//! Field commands: the tools of domains, servers and skills, named `layer:domain:tool`, and the search for a command.

use parking_lot::RwLock;

use lathe_policy::{GateCall, OwnCommand};
use lathe_protocol::{Raw, nearest};
use lathe_search::{GlobStyle, glob_matcher};
use lathe_shell::Caller;
use lathe_workspace::Surroundings;
use regex::RegexBuilder;
use serde_json::Value;

use super::grammar::{Grammar, WordsRequest};
use super::{AgentCommands, RunningCommand, code, help};
use crate::outside::OutsideTool;

/// Names of the layers a field command can belong to.
const LAYERS: [&str; 3] = ["field", "mcp", "skill"];

/// The field commands of a session. More may join while it runs.
#[derive(Default)]
pub(crate) struct FieldTools(RwLock<Vec<OutsideTool>>);

impl FieldTools {
    pub(crate) fn new(tools: Vec<OutsideTool>) -> Self {
        Self(RwLock::new(tools))
    }

    pub(crate) fn join(&self, tool: OutsideTool) {
        self.0.write().push(tool);
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.all().iter().map(OutsideTool::command).collect()
    }

    /// The field commands for the gate, which needs every name of each.
    pub(crate) fn own(&self) -> Vec<OwnCommand> {
        self.all().iter().map(OutsideTool::own_command).collect()
    }

    fn all(&self) -> Vec<OutsideTool> {
        self.0.read().clone()
    }

    /// Finds a tool by its whole name; `field:` stands for every layer.
    fn find(&self, name: &str) -> Option<OutsideTool> {
        let all = self.all();
        let exact = all.iter().find(|tool| tool.command() == name);
        let rest = name.strip_prefix("field:");
        let in_any = |tool: &&OutsideTool| rest == tool.command().split_once(':').map(|(_, rest)| rest);
        exact.or_else(|| all.iter().find(in_any)).cloned()
    }
}

impl AgentCommands {
    /// A command with a colon in its name.
    pub(super) async fn field_command(&self, running: &mut RunningCommand) -> u8 {
        let name = running.name.clone();
        let parts: Vec<&str> = name.split(':').collect();
        if !parts.first().is_some_and(|layer| LAYERS.contains(layer)) {
            return running.complain("command not found", code::UNKNOWN).await;
        }
        if let [layer, domain] = parts.as_slice() {
            return self.list_domain(running, layer, domain).await;
        }
        if parts.len() != 3 || parts.iter().any(|part| part.is_empty()) {
            let words = format!("Invalid field command: {name}\nExpected format: field:domain:tool");
            return running.complain(&words, code::USAGE).await;
        }
        let Some(found) = self.field.find(&name) else {
            let known = self.field.names();
            let near = nearest(&name, known.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!(" Did you mean {near}?"));
            // A search that finds nothing would be useless advice.
            let last = parts.last().unwrap_or(&"");
            let search = if matching(last, &self.rows()).is_empty() { "" } else { last };
            let words = format!("Unknown tool: {name}.{near} Try: commands {search}");
            return running.complain(words.trim_end(), code::UNKNOWN).await;
        };
        let schema = found.schema.to_value().unwrap_or_default();
        let grammar = Grammar::by_schema(&schema);
        let description = found.description.trim();
        let mut given = match grammar.read(&running.words) {
            Err(wrong) => return running.usage_error(&wrong, &grammar).await,
            Ok(WordsRequest::Help { whole: false }) => {
                let line = description.lines().next().unwrap_or_default();
                return running.print(help::summary_line(&name, line)).await;
            }
            Ok(WordsRequest::Help { whole: true }) => {
                return running.print(help::full_help(&name, description, &grammar, "")).await;
            }
            Ok(WordsRequest::Run(given)) => given,
        };
        if given.from_input {
            let read = running.input().await.and_then(|bytes| {
                let text =
                    String::from_utf8(bytes).map_err(|_| "--json: standard input is not UTF-8".to_owned())?;
                super::grammar::parse_object(&text)
            });
            match read {
                Ok(object) => given.arguments.extend(object),
                Err(wrong) => return running.usage_error(&wrong, &grammar).await,
            }
        }
        let arguments = Value::Object(given.arguments);
        let missing: Vec<String> = given
            .missing
            .iter()
            .filter(|name| arguments.get(name.as_str()).is_none())
            .map(|name| format!("Missing required parameter: {name}"))
            .collect();
        if !missing.is_empty() {
            let wrong = format!("Validation errors:\n{}", missing.join("\n"));
            return running.usage_error(&wrong, &grammar).await;
        }
        if let Err(wrong) = crate::faces::check_arguments(&schema, &arguments) {
            return running.usage_error(&format!("Validation errors:\n{wrong}"), &grammar).await;
        }
        let invocation = match found.build(&arguments) {
            Ok(invocation) => invocation,
            Err(problem) => return running.report_problem(&problem).await,
        };
        let effects = invocation.effects();
        let also = found.names();
        let given = [arguments.clone()];
        let call = GateCall {
            tool: found.id(),
            also: &also,
            kind: found.kind,
            kinds: &[],
            effects: &effects,
            arguments: &given,
        };
        if let Err(code) = running.decide(&call, Some(&*invocation)).await {
            return code;
        }
        running.results.tool = Some(found.id());
        let Ok(arguments) = Raw::from_serialize(&arguments) else { return code::USAGE };
        let caller = running.call.caller;
        let surroundings = Surroundings {
            folder: running.call.cwd.clone(),
            variables: caller.map(Caller::variables).unwrap_or_default(),
            umask: caller.map(|caller| caller.umask),
        };
        let cancel = running.call.cancel.clone();
        match found.provider.run(&found.original, arguments, &surroundings, &cancel).await {
            Ok(ran) => {
                running.write_out(ran.stdout).await;
                if !ran.stderr.is_empty() {
                    let _ = running.io.err(ran.stderr).await;
                }
                ran.code
            }
            Err(_) if cancel.is_cancelled() => code::CANCELLED,
            Err(message) => running.complain(&message, code::FAILED).await,
        }
    }

    /// `field`: lists the domains, or the tools of one. With more words it runs `field:DOMAIN:TOOL`.
    pub(super) async fn list_domains(&self, running: &mut RunningCommand) -> u8 {
        let words = std::mem::take(&mut running.words);
        match words.as_slice() {
            [] => {}
            [word] if word == "-h" => {
                return running.print(help::summary_line("field", FIELD_SUMMARY)).await;
            }
            [word] if word == "--help" => {
                return running
                    .print(format!("Tool: field\nDescription: {FIELD_SUMMARY}\n{FIELD_HELP}"))
                    .await;
            }
            [domain] => return self.list_domain(running, "field", domain).await,
            [domain, help] if help == "-h" || help == "--help" => {
                return self.list_domain(running, "field", domain).await;
            }
            // The command runs under its one name, by which the gate knows it.
            [domain, tool, words @ ..] => {
                running.name = format!("field:{domain}:{tool}");
                running.words = words.to_vec();
                return self.field_command(running).await;
            }
        }
        let all = self.field.all();
        let mut names: Vec<String> = all.iter().map(|tool| tool.domain.name.clone()).collect();
        names.sort();
        names.dedup();
        if names.is_empty() {
            return running
                .print("There are no field domains. `[field.NAME]` in config.toml adds one.\n".to_owned())
                .await;
        }
        let rows = names.iter().map(|domain| {
            let count = all.iter().filter(|tool| tool.domain.name == *domain).count();
            let tools = if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") };
            let about = all.iter().find(|tool| tool.domain.name == *domain && !tool.domain.about.is_empty());
            let about = about.map_or(String::new(), |tool| format!(": {}", tool.domain.about));
            format!("field:{domain} ({tools}){about}\n")
        });
        running.print(rows.collect()).await
    }

    /// Lists the tools of a domain. `field` stands for every layer.
    async fn list_domain(&self, running: &mut RunningCommand, layer: &str, domain: &str) -> u8 {
        let is_of = |tool: &OutsideTool| layer == "field" || tool.command().split(':').next() == Some(layer);
        let tools = self.field.all().into_iter().filter(|tool| tool.domain.name == domain && is_of(tool));
        let tools: Vec<OutsideTool> = tools.collect();
        if tools.is_empty() {
            let words = format!("there is no domain {domain}; try: field");
            return running.complain(&words, code::UNKNOWN).await;
        }
        running.print(tools.iter().map(row_of).collect()).await
    }

    /// `commands [PATTERN]`: lists the commands of all layers.
    pub(super) async fn list_commands(&self, running: &mut RunningCommand) -> u8 {
        if running.words.iter().any(|word| word == "-h") {
            return running.print(help::summary_line("commands", COMMANDS_SUMMARY)).await;
        }
        if running.words.iter().any(|word| word == "--help") {
            let text = format!("Tool: commands\nDescription: {COMMANDS_SUMMARY}\n{COMMANDS_HELP}");
            return running.print(text).await;
        }
        let pattern = running.words.join(" ");
        let rows = self.rows();
        let found = matching(&pattern, &rows);
        if found.is_empty() {
            let near = nearest(&pattern, rows.iter().map(|row| row.name.as_str()));
            let near = near.map_or(String::new(), |near| format!(". Did you mean {near}?"));
            return running.complain(&format!("no command matches {pattern:?}{near}"), code::FAILED).await;
        }
        running.print(found).await
    }

    /// A row for every command of the agent and field layers.
    fn rows(&self) -> Vec<CommandRow> {
        let own = [("commands", COMMANDS_SUMMARY), ("jobs", JOBS_SUMMARY), ("field", FIELD_SUMMARY)];
        let built_in = self.offered().map(|command| {
            let meant = MEANT.iter().find(|(name, _)| *name == command.name).map_or("", |(_, words)| words);
            CommandRow {
                name: command.name.to_owned(),
                text: help::summary_line(command.name, command.summary),
                also: format!("{} {meant}", command.aliases.join(" ")),
            }
        });
        let own = own.map(|(name, about)| CommandRow {
            name: name.to_owned(),
            text: help::summary_line(name, about),
            also: String::new(),
        });
        let all = self.field.all();
        let field = all.iter().map(|tool| CommandRow {
            name: tool.command(),
            text: row_of(tool),
            also: String::new(),
        });
        built_in.chain(own).chain(field).collect()
    }
}

const COMMANDS_SUMMARY: &str = "List the commands of all layers, or those that match a pattern.";
const JOBS_SUMMARY: &str = "List what runs in the background; `jobs read N`, `jobs kill N`.";
const FIELD_SUMMARY: &str = "List the domains of field commands, or the tools of one.";

const COMMANDS_HELP: &str = "Usage: commands [PATTERN]\nPATTERN is a part of a name or description, several words that all occur in one, a glob, or a regular expression.\n";
const FIELD_HELP: &str = "Usage: field [DOMAIN [TOOL [WORDS...]]]\n`field DOMAIN TOOL` is the command `field:DOMAIN:TOOL`; `field:DOMAIN:TOOL --help` explains it.\n";

/// Further words by which people and models search for a command.
const MEANT: [(&str, &str); 8] = [
    ("view", "cat open show"),
    ("write", "create save"),
    ("edit", "replace str_replace edit_tool sed"),
    ("json_edit", "json_edit_tool jq"),
    ("search", "grep rg ripgrep"),
    ("glob", "find"),
    ("list", "ls dir"),
    ("todo", "write_todos plan"),
];

/// A row of the output of `commands`.
struct CommandRow {
    name: String,
    /// The line that is printed.
    text: String,
    /// Further words by which the command is found.
    also: String,
}

fn row_of(tool: &OutsideTool) -> String {
    help::summary_line(&tool.command(), tool.description.trim().lines().next().unwrap_or_default())
}

/// A test of a row.
type RowTest<'a> = &'a dyn Fn(&CommandRow) -> bool;

/// The rows whose name, description or further words contain the pattern; if there are none, those that contain each
/// of its words; then those whose name matches it as a glob; then those that match it as a regular expression. Case
/// never matters.
fn matching(pattern: &str, rows: &[CommandRow]) -> String {
    let folded = pattern.to_lowercase();
    let glob = glob_matcher(&folded, GlobStyle::default());
    let regex = RegexBuilder::new(pattern).case_insensitive(true).build();
    let has = |row: &CommandRow, part: &str| {
        row.text.to_lowercase().contains(part) || row.also.to_lowercase().contains(part)
    };
    let ways: [RowTest<'_>; 4] = [
        &|row| has(row, &folded),
        &|row| folded.split_whitespace().all(|word| has(row, word)),
        &|row| glob.as_ref().is_ok_and(|glob| glob.is_match(row.name.to_lowercase())),
        &|row| regex.as_ref().is_ok_and(|regex| regex.is_match(row.text.trim_end())),
    ];
    let found = |way: &RowTest<'_>| -> String {
        rows.iter().filter(|row| way(row)).map(|row| row.text.as_str()).collect()
    };
    ways.iter().map(found).find(|found| !found.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_without_bound_matches_nothing() {
        let row =
            CommandRow { name: "view".to_owned(), text: "view: About it.\n".to_owned(), also: String::new() };
        for (open, close) in [("{", "}"), ("{a,", "}"), ("[", ""), ("(", ")"), ("!", "")] {
            let pattern = format!("{}b{}", open.repeat(100_000), close.repeat(100_000));
            assert_eq!(matching(&pattern, std::slice::from_ref(&row)), "", "{open}");
        }
    }

    #[test]
    fn a_pattern_is_a_part_else_words_else_a_glob_else_a_regular_expression() {
        let names = ["mcp:git:commit", "field:units:length", "view"];
        for (pattern, expected) in [
            ("", &names[..]),
            ("git", &names[..1]),
            ("GIT", &names[..1]),
            ("about", &names[..]),
            ("about length", &names[1..2]),
            ("length push", &[]),
            ("Read", &names[2..]),
            ("*commit*", &names[..1]),
            ("mcp:*", &names[..1]),
            ("fie*", &names[1..2]),
            ("field:*:l*", &names[1..2]),
            ("mcp:.*", &names[..1]),
            ("^mcp:git:", &names[..1]),
            ("push", &[]),
            ("(", &[]),
        ] {
            let also = |name: &str| if name == "view" { "read".to_owned() } else { String::new() };
            let rows = names.map(|name| CommandRow {
                name: name.to_owned(),
                text: format!("{name}: About it.\n"),
                also: also(name),
            });
            let expected: String = expected.iter().map(|name| format!("{name}: About it.\n")).collect();
            assert_eq!(matching(pattern, &rows), expected, "{pattern}");
        }
    }
}
