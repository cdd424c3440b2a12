//! Measures the cost of a repository's copy: `cargo run --release -p lathe-changes --example repository -- 10000`.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Instant;

use lathe_changes::Quarantine;

fn main() {
    let count: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(10_000);
    let place = tempfile::tempdir().unwrap();
    let root = place.path().join("repository");
    std::fs::create_dir(&root).unwrap();
    let git = |words: &[&str]| Command::new("git").args(words).current_dir(&root).status().unwrap();
    git(&["init", "-q"]);
    // Loose objects, as many as asked for.
    for at in 0..count {
        std::fs::write(root.join(format!("{at}.txt")), format!("{at}\n")).unwrap();
    }
    let mut adding = Command::new("git")
        .args(["hash-object", "-w", "--stdin-paths"])
        .current_dir(&root)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let names: String = (0..count).map(|at| format!("{at}.txt\n")).collect();
    adding.stdin.take().unwrap().write_all(names.as_bytes()).unwrap();
    adding.wait().unwrap();
    let mut copies = Quarantine::new(place.path().join("quarantine")).repositories();
    std::thread::sleep(std::time::Duration::from_millis(200));
    for name in ["first copy", "second look, times not proven", "unchanged", "unchanged", "unchanged"] {
        let begun = Instant::now();
        copies.secure(&root, &[root.join(".git")]);
        println!("before a line, {name}: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3);
        let begun = Instant::now();
        assert!(copies.broken().is_empty() && copies.not_kept().is_empty());
        println!("after a line, {name}: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3);
    }
}
