//! Agent commands: the names under which tools run in the session's bash, and the way their words are read.

use lathe_protocol::{Raw, ToolKind};
use serde_json::{Map, Value};

use crate::built_in::commands;
use crate::call::{CommandWords, TypedCall, command_calls};
use crate::faces::schema_of;
use crate::problem::Problem;

/// An agent command. Commands about the shell itself (`commands`, `jobs`) have no tool.
pub(crate) struct AgentCommand {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The canonical name of its tool.
    pub(crate) tool: &'static str,
    pub(crate) summary: &'static str,
    /// Text below the parameters in `--help`.
    pub(crate) notes: &'static str,
    pub(crate) kind: ToolKind,
    pub(crate) schema: fn() -> Raw,
    pub(crate) short: &'static [(char, &'static str)],
    /// The parameters that words without a name go to, in order.
    pub(crate) positions: &'static [&'static str],
    /// The parameter that takes every further word.
    pub(crate) rest: Option<&'static str>,
    /// The parameter that standard input gives if no word does.
    pub(crate) input: Option<&'static str>,
    /// The reading of that standard input.
    pub(crate) input_form: InputForm,
    /// Parameters that are paths, in which a quoted `~` still stands for the home folder.
    pub(crate) paths: &'static [&'static str],
    /// The start of relative paths.
    pub(crate) base: PathBase,
    /// Reads the words as the type that the schema describes: one call, or one for each of several files.
    read: fn(Value) -> Result<Vec<TypedCall>, Problem>,
}

/// The reading of a standard input that becomes a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputForm {
    /// A text without the line breaks at its end, which `echo` adds.
    Words,
    /// A text to the last byte.
    Exact,
    /// A file's content: text, or any other bytes.
    Content,
    /// JSON, or else a text.
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathBase {
    /// The caller's folder.
    Caller,
    /// The workspace.
    Root,
}

impl AgentCommand {
    /// A command without positional words whose paths begin in the workspace. `C` gives the parameters and makes
    /// calls of them.
    pub(crate) const fn of<C: CommandWords>(
        name: &'static str,
        tool: &'static str,
        kind: ToolKind,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            aliases: &[],
            tool,
            summary,
            notes: "",
            kind,
            schema: schema_of::<C>,
            short: &[],
            positions: &[],
            rest: None,
            input: None,
            input_form: InputForm::Words,
            paths: &[],
            base: PathBase::Root,
            read: command_calls::<C>,
        }
    }

    pub(crate) const fn with_aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn with_notes(self, notes: &'static str) -> Self {
        Self { notes, ..self }
    }

    pub(crate) const fn short(self, short: &'static [(char, &'static str)]) -> Self {
        Self { short, ..self }
    }

    /// Names the parameters that words without a name go to, and the one that takes all further words.
    pub(crate) const fn with_positions(
        self,
        positions: &'static [&'static str],
        rest: Option<&'static str>,
    ) -> Self {
        Self { positions, rest, ..self }
    }

    /// Takes a parameter from standard input, without the line breaks at its end.
    pub(crate) const fn input(self, parameter: &'static str) -> Self {
        self.input_as(parameter, InputForm::Words)
    }

    /// Takes a parameter from standard input, in this form.
    pub(crate) const fn input_as(self, parameter: &'static str, input_form: InputForm) -> Self {
        Self { input: Some(parameter), input_form, ..self }
    }

    /// Names the parameters that are paths.
    pub(crate) const fn paths(self, paths: &'static [&'static str]) -> Self {
        Self { paths, ..self }
    }

    /// Begins relative paths in the caller's folder.
    pub(crate) const fn in_callers_folder(self, paths: &'static [&'static str]) -> Self {
        Self { paths, base: PathBase::Caller, ..self }
    }

    /// Makes calls of these parameters.
    pub(crate) fn calls(&self, given: Map<String, Value>) -> Result<Vec<TypedCall>, Problem> {
        (self.read)(Value::Object(given))
    }
}

pub(crate) fn find(name: &str) -> Option<&'static AgentCommand> {
    commands().find(|command| command.name == name || command.aliases.contains(&name))
}

/// The files of `file_path`, given as a list or as one text.
pub(crate) fn paths_of(given: &Map<String, Value>) -> Vec<String> {
    match given.get("file_path") {
        Some(Value::Array(paths)) => paths.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(path)) => vec![path.clone()],
        Some(_) | None => Vec::new(),
    }
}
