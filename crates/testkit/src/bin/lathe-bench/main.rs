//! Measures `lathe` against its goals and prints one table.
//!
//! Every time is shown next to that of something bare, measured in the same minute on the same machine, because a
//! bare number says as much about the machine as about the program. Nothing is asserted: a benchmark that fails when
//! a neighbour is busy is soon ignored.

// A program for developers: it prints, and a measurement that cannot be made should say so and stop.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod binary;
mod compare;
mod faults;
mod large;
mod resume;
mod samples;
mod steps;
mod stream;
mod table;
mod tools;
mod upkeep;

use std::path::{Path, PathBuf};

use table::BenchTable;

/// The number of repetitions.
struct Effort {
    /// Starts of short programs.
    starts: usize,
    /// Whole runs of one turn.
    runs: usize,
    /// Runs of many steps.
    series: usize,
}

/// One part of the table.
type Part = fn(&Path, &Effort, &mut BenchTable);

const PARTS: [(&str, Part); 6] = [
    ("binary", binary::measure),
    ("steps", steps::measure),
    ("stream", stream::measure),
    ("upkeep", upkeep::measure),
    ("resume", resume::measure),
    ("tools", tools::measure),
];

fn main() {
    let mut binary = None;
    let mut older = None;
    let mut only = None;
    let mut only_faults = false;
    let mut only_large = None;
    let mut effort = Effort { starts: 300, runs: 30, series: 5 };
    for argument in std::env::args_os().skip(1) {
        if argument == "--faults" {
            only_faults = true;
        } else if argument == "--quick" {
            effort = Effort { starts: 60, runs: 8, series: 1 };
        } else if argument == "--large" {
            only_large = Some([100_000, 1_000_000].as_slice());
        } else if argument == "--large=100000" {
            only_large = Some([100_000].as_slice());
        } else if let Some(path) = argument.to_str().and_then(|text| text.strip_prefix("--compare=")) {
            older = Some(PathBuf::from(path));
        } else if let Some(part) = argument.to_str().and_then(|text| text.strip_prefix("--only=")) {
            only = Some(part.to_owned());
        } else {
            binary = Some(PathBuf::from(argument));
        }
    }
    let Some(binary) = binary.and_then(|path| path.canonicalize().ok()) else {
        eprintln!(
            "usage: lathe-bench PATH_OF_LATHE [--quick | --faults | --large[=100000] | --compare=OLDER] [--only=binary|steps|stream|upkeep|resume|tools]   (usually through scripts/bench)"
        );
        std::process::exit(2);
    };
    if only_faults {
        std::process::exit(if faults::print(&binary) { 0 } else { 1 });
    }
    if let Some(older) = older {
        return compare::print(&older, &binary, 10);
    }
    let mut table = BenchTable::default();
    if let Some(sizes) = only_large {
        large::measure(&binary, sizes, effort.series, &mut table);
        return table.print();
    }
    for (name, measure) in PARTS {
        if only.as_deref().is_none_or(|only| name.starts_with(only)) {
            measure(&binary, &effort, &mut table);
        }
    }
    table.print();
    println!();
    println!(
        "{} on {} cores; sessions and files under {}. `beside` was measured in turn with the row it stands in.",
        binary.display(),
        std::thread::available_parallelism().map_or(0, usize::from),
        std::env::temp_dir().display(),
    );
}
