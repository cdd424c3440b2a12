//! The edits of a session, hunk by hunk, for a user who accepts or rejects them.
//!
//! The journal's record is compared: the content of a file before its first change by the session (or a run), and
//! after its last one. The id of a hunk is a digest of the lines it removes, the lines it adds and their place in the
//! first content. So it stays the same when other hunks are rejected, and changes when the agent changes the hunk
//! further. A rejected hunk is taken out of the file if the file is still as the agent left it; otherwise that is a
//! conflict, and nothing is touched. Both decisions are events, so every client sees them, and a rejection can be
//! undone like any other change.

mod shapes;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use lathe_blobs::Blobs;
use lathe_changes::restore::{self, RestoreStep};
use lathe_changes::{PathState, RestoreTarget, TreeChange};
use lathe_edit::{Hunk, hunks, without_hunks};
use lathe_journal::{Journal, SessionReader};
use lathe_protocol::{
    CallId, Change, Digest, Draft, EditsReviewed, Event, EventPlace, Fact, FilesRestored, RunNo, SessionId,
    SessionOpened,
};
use lathe_tools::journal_changes;
use lathe_workspace::lock_naming;

pub use self::shapes::{FileReview, HunkReview, ReviewOutcome, ReviewWish};
use crate::archive::Archive;
use crate::archive::repository_guard::refuse_new_repositories;
use crate::error::HostError;
use crate::session::folder::{current_opening, same_folder};
use crate::session::now;

/// Lines shown before and after a hunk.
const CONTEXT: usize = 3;
/// Lines of one hunk that are shown.
const SHOWN: usize = 2000;
const TYPE: u32 = 0o170_000;
const FILE: u32 = 0o100_000;

/// The history of one path.
struct EditedFile {
    first: Option<PathState>,
    last: Option<PathState>,
    mixed: bool,
    /// Contents from which hunks were rejected, with the ids of those hunks.
    rejected: Vec<(Option<PathState>, Vec<String>)>,
    accepted: Vec<String>,
}

struct Review {
    root: PathBuf,
    opened: SessionOpened,
    blobs: Blobs,
    files: BTreeMap<PathBuf, EditedFile>,
    last_run: RunNo,
}

impl Archive {
    /// Every file that a session, or one run of it, changed, with its hunks.
    pub fn edits(&self, id: &SessionId, run: Option<RunNo>) -> Result<Vec<FileReview>, HostError> {
        let review = self.review(id, run)?;
        let files = review.files.iter().map(|(path, edited)| review.file_review(path, edited));
        Ok(files.filter(|file| !file.hunks.is_empty()).collect())
    }

    /// The records of an acceptance of these hunks. Nothing is written yet.
    pub fn accepted_edits(
        &self,
        id: &SessionId,
        selection: &ReviewWish,
    ) -> Result<Vec<ReviewOutcome>, HostError> {
        let review = self.review(id, selection.run)?;
        let selected = review.selected_hunks(selection)?;
        Ok(selected
            .into_iter()
            .map(|(path, hunks)| (review.review_fact(&path, hunks, true), Vec::new()))
            .collect())
    }

    /// Takes these hunks out of their files: all of them, or none if a file is no longer as the agent left it.
    /// Returns what is to be recorded.
    pub fn reject_edits(
        &self,
        id: &SessionId,
        selection: &ReviewWish,
    ) -> Result<Vec<ReviewOutcome>, HostError> {
        let review = self.review(id, selection.run)?;
        same_folder(&review.opened)?;
        let selected = review.selected_hunks(selection)?;
        let wrong = HostError::from;
        let mut wanted = Vec::new();
        for (path, ids) in &selected {
            if let Some(edited) = review.files.get(path) {
                let want = review.state_without(path, edited, ids)?;
                wanted.push(RestoreTarget {
                    path: path.clone(),
                    now: edited.last.clone(),
                    want,
                    foreign: false,
                });
            }
        }
        let one = lock_naming();
        let mut plan = restore::plan(&wanted, &review.blobs, &review.root).map_err(wrong)?;
        refuse_new_repositories(&mut plan, &review.root);
        if let Some(planned) = plan.iter().find(|planned| planned.step != RestoreStep::Restore) {
            let path = review.relative_name(&planned.wanted.path);
            return Err(HostError::Review(match &planned.step {
                RestoreStep::Conflict { .. } | RestoreStep::AlreadyThere => {
                    format!(
                        "{path} was changed meanwhile: it is not what the agent left, so nothing was rejected"
                    )
                }
                RestoreStep::Failed { why } => {
                    format!("{path} cannot be restored ({why}), so nothing was rejected")
                }
                step => format!("{path} cannot be restored ({step:?}), so nothing was rejected"),
            }));
        }
        let applied = restore::apply(&plan, &review.blobs, &review.root).map_err(wrong)?;
        drop(one);
        let by = CallId::new("review");
        let (mut done, screen) = (applied.changes, self.display_redactor());
        let mut reviewed = Vec::new();
        for (path, hunks) in selected {
            if applied.left.iter().any(|left| left.wanted.path == path) {
                continue;
            }
            // Folders that had to be made for a file are recorded with it.
            let (own, rest) = done.into_iter().partition(|change| path.starts_with(&change.path));
            done = rest;
            reviewed.push((review.review_fact(&path, hunks, false), journal_changes(own, &by, &screen)));
        }
        if reviewed.is_empty() {
            return Err(HostError::Review(
                "the files were changed at this moment, so nothing was rejected".to_owned(),
            ));
        }
        Ok(reviewed)
    }

    /// Records decisions about edits in a session that is not open anywhere.
    pub fn record_review(&self, id: &SessionId, reviewed: Vec<ReviewOutcome>) -> Result<(), HostError> {
        let mut journal = Journal::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let run = self.review(id, None)?.last_run;
        let mut append = |fact: Fact| journal.append(now(), Draft { place: EventPlace::in_run(run), fact });
        for (word, changes) in reviewed {
            append(word.into())?;
            if !changes.is_empty() {
                append(
                    FilesRestored { to: None, undoes: None, changes, conflicts: Vec::new(), folder: None }
                        .into(),
                )?;
            }
        }
        journal.close()?;
        self.update_index(id);
        Ok(())
    }

    fn review(&self, id: &SessionId, run: Option<RunNo>) -> Result<Review, HostError> {
        let blobs = self.home().blobs()?;
        let events = SessionReader::open(&self.home().sessions(), id, blobs.clone())?.all()?;
        let opened = current_opening(&events)?;
        let last_run = events.iter().map(|event| event.place.run).max().unwrap_or_default();
        let root = PathBuf::from(&opened.workspace);
        let mut review = Review { root, opened, blobs, files: BTreeMap::new(), last_run };
        let counts = |event: &&Event| run.is_none_or(|run| event.place.run == run);
        for event in events.iter().filter(counts) {
            review.apply_changes(event.fact.changes());
            if let Fact::EditsReviewed(word) = &event.fact {
                review.apply_review(word);
            }
        }
        Ok(review)
    }
}

impl Review {
    fn apply_changes(&mut self, changes: &[Change]) {
        for change in changes.iter().filter(|change| !change.is_folder()) {
            let change = TreeChange::from(change);
            let path =
                if change.path.is_absolute() { change.path.clone() } else { self.root.join(&change.path) };
            let (before, after) = (change.state_before(), change.state_after());
            match self.files.get_mut(&path) {
                Some(edited) => {
                    edited.mixed |= edited.last != before;
                    edited.last = after;
                }
                None => {
                    let edited = EditedFile {
                        first: before,
                        last: after,
                        mixed: false,
                        rejected: Vec::new(),
                        accepted: Vec::new(),
                    };
                    self.files.insert(path, edited);
                }
            }
        }
    }

    fn apply_review(&mut self, word: &EditsReviewed) {
        if let Some(edited) = self.files.get_mut(&self.root.join(&word.path)) {
            match word.accepted {
                true => edited.accepted.extend(word.hunks.iter().cloned()),
                false => {
                    edited.accepted.retain(|id| !word.hunks.contains(id));
                    edited.rejected.push((edited.last.clone(), word.hunks.clone()));
                }
            }
        }
    }

    fn relative_name(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }

    fn review_fact(&self, path: &Path, hunks: Vec<String>, accepted: bool) -> EditsReviewed {
        EditsReviewed { path: self.relative_name(path), hunks, accepted, command: None }
    }

    fn content(&self, state: Option<&PathState>) -> Option<Vec<u8>> {
        state.and_then(|state| self.blobs.get(&state.digest).ok().flatten())
    }

    /// The hunks between two states of a path: by lines if both exist and are text, otherwise one for the whole file.
    fn between(&self, first: Option<&PathState>, last: Option<&PathState>) -> Vec<(String, Option<Hunk>)> {
        if first == last {
            return Vec::new();
        }
        let whole = |_: ()| {
            let side = |state: Option<&PathState>| {
                state.map_or("-".to_owned(), |state| format!("{}:{:o}", state.digest, state.mode))
            };
            let id = Digest::of(format!("{}\n{}", side(first), side(last)).as_bytes());
            vec![(id.short().to_owned(), None)]
        };
        let (Some(a), Some(b)) = (first, last) else { return whole(()) };
        let is_plain = a.mode == b.mode && a.mode & TYPE == FILE;
        let texts = self.content(first).zip(self.content(last)).filter(|_| is_plain);
        let Some((old, new)) = texts else { return whole(()) };
        let Some(found) = hunks(&old, &new) else { return whole(()) };
        let (old, new) = (lines(&old), lines(&new));
        let named = found.into_iter().map(|hunk| {
            let mut text = format!("{}\n", hunk.old.start).into_bytes();
            text.extend(old.get(hunk.old.clone()).unwrap_or_default().concat());
            text.push(0);
            text.extend(new.get(hunk.new.clone()).unwrap_or_default().concat());
            (Digest::of(&text).short().to_owned(), Some(hunk))
        });
        named.collect()
    }

    fn file_review(&self, path: &Path, edited: &EditedFile) -> FileReview {
        let (first, last) = (edited.first.as_ref(), edited.last.as_ref());
        let now = self.between(first, last);
        let mut found: Vec<HunkReview> = now
            .iter()
            .map(|(id, hunk)| {
                let state = if edited.accepted.contains(id) { "accepted" } else { "pending" };
                self.hunk_review(id, hunk.as_ref(), first, last, state)
            })
            .collect();
        for (then, ids) in &edited.rejected {
            let then = then.as_ref();
            for (id, hunk) in self.between(first, then).iter().filter(|(id, _)| ids.contains(id)) {
                // A hunk that is there again, because its rejection was undone, has its present state.
                if found.iter().all(|known| known.id != *id) {
                    found.push(self.hunk_review(id, hunk.as_ref(), first, then, "rejected"));
                }
            }
        }
        found.sort_by_key(|hunk| hunk.old_start);
        FileReview {
            path: self.relative_name(path),
            change: match (first, last) {
                (None, _) => "created",
                (Some(_), None) => "deleted",
                (Some(_), Some(_)) => "changed",
            },
            binary: found.iter().any(|hunk| hunk.lines.is_empty() && hunk.old_lines + hunk.new_lines == 0),
            mixed: edited.mixed,
            hunks: found,
        }
    }

    fn hunk_review(
        &self,
        id: &str,
        hunk: Option<&Hunk>,
        first: Option<&PathState>,
        last: Option<&PathState>,
        state: &'static str,
    ) -> HunkReview {
        let old = self.content(first).unwrap_or_default();
        let new = self.content(last).unwrap_or_default();
        let is_lost = |state: Option<&PathState>| state.is_some() && self.content(state).is_none();
        let is_text = !is_lost(first) && !is_lost(last) && hunks(&old, &new).is_some();
        let (old, new) = if is_text { (lines(&old), lines(&new)) } else { (Vec::new(), Vec::new()) };
        let all = Hunk { old: 0..old.len(), new: 0..new.len() };
        let hunk = hunk.unwrap_or(&all);
        let start =
            |range: &std::ops::Range<usize>| if range.is_empty() { range.start } else { range.start + 1 };
        let (mut shown, mut left_out) = (Vec::<String>::new(), 0);
        let mut show = |mark: char, lines: Option<&[&[u8]]>| {
            let lines = lines.unwrap_or_default();
            left_out += lines.len().saturating_sub(SHOWN);
            for line in lines.iter().take(SHOWN) {
                shown.push(format!("{mark}{}", String::from_utf8_lossy(line).trim_end_matches('\n')));
            }
        };
        let before = hunk.old.start.min(CONTEXT);
        let after = old.len().saturating_sub(hunk.old.end).min(CONTEXT);
        show(' ', old.get(hunk.old.start - before..hunk.old.start));
        show('-', old.get(hunk.old.clone()));
        show('+', new.get(hunk.new.clone()));
        show(' ', old.get(hunk.old.end..hunk.old.end + after));
        let side = |range: &std::ops::Range<usize>| {
            let shown = range.start.saturating_sub(before)..range.end + after;
            format!("{},{}", start(&shown), shown.len())
        };
        let header = format!("@@ -{} +{} @@", side(&hunk.old), side(&hunk.new));
        HunkReview {
            id: id.to_owned(),
            old_start: start(&hunk.old),
            old_lines: hunk.old.len(),
            new_start: start(&hunk.new),
            new_lines: hunk.new.len(),
            lines: shown,
            header,
            left_out,
            state,
        }
    }

    /// The selected hunks, by file. A hunk that no longer exists is an error.
    fn selected_hunks(&self, selection: &ReviewWish) -> Result<Vec<(PathBuf, Vec<String>)>, HostError> {
        let mut selected = Vec::new();
        let mut missing: Vec<&String> = selection.hunks.iter().collect();
        for (path, edited) in &self.files {
            let here = self.between(edited.first.as_ref(), edited.last.as_ref());
            let is_file = selection.path.as_ref().is_some_and(|named| self.root.join(named) == *path);
            let mut ids: Vec<String> = here.into_iter().map(|(id, _)| id).collect();
            missing.retain(|id| !ids.contains(id));
            if !selection.all && !is_file {
                ids.retain(|id| selection.path.is_none() && selection.hunks.contains(id));
            } else if !selection.hunks.is_empty() {
                ids.retain(|id| selection.hunks.contains(id));
            } else {
                // An accepted hunk is selected only if it is named.
                ids.retain(|id| !edited.accepted.contains(id));
            }
            if !ids.is_empty() {
                selected.push((path.clone(), ids));
            }
        }
        if let Some(id) = missing.first() {
            return Err(HostError::Review(format!(
                "there is no hunk {id} any more: the edits have changed, so list them again"
            )));
        }
        if selected.is_empty() {
            return Err(HostError::Review("there is no such edit".to_owned()));
        }
        Ok(selected)
    }

    /// The state of a path without these hunks. Its content is put into the blob store.
    fn state_without(
        &self,
        path: &Path,
        edited: &EditedFile,
        ids: &[String],
    ) -> Result<Option<PathState>, HostError> {
        let (first, last) = (edited.first.as_ref(), edited.last.as_ref());
        let all = self.between(first, last);
        let taken: Option<Vec<Hunk>> =
            all.iter().filter(|(id, _)| ids.contains(id)).map(|(_, hunk)| hunk.clone()).collect();
        let (Some(taken), Some(last)) = (taken.filter(|taken| taken.len() < all.len()), last) else {
            return Ok(edited.first.clone());
        };
        let lost =
            || HostError::Review(format!("the content of {} is no longer stored", self.relative_name(path)));
        let old = self.content(first).ok_or_else(lost)?;
        let new = self.content(Some(last)).ok_or_else(lost)?;
        let content = without_hunks(&old, &new, &taken);
        let digest =
            self.blobs.put(&content).map_err(|error| HostError::of_blob(&error, HostError::Review))?;
        Ok(Some(PathState::new(digest, last.mode)))
    }
}

fn lines(content: &[u8]) -> Vec<&[u8]> {
    content.split_inclusive(|&byte| byte == b'\n').collect()
}
