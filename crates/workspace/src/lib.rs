//! The workspace: files and processes of the place where the agent works.
//!
//! No tool knows where it runs. A session is given one [`Workspace`], with the seams `Files` and `Processes`, a path
//! map and a level; `workspace.rs` describes how a jail and containers fit in.

mod capture;
mod error;
mod fence;
mod files;
mod guard;
mod jail;
mod local_files;
mod local_process;
mod local_tree;
mod naming_lock;
mod path_map;
mod pin;
mod process;
mod programs;
mod protected;
mod protected_targets;
mod regular;
mod surroundings;
mod workspace;

pub use capture::{CaptureEnd, CaptureLimits, Captured, capture};
pub use error::WorkspaceError;
pub use fence::{Fence, FenceRight};
pub use files::{Applied, Content, Expect, FileInfo, FileKind, FileOp, Files, FolderEntry, WalkEntry};
pub use guard::open_exact;
pub use jail::{
    Breach, Jail, JailLimits, JailPlan, JailProfile, JailWatch, NetworkDoor, NetworkVisit, WallsFound,
    WatchedSpan, breach_of, find_walls, privileged_sockets,
};
pub use local_files::{Incoming, LocalFiles, WalkBounds};
pub use local_process::LocalProcesses;
pub use local_tree::{LocalTree, MayOpen};
pub use naming_lock::{
    NamingLock, QueuePlace, completes_repository, lock_naming, makes_repository, queue, run_in_turn,
};
pub use path_map::PathMap;
pub use pin::Pin;
pub use process::{Boxed, Child, Ended, Pipes, Processes, Spawn, program_command};
pub use programs::{absolute_path, find_program, safe_path};
pub use protected::{is_protected, is_protected_ground, is_protected_in};
pub use protected_targets::{ConfigPaths, protected_targets};
pub use regular::{content_of, dangling_link_error, is_dangling, open_regular, read_regular};
pub use surroundings::{Surroundings, without_imports};
pub use workspace::{Level, Workspace};
