//! Measures the speed of the graph on a folder, compared with the bare parse of its grammars: `speed FOLDER
//! [SYMBOL..]`, one JSON object.
//!
//! Everything is measured in this process: the parse and the build with the same threads over the same files, a
//! question with and without a watcher, and the cost of one changed file (in a copy of the folder, which is changed).
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::unwrap_used)]

use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use lathe_grammars::Language;
use lathe_graph::{Graph, GraphLimits, ask};

fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1000.0
}

/// The peak memory of this process, in MB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn sources(root: &Path, folder: &Path, limits: GraphLimits) -> Vec<std::path::PathBuf> {
    let mut graph = Graph::open(root, folder, limits).unwrap();
    let (snapshot, _) = graph.fresh(&|_, _| ()).unwrap();
    snapshot.files.iter().map(|file| root.join(&*file.path)).collect()
}

/// The time of reading and parsing alone.
fn bare(files: &[std::path::PathBuf], threads: usize) -> (Duration, u64) {
    let (next, bytes) = (AtomicUsize::new(0), AtomicU64::new(0));
    let started = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut parsers = std::collections::HashMap::new();
                while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let text = std::fs::read_to_string(path).unwrap_or_default();
                    let Some(language) = Language::of_path(&path.to_string_lossy()) else { continue };
                    let parser = parsers.entry(language as u8).or_insert_with(|| language.parser().unwrap());
                    bytes.fetch_add(text.len() as u64, Ordering::Relaxed);
                    drop(parser.parse(&text, None));
                }
            });
        }
    });
    (started.elapsed(), bytes.into_inner())
}

/// The best and the median time of several runs.
fn timed<T>(times: usize, mut work: impl FnMut() -> T) -> (f64, f64) {
    let run = |work: &mut dyn FnMut() -> T| {
        let started = Instant::now();
        drop(work());
        started.elapsed()
    };
    let mut all: Vec<Duration> = (0..times).map(|_| run(&mut work)).collect();
    all.sort();
    (milliseconds(all[0]), milliseconds(all[all.len() / 2]))
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let root = Path::new(&arguments.next().unwrap()).canonicalize().unwrap();
    let mut symbols: Vec<String> = arguments.collect();
    if symbols.is_empty() {
        symbols.push("main".into());
    }
    let symbol = symbols[0].clone();
    let limits = GraphLimits::default();
    let home = std::env::temp_dir().join(format!("lathe-graph-speed-{}", std::process::id()));
    // The memory of a build is measured before anything else has used some.
    let started = Instant::now();
    let refreshed = Graph::open(&root, &home, limits).unwrap().refresh(&|_, _| ()).unwrap();
    let build = started.elapsed();
    let build_memory = peak();
    let mut graph = Graph::open(&root, &home, limits).unwrap().watching();
    let (snapshot, second) = graph.fresh(&|_, _| ()).unwrap();
    let lines = snapshot.lines();
    let files = sources(&root, &home, limits);
    drop(snapshot);
    let first = ask(&mut graph, "callers", &symbol, 2000).unwrap();
    let load_memory = peak();
    // Caches are warm for both; the better of two for each.
    let parse = bare(&files, limits.threads).0.min(bare(&files, limits.threads).0);
    let bytes = bare(&files[..0], 1).1
        + files.iter().filter_map(|path| path.metadata().ok()).map(|meta| meta.len()).sum::<u64>();
    let mut warm = Duration::MAX;
    for _ in 0..2 {
        let _ = std::fs::remove_dir_all(home.join("again"));
        let started = Instant::now();
        Graph::open(&root, &home.join("again"), limits).unwrap().refresh(&|_, _| ()).unwrap();
        warm = warm.min(started.elapsed());
    }
    // The index is measured in the way that the first question after a build makes it.
    let started = Instant::now();
    Graph::open(&root, &home.join("again"), limits).unwrap().present().unwrap();
    let index = started.elapsed();
    let mut questions = serde_json::Map::new();
    let mut worst = 0.0f64;
    for symbol in &symbols {
        let file = ask(&mut graph, "def", symbol, 200).unwrap().json["items"][0]["path"].clone();
        let mut times = serde_json::Map::new();
        for question in lathe_graph::QUESTIONS {
            let target = match question {
                "imports" | "outline" => file.as_str().unwrap_or(symbol),
                _ => symbol,
            };
            let (best, median) = timed(21, || ask(&mut graph, question, target, 2000).unwrap());
            worst = worst.max(median);
            times.insert(question.into(), serde_json::json!(best));
        }
        questions.insert(symbol.clone(), times.into());
    }
    let mut unwatched = Graph::open(&root, &home, limits).unwrap();
    ask(&mut unwatched, "callers", &symbol, 2000).unwrap();
    let walked = timed(9, || ask(&mut unwatched, "callers", &symbol, 2000).unwrap()).0;
    let walk = timed(9, || unwatched.refresh(&|_, _| ()).unwrap()).0;
    // One file is changed, then the next answer is timed.
    let victim = files
        .iter()
        .max_by_key(|path| path.metadata().map_or(0, |meta| (meta.len() / 1000).min(30)))
        .unwrap();
    let before = std::fs::read(victim).unwrap();
    let mut times = Vec::new();
    for round in 0..5 {
        let mut text = before.clone();
        text.extend_from_slice(format!("\n\n\n{}", " ".repeat(round)).as_bytes());
        std::fs::write(victim, &text).unwrap();
        let started = Instant::now();
        ask(&mut graph, "callers", &symbol, 2000).unwrap();
        times.push(started.elapsed());
    }
    std::fs::write(victim, before).unwrap();
    times.sort();
    let _ = std::fs::remove_dir_all(&home);
    println!(
        "{}",
        serde_json::json!({
            "files": refreshed.files, "lines": lines, "bytes": bytes, "threads": limits.threads,
            "build_ms": milliseconds(build), "warm_build_ms": milliseconds(warm),
            "parse_ms": milliseconds(parse), "share": parse.as_secs_f64() / warm.as_secs_f64(),
            "build_mb": build_memory, "load_mb": load_memory,
            "load_ms": milliseconds(second.total),
            "walk_ms": walk, "walked_query_ms": walked, "query_ms": questions, "worst_median_ms": worst,
            "index_ms": milliseconds(index),
            "changed_ms": milliseconds(times[times.len() / 2]), "answer": first.text.lines().next(),
        })
    );
}
