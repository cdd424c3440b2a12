//! Measures the cost of the shell next to that of its alternatives. Judges nothing: the table is for reading.
//!
//!   cargo run --release -p lathe-shell --example shell_bench [--quick]

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_protocol::BoxFuture;
use lathe_shell::{CommandCall, CommandHost, CommandIo, LineEnd, LineLimits, Shell, ShellOptions, place_ax};
use lathe_workspace::LocalProcesses;
use tokio_util::sync::CancellationToken;

struct Noop;

impl CommandHost for Noop {
    fn names(&self) -> Vec<String> {
        ["noop", "view", "jobs"].map(str::to_owned).to_vec()
    }

    fn run(&self, _call: CommandCall, mut io: CommandIo) -> BoxFuture<'static, u8> {
        Box::pin(async move { io.out(b"ok\n".to_vec()).await.map_or(1, |()| 0) })
    }
}

async fn run(shell: &mut Shell, line: &str, limits: LineLimits) -> LineEnd {
    shell.run(line.as_bytes(), limits, None, &CancellationToken::new()).await.unwrap()
}

async fn timed(shell: &mut Shell, line: &str) -> Duration {
    let began = Instant::now();
    let end = run(shell, line, LineLimits::default()).await;
    assert_eq!(end.exit.code(), 0, "{line}");
    began.elapsed()
}

/// The lower quartile of the time of each of these in a loop of bash, taken in turns in the same shell.
async fn in_bash(shell: &mut Shell, commands: &[&str], rounds: usize) -> Vec<Duration> {
    const LOOP: u32 = 10;
    let mut times = vec![Vec::new(); commands.len()];
    for _ in 0..rounds {
        for (command, times) in commands.iter().zip(&mut times) {
            let line = format!("for ((i = 0; i < {LOOP}; i++)); do {command}; done");
            times.push(timed(shell, &line).await / LOOP);
        }
    }
    times.into_iter().map(quartile).collect()
}

/// Less is noise of the machine, more is noise of its other users.
fn quartile(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 4]
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn row(name: &str, value: &str, goal: &str) {
    println!("{name:<52} {value:>28}  {goal}");
}

#[tokio::main]
async fn main() {
    // On a thread of the runtime, as in a real host: every hop from the main thread would wake up another one.
    tokio::spawn(bench()).await.unwrap();
}

async fn bench() {
    let is_quick = std::env::args().any(|argument| argument == "--quick");
    let rounds = if is_quick { 20 } else { 100 };
    let home = tempfile::tempdir().unwrap();
    let env = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/tmp"), ("LC_ALL", "C.UTF-8")];
    let options = ShellOptions {
        start: lathe_shell::StartFolder::Any,
        cwd: Path::new("/").to_owned(),
        env: env.map(|(name, value)| (name.into(), value.into())).to_vec(),
        ax: place_ax(home.path()).unwrap(),
        shell: "/bin/bash".into(),
        commands: Some(Arc::new(Noop)),
    };
    let mut shell = Shell::start(Arc::new(LocalProcesses), options).await.unwrap();

    let commands =
        ["/bin/true", "noop >/dev/null", "/bin/true | cat", "noop | cat", "a:b >/dev/null", "( : )"];
    let times = in_bash(&mut shell, &commands, rounds).await;
    let truth = times[0];
    let mut noops = Vec::new();
    for _ in 0..rounds * 20 {
        noops.push(timed(&mut shell, ":").await);
    }
    let against = |time: Duration| format!("{time:.1?} = {:.2}x", time.as_secs_f64() / truth.as_secs_f64());
    row("/bin/true from bash", &format!("{truth:.1?}"), "");
    row("fork of bash alone", &against(times[5]), "");
    row("line that does nothing, there and back", &against(quartile(noops)), "goal 0.4x of /bin/true");
    row("agent command from bash", &against(times[1]), "goal 1.3x of /bin/true");
    row("agent command from bash by command_not_found", &against(times[4]), "");
    row("/bin/true | cat", &against(times[2]), "");
    row("agent command | cat", &against(times[3]), "");

    let seconds = if is_quick { 2 } else { 10 };
    let idle = resident_kib();
    let limits = LineLimits { timeout: Duration::from_secs(seconds), ..LineLimits::default() };
    let (end, most) = {
        let flood = run(&mut shell, "yes", limits);
        tokio::pin!(flood);
        let mut most = idle;
        loop {
            tokio::select! {
                end = &mut flood => break (end, most),
                () = tokio::time::sleep(Duration::from_millis(100)) => most = most.max(resident_kib()),
            }
        }
    };
    let printed = end.stdout.total() >> 20;
    let over = format!("{} KiB ({printed} MiB printed)", most - idle);
    row(&format!("`yes` for {seconds} s: memory over idle"), &over, "goal 64 MiB");

    let mut late = Vec::new();
    for _ in 0..rounds {
        late.push(timed(&mut shell, "sleep 600 & setsid -f sleep 600; yes >&2 & echo done").await);
        let jobs = shell.jobs();
        for job in jobs.list().await {
            jobs.kill(job.id).await;
        }
    }
    late.sort();
    let worst = late.last().copied().unwrap_or_default();
    row(
        "end of a line whose children hold its output",
        &format!("{:.1?}, worst {worst:.1?}", quartile(late)),
        "goal 250 ms",
    );
    shell.close().await;
}
