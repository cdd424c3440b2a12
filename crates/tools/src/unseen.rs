//! The files of a session without what `.latheignore` names.
//!
//! Every file tool reads and writes through the files of its session, so a file that no model is to see is refused here,
//! once, whatever tool asks for it and whoever calls the tool. The ignore files themselves are written by no tool: whoever
//! writes them says what is seen.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_policy::Disk as _;
use lathe_protocol::Boxed;
use lathe_search::{Ignored, LATHE_IGNORE, UnreadRules, is_ignored};
use lathe_workspace::{Applied, Entry, FileKind, FileOp, Files, Named, Stat, WorkspaceError};

use crate::disk::LocalDisk;

/// Files of which some are not there for tools.
pub(crate) struct Unseen {
    pub(crate) files: Arc<dyn Files>,
    /// The list of unusable ignore files.
    pub(crate) unread: UnreadRules,
}

impl Unseen {
    fn check(&self, path: &Path) -> Result<(), WorkspaceError> {
        let Some(root) = self.files.local_root() else { return Ok(()) };
        let (root, real) = (LocalDisk.real(root), LocalDisk.real(&root.join(path)));
        match is_ignored(&root, &real, Ignored::INCLUDED) {
            true => {
                self.unread.meet_above(&root, real.parent().unwrap_or(&real));
                Err(WorkspaceError::Ignored(path.to_owned()))
            }
            false => Ok(()),
        }
    }

    fn check_write(&self, path: &Path) -> Result<(), WorkspaceError> {
        let is_own = |path: &Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().eq_ignore_ascii_case(LATHE_IGNORE))
        };
        let real = self.files.local_root().map(|root| LocalDisk.real(&root.join(path)));
        if is_own(path) || real.as_deref().is_some_and(is_own) {
            return Err(WorkspaceError::Protected(path.to_owned()));
        }
        self.check(path)
    }
}

impl Files for Unseen {
    fn stat<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<Stat, WorkspaceError>> {
        Box::pin(async move {
            let stat = self.files.stat(path).await?;
            match stat.kind {
                FileKind::File => self.check(path).map(|()| stat),
                FileKind::Directory | FileKind::Special => Ok(stat),
            }
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a Path,
        range: Option<Range<u64>>,
    ) -> Boxed<'a, Result<Vec<u8>, WorkspaceError>> {
        Box::pin(async move {
            self.check(path)?;
            self.files.read(path, range).await
        })
    }

    fn walk<'a>(&'a self, path: &'a Path, depth: usize) -> Boxed<'a, Result<Vec<Entry>, WorkspaceError>> {
        self.files.walk(path, depth)
    }

    fn list<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<Vec<Named>, WorkspaceError>> {
        self.files.list(path)
    }

    fn apply_masked<'a>(
        &'a self,
        ops: Vec<FileOp>,
        umask: Option<u32>,
    ) -> Boxed<'a, Result<Vec<Applied>, WorkspaceError>> {
        Box::pin(async move {
            for op in &ops {
                let (FileOp::Write { path, .. } | FileOp::Remove { path, .. }) = op;
                self.check_write(path)?;
            }
            self.files.apply_masked(ops, umask).await
        })
    }

    fn real<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>> {
        self.files.real(path)
    }

    fn target<'a>(&'a self, path: &'a Path) -> Boxed<'a, Result<PathBuf, WorkspaceError>> {
        self.files.target(path)
    }

    fn open_local(&self, path: &Path) -> Result<File, WorkspaceError> {
        self.check(path)?;
        self.files.open_local(path)
    }

    fn local_root(&self) -> Option<&Path> {
        self.files.local_root()
    }

    fn closed(&self) -> Option<&Path> {
        self.files.closed()
    }
}
