//! The cost of a run and its steps, with a model that answers at once.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lathe_testkit::{FakeModel, Fault, Lathe, Options, ReceivedRequest, Script, call, descendants_of, done};
use serde_json::json;

use super::Effort;
use super::binary::kilobytes;
use super::samples::{Samples, time, time_program};
use super::table::{BenchTable, Goal, mb};

const STEPS: usize = 50;
/// The bytes that a command prints in the long conversation, and how long that one gets.
const PRINTED: usize = 20_000;
const HISTORY: usize = 4_000_000;
/// The last steps of the long conversation are the ones that count.
const MEASURED: usize = 20;
/// A step may cost this many times the bare work that it cannot avoid.
const TIMES: u32 = 4;

pub fn measure(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    measure_one_turn(binary, effort, table);
    measure_short_steps(binary, effort, table);
    measure_memory(binary, table);
    measure_long_steps(binary, effort, table);
}

/// A run against `model` in a folder of its own.
fn run(lathe: &Lathe, model: &FakeModel, steps: usize) -> Lathe {
    lathe
        .clone()
        .args(["run", "hi", "--mode", "full-auto", "--max-steps", &steps.to_string()])
        .with_model(model)
        .timeout(Duration::from_secs(300))
}

fn command_script(steps: usize, command: &str) -> Script {
    Script::repeat(steps, |k| call(&format!("call_{k}"), "bash", json!({ "command": command })))
}

fn without_bodies() -> Options {
    Options { keep_bodies: false, ..Options::default() }
}

fn measure_one_turn(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    eprintln!("runs of one turn, {} times", effort.runs);
    let model = FakeModel::start(Script::new().answer(done("ok")), without_bodies());
    let warm = Lathe::new(binary);
    run(&warm, &model, 5).run().expect_code(0);
    let (mut again, mut first, mut bare) = (Samples::default(), Samples::default(), Samples::default());
    for _ in 0..effort.runs {
        bare.push(time_program(&mut Command::new("/bin/true")));
        again.push(time_program(&mut run(&warm, &model, 5).command()));
        let new_home = Lathe::new(binary);
        first.push(time_program(&mut run(&new_home, &model, 5).command()));
    }
    assert_eq!(model.violations(), Vec::<String>::new());
    let goal = Goal::Time(Duration::from_millis(100));
    table.time("run of one turn", &again, ("/bin/true", bare.median()), &goal);
    table.time("  the first in a new home", &first, ("/bin/true", bare.median()), &goal);
}

fn measure_short_steps(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    eprintln!("runs of {STEPS} steps, {} times", effort.series);
    let (mut steps, mut spawn, mut sync) = (Samples::default(), Samples::default(), Samples::default());
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let mut file = std::fs::File::create(folder.path().join("appended")).expect("a file can be made");
    let mut connections = 0;
    for _ in 0..effort.series {
        for _ in 0..STEPS {
            spawn.push(time_program(&mut Command::new("/bin/true")));
            sync.push(time(|| {
                file.write_all(&[b'x'; 700]).expect("a file can be written");
                file.sync_all().expect("a file can be synced");
            }));
        }
        let script = command_script(STEPS, "echo ok").answer(done("ok"));
        let requests = finished_requests(binary, script, Options::default());
        check_results(&requests);
        table.count(
            "bytes sent over fifty steps",
            requests.iter().map(|request| request.body_length as u64).sum(),
        );
        steps.extend(gaps_between_requests(&requests, |request| request.head_at));
        connections = requests.iter().map(|request| request.connection).max().unwrap_or(0) + 1;
    }
    table.time(
        "step: `echo ok`, to the next request",
        &steps,
        ("4 x (/bin/true + append and fsync)", (spawn.median() + sync.median()) * TIMES),
        &Goal::Beside(Duration::from_millis(3)),
    );
    if connections > 1 {
        table.note(format!(
            "{} requests of one run came on {connections} connections; one would do",
            STEPS + 1
        ));
    }
}

fn measure_memory(binary: &Path, table: &mut BenchTable) {
    eprintln!("memory near the end of {STEPS} steps");
    let last = done("ok").fails(1, Fault::Stall(Duration::from_secs(1)));
    let model = FakeModel::start(command_script(STEPS, "echo ok").answer(last), without_bodies());
    let running = run(&Lathe::new(binary), &model, STEPS + 5).spawn();
    model.wait_for_requests(STEPS + 1, Duration::from_secs(120));
    std::thread::sleep(Duration::from_millis(200));
    let mut parts: Vec<(String, u64)> = Vec::new();
    for pid in descendants_of(running.pid()) {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
        // A process shares pages with others of its kind; its proportional share is what it really costs.
        if let Some(bytes) = kilobytes(&rollup, "Pss:") {
            parts.push((name.trim().to_owned(), bytes));
        }
    }
    running.wait().expect_code(0);
    let total: u64 = parts.iter().map(|(_, bytes)| bytes).sum();
    table.count("memory of the processes", total);
    let goal = 25_000_000;
    table.amount(
        &format!("memory of the processes, {STEPS} steps"),
        mb(total),
        ("", String::new()),
        mb(goal),
        Some(total <= goal),
    );
    let parts: Vec<String> = parts.iter().map(|(name, bytes)| format!("{name} {}", mb(*bytes))).collect();
    table.note(format!("memory (proportional set size): {}", parts.join(", ")));
}

fn measure_long_steps(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    let command = format!("head -c {PRINTED} /dev/zero | tr '\\0' x");
    // What the model is shown of an output is capped, so how much a step adds must be seen first.
    let probe = finished_requests(binary, command_script(4, &command).answer(done("ok")), without_bodies());
    let (first, last) = (probe[1].body_length, probe[4].body_length);
    let growth = (last - first) / 3;
    let turns = (HISTORY / growth.max(1)).clamp(MEASURED, 2000);
    eprintln!("runs of {turns} steps that add {growth} bytes each, {} times", effort.series.div_ceil(2));
    let (mut steps, mut bare_command, mut bare_bytes) =
        (Samples::default(), Samples::default(), Samples::default());
    let mut length = 0;
    for _ in 0..effort.series.div_ceil(2) {
        let requests =
            finished_requests(binary, command_script(turns, &command).answer(done("ok")), without_bodies());
        length = requests.last().map_or(0, |request| request.body_length);
        let late = requests.len() - MEASURED - 1;
        steps.extend(gaps_between_requests(&requests[late..], |request| request.body_at));
        for _ in 0..MEASURED {
            bare_command.push(time_program(Command::new("bash").args(["-c", &command])));
        }
        bare_bytes.extend(loopback(length, MEASURED));
    }
    table.time(
        &format!("step at {} of history, whole request", mb(length as u64)),
        &steps,
        ("4 x (bytes over loopback + bash -c)", (bare_command.median() + bare_bytes.median()) * TIMES),
        &Goal::Beside(Duration::from_millis(8)),
    );
}

/// All requests of a run that went well.
fn finished_requests(binary: &Path, script: Script, options: Options) -> Vec<ReceivedRequest> {
    let steps = script.len() + 5;
    let model = FakeModel::start(script, options);
    run(&Lathe::new(binary), &model, steps).run().expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
    let requests = model.requests();
    assert_eq!(requests.len() + 5, steps, "one request for each answer");
    requests
}

/// Steps that were refused would be quick: every command must have run.
fn check_results(requests: &[ReceivedRequest]) {
    let messages = requests.last().map(ReceivedRequest::messages).unwrap_or_default();
    let ran = messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .filter(|message| message["content"].as_str().is_some_and(|text| text.contains("ok\n")))
        .count();
    assert_eq!(ran, STEPS, "{:?}", messages.last());
}

/// From the end of each answer to the arrival of the next request.
fn gaps_between_requests(
    requests: &[ReceivedRequest],
    arrival: impl Fn(&ReceivedRequest) -> Instant,
) -> Vec<Duration> {
    requests
        .windows(2)
        .map(|pair| arrival(&pair[1]) - pair[0].answered_at.expect("the answer was sent"))
        .collect()
}

/// The time that `length` bytes take from one end of an open connection to the other.
fn loopback(length: usize, times: usize) -> Vec<Duration> {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("a bound listener has an address");
    let (arrived, arrivals) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection comes");
        let mut buffer = vec![0; length];
        for _ in 0..times {
            stream.read_exact(&mut buffer).expect("the bytes come");
            arrived.send(Instant::now()).expect("somebody waits");
        }
    });
    let mut stream = TcpStream::connect(address).expect("loopback can be reached");
    let bytes = vec![b'x'; length];
    let durations = (0..times)
        .map(|_| {
            let started = Instant::now();
            stream.write_all(&bytes).expect("the bytes go");
            arrivals.recv().expect("the bytes arrive") - started
        })
        .collect();
    reader.join().expect("the reader ends well");
    durations
}
