//! The gate: decides whether something may be done.
//!
//! Pure: no files, no clock, no questions. What a tool does is decided by its effects and never by its name, so a new
//! tool cannot slip past; what a shell line does, by the commands found in it. It fails closed: what nobody understands
//! counts as a change. The order is: the guard; the floors R2 to R9 of `docs/policy.md`; any denial of any tier; the
//! highest tier with a matching rule, the strictest within it; then the mode.

mod asked;
mod behind;
mod cause;
mod copied;
mod disk;
mod dotted;
mod eased;
mod error;
mod examples;
mod extglob;
mod fed;
mod file;
mod fileword;
mod folders;
mod follows;
mod gate;
mod git;
mod git_asks;
mod git_config;
mod git_objects;
mod git_option;
mod git_paths;
mod git_tables;
mod git_writes;
mod grant;
mod guard;
mod guarded;
mod harm;
mod inside;
mod joined;
mod kind_table;
mod kinds;
mod line;
mod lists;
mod losses;
mod names;
mod once;
mod operators;
mod own_binary;
mod pattern;
mod patterns;
mod places;
mod program_names;
mod reach;
mod reach_find;
mod reach_git;
mod reading;
mod regexes;
mod removes;
mod rules;
mod runtime;
mod searchers;
mod sets;
mod sources;
mod state;
mod switched;
mod template;
mod tested;
mod touch;
mod trust;
mod unset;
mod whole_folders;

pub use asked::Asked;
pub use disk::{Disk, FileId, GitHere, Lead, OnDisk};
pub use dotted::may_mean_dots;
pub use error::PolicyError;
pub use gate::{Gate, Permit};
pub use grant::Grant;
pub use line::{Each, LineDecision, Narrowest};
pub use losses::{Losses, LostTree};
pub use names::{KnownNames, all_tool_names, check_tool_name, is_passing_name, tool_names};
pub use patterns::fits;
pub use reading::{Depth, Region};
pub use rules::{Call, OwnCommand, Rulebook, Tier};
pub use switched::Switched;
pub use template::{NamedFiles, Template, named_files};
pub use trust::{Entry, Item, TrustBook};
