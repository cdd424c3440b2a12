//! The workspace: files and processes of the place where the agent works.
//!
//! No tool knows where it runs. A session is handed one [`Workspace`], with the seams `Files` and `Processes`, a path map and
//! a level; `workspace.rs` says how a jail and containers join.

mod capture;
mod error;
mod fence;
mod files;
mod guard;
mod landing;
mod led;
mod local_files;
mod local_process;
mod local_tree;
mod path_map;
mod pin;
mod process;
mod programs;
mod protected;
mod regular;
mod surroundings;
mod workspace;

pub use capture::{CaptureEnd, CaptureLimits, Captured, capture};
pub use error::WorkspaceError;
pub use fence::{Fence, FenceRight};
pub use files::{Applied, Content, Entry, Expect, FileKind, FileOp, Files, Named, Stat};
pub use guard::open_exact;
pub use landing::{Landing, Queued, completes_repository, in_turn, landing, makes_repository, queue};
pub use led::{ConfigPlaces, behind_protected};
pub use local_files::{Incoming, LocalFiles, WalkBounds};
pub use local_process::LocalProcesses;
pub use local_tree::{LocalTree, MayOpen};
pub use path_map::PathMap;
pub use pin::Pin;
pub use process::{Boxed, Child, Ended, Pipes, Processes, Spawn, program_command};
pub use programs::{absolute_path, find_program, safe_path};
pub use protected::{is_protected, is_protected_ground, is_protected_in};
pub use regular::{content_of, leads_nowhere, nowhere, open_regular, read_regular};
pub use surroundings::{Surroundings, without_imports};
pub use workspace::{Level, Workspace};
