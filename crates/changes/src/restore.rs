//! Bringing paths back to what they were.
//!
//! [`plan`] looks at the disk and changes nothing, so that it can be shown; [`apply`] looks again at each path right
//! before it touches it. A path is only replaced if what is there is what the changes left: anything else is somebody's
//! work, and a conflict. What was done comes back as changes, so that going back can be undone like anything else; so a
//! failure in the middle is not an error of the whole, but of its path.

mod apply;
mod disk;
mod names;

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path};

use lathe_blobs::Blobs;
use lathe_protocol::Digest;

use crate::beneath::{Rel, Root, is_git, split};
use crate::change::{State, Wanted, agree};
use crate::stat::Kind;
use crate::whole::Whole;
use crate::{ChangesError, TreeChange};

pub(crate) use disk::chmod;
use disk::found_at;

/// What becomes of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    Restore,
    AlreadyThere,
    /// What is there is neither what the changes left nor what is wanted. It is not touched.
    Conflict {
        found: Option<State>,
    },
    /// The content is not in the store.
    MissingBlob {
        digest: Digest,
    },
    /// A folder that should go holds what somebody else made. It stays.
    FolderInUse,
    /// Outside of the root, inside a `.git`, behind a link, or nothing that can be made.
    Refused,
    /// The system said no.
    Failed {
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    pub wanted: Wanted,
    pub step: Step,
}

/// What [`apply`] did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Ordered by path. A folder that had to be made for a file is one of them.
    pub changes: Vec<TreeChange>,
    /// What was to be restored and was not, with what came between.
    pub left: Vec<Planned>,
}

/// What restoring would do with each path, in the order given.
pub fn plan(target: &[Wanted], blobs: &Blobs, root: &Path) -> Result<Vec<Planned>, ChangesError> {
    let root = Root::open_or_gone(root)?;
    let step = |wanted: &Wanted| -> Result<Step, ChangesError> {
        let Some(rel) = rel_of(&root.path, &wanted.path) else { return Ok(Step::Refused) };
        let found = match found_at(&root, &rel) {
            Ok(found) => found,
            Err(error) => return Ok(Step::Failed { why: error.to_string() }),
        };
        let (is_now, is_wanted) =
            (agree(found.as_ref(), wanted.now.as_ref()), agree(found.as_ref(), wanted.want.as_ref()));
        if is_wanted && (!is_now || names::fit(&root, blobs, &rel, wanted.now.as_ref(), wanted.want.as_ref()))
        {
            return Ok(Step::AlreadyThere);
        }
        if wanted.foreign || !is_now {
            return Ok(Step::Conflict { found });
        }
        let Some(want) = &wanted.want else { return Ok(Step::Restore) };
        let kind = Kind::of(want.mode);
        let same_content = wanted.now.as_ref().is_some_and(|now| is_mode_only(now, want));
        Ok(match kind {
            Kind::Special => Step::Refused,
            Kind::Folder => Step::Restore,
            Kind::File | Kind::Link if same_content || blobs.has(&want.digest)? => Step::Restore,
            Kind::File if Whole::of(blobs).has(&want.digest) => Step::Restore,
            Kind::File | Kind::Link => Step::MissingBlob { digest: want.digest.clone() },
        })
    };
    target.iter().map(|wanted| Ok(Planned { step: step(wanted)?, wanted: wanted.clone() })).collect()
}

/// The same for what a killed process began: a folder that it made, or opened to itself for a while, and did not give its
/// mode yet is no conflict, and neither is what it gave only some of its attributes.
pub fn plan_again(target: &[Wanted], blobs: &Blobs, root: &Path) -> Result<Vec<Planned>, ChangesError> {
    let is_folder =
        |state: &Option<State>| state.as_ref().is_some_and(|state| Kind::of(state.mode) == Kind::Folder);
    let mut plan = plan(target, blobs, root)?;
    for planned in &mut plan {
        if let Step::Conflict { found } = &planned.step
            && (is_folder(found) && is_folder(&planned.wanted.want) || is_between(found, &planned.wanted))
        {
            planned.wanted.now = found.clone();
            planned.step = Step::Restore;
        }
    }
    Ok(plan)
}

/// Restores what the plan says is to be restored. A root that is gone is made again; only if that cannot be it is an error.
pub fn apply(plan: &[Planned], blobs: &Blobs, root: &Path) -> Result<Applied, ChangesError> {
    let restores = plan.iter().any(|planned| planned.step == Step::Restore);
    let root = if restores { Root::open_or_make(root)? } else { Root::open_or_gone(root)? };
    Ok(apply::Apply::new(&root, blobs).run(plan))
}

/// Removes what a killed process may have left beside these paths under private names of its own.
pub fn sweep(root: &Path, paths: impl Iterator<Item = std::path::PathBuf>, pid: u32) {
    let Ok(root) = Root::open(root) else { return };
    let folders: std::collections::BTreeSet<Rel> =
        paths.filter_map(|path| rel_of(&root.path, &path)).map(|rel| Rel::from(split(&rel).0)).collect();
    for folder in folders {
        disk::sweep(&root, &folder, pid);
    }
}

/// Tells whether mode and attributes alone were to change, and some of them did.
fn is_between(found: &Option<State>, wanted: &Wanted) -> bool {
    match (found, &wanted.now, &wanted.want) {
        (Some(found), Some(now), Some(want)) => is_mode_only(found, want) && is_mode_only(now, want),
        _ => false,
    }
}

/// Only mode, attributes or other names are others.
fn is_mode_only(a: &State, b: &State) -> bool {
    a.digest == b.digest && Kind::of(a.mode) == Kind::of(b.mode)
}

/// A path beneath the root that may be touched.
fn rel_of(root: &Path, path: &Path) -> Option<Rel> {
    let rel = path.strip_prefix(root).ok()?;
    let is_fine = |part: Component<'_>| match part {
        Component::Normal(name) => !is_git(name.as_bytes()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => false,
    };
    let is_rel = !rel.as_os_str().is_empty() && rel.components().all(is_fine);
    // Collected anew: the text may hold doubled or trailing slashes.
    is_rel.then(|| rel.components().collect::<std::path::PathBuf>().as_os_str().as_bytes().into())
}
