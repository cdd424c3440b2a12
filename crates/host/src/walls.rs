//! The sandbox of a session: the walls that are found on this machine, and the jail made of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_policy::key_patterns;
use lathe_protocol::{Mode, Sandbox, SandboxWalls};
use lathe_workspace::{
    Jail, JailLimits, JailPlan, JailProfile, Level, WallsFound, Workspace, find_program, find_walls,
    privileged_sockets,
};

use crate::error::HostError;
use crate::home::Home;
use crate::network::ProxyDoor;
use crate::session::extras::Extras;
use crate::session::{Attended, Host, ModeWish, Overrides, SessionPlan};

/// The sandbox that a session is to have.
pub(crate) struct SandboxWish<'a> {
    pub(crate) sandbox: Sandbox,
    /// True if the user named it.
    pub(crate) is_asked_for: bool,
    pub(crate) extras: &'a Extras,
}

impl<'a> SandboxWish<'a> {
    /// That of a new session: the one that the user named, or that of its mode.
    pub(crate) fn of_plan(plan: &'a SessionPlan) -> Self {
        let usual = match plan.mode {
            ModeWish::Given(Mode::Plan) => Sandbox::ReadOnly,
            ModeWish::Given(Mode::Default | Mode::AutoEdit | Mode::FullAuto) | ModeWish::ByWalls => {
                Sandbox::Workspace
            }
        };
        let (sandbox, is_asked_for) = (plan.sandbox.unwrap_or(usual), plan.sandbox.is_some());
        Self { sandbox, is_asked_for, extras: &plan.extras }
    }

    /// That of a resumed session: the one that it had, unless the user names another.
    pub(crate) fn resumed(overrides: &'a Overrides, before: Sandbox) -> Self {
        let (sandbox, is_asked_for) = (overrides.sandbox.unwrap_or(before), overrides.sandbox.is_some());
        Self { sandbox, is_asked_for, extras: &overrides.extras }
    }
}

/// Limits of what the processes of a session may use together, and of one file; in bytes and numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SandboxLimits {
    /// Most of the machine's memory if left out.
    pub memory: Option<u64>,
    pub processes: Option<u64>,
    pub disk: Option<u64>,
    pub file: Option<u64>,
}

impl SandboxLimits {
    fn of_jail(self) -> JailLimits {
        let usual = JailLimits::default();
        JailLimits {
            memory: self.memory.unwrap_or(usual.memory),
            processes: self.processes.unwrap_or(usual.processes),
            disk: self.disk.unwrap_or(usual.disk),
            file: self.file.unwrap_or(usual.file),
            ..usual
        }
    }
}

impl Host {
    /// The walls that can be built on this machine. They are looked for once.
    pub(crate) async fn walls(&self, root: &Path) -> Result<&WallsFound, HostError> {
        let ax = self.home().placed_ax()?;
        Ok(self.walls.get_or_init(|| async move { find_walls(&ax, find_program("bwrap", root)).await }).await)
    }

    /// The workspace of a folder behind the walls of a sandbox, and what is known of them.
    ///
    /// A sandbox that the user asked for by name is an error where there are no walls.
    pub(crate) async fn sandboxed(
        &self,
        root: &Path,
        wish: SandboxWish<'_>,
    ) -> Result<(Workspace, SandboxWalls), HostError> {
        let (workspace, is_asked_for) = (self.home().workspace(root), wish.is_asked_for);
        let profile = match wish.sandbox {
            Sandbox::Off => return Ok((workspace, SandboxWalls::default())),
            Sandbox::Workspace => JailProfile::Workspace,
            Sandbox::ReadOnly => JailProfile::ReadOnly,
        };
        self.home().make()?;
        let found = self.walls(root).await?.clone();
        let plan = self.home().jail_plan(root, profile)?;
        let found = match plan.root.parent() {
            Some(_) => found,
            None => WallsFound::none("the workspace is the whole machine"),
        };
        if found.level < Level::Filters && is_asked_for {
            return Err(HostError::NoSandbox(found.missing.join("; ")));
        }
        if found.level == Level::Off {
            let walls = SandboxWalls { level: 0, missing: found.missing, reachable: Vec::new() };
            return Ok((workspace, walls));
        }
        let reachable = match found.level {
            Level::Walls => Vec::new(),
            Level::Off | Level::Limits | Level::Filters => privileged_sockets(plan.home.as_deref()),
        };
        let walls = SandboxWalls { level: found.level.number(), missing: found.missing.clone(), reachable };
        let jail = Jail::new(plan, found).map_err(|error| HostError::NoSandbox(error.to_string()))?;
        let door = ProxyDoor::new(&wish.extras.sandbox_hosts)?;
        let jail = jail.limited_to(wish.extras.sandbox_limits.of_jail()).with_door(Arc::new(door));
        Ok((workspace.behind(Arc::new(jail)), walls))
    }
}

/// The mode of a session whose user set none. Alone and behind walls it works without asking; where the walls leave a
/// way to a service with more rights, only edits are free.
pub(crate) fn mode_behind(wish: ModeWish, attended: Attended, walls: &SandboxWalls) -> Mode {
    match (wish, attended) {
        (ModeWish::Given(mode), _) => mode,
        (ModeWish::ByWalls, Attended::Answers | Attended::Person) => Mode::Default,
        (ModeWish::ByWalls, Attended::Nobody) => match walls.level {
            3.. => Mode::FullAuto,
            2 if walls.reachable.is_empty() => Mode::FullAuto,
            2 => Mode::AutoEdit,
            0..2 => Mode::Default,
        },
    }
}

impl Home {
    fn jail_plan(&self, root: &Path, profile: JailProfile) -> Result<JailPlan, HostError> {
        let home = std::env::home_dir().and_then(|home| home.canonicalize().ok());
        let home = home.filter(|home| home.parent().is_some());
        let lathe = self.path().canonicalize().unwrap_or_else(|_| self.path().to_owned());
        let mut hidden = keys(home.as_deref());
        hidden.push(lathe.clone());
        let layer = home.as_deref().and_then(|home| layer_folder(&lathe, home, root));
        let ax = self.placed_ax()?;
        let ax = ax.canonicalize().unwrap_or(ax);
        Ok(JailPlan { profile, root: root.to_owned(), ax, writable: Vec::new(), hidden, home, layer })
    }

    fn placed_ax(&self) -> Result<PathBuf, HostError> {
        self.make()?;
        lathe_shell::place_ax(self.path()).map_err(|error| HostError::NoSandbox(error.to_string()))
    }
}

/// Files and folders of keys and passwords that exist on this machine.
fn keys(home: Option<&Path>) -> Vec<PathBuf> {
    let patterns = key_patterns();
    let of_home =
        home.into_iter().flat_map(|home| patterns.home.iter().flat_map(|name| expanded(home, name)));
    let of_system =
        patterns.system.iter().flat_map(|path| expanded(Path::new("/"), path.trim_start_matches('/')));
    of_home.chain(of_system).collect()
}

/// The paths that a pattern means, which may have one `*` in its last part.
fn expanded(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let path = folder.join(pattern);
    let Some((before, after)) = pattern.rsplit('/').next().and_then(|name| name.split_once('*')) else {
        return if path.symlink_metadata().is_ok() { vec![path] } else { Vec::new() };
    };
    let entries = path.parent().and_then(|parent| std::fs::read_dir(parent).ok()).into_iter().flatten();
    let fits = |name: &str| {
        name.len() >= before.len() + after.len() && name.starts_with(before) && name.ends_with(after)
    };
    entries
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(fits))
        .map(|entry| entry.path())
        .collect()
}

/// The folder of the private layer over the user's home for this workspace. Without one the home is read-only: the
/// layer cannot lie in the home, and elsewhere it needs a folder that only this user can enter.
fn layer_folder(lathe: &Path, home: &Path, root: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
    let user = nix::unistd::geteuid();
    let base = match lathe.starts_with(home) {
        false => lathe.join("layers"),
        true => PathBuf::from(format!("/var/tmp/lathe-{user}")),
    };
    let make = |path: &Path| {
        let made = std::fs::DirBuilder::new().mode(0o700).create(path);
        made.is_ok() || made.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
    };
    let is_own = |path: &Path| {
        path.symlink_metadata()
            .is_ok_and(|found| found.is_dir() && found.uid() == user.as_raw() && found.mode() & 0o077 == 0)
    };
    let name = lathe_protocol::Digest::of(root.as_os_str().as_encoded_bytes()).to_string();
    let folder = base.join(name.get(..16).unwrap_or(&name));
    let parts = [base.clone(), folder.clone(), folder.join("upper"), folder.join("work")];
    (parts.iter().all(|path| make(path) && is_own(path))).then_some(folder)
}
