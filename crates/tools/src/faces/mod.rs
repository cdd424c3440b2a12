//! Faces: the names, schemas and words under which a model sees the tools, one set for each toolset.

pub(crate) mod caller;
mod face;
pub(crate) mod gemini;
pub(crate) mod modify;
mod schema;
mod selection;
mod soft;
mod tool_entry;
pub(crate) mod trae;
mod validate;

pub(crate) use face::{ArgumentCheck, Face, Voice, faces, words};
pub(crate) use schema::schema_of;
pub(crate) use selection::{Selection, ToolNames, is_shell};
pub use selection::{check_entry, every_tool_name, known_names, narrow_choice, transient_entries};
pub(crate) use soft::{Soft, with_null};
pub use tool_entry::ToolAbout;
pub(crate) use tool_entry::{ToolEntry, ToolSource, tool_entries};
pub(crate) use validate::check as check_arguments;
