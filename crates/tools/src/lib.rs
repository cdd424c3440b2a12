//! Tools: what the model can do, implemented once and spoken in the words of each toolset.
//!
//! The parameters of a tool become an `Invocation`, which knows its effects before it runs and returns data, not prose. A
//! `Face` gives it the name, schema and words of one toolset. The [`Toolbox`] joins both: it prepares a call so that the
//! gate can look at it, and runs it with the permit the gate gave.
//!
//! Invariant: foreign text loses its secrets before it is cut, because half a secret is no longer recognised.

mod built_in;
mod call;
mod caller;
mod check;
mod commands;
mod commit;
mod disk;
mod entry;
mod face;
mod filters;
mod finish;
mod gemini;
mod git_leads;
mod git_runs;
mod hidden;
mod known;
mod modify;
mod outcome;
mod outputs;
mod outside;
mod placeholder;
mod preview;
mod problem;
mod schedule;
mod schema;
mod secure;
mod selection;
mod services;
mod soft;
mod syntax;
mod tool;
mod toolbox;
mod tracking;
mod trae;
mod unseen;
mod validate;

use built_in::{
    ask, bash, ckg, code, data, done, edit, glob, list, many, memory, online, patch, review, search, think,
    todo, view, write,
};

pub use bash::{LateChanges, PersonLine, ran_in_background, run_line, writes_only_what_it_names};
pub use check::{CheckRule, Checks};
pub use commands::{
    ANSWERS, CommandCheck, Fresh, Judge, Judged, Ledger, Notebook, Recalled, built_in_commands,
};
pub use disk::LocalDisk;
pub use entry::ToolAbout;
pub use finish::recorded;
pub use online::{DocumentAnswer, DocumentAsk, Documents};
pub use outputs::{Handle, Output, Outputs};
pub use outside::{Domain, Layer, OutsideTool, Provider, ProviderRan};
pub use preview::Preview;
pub use review::{ID as REVIEW_TOOL, Review, ReviewAsk, Reviewer, ReviewsLeft};
pub use schedule::{Stage, startable};
pub use secure::{Keeper, ToldAside, told_aside, told_aside_in};
pub use selection::{check_entry, every_tool_name, known_names, narrowed, passing_entries};
pub use services::{LiveOutput, Services, ShellPlan};
pub use tool::{Asker, RunContext, ShellLine, Wanted};
pub use toolbox::{Prepared, Toolbox, allow, exclude};
pub use tracking::Tracking;
pub use view::{MEDIA as LARGEST_IMAGE, image_type};
