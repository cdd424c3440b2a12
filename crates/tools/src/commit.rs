//! Changes of file tools, made all or none, with the folders they needed.

use std::path::{Path, PathBuf};

use lathe_changes::TreeChange;
use lathe_protocol::Digest;
use lathe_workspace::{Applied, FileOp, Files, WorkspaceError};

/// What a file tool did.
pub(crate) struct Committed {
    pub(crate) files: Vec<Applied>,
    /// Folders that were made on the way.
    pub(crate) folders: Vec<TreeChange>,
}

/// The type of a folder, in a mode.
const FOLDER: u32 = 0o040_000;

/// Applies the operations and says what else came to be: a folder made for a file must go when the file goes.
pub(crate) async fn commit(files: &dyn Files, ops: Vec<FileOp>) -> Result<Committed, WorkspaceError> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for op in &ops {
        if let FileOp::Write { path, .. } = op {
            for folder in missing_above(files, path).await {
                if !missing.contains(&folder) {
                    missing.push(folder);
                }
            }
        }
    }
    let applied = files.apply(ops).await?;
    let mut folders = Vec::with_capacity(missing.len());
    for path in missing {
        if let Ok(stat) = files.stat(&path).await {
            let mode = FOLDER | stat.mode;
            folders.push(TreeChange {
                path,
                before: None,
                after: Some(Digest::of(b"")),
                mode,
                mode_before: None,
            });
        }
    }
    Ok(Committed { files: applied, folders })
}

/// The folders above a path that are not there, the outermost first.
async fn missing_above(files: &dyn Files, path: &Path) -> Vec<PathBuf> {
    let mut missing = Vec::new();
    for folder in path.ancestors().skip(1) {
        match files.stat(folder).await {
            Err(WorkspaceError::NotFound(_)) => missing.push(folder.to_owned()),
            Ok(_) | Err(_) => break,
        }
    }
    missing.reverse();
    missing
}
