//! The changes of files that a patch makes, as data.

use super::apply::{HunkFault, apply};
use super::{FileChange, FilePatch, LineMark, Loosened, Patch, PatchError};
use crate::{EditError, TextContent, omission_in_new, omission_line};

/// Computes every change, or returns the reason why none is made. `read` gives the content of a file, or `None` where
/// there is none; it is called for each path at most as often as the patch names it.
pub fn plan(patch: &Patch, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Result<Vec<FileChange>, PatchError> {
    let leaving = patch.files.iter().filter(|file| !file.copied && file.old != file.new);
    let leaving = leaving.filter_map(|file| file.old.clone()).collect();
    let mut state = PatchState { read, leaving, changes: Vec::new(), gone: Vec::new() };
    for file in &patch.files {
        match (&file.old, &file.new) {
            (None, Some(path)) => state.add(path, file)?,
            (Some(path), None) => state.delete(path, file)?,
            (Some(old), Some(new)) => state.update(old, new, file)?,
            (None, None) => {}
        }
    }
    let mut changes = settle_moves(state.changes, read);
    changes.retain(|change| {
        change.before != change.after || change.moved_from.is_some() || change.mode.is_some()
    });
    if changes.is_empty() {
        return Err(PatchError::Empty);
    }
    Ok(changes)
}

/// Reports a move onto a path that another file leaves, or from a path that another file takes, by its effect on the
/// disk: one file written, another deleted.
fn settle_moves(changes: Vec<FileChange>, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Vec<FileChange> {
    let written: Vec<String> = changes.iter().map(|change| change.path.clone()).collect();
    let mut settled = Vec::with_capacity(changes.len());
    for mut change in changes {
        let there = read(&change.path);
        let taken =
            change.moved_from.as_ref().filter(|from| there.is_some() || written.contains(from)).cloned();
        let Some(from) = taken else {
            settled.push(change);
            continue;
        };
        change.moved_from = None;
        let before = std::mem::replace(&mut change.before, there);
        settled.push(change);
        if !written.contains(&from) {
            settled.push(FileChange {
                path: from,
                before,
                after: None,
                moved_from: None,
                mode: None,
                loosened: Vec::new(),
            });
        }
    }
    settled
}

/// The files as the patch has left them so far: it may name one file twice.
struct PatchState<'a> {
    read: &'a dyn Fn(&str) -> Option<Vec<u8>>,
    /// Paths that files leave, now or later: git writes a change by its new name, so a path may be taken before it is
    /// left.
    leaving: Vec<String>,
    changes: Vec<FileChange>,
    /// Paths that files were moved away from.
    gone: Vec<String>,
}

impl PatchState<'_> {
    fn current(&self, path: &str) -> Option<Vec<u8>> {
        if let Some(change) = self.changes.iter().find(|change| change.path == path) {
            return change.after.clone();
        }
        if self.gone.iter().any(|gone| gone == path) { None } else { (self.read)(path) }
    }

    /// Tells whether another file has already been moved or copied there.
    fn taken(&self, path: &str) -> bool {
        let arrived = |change: &FileChange| change.path == path && change.moved_from.is_some();
        self.leaving.iter().any(|leaving| leaving == path) && self.changes.iter().any(arrived)
    }

    /// The content that a file patch begins with. A copy, or a file whose path another one has taken, begins with the
    /// content before the patch.
    fn source(&self, path: &str, copied: bool) -> Result<Vec<u8>, PatchError> {
        let first = if copied || self.taken(path) { (self.read)(path) } else { None };
        first.or_else(|| self.current(path)).ok_or_else(|| PatchError::Missing { path: path.to_owned() })
    }

    fn free(&self, path: &str) -> Result<(), PatchError> {
        match self.current(path) {
            Some(_) if self.leaving.iter().any(|leaving| leaving == path) => Ok(()),
            Some(_) => Err(PatchError::Exists { path: path.to_owned() }),
            None => Ok(()),
        }
    }

    fn put(&mut self, change: FileChange) {
        match self.changes.iter_mut().find(|earlier| earlier.path == change.path) {
            Some(earlier) => {
                earlier.after = change.after;
                earlier.mode = change.mode.or(earlier.mode);
                earlier.moved_from = change.moved_from.or(earlier.moved_from.take());
                earlier.loosened.extend(change.loosened);
            }
            None => self.changes.push(change),
        }
    }

    fn add(&mut self, path: &str, file: &FilePatch) -> Result<(), PatchError> {
        self.free(path)?;
        let mut content = Vec::new();
        for (index, hunk) in file.hunks.iter().enumerate() {
            if hunk.lines.iter().any(|line| line.mark != LineMark::Add) {
                let (path, line) = (path.to_owned(), hunk.line);
                return Err(PatchError::NoMatch { path, hunk: index + 1, line, nearest: None });
            }
            for line in &hunk.lines {
                content.extend_from_slice(line.text.as_bytes());
                content.extend_from_slice(if line.unended { b"" } else { b"\n" });
            }
        }
        if let Some(line) = omission_in_new(&String::from_utf8_lossy(&content)) {
            return Err(PatchError::Edit { path: path.to_owned(), error: EditError::LeftOut { line } });
        }
        self.put(FileChange {
            path: path.to_owned(),
            before: None,
            after: Some(content),
            moved_from: None,
            mode: file.mode,
            loosened: Vec::new(),
        });
        Ok(())
    }

    fn delete(&mut self, path: &str, file: &FilePatch) -> Result<(), PatchError> {
        let before = self.source(path, false)?;
        let mut loosened = Vec::new();
        if !file.hunks.is_empty() {
            let (after, told) = edited_content(path, &before, file)?;
            if !after.is_empty() {
                return Err(PatchError::NotWhole { path: path.to_owned() });
            }
            loosened = told;
        }
        self.put(FileChange {
            path: path.to_owned(),
            before: Some(before),
            after: None,
            moved_from: None,
            mode: None,
            loosened,
        });
        Ok(())
    }

    fn update(&mut self, old: &str, new: &str, file: &FilePatch) -> Result<(), PatchError> {
        let before = self.source(old, file.copied)?;
        let (after, loosened) = if file.hunks.is_empty() {
            (before.clone(), Vec::new())
        } else {
            edited_content(old, &before, file)?
        };
        let moved = old != new;
        if moved {
            self.free(new)?;
        }
        let mut change = FileChange {
            path: new.to_owned(),
            before: Some(before),
            after: Some(after),
            moved_from: None,
            mode: file.mode,
            loosened,
        };
        if file.copied {
            change.before = None;
        } else if moved {
            change.moved_from = Some(old.to_owned());
            // Earlier changes of the patch to this file go along.
            if !self.taken(old)
                && let Some(at) = self.changes.iter().position(|earlier| earlier.path == old)
            {
                let earlier = self.changes.remove(at);
                // A file that the patch itself created leaves no path on the disk.
                change.moved_from = match earlier.before {
                    Some(_) => earlier.moved_from.or(Some(old.to_owned())),
                    None => None,
                };
                change.before = earlier.before;
                change.mode = change.mode.or(earlier.mode);
                change.loosened.splice(..0, earlier.loosened);
            }
            self.gone.push(old.to_owned());
        }
        self.put(change);
        Ok(())
    }
}

fn edited_content(
    path: &str,
    before: &[u8],
    file: &FilePatch,
) -> Result<(Vec<u8>, Vec<Loosened>), PatchError> {
    let path = path.to_owned();
    let Ok(text) = TextContent::decode(before) else {
        return Err(PatchError::Binary { path });
    };
    for hunk in &file.hunks {
        let (added, old): (Vec<_>, Vec<_>) = hunk.lines.iter().partition(|line| line.mark == LineMark::Add);
        let [added, old] = [added, old]
            .map(|lines| lines.iter().map(|line| line.text.as_str()).collect::<Vec<&str>>().join("\n"));
        if let Some(line) = omission_line(&old, &added) {
            return Err(PatchError::Edit { path, error: EditError::LeftOut { line } });
        }
    }
    let (splices, loosened) = match apply(&text, &file.hunks) {
        Ok(done) => done,
        Err(HunkFault::NoMatch { hunk, nearest }) => {
            return Err(PatchError::NoMatch { path, hunk: hunk + 1, line: file.hunks[hunk].line, nearest });
        }
        Err(HunkFault::Ambiguous { hunk, lines }) => {
            return Err(PatchError::Ambiguous { path, hunk: hunk + 1, lines });
        }
    };
    match text.splice(&splices) {
        Ok(after) => Ok((after, loosened)),
        Err(error) => Err(PatchError::Edit { path, error }),
    }
}
