//! Loads a snapshot with its index from the database.

use std::sync::Arc;

use super::{Busy, Graph, Progress, RefreshReport, Wants};
use crate::error::GraphError;
use crate::facts::Gap;
use crate::hash::QuickMap;
use crate::index::{Index, make};
use crate::index_build::IndexBuild;
use crate::lazy::LazyFacts;
use crate::snapshot::{FileFacts, Snapshot};
use crate::store::{FileRow, Store, is_database_damage};

/// With more changed files than this in addition to the index, the index is made again.
const BESIDE: usize = 16;

impl Graph {
    /// The facts of all files, after checking them.
    pub fn fresh(&mut self, progress: Progress<'_>) -> Result<(Arc<Snapshot>, RefreshReport), GraphError> {
        let mut refreshed = self.refresh_when(Busy::Wait, Wants::Facts, progress)?;
        self.last_read()?.read_all(self.limits.threads);
        if self.repair()? {
            refreshed = self.refresh_when(Busy::Wait, Wants::Facts, progress)?;
        }
        Ok((self.ensure_index()?, refreshed))
    }

    /// The present facts. While another builder reads many files, these are the facts read so far, and `pending`
    /// counts the rest. Facts are read on first use: [`Graph::repair`] tells whether all could be read.
    pub fn present(&mut self) -> Result<(Arc<Snapshot>, RefreshReport), GraphError> {
        self.repair()?;
        let refreshed = self.refresh_when(Busy::Answer, Wants::Facts, &|_, _| ())?;
        Ok((self.ensure_index()?, refreshed))
    }

    /// The facts as they were last read: for a caller that knows that nothing has changed, or that prefers a part of
    /// the answer to waiting.
    pub fn last_read(&mut self) -> Result<Arc<Snapshot>, GraphError> {
        match self.load() {
            Err(GraphError::Database(error)) if is_database_damage(&error) => {
                self.start_again(&error)?;
                self.try_refresh(Busy::Wait, Wants::Order, &|_, _| ())?;
                self.load()
            }
            other => other,
        }
    }

    /// Ensures that there is an index. A process that keeps running makes it in the background and answers without it
    /// until then. A short process makes it now, so that the next process need not.
    pub(crate) fn ensure_index(&mut self) -> Result<Arc<Snapshot>, GraphError> {
        let snapshot = self.last_read()?;
        let holds = snapshot.has_index() && snapshot.changed().len() <= BESIDE;
        if holds || snapshot.files.is_empty() || !self.pending.is_empty() || self.making.is_some() {
            return Ok(snapshot);
        }
        let (path, root, born) = (self.store.path.clone(), self.root.clone(), self.store.database_id()?);
        let keep = move |index: &Index| {
            // The index can be made again, so a failure to store it is not reported.
            let _ = Store::put_derived(&path, &root, &born, &index.sections());
        };
        if self.watch.is_some() {
            self.making = IndexBuild::start(snapshot.clone(), keep);
            return Ok(snapshot);
        }
        let plain = snapshot.without_index();
        plain.read_all(self.limits.threads);
        if let Some(index) = make(&plain, self.limits.threads, &self.stop)
            && !self.store.facts().is_lost()
        {
            keep(&index);
            self.index = Some(Arc::new(index));
            self.set_snapshot_aside();
        }
        self.last_read()
    }

    /// Called after an answer. Tells whether something in the database could not be read, so that the answer may lack
    /// it. The unreadable parts are deleted, and made from the files at the next check.
    pub fn repair(&mut self) -> Result<bool, GraphError> {
        let source = self.store.facts();
        if !source.is_lost() {
            return Ok(false);
        }
        // A damaged content is seldom the only one.
        if let Some(snapshot) = self.snapshot.take() {
            snapshot.read_all(self.limits.threads);
        }
        (self.previous, self.index, self.making, self.rows) = (None, None, None, None);
        let forgotten =
            source.take_damaged().into_iter().try_for_each(|content| self.store.drop_content(content));
        match forgotten.and_then(|()| self.store.drop_derived()) {
            Err(error) if is_database_damage(&error) => self.start_again(&error)?,
            Err(error) => return Err(error.into()),
            Ok(()) => {
                let word = "a part of the code graph could not be read and was had from the files again";
                self.store.messages.push(word.to_owned());
            }
        }
        Ok(true)
    }

    /// The files as the database has them now.
    pub(super) fn rows(&mut self) -> Result<Arc<Vec<FileRow>>, GraphError> {
        let version = self.store.data_version()?;
        if let Some((_, rows)) = self.rows.as_ref().filter(|(seen, _)| *seen == version) {
            return Ok(rows.clone());
        }
        let rows = Arc::new(self.store.files()?);
        // Rows written between the two queries are read again.
        self.rows = Some((version, rows.clone()));
        Ok(rows)
    }

    pub(super) fn start_again(&mut self, error: &rusqlite::Error) -> Result<(), GraphError> {
        (self.snapshot, self.previous, self.index, self.making) = (None, None, None, None);
        (self.rows, self.layout) = (None, None);
        self.store.discard_and_rebuild(&self.root, error)
    }

    pub(super) fn set_snapshot_aside(&mut self) {
        self.previous = self.snapshot.take().or(self.previous.take());
    }

    pub(super) fn load(&mut self) -> Result<Arc<Snapshot>, GraphError> {
        if let Some(made) = self.making.take_if(|making| making.is_done()).and_then(IndexBuild::finish) {
            self.index = Some(made);
            self.set_snapshot_aside();
        }
        let version = self.store.data_version()?;
        if let Some(snapshot) = self.snapshot.clone().filter(|_| version == self.version) {
            return Ok(snapshot);
        }
        self.set_snapshot_aside();
        // The number of a content is never given to another one.
        let before = self.previous.take();
        let mut seen: QuickMap<i64, Arc<LazyFacts>> = before
            .iter()
            .flat_map(|before| &before.files)
            .map(|file| (file.content, file.facts.clone()))
            .collect();
        let mut files = Vec::new();
        let mut out: Vec<(String, Gap)> = Vec::new();
        let source = self.store.facts();
        for row in self.rows()?.iter() {
            if self.pending.contains(&row.path) {
                continue;
            }
            if row.gap.is_left_out() {
                out.push((row.path.clone(), row.gap));
            }
            let Some(content) = row.content else { continue };
            let facts = seen
                .entry(content)
                .or_insert_with(|| Arc::new(LazyFacts::new(content, source.clone())))
                .clone();
            files.push(FileFacts { path: row.path.as_str().into(), content, facts });
        }
        if self.beyond > 0 {
            out.push((format!("{} files", self.beyond), Gap::TooMany));
        }
        let mut changed =
            self.index.as_ref().map_or(Ok(None), |index| self.store.changed_since(index, &files))?;
        if changed.is_none() {
            self.index = Index::open(source).map(Arc::new);
            changed =
                self.index.as_ref().map_or(Ok(None), |index| self.store.changed_since(index, &files))?;
        }
        let mut snapshot = Snapshot::new(self.root.clone(), files, out);
        if let (Some(index), Some(changed)) = (&self.index, changed) {
            snapshot = snapshot.with_index(index.clone(), changed);
        }
        let snapshot = Arc::new(snapshot);
        self.version = self.store.data_version()?;
        self.snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }
}
