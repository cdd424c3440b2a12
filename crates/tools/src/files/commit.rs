//! Commits the changes of file tools: made all or none, and recorded with the content before.
//!
//! The new content goes to the blobs while the files are written, so that recording a change costs little more time
//! than making it. A change that fails leaves a blob that no event names, which the next collection removes.
//!
//! The cost of a large file lies in hashing, packing and syncing it, so each of these is done once, and on a thread
//! of its own where possible.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_blobs::{BlobError, Blobs};
use lathe_changes::{ExtraMetadata, PledgedFile, TreeChange, keep_extra_metadata};
use lathe_protocol::{Digest, SeenFile};
use lathe_workspace::{Applied, Content, Expect, FileOp, Files, WorkspaceError};
use tokio::task::spawn_blocking;

use crate::outcome::{Data, Outcome};
use crate::services::Services;
use crate::tool::RunContext;

/// The changes that a file tool made.
pub(crate) struct CommittedChanges {
    /// Folders that were created on the way, then the files.
    pub(crate) changes: Vec<TreeChange>,
    /// The files themselves, for the syntax check.
    pub(crate) files: Vec<Applied>,
    /// True if they were written while no line ran whose scan of the tree would find them.
    pub(crate) between_lines: bool,
    /// The reason why a change that was made cannot be undone.
    pub(crate) unrecorded: Option<BlobError>,
    /// The parts of the change that cannot be undone, each with the reason.
    pub(crate) not_undoable: Vec<String>,
    /// The files as they are now, by the paths that the model uses. The model made them, so it has seen them.
    pub(crate) seen: Vec<SeenFile>,
}

impl CommittedChanges {
    /// The outcome of the tool that made these changes.
    pub(crate) fn into_outcome(self, data: Data) -> Outcome {
        let Self { changes, files, between_lines, unrecorded, not_undoable, seen } = self;
        Outcome { changes, files, between_lines, unrecorded, not_undoable, seen, ..Ok(data).into() }
    }
}

// Parts of a mode.
const TYPE: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

pub(crate) async fn commit(
    context: &RunContext,
    ops: Vec<FileOp>,
) -> Result<CommittedChanges, WorkspaceError> {
    let known = ops.iter().map(expected_digest).collect();
    commit_known(context, ops, known).await
}

/// Commits like [`commit`], for a caller that knows digests of the current content that the operations do not name.
pub(crate) async fn commit_known(
    context: &RunContext,
    ops: Vec<FileOp>,
    known: Vec<Option<Digest>>,
) -> Result<CommittedChanges, WorkspaceError> {
    let services = &context.services;
    let files = &**services.workspace.files();
    let mut targets = Vec::with_capacity(ops.len());
    for op in &ops {
        targets.push(target(files, op).await.unwrap_or_else(|| services.workspace.root().join(op_path(op))));
    }
    let missing = missing_folders(files, &ops, &targets).await;
    pledge(context, &missing, &ops, &targets).await?;
    let contents: Vec<Option<Content>> = ops.iter().map(new_content).collect();
    let is_local = services.workspace.local().is_some();
    let had = inspect_files(services, targets.clone()).await;
    let blobs = services.blobs.clone();
    // The file write begins first: it waits longest for the disk, and meanwhile the processor has time for the blob.
    let storing = async { spawn_blocking(move || store(&blobs, &contents)).await };
    let line = services.tracking.lock_line().await;
    services.tracking.note_writes(targets.iter().chain(&missing).cloned());
    let (applied, stored) = tokio::join!(files.apply_with_umask(ops, context.umask), storing);
    let between_lines = !*line;
    drop(line);
    let applied = applied?;
    let changes = created_folders(files, missing).await;
    let not_undoable = Vec::new();
    let seen = Vec::new();
    let mut committed =
        CommittedChanges { changes, files: applied, between_lines, unrecorded: None, not_undoable, seen };
    let has = inspect_files(services, targets.clone()).await;
    let (after, mut failed) =
        stored.unwrap_or_else(|gone| (Vec::new(), Some(store_panicked(services, gone))));
    for (at, applied) in committed.files.iter().enumerate() {
        let before = known.get(at).cloned().flatten();
        let before = match store_before(services, before, applied.before.as_ref()).await {
            Ok(before) => before,
            Err(error) => {
                failed = Some(error);
                continue;
            }
        };
        let after = after.get(at).cloned().flatten();
        if let (Some(content), Some(digest)) = (&applied.after, &after) {
            services.last_written.keep(content, digest);
        }
        if let Some(hash) = after.clone() {
            committed.seen.push(SeenFile { path: applied.path.display().to_string(), hash });
        }
        let path = targets.get(at).unwrap_or(&applied.path).clone();
        if !is_local {
            committed.not_undoable.push(format!("{}: {ELSEWHERE}", path.display()));
        }
        let mode = FILE | applied.mode;
        let of = |found: &[Option<ExtraMetadata>]| found.get(at).cloned().flatten();
        let (had, has) = (of(&had), of(&has));
        if had.as_ref().is_some_and(|had| had.names > 1) {
            let words = "it had another name (hard link), and is a file of its own now";
            committed.not_undoable.push(format!("{}: {words}", path.display()));
        }
        let (had, has) = (had.and_then(|had| had.attributes), has.and_then(|has| has.attributes));
        let attributes = has.or_else(|| had.clone());
        let attributes_before = had.filter(|had| Some(had) != attributes.as_ref());
        let change =
            TreeChange { path, before, after, mode, attributes, attributes_before, ..TreeChange::default() };
        committed.changes.push(change);
    }
    if failed.is_some() {
        // Half a record would restore the wrong content.
        committed.changes.retain(|change| change.mode & TYPE == FOLDER);
    }
    committed.unrecorded = failed;
    Ok(committed)
}

/// The reason why a change cannot be undone if the workspace is not a tree of this machine.
const ELSEWHERE: &str =
    "what is put back is put back in a folder of this machine, and this workspace is none";

/// The attributes and other names of files, before or after the change. Only files of this machine can be asked for
/// them. For other files the result says with each change that it cannot be undone.
async fn inspect_files(services: &Services, paths: Vec<PathBuf>) -> Vec<Option<ExtraMetadata>> {
    if services.workspace.local().is_none() {
        return Vec::new();
    }
    let blobs = services.blobs.clone();
    // A path that cannot be inspected is reported by the change itself.
    let look = move || paths.iter().map(|path| keep_extra_metadata(path, &blobs).ok().flatten()).collect();
    spawn_blocking(look).await.unwrap_or_default()
}

fn op_path(op: &FileOp) -> &Path {
    let (FileOp::Write { path, .. } | FileOp::Remove { path, .. }) = op;
    path
}

/// The real place that an operation changes. Writing follows a link; removing removes the link itself.
async fn target(files: &dyn Files, op: &FileOp) -> Option<PathBuf> {
    match op {
        FileOp::Write { path, .. } => files.target(path).await.ok(),
        FileOp::Remove { path, .. } => {
            let above = path.parent().filter(|above| !above.as_os_str().is_empty());
            let above = files.target(above.unwrap_or(Path::new("."))).await.ok()?;
            Some(above.join(path.file_name()?))
        }
    }
}

/// Records what is about to change, so that a process that is killed before the journal has the change leaves a way
/// to undo it. A file that is not what the operation expects is reported by the change itself.
async fn pledge(
    context: &RunContext,
    folders: &[PathBuf],
    ops: &[FileOp],
    targets: &[PathBuf],
) -> Result<(), WorkspaceError> {
    let Some(pledges) = context.services.pledges.clone() else { return Ok(()) };
    let files = &**context.services.workspace.files();
    let mut before: Vec<PledgedFile> =
        folders.iter().map(|path| PledgedFile { path: path.clone(), was: None }).collect();
    for (op, target) in ops.iter().zip(targets) {
        let (FileOp::Write { path, expect, .. } | FileOp::Remove { path, expect }) = op;
        let mode = files.stat(path).await.map_or(0, |stat| FILE | stat.mode);
        let was = match expect {
            Expect::Absent => None,
            Expect::Held(content, _) => Some((mode, content.to_vec())),
            Expect::Hash(_) => files.read(path, None).await.ok().map(|content| (mode, content)),
        };
        before.push(PledgedFile { path: target.clone(), was });
    }
    let (call, root) = (context.call.clone(), context.services.workspace.root().to_owned());
    let pledged = spawn_blocking(move || pledges.pledge(call.as_str(), &before)).await;
    pledged.map_err(std::io::Error::other).flatten().map_err(|error| WorkspaceError::io(root, error))
}

fn expected_digest(op: &FileOp) -> Option<Digest> {
    let (FileOp::Write { expect, .. } | FileOp::Remove { expect, .. }) = op;
    match expect {
        Expect::Hash(hash) | Expect::Held(_, Some(hash)) => Some(hash.clone()),
        Expect::Absent | Expect::Held(_, None) => None,
    }
}

fn new_content(op: &FileOp) -> Option<Content> {
    match op {
        FileOp::Write { content, .. } => Some(Arc::clone(content)),
        FileOp::Remove { .. } => None,
    }
}

/// Stores contents. Returns their digests up to the first that could not be stored, and its error.
fn store(blobs: &Blobs, contents: &[Option<Content>]) -> (Vec<Option<Digest>>, Option<BlobError>) {
    let mut digests = Vec::with_capacity(contents.len());
    for content in contents {
        match content.as_ref().map(|content| blobs.put(content)).transpose() {
            Ok(digest) => digests.push(digest),
            Err(error) => return (digests, Some(error)),
        }
    }
    (digests, None)
}

/// Stores the content before the change. It is mostly in the store already, as the result of an earlier change.
async fn store_before(
    services: &Arc<Services>,
    known: Option<Digest>,
    content: Option<&Content>,
) -> Result<Option<Digest>, BlobError> {
    let Some(content) = content else { return Ok(None) };
    if let Some(known) = known
        && services.blobs.has(&known).unwrap_or(false)
    {
        return Ok(Some(known));
    }
    let (blobs, content) = (services.blobs.clone(), Arc::clone(content));
    match spawn_blocking(move || blobs.put(&content)).await {
        Ok(stored) => stored.map(Some),
        Err(gone) => Err(store_panicked(services, gone)),
    }
}

fn store_panicked(services: &Services, gone: tokio::task::JoinError) -> BlobError {
    BlobError::Io {
        doing: "store content of",
        path: services.workspace.root().to_owned(),
        source: std::io::Error::other(gone),
    }
}

/// The folders above the new files that do not exist yet, the outermost first: a folder created for a file must be
/// removed with it.
async fn missing_folders(files: &dyn Files, ops: &[FileOp], targets: &[PathBuf]) -> Vec<PathBuf> {
    let mut missing: Vec<PathBuf> = Vec::new();
    for (op, target) in ops.iter().zip(targets) {
        if let FileOp::Write { expect: Expect::Absent, .. } = op {
            for folder in missing_above(files, target).await {
                if !missing.contains(&folder) {
                    missing.push(folder);
                }
            }
        }
    }
    missing
}

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

async fn created_folders(files: &dyn Files, folders: Vec<PathBuf>) -> Vec<TreeChange> {
    let mut changes = Vec::with_capacity(folders.len());
    for path in folders {
        if let Ok(stat) = files.stat(&path).await {
            let mode = FOLDER | stat.mode;
            let after = Some(Digest::of(b""));
            changes.push(TreeChange { path, after, mode, ..TreeChange::default() });
        }
    }
    changes
}
