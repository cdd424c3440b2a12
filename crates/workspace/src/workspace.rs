//! The `Workspace` value: one place to work in, with its files, its processes and what it is.
//!
//! It is made once for a session and handed to everything that touches a file or starts a process. Nothing that holds one
//! names a type of this machine, so another kind of place is another constructor and nothing else:
//!
//! - a folder of this machine: [`Workspace::on_this_machine`] with files and processes of this machine;
//! - a jail: the same call and the same files, with processes that are born behind walls, and a level above 0. The walls bind
//!   the folder to the path it has outside, so the path map is the same path; caches that lie elsewhere are rows of it;
//! - a container with a mounted folder: the same files, processes of the container, and a path map with the mount;
//! - a container with a copied folder, and another machine: [`Workspace::elsewhere`], with files behind a bridge and no
//!   local tree.
//!
//! What only a tree of this machine can do is in [`LocalTree`], which a place need not have. A caller that needs it asks
//! [`Workspace::local`] and has to say what happens without it.
//!
//! Paths that a caller, the journal and `files` use are *host paths*; those that processes use are *inside*. They cross by
//! [`Workspace::inside`] and [`Workspace::host`] and nowhere else. A path without a counterpart is `None`: it is told, never
//! guessed.
//!
//! Rejected: the local abilities as methods of `Files` with default answers (a caller that forgets to ask gets an empty
//! answer, and every wrapper must forward them); a type parameter for the kind of place (it would spread through every
//! signature up to the surfaces, and a session chooses its place at run time); a map inside `Files` and `Processes`, each for
//! itself (two maps can disagree, and a change would be recorded by a path that nobody can find).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Files, LocalFiles, LocalProcesses, LocalTree, MayOpen, PathMap, Processes, WorkspaceError};

/// How far walls hold what processes of a workspace do, whatever they are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 0: nothing holds them.
    #[default]
    Off,
    /// 1: they have limits of time and size.
    Limits,
    /// 2: the kernel filters what they ask for.
    Filters,
    /// 3: they live in namespaces of their own.
    Walls,
}

impl Level {
    /// The number by which people know it.
    pub fn number(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::Limits => 1,
            Self::Filters => 2,
            Self::Walls => 3,
        }
    }
}

/// The place where a session works. A copy is another handle on the same place.
#[derive(Clone)]
pub struct Workspace {
    root: Arc<Path>,
    files: Arc<dyn Files>,
    processes: Arc<dyn Processes>,
    paths: PathMap,
    level: Level,
    local: Option<LocalTree>,
}

impl Workspace {
    /// A folder of this machine, with the processes that belong to it.
    pub fn on_this_machine(files: LocalFiles, processes: Arc<dyn Processes>) -> Self {
        let (root, files) = (files.root().into(), Arc::new(files));
        Self {
            root,
            files: Arc::clone(&files) as Arc<dyn Files>,
            processes,
            paths: PathMap::default(),
            level: Level::Off,
            local: Some(LocalTree::of(files)),
        }
    }

    /// A place of which this machine has no folder, by the path of its root on this side.
    pub fn elsewhere(
        root: &Path,
        files: Arc<dyn Files>,
        processes: Arc<dyn Processes>,
        paths: PathMap,
    ) -> Self {
        Self { root: root.into(), files, processes, paths, level: Level::Off, local: None }
    }

    /// A folder of this machine that belongs to no session. No path leads into the closed folder, if one is named.
    pub fn folder(root: PathBuf, closed: Option<&Path>) -> Self {
        let files = match closed {
            Some(closed) => LocalFiles::confined(root, closed),
            None => LocalFiles::new(root),
        };
        Self::on_this_machine(files, Arc::new(LocalProcesses))
    }

    /// The same place for a holder that may see less of it: these files stand before its own, and `may_open` before every
    /// file that its local tree opens.
    pub fn limited(self, files: Arc<dyn Files>, may_open: MayOpen) -> Self {
        Self { files, local: self.local.map(|tree| tree.limited(may_open)), ..self }
    }

    /// The same workspace, whose transactions are noted in a folder of this machine: one that died in the middle is put back
    /// by the next workspace of the same root and folder, and that is done now for those that died before. A place elsewhere
    /// has its own way to be whole, and is left as it is.
    pub fn recovering(self, notes: PathBuf) -> Result<Self, WorkspaceError> {
        let Some(tree) = &self.local else { return Ok(self) };
        let files = Arc::new(tree.recovering(notes)?);
        Ok(Self { files: Arc::clone(&files) as Arc<dyn Files>, local: Some(LocalTree::of(files)), ..self })
    }

    /// The folder that is worked in, as a host path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    pub fn processes(&self) -> &Arc<dyn Processes> {
        &self.processes
    }

    /// The path by which processes know a host path.
    pub fn inside(&self, host: &Path) -> Option<PathBuf> {
        self.paths.inside(host)
    }

    /// The host path of what processes know by a path.
    pub fn host(&self, inside: &Path) -> Option<PathBuf> {
        self.paths.host(inside)
    }

    pub fn level(&self) -> Level {
        self.level
    }

    /// What only a tree of this machine can do. None: the place is no folder of this machine.
    pub fn local(&self) -> Option<&LocalTree> {
        self.local.as_ref()
    }
}
