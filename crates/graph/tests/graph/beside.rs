//! Tests the background build, the watcher that saves checking the files, and the removal of unused graphs.

use std::fs::File;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use lathe_graph::{BackgroundBuild, UNUSED, ask, expire_databases, unused_databases};

use crate::{Place, names};

fn many(count: usize) -> Place {
    let place = Place::new();
    for at in 0..count {
        place.write(&format!("f{at:04}.py"), format!("def f{at}(): return {at}\n"));
    }
    place
}

fn settle() {
    std::thread::sleep(Duration::from_millis(120));
}

fn until_done(background: &BackgroundBuild) {
    let started = Instant::now();
    while !background.is_done() {
        assert!(started.elapsed() < Duration::from_secs(240));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_question_during_the_first_build_answers_from_what_is_there_and_says_so() {
    let place = many(1200);
    let (blocked, reached) = channel();
    let (release, released) = channel::<()>();
    let (released, blocked) = (std::sync::Mutex::new(released), std::sync::Mutex::new(Some(blocked)));
    std::thread::scope(|scope| {
        let builder = scope.spawn(|| {
            let mut graph = place.graph();
            graph.refresh(&|done, all| {
                if done >= 1000
                    && done < all
                    && let Some(blocked) = blocked.lock().unwrap().take()
                {
                    blocked.send(()).unwrap();
                    let _ = released.lock().unwrap().recv();
                }
            })
        });
        reached.recv().unwrap();
        // Waiting for the builder would never end.
        let asked = ask(&mut place.graph(), "find", "f1", 100).unwrap();
        let word =
            "note: the index is still being built: 1000 of 1200 files; this answer is from what is there\n";
        assert!(asked.text.ends_with(word), "{}", asked.text);
        assert!(asked.text.contains("f0001.py:1 function f1\n"), "{}", asked.text);
        release.send(()).unwrap();
        assert_eq!(builder.join().unwrap().unwrap().parsed, 1200);
    });
    let asked = ask(&mut place.graph(), "def", "f1199", 100).unwrap();
    assert_eq!(asked.text, "1 definitions of f1199\nf1199.py:1 function f1199\n  def f1199(): return 1199\n");
}

#[test]
fn what_is_being_read_again_is_not_answered_from_older_facts() {
    let place = many(100);
    settle();
    let mut graph = place.graph();
    graph.refresh(&|_, _| ()).unwrap();
    settle();
    for at in 0..80 {
        place.write(&format!("f{at:04}.py"), format!("def new{at}(): return {at}\n"));
    }
    let lock = File::create(graph.database().with_extension("db.lock")).unwrap();
    lock.try_lock().unwrap();
    let gone = ask(&mut graph, "def", "f1", 100).unwrap().text;
    assert!(gone.starts_with("nothing named f1\n") && gone.contains("20 of 100 files"), "{gone}");
    assert!(ask(&mut graph, "def", "f99", 100).unwrap().text.starts_with("1 definitions of f99\n"));
    drop(lock);
    assert_eq!(
        ask(&mut graph, "def", "new1", 100).unwrap().text,
        "1 definitions of new1\nf0001.py:1 function new1\n  def new1(): return 1\n"
    );
}

#[test]
fn the_background_build_reads_everything() {
    let place = many(300);
    settle();
    let background = BackgroundBuild::start(place.root.path(), place.home.path(), Duration::ZERO).unwrap();
    until_done(&background);
    let (snapshot, refreshed) = place.fresh();
    assert_eq!((snapshot.files.len(), refreshed.parsed), (300, 0));
}

#[test]
fn a_background_build_that_is_stopped_leaves_nothing_running_and_is_gone_on_with() {
    let place = many(3000);
    settle();
    let database = place.graph().database().to_owned();
    let background = BackgroundBuild::start(place.root.path(), place.home.path(), Duration::ZERO).unwrap();
    let rows = || {
        let db = rusqlite::Connection::open(&database).unwrap();
        db.query_row("SELECT count(*) FROM files", [], |row| row.get::<_, i64>(0)).unwrap_or(0)
    };
    let started = Instant::now();
    while rows() == 0 && started.elapsed() < Duration::from_secs(240) {
        std::thread::sleep(Duration::from_millis(2));
    }
    background.stop();
    let kept = rows() as usize;
    assert!((1..3000).contains(&kept), "{kept}");
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(rows() as usize, kept);
    let (snapshot, refreshed) = place.fresh();
    assert_eq!((snapshot.files.len(), refreshed.parsed), (3000, 3000 - kept));
}

#[test]
fn what_ends_at_once_is_never_indexed() {
    let place = many(3);
    BackgroundBuild::start(place.root.path(), place.home.path(), Duration::from_secs(60)).unwrap().stop();
    drop(BackgroundBuild::start(place.root.path(), place.home.path(), Duration::from_secs(60)));
    assert_eq!(std::fs::read_dir(place.home.path()).unwrap().count(), 0);
}

#[test]
fn a_folder_without_source_a_home_and_the_whole_machine_are_not_indexed() {
    let place = Place::with(&[("notes.txt", "def f(): pass\n"), ("node_modules/a.js", "f();\n")]);
    let background = BackgroundBuild::start(place.root.path(), place.home.path(), Duration::ZERO).unwrap();
    until_done(&background);
    assert_eq!(std::fs::read_dir(place.home.path()).unwrap().count(), 0);
    assert!(BackgroundBuild::start("/".as_ref(), place.home.path(), Duration::ZERO).is_none());
    if let Some(home) = std::env::var_os("HOME") {
        assert!(BackgroundBuild::start(home.as_ref(), place.home.path(), Duration::ZERO).is_none());
    }
}

#[test]
fn a_watched_repository_is_only_looked_at_when_something_happened() {
    let place = Place::with(&[("a.py", "def one(): pass\n"), ("deep/er/b.py", "def two(): pass\n")]);
    settle();
    let mut graph = place.graph().watching();
    let look = |graph: &mut lathe_graph::Graph, parsed: usize, walked: bool, expected: &[&str]| {
        let (snapshot, refreshed) = graph.fresh(&|_, _| ()).unwrap();
        let known = (refreshed.parsed, refreshed.walk > Duration::ZERO, names(&snapshot));
        assert_eq!(known, (parsed, walked, expected.iter().map(|name| (*name).to_owned()).collect()));
        settle();
    };
    look(&mut graph, 2, true, &["a.py:one", "deep/er/b.py:two"]);
    look(&mut graph, 0, false, &["a.py:one", "deep/er/b.py:two"]);
    place.write("deep/er/b.py", "def tres(): pass\n");
    look(&mut graph, 1, false, &["a.py:one", "deep/er/b.py:tres"]);
    // Within one tick of the clock, with the same length.
    place.write("deep/er/b.py", "def vier(): pass\n");
    let (snapshot, _) = graph.fresh(&|_, _| ()).unwrap();
    assert!(names(&snapshot).contains(&"deep/er/b.py:vier".to_owned()));
    place.write("deep/er/b.py", "def tres(): pass\n");
    look(&mut graph, 0, false, &["a.py:one", "deep/er/b.py:tres"]);
    look(&mut graph, 0, false, &["a.py:one", "deep/er/b.py:tres"]);
    place.write("deep/notes.txt", "nothing of interest");
    look(&mut graph, 0, false, &["a.py:one", "deep/er/b.py:tres"]);
    std::fs::rename(place.root.path().join("deep"), place.root.path().join("low")).unwrap();
    look(&mut graph, 0, true, &["a.py:one", "low/er/b.py:tres"]);
    place.write("new/folder/c.py", "def three(): pass\n");
    settle();
    look(&mut graph, 1, true, &["a.py:one", "low/er/b.py:tres", "new/folder/c.py:three"]);
    place.write(".gitignore", "low/\n");
    look(&mut graph, 0, true, &["a.py:one", "new/folder/c.py:three"]);
    std::fs::remove_file(place.root.path().join("new/folder/c.py")).unwrap();
    look(&mut graph, 0, false, &["a.py:one"]);
    place.write("d.py", "def four(): pass\n");
    look(&mut graph, 1, true, &["a.py:one", "d.py:four"]);
    // Editors write to a file next to it, then rename it over the old one.
    place.write("d.tmp.py", "def five(): pass\n");
    std::fs::rename(place.root.path().join("d.tmp.py"), place.root.path().join("d.py")).unwrap();
    look(&mut graph, 1, false, &["a.py:one", "d.py:five"]);
    look(&mut graph, 0, false, &["a.py:one", "d.py:five"]);
}

#[test]
fn graphs_nobody_asks_are_forgotten() {
    let (old, used) = (many(1), many(2));
    let home = old.home.path();
    let mut paths = Vec::new();
    for place in [&old, &used] {
        let mut graph =
            lathe_graph::Graph::open(place.root.path(), home, lathe_graph::GraphLimits::default()).unwrap();
        graph.refresh(&|_, _| ()).unwrap();
        paths.push(graph.database().to_owned());
    }
    assert!(unused_databases(home, UNUSED).is_empty());
    let long_ago = SystemTime::now() - UNUSED - Duration::from_secs(3600);
    let age = |path: &std::path::Path| {
        File::options().append(true).open(path).unwrap().set_modified(long_ago).unwrap();
    };
    age(&paths[0]);
    assert_eq!(unused_databases(home, UNUSED).len(), 1);
    // Being built, or written lately: in use.
    let lock = File::create(paths[0].with_extension("db.lock")).unwrap();
    lock.try_lock().unwrap();
    assert!(unused_databases(home, UNUSED).is_empty());
    drop(lock);
    std::fs::write(paths[0].with_extension("db-wal"), "").unwrap();
    assert!(unused_databases(home, UNUSED).is_empty());
    age(&paths[0].with_extension("db-wal"));
    assert_eq!(expire_databases(home, UNUSED), 1);
    let left: Vec<_> = std::fs::read_dir(home).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, [paths[1].clone()]);
}
