//! Restoring paths to earlier states.
//!
//! [`plan`] reads the disk and changes nothing, so that the plan can be shown. [`apply`] checks each path again right
//! before it touches it. A path is only replaced if it is as the changes left it: anything else is the work of
//! others, and a conflict. The result is a list of changes, so that a restore can be undone like any change.
//! Therefore a failure in the middle is an error of its path, not of the whole.

mod apply;
mod disk;
mod names;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use lathe_blobs::Blobs;
use lathe_protocol::Digest;

use crate::beneath::{Rel, Root, is_git, split};
use crate::change::{PathState, RestoreTarget, agree};
use crate::stat::PathKind;
use crate::whole_files::Whole;
use crate::{ChangesError, TreeChange};

pub(crate) use disk::chmod;
use disk::found_at;

/// The planned or actual treatment of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreStep {
    Restore,
    AlreadyThere,
    /// The path is neither as the changes left it nor as it should be. It is not touched.
    Conflict {
        found: Option<PathState>,
    },
    /// The content is not in the store.
    MissingBlob {
        digest: Digest,
    },
    /// A folder that should be removed holds files of others. It stays.
    FolderInUse,
    /// Outside of the root, inside a `.git`, reached through a link, or of a kind that cannot be made.
    Refused,
    /// The system refused.
    Failed {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub wanted: RestoreTarget,
    pub step: RestoreStep,
}

/// The result of [`apply`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreOutcome {
    /// Ordered by path. Includes folders that had to be made for a file.
    pub changes: Vec<TreeChange>,
    /// The paths that were to be restored and were not, with the obstacle.
    pub left: Vec<Planned>,
}

/// The effect of restoring on each path, in the given order.
pub fn plan(target: &[RestoreTarget], blobs: &Blobs, root: &Path) -> Result<Vec<Planned>, ChangesError> {
    let root = Root::open_or_gone(root)?;
    let step = |wanted: &RestoreTarget| -> Result<RestoreStep, ChangesError> {
        let Some(rel) = rel_of(&root.path, &wanted.path) else { return Ok(RestoreStep::Refused) };
        let found = match found_at(&root, &rel) {
            Ok(found) => found,
            Err(error) => return Ok(RestoreStep::Failed { why: error.to_string() }),
        };
        let (is_now, is_wanted) =
            (agree(found.as_ref(), wanted.now.as_ref()), agree(found.as_ref(), wanted.want.as_ref()));
        if is_wanted
            && (!is_now
                || names::are_as_wanted(&root, blobs, &rel, wanted.now.as_ref(), wanted.want.as_ref()))
        {
            return Ok(RestoreStep::AlreadyThere);
        }
        if wanted.foreign || !is_now {
            return Ok(RestoreStep::Conflict { found });
        }
        let Some(want) = &wanted.want else { return Ok(RestoreStep::Restore) };
        let kind = PathKind::of(want.mode);
        let same_content = wanted.now.as_ref().is_some_and(|now| is_mode_only(now, want));
        Ok(match kind {
            PathKind::Special => RestoreStep::Refused,
            PathKind::Folder => RestoreStep::Restore,
            PathKind::File | PathKind::Link if same_content || blobs.has(&want.digest)? => {
                RestoreStep::Restore
            }
            PathKind::File if Whole::of(blobs).has(&want.digest) => RestoreStep::Restore,
            PathKind::File | PathKind::Link => RestoreStep::MissingBlob { digest: want.digest.clone() },
        })
    };
    target.iter().map(|wanted| Ok(Planned { step: step(wanted)?, wanted: wanted.clone() })).collect()
}

/// Plans the completion of a restore that a killed process began. A folder that the process made, or opened to itself
/// for a while, and that does not have its mode yet is not a conflict, and neither is a path with only some of its
/// attributes.
pub fn plan_again(
    target: &[RestoreTarget],
    blobs: &Blobs,
    root: &Path,
) -> Result<Vec<Planned>, ChangesError> {
    let is_folder = |state: &Option<PathState>| {
        state.as_ref().is_some_and(|state| PathKind::of(state.mode) == PathKind::Folder)
    };
    let mut plan = plan(target, blobs, root)?;
    for planned in &mut plan {
        if let RestoreStep::Conflict { found } = &planned.step
            && (is_folder(found) && is_folder(&planned.wanted.want) || is_between(found, &planned.wanted))
        {
            planned.wanted.now = found.clone();
            planned.step = RestoreStep::Restore;
        }
    }
    Ok(plan)
}

/// Restores the paths that the plan marks. A missing root is made again; only if that fails the result is an error.
pub fn apply(plan: &[Planned], blobs: &Blobs, root: &Path) -> Result<RestoreOutcome, ChangesError> {
    let restores = plan.iter().any(|planned| planned.step == RestoreStep::Restore);
    let root = if restores { Root::open_or_make(root)? } else { Root::open_or_gone(root)? };
    Ok(apply::Apply::new(&root, blobs).run(plan))
}

/// Removes the files that a killed process may have left next to these paths under its private names.
pub fn sweep(root: &Path, paths: impl Iterator<Item = std::path::PathBuf>, pid: u32) {
    let Ok(root) = Root::open(root) else { return };
    let folders: std::collections::BTreeSet<Rel> =
        paths.filter_map(|path| rel_of(&root.path, &path)).map(|rel| Rel::from(split(&rel).0)).collect();
    for folder in folders {
        disk::sweep(&root, &folder, pid);
    }
}

/// Tells whether only mode and attributes were to change, and some of them did.
fn is_between(found: &Option<PathState>, wanted: &RestoreTarget) -> bool {
    match (found, &wanted.now, &wanted.want) {
        (Some(found), Some(now), Some(want)) => is_mode_only(found, want) && is_mode_only(now, want),
        _ => false,
    }
}

/// Tells whether only mode, attributes or other names differ.
fn is_mode_only(a: &PathState, b: &PathState) -> bool {
    a.digest == b.digest && PathKind::of(a.mode) == PathKind::of(b.mode)
}

/// A path beneath the root that may be touched.
fn rel_of(root: &Path, path: &Path) -> Option<Rel> {
    let rel = path.strip_prefix(root).ok()?;
    let is_fine = |part: Component<'_>| match part {
        Component::Normal(name) => !is_git(name.as_bytes()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
    };
    let is_rel = !rel.as_os_str().is_empty() && rel.components().all(is_fine);
    // Rebuilt from its components: the text may contain doubled or trailing slashes.
    is_rel.then(|| rel.components().collect::<std::path::PathBuf>().as_os_str().as_bytes().into())
}
