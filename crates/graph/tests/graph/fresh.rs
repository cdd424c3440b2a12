//! Tests that the next answer is right after every kind of change to the files, and that nothing is parsed twice.

use std::time::Duration;

use crate::{Place, git, names};

/// Past the moment in which a file could be written again without looking different.
fn settle() {
    std::thread::sleep(Duration::from_millis(120));
}

#[test]
fn edit_rename_delete_are_seen_at_once() {
    let place = Place::with(&[("a.py", "def one(): pass\n"), ("b.py", "def two(): pass\n")]);
    let mut graph = place.graph();
    let now = |graph: &mut lathe_graph::Graph| {
        let (snapshot, refreshed) = graph.fresh(&|_, _| ()).unwrap();
        (names(&snapshot), refreshed.parsed)
    };
    assert_eq!(now(&mut graph), (vec!["a.py:one".into(), "b.py:two".into()], 2));
    assert_eq!(now(&mut graph).1, 0);
    // Twice within one tick of the clock, with the same length.
    place.write("a.py", "def uno(): pass\n");
    assert_eq!(now(&mut graph), (vec!["a.py:uno".into(), "b.py:two".into()], 1));
    place.write("a.py", "def dos(): pass\n");
    assert_eq!(now(&mut graph), (vec!["a.py:dos".into(), "b.py:two".into()], 1));
    std::fs::rename(place.root.path().join("b.py"), place.root.path().join("c.py")).unwrap();
    assert_eq!(now(&mut graph), (vec!["a.py:dos".into(), "c.py:two".into()], 0));
    std::fs::remove_file(place.root.path().join("a.py")).unwrap();
    assert_eq!(now(&mut graph), (vec!["c.py:two".into()], 0));
}

#[test]
fn branches_and_stashes_parse_nothing_that_was_seen() {
    let place = Place::with(&[("a.py", "def one(): pass\n")]);
    let root = place.root.path();
    git(root, &["init", "-q"]);
    git(root, &["add", "."]);
    git(root, &["commit", "-qm", "a"]);
    place.fresh();
    git(root, &["checkout", "-qb", "other"]);
    place.write("a.py", "def two(): pass\n");
    git(root, &["commit", "-qam", "b"]);
    assert_eq!(place.fresh().1.parsed, 1);
    for (branch, name) in [("main", "one"), ("other", "two"), ("main", "one")] {
        git(root, &["checkout", "-q", branch]);
        let (snapshot, refreshed) = place.fresh();
        assert_eq!((names(&snapshot), refreshed.parsed), (vec![format!("a.py:{name}")], 0));
    }
    place.write("a.py", "def three(): pass\n");
    assert_eq!(names(&place.fresh().0), ["a.py:three"]);
    git(root, &["stash", "-q"]);
    let (snapshot, refreshed) = place.fresh();
    assert_eq!((names(&snapshot), refreshed.parsed), (vec!["a.py:one".into()], 0));
    git(root, &["stash", "pop", "-q"]);
    let (snapshot, refreshed) = place.fresh();
    assert_eq!((names(&snapshot), refreshed.parsed), (vec!["a.py:three".into()], 0));
}

#[test]
fn a_file_that_did_not_change_is_not_read_again() {
    let place = Place::with(&[("a.py", "def one(): pass\n")]);
    place.fresh();
    settle();
    let (_, second) = place.fresh();
    let (_, third) = place.fresh();
    assert_eq!((second.parsed, third.parsed, third.reused), (0, 0, 0));
}

#[test]
fn ignored_and_hidden_files_and_links_stay_out() {
    let place = Place::with(&[
        (".gitignore", "out/\n*.gen.py\n"),
        ("a.py", "def a(): pass\n"),
        ("a.gen.py", "def b(): pass\n"),
        ("out/c.py", "def c(): pass\n"),
        (".hidden/d.py", "def d(): pass\n"),
        ("node_modules/e.js", "function e() {}\n"),
        ("notes.txt", "def f(): pass\n"),
    ]);
    std::os::unix::fs::symlink(place.root.path(), place.root.path().join("loop")).unwrap();
    std::os::unix::fs::symlink("/usr/lib", place.root.path().join("away")).unwrap();
    assert_eq!(names(&place.fresh().0), ["a.py:a"]);
}

#[test]
fn traes_tables_can_be_read_with_sql() {
    let place = Place::with(&[(
        "a.py",
        "class K(B):\n    x = 1\n    def m(self, a) -> int:\n        def inner(): pass\n        return 1\n\ndef f():\n    return 'é'\n",
    )]);
    let mut graph = place.graph();
    graph.fresh(&|_, _| ()).unwrap();
    let db = rusqlite::Connection::open(graph.database()).unwrap();
    let root = place.root.path().canonicalize().unwrap();
    let functions: Vec<(String, String, String, i64, i64, Option<String>, Option<String>)> = db
        .prepare("SELECT name, file_path, body, start_line, end_line, parent_function, parent_class FROM functions ORDER BY id")
        .unwrap()
        .query_map([], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?, row.get(5)?, row.get(6)?))
        })
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let path = root.join("a.py").to_str().unwrap().to_owned();
    assert_eq!(
        functions,
        [
            (
                "m".into(),
                path.clone(),
                "def m(self, a) -> int:\n        def inner(): pass\n        return 1".into(),
                3,
                5,
                None,
                Some("K".into())
            ),
            ("inner".into(), path.clone(), "def inner(): pass".into(), 4, 4, Some("m".into()), None),
            ("f".into(), path.clone(), "def f():\n    return 'é'".into(), 7, 8, None, None),
        ]
    );
    let class: (String, String, String) = db
        .query_row("SELECT name, fields, methods FROM classes", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(class, ("K".into(), "- x = 1".into(), "- def m(self, a) -> int".into()));
}
