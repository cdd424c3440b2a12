//! The host: one per process. It opens the engines, owns the sessions and offers what surfaces need, typed by the protocol.

mod archive;
mod aside;
mod blocking;
mod browse;
mod clean;
mod demo;
mod doctor;
mod documents;
mod error;
mod extras;
mod facts;
mod first;
mod git;
mod graph;
mod home;
mod lakeview;
mod limits;
mod models;
mod named;
mod nested;
mod outfile;
mod own;
mod ownfile;
mod patch;
mod pictures;
mod place;
mod replica;
mod rules;
mod seal;
mod secrets;
mod session;
mod shell;
mod toolrun;
mod travel;
mod typed;
mod watching;

pub use archive::Archive;
pub use archive::frames::FrameReader;
pub use archive::removed::Removed;
pub use archive::report::{Denial, FileDiff, RunReport, event_diff, run_report, run_report_since};
pub use archive::reports::Garbage;
pub use archive::review::{FileReview, HunkReview, ReviewWish, Reviewed};
pub use archive::rewind::{PathAct, Really, Undone, What};
pub use archive::set_aside::AsideFile;
pub use archive::trajectory::{TrajectoryFile, trae_trajectories, trae_trajectory, trajectories_of_tasks};
pub use aside::ReviewPlan;
pub use blocking::{blocking, blocking_in_turn};
pub use browse::{
    Browser, Download, FileContent, FileItem, Listing, READ_MAX, Saved, SearchFound, SearchHit, SearchWish,
    UPLOAD_MAX, Upload,
};
pub use clean::{clean, is_hidden, push_visible};
pub use demo::{DEMO_TASK, Demo, TestRun};
pub use doctor::{Check, CheckState};
pub use documents::{OnlinePlan, Shelf, ShelfError};
pub use error::{FileProblem, HostError};
pub use extras::{Discovery, Extras, FieldDomain, Notices};
pub use facts::RememberedFacts;
pub use git::{CommitWish, GitCommit, GitFile, GitPlace, GitStatus};
pub use graph::{Asked, Export, QUESTIONS};
pub use home::Home;
pub use lakeview::{Keep, LakeviewPlan, SummingProgress};
pub use lathe_tools::{CHANGED_BY_OTHERS, CheckRule, check_entry as check_tool_entry};
pub use limits::fit_limits;
pub use models::Models;
pub use models::auth::{KeyFrom, ProviderRow};
pub use models::keys::{AddressFrom, kept_as, same_address};
pub use models::providers::{CUSTOM_PROVIDER, PROVIDERS, Provider, provider_names};
pub use models::request::{ModelRequest, is_recorded_model};
pub use ownfile::{own_folder, own_lock, own_text, own_write};
pub use pictures::{TaskImage, is_image, read_images};
pub use replica::Replica;
pub use rules::Rules;
pub use rules::policy::{PolicyCheck, unread_ignore_file};
pub use rules::policy_replay::{Changed, PolicyReplay};
pub use rules::trust::{INSTRUCTIONS, Looked, ProjectLook, ProjectPart, ProjectText, TRAE_FILES};
pub use seal::seal_process;
pub use secrets::shown_setting;
pub use session::{Attended, Host, ModelSource, Overrides, Session, SessionPlan, ShownRequest};
pub use shell::{PersonShell, ShellLine, ShellRun};
pub use toolrun::{ToolLook, ToolRun};
pub use travel::{Difference, LivePlan, LiveReplay};
pub use typed::{TerminalModes, ask_to_end, drop_typed, ignores_hangup};
pub use watching::{Happened, Watching};

pub use lathe_agent::{Divergence, Lakeview, ProposedText, Verified};
pub use lathe_changes::{Kept, PutBack};
pub use lathe_documents::{Document, Found, ServiceOptions, Version};
pub use lathe_journal::{SessionState, Summary};
pub use lathe_model::{Outage, Pace, Params, Patience, Reach, Strictness};
pub use lathe_policy::{Each, Entry, Item, ItemKind, ItemState, LineDecision, Said, visible};
pub use lathe_views::{
    Beside, By, CacheMeter, CostReport, CostRow, Cursor, LiveFrames, Projector, WireFrame, lakeview_line,
    masked_bytes, masked_file, wire_json,
};
