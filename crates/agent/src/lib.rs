//! The agent: a session as a state machine over its journal.
//!
//! `next` says what to do, `apply` what an event means; both are pure. The actor around them receives, decides, appends,
//! applies and acts, one at a time, and owns every effect it starts.

mod actor;
mod blocking;
mod budget;
mod effects;
mod handle;
mod history;
mod lakeview;
mod next;
mod patch;
mod prompt;
mod review;
mod running;
mod state;
mod verify;

pub use actor::{Actor, AgentError, Answers, Clock, Setup};
pub use blocking::blocking;
pub use budget::Spent;
pub use handle::{LocalHandle, OpenReader};
pub use history::History;
pub use lakeview::{Lakeview, StepText, StepTexts, TAGS};
pub use next::{Action, next};
pub use patch::{EMPTY_PATCH, Patcher, is_test_path};
pub use prompt::{Facts, SessionLimits, system_prompt};
pub use review::{Judgement, Reviews};
pub use state::{Asking, Baseline, Call, CallStage, DONE_TOOL, HeadState, Phase, State};
pub use verify::{Divergence, Verified, verify};
