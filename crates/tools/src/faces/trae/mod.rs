//! The `trae` toolset: Trae Agent's names, parameters and strings, on Lathe's tools.
//!
//! The words are an interface that people and models know, so they are matched to the letter. Faults of Trae that the
//! words hide (tabs, line endings, lost shell state, parameters that claim to be required) are not repeated here.

mod arguments;
mod check;
mod strings;

use lathe_protocol::ToolKind;

use crate::faces::{Face, Voice};

pub(crate) use strings::clipped;

/// Trae clips file text at this many characters.
const CLIP: usize = 16_000;

pub(crate) const EDIT_TOOL: &str = "str_replace_based_edit_tool";

const VOICE: Voice = Voice { render: strings::data, words: strings::problem, cap: CLIP };

pub(crate) static FACES: [Face; 6] = [
    Face::of::<arguments::TraeBash>(
        "bash",
        "Bash",
        ToolKind::Execute,
        include_str!("../../built_in/bash/trae.md"),
        VOICE,
    ),
    Face::of::<arguments::TraeEdit>(EDIT_TOOL, "Edit", ToolKind::Edit, include_str!("edit.md"), VOICE)
        .modified_by(crate::faces::modify::trae),
    Face::of::<arguments::TraeJsonEdit>(
        "json_edit_tool",
        "JSON",
        ToolKind::Edit,
        include_str!("json_edit.md"),
        Voice { words: strings::json_problem, ..VOICE },
    ),
    Face::of::<arguments::TraeThinking>(
        "sequentialthinking",
        "Think",
        ToolKind::Think,
        include_str!("../../built_in/think/trae.md"),
        VOICE,
    ),
    Face::of::<crate::ckg::TraeCkg>(
        "ckg",
        "Code graph",
        ToolKind::Search,
        include_str!("../../built_in/ckg/trae.md"),
        VOICE,
    ),
    Face::of::<arguments::TraeDone>(
        "task_done",
        "Done",
        ToolKind::Other,
        include_str!("../../built_in/done/trae.md"),
        VOICE,
    ),
];
