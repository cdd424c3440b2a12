//! The host: one per process. It opens the engines, owns the sessions and offers what surfaces need, in types of the
//! protocol.

mod archive;
mod aside;
mod blocking;
mod demo;
mod doctor;
mod documents;
mod error;
mod files;
mod home;
mod models;
mod nested;
mod network;
mod process;
mod rules;
mod session;
mod tools;
mod walls;
mod workspace;

pub use archive::Archive;
pub use archive::fork_replay::{LiveReplay, ReplayDifference};
pub use archive::frames::{EventReader, FrameReader};
pub use archive::garbage::Garbage;
pub use archive::quarantine::{KeptEntry, QuarantineRestore};
pub use archive::removed::{Removals, RemovedItem};
pub use archive::replica::Replica;
pub use archive::review::{FileReview, HunkReview, ReviewOutcome, ReviewWish};
pub use archive::rewind::{PathAct, RewindAction, RewindReport, RewindScope};
pub use archive::run_report::{Denial, RunReport, run_report, run_report_since};
pub use archive::trajectory::{TrajectoryFile, trae_trajectories, trae_trajectory, trajectories_of_tasks};
pub use aside::ReviewPlan;
pub use aside::lakeview::{LakeviewPlan, Summariser, SummaryDestination, SummaryProgress};
pub use blocking::{blocking, blocking_in_turn, on_pool};
pub use demo::{DEMO_TASK, Demo, TestRun};
pub use doctor::{Check, CheckState};
pub use documents::{OnlinePlan, Shelf, ShelfError};
pub use error::{FileProblem, HostError, KeySource};
pub use files::own::{own_folder, own_lock, own_text, own_write};
pub use home::Home;
pub use models::Models;
pub use models::auth::{KeyFrom, ProviderRow};
pub use models::keys::{AddressFrom, same_address, server_model_name};
pub use models::providers::{CUSTOM_PROVIDER, PROVIDERS, Provider, provider_names};
pub use models::request::{ModelRequest, address_refusal, is_recorded_model};
pub use network::HostLists;
pub use process::limits::raise_limits;
pub use process::seal::seal_process;
pub use process::terminal::{TerminalModes, ask_to_end, discard_typed_input, ignores_hangup, user_program};
pub use rules::Rules;
pub use rules::line_check::{LineCheckResult, PolicyCheck, unread_ignore_file};
pub use rules::policy_replay::{ChangedDecision, PolicyReplay};
pub use rules::trust::{
    INSTRUCTIONS, InspectedItem, ProjectInspection, ProjectPart, ProjectText, TRAE_FILES,
};
pub use session::extras::{Extras, FieldDomain, Notices, ToolDiscovery};
pub use session::folder::identity as folder_identity;
pub use session::images::{TaskImage, is_image, read_images};
pub use session::machine::RememberedFacts;
pub use session::patch::SessionPatch;
pub use session::secrets::shown_setting;
pub use session::{
    Attended, Host, ModeWish, ModelSource, OpenSession, Overrides, ReplayPlan, SessionPlan, ShownRequest,
};
pub use tools::graph::{GraphAnswer, GraphExport, Graphs};
pub use tools::shell::{ShellLineEnd, ShellRun, UserShell};
pub use tools::tool_run::{ToolDesk, ToolPreview, ToolRun};
pub use walls::SandboxLimits;
