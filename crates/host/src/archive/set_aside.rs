//! Files that Lathe set aside in a run because a line left them for git to run later, reported to the user.
//!
//! The result of the line reports them to the model. Any command can print such a text, so only files that really
//! exist are reported here. A file that a process left after the last line is set aside when the session ends, where
//! no result can report it; so the repository of the workspace is scanned for those. In a nested repository such a
//! file is found by its name only.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use lathe_views::AsideFile;

use crate::archive::Archive;
use crate::archive::run_report::{RunReport, name_below};

/// The part of a name that shows that Lathe set the file aside.
const ASIDE: &str = ".set-aside-by-lathe";

/// The reason and the advice, the same for all files.
const REASON: &str = "git would have run it, or a program that it names, later";
const ADVICE: &str = "look at it; rename it to its own name to use it, or remove it";
const ADVICE_IN_PLACE: &str = "it could not be set aside: look at it and remove it before git is used here";

impl Archive {
    /// The files that were set aside in a run and still exist.
    pub fn set_aside(&self, report: &RunReport) -> Vec<AsideFile> {
        let noted = report.aside_notes.iter().map(|noted| (noted.path.clone(), noted.name.clone()));
        let found: BTreeSet<_> = noted.chain(renamed_since_start(report)).collect();
        let screen = self.display_redactor();
        let is_there = |path: PathBuf| path.symlink_metadata().is_ok();
        let files = found.into_iter().filter(|(path, name)| match name {
            Some(name) => name.contains(ASIDE) && is_there(path.with_file_name(name)),
            None => is_there(path.clone()),
        });
        let shown = files.map(|(path, name)| AsideFile {
            path: screen.redact_text(name_below(&report.workspace, &path.to_string_lossy())).into_owned(),
            advice: if name.is_some() { ADVICE } else { ADVICE_IN_PLACE },
            set_aside_as: name.map(|name| screen.redact_text(&name).into_owned()),
            reason: REASON,
        });
        shown.collect()
    }
}

/// The files that were renamed since the run began, in the repository of the workspace.
fn renamed_since_start(report: &RunReport) -> Vec<(PathBuf, Option<String>)> {
    let Some(began) = report.began.map(|began| began.as_millisecond()) else { return Vec::new() };
    let git = Path::new(&report.workspace).join(".git");
    let folders = [git.clone(), git.join("hooks"), git.join("info")];
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten();
    let aside = entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        let own = name.split_once(ASIDE)?.0.to_owned();
        // Renaming sets the time of change. Both clocks are this machine's; whole seconds are enough.
        let changed = entry.path().symlink_metadata().ok()?.ctime();
        (changed >= began / 1000).then(|| (entry.path().with_file_name(own), Some(name)))
    });
    aside.collect()
}
