//! How long reading takes beside the bare parser: `cargo run --release -p lathe-bash --example reading`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use lathe_bash::read;
use lathe_grammars::Language;

fn main() {
    let text = "git status -s | grep 'a b' > /dev/null && cargo test -p lathe-bash 2>&1 | tail -n 20\n"
        .repeat(1_200);
    let mut parser = Language::Bash.parser().unwrap();
    let (mut bare, mut ours) = (Duration::MAX, Duration::MAX);
    let begun = Instant::now();
    for _ in 0..rounds() {
        let started = worked(begun);
        drop(parser.parse(&text, None).unwrap());
        bare = bare.min(worked(begun) - started);
        let started = worked(begun);
        drop(read(&text));
        ours = ours.min(worked(begun) - started);
    }
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!(
        "{} kB: bare parser {:.2} ms, reading {:.2} ms, {ratio:.2} times (goal 1.5)",
        text.len() / 1000,
        ms(bare),
        ms(ours)
    );
}

/// The time this thread has had on a processor, where the system tells it: what others do meanwhile is not ours.
fn worked(since: Instant) -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|told| told.split(' ').next()?.parse().ok());
    nanos.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn rounds() -> usize {
    std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(40)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
