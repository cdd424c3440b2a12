//! Tests odd files in the repository and damage to the database: no crash, no hang, and the rest is right.

use lathe_graph::{Gap, GraphLimits};

use crate::{Place, names};

fn left_out(place: &Place) -> Vec<(String, Gap)> {
    place.fresh().0.left_out.clone()
}

#[test]
fn syntax_errors_cost_only_what_they_touch() {
    let place =
        Place::with(&[("a.py", "def one(): pass\n\ndef broken():\n    x = = 1 +\n\ndef two(): pass\n")]);
    let found = names(&place.fresh().0);
    assert!(found.contains(&"a.py:one".into()) && found.contains(&"a.py:two".into()), "{found:?}");
}

#[test]
fn what_is_no_source_is_left_out_with_a_word() {
    let place = Place::with(&[("good.py", "def good(): pass\n")]);
    place.write("big.js", "var a = 1;\n".repeat(300_000));
    place.write("min.js", format!("function a(){{return 1}};{}", "a();".repeat(5000)));
    place.write("binary.py", b"def x(): pass\n\0\x01\x02".as_slice());
    place.write("latin.py", b"# caf\xe9\ndef latin(): pass\n".as_slice());
    place.write("empty.py", "");
    assert_eq!(
        left_out(&place),
        [
            ("big.js".into(), Gap::TooLarge),
            ("binary.py".into(), Gap::Binary),
            ("min.js".into(), Gap::Minified)
        ]
    );
    assert_eq!(names(&place.fresh().0), ["good.py:good", "latin.py:latin"]);
}

#[test]
fn a_fifty_megabyte_file_is_not_even_read() {
    let place = Place::with(&[("good.py", "def good(): pass\n")]);
    let file = std::fs::File::create(place.root.path().join("huge.js")).unwrap();
    file.set_len(50 << 20).unwrap();
    assert_eq!(left_out(&place), [("huge.js".into(), Gap::TooLarge)]);
}

/// An attack on the server: `globset` recurses over nested braces, so the start of a session in such a folder ended it.
#[test]
fn ignore_files_without_bound_leave_the_others_lines_to_count() {
    let deep = 100_000;
    for (open, close) in [("{", "}"), ("{a,", "}"), ("[", ""), ("(", ")"), ("!", "")] {
        let line = format!("{}a{}", open.repeat(deep), close.repeat(deep));
        let place = Place::with(&[("in.py", "def a(): pass\n"), ("out.py", "def b(): pass\n")]);
        place.write("sub/c.py", "def c(): pass\n");
        place.write("closed/d.py", "def d(): pass\n");
        place.write("closed/.latheignore", &line);
        for file in [".gitignore", ".ignore", ".git/info/exclude", "sub/.gitignore", "sub/.ignore"] {
            place.write(file, format!("{line}\nout.*\n"));
        }
        assert_eq!(names(&place.fresh().0), ["in.py:a", "sub/c.py:c"], "{open}");
    }
}

#[test]
fn deep_nesting_needs_no_stack() {
    let place = Place::new();
    let deep = 20_000;
    place
        .write("a.js", format!("function outer() {{ return {}1{}; }}\n", "[".repeat(deep), "]".repeat(deep)));
    place.write("b.py", format!("def f():\n    return {}1{}\n", "(".repeat(deep), ")".repeat(deep)));
    place.write("c.c", format!("int f(void) {{ return {}1{}; }}\n", "(".repeat(deep), ")".repeat(deep)));
    place.write("d.py", "def good(): pass\n");
    // On a small stack, as a thread of a server has.
    std::thread::scope(|scope| {
        std::thread::Builder::new()
            .stack_size(512 << 10)
            .spawn_scoped(scope, || assert!(names(&place.fresh().0).contains(&"d.py:good".into())))
            .unwrap();
    });
}

#[test]
fn a_damaged_database_is_built_again_with_a_word() {
    let place = Place::with(&[("a.py", "def one(): pass\n")]);
    let path = place.graph().database().to_owned();
    place.fresh();
    for damage in [b"not a database at all, but longer than a header of one hundred bytes would be if it were one, honestly".to_vec(), Vec::new()] {
        for ending in ["db-wal", "db-shm"] {
            let _ = std::fs::remove_file(path.with_extension(ending));
        }
        std::fs::write(&path, &damage).unwrap();
        let mut graph = place.graph();
        assert_eq!(names(&graph.fresh(&|_, _| ()).unwrap().0), ["a.py:one"]);
        assert_eq!(graph.take_messages().len(), usize::from(!damage.is_empty()));
    }
    // Of the right version, but not whole.
    for table in ["meta", "contents", "files", "derived"] {
        let db = rusqlite::Connection::open(&path).unwrap();
        db.execute_batch(&format!("DROP TABLE {table}")).unwrap();
        drop(db);
        let mut graph = place.graph();
        assert_eq!(names(&graph.fresh(&|_, _| ()).unwrap().0), ["a.py:one"], "{table}");
    }
    // Damage in the middle, met while reading.
    {
        let mut graph = place.graph();
        for at in 0..200 {
            place.write(&format!("m{at}.py"), format!("def f{at}(): return {at}\n"));
        }
        graph.fresh(&|_, _| ()).unwrap();
        rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    }
    let mut bytes = std::fs::read(&path).unwrap();
    let length = bytes.len();
    bytes[8192..length.min(8192 * 12)].fill(0xa5);
    for ending in ["db-wal", "db-shm"] {
        let _ = std::fs::remove_file(path.with_extension(ending));
    }
    std::fs::write(&path, bytes).unwrap();
    let mut graph = place.graph();
    assert_eq!(graph.fresh(&|_, _| ()).unwrap().0.files.len(), 201);
    assert!(!graph.take_messages().is_empty());
}

#[test]
fn a_newer_database_is_built_again_with_a_word() {
    let place = Place::with(&[("a.py", "def one(): pass\n")]);
    place.fresh();
    let path = place.graph().database().to_owned();
    rusqlite::Connection::open(&path).unwrap().execute_batch("PRAGMA user_version = 99").unwrap();
    let mut graph = place.graph();
    assert_eq!(graph.take_messages(), ["the code graph was made by a newer Lathe and is built again"]);
    assert_eq!(names(&graph.fresh(&|_, _| ()).unwrap().0), ["a.py:one"]);
}

#[test]
fn two_builders_agree() {
    let place = Place::new();
    for at in 0..400 {
        place.write(&format!("d{}/f{at}.py", at % 7), format!("def f{at}(): return g{at}()\n"));
    }
    let parsed: usize = std::thread::scope(|scope| {
        let builders: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let (snapshot, refreshed) = place.fresh();
                    assert_eq!(snapshot.files.len(), 400);
                    refreshed.parsed
                })
            })
            .collect();
        builders.into_iter().map(|builder| builder.join().unwrap()).sum()
    });
    assert_eq!(parsed, 400, "the second waits for the first and parses nothing");
}

#[test]
fn a_killed_build_is_gone_on_with() {
    let place = Place::new();
    for at in 0..1500 {
        place.write(&format!("f{at}.py"), format!("def f{at}(): return {at}\n"));
    }
    // A builder that dies in the middle: its thread panics at the first word after a portion was committed.
    let died = std::thread::scope(|scope| {
        scope.spawn(|| place.graph().refresh(&|done, _| assert!(done < 1100, "killed"))).join().is_err()
    });
    assert!(died);
    let (snapshot, refreshed) = place.fresh();
    assert_eq!(snapshot.files.len(), 1500);
    assert!(refreshed.parsed < 1500, "what was committed is kept: {}", refreshed.parsed);
}

#[test]
fn files_that_change_while_they_are_read_end_up_right() {
    let place = Place::new();
    for at in 0..200 {
        place.write(&format!("f{at}.py"), "def old(): pass\n");
    }
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for at in 0..200 {
                place.write(&format!("f{at}.py"), format!("def new{at}(): pass\n"));
                if at % 3 == 0 {
                    let _ = std::fs::remove_file(place.root.path().join(format!("f{at}.py")));
                }
            }
        });
        while !writer.is_finished() {
            place.fresh();
        }
    });
    let found = names(&place.fresh().0);
    let wanted: Vec<String> = {
        let mut all: Vec<_> =
            (0..200).filter(|at| at % 3 != 0).map(|at| format!("f{at}.py:new{at}")).collect();
        all.sort_by(|a, b| a.split(':').next().cmp(&b.split(':').next()));
        all
    };
    assert_eq!(found, wanted);
}

#[test]
fn too_many_files_are_counted() {
    let place = Place::with(&[("a.py", "def a(): pass\n"), ("b.py", "def b(): pass\n")]);
    let limits = GraphLimits { files: 1, ..GraphLimits::default() };
    let mut graph = lathe_graph::Graph::open(place.root.path(), place.home.path(), limits).unwrap();
    let (snapshot, _) = graph.fresh(&|_, _| ()).unwrap();
    assert_eq!(
        (names(&snapshot), &*snapshot.left_out),
        (vec!["a.py:a".into()], &[("1 files".to_owned(), Gap::TooMany)][..])
    );
}
