//! The shared state of one shell's agent commands: a private folder with a link for each name, and the socket that
//! they connect to.
//!
//! The folder is the same for the life of a [`Shell`](crate::Shell), even if bash and its supervisor are replaced,
//! since its path is in the environment of everything they start. It is locked as long as we live. A process that
//! finds it unlocked may remove it: the supervisor does if we were killed, the next session in the same place if the
//! supervisor was killed too.

use std::env;
use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use lathe_protocol::random_number;

use crate::functions::AgentCommandNames;
use crate::peer::View;
use crate::wire::Supervisor;
use crate::{CommandHost, Jobs, LineClock, ShellError, listener};

/// The path of a socket has 108 bytes at most, including its end; clients use `bin/../s`.
const PATH_MAX: usize = 90;
/// A younger folder may not have been locked yet.
const SWEEP_AGE: Duration = Duration::from_secs(60);
/// The PATH that bash uses if none is given.
const USUAL_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The file that BASH_ENV names.
const NESTED: &str = "env";

pub(crate) struct CommandSession {
    path: PathBuf,
    ax: PathBuf,
    around: InheritedEnv,
    shared: Arc<Shared>,
    content: Option<FolderContent>,
}

/// The variables of bash's environment that we change.
struct InheritedEnv {
    path: OsString,
    bash_env: Option<OsString>,
}

impl InheritedEnv {
    fn of(env: &[(OsString, OsString)]) -> Self {
        let value = |name: &str| env.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.clone());
        Self {
            path: value("PATH").unwrap_or_else(|| USUAL_PATH.into()),
            bash_env: value("BASH_ENV").filter(|file| !file.is_empty()),
        }
    }

    /// Tells whether PATH has a program of this name.
    fn has(&self, name: &str) -> bool {
        env::split_paths(&self.path).any(|folder| folder.join(name).is_file())
    }
}

/// The parts that are made again if the folder was removed by others.
struct FolderContent {
    _lock: File,
    accepting: AbortOnDropHandle<()>,
}

pub(crate) struct Shared {
    pub(crate) host: Arc<dyn CommandHost>,
    pub(crate) ending: CancellationToken,
    /// None if /proc is unavailable.
    pub(crate) view: Option<View>,
    pub(crate) jobs: Jobs,
    now: Mutex<LineState>,
}

#[derive(Default)]
struct LineState {
    /// All commands descend from it.
    supervisor: Option<Supervisor>,
    line: Option<u64>,
    clock: LineClock,
}

impl CommandSession {
    pub(crate) fn make(
        host: Arc<dyn CommandHost>,
        ax: &Path,
        env: &[(OsString, OsString)],
        jobs: Jobs,
    ) -> Result<Self, ShellError> {
        let around = InheritedEnv::of(env);
        let (ending, view) = (CancellationToken::new(), View::ours());
        let shared = Arc::new(Shared { host, ending, view, jobs, now: Mutex::default() });
        let given = ["XDG_RUNTIME_DIR", "TMPDIR"].map(|name| env::var_os(name).map(PathBuf::from));
        let [runtime, temporary] = given;
        let usual = |path: &str| Some(PathBuf::from(path));
        let name = format!("ax.{:08x}", random_number() as u32);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for parent in [runtime, usual("/dev/shm"), temporary, usual("/tmp"), usual("/var/tmp")] {
            let Some(parent) = parent.filter(|parent| parent.is_absolute()) else { continue };
            let path = parent.join(&name);
            // It will be a part of PATH, where a colon is a separator.
            if path.as_os_str().len() > PATH_MAX || path.as_os_str().as_bytes().contains(&b':') {
                continue;
            }
            match make_content(&path, ax, &around, &shared) {
                Ok(content) => {
                    sweep(&parent);
                    return Ok(Self { path, ax: ax.to_owned(), around, shared, content: Some(content) });
                }
                Err(error) => last = error,
            }
        }
        Err(ShellError::Session(last))
    }

    /// Repairs the folder if it was removed in a cleanup of temporary files. If it cannot be made again, the commands
    /// report that the host does not respond, and the next line tries once more.
    pub(crate) fn repair(&mut self) {
        if self.path.join("s").exists() && self.path.join("bin/ax").exists() {
            return;
        }
        self.content = None;
        let _ = fs::remove_dir_all(&self.path);
        self.content = make_content(&self.path, &self.ax, &self.around, &self.shared).ok();
        self.link_outputs();
    }

    /// Sets the supervisor that the commands descend from.
    pub(crate) fn supervised_by(&self, supervisor: Supervisor) {
        self.shared.now.lock().supervisor = Some(supervisor);
        self.link_outputs();
    }

    /// Publishes the location of the lines' outputs: a command that prints to one of them prints to the model.
    fn link_outputs(&self) {
        let Some(outputs) = self.shared.now.lock().supervisor.as_ref().map(|one| one.folder.clone()) else {
            return;
        };
        let link = self.path.join("io");
        let _ = fs::remove_file(&link);
        // Without it commands treat the session's output like any other, which is correct too, if less helpful.
        let _ = symlink(outputs, link);
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// An environment in which the commands take precedence over all others, also in shells that a line starts.
    pub(crate) fn with_path(&self, env: &[(OsString, OsString)]) -> Vec<(OsString, OsString)> {
        let mut path = self.path.join("bin").into_os_string();
        path.push(":");
        path.push(&self.around.path);
        let is_ours = |(name, _): &&(OsString, OsString)| name == "PATH" || name == "BASH_ENV";
        let others = env.iter().filter(|variable| !is_ours(variable)).cloned();
        let nested = self.path.join(NESTED).into_os_string();
        others.chain([("PATH".into(), path), ("BASH_ENV".into(), nested)]).collect()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Ends the running commands, and waits for that.
    pub(crate) async fn close(mut self) {
        self.shared.ending.cancel();
        if let Some(mut content) = self.content.take() {
            let _ = (&mut content.accepting).await;
        }
    }
}

impl Drop for CommandSession {
    fn drop(&mut self) {
        self.shared.ending.cancel();
        let _ = fs::remove_dir_all(&self.path);
    }
}

impl Shared {
    pub(crate) fn supervisor(&self) -> Option<Supervisor> {
        self.now.lock().supervisor.clone()
    }

    /// The running line, and its clock.
    pub(crate) fn line(&self) -> (Option<u64>, LineClock) {
        let now = self.now.lock();
        (now.line, now.clock.clone())
    }

    pub(crate) fn line_begins(&self, id: u64, clock: LineClock) {
        let mut now = self.now.lock();
        (now.line, now.clock) = (Some(id), clock);
    }

    pub(crate) fn line_has_ended(&self) {
        let mut now = self.now.lock();
        (now.line, now.clock) = (None, LineClock::default());
    }
}

fn make_content(
    path: &Path,
    ax: &Path,
    around: &InheritedEnv,
    shared: &Arc<Shared>,
) -> io::Result<FolderContent> {
    DirBuilder::new().mode(0o700).create(path)?;
    fill(path, ax, around, shared).inspect_err(|_| {
        let _ = fs::remove_dir_all(path);
    })
}

fn fill(path: &Path, ax: &Path, around: &InheritedEnv, shared: &Arc<Shared>) -> io::Result<FolderContent> {
    let lock = File::open(path)?;
    lock.lock()?;
    let bin = path.join("bin");
    DirBuilder::new().mode(0o700).create(&bin)?;
    symlink(ax, bin.join("ax"))?;
    // A mount may forbid following links; one that forbids executing does not matter, since the target is elsewhere.
    fs::metadata(bin.join("ax"))?;
    let mut names = shared.host.names();
    names.retain(|name| {
        !name.is_empty() && !name.contains('/') && ![".", "..", "ax"].contains(&name.as_str())
    });
    names.sort();
    names.dedup();
    for name in &names {
        symlink(ax, bin.join(name))?;
    }
    let shared_names: Vec<String> = names.iter().filter(|name| around.has(name)).cloned().collect();
    let named = AgentCommandNames { bin: bin.as_os_str(), names: &names, shared: &shared_names };
    fs::write(path.join("rc"), named.session())?;
    fs::write(path.join("path"), named.without_path())?;
    fs::write(path.join("jobs"), named.jobs())?;
    fs::write(path.join(NESTED), named.nested(around.bash_env.as_deref()))?;
    let socket = path.join("s");
    let listener = UnixListener::bind(&socket)?;
    fs::set_permissions(&socket, Permissions::from_mode(0o600))?;
    let accepting = AbortOnDropHandle::new(tokio::spawn(listener::accept(listener, Arc::clone(shared))));
    Ok(FolderContent { _lock: lock, accepting })
}

/// Removes the folders of killed hosts in the same place.
fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|data| data.modified()).map(|time| time.elapsed());
        if entry.file_name().as_bytes().starts_with(b"ax.")
            && matches!(age, Ok(Ok(age)) if age > SWEEP_AGE)
            && File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
