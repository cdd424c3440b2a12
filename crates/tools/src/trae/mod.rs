//! The `trae` toolset: Trae Agent's names, parameters and strings, on Lathe's tools.
//!
//! The words are an interface that people and models know, so they are matched to the letter. What Trae gets wrong behind
//! them (tabs, line endings, lost shell state, parameters that claim to be required) is right here.

mod arguments;
mod check;
mod words;

use lathe_protocol::{Kind, Raw};

use crate::bash;
use crate::face::{Checks, Face, Voice};
use crate::schema::schema_of;

pub(crate) use check::CheckTool;
pub(crate) use words::clipped;

/// Trae clips file text at this many characters.
const CLIP: usize = 16_000;

pub(crate) const EDIT_TOOL: &str = "str_replace_based_edit_tool";

const VOICE: Voice = Voice { render: words::data, words: words::problem, cap: CLIP };

pub(crate) static FACES: [Face; 6] = [
    Face {
        name: "bash",
        display: "Bash",
        aliases: &[],
        kind: Kind::Execute,
        description: include_str!("../bash/trae.md"),
        schema: schema_of::<arguments::Bash>,
        checks: Checks::Own,
        adapt: |value| Ok((bash::ID, value)),
        modify: None,
        voice: VOICE,
    },
    Face {
        name: EDIT_TOOL,
        display: "Edit",
        aliases: &[],
        kind: Kind::Edit,
        description: include_str!("edit.md"),
        schema: schema_of::<arguments::Edit>,
        checks: Checks::Own,
        adapt: arguments::adapt_edit,
        modify: Some(crate::modify::trae),
        voice: VOICE,
    },
    Face {
        name: "json_edit_tool",
        display: "JSON",
        aliases: &[],
        kind: Kind::Edit,
        description: include_str!("json_edit.md"),
        schema: schema_of::<arguments::JsonEdit>,
        checks: Checks::Own,
        adapt: arguments::adapt_json,
        modify: None,
        voice: Voice { words: words::json_problem, ..VOICE },
    },
    Face {
        name: "sequentialthinking",
        display: "Think",
        aliases: &[],
        kind: Kind::Think,
        description: include_str!("../think/trae.md"),
        schema: schema_of::<arguments::Thinking>,
        checks: Checks::Own,
        adapt: arguments::adapt_thinking,
        modify: None,
        voice: VOICE,
    },
    Face {
        name: "ckg",
        display: "Code graph",
        aliases: &[],
        kind: Kind::Search,
        description: include_str!("../ckg/trae.md"),
        schema: schema_of::<crate::ckg::TraeArguments>,
        checks: Checks::Own,
        adapt: crate::ckg::adapt_trae,
        modify: None,
        voice: VOICE,
    },
    Face {
        name: "task_done",
        display: "Done",
        aliases: &[],
        kind: Kind::Other,
        description: include_str!("../done/trae.md"),
        schema: no_parameters,
        checks: Checks::Own,
        adapt: |_| Ok((crate::done::ID, serde_json::json!({}))),
        modify: None,
        voice: VOICE,
    },
];

fn no_parameters() -> Raw {
    Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap_or_else(|_| Raw::null())
}
