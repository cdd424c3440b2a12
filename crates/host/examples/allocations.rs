//! The cost of a step early and late in a long run: allocations and bytes of the whole agent, in this process.
//!
//! The shipped program has no counting allocator, so its parts run here with one: the same host, agent, model client
//! and tools. The model has a process of its own, because its allocations do not belong to the agent. A step is
//! everything between two answers of the model. `scripts/bench --allocations` prints the table; with the argument
//! `steps`, every step too.

// A program for developers: it prints, and a measurement that cannot be made should say so and stop.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{BufRead as _, BufReader};
use std::process::{Command as Program, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use lathe_host::{Extras, Home, Host, ModelRequest, ModelSource, SessionPlan};
use lathe_protocol::{
    Actor, Command, CommandBody, CommandId, EndingRule, Fact, Limits, Mode, Seq, ToolChoice, Update,
};
use lathe_testkit::{FakeModel, Options, Script, call, done};
use serde_json::json;

const STEPS: usize = 500;
/// Early and late steps that are compared, counted from 1.
const WINDOWS: [std::ops::Range<usize>; 2] = [5..50, 450..495];
/// The highest allowed cost of a late step, relative to an early one.
const LIMIT: f64 = 1.1;

static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is handed on to the system's allocator unchanged; only our own numbers change.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, and it is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the pointer came from this allocator with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(size.saturating_sub(layout.size()) as u64, Ordering::Relaxed);
        // SAFETY: the pointer came from this allocator with this layout, and the size is the caller's.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    count: u64,
    bytes: u64,
    cpu_us: u64,
}

impl Cost {
    fn now() -> Self {
        Self { count: COUNT.load(Ordering::Relaxed), bytes: BYTES.load(Ordering::Relaxed), cpu_us: cpu_us() }
    }

    fn since(self, before: Self) -> Self {
        Self {
            count: self.count - before.count,
            bytes: self.bytes - before.bytes,
            cpu_us: self.cpu_us - before.cpu_us,
        }
    }
}

/// Time that all threads of this process worked.
fn cpu_us() -> u64 {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF).expect("a usage");
    let micros = |time: nix::sys::time::TimeVal| {
        u64::try_from(time.tv_sec()).unwrap_or(0) * 1_000_000 + u64::try_from(time.tv_usec()).unwrap_or(0)
    };
    micros(usage.user_time()) + micros(usage.system_time())
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        return serve();
    }
    let me = std::env::current_exe().expect("a program has a path");
    let mut server =
        Program::new(me).arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let (url, key) = (lines.next().unwrap().unwrap(), lines.next().unwrap().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let steps = runtime.block_on(run(url, key));
    drop(server.stdin.take());
    server.wait().unwrap();
    print(&steps);
}

/// Answers with shell lines and edits in turn, until the parent process closes its input.
fn serve() {
    let script = Script::repeat(STEPS, |k| match k % 2 {
        0 => call(&format!("c{k}"), "bash", json!({ "command": format!("echo ok {k}") })),
        _ => {
            let (old, new) = (format!("number {}\n", k / 2), format!("number {}\n", k / 2 + 1));
            call(&format!("c{k}"), "edit", json!({ "path": "a.txt", "old_str": old, "new_str": new }))
        }
    });
    let options = Options { keep_bodies: false, ..Options::default() };
    let model = FakeModel::start(script.answer(done("ok")), options);
    println!("{}\n{}", model.base_url(), model.key());
    let mut end = String::new();
    let _ = std::io::stdin().read_line(&mut end);
}

/// The cost of each step.
async fn run(url: String, key: String) -> Vec<Cost> {
    let (home, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(folder.path().join("a.txt"), "a file\nnumber 0\n").unwrap();
    let host = Host::new(Home::at(home.path().to_owned()));
    let model = ModelRequest {
        base_url: Some(url),
        api_key: Some(key),
        model: Some("fake".to_owned()),
        ..ModelRequest::default()
    };
    let plan = SessionPlan {
        own_model: false,
        folder: folder.path().to_owned(),
        source: ModelSource::Ask(model),
        mode: lathe_host::ModeWish::Given(Mode::FullAuto),
        sandbox: Some(lathe_protocol::Sandbox::Off),
        toolset: None,
        limits: Limits { max_steps: 1000, ..Limits::default() },
        ending: EndingRule::Remind,
        patch: None,
        tools: ToolChoice::default(),
        record: None,
        attended: lathe_host::Attended::Nobody,
        extras: Extras::default(),
    };
    let session = host.start(plan).await.unwrap();
    let mut updates = session.handle().subscribe(Seq(0));
    let body = CommandBody::GiveTask { text: "hi".to_owned(), images: Vec::new() };
    session.handle().submit(Command { id: CommandId::new("1"), actor: Actor::Person, body }).await;
    let (mut steps, mut last) = (Vec::new(), Cost::default());
    while let Some(update) = updates.next().await {
        let Update::Event(event) = update else { continue };
        match &event.fact {
            Fact::ModelAnswered(_) => {
                let now = Cost::now();
                steps.push(now.since(last));
                last = now;
            }
            Fact::CallFinished(finished) => assert_eq!(finished.error, None, "{}", finished.text),
            Fact::TaskFinished(_) => break,
            _ => {}
        }
    }
    session.close().await.unwrap();
    assert_eq!(steps.len(), STEPS + 1, "one answer for each step");
    steps
}

fn print(steps: &[Cost]) {
    let mean = |window: &std::ops::Range<usize>, what: fn(&Cost) -> u64| {
        let part = &steps[window.clone()];
        part.iter().map(what).sum::<u64>() as f64 / part.len() as f64
    };
    println!("{:32} {:>12} {:>12} {:>6}", "a whole step", "steps 5-50", "450-495", "ratio");
    type Row = (&'static str, fn(&Cost) -> u64, Option<f64>);
    let rows: [Row; 3] = [
        ("allocations", |cost| cost.count, Some(LIMIT)),
        ("bytes allocated", |cost| cost.bytes, None),
        ("processor time, microseconds", |cost| cost.cpu_us, None),
    ];
    for (name, what, limit) in rows {
        let [early, late] = WINDOWS.map(|window| mean(&window, what));
        let ratio = late / early;
        let verdict = match limit {
            Some(limit) if ratio <= limit => format!("met (at most {limit})"),
            Some(limit) => format!("NOT met (at most {limit})"),
            None => String::new(),
        };
        println!("{name:32} {early:12.0} {late:12.0} {ratio:6.2}  {verdict}");
    }
    println!(
        "\nEvery request sends the whole conversation: the list of its pieces (32 bytes each) and the sending grow with it."
    );
    if std::env::args().nth(1).as_deref() == Some("steps") {
        for (at, cost) in steps.iter().enumerate() {
            println!("{at} {} {} {}", cost.count, cost.bytes, cost.cpu_us);
        }
    }
}
