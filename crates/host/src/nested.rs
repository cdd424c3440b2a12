//! Lathe run by a session of Lathe: it does not change what belongs to the user.
//!
//! The model may start the program `lathe` like any other. It must not use it to answer its own questions: to change
//! keys, trust, tokens, standing approvals or other sessions. A home that is neither the outer session's nor the
//! user's may be changed, so that Lathe can be tested with Lathe.

use std::path::{Path, PathBuf};

use lathe_shell::OuterShells;

use crate::error::HostError;
use crate::home::Home;

impl Home {
    /// Refuses a change of this home by a process that a session's shell started. `change` names it, as a command.
    pub fn refuse_inside_session(&self, change: &str) -> Result<(), HostError> {
        match OuterShells::find() {
            OuterShells::None => Ok(()),
            OuterShells::Below(outer) if self.is_users(&outer) => {
                Err(HostError::InsideSession { change: change.to_owned(), home: self.path().to_owned() })
            }
            OuterShells::Below(_) => Ok(()),
        }
    }

    /// Tells whether this folder is the home of an outer session or a default one, or holds links. The model could
    /// make a folder of links, each into the real home.
    fn is_users(&self, outer: &[PathBuf]) -> bool {
        let usual = Self::default_homes();
        outer.iter().chain(&usual).any(|home| self.overlaps(home)) || has_links(self.path())
    }

    /// The homes that are used when no variable names one: the one of the environment, and the one of the user's
    /// entry in the system, which no variable changes.
    fn default_homes() -> Vec<PathBuf> {
        let by_environment = Self::default_home().ok().map(|home| home.path().to_owned());
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        let by_system = user.map(|user| Self::at(user.dir.join(".local/share/lathe")).path().to_owned());
        by_environment.into_iter().chain(by_system).collect()
    }
}

fn has_links(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
}
