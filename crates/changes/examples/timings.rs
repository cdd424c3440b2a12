//! Prints what tracking costs: `cargo run --release -p lathe-changes --example timings [FILES]`.
//!
//! Everything lies in a temporary folder on the disk of the current one, not in a memory file system, so that syncs cost
//! what they cost.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lathe_blobs::Blobs;
use lathe_changes::{Tracker, TrackerLimits, TrackerOptions, Watch, net, restore};

fn main() {
    let files: usize = std::env::args().nth(1).map_or(50_000, |text| text.parse().unwrap());
    let home = tempfile::tempdir_in(".").unwrap();
    let home = fs::canonicalize(home.path()).unwrap();
    blobs(&home.join("store"));
    let root = home.join("tree");
    for number in 0..files {
        let folder = root.join(format!("d{}/s{}", number / 5000, number / 100));
        if number % 100 == 0 {
            fs::create_dir_all(&folder).unwrap();
        }
        fs::write(folder.join(format!("file{number}.txt")), format!("line of {number}\n").repeat(20))
            .unwrap();
    }
    std::thread::sleep(Duration::from_millis(500));
    println!("{files} files, no git");
    tracking(&root, &home, Watch::On);
    println!("{files} files, no git, no watcher");
    tracking(&root, &home, Watch::Off);
    git(&root, &["init", "-q", "."]);
    git(&root, &["add", "-A"]);
    let quiet =
        ["-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "user.name=n", "-c", "user.email=e"];
    git(&root, &[&quiet[..], &["commit", "-qm", "all"]].concat());
    std::thread::sleep(Duration::from_millis(500));
    println!("{files} files, clean in git");
    tracking(&root, &home, Watch::On);
    git(&root, &["checkout", "-q", "--", "."]);
    fs::write(root.join(".gitattributes"), "* text=auto\n").unwrap();
    git(&root, &["gc", "-q"]);
    std::thread::sleep(Duration::from_millis(500));
    println!("{files} files, clean in git, packed, text=auto");
    tracking(&root, &home, Watch::On);
}

fn tracking(root: &Path, home: &Path, watch: Watch) {
    let options = TrackerOptions {
        root: root.to_owned(),
        blobs: Blobs::open(home.join("blobs")).unwrap(),
        scratch: home.join("scratch"),
        limits: TrackerLimits::default(),
        exclude: Vec::new(),
        watch,
    };
    let blobs = options.blobs.clone();
    let memory = resident();
    let mut tracker = timed("  secure", || Tracker::secure(options).unwrap());
    println!("  {:?}, {} KiB more memory", tracker.secured(), resident().saturating_sub(memory));
    timed("  refresh, nothing changed", || tracker.refresh().unwrap());
    let folder = root.join("d0/s1");
    for round in 0..3 {
        fs::write(folder.join("file107.txt"), format!("changed {round} {:?}\n", Instant::now())).unwrap();
        timed("  compare, one file changed", || assert_eq!(tracker.compare().unwrap().changes.len(), 1));
    }
    timed("  full check, nothing changed", || tracker.full_check().unwrap());
    fs::remove_dir_all(root.join("d1")).unwrap();
    let compared = timed("  compare, a tenth deleted", || tracker.compare().unwrap());
    println!("  {} changes, {} not undoable", compared.changes.len(), compared.not_undoable.len());
    let plan = timed("  plan", || restore::plan(&net(&compared.changes), &blobs, root).unwrap());
    let applied = timed("  restore", || restore::apply(&plan, &blobs, root).unwrap());
    assert_eq!((applied.changes.len(), applied.left.len()), (compared.changes.len(), 0));
    println!("  {} KiB more memory at the end", resident().saturating_sub(memory));
}

/// The two ways to make blobs durable.
fn blobs(dir: &Path) {
    let store = Blobs::open(dir.to_owned()).unwrap();
    for number in [1, 2, 10, 20, 24, 50, 500, 5000] {
        let content = |way: &str, at: usize| format!("{way} {number} {at}").repeat(50);
        let start = Instant::now();
        if number <= 500 {
            (0..number).for_each(|at| drop(store.put(content("put", at).as_bytes()).unwrap()));
        }
        let one_by_one = start.elapsed();
        let start = Instant::now();
        let batch = store.batch();
        (0..number).for_each(|at| drop(batch.put(content("batch", at).as_bytes()).unwrap()));
        batch.finish().unwrap();
        println!("{number} blobs: put {one_by_one:?}, batch {:?}", start.elapsed());
    }
}

fn timed<T>(what: &str, act: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let done = act();
    println!("{what}: {:.1} ms", start.elapsed().as_secs_f64() * 1000.0);
    done
}

fn git(root: &Path, arguments: &[&str]) {
    assert!(Command::new("git").current_dir(root).args(arguments).status().unwrap().success());
}

/// KiB, where the system tells.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}
