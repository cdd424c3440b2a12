//! The places that no line writes: every `.git`, and Lathe's own folder. The same code searches for both.

use std::path::Path;

use lathe_protocol::{Decision, Verdict};

use crate::gate::{Gate, decision};
use crate::losses::fits;
use crate::places::{LATHE, parts};

/// A place that no line writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GuardedPlace {
    Git,
    Home,
}

impl GuardedPlace {
    /// The rule that denies a write to it.
    pub(crate) fn rule(self) -> &'static str {
        match self {
            Self::Git => "guard.git",
            Self::Home => "guard.home",
        }
    }

    pub(crate) fn denial(self) -> Decision {
        let reason = match self {
            Self::Git => "files inside .git are written by git only; use git commands",
            Self::Home => "this is Lathe's own folder; tools never write there",
        };
        decision(Verdict::Deny, self.rule(), reason)
    }

    /// The guarded place that a path or a pattern may lead into from one of the folders; with `whole`, or to the
    /// place itself.
    pub(crate) fn of(gate: &Gate, path: &str, from: &[String], whole: bool) -> Option<Self> {
        let hidden = gate.switched.hidden_names;
        if in_git(path, whole, hidden) {
            return Some(Self::Git);
        }
        let is_path = path.contains('/') || path.starts_with('~') || path.starts_with(LATHE);
        let home = |path: &String| in_folder(path, (&gate.home, hidden), whole);
        (is_path && gate.resolve(path, from).iter().any(home)).then_some(Self::Home)
    }
}

/// Tells whether a path leads into a `.git`; with `whole`, or to one.
fn in_git(path: &str, whole: bool, hidden: bool) -> bool {
    let parts = parts(path);
    let git = parts.iter().position(|part| fits(&part.to_lowercase(), ".git", hidden));
    git.is_some_and(|at| whole || at + 1 < parts.len())
}

/// Tells whether an absolute path or pattern may lead into a folder; with `whole`, or to it.
fn in_folder(path: &str, (folder, hidden): (&Path, bool), whole: bool) -> bool {
    let folder = folder.to_string_lossy();
    let (parts, folder) = (parts(path), parts(&folder));
    let deep = parts.len() > folder.len() || (whole && parts.len() == folder.len());
    deep && parts.iter().zip(&folder).all(|(part, name)| fits(part, name, hidden))
}
