//! The list of built-in tools.
//!
//! A tool is a folder with its parameters, its faces, its command and its code; this list is the only other place it
//! is named in. A rule calls it by its canonical name. Further names are a row of the gate's table
//! (`policy/src/names.rs`), on purpose: a tool does not give itself other names by which it is allowed. Tools that
//! only other toolsets have are named by those.

pub(crate) mod ask;
pub(crate) mod bash;
pub(crate) mod ckg;
pub(crate) mod code;
pub(crate) mod data;
pub(crate) mod done;
pub(crate) mod edit;
pub(crate) mod glob;
pub(crate) mod list;
pub(crate) mod many;
pub(crate) mod memory;
pub(crate) mod online;
pub(crate) mod patch;
pub(crate) mod review;
pub(crate) mod search;
pub(crate) mod think;
pub(crate) mod todo;
pub(crate) mod view;
pub(crate) mod write;

use crate::commands::AgentCommand;
use crate::faces::Face;
use crate::services::Services;

/// A tool as it is offered: to the model of the `lathe` toolset, in the shell, or both.
pub(crate) struct BuiltIn {
    pub(crate) face: Option<Face>,
    pub(crate) command: Option<AgentCommand>,
    /// Tells whether a session has the tool. None if every session has it. Tools that only some sessions have come
    /// last in the model's list.
    pub(crate) only_if: Option<fn(&Services) -> bool>,
}

/// The tools, in the order in which models and people see them.
static ALL: &[&BuiltIn] = &[
    &bash::TOOL,
    &view::TOOL,
    &search::TOOL,
    &glob::TOOL,
    &list::TOOL,
    &code::TOOL,
    &ckg::TOOL,
    &edit::TOOL,
    &write::TOOL,
    &data::TOOL,
    &patch::TOOL,
    &think::TOOL,
    &todo::TOOL,
    &memory::TOOL,
    &ask::TOOL,
    &done::TOOL,
    &review::TOOL,
    &online::TOOL,
];

fn all() -> impl Iterator<Item = &'static BuiltIn> {
    ALL.iter().copied()
}

/// The canonical names.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all().flat_map(|tool| {
        let face = tool.face.as_ref().map(|face| face.name);
        [face, tool.command.as_ref().map(|command| command.tool)].into_iter().flatten()
    })
}

/// The faces of the `lathe` toolset that every session has.
pub(crate) fn lathe_faces() -> impl Iterator<Item = &'static Face> {
    all().filter(|tool| tool.only_if.is_none()).filter_map(|tool| tool.face.as_ref())
}

/// The faces that only some sessions have, of those tools whose condition is met. They have one name in every toolset.
pub(crate) fn special_faces(
    is_met: impl Fn(fn(&Services) -> bool) -> bool,
) -> impl Iterator<Item = &'static Face> {
    all().filter(move |tool| tool.only_if.is_some_and(&is_met)).filter_map(|tool| tool.face.as_ref())
}

/// The shell commands that run a tool.
pub(crate) fn commands() -> impl Iterator<Item = &'static AgentCommand> {
    all().filter_map(|tool| tool.command.as_ref())
}
