//! Every fault on every wire, as a table: what was asked, what came of it, how long it took.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use lathe_testkit::{FaultCase, FaultOutcome, Wire, fault_cases};

/// They mostly wait, so several run at once.
const AT_ONCE: usize = 6;

/// Prints the table; whether everything was as it should be.
pub fn print(binary: &Path) -> bool {
    let wires: Vec<(Wire, Vec<FaultCase>)> =
        Wire::ALL.into_iter().map(|wire| (wire, fault_cases(wire))).collect();
    let mut results: Vec<Vec<FaultOutcome>> = Vec::new();
    for (wire, cases) in &wires {
        eprintln!("{} faults on {}", cases.len(), wire.as_str());
        results.push(run(binary, *wire, cases));
    }
    println!("{:34}  {}", "fault", Wire::ALL.map(|wire| format!("{:>16}", wire.as_str())).join("  "));
    let mut good = true;
    for row in 0..wires.iter().map(|(_, cases)| cases.len()).max().unwrap_or(0) {
        let name =
            wires.iter().find_map(|(_, cases)| cases.get(row).map(|case| case.name)).unwrap_or_default();
        let cells = results.iter().map(|outcomes| {
            outcomes.get(row).map_or_else(String::new, |outcome| {
                good &= outcome.wrong.is_empty();
                let mark = if outcome.wrong.is_empty() { "" } else { "WRONG " };
                let seconds = outcome.elapsed.as_secs_f32();
                format!("{mark}{} {}x {seconds:>4.1} s", outcome.code, outcome.requests)
            })
        });
        let cells: Vec<String> = cells.map(|cell| format!("{cell:>16}")).collect();
        println!("{name:34}  {}", cells.join("  "));
    }
    println!(
        "\nEach cell: exit code, requests, time. 0 is success after asking again, 1 and 3 a clear error."
    );
    for (wire, outcomes) in Wire::ALL.iter().zip(&results) {
        for (outcome, case) in outcomes.iter().zip(fault_cases(*wire)) {
            for wrong in &outcome.wrong {
                println!("WRONG {} on {}: {wrong}", case.name, wire.as_str());
            }
        }
    }
    good
}

fn run(binary: &Path, wire: Wire, cases: &[FaultCase]) -> Vec<FaultOutcome> {
    let next = AtomicUsize::new(0);
    let mut outcomes: Vec<(usize, FaultOutcome)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = Vec::new();
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let Some(case) = cases.get(at) else { return done };
                        done.push((at, case.run(binary, wire)));
                    }
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a case does not panic")).collect()
    });
    outcomes.sort_by_key(|(at, _)| *at);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}
