//! The order of a restore: first files and links to remove, then folders to remove (deepest first), then folders to
//! make, then files and links with their content. The modes of folders come last, because a folder that is not
//! writable cannot be filled.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::rc::Rc;
use std::sync::Arc;

use lathe_blobs::Blobs;
use lathe_protocol::Digest;
use nix::errno::Errno;
use nix::sys::stat::{Mode, mkdirat};
use nix::unistd::{UnlinkatFlags, unlinkat};

#[cfg(target_os = "linux")]
use super::disk::Synced;
use super::disk::{Over, Prepared, Sync, attributes_at, chmod, found_at};
use super::names::{LinkNames, listed};
use super::{Planned, RestoreOutcome, RestoreStep, is_mode_only, rel_of};
use crate::TreeChange;
use crate::attributes::Attributes;
use crate::beneath::{Rel, Root, split};
use crate::change::{PathState, agree};
use crate::stat::{FOLDER_BITS, PathKind};
use crate::whole_files::Whole;

/// The maximum number of files that are made durable together, and of their folders, which stay open until then.
const TOGETHER: usize = 4096;
const FOLDERS: usize = 128;

/// Fewer files than this are synced one by one, which does not wait for the writes of other processes.
const FEW: usize = 32;

pub(super) struct Apply<'a> {
    root: &'a Root,
    blobs: &'a Blobs,
    whole: Whole,
    /// The states before and after, of every path that was touched.
    done: BTreeMap<Rel, (Option<PathState>, Option<PathState>)>,
    /// Paths that cannot be restored.
    left: BTreeMap<Rel, RestoreStep>,
    /// Folders that are opened to us temporarily, with their final mode.
    opened: BTreeMap<Rel, u32>,
    /// The final attributes of folders.
    attributes: BTreeMap<Rel, Arc<Attributes>>,
    /// Folders in which names came or went.
    unsynced: BTreeSet<Rel>,
    /// For each name, the paths whose wanted state lists it as another name of theirs.
    partners: BTreeMap<Rel, Vec<Rel>>,
}

/// The reasons why a path was not restored.
enum Stopped {
    Step(RestoreStep),
    Io(io::Error),
}

impl<E: Into<io::Error>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Io(error.into())
    }
}

struct RestoreItem<'a> {
    rel: Rel,
    now: Option<&'a PathState>,
    want: Option<&'a PathState>,
}

impl From<Stopped> for RestoreStep {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::Step(step) => step,
            Stopped::Io(error) => Self::Failed { why: error.to_string() },
        }
    }
}

impl RestoreItem<'_> {
    fn kinds(&self) -> (Option<PathKind>, Option<PathKind>) {
        let kind = |state: Option<&PathState>| state.map(|state| PathKind::of(state.mode));
        (kind(self.now), kind(self.want))
    }

    fn is_mode_only(&self) -> bool {
        self.now.zip(self.want).is_some_and(|(now, want)| is_mode_only(now, want))
    }

    /// Tells whether the file has other names, or had.
    fn is_named(&self) -> bool {
        let has_names = |state: Option<&PathState>| state.is_some_and(|state| state.links.is_some());
        self.kinds().1 == Some(PathKind::File)
            && (has_names(self.want) || has_names(self.now) && self.is_mode_only())
    }

    fn wanted_mode(&self) -> u32 {
        self.want.map_or(0, |want| want.mode)
    }
}

impl<'a> Apply<'a> {
    pub fn new(root: &'a Root, blobs: &'a Blobs) -> Self {
        Self {
            root,
            blobs,
            whole: Whole::of(blobs),
            done: BTreeMap::new(),
            left: BTreeMap::new(),
            opened: BTreeMap::new(),
            attributes: BTreeMap::new(),
            unsynced: BTreeSet::new(),
            partners: BTreeMap::new(),
        }
    }

    pub fn run(mut self, plan: &[Planned]) -> RestoreOutcome {
        let chosen = plan.iter().filter(|planned| planned.step == RestoreStep::Restore);
        let mut items: Vec<RestoreItem<'_>> = chosen
            .filter_map(|planned| {
                let (now, want) = (planned.wanted.now.as_ref(), planned.wanted.want.as_ref());
                Some(RestoreItem { rel: rel_of(&self.root.path, &planned.wanted.path)?, now, want })
            })
            .collect();
        items.sort_by(|a, b| a.rel.cmp(&b.rel));
        for item in &items {
            for name in item.want.map(|want| listed(self.blobs, want)).unwrap_or_default() {
                self.partners.entry(name).or_default().push(item.rel.clone());
            }
        }

        const FOLDER: Option<PathKind> = Some(PathKind::Folder);
        self.each(items.iter(), |apply, item| match item.kinds() {
            (Some(PathKind::File | PathKind::Link), None | FOLDER) => {
                apply.remove(item, UnlinkatFlags::NoRemoveDir)
            }
            _ => Ok(()),
        });
        self.each(items.iter().rev(), |apply, item| match item.kinds() {
            (FOLDER, want) if want != FOLDER => apply.remove(item, UnlinkatFlags::RemoveDir),
            _ => Ok(()),
        });
        self.each(items.iter(), |apply, item| match item.kinds() {
            (now, FOLDER) if now != FOLDER => apply.make_folder(&item.rel, item.want, item.wanted_mode()),
            _ => Ok(()),
        });
        let is_content =
            |item: &&RestoreItem<'_>| matches!(item.kinds().1, Some(PathKind::File | PathKind::Link));
        let (named, alone): (Vec<&RestoreItem<'_>>, Vec<_>) =
            items.iter().filter(is_content).partition(|item| item.is_named());
        let (modes, contents): (Vec<&RestoreItem<'_>>, Vec<_>) =
            alone.into_iter().partition(|item| item.is_mode_only());
        self.each(modes, |apply, item| apply.change_mode(item));
        let mut contents = &contents[..];
        while !contents.is_empty() {
            let (some, rest) = contents.split_at(together(contents));
            self.write(some);
            contents = rest;
        }
        // Files that stay in place come first: the other names are linked to them.
        let (stay, come): (Vec<&RestoreItem<'_>>, Vec<_>) =
            named.into_iter().partition(|item| item.is_mode_only());
        self.each(stay.into_iter().chain(come), |apply, item| apply.restore_names(item));
        self.each(items.iter().rev(), |apply, item| match item.kinds() {
            (FOLDER, FOLDER) => apply.change_folder_mode(item),
            _ => Ok(()),
        });
        self.close();
        self.report(plan)
    }

    /// Runs `act` on each item without an obstacle, and records the obstacles that it meets.
    fn each<'i>(
        &mut self,
        items: impl IntoIterator<Item = &'i RestoreItem<'i>>,
        mut act: impl FnMut(&mut Self, &'i RestoreItem<'i>) -> Result<(), Stopped>,
    ) {
        for item in items {
            if self.left.contains_key(&item.rel) {
                continue;
            }
            if let Err(stopped) = act(self, item) {
                self.left.insert(item.rel.clone(), stopped.into());
            }
        }
    }

    /// Checks that the path may be replaced now, not only at the time of the plan.
    fn check(&self, item: &RestoreItem<'_>) -> Result<Option<PathState>, Stopped> {
        let expected = match self.done.get(&item.rel) {
            Some((_, after)) => after.as_ref(),
            None => item.now,
        };
        let mut found = found_at(self.root, &item.rel)?;
        if let (Some(found), Some(mode)) = (&mut found, self.opened.get(&item.rel)) {
            found.mode = *mode;
        }
        match found.as_ref() {
            found if agree(found, expected) => {}
            found if agree(found, item.want) => return Err(Stopped::Step(RestoreStep::AlreadyThere)),
            _ => return Err(Stopped::Step(RestoreStep::Conflict { found })),
        }
        // The recorded state, which has more detail than the disk shows.
        Ok(expected.cloned())
    }

    fn remove(&mut self, item: &RestoreItem<'_>, how: UnlinkatFlags) -> Result<(), Stopped> {
        let found = self.check(item)?;
        let folder = self.parent(&item.rel)?;
        self.keep_whole(found.as_ref(), &folder, &item.rel)?;
        match unlinkat(&folder, OsStr::from_bytes(split(&item.rel).1), how) {
            Ok(()) => {}
            Err(Errno::ENOTEMPTY | Errno::EEXIST) => return Err(Stopped::Step(RestoreStep::FolderInUse)),
            Err(error) => return Err(error.into()),
        }
        self.opened.remove(&item.rel);
        self.unsynced.remove(&item.rel);
        self.record(&item.rel, found, None);
        Ok(())
    }

    /// Makes a folder that we may fill. It gets its mode at the end.
    fn make_folder(&mut self, rel: &Rel, want: Option<&PathState>, mode: u32) -> Result<(), Stopped> {
        let folder = self.parent(rel)?;
        let name = split(rel).1;
        match mkdirat(&folder, OsStr::from_bytes(name), Mode::from_bits_truncate(0o700)) {
            Ok(()) => {}
            Err(Errno::EEXIST) => {
                return Err(Stopped::Step(RestoreStep::Conflict { found: found_at(self.root, rel)? }));
            }
            Err(error) => return Err(error.into()),
        }
        self.opened.insert(rel.clone(), mode);
        self.unsynced.insert(rel.clone());
        let state = PathState::new(Digest::of(b""), FOLDER_BITS | mode & 0o7777);
        if let Some(attributes) = want.and_then(|want| self.recorded(want)) {
            self.attributes.insert(rel.clone(), attributes);
        }
        self.record(rel, None, Some(want.cloned().unwrap_or(state)));
        Ok(())
    }

    /// Writes the content of all items under private names, makes it durable, then gives each its name.
    fn write(&mut self, some: &[&RestoreItem<'_>]) {
        let sync = if cfg!(target_os = "linux") && some.len() >= FEW { Sync::Together } else { Sync::Now };
        let mut ready = Vec::new();
        let mut folder = None;
        self.each(some.iter().copied(), |apply, item| {
            ready.push((item, apply.prepare(item, sync, &mut folder)?));
            Ok(())
        });
        #[cfg(target_os = "linux")]
        if sync == Sync::Together {
            let mut synced = Synced::default();
            if let Err(error) = ready.iter().try_for_each(|(_, prepared)| synced.sync(&prepared.folder)) {
                let failed = || RestoreStep::Failed { why: error.to_string() };
                self.left.extend(ready.drain(..).map(|(item, _)| (item.rel.clone(), failed())));
            }
        }
        for (item, prepared) in ready {
            if let Err(stopped) = self.place(item, prepared) {
                self.left.insert(item.rel.clone(), stopped.into());
            }
        }
    }

    /// `last` is the folder of the previous item, which often is the folder of this one too.
    fn prepare(
        &mut self,
        item: &RestoreItem<'_>,
        sync: Sync,
        last: &mut Option<(Rel, Rc<OwnedFd>)>,
    ) -> Result<Prepared, Stopped> {
        let Some(want) = item.want else { return Err(Stopped::Step(RestoreStep::Refused)) };
        let content = self.content(want)?;
        if content.is_none() && !self.whole.has(&want.digest) {
            return Err(Stopped::Step(RestoreStep::MissingBlob { digest: want.digest.clone() }));
        }
        self.check(item)?;
        let parent = split(&item.rel).0;
        let folder = match last {
            Some((rel, folder)) if **rel == *parent => folder.clone(),
            _ => {
                let folder = Rc::new(self.parent(&item.rel)?);
                *last = Some((parent.into(), folder.clone()));
                folder
            }
        };
        let missing = || Stopped::Step(RestoreStep::MissingBlob { digest: want.digest.clone() });
        Ok(match PathKind::of(want.mode) {
            PathKind::File => {
                let attributes = self.recorded(want).or_else(|| self.found_attributes(&item.rel));
                let (attributes, digest) = (attributes.as_deref(), &want.digest);
                match content {
                    Some(bytes) => Prepared::file(folder, &bytes, want.mode, attributes, sync)?,
                    None => Prepared::whole(folder, &self.whole, digest, want.mode, attributes)?
                        .ok_or_else(missing)?,
                }
            }
            PathKind::Link => {
                let target = content.ok_or_else(missing)?;
                Prepared::link(folder, &target, self.recorded(want).as_deref())?
            }
            PathKind::Folder | PathKind::Special => return Err(Stopped::Step(RestoreStep::Refused)),
        })
    }

    /// Keeps a file whose content is too large for the store, before it is replaced.
    fn keep_whole(&self, found: Option<&PathState>, folder: impl AsFd, rel: &Rel) -> Result<(), Stopped> {
        let Some(found) = found.filter(|found| PathKind::of(found.mode) == PathKind::File) else {
            return Ok(());
        };
        if self.blobs.has(&found.digest).unwrap_or(false) {
            return Ok(());
        }
        self.whole.keep(folder.as_fd(), split(rel).1, &found.digest).map_err(|error| {
            let why = format!("what is there now is not stored, and cannot be kept: {error}");
            Stopped::Step(RestoreStep::Failed { why })
        })
    }

    fn place(&mut self, item: &RestoreItem<'_>, prepared: Prepared) -> Result<(), Stopped> {
        // Checked again, because writing took time.
        let found = self.check(item)?;
        let over = if found.is_some() { Over::Something } else { Over::Nothing };
        let flaw = prepared.flaw.clone();
        self.keep_whole(found.as_ref(), &*prepared.folder, &item.rel)?;
        prepared.place(split(&item.rel).1, over)?;
        if let Some(want) = item.want {
            self.whole.forget(&want.digest);
        }
        self.record_with_flaw(item, found, flaw)
    }

    /// Records a restored path, and the flaw of an incomplete restore.
    fn record_with_flaw(
        &mut self,
        item: &RestoreItem<'_>,
        found: Option<PathState>,
        flaw: Option<String>,
    ) -> Result<(), Stopped> {
        let Some(why) = flaw else {
            self.record(&item.rel, found, item.want.cloned());
            return Ok(());
        };
        let now = found_at(self.root, &item.rel)?;
        self.record(&item.rel, found, now);
        Err(Stopped::Step(RestoreStep::Failed { why }))
    }

    /// The attributes that a record names. Attributes that are no longer in the store are not changed.
    fn recorded(&self, state: &PathState) -> Option<Arc<Attributes>> {
        let bytes = self.blobs.get(state.attributes.as_ref()?).ok().flatten()?;
        Attributes::from_bytes(&bytes).map(Arc::new)
    }

    /// The attributes of the file that is replaced.
    fn found_attributes(&self, rel: &Rel) -> Option<Arc<Attributes>> {
        let stat = self.root.lstat(rel).ok().flatten().filter(|stat| stat.kind() == PathKind::File)?;
        attributes_at(self.root, rel, &stat)
    }

    /// Restores a file with several names. Once restored under one name, it gets the others by linking, so that they
    /// are names of one file again.
    fn restore_names(&mut self, item: &RestoreItem<'_>) -> Result<(), Stopped> {
        let names = LinkNames::of(self.root, self.blobs, &item.rel, item.now, item.want);
        let names = names.wanting(self.partners.get(&item.rel));
        let found = match self.check(item) {
            Err(Stopped::Step(RestoreStep::AlreadyThere)) if names.wanted_one_is_same() => {
                self.record(&item.rel, item.now.cloned(), item.want.cloned());
                return Ok(());
            }
            checked => checked?,
        };
        if item.is_mode_only() && names.are_as_wanted() {
            return self.change_mode(item);
        }
        let folder = Rc::new(self.parent(&item.rel)?);
        let other = item.want.and_then(|want| names.other(want));
        let prepared = other.and_then(|other| {
            let (parent, name) = split(&other);
            let parent = self.root.open_folder(parent).ok()?;
            Prepared::name_of(Rc::clone(&folder), parent.as_fd(), name).ok()
        });
        let prepared = match prepared {
            Some(prepared) => prepared,
            // The first of the names, or a file system without hard links.
            None => self.prepare(item, Sync::Now, &mut None)?,
        };
        let over = if found.is_some() { Over::Something } else { Over::Nothing };
        let flaw = prepared.flaw.clone();
        self.keep_whole(found.as_ref(), &*prepared.folder, &item.rel)?;
        prepared.place(split(&item.rel).1, over)?;
        self.record_with_flaw(item, found, flaw)
    }

    fn content(&self, want: &PathState) -> Result<Option<Vec<u8>>, Stopped> {
        self.blobs
            .get(&want.digest)
            .map_err(|error| Stopped::Step(RestoreStep::Failed { why: error.to_string() }))
    }

    fn change_mode(&mut self, item: &RestoreItem<'_>) -> Result<(), Stopped> {
        let found = self.check(item)?;
        let mode = (item.kinds().1 != Some(PathKind::Link)).then(|| item.wanted_mode());
        let (folder, name) = (self.parent(&item.rel)?, split(&item.rel).1);
        let flaw = match (item.want.and_then(|want| self.recorded(want)), mode) {
            (Some(attributes), mode) => attributes.put(folder.as_fd(), name, mode).err(),
            (None, Some(mode)) => {
                chmod(folder.as_fd(), name, mode)?;
                None
            }
            (None, None) => None,
        };
        self.record_with_flaw(item, found, flaw.map(|error| error.to_string()))
    }

    /// Records the mode of a folder. It is set at the end, with those of all other folders.
    fn change_folder_mode(&mut self, item: &RestoreItem<'_>) -> Result<(), Stopped> {
        let found = self.check(item)?;
        self.opened.insert(item.rel.clone(), item.wanted_mode());
        if let Some(attributes) = item.want.and_then(|want| self.recorded(want)) {
            self.attributes.insert(item.rel.clone(), attributes);
        }
        self.record(&item.rel, found, item.want.cloned());
        Ok(())
    }

    /// The folder of a path. Missing folders above it are made, and existing ones are opened to us.
    fn parent(&mut self, rel: &[u8]) -> Result<OwnedFd, Stopped> {
        let parent = split(rel).0;
        let ends = parent.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        for end in ends.chain([parent.len()]).filter(|end| *end > 0) {
            let above: Rel = parent[..end].into();
            if self.opened.contains_key(&above) || self.unsynced.contains(&above) {
                continue;
            }
            let Some(stat) = self.root.lstat(&above)? else {
                self.make_folder(&above, None, 0o755)?;
                continue;
            };
            match stat.kind() {
                PathKind::Folder if stat.mode & 0o700 == 0o700 => {}
                PathKind::Folder => {
                    let (folder, name) = split(&above);
                    chmod(self.root.open_folder(folder)?.as_fd(), name, stat.mode | 0o700)?;
                    self.opened.insert(above, stat.mode);
                }
                PathKind::File | PathKind::Link | PathKind::Special => {
                    return Err(Stopped::Step(RestoreStep::Refused));
                }
            }
        }
        let folder = self.root.open_folder(parent)?;
        self.unsynced.insert(parent.into());
        Ok(folder)
    }

    fn record(&mut self, rel: &Rel, before: Option<PathState>, after: Option<PathState>) {
        match self.done.get_mut(rel) {
            Some((_, now)) => *now = after,
            None => drop(self.done.insert(rel.clone(), (before, after))),
        }
    }

    /// Makes the names durable and gives the folders their modes, deepest first.
    fn close(&mut self) {
        #[cfg(target_os = "linux")]
        let (mut synced, many) = (Synced::default(), self.unsynced.len() >= FEW);
        for rel in std::mem::take(&mut self.unsynced) {
            let Ok(folder) = self.root.open_folder(&rel) else { continue };
            // A folder that does not sync cannot be helped; the files themselves were synced.
            #[cfg(target_os = "linux")]
            if many {
                let _ = synced.sync(&folder);
                continue;
            }
            let _ = File::from(folder).sync_all();
        }
        for (rel, mode) in std::mem::take(&mut self.opened).into_iter().rev() {
            let (folder, name) = split(&rel);
            let closed = match self.root.open_folder(folder) {
                Ok(folder) => match self.attributes.get(&rel) {
                    Some(attributes) => attributes.put(folder.as_fd(), name, Some(mode)),
                    None => chmod(folder.as_fd(), name, mode),
                },
                Err(error) => Err(error.into()),
            };
            if let Err(error) = closed {
                if let (Ok(found), true) = (found_at(self.root, &rel), self.done.contains_key(&rel)) {
                    self.record(&rel, None, found);
                }
                self.left.insert(rel, RestoreStep::Failed { why: error.to_string() });
            }
        }
    }

    fn report(self, plan: &[Planned]) -> RestoreOutcome {
        let changed = self.done.into_iter().filter(|(_, (before, after))| before != after);
        let mut changes: Vec<_> = changed
            .map(|(rel, (before, after))| TreeChange::new(self.root.absolute(&rel), before, after))
            .collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        let left = plan.iter().filter_map(|planned| {
            let rel = rel_of(&self.root.path, &planned.wanted.path)?;
            // As it should be, by any actor: a file restored under one name is restored under all.
            let step = self.left.get(&rel).filter(|step| **step != RestoreStep::AlreadyThere)?.clone();
            Some(Planned { wanted: planned.wanted.clone(), step })
        });
        RestoreOutcome { left: left.collect(), changes }
    }
}

/// The number of items, which are ordered, that are written together.
fn together(items: &[&RestoreItem<'_>]) -> usize {
    let mut folders = 0;
    let mut last = None;
    let is_too_many = |item: &&RestoreItem<'_>| {
        let parent = split(&item.rel).0;
        folders += usize::from(last.replace(parent.to_owned()).is_none_or(|last| last != parent));
        folders > FOLDERS
    };
    items.iter().take(TOGETHER).position(is_too_many).unwrap_or(items.len().min(TOGETHER))
}
