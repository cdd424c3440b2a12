//! The face of `Bash`, the one tool that contains everything else.
//!
//! Its words are those of the three-layer design: plain output, `[stderr]` apart, the exit code when it is not zero,
//! and a next step where the command was unknown or misused. A silent failure is reported as one, unlike in that
//! design.

use lathe_protocol::ToolKind;
use lathe_shell::LineExit;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{shell_facts, split_cap};
use crate::call::{FaceArguments, TypedCall};
use crate::faces::{Face, Voice};
use crate::outcome::{Data, ShellData};
use crate::problem::Problem;

const NAME: &str = "Bash";

pub(crate) static ONE_TOOL: [Face; 1] = [Face::of::<BashArguments>(
    NAME,
    "Bash",
    ToolKind::Execute,
    include_str!("one.md"),
    Voice { render, words: Problem::words, cap: 50_000 },
)];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct BashArguments {
    /// The command line: any bash, also several lines. It must not wait for input.
    #[serde(default)]
    command: Option<String>,
    /// Kill the shell and start a fresh one; only for an environment that is broken.
    #[serde(default)]
    restart: Option<bool>,
}

impl FaceArguments for BashArguments {
    fn call(self) -> Result<TypedCall, Problem> {
        let Self { command, restart } = self;
        if let Some(command) = &command
            && command
                .trim_start()
                .strip_prefix(NAME)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '(']))
        {
            return Err(Problem::Arguments(
                "Bash is the name of this tool, not a command. Give the command itself: {\"command\": \"ls -la\"}, or {\"command\": \"view src/main.rs\"}. For a nested shell write it small: bash -c '...'".to_owned(),
            ));
        }
        Ok(TypedCall::new(super::BashParameters { command, restart, ..super::BashParameters::default() }))
    }
}

/// The error for a model that calls a command as if it were a tool.
pub(crate) fn unknown_tool(name: &str, is_command: bool) -> String {
    let example = if is_command { format!("{name} <args>") } else { "<command> <args>".to_owned() };
    let missing = if is_command { String::new() } else { format!("There is no command {name} either. ") };
    format!(
        "Unknown tool: {name}\nCORRECTION: there is one tool, Bash. {missing}Call it with the command: Bash(command=\"{example}\"). `commands` lists what there is."
    )
}

pub(crate) fn not_json(reason: &str) -> String {
    let reason = reason.strip_prefix("are not valid JSON: ").unwrap_or(reason);
    format!("Invalid parameters: tool arguments must be valid JSON. Parse error: {reason}")
}

/// The kinds of failure of a command, as far as its words show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailureCategory {
    CommandNotFound,
    InvalidUsage,
    ExecutionError,
}

impl FailureCategory {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::CommandNotFound => "command_not_found",
            Self::InvalidUsage => "invalid_usage",
            Self::ExecutionError => "execution_error",
        }
    }
}

/// The category of a failed line, and the command it is about.
pub(crate) fn category(command: &str, code: i32, stderr: &str) -> (FailureCategory, String) {
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let folded = stderr.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| folded.contains(word));
    let category = if has(&["unknown tool", "command not found", "unknown command"]) {
        FailureCategory::CommandNotFound
    } else if has(&[
        "usage:",
        "requires a number argument",
        "must be a non-negative number",
        "unexpected argument:",
        "invalid parameters",
        "unknown option:",
        "missing required parameter",
    ]) || (code == 2 && has(&["validation errors"]))
    {
        FailureCategory::InvalidUsage
    } else {
        FailureCategory::ExecutionError
    };
    // `bash: line 1: foo: command not found` and `view: …` name the culprit; the line's first word may be innocent.
    let named = match category {
        FailureCategory::CommandNotFound => {
            let line = stderr.lines().find(|line| line.to_lowercase().contains("not found"));
            line.and_then(|line| line.rsplit(": ").nth(1)).map(str::to_owned)
        }
        FailureCategory::InvalidUsage => {
            let usage = stderr.lines().find_map(|line| line.trim().strip_prefix("Usage: "));
            usage.and_then(|usage| usage.split(' ').next()).map(str::to_owned)
        }
        FailureCategory::ExecutionError => last.split_once(": ").map(|(name, _)| name.to_owned()),
    };
    let first = || command.split_whitespace().next().unwrap_or_default().to_owned();
    let is_name = |name: &String| !name.is_empty() && !name.contains(char::is_whitespace);
    (category, named.filter(is_name).unwrap_or_else(first))
}

fn render(data: &Data, cap: usize) -> String {
    match data {
        Data::Shell(shell) => words(shell, cap),
        other => crate::faces::words(other, cap),
    }
}

fn words(shell: &ShellData, cap: usize) -> String {
    let (out, err) = split_cap(&shell.stdout, &shell.stderr, cap);
    let (stdout, stderr) = (shell.stdout.cut(out).text, shell.stderr.cut(err).text);
    let code = shell.exit.code();
    let failed = code != 0 || !matches!(shell.exit, LineExit::Code(_));
    let mut parts = Vec::new();
    if !stdout.trim().is_empty() {
        parts.push(stdout.trim_end_matches('\n').to_owned());
    }
    if !stderr.trim().is_empty() {
        parts.push(format!("\n[stderr]\n{}", stderr.trim_end_matches('\n')));
    }
    if parts.is_empty() && !failed {
        parts.push("(Command executed successfully with no output)".to_owned());
    }
    if failed {
        parts.push(match shell.exit {
            LineExit::Code(code) => format!("Command failed with exit code {code}"),
            LineExit::ShellKilled { signal } => format!("The shell itself was killed by signal {signal}"),
            LineExit::TimedOut { .. } => format!(
                "Command timed out after {} seconds; it and its children were killed. Run long work in the background with &.",
                shell.seconds
            ),
            LineExit::Silent { limit, .. } => format!(
                "Command printed nothing for {} seconds; it and its children were killed. Let it print what it does, or run it in the background with &.",
                limit.as_secs()
            ),
            LineExit::Cancelled { .. } => "Cancelled by the user; the command and its children were killed".to_owned(),
            LineExit::Limited { code, breach } => format!("Stopped by the sandbox: {breach}; exit code {code}"),
        });
        parts.extend(hint(shell, code, &stderr));
    }
    let facts = shell_facts(shell);
    if !facts.is_empty() {
        parts.push(format!("[{}]", facts.join("; ")));
    }
    parts.join("\n").trim_start_matches('\n').to_owned()
}

fn hint(shell: &ShellData, code: i32, stderr: &str) -> Option<String> {
    let (category, base) = category(&shell.command, code, stderr);
    match category {
        FailureCategory::CommandNotFound => Some(format!(
            "Self-description: there is no such command. Next step: run Bash(command=\"commands {base}\") to see what there is, or a program that does the same."
        )),
        FailureCategory::InvalidUsage => Some(format!(
            "Self-description: The command failed. Next step: run Bash(command=\"{base} --help\") and give it what it wants."
        )),
        FailureCategory::ExecutionError => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_by_what_was_said_and_names_the_command_it_is_about() {
        for (command, code, stderr, expected, base) in [
            (
                "foo -x",
                127,
                "bash: line 1: foo: command not found\n",
                FailureCategory::CommandNotFound,
                "foo",
            ),
            (
                "cd x && viw y",
                127,
                "bash: line 1: viw: command not found\n",
                FailureCategory::CommandNotFound,
                "viw",
            ),
            (
                "cd x && view --ofset 1",
                2,
                "view: Unknown option: --ofset. Did you mean --offset?\nUsage: view <file_path>... [OPTIONS]\n",
                FailureCategory::InvalidUsage,
                "view",
            ),
            ("git foo", 1, "usage: git [-v]\n", FailureCategory::InvalidUsage, "git"),
            ("ls nope", 2, "ls: cannot access 'nope': No such file\n", FailureCategory::ExecutionError, "ls"),
            ("false", 1, "", FailureCategory::ExecutionError, "false"),
        ] {
            assert_eq!(category(command, code, stderr), (expected, base.to_owned()), "{command}");
        }
    }

    #[test]
    fn the_name_of_the_tool_is_no_command() {
        let call = |command: &str| BashArguments { command: Some(command.to_owned()), restart: None }.call();
        for command in ["Bash", "Bash ls", "Bash(command=\"ls\")", " Bash\tls"] {
            assert!(call(command).is_err(), "{command}");
        }
        for command in ["bash -c ls", "Bashful", "ls"] {
            assert!(call(command).is_ok(), "{command}");
        }
    }
}
