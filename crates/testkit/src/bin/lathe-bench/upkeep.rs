//! The cost of work next to a run, and over many runs.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Options, Script, call, done};
use serde_json::json;

use super::Effort;
use super::samples::{Samples, time_program};
use super::table::{BenchTable, Goal};

const STEPS: usize = 200;
/// A model that is quicker than any real one, so the cost of writing next to it shows all the more.
const ANSWER: Duration = Duration::from_millis(10);
const SESSIONS: usize = 1000;

pub fn measure(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    measure_trajectory(binary, effort, table);
    if effort.series > 1 {
        measure_sessions(binary, effort, table);
    }
}

/// A trajectory costs the run under a fiftieth.
fn measure_trajectory(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    eprintln!("runs of {STEPS} steps with and without a trajectory, {} times", effort.series);
    let script = Script::repeat(STEPS, |k| {
        call(&format!("call_{k}"), "bash", json!({ "command": "head -c 2000 /dev/zero | tr '\\0' x" }))
    });
    let options = Options { keep_bodies: false, delay: ANSWER, ..Options::default() };
    let model = FakeModel::start(script.answer(done("ok")), options);
    let lathe = Lathe::new(binary);
    let file = lathe.home().with_file_name("trajectory.json");
    let run =
        || lathe.clone().args(["run", "hi", "--mode", "full-auto", "--max-steps", "300"]).with_model(&model);
    let (mut with, mut without) = (Samples::default(), Samples::default());
    for _ in 0..effort.series {
        without.push(time_program(&mut run().command()));
        with.push(time_program(&mut run().arg("--trajectory-file").arg(&file).command()));
    }
    assert!(file.exists());
    table.time(
        "200 steps with a trajectory",
        &with,
        ("200 steps without", without.median()),
        &Goal::Ratio(1.02),
    );
}

fn measure_sessions(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    eprintln!("{SESSIONS} sessions");
    let model = FakeModel::start(
        Script::new().answer(done("ok")),
        Options { keep_bodies: false, ..Options::default() },
    );
    let lathe = Lathe::new(binary);
    for _ in 0..SESSIONS {
        let ran = lathe.clone().args(["run", "hi", "--output", "json"]).with_model(&model).run();
        ran.expect_code(0);
    }
    let (mut listed, mut bare) = (Samples::default(), Samples::default());
    for _ in 0..effort.runs {
        bare.push(time_program(&mut Command::new("/bin/true")));
        listed.push(time_program(&mut lathe.clone().arg("sessions").command()));
    }
    let goal = Goal::Time(Duration::from_millis(50));
    table.time("list of 1000 sessions", &listed, ("/bin/true", bare.median()), &goal);
}
