//! The transaction behind [`Files::apply`](crate::Files::apply):
//!
//! 1. every expectation is checked and the pre-images are read;
//! 2. every new content is written and synced under a private name beside its file;
//! 3. the expectations are checked once more, right before the first change;
//! 4. each new file changes places with the old one in a single step, and the old
//!    one, now under the private name, is looked at again: if somebody changed it in
//!    that very moment, it is not lost but put back;
//! 5. the folders are synced.
//!
//! A failure anywhere puts back what was exchanged, the old files themselves and
//! not copies of them. Invariant: under its own name a file is at every moment
//! either wholly old or wholly new. A file with several hard links becomes a file
//! of its own; access control lists and extended attributes are not carried over.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use lathe_protocol::Digest;
use tempfile::TempPath;

use super::{PERMISSIONS, open, read_range};
use crate::{Applied, Expect, FileOp, WorkspaceError};

const MAX_LINKS: usize = 40;

/// All operations, or none. The caller sees to it that only one runs at a time.
pub(super) fn apply(root: &Path, ops: Vec<FileOp>) -> Result<Vec<Applied>, WorkspaceError> {
    let mut plans = Vec::with_capacity(ops.len());
    let mut targets = BTreeSet::new();
    for op in ops {
        let plan = Plan::check(root, op)?;
        if !targets.insert(identity(&plan.target)) {
            let twice = io::Error::new(io::ErrorKind::InvalidInput, "named by two operations");
            return Err(WorkspaceError::io(plan.path, twice));
        }
        plans.push(plan);
    }
    let mut made = MadeFolders::default();
    let mut staged = Vec::with_capacity(plans.len());
    for plan in &plans {
        staged.push(plan.stage(&mut made).map_err(|error| WorkspaceError::io(&plan.path, error))?);
    }
    for plan in &plans {
        plan.check_again()?;
    }
    let mut done = Vec::with_capacity(plans.len());
    for (plan, staged) in plans.iter().zip(staged) {
        match plan.commit(staged) {
            Ok(undo) => done.push(undo),
            Err(error) => return Err(put_back(done, error)),
        }
    }
    if let Err(error) = sync_folders(&plans, &made) {
        return Err(put_back(done, error));
    }
    made.keep();
    let applied = plans.into_iter().zip(done).map(|(plan, undo)| Applied {
        path: plan.path,
        before: plan.before.map(|before| before.content),
        after: plan.after,
        mode: undo.mode,
    });
    Ok(applied.collect())
}

/// What stood there before.
struct Before {
    content: Vec<u8>,
    found: Metadata,
}

/// One operation after its first check.
struct Plan {
    /// As the caller wrote it.
    path: PathBuf,
    /// The name that will change: behind all links for a write, the name itself
    /// for a removal, which takes a link away and not what it leads to.
    target: PathBuf,
    before: Option<Before>,
    after: Option<Vec<u8>>,
}

impl Plan {
    fn check(root: &Path, op: FileOp) -> Result<Self, WorkspaceError> {
        let (path, expect, after) = match op {
            FileOp::Write { path, expect, content } => (path, expect, Some(content)),
            FileOp::Remove { path, expect } => (path, expect, None),
        };
        let named = root.join(&path);
        let before = match open(&named) {
            Ok((file, found)) => {
                let content = read_range(&file, &found, 0..u64::MAX)
                    .map_err(|error| WorkspaceError::io(&path, error))?;
                Some(Before { content, found })
            }
            Err(error) if error.is_absent() => None,
            Err(error) => return Err(error.at(&path)),
        };
        match (&expect, &before) {
            (Expect::Absent, Some(_)) => return Err(WorkspaceError::Exists(path)),
            (Expect::Hash(_), None) => return Err(WorkspaceError::Stale(path)),
            (Expect::Hash(hash), Some(before)) if Digest::of(&before.content) != *hash => {
                return Err(WorkspaceError::Stale(path));
            }
            (Expect::Absent, None) | (Expect::Hash(_), Some(_)) => {}
        }
        let target = match after {
            Some(_) => behind_links(named).map_err(|error| WorkspaceError::io(&path, error))?,
            None => named,
        };
        Ok(Self { path, target, before, after })
    }

    /// Prepares the operation without changing any name that others know.
    fn stage(&self, made: &mut MadeFolders) -> io::Result<Staged<'_>> {
        let folder = parent(&self.target);
        Ok(match (&self.after, &self.before) {
            (None, None) => Staged::Nothing,
            (None, Some(before)) => Staged::Away(before),
            (Some(content), None) => {
                made.make(folder)?;
                Staged::New(write_beside(folder, content, None)?)
            }
            (Some(content), Some(before)) => {
                Staged::Instead(write_beside(folder, content, Some(&before.found))?, before)
            }
        })
    }

    fn check_again(&self) -> Result<(), WorkspaceError> {
        match (open(&self.target), &self.before) {
            (Ok((file, found)), Some(before)) if same(&file, &found, before) => Ok(()),
            (Err(error), None) if error.is_absent() => Ok(()),
            (Ok(_), None) => Err(WorkspaceError::Exists(self.path.clone())),
            (Ok(_) | Err(_), Some(_)) => Err(WorkspaceError::Stale(self.path.clone())),
            (Err(error), None) => Err(error.at(&self.path)),
        }
    }

    fn commit(&self, staged: Staged<'_>) -> Result<Undo, WorkspaceError> {
        let failed = |error| WorkspaceError::io(&self.path, error);
        let undo = |mode, back| Undo { path: self.path.clone(), target: self.target.clone(), mode, back };
        let (mode, old, before) = match staged {
            Staged::Nothing => return Ok(undo(0, Back::Nothing)),
            Staged::New(new) => {
                let mode = mode_of(&new).map_err(failed)?;
                rename_new(&new, &self.target).map_err(failed)?;
                return Ok(undo(mode, Back::Unlink));
            }
            Staged::Instead(new, before) => {
                let mode = mode_of(&new).map_err(failed)?;
                (mode, exchange(new, &self.target, before), before)
            }
            Staged::Away(before) => {
                let away = |name: &Path| rename_new(&self.target, name);
                let moved = private_name().make_in(parent(&self.target), away);
                (before.found.mode() & PERMISSIONS, moved.map(|moved| moved.into_temp_path()), before)
            }
        };
        let old = match old {
            Ok(old) => old,
            // It was there a moment ago.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(WorkspaceError::Stale(self.path.clone()));
            }
            Err(error) => return Err(failed(error)),
        };
        // What was taken away must be what was expected, or it comes back.
        let expected = open(&old).is_ok_and(|(file, found)| same(&file, &found, before));
        let undo = undo(mode, Back::Rename(old));
        if expected {
            return Ok(undo);
        }
        Err(put_back(vec![undo], WorkspaceError::Stale(self.path.clone())))
    }
}

/// An operation that only needs its last step.
enum Staged<'a> {
    Nothing,
    /// The old file goes.
    Away(&'a Before),
    /// A file where none was.
    New(TempPath),
    /// A file in the place of the old one.
    Instead(TempPath, &'a Before),
}

fn same(file: &File, found: &Metadata, before: &Before) -> bool {
    found.len() == before.found.len()
        && read_range(file, found, 0..u64::MAX).is_ok_and(|content| content == before.content)
}

/// How one finished operation is taken back. Dropping it makes the operation
/// final: the old file goes with its private name.
struct Undo {
    path: PathBuf,
    target: PathBuf,
    mode: u32,
    back: Back,
}

enum Back {
    Nothing,
    Unlink,
    Rename(TempPath),
}

/// Takes operations back, the last first, and returns the error to report: the
/// given one, or where an old file now is if it could not be put back.
fn put_back(done: Vec<Undo>, error: WorkspaceError) -> WorkspaceError {
    let mut report = error;
    for undo in done.into_iter().rev() {
        let taken = match undo.back {
            Back::Nothing => Ok(()),
            Back::Unlink => fs::remove_file(&undo.target),
            Back::Rename(mut old) => {
                let renamed = fs::rename(&old, &undo.target);
                old.disable_cleanup(true);
                renamed.map_err(|why| {
                    let text = format!("not put back ({why}); its old content is in {}", old.display());
                    io::Error::other(text)
                })
            }
        };
        if let Err(why) = taken {
            report = WorkspaceError::Io { path: undo.path, source: why };
        }
    }
    report
}

/// Gives a file a name that nothing may have yet.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rename_with(from, to, Rename::NoReplace) {
        Err(error) if is_unsupported(&error) => match fs::symlink_metadata(to) {
            Ok(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
            Err(_) => fs::rename(from, to),
        },
        done => done,
    }
}

/// Exchanges a new file with the old one and returns the name the old one has
/// then. Where the file system cannot, the old one gets a second name first, or is
/// copied where there are no hard links.
fn exchange(new: TempPath, target: &Path, before: &Before) -> io::Result<TempPath> {
    match rename_with(&new, target, Rename::Exchange) {
        Ok(()) => Ok(new),
        Err(error) if is_unsupported(&error) => {
            let folder = parent(target);
            let old = match private_name().make_in(folder, |name| fs::hard_link(target, name)) {
                Ok(linked) => linked.into_temp_path(),
                Err(_) => write_beside(folder, &before.content, Some(&before.found))?,
            };
            fs::rename(&new, target)?;
            Ok(old)
        }
        Err(error) => Err(error),
    }
}

#[derive(Clone, Copy)]
enum Rename {
    NoReplace,
    Exchange,
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn rename_with(from: &Path, to: &Path, how: Rename) -> io::Result<()> {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    let flags = match how {
        Rename::NoReplace => RenameFlags::RENAME_NOREPLACE,
        Rename::Exchange => RenameFlags::RENAME_EXCHANGE,
    };
    renameat2(AT_FDCWD, from, AT_FDCWD, to, flags).map_err(io::Error::from)
}

/// Other systems have such calls under other names, or none.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
fn rename_with(_from: &Path, _to: &Path, _how: Rename) -> io::Result<()> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

fn mode_of(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(path)?.mode() & PERMISSIONS)
}

fn private_name() -> tempfile::Builder<'static, 'static> {
    let mut name = tempfile::Builder::new();
    name.prefix(".lathe-").suffix(".tmp");
    name
}

/// Writes and syncs a file under a private name. In the place of an old file it
/// is readable by nobody else until it has the old one's owner and mode; a file
/// that is new from the start gets what the umask leaves.
fn write_beside(folder: &Path, content: &[u8], like: Option<&Metadata>) -> io::Result<TempPath> {
    let mut name = private_name();
    if like.is_none() {
        name.permissions(fs::Permissions::from_mode(0o666));
    }
    let (mut file, path) = name.tempfile_in(folder)?.into_parts();
    file.write_all(content)?;
    if let Some(like) = like {
        let own = file.metadata()?;
        let mut mode = like.mode() & PERMISSIONS;
        let other = (own.uid(), own.gid()) != (like.uid(), like.gid());
        if other && std::os::unix::fs::fchown(&file, Some(like.uid()), Some(like.gid())).is_err() {
            // Only root gives files away. The content counts more than the owner,
            // but nobody's set-user-id bit may become ours.
            mode &= 0o1777;
        }
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.sync_all()?;
    if file.metadata()?.len() != content.len() as u64 {
        return Err(io::Error::new(io::ErrorKind::WriteZero, "the file is shorter than what was written"));
    }
    Ok(path)
}

/// Folders made for new files; they go again unless kept.
#[derive(Default)]
struct MadeFolders(Vec<PathBuf>);

impl MadeFolders {
    fn make(&mut self, folder: &Path) -> io::Result<()> {
        let missing: Vec<&Path> = folder.ancestors().take_while(|folder| !folder.exists()).collect();
        for folder in missing.into_iter().rev() {
            match fs::create_dir(folder) {
                Ok(()) => self.0.push(folder.to_owned()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn keep(mut self) {
        self.0.clear();
    }
}

impl Drop for MadeFolders {
    fn drop(&mut self) {
        for folder in self.0.iter().rev() {
            // One that somebody else uses by now is not empty and stays.
            let _ = fs::remove_dir(folder);
        }
    }
}

fn sync_folders(plans: &[Plan], made: &MadeFolders) -> Result<(), WorkspaceError> {
    let of_files = plans.iter().filter(|plan| plan.before.is_some() || plan.after.is_some());
    let folders: BTreeSet<&Path> =
        of_files.map(|plan| parent(&plan.target)).chain(made.0.iter().map(|folder| parent(folder))).collect();
    for folder in folders {
        match File::open(folder).and_then(|folder| folder.sync_all()) {
            Ok(()) => {}
            // Some file systems have nothing to sync in a folder, and a folder that
            // may be written but not read cannot be opened.
            Err(error) if is_unsupported(&error) || error.kind() == io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(WorkspaceError::io(folder, error)),
        }
    }
    Ok(())
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => path,
    }
}

/// The path with links in its last name followed, also where the last one leads
/// to nothing yet.
fn behind_links(mut path: PathBuf) -> io::Result<PathBuf> {
    for _ in 0..MAX_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => path = parent(&path).join(fs::read_link(&path)?),
            Ok(_) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::from(nix::errno::Errno::ELOOP))
}

/// One spelling for one name: the folder without links as far as it exists.
fn identity(path: &Path) -> PathBuf {
    for folder in path.ancestors().skip(1) {
        if let (Ok(real), Ok(rest)) = (fs::canonicalize(folder), path.strip_prefix(folder)) {
            return real.join(rest);
        }
    }
    path.to_owned()
}
