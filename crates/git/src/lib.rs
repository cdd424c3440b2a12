//! Git: the only crate that starts a git process.
//!
//! A repository can name programs in more settings than can be listed, and newer versions of git add more. So
//! settings are not switched off one by one: git never reads the configuration of the repository. Each repository is
//! opened with a common folder of our own ([`Repository`]), whose configuration holds only the settings of an
//! allow-list, with checked values. Objects, references, HEAD and index are those of the real repository, so calls
//! that write still work. Attributes of the repository apply, but find no driver.
//!
//! This crate, not git, decides to which repository a folder belongs ([`find_repository`]). The repositories that git itself
//! would use, in a line of the model, are found by [`reachable_repositories`].
//!
//! Rejected: `-c name=` for every known setting (a driver named `a=b` breaks the argument, and the list is never
//! complete); a scratch git folder with links to the real one (git refuses a linked HEAD and replaces links when it
//! writes).

mod alternates;
mod call;
mod config;
mod configured_paths;
mod discover;
mod entries;
mod error;
mod fence;
mod folder;
mod index;
mod layout;
mod pipes;
mod reachable;
mod repository;
mod settings;
mod snapshot;
mod standalone;

pub use call::{CallFolder, ContentRules, GitCall, git_version};
pub use config::{Setting, parse_settings, user_setting};
pub use configured_paths::{ConfiguredPaths, HOOKS, configured_paths};
pub use discover::{Boundary, FoundRepository, dot_git, find_repository};
pub use entries::{DamagedIndex, IndexEntry, IndexFile, IndexStat};
pub use error::GitError;
pub use index::IndexUse;
pub use lathe_workspace::{open_regular, read_regular};
pub use pipes::{check_pipes, git_would_wait};
pub use reachable::{ReachableRepositories, reachable_repositories, repository_around};
pub use repository::{Init, InitCall, Repository, check_inner, prepare_init};
pub use snapshot::{Snapshots, gitlinks};
pub use standalone::{git_folders, set_in_file};
