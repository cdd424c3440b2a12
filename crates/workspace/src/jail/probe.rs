//! The walls that can be built on this machine, found by building them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Jail, JailPlan, JailProfile};
use crate::{CaptureEnd, CaptureLimits, Ended, Fence, Level, Spawn, WorkspaceError, capture};

/// Far longer than a jail takes to start on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// The way to a kernel with landlock.
const LANDLOCK_NEEDS: &str = "it needs Linux 5.13 or newer with `landlock` among its security modules \
    (/sys/kernel/security/lsm, boot parameter `lsm=`)";
/// Bytes kept of what a program says about its failure.
const KEEP: usize = 4096;

/// The walls of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WallsFound {
    pub level: Level,
    pub(super) bubblewrap: Option<PathBuf>,
    pub(super) landlock: bool,
    /// Reasons why the level is not higher, each a sentence without its end: what is missing, and what to do.
    pub missing: Vec<String>,
}

impl WallsFound {
    /// No walls at all, for a reason.
    pub fn none(reason: impl Into<String>) -> Self {
        Self { level: Level::Off, bubblewrap: None, landlock: false, missing: vec![reason.into()] }
    }
}

/// Finds the strongest walls that can be built here. `ax` is the placed program, and `bubblewrap` the one that was
/// found on PATH.
pub async fn find_walls(ax: &Path, bubblewrap: Option<PathBuf>) -> WallsFound {
    let mut missing = Vec::new();
    let with = |bubblewrap: Option<PathBuf>, landlock: bool| {
        let level = match (&bubblewrap, landlock) {
            (Some(_), true) => Level::Walls,
            (Some(_), false) | (None, true) => Level::Filters,
            (None, false) => Level::Limits,
        };
        WallsFound { level, bubblewrap, landlock, missing: Vec::new() }
    };
    match &bubblewrap {
        None => missing.push(
            "bubblewrap is not installed (`apt-get install bubblewrap`, `dnf install bubblewrap`)".to_owned(),
        ),
        Some(path) => {
            let whole = with(Some(path.clone()), true);
            match can_be_built(ax, &whole).await {
                Ok(()) => return whole,
                Err(reason) => {
                    let without = with(Some(path.clone()), false);
                    if can_be_built(ax, &without).await.is_ok() {
                        missing
                            .push(format!("landlock is missing in this kernel ({reason}); {LANDLOCK_NEEDS}"));
                        return WallsFound { missing, ..without };
                    }
                    missing.push(format!(
                        "bubblewrap cannot build a jail here ({reason}); it needs user namespaces: \
                         sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns, or the \
                         settings of the container around this"
                    ));
                }
            }
        }
    }
    let filters = with(None, true);
    match can_be_built(ax, &filters).await {
        Ok(()) => WallsFound { missing, ..filters },
        Err(reason) => {
            missing.push(format!("landlock or seccomp cannot be used ({reason}); {LANDLOCK_NEEDS}"));
            let limits = with(None, false);
            match can_be_built(ax, &limits).await {
                Ok(()) => WallsFound { missing, ..limits },
                Err(reason) => {
                    missing.push(format!("no process can be started in a jail ({reason})"));
                    WallsFound { level: Level::Off, missing, ..limits }
                }
            }
        }
    }
}

/// Builds the walls around a program that does nothing.
async fn can_be_built(ax: &Path, walls: &WallsFound) -> Result<(), String> {
    let words = |error: WorkspaceError| error.to_string();
    let place = empty_folder().map_err(|error| error.to_string())?;
    let plan = JailPlan {
        profile: JailProfile::Workspace,
        root: place.0.clone(),
        ax: ax.to_owned(),
        writable: Vec::new(),
        hidden: Vec::new(),
        home: None,
        layer: None,
    };
    let jail = Jail::new(plan, walls.clone()).map_err(words)?;
    let what = Spawn {
        argv: vec![ax.into(), "ready".into()],
        cwd: place.0.clone(),
        env: Vec::new(),
        fence: Fence::default(),
        shown: Vec::new(),
    };
    let limits = CaptureLimits { time: LIMIT, keep: KEEP };
    let ran = capture(&jail, what, b"", limits, std::future::pending()).await.map_err(words)?;
    match ran.end {
        CaptureEnd::Ended(Ended::Code(0)) => Ok(()),
        CaptureEnd::Ended(_) | CaptureEnd::TimedOut | CaptureEnd::Stopped => {
            let said = String::from_utf8_lossy(&ran.stderr);
            Err(said.lines().last().unwrap_or("it said nothing").trim().to_owned())
        }
    }
}

/// A folder that is removed when it is dropped.
struct EmptyFolder(PathBuf);

impl Drop for EmptyFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn empty_folder() -> std::io::Result<EmptyFolder> {
    let name = format!("lathe-walls.{:016x}", lathe_protocol::random_number());
    let path = std::env::temp_dir().canonicalize()?.join(name);
    std::fs::create_dir(&path)?;
    Ok(EmptyFolder(path))
}
