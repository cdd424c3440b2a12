//! A face: the name, schema and words a tool has in one toolset.

use lathe_protocol::{Raw, Toolset};
use serde_json::Value;

use crate::outcome::Data;
use crate::problem::Problem;
use crate::{bash, done, edit, think, trae, view, write};

/// Arguments as the tool wants them, with the canonical name of the tool they are for.
pub(crate) type Adapted = (&'static str, Value);

pub(crate) struct Face {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    pub(crate) schema: fn() -> Raw,
    pub(crate) adapt: fn(Value) -> Result<Adapted, Problem>,
    /// Words for the model, at most about `cap` bytes of foreign text.
    pub(crate) render: fn(&Data, cap: usize) -> String,
    pub(crate) words: fn(&Problem) -> String,
    pub(crate) cap: usize,
}

/// The faces of a toolset, in the order in which the model is told of them.
pub(crate) fn faces(toolset: Toolset) -> &'static [Face] {
    match toolset {
        Toolset::Lathe => &LATHE,
        Toolset::Trae => &trae::FACES,
    }
}

static LATHE: [Face; 6] = [
    Face {
        name: "bash",
        description: include_str!("bash/lathe.md"),
        schema: crate::schema::schema_of::<bash::Arguments>,
        adapt: |arguments| Ok((bash::ID, arguments)),
        render: words,
        words: Problem::words,
        cap: 30_000,
    },
    Face {
        name: "view",
        description: include_str!("view/lathe.md"),
        schema: crate::schema::schema_of::<view::LatheArguments>,
        adapt: view::adapt_lathe,
        render: words,
        words: Problem::words,
        cap: 48_000,
    },
    Face {
        name: "edit",
        description: include_str!("edit/lathe.md"),
        schema: crate::schema::schema_of::<edit::Arguments>,
        adapt: |arguments| Ok((edit::ID, arguments)),
        render: words,
        words: Problem::words,
        cap: 16_000,
    },
    Face {
        name: "write",
        description: include_str!("write/lathe.md"),
        schema: crate::schema::schema_of::<write::LatheArguments>,
        adapt: write::adapt_lathe,
        render: words,
        words: Problem::words,
        cap: 16_000,
    },
    Face {
        name: "think",
        description: include_str!("think/lathe.md"),
        schema: crate::schema::schema_of::<think::LatheArguments>,
        adapt: think::adapt_lathe,
        render: words,
        words: Problem::words,
        cap: 16_000,
    },
    Face {
        name: "task_done",
        description: include_str!("done/lathe.md"),
        schema: crate::schema::schema_of::<done::Arguments>,
        adapt: |arguments| Ok((done::ID, arguments)),
        render: words,
        words: Problem::words,
        cap: 16_000,
    },
];

/// Lathe's own words for what tools return. Foreign text stands between tags, so the model can tell it from ours.
fn words(data: &Data, cap: usize) -> String {
    match data {
        Data::Shell(shell) => bash::words(shell, cap),
        Data::ShellRestarted => {
            "The shell was restarted: a fresh one in the start folder; what the old one ran is ended."
                .to_owned()
        }
        Data::File(file) => view::file_words(file, cap),
        Data::Folder(folder) => view::folder_words(folder, cap),
        Data::Written(written) => write::words(written),
        Data::Edited(edited) => edit::words(edited, cap),
        Data::Thought(_) => "Noted.".to_owned(),
        Data::Done { .. } => "Task done.".to_owned(),
    }
}
