//! The gate: decides whether an invocation or a shell line may run.
//!
//! Pure: no files, no clock, no questions. A tool is decided by its effects and never by its name, so a new tool
//! cannot slip past; a shell line is decided by the commands found in it. The gate fails closed: anything it does not
//! understand counts as a change. The order is: the guard; the floors R2 to R9 of `docs/policy.md`; any denial of any
//! tier; the highest tier with a matching rule, the strictest within it; then the mode.

mod absolute_paths;
mod agent_commands;
mod cause;
mod copied_programs;
mod disk;
mod dot_patterns;
mod eased;
mod error;
mod examples;
mod extglob;
mod extra_reads;
mod file;
mod file_words;
mod folders;
mod gate;
mod git;
mod git_asks;
mod git_config;
mod git_objects;
mod git_option;
mod git_paths;
mod git_tables;
mod git_writes;
mod guard;
mod guarded;
mod guarded_writes;
mod handed_names;
mod harm;
mod kind_table;
mod kinds;
mod later_lines;
mod line;
mod line_decision;
mod listed_once;
mod lists;
mod losses;
mod name_sources;
mod names;
mod operators;
mod own_binary;
mod pattern;
mod patterns;
mod places;
mod possible_commands;
mod program_names;
mod reach;
mod reach_find;
mod reach_git;
mod reading;
mod regexes;
mod removes;
mod rules;
mod runtime_names;
mod searchers;
mod sets;
mod spelled_denials;
mod standing_approval;
mod switched;
mod template;
mod tested_files;
mod touch;
mod trust;
mod unset_variables;
mod walls;
mod whole_folders;

pub use agent_commands::AgentCommandRequest;
pub use disk::{Disk, FileId, GitReach, Lead, OnDisk};
pub use dot_patterns::may_mean_dots;
pub use error::PolicyError;
pub use gate::{Gate, Permit};
pub use line_decision::{ApprovableCommand, CommandDecision, LineDecision};
pub use losses::{Losses, LostTree};
pub use names::{KnownNames, all_tool_names, check_tool_name, is_passing_name, tool_names};
pub use patterns::tool_name_matches;
pub use reading::{Depth, KeyPatterns, Region, key_patterns};
pub use rules::{GateCall, OwnCommand, Rulebook, Tier};
pub use standing_approval::StandingApproval;
pub use switched::ShellSwitches;
pub use template::{NamedFiles, Template, named_files};
pub use trust::{TrustEntry, TrustItem, TrustRecord};
pub use walls::Walls;
