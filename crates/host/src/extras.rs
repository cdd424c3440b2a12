//! What the user's own configuration adds to the tools of a session.

use std::time::Duration;

use lathe_tools::{CheckRule, Checks};

use crate::error::HostError;

/// Programs the user named: a project cannot.
#[derive(Debug, Clone, Default)]
pub struct Extras {
    /// Glob and command of what looks at changed files.
    pub checks: Vec<(String, String)>,
    pub check_seconds: u32,
}

impl Extras {
    pub(crate) fn checks(&self) -> Result<Checks, HostError> {
        let rule =
            |(glob, command): &(String, String)| CheckRule { glob: glob.clone(), command: command.clone() };
        let time = Duration::from_secs(self.check_seconds.into());
        Checks::new(self.checks.iter().map(rule).collect(), time).map_err(HostError::Check)
    }
}
