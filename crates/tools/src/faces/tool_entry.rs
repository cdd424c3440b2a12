//! The tools in the list of a session's model: built-in ones, outside ones, and the one that calls those.

use lathe_protocol::{Raw, ToolKind, ToolSpec, Toolset};
use serde::Serialize;
use serde_json::Value;

use super::{caller, gemini, validate};
use crate::faces::{ArgumentCheck, Face, Voice, faces};
use crate::faces::{Selection, ToolNames};
use crate::outside::OutsideTool;
use crate::problem::Problem;

/// Bytes of an outside tool's output that the model sees.
const OUTSIDE_CAP: usize = 40_000;

/// A tool in the model's list.
pub(crate) struct ToolEntry {
    pub(crate) name: String,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) kind: ToolKind,
    checks: ArgumentCheck,
    schema: Raw,
    pub(crate) source: ToolSource,
    voice: Voice,
}

pub(crate) enum ToolSource {
    BuiltIn(&'static Face),
    Outside(OutsideTool),
    /// The tool that calls the outside ones by name.
    Caller,
}

/// A description of a tool for people, in addition to its specification for the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolAbout {
    #[serde(flatten)]
    pub spec: ToolSpec,
    pub display_name: String,
    pub kind: ToolKind,
    /// True if its result is markdown; otherwise it is shown as it is.
    pub markdown: bool,
    /// True if it shows output while it runs.
    pub live: bool,
}

/// The built-in tools in their order, then the outside ones in theirs, then, if there are outside tools, the one that
/// calls them. In the `bash` toolset the outside tools are commands in its shell.
pub(crate) fn tool_entries(
    toolset: Toolset,
    own: &[&'static Face],
    selection: &Selection,
    mut outside: Vec<OutsideTool>,
) -> Vec<ToolEntry> {
    if toolset == Toolset::Bash {
        outside.clear();
    }
    let others = !outside.is_empty();
    let built_in = faces(toolset).chain(own.iter().copied()).map(ToolEntry::built_in);
    let joined = outside.into_iter().map(|tool| ToolEntry::outside(tool, toolset));
    let mut entries: Vec<ToolEntry> = Vec::new();
    for entry in built_in.chain(joined).chain(others.then(|| ToolEntry::caller(toolset))) {
        if selection.has(&entry.known()) && entries.iter().all(|known| known.name != entry.name) {
            entries.push(entry);
        }
    }
    entries
}

impl ToolEntry {
    pub(crate) fn built_in(face: &'static Face) -> Self {
        Self {
            name: face.name.to_owned(),
            aliases: face.aliases,
            kind: face.kind,
            checks: face.checks,
            schema: (face.schema)(),
            source: ToolSource::BuiltIn(face),
            voice: face.voice,
        }
    }

    pub(crate) fn outside(tool: OutsideTool, toolset: Toolset) -> Self {
        Self {
            name: tool.name.clone(),
            aliases: &[],
            kind: tool.kind,
            checks: ArgumentCheck::Schema,
            schema: tool.schema.clone(),
            source: ToolSource::Outside(tool),
            voice: outside_voice(toolset),
        }
    }

    fn caller(toolset: Toolset) -> Self {
        Self {
            name: caller::NAME.to_owned(),
            aliases: &[],
            kind: ToolKind::Other,
            checks: ArgumentCheck::Schema,
            schema: caller::schema(),
            source: ToolSource::Caller,
            voice: outside_voice(toolset),
        }
    }

    pub(crate) fn about(&self) -> ToolAbout {
        ToolAbout {
            spec: self.spec(),
            display_name: match &self.source {
                ToolSource::BuiltIn(face) => face.display.to_owned(),
                ToolSource::Outside(tool) => tool.name.clone(),
                ToolSource::Caller => "Call".to_owned(),
            },
            kind: self.kind,
            // The output of a foreign program is shown as it is.
            markdown: match &self.source {
                ToolSource::BuiltIn(face) => face.markdown(),
                ToolSource::Outside(_) | ToolSource::Caller => false,
            },
            live: self.kind == ToolKind::Execute,
        }
    }

    pub(crate) fn known(&self) -> ToolNames<'_> {
        ToolNames { name: &self.name, aliases: self.aliases, kind: self.kind }
    }

    pub(crate) fn spec(&self) -> ToolSpec {
        match &self.source {
            ToolSource::BuiltIn(face) => face.spec(),
            ToolSource::Outside(tool) => ToolSpec {
                name: tool.name.clone(),
                description: tool.description.clone(),
                schema: tool.schema.clone(),
            },
            ToolSource::Caller => ToolSpec {
                name: self.name.clone(),
                description: caller::DESCRIPTION.trim_end().to_owned(),
                schema: self.schema.clone(),
            },
        }
    }

    pub(crate) fn voice(&self) -> Voice {
        self.voice
    }

    /// Tells whether its schema has a parameter of this name.
    pub(crate) fn has_parameter(&self, name: &str) -> bool {
        let schema = self.schema.to_value().unwrap_or_default();
        schema.get("properties").is_some_and(|properties| properties.get(name).is_some())
    }

    /// Checks the arguments against the schema. Returns notes about values that were read as another type than they
    /// were written in.
    pub(crate) fn check(&self, value: &mut Value) -> Result<Vec<String>, Problem> {
        let schema = self.schema.to_value().unwrap_or_default();
        let notes = validate::coerce(&schema, value);
        match self.checks {
            ArgumentCheck::Own => {}
            ArgumentCheck::Schema => {
                validate::drop_nulls(&schema, value);
                validate::check(&schema, value).map_err(Problem::Schema)?;
            }
        }
        Ok(notes)
    }
}

/// The wording for outside tools, which the model knows from its toolset.
fn outside_voice(toolset: Toolset) -> Voice {
    match toolset {
        Toolset::Gemini => gemini::outside_voice(OUTSIDE_CAP),
        Toolset::Lathe | Toolset::Trae | Toolset::Bash => Voice::lathe(OUTSIDE_CAP),
    }
}
