//! The tools that the model of a session is told of: built-in ones, those of others, and the one that calls those.

use lathe_protocol::{Kind, Raw, ToolSpec, Toolset};
use serde::Serialize;
use serde_json::Value;

use crate::face::{Checks, Face, Voice, faces};
use crate::outside::OutsideTool;
use crate::problem::Problem;
use crate::selection::{Known, Selection};
use crate::{caller, gemini, validate};

/// Bytes the model sees of what a tool that is not ours answers.
const OUTSIDE_CAP: usize = 40_000;

/// A tool the model is told of.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) aliases: &'static [&'static str],
    pub(crate) kind: Kind,
    checks: Checks,
    schema: Raw,
    pub(crate) source: Source,
    voice: Voice,
}

pub(crate) enum Source {
    BuiltIn(&'static Face),
    Outside(OutsideTool),
    /// Calls the others by name.
    Caller,
}

/// A tool as people are told of it, beside what the model is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolAbout {
    #[serde(flatten)]
    pub spec: ToolSpec,
    pub display_name: String,
    pub kind: Kind,
    /// Set if its result is markdown; else it is to be shown as it is.
    pub markdown: bool,
    /// Set if it shows output while it runs.
    pub live: bool,
}

/// The built-in tools in their order, then the others in theirs, then, if there are others, the tool that calls them. With
/// one tool for everything, the others are commands in its shell.
pub(crate) fn entries(
    toolset: Toolset,
    own: &[&'static Face],
    selection: &Selection,
    mut outside: Vec<OutsideTool>,
) -> Vec<Entry> {
    if toolset == Toolset::Bash {
        outside.clear();
    }
    let others = !outside.is_empty();
    let built_in = faces(toolset).chain(own.iter().copied()).map(Entry::built_in);
    let joined = outside.into_iter().map(|tool| Entry::outside(tool, toolset));
    let mut entries: Vec<Entry> = Vec::new();
    for entry in built_in.chain(joined).chain(others.then(|| Entry::caller(toolset))) {
        if selection.has(&entry.known()) && entries.iter().all(|known| known.name != entry.name) {
            entries.push(entry);
        }
    }
    entries
}

impl Entry {
    pub(crate) fn built_in(face: &'static Face) -> Self {
        Self {
            name: face.name.to_owned(),
            aliases: face.aliases,
            kind: face.kind,
            checks: face.checks,
            schema: (face.schema)(),
            source: Source::BuiltIn(face),
            voice: face.voice,
        }
    }

    pub(crate) fn outside(tool: OutsideTool, toolset: Toolset) -> Self {
        Self {
            name: tool.name.clone(),
            aliases: &[],
            kind: tool.kind,
            checks: Checks::Schema,
            schema: tool.schema.clone(),
            source: Source::Outside(tool),
            voice: voice_of_others(toolset),
        }
    }

    fn caller(toolset: Toolset) -> Self {
        Self {
            name: caller::NAME.to_owned(),
            aliases: &[],
            kind: Kind::Other,
            checks: Checks::Schema,
            schema: caller::schema(),
            source: Source::Caller,
            voice: voice_of_others(toolset),
        }
    }

    pub(crate) fn about(&self) -> ToolAbout {
        ToolAbout {
            spec: self.spec(),
            display_name: match &self.source {
                Source::BuiltIn(face) => face.display.to_owned(),
                Source::Outside(tool) => tool.name.clone(),
                Source::Caller => "Call".to_owned(),
            },
            kind: self.kind,
            // What a program of somebody else's prints is shown as it is.
            markdown: match &self.source {
                Source::BuiltIn(face) => face.markdown(),
                Source::Outside(_) | Source::Caller => false,
            },
            live: self.kind == Kind::Execute,
        }
    }

    pub(crate) fn known(&self) -> Known<'_> {
        Known { name: &self.name, aliases: self.aliases, kind: self.kind }
    }

    pub(crate) fn spec(&self) -> ToolSpec {
        match &self.source {
            Source::BuiltIn(face) => face.spec(),
            Source::Outside(tool) => ToolSpec {
                name: tool.name.clone(),
                description: tool.description.clone(),
                schema: tool.schema.clone(),
            },
            Source::Caller => ToolSpec {
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

    /// Looks at the arguments as the schema does. Gives what had to be read in another way than it was written.
    pub(crate) fn check(&self, value: &mut Value) -> Result<Vec<String>, Problem> {
        let schema = self.schema.to_value().unwrap_or_default();
        let notes = validate::coerce(&schema, value);
        match self.checks {
            Checks::Own => {}
            Checks::Schema => {
                validate::drop_nulls(&schema, value);
                validate::check(&schema, value).map_err(Problem::Schema)?;
            }
        }
        Ok(notes)
    }
}

/// The words for a tool that is not ours: the model knows them from the toolset it works with.
fn voice_of_others(toolset: Toolset) -> Voice {
    match toolset {
        Toolset::Gemini => gemini::others(OUTSIDE_CAP),
        Toolset::Lathe | Toolset::Trae | Toolset::Bash => Voice::lathe(OUTSIDE_CAP),
    }
}
