//! Git: the only place in which a git process is started.
//!
//! A repository can name programs in more settings than anybody can list, and newer versions of git add more. So nothing is
//! switched off one by one: git never reads the configuration of the repository. Each repository is opened with a common
//! folder of our own ([`Repository`]), whose configuration holds only the settings of an allow-list, with checked values.
//! Objects, references, HEAD and index are those of the real repository, so calls that write still work. Attributes of the
//! repository count, but find no driver.
//!
//! The repository that a folder belongs to is decided here too, not by git ([`find`]); what git itself would take, in a line of
//! the model, is told by [`reached`].
//!
//! Rejected: `-c name=` for every known setting (a driver named `a=b` breaks the argument, and the list is never complete);
//! a scratch git folder with links to the real one (git refuses a linked HEAD and replaces links when it writes).

mod alternates;
mod apart;
mod call;
mod config;
mod discover;
mod entries;
mod error;
mod folder;
mod index;
mod layout;
mod named;
mod pipes;
mod reached;
mod repository;
mod settings;
mod snapshot;
mod wall;

pub use apart::{places, set_in_file};
pub use call::{Content, GitCall, Place, git_version};
pub use config::{Setting, parse_settings, user_setting};
pub use discover::{Boundary, Found, dot_git, find};
pub use entries::{DamagedIndex, IndexEntry, IndexFile, IndexStat};
pub use error::GitError;
pub use index::Index;
pub use lathe_workspace::{open_regular, read_regular};
pub use named::{HOOKS, NamedPlaces, named_places};
pub use pipes::{check_pipes, git_would_wait};
pub use reached::{Reached, around, reached};
pub use repository::{Init, InitCall, Repository, check_inner, init};
pub use snapshot::{Snapshots, gitlinks};
