//! Lathe run by a session of Lathe: what belongs to the user is not changed from there.
//!
//! The model may start the binary `lathe` like any other program. It must not answer its own questions with it: keys, trust,
//! tokens, remembered answers, other sessions. A home that is neither the outer session's nor the user's is free, so Lathe
//! can be tested by Lathe.

use std::path::{Path, PathBuf};

use lathe_shell::OuterShells;

use crate::error::HostError;
use crate::home::Home;

impl Home {
    /// Refuses a change of this folder by a process that a session's shell started. `change` names it, as a command.
    pub fn refuse_inside_session(&self, change: &str) -> Result<(), HostError> {
        match OuterShells::find() {
            OuterShells::None => Ok(()),
            OuterShells::Below(outer) if self.is_users(&outer) => {
                Err(HostError::InsideSession { change: change.to_owned(), home: self.path().to_owned() })
            }
            OuterShells::Below(_) => Ok(()),
        }
    }

    /// Tells whether this folder is the home of an outer session or the usual one, or leads to another place by a link. A
    /// folder with links could be made by the model, with each link into the real home.
    fn is_users(&self, outer: &[PathBuf]) -> bool {
        let usual = Self::usual_places();
        outer.iter().chain(&usual).any(|home| self.overlaps(home)) || has_links(self.path())
    }

    /// The homes that are used where no variable names one: by the environment, and by the user's entry in the system, which
    /// no variable changes.
    fn usual_places() -> Vec<PathBuf> {
        let by_environment = Self::usual().ok().map(|home| home.path().to_owned());
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).ok().flatten();
        let by_system = user.map(|user| Self::at(user.dir.join(".local/share/lathe")).path().to_owned());
        by_environment.into_iter().chain(by_system).collect()
    }
}

fn has_links(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()))
}
