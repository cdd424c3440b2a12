//! Compares an older program with a newer one, in turn, so that both meet the same machine.
//!
//! Each round measures both. Counts (bytes, instructions, memory) may grow by 3 %, times by 10 % in the median of the
//! rounds. Nothing is asserted: the verdicts are for reading.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use lathe_testkit::Lathe;

use super::table::{BenchTable, Unit};
use super::{Effort, Part, binary, steps, stream};

const PARTS: [Part; 3] = [binary::measure, steps::measure, stream::measure];
const TIME_LIMIT: f64 = 1.10;
const COUNT_LIMIT: f64 = 1.03;

/// The values of a row, one for each round: of the older program and of the newer one.
type Pairs = [Vec<f64>; 2];

pub fn print(older: &Path, newer: &Path, rounds: usize) {
    let mut rows: BTreeMap<String, (Unit, Pairs)> = BTreeMap::new();
    for round in 1..=rounds {
        // Which one goes first changes from round to round.
        let order = if round % 2 == 0 { [1, 0] } else { [0, 1] };
        for which in order {
            eprintln!("round {round} of {rounds}, {}", ["older", "newer"][which]);
            let program = [older, newer][which];
            let mut table = BenchTable::default();
            let effort = Effort { starts: 40, runs: 6, series: 1 };
            for part in PARTS {
                part(program, &effort, &mut table);
            }
            if round == 1 {
                instructions(program, &mut table);
            }
            for value in table.values() {
                let row = rows.entry(value.what.clone()).or_insert_with(|| (value.unit, Pairs::default()));
                row.1[which].push(value.amount);
            }
        }
    }
    println!("{:58} {:>14} {:>14} {:>7}", "what (median of the rounds)", "older", "newer", "ratio");
    for (what, (unit, pairs)) in rows {
        let [Some(old), Some(new)] = pairs.map(median) else { continue };
        let (limit, shown) = match unit {
            Unit::Seconds => (TIME_LIMIT, [old, new].map(|seconds| format!("{:.3} ms", seconds * 1000.0))),
            Unit::Count => (COUNT_LIMIT, [old, new].map(|count| format!("{count:.0}"))),
        };
        let verdict = if new <= old * limit { "" } else { "  MORE" };
        println!("{what:58} {:>14} {:>14} {:>7.3}{verdict}", shown[0], shown[1], new / old);
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Counts the instructions of short commands. They hardly depend on the machine.
fn instructions(program: &Path, table: &mut BenchTable) {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return eprintln!("valgrind is not installed: no instructions are counted");
    }
    let commands: [&[&str]; 4] = [
        &["--version"],
        &["policy", "check", "cargo test 2>&1 | grep FAIL && rm -rf target"],
        &["tools", "--json"],
        &["config", "show"],
    ];
    for arguments in commands {
        let lathe = Lathe::new(program).args(arguments);
        let plain = lathe.command();
        let mut counted = Command::new("valgrind");
        counted.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(program).args(arguments);
        for (name, value) in plain.get_envs() {
            value.map(|value| counted.env(name, value));
        }
        let output = counted.output().expect("valgrind can be started");
        let text = String::from_utf8_lossy(&output.stderr);
        let count =
            text.lines().find_map(|line| line.split_once("Collected : ")?.1.trim().parse::<u64>().ok());
        if let Some(count) = count {
            table.count(
                &format!("instructions of lathe {}", arguments[..2.min(arguments.len())].join(" ")),
                count,
            );
        }
    }
}
