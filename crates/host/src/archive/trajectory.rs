//! The trajectory file, written during a run by a task of its own.
//!
//! The task follows the session like any other subscriber, so the code that runs a step does not know it. During a
//! run it writes at most once a second, and never spends more than a twentieth of the time on it; at the end of a run
//! and on a cancel it always writes.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lathe_protocol::{EventStream, Fact, RunNo, Seq, Timestamp, Update};
use lathe_views::TrajectoryBuilder;
use tokio::task::JoinHandle;

use crate::files::output::write_output;
use crate::session::{OpenSession, now};

const BETWEEN: Duration = Duration::from_secs(1);

/// Writing may take at most one part in this many of the time.
const SHARE: u32 = 20;

/// A trajectory file that is being written.
pub struct TrajectoryFile {
    task: JoinHandle<std::io::Result<PathBuf>>,
}

impl TrajectoryFile {
    /// Waits for the last write, after the session was closed. Returns the file of the last run.
    pub async fn finish(self) -> std::io::Result<PathBuf> {
        self.task.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }
}

/// The folder for trajectories of runs that name no file, as in Trae; it lies below the folder that Lathe was started
/// in.
const FOLDER: &str = "trajectories";

/// The file of a run that begins now, named as Trae names it.
pub fn trae_trajectory(folder: &Path) -> PathBuf {
    let name = now().to_zoned(jiff::tz::TimeZone::system()).strftime("trajectory_%Y%m%d_%H%M%S.json");
    unused(&folder.join(FOLDER).join(name.to_string()))
}

/// The path, or its first variant with a number that is free: runs that begin in the same second have the same name.
fn unused(path: &Path) -> PathBuf {
    let names = (0..TASKS).map(|later| numbered(path, later));
    names.into_iter().find(|path| path.symlink_metadata().is_err()).unwrap_or_else(|| path.to_owned())
}

/// The trajectory files of earlier runs in that folder.
pub fn trae_trajectories(folder: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder.join(FOLDER)).into_iter().flatten().flatten();
    found.map(|entry| entry.path()).filter(|path| is_trajectory(path)).collect()
}

/// Tells whether a name is of Trae's form: `trajectory_YYYYMMDD_HHMMSS.json`, perhaps with the number of a later
/// task.
fn is_trajectory(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let time = name.strip_prefix("trajectory_").and_then(|name| name.strip_suffix(".json"));
    let Some((date, time)) = time.and_then(|time| time.split_once('_')) else { return false };
    let time = time.split_once('-').map_or(time, |(time, _)| time);
    let is_number =
        |text: &str, digits| text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number(date, 8) && is_number(time, 6)
}

/// Number of tasks of one conversation whose trajectory files are known by name before they are written.
const TASKS: u32 = 256;

/// The files of the tasks of one conversation: the first is `path`, a later one has its number in the name.
pub fn trajectories_of_tasks(path: &Path) -> Vec<PathBuf> {
    (0..TASKS).map(|later| numbered(path, later)).collect()
}

impl OpenSession {
    /// Writes a trajectory of each run from now on. The first goes to `path`; a later one has its number in the name.
    pub fn write_trajectory(&self, path: PathBuf) -> TrajectoryFile {
        let updates = self.handle().subscribe(Seq(0));
        let workspace = PathBuf::from(&self.workspace);
        TrajectoryFile { task: tokio::spawn(follow(updates, path, workspace)) }
    }
}

/// A builder with Trae's times: local, without a zone.
pub(crate) fn builder(run: Option<RunNo>) -> TrajectoryBuilder {
    TrajectoryBuilder::for_run(run).with_time(|at: Timestamp| {
        at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%dT%H:%M:%S%.6f").to_string()
    })
}

async fn follow(
    mut updates: Box<dyn EventStream>,
    path: PathBuf,
    workspace: PathBuf,
) -> std::io::Result<PathBuf> {
    let mut builder = builder(None);
    let mut next = Instant::now() + BETWEEN;
    let mut first: Option<RunNo> = None;
    let mut here = path.clone();
    while let Some(update) = updates.next().await {
        let Update::Event(event) = update else { continue };
        if let Fact::TaskGiven(_) = &event.fact {
            let first = *first.get_or_insert(event.place.run);
            here = numbered(&path, event.place.run.0.saturating_sub(first.0));
        }
        builder.take(&event);
        let ended = matches!(event.fact, Fact::TaskFinished(_));
        if builder.run().is_some() && (ended || Instant::now() >= next) {
            let began = Instant::now();
            write(&builder, &here, &workspace).await?;
            next = Instant::now() + BETWEEN.max(began.elapsed() * (SHARE - 1));
        }
    }
    if builder.run().is_some() && !builder.is_finished() {
        write(&builder, &here, &workspace).await?;
    }
    Ok(here)
}

fn numbered(path: &Path, later: u32) -> PathBuf {
    if later == 0 {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let ending = path.extension().map(|ending| format!(".{}", ending.to_string_lossy())).unwrap_or_default();
    path.with_file_name(format!("{stem}-{}{ending}", later + 1))
}

/// Writes the whole file under another name and then renames it, so that a reader never sees half of one.
async fn write(builder: &TrajectoryBuilder, path: &Path, workspace: &Path) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    builder.write_json(&mut bytes);
    let (path, workspace) = (path.to_owned(), workspace.to_owned());
    let written = tokio::task::spawn_blocking(move || write_output(&path, &workspace, &bytes));
    written.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issue_16_runs_of_one_second_have_trajectories_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trajectory_20261117_134500.json");
        for name in ["", "-2", "-3"] {
            let unused = unused(&path);
            assert_eq!(unused, folder.path().join(format!("trajectory_20261117_134500{name}.json")));
            assert!(is_trajectory(&unused));
            std::fs::write(unused, "{}").unwrap();
        }
    }
}
