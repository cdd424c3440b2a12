//! The `trae` toolset: Trae Agent's names, parameters and strings, on Lathe's tools.
//!
//! The words are an interface that people and models know, so they are matched to the letter. What Trae gets wrong behind
//! them (tabs, line endings, lost shell state, parameters that claim to be required) is right here.

mod arguments;
mod check;
mod words;

use lathe_protocol::Raw;

use crate::bash;
use crate::face::Face;
use crate::schema::schema_of;

pub(crate) use check::CheckTool;

/// Trae clips file text at this many characters.
const CLIP: usize = 16_000;

pub(crate) const EDIT_TOOL: &str = "str_replace_based_edit_tool";

pub(crate) static FACES: [Face; 4] = [
    Face {
        name: "bash",
        description: include_str!("../bash/trae.md"),
        schema: schema_of::<arguments::Bash>,
        adapt: |value| Ok((bash::ID, value)),
        render: words::data,
        words: words::problem,
        cap: CLIP,
    },
    Face {
        name: EDIT_TOOL,
        description: include_str!("edit.md"),
        schema: schema_of::<arguments::Edit>,
        adapt: arguments::adapt_edit,
        render: words::data,
        words: words::problem,
        cap: CLIP,
    },
    Face {
        name: "sequentialthinking",
        description: include_str!("../think/trae.md"),
        schema: schema_of::<arguments::Thinking>,
        adapt: arguments::adapt_thinking,
        render: words::data,
        words: words::problem,
        cap: CLIP,
    },
    Face {
        name: "task_done",
        description: include_str!("../done/trae.md"),
        schema: no_parameters,
        adapt: |_| Ok((crate::done::ID, serde_json::json!({}))),
        render: words::data,
        words: words::problem,
        cap: CLIP,
    },
];

fn no_parameters() -> Raw {
    Raw::parse(r#"{"type":"object","properties":{}}"#).unwrap_or_else(|_| Raw::null())
}
