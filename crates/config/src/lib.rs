//! The options: defined once, read from files, variables and flags, merged, and documented.
//!
//! Every option is a field of [`Settings`]: its type, its range, its default, its help text, its
//! variable, its flag, its member in a request and whether a project may set it stand beside it once, and checking, merging,
//! masking, the command line, the server's requests and the reference are made from there. The command line comes before the environment, that before
//! the project's file, that before the user's, and each value keeps its [`Origin`].
//!
//! Two things are not a matter of precedence. A project may not choose where code and keys are sent,
//! what is started, what is written to, or how much is allowed: such keys are ignored with a warning. A few
//! of what is started it may name, entry by entry, once the user trusts the entry as it is: a [`Part`].
//! And a key belongs to its provider: when a higher layer chooses another provider, the address and
//! key that a file gave for the former one are dropped rather than sent to the wrong place. An address of a Trae file
//! that was trusted and not named gets no key but those of that file.
//!
//! Nothing is looked up here: [`load`] reads the files it is told, asks the `env` it is given, and
//! never reads a `.env`. Rejected: a configuration framework that merges by itself. None keeps file
//! and line of each value, tells a misspelt key from a known one, and knows who may say what.

mod check;
mod document;
mod foreign;
mod format;
mod load;
mod merge;
mod options;
mod part;
mod problem;
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
pub use part::{Part, project_parts};
pub use problem::{ConfigErrors, Fault, Origin, Problem, Source};
pub use secret::Secret;
pub use sections::{
    Console, FieldSection, LakeviewSection, McpServerSection, ModelSection, OnOutage, OnlineSection,
    ProviderSection, ReviewSection, RunSection, Settings, ToolsSection,
};
pub use show::{Row, trae_show_config};
pub use trae::{TraeValue, TraeValueKind, trae_values};
