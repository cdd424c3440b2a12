//! The forms of a view request: the parameters of the `lathe` toolset, and the words of the command.

use schemars::JsonSchema;
use serde::Deserialize;

use super::ViewParameters;
use crate::call::{CommandWords, FaceArguments, TypedCall};
use crate::problem::Problem;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ViewArguments {
    /// File or folder; relative paths are relative to the workspace.
    path: String,
    /// First line to show, from 1.
    #[serde(default)]
    offset: Option<i64>,
    /// How many lines to show; 2000 if left out.
    #[serde(default)]
    limit: Option<i64>,
}

impl FaceArguments for ViewArguments {
    fn call(self) -> Result<TypedCall, Problem> {
        let Self { path, offset, limit } = self;
        if limit.is_some_and(|limit| limit < 1) {
            return Err(Problem::Arguments("limit: it must be at least 1".to_owned()));
        }
        let last = limit.map(|limit| offset.unwrap_or(1).saturating_add(limit - 1));
        Ok(TypedCall::new(ViewParameters {
            path,
            first: offset,
            last,
            leave_ignored: true,
            ..ViewParameters::default()
        }))
    }
}

/// The words of the command in the shell.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ViewWords {
    /// Files or folders.
    #[schemars(with = "Vec<String>")]
    file_path: Paths,
    /// First line to show, from 1.
    offset: Option<i64>,
    /// How many lines to show; 2000 if left out.
    limit: Option<i64>,
    /// Number the lines. On where the output is read by a model, off in a pipe or file.
    #[serde(rename = "show_line_numbers")]
    _show_line_numbers: Option<bool>,
    /// The bytes as they are, wherever they go.
    #[serde(rename = "raw")]
    _raw: Option<bool>,
}

/// Files given as one word each, or as one text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Paths {
    Several(Vec<String>),
    One(String),
}

impl CommandWords for ViewWords {
    fn calls(self) -> Result<Vec<TypedCall>, Problem> {
        let Self { file_path, offset, limit, .. } = self;
        let paths = match file_path {
            Paths::Several(paths) => paths,
            Paths::One(path) => vec![path],
        };
        paths.into_iter().map(|path| ViewArguments { path, offset, limit }.call()).collect()
    }
}
