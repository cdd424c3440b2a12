//! A repository in which a harmless git command would not come back.
//!
//! The rules allow `git status` and its like because they only read. Where a pipe stands in the place of a file that git
//! reads, it waits for ever. A rule of the project's tier then asks about every git command; it is made here, and like all of
//! that tier it can only tighten. Programs that a repository's configuration names are looked for when a line is decided
//! about (`tools/src/line/git_runs.rs`).

use std::path::Path;

use lathe_git::git_would_wait;

/// A rule file that asks about git, if there is a reason to.
pub(crate) fn rules(root: &Path) -> Option<String> {
    root.ancestors().find(|folder| folder.join(".git").exists())?;
    git_would_wait(root).then(|| {
        "[[rule]]\ndecision = \"ask\"\ncommand = \"git\"\nreason = \"git would wait here for ever: a pipe stands where it reads a file\"\n"
            .to_owned()
    })
}
