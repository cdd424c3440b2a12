//! The options: defined once, read from files, variables and flags, merged, and documented.
//!
//! Every option is a field of [`Settings`]. Its type, range, default, help text, variable, flag, member in a request
//! and whether a project may set it stand there once. Checking, merging, masking, the command line, the server's
//! requests and the reference are all made from it. The command line comes before the environment, that before the
//! project's file, that before the user's, and each value keeps its [`Origin`].
//!
//! Two things are not a matter of precedence. First, a project may not choose where code and keys are sent, what is
//! started, what is written to, or how much is allowed: such keys are ignored with a warning. It may name a few
//! programs, entry by entry, once the user trusts the entry as it is: a [`ConfigPart`]. Second, a key belongs to its
//! provider: when a higher layer chooses another provider, the address and key that a file gave for the former one
//! are dropped rather than sent to the wrong place. An address of a Trae file that was trusted but not named gets
//! only the keys of that file.
//!
//! Nothing is searched for here: [`load`] reads the files it is given, asks the `env` it is given, and never reads a
//! `.env`. Rejected: a configuration framework that merges by itself. None keeps file and line of each value, tells a
//! misspelt key from a known one, and knows who may set what.

mod check;
mod document;
mod foreign;
mod format;
mod load;
mod merge;
mod options;
mod part;
mod problem;
mod sandbox;
mod schema;
mod secret;
mod sections;
mod show;
mod trae;
mod tree;

pub use document::documentation;
pub use foreign::{ForeignEndpoints, TrustedTrae};
pub use format::ProjectFiles;
pub use load::{Config, Flag, Inputs, NamedFile, load};
pub use options::{FlagRow, MemberRow, OptionForm, OptionRow, option_of_key, options};
pub use part::{ConfigPart, project_parts};
pub use problem::{ConfigErrors, ConfigFault, Origin, Problem, ValueSource};
pub use sandbox::SandboxSection;
pub use secret::Secret;
pub use sections::{
    ConsoleStyle, FieldSection, LakeviewSection, McpServerSection, ModelSection, OnOutage, OnlineSection,
    ProviderSection, ReviewSection, RunSection, Settings, ToolsSection,
};
pub use show::{ShownRow, trae_show_config};
pub use trae::{TraeValue, TraeValueKind, trae_values};
