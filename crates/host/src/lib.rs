//! The host: one per process. It opens the engines, owns the sessions and offers what surfaces need, typed by the protocol.

mod auth;
mod budget;
mod demo;
mod doctor;
mod error;
mod extras;
mod facts;
mod graph;
mod guarded;
mod home;
mod local;
mod lookup;
mod models;
mod patch;
mod probe;
mod providers;
mod report;
mod reports;
mod rewind;
mod session;
mod shell;
mod toolrun;
mod trajectory;
mod travel;

pub use auth::{KeyFrom, ProviderRow};
pub use demo::{DEMO_TASK, Demo, TestRun};
pub use doctor::{Check, CheckState};
pub use error::HostError;
pub use extras::{Discovery, Extras, FieldDomain};
pub use graph::{Asked, Export, QUESTIONS};
pub use home::Home;
pub use models::ModelRequest;
pub use providers::{PROVIDERS, Provider};
pub use report::{FileDiff, RunReport, event_diff, run_report};
pub use reports::Garbage;
pub use rewind::{PathAct, Really, Undone, What};
pub use session::{Host, ModelSource, Overrides, Session, SessionPlan, ShownRequest};
pub use shell::{PersonShell, ShellLine, ShellRun};
pub use toolrun::{ToolLook, ToolRun};
pub use trajectory::TrajectoryFile;
pub use travel::{Difference, LiveReplay};

pub use lathe_agent::{Divergence, Verified};
pub use lathe_journal::{SessionState, Summary};
pub use lathe_model::{Outage, Pace, Params, Patience, Strictness};
pub use lathe_views::{By, CacheMeter, CostReport, CostRow};
