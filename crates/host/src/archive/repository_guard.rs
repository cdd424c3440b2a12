//! A guard for restored files: they must not complete a git repository out of files that were written meanwhile,
//! because git would run that repository's settings and hooks.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use lathe_changes::restore::{Planned, RestoreStep};
use lathe_workspace::completes_repository;

const WHY: &str = "the folder holds other parts of a git repository, and this would make it one";

/// Refuses those paths of a plan that would complete a repository out of what is already there.
pub(crate) fn refuse_new_repositories(plan: &mut [Planned], root: &Path) {
    let paths = |step: &RestoreStep, plan: &[Planned]| -> Vec<PathBuf> {
        let fits = |planned: &&Planned| planned.step == *step && planned.wanted.want.is_some();
        plan.iter().filter(fits).map(|planned| planned.wanted.path.clone()).collect()
    };
    let (back, ours) = (paths(&RestoreStep::Restore, plan), paths(&RestoreStep::AlreadyThere, plan));
    let left: HashSet<&Path> = completes_repository(root, &back, &ours).into_iter().collect();
    for planned in plan.iter_mut().filter(|planned| left.contains(planned.wanted.path.as_path())) {
        planned.step = RestoreStep::Failed { why: WHY.to_owned() };
    }
}
