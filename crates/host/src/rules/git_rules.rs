//! A rule for a repository in which a harmless git command would hang.
//!
//! The rules allow `git status` and similar commands because they only read. If a pipe stands in place of a file that
//! git reads, git waits endlessly. Then a rule of the project's tier asks about every git command. It is made here,
//! and like all rules of that tier it can only tighten. Programs that a repository's configuration names are found
//! when a line is decided about (`tools/src/line/git_runs.rs`).

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
