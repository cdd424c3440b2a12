//! The cost of opening a long session again.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use lathe_testkit::{FakeAnswer, FakeModel, Lathe, Options, Script, TempRepo, call, done};
use serde_json::json;

use super::Effort;
use super::binary::peak_memory;
use super::samples::{Samples, time};
use super::table::{BenchTable, Goal, mb};

/// Results of the session, and the bytes of the file that each of them shows.
const CALLS: usize = 3500;
const SHOWN: usize = 29_000;
/// Every request holds all that was before it, so a step for each result would send 170 GB. So many calls in one
/// answer leave the same results in the journal and send a fiftieth.
const CALLS_OF_A_STEP: usize = 50;
const SIZE: u64 = 100_000_000;
const PEAK_GOAL: u64 = 80_000_000;

/// A session of 100 MB opens in 0.3 s and 80 MB, also when no snapshot spares reading it as new.
pub fn measure(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    eprintln!("a session of {} MB, resumed {} times", SIZE / 1_000_000, effort.series * 2);
    let session = LongSession::make(binary);
    let goal = Goal::Time(Duration::from_millis(300));
    for (what, snapshot) in
        [("resume of a session of 100 MB", Snapshot::Kept), ("  without a snapshot", Snapshot::Removed)]
    {
        let (mut resumed, mut bare) = (Samples::default(), Samples::default());
        for _ in 0..effort.series * 2 {
            session.restore(snapshot);
            bare.push(time(|| drop(std::fs::read(&session.file).expect("the journal can be read"))));
            resumed.push(time(|| session.check_opens(&mut session.resume())));
        }
        table.time(what, &resumed, ("reading its file", bare.median()), &goal);
        session.restore(snapshot);
        let peak = peak_memory(&mut session.resume(), Duration::from_secs(3));
        table.amount(
            "  its peak memory",
            peak.map_or("unknown".to_owned(), mb),
            ("", String::new()),
            mb(PEAK_GOAL),
            peak.map(|peak| peak <= PEAK_GOAL),
        );
    }
}

#[derive(Clone, Copy)]
enum Snapshot {
    Kept,
    Removed,
}

struct LongSession {
    lathe: Lathe,
    model: FakeModel,
    /// The folder the session works in, which must be there when it is opened.
    _repo: TempRepo,
    file: PathBuf,
    /// The same as it was at first: every resume may leave a newer snapshot.
    saved: PathBuf,
}

impl LongSession {
    /// A real run of the real binary, so that the journal is what such a run leaves.
    fn make(binary: &Path) -> Self {
        let line = format!("{}\n", "x".repeat(99));
        let repo = TempRepo::new(&[("long.txt", &line.repeat(SHOWN / line.len()))]);
        let view = |k: usize| -> FakeAnswer {
            let id = |n: usize| format!("call_{k}_{n}");
            let first = call(&id(0), "view", json!({ "path": "long.txt" }));
            (1..CALLS_OF_A_STEP)
                .fold(first, |answer, n| answer.call(&id(n), "view", json!({ "path": "long.txt" })))
        };
        let steps = CALLS / CALLS_OF_A_STEP;
        let model = FakeModel::start(
            Script::repeat(steps, view).answer(done("ok")),
            Options { keep_bodies: false, ..Options::default() },
        );
        let lathe = Lathe::new(binary).in_dir(repo.path()).timeout(Duration::from_secs(600));
        let run = lathe.clone().args(["run", "hi", "--output", "json", "--max-steps", "1000"]);
        run.with_model(&model).run().expect_code(0);
        let file = std::fs::read_dir(lathe.home().join("sessions"))
            .expect("there are sessions")
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| path.extension().is_some_and(|end| end == "db"))
            .expect("there is a session");
        let size = std::fs::metadata(&file).expect("the journal is there").len();
        assert!(size >= SIZE, "the journal has only {}", mb(size));
        let saved = file.with_extension("saved");
        std::fs::copy(&file, &saved).expect("the journal can be copied");
        Self { lathe, model, _repo: repo, file, saved }
    }

    fn restore(&self, snapshot: Snapshot) {
        std::fs::copy(&self.saved, &self.file).expect("the journal can be copied");
        let wanted = match snapshot {
            Snapshot::Kept => return,
            Snapshot::Removed => {
                "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute('delete from snapshots'); c.commit(); c.execute('pragma wal_checkpoint(truncate)'); c.close()"
            }
        };
        let status = Command::new("python3").args(["-c", wanted]).arg(&self.file).status();
        assert!(status.expect("python3 can be run").success());
    }

    /// The task is done, so this opens the session, says that there is nothing to resume, and closes it.
    fn resume(&self) -> Command {
        let mut command = self.lathe.clone().arg("resume").with_model(&self.model).command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn check_opens(&self, command: &mut Command) {
        assert_eq!(command.status().expect("lathe can be started").code(), Some(2));
    }
}
