//! From the database to a snapshot with its index.

use std::sync::Arc;

use super::{Busy, Graph, Progress, Refreshed, Wants};
use crate::error::GraphError;
use crate::facts::Gap;
use crate::hash::QuickMap;
use crate::index::{Index, make};
use crate::lazy::Lazy;
use crate::making::Making;
use crate::snapshot::{FileFacts, Snapshot};
use crate::store::{FileRow, Store, damaged};

/// With more files than this looked at beside the index, it is made again.
const BESIDE: usize = 16;

impl Graph {
    /// The facts of all files, after looking at them.
    pub fn fresh(&mut self, progress: Progress<'_>) -> Result<(Arc<Snapshot>, Refreshed), GraphError> {
        let mut refreshed = self.refresh_when(Busy::Wait, Wants::Facts, progress)?;
        self.trusted()?.read_all(self.limits.threads);
        if self.mend()? {
            refreshed = self.refresh_when(Busy::Wait, Wants::Facts, progress)?;
        }
        Ok((self.complete()?, refreshed))
    }

    /// The same, but while another builder reads much of it, the facts of what has been read; `pending` says of the rest.
    /// Facts are read when they are looked at: [`Graph::mend`] tells whether all could be.
    pub fn present(&mut self) -> Result<(Arc<Snapshot>, Refreshed), GraphError> {
        self.mend()?;
        let refreshed = self.refresh_when(Busy::Answer, Wants::Facts, &|_, _| ())?;
        Ok((self.complete()?, refreshed))
    }

    /// The facts as they were last read: for a caller that knows nothing has changed, or that would rather have
    /// part of the answer than wait.
    pub fn trusted(&mut self) -> Result<Arc<Snapshot>, GraphError> {
        match self.load() {
            Err(GraphError::Database(error)) if damaged(&error) => {
                self.start_again(&error)?;
                self.try_refresh(Busy::Wait, Wants::Order, &|_, _| ())?;
                self.load()
            }
            other => other,
        }
    }

    /// Sees to it that there is an index. A process that stays makes it beside its work and answers without it until then;
    /// one that does not makes it now, so that the next need not.
    pub(crate) fn complete(&mut self) -> Result<Arc<Snapshot>, GraphError> {
        let snapshot = self.trusted()?;
        let holds = snapshot.has_index() && snapshot.changed().len() <= BESIDE;
        if holds || snapshot.files.is_empty() || !self.pending.is_empty() || self.making.is_some() {
            return Ok(snapshot);
        }
        let (path, root, born) = (self.store.path.clone(), self.root.clone(), self.store.born()?);
        let keep = move |index: &Index| {
            // It can be made again: that it is not kept is not worth a word.
            let _ = Store::put_derived(&path, &root, &born, &index.sections());
        };
        if self.watch.is_some() {
            self.making = Making::start(snapshot.clone(), keep);
            return Ok(snapshot);
        }
        let plain = snapshot.without_index();
        plain.read_all(self.limits.threads);
        if let Some(index) = make(&plain, self.limits.threads, &self.stop)
            && !self.store.facts().is_lost()
        {
            keep(&index);
            self.index = Some(Arc::new(index));
            self.outdated();
        }
        self.trusted()
    }

    /// After an answer: whether something of the database could not be read, so that the answer may lack it. It is
    /// forgotten, and had from the files when they are looked at next.
    pub fn mend(&mut self) -> Result<bool, GraphError> {
        let source = self.store.facts();
        if !source.is_lost() {
            return Ok(false);
        }
        // One that is damaged is seldom alone.
        if let Some(snapshot) = self.snapshot.take() {
            snapshot.read_all(self.limits.threads);
        }
        (self.before, self.index, self.making, self.rows) = (None, None, None, None);
        let forgotten =
            source.take_damaged().into_iter().try_for_each(|content| self.store.drop_content(content));
        match forgotten.and_then(|()| self.store.drop_derived()) {
            Err(error) if damaged(&error) => self.start_again(&error)?,
            Err(error) => return Err(error.into()),
            Ok(()) => {
                let word = "a part of the code graph could not be read and was had from the files again";
                self.store.words.push(word.to_owned());
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
        // What was written between the two is read again.
        self.rows = Some((version, rows.clone()));
        Ok(rows)
    }

    pub(super) fn start_again(&mut self, error: &rusqlite::Error) -> Result<(), GraphError> {
        (self.snapshot, self.before, self.index, self.making) = (None, None, None, None);
        (self.rows, self.layout) = (None, None);
        self.store.start_again(&self.root, error)
    }

    pub(super) fn outdated(&mut self) {
        self.before = self.snapshot.take().or(self.before.take());
    }

    pub(super) fn load(&mut self) -> Result<Arc<Snapshot>, GraphError> {
        if let Some(made) = self.making.take_if(|making| making.is_done()).and_then(Making::made) {
            self.index = Some(made);
            self.outdated();
        }
        let version = self.store.data_version()?;
        if let Some(snapshot) = self.snapshot.clone().filter(|_| version == self.version) {
            return Ok(snapshot);
        }
        self.outdated();
        // The number of a content is never given to another one.
        let before = self.before.take();
        let mut seen: QuickMap<i64, Arc<Lazy>> = before
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
            if row.gap.left_out() {
                out.push((row.path.clone(), row.gap));
            }
            let Some(content) = row.content else { continue };
            let facts =
                seen.entry(content).or_insert_with(|| Arc::new(Lazy::new(content, source.clone()))).clone();
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
            snapshot = snapshot.indexed(index.clone(), changed);
        }
        let snapshot = Arc::new(snapshot);
        self.version = self.store.data_version()?;
        self.snapshot = Some(snapshot.clone());
        Ok(snapshot)
    }
}
