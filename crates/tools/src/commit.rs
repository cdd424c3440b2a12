//! Changes of file tools: made all or none, and recorded with what was there before.
//!
//! The new content goes to the blobs while the files are written, so that recording a change costs little more time than
//! making it. A change that fails leaves a blob nobody names, which the next collection takes.
//!
//! What a large file costs is hashing, packing and syncing it, so each of these is done once, and on a thread of its own
//! where it can be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_blobs::{BlobError, Blobs};
use lathe_changes::{Before, Beside, TreeChange, beside};
use lathe_protocol::{Digest, SeenFile};
use lathe_workspace::{Applied, Content, Expect, FileOp, Files, WorkspaceError};
use tokio::task::spawn_blocking;

use crate::outcome::{Data, Outcome};
use crate::services::Services;
use crate::tool::RunContext;

/// What a file tool did.
pub(crate) struct Committed {
    /// Folders that were made on the way, then the files.
    pub(crate) changes: Vec<TreeChange>,
    /// The files themselves, for whoever looks at them.
    pub(crate) files: Vec<Applied>,
    /// They were written while no line ran, whose look at the tree would find them.
    pub(crate) between_lines: bool,
    /// Why a change that was made cannot be taken back.
    pub(crate) unrecorded: Option<BlobError>,
    /// The parts of it that cannot be taken back, each with the reason.
    pub(crate) not_undoable: Vec<String>,
    /// The files as they are now, by the paths that the model knows: the model made them so.
    pub(crate) seen: Vec<SeenFile>,
}

impl Committed {
    /// The outcome of a tool whose act this was.
    pub(crate) fn into_outcome(self, data: Data) -> Outcome {
        let Self { changes, files, between_lines, unrecorded, not_undoable, seen } = self;
        Outcome { changes, files, between_lines, unrecorded, not_undoable, seen, ..Ok(data).into() }
    }
}

// Parts of a mode.
const TYPE: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

pub(crate) async fn commit(context: &RunContext, ops: Vec<FileOp>) -> Result<Committed, WorkspaceError> {
    let known = ops.iter().map(expected).collect();
    commit_known(context, ops, known).await
}

/// As [`commit`], for whoever knows digests of what is there that the operations do not say.
pub(crate) async fn commit_known(
    context: &RunContext,
    ops: Vec<FileOp>,
    known: Vec<Option<Digest>>,
) -> Result<Committed, WorkspaceError> {
    let services = &context.services;
    let files = &**services.workspace.files();
    let mut targets = Vec::with_capacity(ops.len());
    for op in &ops {
        targets.push(target(files, op).await.unwrap_or_else(|| services.workspace.root().join(named(op))));
    }
    let missing = missing_folders(files, &ops, &targets).await;
    pledge(context, &missing, &ops, &targets).await?;
    let contents: Vec<Option<Content>> = ops.iter().map(written).collect();
    let is_local = services.workspace.local().is_some();
    let had = besides(services, targets.clone()).await;
    let blobs = services.blobs.clone();
    // Begun in this order: the file waits longest for the disk, and meanwhile the processor has time for the blob.
    let storing = async { spawn_blocking(move || store(&blobs, &contents)).await };
    let line = services.tracking.line().await;
    services.tracking.writes(targets.iter().chain(&missing).cloned());
    let (applied, stored) = tokio::join!(files.apply_masked(ops, context.umask), storing);
    let between_lines = !*line;
    drop(line);
    let applied = applied?;
    let changes = made(files, missing).await;
    let not_undoable = Vec::new();
    let seen = Vec::new();
    let mut committed =
        Committed { changes, files: applied, between_lines, unrecorded: None, not_undoable, seen };
    let has = besides(services, targets.clone()).await;
    let (after, mut failed) = stored.unwrap_or_else(|gone| (Vec::new(), Some(lost(services, gone))));
    for (at, applied) in committed.files.iter().enumerate() {
        let before = known.get(at).cloned().flatten();
        let before = match keep(services, before, applied.before.as_ref()).await {
            Ok(before) => before,
            Err(error) => {
                failed = Some(error);
                continue;
            }
        };
        let after = after.get(at).cloned().flatten();
        if let (Some(content), Some(digest)) = (&applied.after, &after) {
            services.known.keep(content, digest);
        }
        if let Some(hash) = after.clone() {
            committed.seen.push(SeenFile { path: applied.path.display().to_string(), hash });
        }
        let path = targets.get(at).unwrap_or(&applied.path).clone();
        if !is_local {
            committed.not_undoable.push(format!("{}: {ELSEWHERE}", path.display()));
        }
        let mode = FILE | applied.mode;
        let of = |found: &[Option<Beside>]| found.get(at).cloned().flatten();
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
        // Half a record would take back the wrong thing.
        committed.changes.retain(|change| change.mode & TYPE == FOLDER);
    }
    committed.unrecorded = failed;
    Ok(committed)
}

/// The reason why a change cannot be taken back where the workspace is no tree of this machine.
const ELSEWHERE: &str =
    "what is put back is put back in a folder of this machine, and this workspace is none";

/// The attributes and other names of files, before or after the change. Only files of this machine have some that can be
/// asked for; that changes of others cannot be taken back is told with each.
async fn besides(services: &Services, paths: Vec<PathBuf>) -> Vec<Option<Beside>> {
    if services.workspace.local().is_none() {
        return Vec::new();
    }
    let blobs = services.blobs.clone();
    // What cannot be looked at is told by the change itself.
    let look = move || paths.iter().map(|path| beside(path, &blobs).ok().flatten()).collect();
    spawn_blocking(look).await.unwrap_or_default()
}

fn named(op: &FileOp) -> &Path {
    let (FileOp::Write { path, .. } | FileOp::Remove { path, .. }) = op;
    path
}

/// The real place that an operation changes. Writing follows a link, removing takes the link itself.
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

/// Writes down what is about to change, so that a process that is killed before the journal has the change leaves a way
/// back. A file that is not as the operation expects it is told by the change itself.
async fn pledge(
    context: &RunContext,
    folders: &[PathBuf],
    ops: &[FileOp],
    targets: &[PathBuf],
) -> Result<(), WorkspaceError> {
    let Some(pledges) = context.services.pledges.clone() else { return Ok(()) };
    let files = &**context.services.workspace.files();
    let mut before: Vec<Before> =
        folders.iter().map(|path| Before { path: path.clone(), was: None }).collect();
    for (op, target) in ops.iter().zip(targets) {
        let (FileOp::Write { path, expect, .. } | FileOp::Remove { path, expect }) = op;
        let mode = files.stat(path).await.map_or(0, |stat| FILE | stat.mode);
        let was = match expect {
            Expect::Absent => None,
            Expect::Held(content, _) => Some((mode, content.to_vec())),
            Expect::Hash(_) => files.read(path, None).await.ok().map(|content| (mode, content)),
        };
        before.push(Before { path: target.clone(), was });
    }
    let (call, root) = (context.call.clone(), context.services.workspace.root().to_owned());
    let pledged = spawn_blocking(move || pledges.pledge(call.as_str(), &before)).await;
    pledged.map_err(std::io::Error::other).flatten().map_err(|error| WorkspaceError::io(root, error))
}

fn expected(op: &FileOp) -> Option<Digest> {
    let (FileOp::Write { expect, .. } | FileOp::Remove { expect, .. }) = op;
    match expect {
        Expect::Hash(hash) | Expect::Held(_, Some(hash)) => Some(hash.clone()),
        Expect::Absent | Expect::Held(_, None) => None,
    }
}

fn written(op: &FileOp) -> Option<Content> {
    match op {
        FileOp::Write { content, .. } => Some(Arc::clone(content)),
        FileOp::Remove { .. } => None,
    }
}

/// The names of what was stored, up to what could not be.
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

/// The content before, which most often is in the store already: as what an earlier change left.
async fn keep(
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
        Err(gone) => Err(lost(services, gone)),
    }
}

fn lost(services: &Services, gone: tokio::task::JoinError) -> BlobError {
    BlobError::Io {
        doing: "store content of",
        path: services.workspace.root().to_owned(),
        source: std::io::Error::other(gone),
    }
}

/// The folders above the new files that are not there yet, the outermost first: one made for a file must go with it.
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

async fn made(files: &dyn Files, folders: Vec<PathBuf>) -> Vec<TreeChange> {
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
