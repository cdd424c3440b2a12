//! The agent: a session as a state machine over its journal.
//!
//! `next` decides what to do, `apply` interprets an event; both are pure. The actor around them receives, decides,
//! appends, applies and acts, one step at a time, and owns every effect it starts.

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

pub use actor::{Actor, ActorSetup, AgentError, ApprovalStore, Clock};
pub use blocking::blocking;
pub use budget::Spending;
pub use handle::{LocalHandle, OpenReader};
pub use history::History;
pub use lakeview::{Lakeview, StepText, StepTexts, TAGS};
pub use next::{Action, next};
pub use patch::{EMPTY_PATCH, Patcher, is_test_path};
pub use prompt::{PromptFacts, SessionLimits, system_prompt};
pub use review::{EditJudge, Reviews};
pub use state::{Baseline, CallStage, DONE_TOOL, HeadState, Phase, QuestionState, StagedCall, State};
pub use verify::{Divergence, Verification, verify};
