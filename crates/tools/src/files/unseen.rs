//! The files of a session without what `.latheignore` names.
//!
//! Every file tool reads and writes through the files of its session, so a file that no model may see is refused
//! here, once, whatever tool asks for it and whatever calls the tool. No tool writes the ignore files themselves:
//! their writer decides what is seen.
//!
//! The patterns are matched by the readers of a tree of this machine. In a workspace elsewhere everything below a
//! folder with such a file is refused: files that cannot be told apart are not shown.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_policy::Disk as _;
use lathe_protocol::BoxFuture;
use lathe_search::{IgnoreOptions, LATHE_IGNORE, UnreadRules, is_ignored};
use lathe_workspace::{
    Applied, FileInfo, FileKind, FileOp, Files, FolderEntry, LocalTree, WalkEntry, Workspace, WorkspaceError,
};

use crate::line::LocalDisk;

/// The same workspace without the files that tools must not see. Unusable ignore files are added to the list
/// `unread`.
pub(crate) fn without_unseen(workspace: Workspace, unread: UnreadRules) -> Workspace {
    let rules = workspace.local().map(|tree| UnseenRules { tree: tree.clone(), unread });
    let (root, below) = (workspace.root().to_owned(), Arc::clone(workspace.files()));
    let files = Arc::new(FilteredFiles { root, files: below, rules: rules.clone() });
    let may_open = move |path: &Path| rules.as_ref().map_or(Ok(()), |rules| rules.check(path));
    workspace.limited(files, Arc::new(may_open))
}

/// The `.latheignore` files of a tree of this machine.
#[derive(Clone)]
struct UnseenRules {
    tree: LocalTree,
    /// The list of unusable ignore files.
    unread: UnreadRules,
}

impl UnseenRules {
    fn real(&self, path: &Path) -> PathBuf {
        LocalDisk.real(&self.tree.root().join(path))
    }

    fn check(&self, path: &Path) -> Result<(), WorkspaceError> {
        let (root, real) = (LocalDisk.real(self.tree.root()), self.real(path));
        match is_ignored(&root, &real, IgnoreOptions::INCLUDED) {
            true => {
                self.unread.check_above(&root, real.parent().unwrap_or(&real));
                Err(WorkspaceError::Ignored(path.to_owned()))
            }
            false => Ok(()),
        }
    }
}

/// Files of which some do not exist for tools.
struct FilteredFiles {
    root: PathBuf,
    files: Arc<dyn Files>,
    /// None if it is not a tree of this machine.
    rules: Option<UnseenRules>,
}

impl FilteredFiles {
    async fn check(&self, path: &Path) -> Result<(), WorkspaceError> {
        match &self.rules {
            Some(rules) => rules.check(path),
            None => {
                let place = self.files.target(path).await?;
                self.check_above(place.parent().unwrap_or(&place)).await
            }
        }
    }

    async fn check_write(&self, path: &Path) -> Result<(), WorkspaceError> {
        let is_own = |path: &Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().eq_ignore_ascii_case(LATHE_IGNORE))
        };
        let real = match &self.rules {
            Some(rules) => Some(rules.real(path)),
            None => self.files.target(path).await.ok(),
        };
        if is_own(path) || real.as_deref().is_some_and(is_own) {
            return Err(WorkspaceError::Protected(path.to_owned()));
        }
        self.check(path).await
    }

    /// Refuses a folder of a tree elsewhere that an ignore file applies to. `folder` is a real place.
    async fn check_above(&self, folder: &Path) -> Result<(), WorkspaceError> {
        let root = self.files.real(&self.root).await?;
        for above in folder.ancestors().take_while(|above| above.starts_with(&root)) {
            self.check_folder(above).await?;
        }
        Ok(())
    }

    async fn check_folder(&self, folder: &Path) -> Result<(), WorkspaceError> {
        match self.files.stat(&folder.join(LATHE_IGNORE)).await {
            Err(WorkspaceError::NotFound(_)) => Ok(()),
            Ok(_) | Err(_) => {
                let why =
                    "there is a .latheignore, and what it names is only known in a folder of this machine";
                Err(WorkspaceError::io(folder, std::io::Error::other(why)))
            }
        }
    }
}

impl Files for FilteredFiles {
    fn stat<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<FileInfo, WorkspaceError>> {
        Box::pin(async move {
            let stat = self.files.stat(path).await?;
            match stat.kind {
                FileKind::File => self.check(path).await.map(|()| stat),
                FileKind::Directory | FileKind::Special => Ok(stat),
            }
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a Path,
        range: Option<Range<u64>>,
    ) -> BoxFuture<'a, Result<Vec<u8>, WorkspaceError>> {
        Box::pin(async move {
            self.check(path).await?;
            self.files.read(path, range).await
        })
    }

    /// A tool that shows a tree of this machine asks the rules by itself.
    fn walk<'a>(
        &'a self,
        path: &'a Path,
        depth: usize,
    ) -> BoxFuture<'a, Result<Vec<WalkEntry>, WorkspaceError>> {
        Box::pin(async move {
            let entries = self.files.walk(path, depth).await?;
            if self.rules.is_none() {
                let place = self.files.real(path).await?;
                self.check_above(&place).await?;
                for folder in entries.iter().filter(|entry| entry.kind == FileKind::Directory) {
                    self.check_folder(&place.join(&folder.path)).await?;
                }
            }
            Ok(entries)
        })
    }

    fn list<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Vec<FolderEntry>, WorkspaceError>> {
        Box::pin(async move {
            if self.rules.is_none() {
                self.check_above(&self.files.real(path).await?).await?;
            }
            self.files.list(path).await
        })
    }

    fn apply_with_umask<'a>(
        &'a self,
        ops: Vec<FileOp>,
        umask: Option<u32>,
    ) -> BoxFuture<'a, Result<Vec<Applied>, WorkspaceError>> {
        Box::pin(async move {
            for op in &ops {
                let (FileOp::Write { path, .. } | FileOp::Remove { path, .. }) = op;
                self.check_write(path).await?;
            }
            self.files.apply_with_umask(ops, umask).await
        })
    }

    fn real<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, WorkspaceError>> {
        self.files.real(path)
    }

    fn target<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<PathBuf, WorkspaceError>> {
        self.files.target(path)
    }
}
