//! Tools: the actions of a model, implemented once and worded for each toolset.
//!
//! The parameters of a tool become an `Invocation`, which knows its effects before it runs and returns data, not
//! prose. A `Face` gives it the name, schema and words of one toolset. The [`Toolbox`] joins both: it prepares a call
//! so that the gate can inspect it, and runs it with the permit that the gate gave.
//!
//! Invariant: foreign text is redacted before it is cut, because half a secret is no longer recognised.

mod built_in;
mod call;
mod commands;
mod faces;
mod files;
mod filters;
mod finish;
mod line;
mod outcome;
mod outputs;
mod outside;
mod placeholder;
mod preview;
mod problem;
mod schedule;
mod services;
mod tool;
mod toolbox;

use built_in::{
    ask, bash, ckg, code, data, done, edit, glob, list, many, memory, online, patch, review, search, think,
    todo, view, write,
};

pub use bash::{LateChanges, UserLineOutcome, background_event, run_line, writes_only_what_it_names};
pub use commands::{
    APPROVALS_FILE, CallGate, CommandCheck, FreshnessCheck, GateDecision, Ledger, LocalLedger, Recalled,
    built_in_commands,
};
pub use faces::{ToolAbout, check_entry, every_tool_name, known_names, narrow_choice, transient_entries};
pub use files::{CheckRule, Checks};
pub use finish::journal_changes;
pub use line::{AsideNote, Keeper, LocalDisk, Tracking, aside_note, aside_notes, left_protected_note};
pub use online::{DocumentReply, DocumentRequest, Documents};
pub use outputs::{OutputFiles, OutputHandle, RecordedOutput};
pub use outside::{Domain, Layer, OutsideTool, ProviderOutput, ToolProvider};
pub use preview::Preview;
pub use review::{ID as REVIEW_TOOL, ReviewRequest, ReviewRole, Reviewer, ReviewsLeft};
pub use schedule::{Stage, startable};
pub use services::{LiveOutput, Services, ShellPlan};
pub use tool::{Asker, CommandApproval, RunContext, ShellLine};
pub use toolbox::{PreparedCall, Toolbox, allow_listed, exclude_listed};
pub use view::{LARGEST_MEDIA as LARGEST_IMAGE, image_type};
