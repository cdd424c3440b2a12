//! The `trae` toolset: Trae Agent's names, parameters and strings, on Lathe's tools.
//!
//! The words are an interface that people and models know, so they are matched to the letter. What Trae gets wrong behind
//! them (tabs, line endings, lost shell state, parameters that claim to be required) is right here.

mod arguments;
mod check;
mod words;

use lathe_protocol::Kind;

use crate::face::{Face, Voice};

pub(crate) use words::clipped;

/// Trae clips file text at this many characters.
const CLIP: usize = 16_000;

pub(crate) const EDIT_TOOL: &str = "str_replace_based_edit_tool";

const VOICE: Voice = Voice { render: words::data, words: words::problem, cap: CLIP };

pub(crate) static FACES: [Face; 6] = [
    Face::of::<arguments::Bash>(
        "bash",
        "Bash",
        Kind::Execute,
        include_str!("../built_in/bash/trae.md"),
        VOICE,
    ),
    Face::of::<arguments::Edit>(EDIT_TOOL, "Edit", Kind::Edit, include_str!("edit.md"), VOICE)
        .modified_by(crate::modify::trae),
    Face::of::<arguments::JsonEdit>(
        "json_edit_tool",
        "JSON",
        Kind::Edit,
        include_str!("json_edit.md"),
        Voice { words: words::json_problem, ..VOICE },
    ),
    Face::of::<arguments::Thinking>(
        "sequentialthinking",
        "Think",
        Kind::Think,
        include_str!("../built_in/think/trae.md"),
        VOICE,
    ),
    Face::of::<crate::ckg::TraeArguments>(
        "ckg",
        "Code graph",
        Kind::Search,
        include_str!("../built_in/ckg/trae.md"),
        VOICE,
    ),
    Face::of::<arguments::Done>(
        "task_done",
        "Done",
        Kind::Other,
        include_str!("../built_in/done/trae.md"),
        VOICE,
    ),
];
