//! An agent command: under which names a tool answers in the session's bash, and how its words are read.

use lathe_protocol::{Kind, Raw};
use serde_json::{Map, Value};

use crate::built_in::commands;
use crate::call::{CommandForm, TypedCall, command_calls};
use crate::problem::Problem;
use crate::schema::schema_of;

/// One command. What a session asks of the shell itself (`commands`, `jobs`) has no tool.
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) aliases: &'static [&'static str],
    /// The canonical name of the tool behind it.
    pub(crate) tool: &'static str,
    pub(crate) summary: &'static str,
    /// What stands below the parameters in `--help`.
    pub(crate) notes: &'static str,
    pub(crate) kind: Kind,
    pub(crate) schema: fn() -> Raw,
    pub(crate) short: &'static [(char, &'static str)],
    /// The parameters that words without a name go to, in order.
    pub(crate) positions: &'static [&'static str],
    /// The parameter that takes every further word.
    pub(crate) rest: Option<&'static str>,
    /// The parameter that standard input gives where no word does.
    pub(crate) input: Option<&'static str>,
    /// Parameters that are paths, in which a quoted `~` is still the home.
    pub(crate) paths: &'static [&'static str],
    /// Where relative paths begin.
    pub(crate) base: Base,
    /// Reads the words, by the type that the schema is of: one call, or one for each of several files.
    read: fn(Value) -> Result<Vec<TypedCall>, Problem>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Base {
    /// The caller's folder.
    Caller,
    /// The workspace.
    Root,
}

impl Command {
    /// A command without words that begins in the workspace. `C` gives the parameters and makes calls of them.
    pub(crate) const fn of<C: CommandForm>(
        name: &'static str,
        tool: &'static str,
        kind: Kind,
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
            paths: &[],
            base: Base::Root,
            read: command_calls::<C>,
        }
    }

    pub(crate) const fn or(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    pub(crate) const fn noted(self, notes: &'static str) -> Self {
        Self { notes, ..self }
    }

    pub(crate) const fn short(self, short: &'static [(char, &'static str)]) -> Self {
        Self { short, ..self }
    }

    /// Names the parameters that words without a name go to, and the one that takes all further words.
    pub(crate) const fn reading(
        self,
        positions: &'static [&'static str],
        rest: Option<&'static str>,
    ) -> Self {
        Self { positions, rest, ..self }
    }

    pub(crate) const fn input(self, parameter: &'static str) -> Self {
        Self { input: Some(parameter), ..self }
    }

    /// Names the parameters that are paths.
    pub(crate) const fn paths(self, paths: &'static [&'static str]) -> Self {
        Self { paths, ..self }
    }

    /// Begins relative paths in the caller's folder.
    pub(crate) const fn in_callers_folder(self, paths: &'static [&'static str]) -> Self {
        Self { paths, base: Base::Caller, ..self }
    }

    /// The calls that these parameters mean.
    pub(crate) fn calls(&self, given: Map<String, Value>) -> Result<Vec<TypedCall>, Problem> {
        (self.read)(Value::Object(given))
    }
}

pub(crate) fn find(name: &str) -> Option<&'static Command> {
    commands().find(|command| command.name == name || command.aliases.contains(&name))
}

/// Files given as one word each, or as one text in JSON.
pub(crate) fn paths_of(given: &Map<String, Value>) -> Vec<String> {
    match given.get("file_path") {
        Some(Value::Array(paths)) => paths.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        Some(Value::String(path)) => vec![path.clone()],
        Some(_) | None => Vec::new(),
    }
}
