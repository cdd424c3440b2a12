//! Measures the time of a decision over the corpus: `scripts/bench --gate`.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::{Duration, Instant};

use lathe_policy::{Gate, Rulebook};
use lathe_protocol::{Actor, Mode};
use serde_json::Value;

const CORPUS: [&str; 2] =
    [include_str!("../tests/corpus/lines.jsonl"), include_str!("../tests/corpus/builtin.jsonl")];

fn main() {
    let gate = Gate {
        home: "/h/.lathe".into(),
        root: "/w".into(),
        user_home: Some("/home/me".into()),
        here: Some("/w".into()),
        outputs: None,
        headless: false,
        disk: lathe_policy::OnDisk::default(),
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
    };
    let rules = Rulebook::builtin();
    let line = |entry: &str| -> String {
        let entry: Value = serde_json::from_str(entry).unwrap();
        entry["command"].as_str().unwrap().to_owned()
    };
    let lines: Vec<String> = CORPUS.iter().flat_map(|corpus| corpus.lines()).map(line).collect();
    let mut times: Vec<Duration> = Vec::new();
    let started = Instant::now();
    for at in 0..10_000 {
        let begun = Instant::now();
        gate.decide_line(&rules, Actor::Model, Mode::Default, &lines[at % lines.len()]);
        times.push(begun.elapsed());
    }
    let all = started.elapsed();
    times.sort();
    let at = |part: usize| times[times.len() * part / 100].as_secs_f64() * 1e6;
    println!(
        "{} lines of the corpus, 10,000 decisions in {:.2} s: median {:.0} µs (goal 1000), p95 {:.0} µs",
        lines.len(),
        all.as_secs_f64(),
        at(50),
        at(95)
    );
}
