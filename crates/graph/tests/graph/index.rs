//! Tests that the index gives the same answers as resolution, and is never older than the files.

use std::time::{Duration, Instant};

use lathe_graph::{Graph, MapRequest, QUESTIONS, Query, Snapshot, ask};
use rusqlite::Connection;

use crate::Place;

fn settle() {
    std::thread::sleep(Duration::from_millis(120));
}

/// Two languages, classes over three files, names that are imported under others, and an unknown receiver.
fn place() -> Place {
    Place::with(&[
        (
            "app/base.py",
            "class Base:\n    def save(self): pass\n    def load(self):\n        return self.save()\n",
        ),
        (
            "app/model.py",
            "from app.base import Base\nfrom app import tools as t\n\nclass Model(Base):\n    def __init__(self, name: str):\n        self.name = name\n    def save(self):\n        super().save()\n        t.clean(self.name)\n\nclass Special(Model):\n    pass\n",
        ),
        ("app/tools.py", "def clean(text):\n    return strip(text)\n\ndef strip(text):\n    return text\n"),
        (
            "app/main.py",
            "from app.model import Model as M, Special\nfrom .tools import clean as wash\n\ndef run(other):\n    model = M('a')\n    model.save()\n    other.save()\n    wash('x')\n    Special('b').load()\n",
        ),
        (
            "tests/test_model.py",
            "from app.model import Model\n\ndef test_save():\n    Model('x').save()\n\nclass TestAll:\n    def test_run(self):\n        from app.main import run\n        run(None)\n",
        ),
        (
            "web/a.ts",
            "export default function paint(x: number) { return mix(x); }\nfunction mix(x: number) { return x; }\n",
        ),
        ("web/b.ts", "import draw from './a';\nexport class Page { show() { draw(1); } }\n"),
    ])
}

/// Every answer there is about every name and file.
fn everything(snapshot: &Snapshot) -> Vec<String> {
    let query = Query::new(snapshot);
    let mut names: Vec<String> = snapshot.symbols().map(|symbol| snapshot.name(symbol).to_owned()).collect();
    names.extend(["Model.save", "model.py:save", "nothing.here", "app/main.py:5"].map(str::to_owned));
    names.sort();
    names.dedup();
    let mut all = Vec::new();
    for name in &names {
        for answer in [
            query.find(name, 20),
            query.def(name),
            query.refs(name),
            query.callers(name),
            query.callees(name),
            query.implements(name),
            query.tests_of(name),
        ] {
            all.push(format!("{name}: {answer:?}"));
        }
        let wish = MapRequest { budget: 120, words: vec![name.clone()], in_view: Vec::new() };
        all.push(format!("{name}: {:?}", query.map(&wish)));
    }
    for file in 0..snapshot.files.len() as u32 {
        let path = snapshot.path(file);
        all.push(format!("{path}: {:?}", query.imports(path)));
        all.push(format!("{path}: {:?}", query.outline(path)));
        all.push(format!(
            "{path}: {:?}",
            query.impact(&format!("--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-a\n+b\n"), 6)
        ));
    }
    all.push(format!("{:?}", query.map(&MapRequest { budget: 200, ..MapRequest::default() })));
    all
}

/// The answers by the index are those without it.
fn agree(snapshot: &Snapshot) {
    assert!(snapshot.has_index());
    for (by_index, resolved) in everything(snapshot).iter().zip(everything(&snapshot.without_index())) {
        assert_eq!(*by_index, resolved);
    }
}

fn callers(graph: &mut Graph, name: &str) -> String {
    ask(graph, "callers", name, 1000).unwrap().text
}

#[test]
fn the_index_answers_as_resolving_does() {
    let place = place();
    settle();
    agree(&place.fresh().0);
    // And as it is read from the database.
    let mut graph = place.graph();
    let (snapshot, _) = graph.present().unwrap();
    agree(&snapshot);
}

#[test]
fn an_edit_that_others_cannot_see_leaves_the_index_and_is_seen() {
    let place = place();
    settle();
    place.fresh();
    // Lines move, a call goes and another comes, and a class is inherited from below.
    place.write(
        "app/main.py",
        "from app.model import Model as M, Special\nfrom .tools import clean as wash\n\n\n\ndef run(other):\n    model = M('a')\n    model.load()\n    wash('x')\n    wash('y')\n",
    );
    for _ in 0..2 {
        let mut graph = place.graph();
        let (snapshot, _) = graph.present().unwrap();
        agree(&snapshot);
        assert!(
            callers(&mut graph, "clean").contains("app/main.py:9 function run"),
            "{}",
            callers(&mut graph, "clean")
        );
        assert!(!callers(&mut graph, "Model.save").contains("app/main.py"));
    }
}

#[test]
fn edit_rename_and_delete_are_seen_by_a_question_that_reads_little() {
    let place = place();
    settle();
    place.fresh();
    settle();
    let asked = |question: &str, target: &str| ask(&mut place.graph(), question, target, 1000).unwrap().text;
    assert!(asked("callers", "strip").starts_with("1 callers of strip\napp/tools.py:2 "));
    // What others can see changes: a new definition, and the numbers of those after it.
    place.write(
        "app/tools.py",
        "def first(): pass\n\ndef clean(text):\n    return text\n\ndef strip(text):\n    return first()\n",
    );
    assert!(asked("callers", "strip").starts_with("0 callers of strip\n"));
    assert!(
        asked("callers", "first").starts_with("1 callers of first\napp/tools.py:7 function strip [exact]\n")
    );
    agree(&place.graph().present().unwrap().0);
    std::fs::rename(place.root.path().join("app/tools.py"), place.root.path().join("app/utils.py")).unwrap();
    assert!(asked("def", "strip").contains("app/utils.py:6-7 function strip\n"));
    assert!(asked("callers", "clean").starts_with("0 callers of clean\n"), "{}", asked("callers", "clean"));
    std::fs::remove_file(place.root.path().join("app/utils.py")).unwrap();
    assert!(asked("def", "strip").starts_with("nothing named strip\n"));
    place.write("new/tools.py", "def strip(): pass\n");
    assert!(asked("def", "strip").contains("new/tools.py:1 function strip\n"));
    agree(&place.graph().present().unwrap().0);
}

#[test]
fn a_look_without_a_walk_misses_nothing() {
    let place = place();
    settle();
    let now = || {
        let mut graph = place.graph();
        let found: Vec<String> =
            (graph.present().unwrap().0.files.iter()).map(|file| file.path.to_string()).collect();
        found
    };
    let all = now();
    assert_eq!((all.len(), &now()), (7, &all));
    let kept = Connection::open(place.graph().database())
        .unwrap()
        .query_row("SELECT count(*) FROM derived WHERE id = -1", [], |row| row.get::<_, i64>(0))
        .unwrap();
    assert_eq!(kept, 1);
    // A file in a folder that had none, one that is ignored, and rules that change.
    place.write("app/deep/down/x.py", "def x(): pass\n");
    assert!(now().contains(&"app/deep/down/x.py".to_owned()));
    settle();
    now();
    place.write("app/deep/down/y.py", "def y(): pass\n");
    assert!(now().contains(&"app/deep/down/y.py".to_owned()));
    place.write(".gitignore", "y.py\n");
    assert!(!now().contains(&"app/deep/down/y.py".to_owned()));
    settle();
    now();
    now();
    // The rules change, and no folder does.
    place.write(".gitignore", "x.py\n");
    let left = now();
    assert!(
        left.contains(&"app/deep/down/y.py".to_owned()) && !left.contains(&"app/deep/down/x.py".to_owned())
    );
    settle();
    now();
    let exclude = place.root.path().join(".git/info/exclude");
    std::fs::create_dir_all(exclude.parent().unwrap()).unwrap();
    std::fs::write(&exclude, "b.ts\n").unwrap();
    assert!(!now().contains(&"web/b.ts".to_owned()));
    settle();
    now();
    now();
    std::fs::write(&exclude, "a.ts\n").unwrap();
    assert!(now().contains(&"web/b.ts".to_owned()) && !now().contains(&"web/a.ts".to_owned()));
    // A file becomes a folder, and one changes within the same length.
    settle();
    now();
    place.write(
        "app/tools.py",
        "def clean(text):\n    return strap(text)\n\ndef strap(text):\n    return text\n",
    );
    assert!(ask(&mut place.graph(), "def", "strap", 100).unwrap().text.starts_with("1 definitions"));
    std::fs::remove_file(place.root.path().join("app/tools.py")).unwrap();
    place.write("app/tools.py/z.py", "def z(): pass\n");
    assert!(now().contains(&"app/tools.py/z.py".to_owned()));
}

#[test]
fn a_process_that_stays_gets_the_index_beside_its_work_and_answers_meanwhile() {
    let place = place();
    settle();
    let mut graph = place.graph().watching();
    let until_indexed = |graph: &mut Graph| {
        let started = Instant::now();
        loop {
            let (snapshot, _) = graph.present().unwrap();
            if snapshot.has_index() {
                return agree(&snapshot);
            }
            assert!(callers(graph, "strip").starts_with("1 callers of strip\n"));
            assert!(started.elapsed() < Duration::from_secs(240));
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    until_indexed(&mut graph);
    place.write("app/more.py", "from app.tools import clean\n\ndef more():\n    clean('')\n");
    assert!(callers(&mut graph, "clean").contains("app/more.py:4 function more"));
    until_indexed(&mut graph);
    assert!(callers(&mut graph, "clean").contains("app/more.py:4 function more"));
}

#[test]
fn a_build_that_was_killed_or_had_company_leaves_no_index_that_lies() {
    let place = Place::new();
    for at in 0..1200 {
        place.write(&format!("f{at}.py"), format!("from f0 import shared\ndef f{at}(): return shared()\n"));
    }
    place.write("f0.py", "def shared(): pass\n");
    settle();
    let died = std::thread::scope(|scope| {
        scope.spawn(|| place.graph().refresh(&|done, _| assert!(done < 900, "killed"))).join().is_err()
    });
    assert!(died);
    let asked = || ask(&mut place.graph(), "callers", "shared", 100).unwrap().text;
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..3).map(|_| scope.spawn(asked)).collect();
        for one in all {
            let text = one.join().unwrap();
            assert!(
                text.starts_with("1199 callers of shared\n") || text.contains("still being built"),
                "{text}"
            );
        }
    });
    assert!(asked().starts_with("1199 callers of shared\n"));
    let (snapshot, refreshed) = place.graph().present().unwrap();
    assert_eq!((snapshot.has_index(), refreshed.parsed), (true, 0));
}

#[test]
fn a_damaged_index_or_damaged_facts_are_had_again_with_a_word() {
    let place = place();
    settle();
    place.fresh();
    let path = place.graph().database().to_owned();
    for damage in [
        "UPDATE derived SET value = zeroblob(length(value)) WHERE id > 0",
        "UPDATE derived SET checksum = checksum + 1 WHERE id = 0",
        "UPDATE contents SET facts = x'00'",
    ] {
        Connection::open(&path).unwrap().execute_batch(damage).unwrap();
        let mut graph = place.graph();
        let text = callers(&mut graph, "strip");
        assert!(
            text.starts_with("1 callers of strip\napp/tools.py:2 function clean [exact]\n"),
            "{damage}: {text}"
        );
        assert!(text.contains("could not be read"), "{damage}: {text}");
        assert!(!callers(&mut place.graph(), "strip").contains("note:"), "{damage}");
        agree(&place.graph().present().unwrap().0);
    }
}

#[test]
fn an_older_database_is_built_again_with_a_word() {
    let place = place();
    settle();
    place.fresh();
    let path = place.graph().database().to_owned();
    let db = Connection::open(&path).unwrap();
    db.execute_batch("DROP TABLE derived; PRAGMA user_version = 2").unwrap();
    drop(db);
    let asked = ask(&mut place.graph(), "def", "strip", 1000).unwrap().text;
    assert!(
        asked.contains("note: the code graph was made by an older Lathe and is built again\n"),
        "{asked}"
    );
    assert!(asked.starts_with("1 definitions of strip\n"), "{asked}");
    assert!(!ask(&mut place.graph(), "def", "strip", 1000).unwrap().text.contains("note:"));
}

#[test]
fn a_name_of_too_many_definitions_is_answered_for_some_and_says_so() {
    let place = Place::new();
    for at in 0..80 {
        place.write(
            &format!("m{at:02}.py"),
            "class A:\n    def go(self):\n        self.stop()\n    def stop(self): pass\n",
        );
    }
    let mut graph = place.graph();
    for question in
        QUESTIONS.iter().filter(|question| ["callees", "implements", "tests-of", "impact"].contains(question))
    {
        let text = ask(&mut graph, question, "go", 2000).unwrap().text;
        assert!(
            text.contains("note: 80 definitions are named go: this is about the first 64"),
            "{question}: {text}"
        );
    }
    assert!(ask(&mut graph, "callers", "stop", 400).unwrap().text.starts_with("80 callers of stop\n"));
    let one = ask(&mut graph, "callees", "m07.py:go", 400).unwrap().text;
    assert_eq!(one, "m07.py:go calls 1\nm07.py:4 method A.stop [exact]\n  def stop(self): pass\n");
    let json = ask(&mut graph, "callers", "stop", 100).unwrap().json;
    let shown = json["items"].as_array().unwrap().len();
    assert_eq!(json["left_out"].as_u64().unwrap() as usize + shown, 80);
}
