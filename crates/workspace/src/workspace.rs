//! The `Workspace` value: one place to work in, with its files, its processes and its properties.
//!
//! It is made once for a session and given to all code that touches a file or starts a process. Its holders name no
//! type of this machine, so another kind of place only needs another constructor:
//!
//! - a folder of this machine: [`Workspace::on_this_machine`] with files and processes of this machine;
//! - a jail: the same call and the same files, with processes that start behind walls, and a level above 0. The walls
//!   mount the folder at its outside path, so the path map keeps it unchanged; caches elsewhere are rows of it;
//! - a container with a mounted folder: the same files, processes of the container, and a path map with the mount;
//! - a container with a copied folder, and another machine: [`Workspace::elsewhere`], with files behind a bridge and
//!   no local tree.
//!
//! Operations that only a tree of this machine supports are in [`LocalTree`], which a place need not have. A caller
//! that needs it calls [`Workspace::local`] and has to handle its absence.
//!
//! Paths that a caller, the journal and `files` use are *host paths*; those that processes use are *inside*. They are
//! converted by [`Workspace::inside`] and [`Workspace::host`] and nowhere else. A path without a counterpart is
//! `None`: that is reported, never guessed.
//!
//! Rejected: the local operations as methods of `Files` with default results (a caller that forgets to check gets an
//! empty result, and every wrapper must forward them); a type parameter for the kind of place (it would spread
//! through every signature up to the surfaces, and a session chooses its place at run time); separate maps in `Files`
//! and `Processes` (two maps can disagree, and a change would be recorded under a path that cannot be found).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{
    Files, Jail, LocalFiles, LocalProcesses, LocalTree, MayOpen, NetworkDoor, PathMap, Processes,
    WorkspaceError,
};

/// The strength of the walls around the processes of a workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// 0: no walls.
    #[default]
    Off,
    /// 1: limits of time and size.
    Limits,
    /// 2: the kernel filters system calls.
    Filters,
    /// 3: namespaces of their own.
    Walls,
}

impl Level {
    /// The number that users see.
    pub fn number(self) -> u8 {
        match self {
            Self::Off => 0,
            Self::Limits => 1,
            Self::Filters => 2,
            Self::Walls => 3,
        }
    }
}

/// The place where a session works. A clone is another handle on the same place.
#[derive(Clone)]
pub struct Workspace {
    root: Arc<Path>,
    files: Arc<dyn Files>,
    processes: Arc<dyn Processes>,
    /// Lathe's own programs, outside of any walls.
    own_processes: Arc<dyn Processes>,
    paths: PathMap,
    level: Level,
    /// The way out of the network of its processes, if they have one of their own.
    network: Option<Arc<dyn NetworkDoor>>,
    is_read_only: bool,
    local: Option<LocalTree>,
}

impl Workspace {
    /// A folder of this machine, with its processes.
    pub fn on_this_machine(files: LocalFiles, processes: Arc<dyn Processes>) -> Self {
        let (root, files) = (files.root().into(), Arc::new(files));
        Self {
            root,
            files: Arc::clone(&files) as Arc<dyn Files>,
            own_processes: Arc::clone(&processes),
            processes,
            paths: PathMap::default(),
            level: Level::Off,
            network: None,
            is_read_only: false,
            local: Some(LocalTree::of(files)),
        }
    }

    /// A place without a folder on this machine. `root` is the path of its root on this side.
    pub fn elsewhere(
        root: &Path,
        files: Arc<dyn Files>,
        processes: Arc<dyn Processes>,
        paths: PathMap,
    ) -> Self {
        let own_processes = Arc::clone(&processes);
        Self {
            root: root.into(),
            files,
            processes,
            own_processes,
            paths,
            level: Level::Off,
            network: None,
            is_read_only: false,
            local: None,
        }
    }

    /// The same place, with its processes behind walls.
    pub fn behind(self, jail: Arc<Jail>) -> Self {
        let network = jail.door().cloned();
        let is_read_only = jail.is_read_only();
        Self { level: jail.level(), paths: jail.paths(), network, is_read_only, processes: jail, ..self }
    }

    /// A folder of this machine that belongs to no session. No path leads into the closed folder, if one is given.
    pub fn folder(root: PathBuf, closed: Option<&Path>) -> Self {
        let files = match closed {
            Some(closed) => LocalFiles::confined(root, closed),
            None => LocalFiles::new(root),
        };
        Self::on_this_machine(files, Arc::new(LocalProcesses))
    }

    /// The same place for a holder with restricted access: `files` replaces its own, and `may_open` is checked for
    /// every file that its local tree opens.
    pub fn limited(self, files: Arc<dyn Files>, may_open: MayOpen) -> Self {
        Self { files, local: self.local.map(|tree| tree.limited(may_open)), ..self }
    }

    /// The same workspace, with its transactions noted in a folder of this machine. If the process dies in the middle
    /// of one, the next workspace with the same root and folder rolls it back; this call does so for earlier deaths.
    /// A place elsewhere has its own means of atomicity, and is not changed.
    pub fn recovering(self, notes: PathBuf) -> Result<Self, WorkspaceError> {
        let Some(tree) = &self.local else { return Ok(self) };
        let files = Arc::new(tree.recovering(notes)?);
        Ok(Self { files: Arc::clone(&files) as Arc<dyn Files>, local: Some(LocalTree::of(files)), ..self })
    }

    /// The working folder, as a host path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn files(&self) -> &Arc<dyn Files> {
        &self.files
    }

    /// The processes of the session: the shell, checks, the programs of tools.
    pub fn processes(&self) -> &Arc<dyn Processes> {
        &self.processes
    }

    /// Lathe's own programs, which do not run what the workspace names: git as the crate `git` starts it.
    pub fn own_processes(&self) -> &Arc<dyn Processes> {
        &self.own_processes
    }

    /// The path of a host path inside.
    pub fn inside(&self, host: &Path) -> Option<PathBuf> {
        self.paths.inside(host)
    }

    /// The host path of a path inside.
    pub fn host(&self, inside: &Path) -> Option<PathBuf> {
        self.paths.host(inside)
    }

    /// Tells whether its processes cannot write the workspace. Lathe's own file tools are not among them.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }

    /// The way out of the network of its processes. None if they use the machine's network, or none at all.
    pub fn network(&self) -> Option<&Arc<dyn NetworkDoor>> {
        self.network.as_ref()
    }

    pub fn level(&self) -> Level {
        self.level
    }

    /// The local tree. None if the place is not a folder of this machine.
    pub fn local(&self) -> Option<&LocalTree> {
        self.local.as_ref()
    }
}
