//! The delay of words on the screen, and the cost of reading them.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use lathe_testkit::{FakeAnswer, FakeModel, Fault, Lathe, Options, Script, done, say};

use super::Effort;
use super::samples::Samples;
use super::table::{BenchTable, Goal, ms};

/// Tokens of the long answer. At 10,000 a second that is ten seconds of streaming.
const TOKENS: usize = 100_000;
/// The share of a core that reading may take at that speed.
const SHARE: f64 = 0.05;
const SPEED: f64 = 10_000.0;

pub fn measure(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    measure_first_word(binary, effort, table);
    measure_reading(binary, table);
}

/// From the write of the first words to their arrival on standard output.
fn measure_first_word(binary: &Path, effort: &Effort, table: &mut BenchTable) {
    eprintln!("first words, {} times", effort.runs);
    let mut samples = Samples::default();
    for _ in 0..effort.runs {
        let options = Options { delay: Duration::from_millis(100), ..Options::default() };
        let model = FakeModel::start(Script::new().answer(say("firstword").say("ends").call_done()), options);
        let lathe = Lathe::new(binary);
        let mut child = lathe
            .clone()
            .args(["run", "hi", "--mode", "full-auto"])
            .with_model(&model)
            .command()
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program can be started");
        let mut pipe = child.stdout.take().expect("stdout is a pipe");
        let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
        let mut seen = None;
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            text.extend_from_slice(&buffer[..count]);
            if seen.is_none() && text.windows(4).any(|four| four == b"firs") {
                seen = Some(Instant::now());
            }
        }
        child.wait().expect("a child can be waited for");
        let sent = model.requests()[0].answered_at.expect("the answer was sent");
        samples.push(seen.expect("the words came").saturating_duration_since(sent));
    }
    let goal = Goal::Time(Duration::from_millis(5));
    table.time(
        "first words, from the wire to the console",
        &samples,
        ("the goal", Duration::from_millis(5)),
        &goal,
    );
}

trait CallDone {
    fn call_done(self) -> Self;
}

impl CallDone for FakeAnswer {
    fn call_done(self) -> Self {
        self.call("c1", "task_done", serde_json::json!({ "summary": "ok" }))
    }
}

/// Processor time of a long answer in small pieces, screen included, compared with a short one.
fn measure_reading(binary: &Path, table: &mut BenchTable) {
    eprintln!("an answer of {TOKENS} tokens");
    // A block of sixteen letters goes out in four pieces, each about a token.
    let long = (0..TOKENS / 4).fold(FakeAnswer::new(Vec::new()), |answer, _| answer.say("tok tok tok tok "));
    let (long, short) = (processor_time(binary, long), processor_time(binary, say("tok")));
    let spent = long.saturating_sub(short);
    let allowed = Duration::from_secs_f64(TOKENS as f64 / SPEED * SHARE);
    let share = spent.as_secs_f64() / (TOKENS as f64 / SPEED);
    table.amount(
        &format!("processor time to read and show {TOKENS} tokens"),
        ms(spent),
        ("share of a core at 10,000 tokens/s", format!("{:.1} %", share * 100.0)),
        format!("{:.0} %, {}", SHARE * 100.0, ms(allowed)),
        Some(spent <= allowed),
    );
}

fn processor_time(binary: &Path, answer: FakeAnswer) -> Duration {
    // The text ends a turn without a call, so a reminder follows; then the model is held up, and the clock is read.
    let last = done("ok").fails(1, Fault::SilenceFirst(Duration::from_secs(2)));
    let model = FakeModel::serving(Script::new().answer(answer).answer(last));
    let lathe = Lathe::new(binary);
    let mut child = lathe
        .clone()
        .args(["run", "hi", "--mode", "full-auto"])
        .with_model(&model)
        .command()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started");
    model.wait_for_requests(2, Duration::from_secs(60));
    std::thread::sleep(Duration::from_millis(300));
    let tasks = std::fs::read_dir(format!("/proc/{}/task", child.id())).expect("the process runs");
    let nanoseconds: u64 = tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok())
        .filter_map(|text| text.split_whitespace().next()?.parse::<u64>().ok())
        .sum();
    let _ = child.kill();
    let _ = child.wait();
    Duration::from_nanos(nanoseconds)
}
