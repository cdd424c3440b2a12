//! A rewind or an undo that survives the end of its process.
//!
//! A note of what is about to be restored is written before the first file is touched, and removed once the journal
//! has it. A process that finds such a note, and no other process at work, finishes it: files that are still as they
//! were before the act are restored, files that were already restored are recorded, and files that were changed since
//! are left alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lathe_blobs::{Durable, replace};
use lathe_changes::restore::{self, RestoreOutcome, RestoreStep};
use lathe_changes::{RestoreTarget, TreeChange};
use lathe_journal::Journal;
use lathe_protocol::{
    CallId, Change, CommandTaken, Digest, Draft, EventPlace, Fact, FilesRestored, RewindUndone, Rewound,
    RunNo, Seq, SessionId, SessionOpened, StepNo,
};
use lathe_tools::journal_changes;
use lathe_workspace::lock_naming;
use serde::{Deserialize, Serialize};

use crate::archive::Archive;
use crate::archive::quarantine::{Exchanged, failed_exchange};
use crate::archive::repository_guard::refuse_new_repositories;
use crate::error::HostError;
use crate::session::folder::{identity, same_or_missing_folder};
use crate::session::{now, opening_and_options};

/// The files to restore, and what the journal records about it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Restoring {
    /// The process whose private file names may be left in the tree.
    pub(crate) pid: u32,
    /// The last event before it: whatever the journal already has of it comes after this event.
    pub(crate) after: Seq,
    pub(crate) run: RunNo,
    pub(crate) to: Option<StepNo>,
    pub(crate) undoes: Option<Seq>,
    /// The rewind of the conversation that is undone with it.
    pub(crate) rewind: Option<Seq>,
    /// The step that the conversation is rewound to with it.
    pub(crate) rewound: Option<StepNo>,
    /// The command that requested it, with what it was to do.
    #[serde(default)]
    pub(crate) taken: Option<CommandTaken>,
    pub(crate) conflicts: Vec<String>,
    /// From the present state to the wanted one.
    pub(crate) changes: Vec<Change>,
    /// Entries of the quarantine that are restored after the files.
    #[serde(default)]
    pub(crate) back: Vec<String>,
    /// Entries that are moved into the quarantine again before the files are restored.
    #[serde(default)]
    pub(crate) again: Vec<String>,
}

impl Archive {
    fn restoring_file(&self, id: &SessionId) -> PathBuf {
        self.scratch(id).join("restoring")
    }

    /// Tells whether a rewind or undo of a session was cut off.
    pub(crate) fn has_unfinished_restore(&self, id: &SessionId) -> bool {
        self.restoring_file(id).exists()
    }

    /// Carries out the note, once it is durable. Returns what was done and what could not be.
    pub(crate) fn restore(
        &self,
        journal: &mut Journal,
        opened: &SessionOpened,
        restoring: &Restoring,
    ) -> Result<(RestoreOutcome, Exchanged), HostError> {
        let file = self.restoring_file(journal.id());
        let write = || -> std::io::Result<()> {
            let folder = self.scratch(journal.id());
            std::fs::create_dir_all(&folder)?;
            let note = serde_json::to_string(restoring)?;
            replace(&file, format!("{}\n{note}", Digest::of(note.as_bytes())).as_bytes(), Durable::Name)
        };
        write().map_err(|error| {
            let reason = format!("what is to be restored cannot be noted in {}: {error}", file.display());
            HostError::of_disk(&error, reason, |reason| HostError::Restore { reason, disk_full: false })
        })?;
        self.carry_out(journal, opened, restoring)
    }

    /// Finishes what a killed process began.
    pub(crate) fn finish_restoring(&self, journal: &mut Journal) -> Result<(), HostError> {
        let file = self.restoring_file(journal.id());
        let Ok(bytes) = std::fs::read(&file) else { return Ok(()) };
        // The note got its name only when it was complete, so one that cannot be read may have been acted on.
        let restoring = parse_note(&bytes).ok_or_else(|| {
            HostError::Rewind(format!(
                "an undo or rewind was cut off, and its note {} is damaged. Some files may have been restored already: check them, \
                 and remove the note",
                file.display()
            ))
        })?;
        let (opened, _) = opening_and_options(&journal.reader()?)?;
        let root = &*same_or_missing_folder(&opened)?;
        let paths = restoring.changes.iter().map(|change| TreeChange::from(change).path);
        restore::sweep(root, paths, restoring.pid);
        self.carry_out(journal, &opened, &restoring)?;
        let Some(taken) = restoring.taken else { return Ok(()) };
        let place = EventPlace::in_run(restoring.run);
        journal.append(now(), Draft { place, fact: taken.into() })?;
        Ok(())
    }

    fn carry_out(
        &self,
        journal: &mut Journal,
        opened: &SessionOpened,
        restoring: &Restoring,
    ) -> Result<(RestoreOutcome, Exchanged), HostError> {
        let wrong = HostError::from;
        let (root, blobs) = (&*same_or_missing_folder(opened)?, self.home().blobs()?);
        let changes: Vec<TreeChange> = restoring.changes.iter().map(TreeChange::from).collect();
        let wanted: Vec<RestoreTarget> = changes.iter().map(RestoreTarget::of).collect();
        let (quarantine, by, mut exchanged) = (self.quarantine(), restoring.after.0, Exchanged::default());
        // Entries are moved into the quarantine before the folders that they lie in are handled, and out of it after
        // them.
        for id in &restoring.again {
            let taken = quarantine.undo_restore(id, by);
            exchanged.again.push(taken.unwrap_or_else(|error| failed_exchange(id, error)));
        }
        let one = lock_naming();
        let mut plan = restore::plan_again(&wanted, &blobs, root).map_err(wrong)?;
        refuse_new_repositories(&mut plan, root);
        let mut applied = restore::apply(&plan, &blobs, root).map_err(wrong)?;
        drop(one);
        // Files that an earlier attempt restored are part of the result too; a change that it began counts from its
        // beginning.
        let mut done: BTreeMap<PathBuf, TreeChange> =
            applied.changes.into_iter().map(|change| (change.path.clone(), change)).collect();
        for (planned, change) in plan.iter().zip(&changes) {
            if done.contains_key(&change.path) || planned.step == RestoreStep::AlreadyThere {
                done.insert(change.path.clone(), change.clone());
            }
        }
        applied.changes = done.into_values().collect();
        for id in &restoring.back {
            let back = quarantine.restore_undoably(id, by, &blobs);
            exchanged.back.push(back.unwrap_or_else(|error| failed_exchange(id, error)));
        }
        let recorded: Vec<Fact> = journal
            .reader()?
            .after(restoring.after, usize::MAX)?
            .into_iter()
            .map(|event| event.fact)
            .collect();
        let mut append = |fact: Fact| {
            let place = EventPlace::in_run(restoring.run);
            let is_told = recorded.iter().any(|recorded| recorded.kind() == fact.kind());
            if is_told { Ok(()) } else { journal.append(now(), Draft { place, fact }).map(drop) }
        };
        // First the branch gets its former state, then the files do: the restored files belong to that branch.
        if let Some(rewind) = restoring.rewind {
            append(RewindUndone { rewind }.into())?;
        }
        let by = CallId::new("rewind");
        let mut conflicts = restoring.conflicts.clone();
        conflicts.extend(applied.left.iter().map(|left| relative_name(root, &left.wanted.path)));
        conflicts.dedup();
        let changes = journal_changes(applied.changes.clone(), &by, &self.display_redactor());
        // Restoring may have made the folder itself again.
        let folder = identity(root).filter(|now| opened.folder.is_some_and(|was| was.inode != now.inode));
        let (to, undoes) = (restoring.to, restoring.undoes);
        append(FilesRestored { to, undoes, changes, conflicts, folder }.into())?;
        if let Some(to) = restoring.rewound {
            append(Rewound { to }.into())?;
        }
        let _ = std::fs::remove_file(self.restoring_file(journal.id()));
        Ok((applied, exchanged))
    }
}

/// The note, if it is what was written. Versions before the checksum wrote no first line.
fn parse_note(bytes: &[u8]) -> Option<Restoring> {
    let text = std::str::from_utf8(bytes).ok()?;
    let note = match text.split_once('\n') {
        Some((sum, note)) => Some(note).filter(|note| Digest::of(note.as_bytes()).as_str() == sum)?,
        None => text,
    };
    serde_json::from_str(note).ok()
}

pub(crate) fn relative_name(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
