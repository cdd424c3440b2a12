//! How long reading takes beside the bare parser: `cargo run --release -p lathe-bash --example reading`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Duration;

use lathe_bash::read;
use lathe_grammars::Language;
use nix::time::{ClockId, clock_gettime};

/// What most lines are like, and what has to be read from the tree.
const LINES: [(&str, &str, usize); 2] = [
    (
        "plain",
        "git status -s | grep 'a b' > /dev/null && cargo test -p lathe-bash 2>&1 | tail -n 20\n",
        1_200,
    ),
    (
        "other",
        "for f in *.rs; do grep -n \"$x\" \"$f\" | head -n 5; done; ls $(pwd) > out && echo done\n",
        1_200,
    ),
];

fn main() {
    for (name, line, times) in LINES {
        measure(name, &line.repeat(times));
    }
}

fn measure(name: &str, text: &str) {
    let mut parser = Language::Bash.parser().unwrap();
    let (mut bare, mut ours) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds() {
        let started = worked();
        drop(parser.parse(text, None).unwrap());
        bare = bare.min(worked() - started);
        let started = worked();
        drop(read(text));
        ours = ours.min(worked() - started);
    }
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!(
        "{} kB of {name} lines: bare parser {:.2} ms, reading {:.2} ms, {ratio:.2} times (goal 1.5)",
        text.len() / 1000,
        ms(bare),
        ms(ours)
    );
}

/// The time this thread has had on a processor: what others do meanwhile is not ours. The kernel's files tell it too, but
/// only to the last tick, which is a third of a parse.
fn worked() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap().into()
}

fn rounds() -> usize {
    std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(40)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
