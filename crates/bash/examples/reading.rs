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
    for _ in 0..rounds() {
        let started = Instant::now();
        drop(parser.parse(&text, None).unwrap());
        bare = bare.min(started.elapsed());
        let started = Instant::now();
        drop(read(&text));
        ours = ours.min(started.elapsed());
    }
    let ratio = ours.as_secs_f64() / bare.as_secs_f64();
    println!(
        "{} kB: bare parser {:.2} ms, reading {:.2} ms, {ratio:.2} times",
        text.len() / 1000,
        ms(bare),
        ms(ours)
    );
}

fn rounds() -> usize {
    std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(40)
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
