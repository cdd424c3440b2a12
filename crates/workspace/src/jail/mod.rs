//! The jail: walls around the processes of a session, which hold whatever the gate misunderstood.
//!
//! Three levels, each found by building it once and starting a program inside, so that none is claimed which does not
//! work here:
//!
//! - **3**: bubblewrap gives the processes namespaces of their own (users, processes, network, IPC, host name) and a
//!   read-only view of the machine with the workspace and a private `/tmp` writable; `ax wall` then gives up all
//!   capabilities and adds landlock and seccomp. The user's home has a private layer, so that tools can write caches
//!   and none of it reaches the real home.
//! - **2**: landlock and seccomp alone. Other processes of the user are visible, the mode and times of files outside
//!   can be changed, and sockets with a path can be connected to.
//! - **1**: limits of resources only.
//!
//! All decisions are made from data of the host before the process starts: nothing that a model or a repository says
//! moves a wall. If a wall cannot be built, the process does not start.
//!
//! Rejected: masks over protected names of the workspace (`.git/hooks`). A mask over a missing name leaves an empty
//! file, and git cannot replace a file that is a mount; the host inspects these names after each line instead.
//! Rejected too: the namespaces without bubblewrap. Systems that restrict them let bubblewrap through by name.

mod bubblewrap;
mod door;
mod filter;
mod group;
mod hidden;
mod lasting;
mod limits;
mod note;
mod probe;
mod temp;
mod watch;

use std::ffi::OsString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use nix::libc;

pub(crate) use door::Served;
pub use door::{NetworkDoor, NetworkVisit};
pub use hidden::privileged_sockets;
pub use limits::{Breach, JailLimits};
pub use probe::{WallsFound, find_walls};
pub use watch::{JailWatch, WatchedSpan, breach_of};

use crate::local_process::{LocalChild, failure, prepare};
use crate::{Boxed, Child, Level, PathMap, Processes, Spawn, WorkspaceError};
use bubblewrap::View;
use filter::Network;
use group::Group;
use note::Note;
use temp::PrivateTemp;

/// The places that the processes of a jail may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JailProfile {
    /// The workspace, the further folders, and the private temporary folder.
    Workspace,
    /// The private temporary folder only.
    ReadOnly,
}

/// The description of a jail.
#[derive(Debug, Clone)]
pub struct JailPlan {
    pub profile: JailProfile,
    /// The workspace, by its real path.
    pub root: PathBuf,
    /// The program `ax`, which builds the inner walls. It is in a hidden folder and shown in spite of that.
    pub ax: PathBuf,
    /// Further folders that can be written. Only the user names them.
    pub writable: Vec<PathBuf>,
    /// Files and folders that are hidden: Lathe's own folder, keys.
    pub hidden: Vec<PathBuf>,
    /// The user's home, which gets a private layer.
    pub home: Option<PathBuf>,
    /// The folder for the private layer of this workspace. It must not be below the home.
    pub layer: Option<PathBuf>,
}

/// Limits that every process of a jail inherits, by the numbers of the kernel.
const LIMITS: [(u32, u64); 1] = [
    // One byte: the kernel then starts no program for a crash, which it would do for zero.
    (4, 1),
];

/// The number of the limit of a file's size, and of the limit of a user's processes.
const FILE_SIZE: u32 = 1;
const PROCESSES: u32 = 6;

/// Devices that can be used where `/dev` is the machine's own.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];

/// Processes of this machine behind walls.
pub struct Jail {
    plan: JailPlan,
    walls: WallsFound,
    temp: PrivateTemp,
    filter: Vec<u8>,
    limits: JailLimits,
    /// The way out of its network.
    door: Option<Arc<dyn NetworkDoor>>,
    /// Made with the first process.
    group: OnceLock<Option<Arc<Group>>>,
}

impl Jail {
    /// A jail with the walls that were found. The workspace must not be the whole machine.
    pub fn new(plan: JailPlan, walls: WallsFound) -> Result<Self, WorkspaceError> {
        if plan.root.parent().is_none() {
            return Err(WorkspaceError::Jail("the workspace is the whole machine".to_owned()));
        }
        let network = if walls.bubblewrap.is_some() { Network::Own } else { Network::Refused };
        let filter = match walls.level {
            Level::Walls | Level::Filters => filter::filter(network)?,
            Level::Limits | Level::Off => Vec::new(),
        };
        let (temp, limits) = (PrivateTemp::make()?, JailLimits::default());
        Ok(Self { filter, temp, plan, walls, limits, door: None, group: OnceLock::new() })
    }

    /// The jail with other limits.
    #[must_use]
    pub fn limited_to(self, limits: JailLimits) -> Self {
        Self { limits, group: OnceLock::new(), ..self }
    }

    /// The jail with a way out of its network. Below level 3 it has none at all.
    #[must_use]
    pub fn with_door(self, door: Arc<dyn NetworkDoor>) -> Self {
        let door = (self.walls.level == Level::Walls).then_some(door);
        Self { door, ..self }
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.plan.profile == JailProfile::ReadOnly
    }

    pub(crate) fn door(&self) -> Option<&Arc<dyn NetworkDoor>> {
        self.door.as_ref()
    }

    pub fn level(&self) -> Level {
        self.walls.level
    }

    /// The folder of this machine that processes see as `/tmp`.
    pub fn temporary_folder(&self) -> PathBuf {
        self.temp.tmp()
    }

    /// The map of its paths: all are the same but for the temporary folders.
    pub(crate) fn paths(&self) -> PathMap {
        if self.walls.bubblewrap.is_none() {
            return PathMap::default();
        }
        let same = |path: PathBuf| (path.clone(), path);
        let writable = self.writable(false).into_iter().chain([self.plan.root.clone()]).map(same);
        let temporary = [(self.temp.tmp(), "/tmp".into()), (self.temp.var_tmp(), "/var/tmp".into())];
        PathMap::of(writable.chain(temporary).chain([same("/".into())]))
    }

    /// The folders that processes can write, from the outer to the inner.
    fn writable(&self, has_layer: bool) -> Vec<PathBuf> {
        let mut writable = match self.plan.profile {
            JailProfile::Workspace => [vec![self.plan.root.clone()], self.plan.writable.clone()].concat(),
            JailProfile::ReadOnly => Vec::new(),
        };
        // The layer is below everything else.
        writable.extend(self.plan.home.clone().filter(|_| has_layer));
        writable.sort();
        writable.dedup();
        writable
    }

    /// The process inside the walls, as a process to be started outside. The listener of its network is sent over
    /// `socket`.
    fn enclosed(
        &self,
        what: &Spawn,
        socket: Option<&Arc<OwnedFd>>,
    ) -> Result<(Spawn, Vec<Arc<OwnedFd>>), WorkspaceError> {
        let mut note = Note::default();
        if let Some(socket) = socket {
            note.listener(door::PORT, socket.as_raw_fd());
        }
        note.folder(&what.cwd);
        what.argv.iter().for_each(|word| note.word(word));
        for (name, value) in what.env.iter().filter(|(name, _)| !is_leading(name)) {
            note.variable(name, value);
        }
        for (name, value) in self.variables(what) {
            note.variable(name.as_ref(), value.as_ref());
        }
        what.fence.umask().into_iter().for_each(|umask| note.umask(umask));
        what.fence.numbers().for_each(|number| note.kept(number));
        LIMITS.iter().for_each(|(resource, most)| note.limit(*resource, *most));
        self.limits_of_each().into_iter().for_each(|(resource, most)| note.limit(resource, most));
        if !self.filter.is_empty() {
            note.filter(&self.filter);
        }
        let (mut outer, open) = match &self.walls.bubblewrap {
            Some(bubblewrap) => self.in_namespaces(bubblewrap, note, what)?,
            None => self.in_filters(note, what)?,
        };
        socket.into_iter().for_each(|socket| outer.fence.inherit(socket));
        Ok((outer, open))
    }

    /// Limits of single processes, by the numbers of the kernel. A limit of processes is for users other than root
    /// and counts those of the jail only: older kernels, and a jail without namespaces, count all of the user's.
    fn limits_of_each(&self) -> Vec<(u32, u64)> {
        let mut limits = vec![(FILE_SIZE, self.limits.file)];
        if self.walls.bubblewrap.is_some()
            && !nix::unistd::geteuid().is_root()
            && limits::counts_by_namespace()
        {
            limits.push((PROCESSES, limits::kernel_limit(self.limits.processes)));
        }
        limits
    }

    fn group(&self) -> Option<&Arc<Group>> {
        self.group.get_or_init(|| Group::make(&self.limits).map(Arc::new)).as_ref()
    }

    /// The watch over a process and all that it starts.
    fn watch(&self, root: i32) -> JailWatch {
        let mut places = self.writable(false);
        places.extend([self.temp.tmp()]);
        places.extend(self.plan.layer.clone());
        JailWatch::over(root, self.limits, places, self.group().map(Arc::downgrade))
    }

    /// Variables that every process inside gets.
    fn variables(&self, what: &Spawn) -> Vec<(&'static str, OsString)> {
        let is_root = nix::unistd::geteuid().is_root();
        let has = |name: &str| what.env.iter().any(|(known, _)| known == name);
        let mut set = Vec::new();
        let tmp =
            if self.walls.bubblewrap.is_some() { "/tmp".into() } else { self.temp.tmp().into_os_string() };
        set.push(("TMPDIR", tmp));
        // Root inside cannot give files to others, which tar would try.
        if is_root && !has("TAR_OPTIONS") {
            set.push(("TAR_OPTIONS", "--no-same-owner".into()));
        }
        // The sanitizers of C compilers look for leaks by tracing, which is refused, and would fail every program.
        if !self.filter.is_empty() && !has("LSAN_OPTIONS") {
            set.push(("LSAN_OPTIONS", "detect_leaks=0".into()));
        }
        if self.door.is_some() {
            set.extend(door::variables(has).into_iter().map(|(name, value)| (name, value.into())));
        }
        set
    }

    fn in_namespaces(
        &self,
        bubblewrap: &Path,
        mut note: Note,
        what: &Spawn,
    ) -> Result<(Spawn, Vec<Arc<OwnedFd>>), WorkspaceError> {
        let (home, layer) = (self.plan.home.as_deref(), self.plan.layer.as_deref());
        let layered = home.zip(layer).filter(|(home, _)| !home.starts_with(&self.plan.root));
        // A workspace that cannot be written is the real one too, not what a layer over it holds.
        let read_only = match self.plan.profile {
            JailProfile::Workspace => Vec::new(),
            JailProfile::ReadOnly => vec![self.plan.root.clone()],
        };
        let writable = self.writable(layered.is_some());
        let real = [writable.as_slice(), read_only.as_slice()].concat();
        let sockets = real
            .iter()
            .filter(|path| Some(path.as_path()) != home)
            .flat_map(|path| hidden::sockets_in(path))
            .chain(hidden::sockets());
        let hidden = hidden::outermost(self.plan.hidden.iter().cloned().chain(sockets), &real);
        let shown: Vec<PathBuf> =
            self.plan.ax.parent().map(Path::to_owned).into_iter().chain(what.shown.clone()).collect();
        if let Some((home, layer)) = layered {
            let (upper, work) = (layer.join("upper"), layer.join("work"));
            note.layer(home, &upper, &work);
            writable
                .iter()
                .chain(&read_only)
                .filter(|path| *path != home && path.starts_with(home))
                .for_each(|path| note.real(path));
            shown.iter().filter(|path| path.starts_with(home)).for_each(|path| note.real(path));
        }
        if self.walls.landlock {
            note.readable(Path::new("/"));
            let places = ["/dev", "/tmp", "/var/tmp", "/run", "/var/run"].map(PathBuf::from);
            writable.iter().chain(&places).for_each(|path| note.writable(path));
            note.landlock(false);
        }
        let (tmp, var_tmp) = (self.temp.tmp(), self.temp.var_tmp());
        let arguments = |writable: &[PathBuf]| {
            let view = View {
                tmp: &tmp,
                var_tmp: &var_tmp,
                writable,
                read_only: &read_only,
                hidden: &hidden,
                shown: &shown,
            };
            note::in_memory(&bubblewrap::arguments(&view)).map(Arc::new)
        };
        let with_layer = arguments(&writable)?;
        let note = Arc::new(note.into_file()?);
        let mut open = vec![Arc::clone(&with_layer), Arc::clone(&note)];
        let number = OsString::from(note.as_raw_fd().to_string());
        let wall = [self.plan.ax.clone().into_os_string(), "wall".into(), number.clone()];
        let mut argv = bubblewrap::command(bubblewrap, with_layer.as_raw_fd(), &wall);
        if layered.is_some() {
            // Where the layer cannot be mounted, the home must not be written.
            let without_layer = arguments(&self.writable(false))?;
            let other = OsString::from(without_layer.as_raw_fd().to_string());
            argv.splice(0..0, [self.plan.ax.clone().into_os_string(), "nest".into(), number, other]);
            open.push(without_layer);
        }
        let mut fence = what.fence.descriptors_only();
        open.iter().for_each(|file| fence.inherit(file));
        // Nothing of the process's environment reaches a program outside.
        let outer = Spawn { argv, cwd: "/".into(), env: Vec::new(), fence, shown: Vec::new() };
        Ok((outer, open))
    }

    fn in_filters(&self, mut note: Note, what: &Spawn) -> Result<(Spawn, Vec<Arc<OwnedFd>>), WorkspaceError> {
        if self.walls.landlock {
            let hidden = hidden::outermost(self.plan.hidden.iter().cloned(), &[]);
            let shown = what.shown.iter().cloned().chain(self.plan.ax.parent().map(Path::to_owned));
            readable_around(&hidden).into_iter().chain(shown).for_each(|path| note.readable(&path));
            let writable = self.writable(false);
            writable.iter().chain([&self.temp.tmp()]).for_each(|path| note.writable(path));
            DEVICES.iter().for_each(|device| note.device(Path::new(device)));
            note.device(Path::new("/dev/pts"));
            note.landlock(true);
        }
        let note = Arc::new(note.into_file()?);
        let number = OsString::from(note.as_raw_fd().to_string());
        let mut fence = what.fence.descriptors_only();
        fence.inherit(&note);
        let argv = vec![self.plan.ax.clone().into_os_string(), "wall".into(), number];
        Ok((Spawn { argv, cwd: "/".into(), env: Vec::new(), fence, shown: Vec::new() }, vec![note]))
    }

    async fn start(&self, what: &Spawn) -> Result<LocalChild, WorkspaceError> {
        let failed = |error: std::io::Error| WorkspaceError::Jail(error.to_string());
        let sockets = self.door.as_ref().map(|_| UnixStream::pair()).transpose().map_err(failed)?;
        let (own, theirs) = sockets.map_or((None, None), |(own, theirs)| (Some(own), Some(theirs)));
        let theirs = theirs.map(|socket| Arc::new(OwnedFd::from(socket)));
        let (outer, _open) = self.enclosed(what, theirs.as_ref())?;
        let mut command = prepare(&outer)?;
        self.limit(&mut command);
        let (command, child) = lasting::spawn(command).await;
        drop(command);
        let child = child.map_err(|error| failure(what, error))?;
        drop((outer, theirs));
        let served = self.door.clone().zip(own).map(|(door, socket)| door::serve_when_sent(door, socket));
        Ok(self.watched(LocalChild::of(child, self.walls.bubblewrap.is_some()).served(served)))
    }

    /// Limits what a command, and all that it starts, can use.
    fn limit(&self, command: &mut tokio::process::Command) {
        limits::die_first(command.as_std_mut());
        self.group().into_iter().for_each(|group| group.enter(command.as_std_mut()));
    }

    fn watched(&self, child: LocalChild) -> LocalChild {
        let watch = child.pid().map(|pid| self.watch(pid));
        child.watched_by(watch)
    }
}

impl Processes for Jail {
    fn spawn(&self, what: Spawn) -> Boxed<'_, Result<Box<dyn Child>, WorkspaceError>> {
        Box::pin(async move {
            let child: Box<dyn Child> = Box::new(self.start(&what).await?);
            Ok(child)
        })
    }
}

/// Tells whether a variable leads to something that a jail hides, or is set by the jail itself.
fn is_leading(name: &std::ffi::OsStr) -> bool {
    let is_proxy = ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"]
        .iter()
        .any(|proxy| name.eq_ignore_ascii_case(proxy));
    name == "TMPDIR" || is_proxy || hidden::LEADING.iter().any(|leading| name == *leading)
}

/// Everything but these places: landlock cannot take a place out of a folder that it allows, so the folders on the way
/// are allowed name by name.
fn readable_around(hidden: &[PathBuf]) -> Vec<PathBuf> {
    let (mut readable, mut ways) = (Vec::new(), vec![PathBuf::from("/")]);
    while let Some(folder) = ways.pop() {
        if !hidden.iter().any(|path| path.starts_with(&folder)) {
            readable.push(folder);
            continue;
        }
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) || hidden.contains(&path) {
                continue;
            }
            ways.push(path);
        }
    }
    readable
}

// The numbers of limits.
const _: () = assert!(libc::RLIMIT_CORE == 4);
const _: () = assert!(libc::RLIMIT_FSIZE == 1 && libc::RLIMIT_NPROC == 6);
