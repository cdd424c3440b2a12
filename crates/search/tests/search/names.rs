use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use lathe_search::{IgnoreOptions, NameQuery, Scope, SearchError, find_files};

use crate::Tree;

fn query(glob: &str) -> NameQuery {
    NameQuery {
        glob: glob.to_owned(),
        case_sensitive: false,
        most: 100,
        count_ignored: true,
        now: SystemTime::now(),
    }
}

fn names(tree: &Tree, scope: &Scope, query: &NameQuery) -> Vec<String> {
    let found = find_files(scope, query, &AtomicBool::new(false)).unwrap();
    found.files.iter().map(|file| tree.inside(&file.path)).collect()
}

fn aged(tree: &Tree, name: &str, hours: u64) {
    let file = std::fs::File::options().write(true).open(tree.root().join(name)).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(hours * 3600)).unwrap();
}

#[test]
fn what_changed_within_a_day_comes_first_and_newest_then_the_rest_by_name() {
    let tree = Tree::new(&[("z.rs", ""), ("b.rs", ""), ("a.rs", ""), ("new/y.rs", ""), ("x.RS", "")]);
    for (name, hours) in [("z.rs", 48), ("a.rs", 72), ("b.rs", 2), ("new/y.rs", 1), ("x.RS", 500)] {
        aged(&tree, name, hours);
    }
    let scope = tree.scope();
    assert_eq!(names(&tree, &scope, &query("**/*.rs")), ["new/y.rs", "b.rs", "a.rs", "x.RS", "z.rs"]);
    let exact = NameQuery { case_sensitive: true, ..query("*.rs") };
    assert_eq!(names(&tree, &scope, &exact), ["b.rs", "a.rs", "z.rs"]);
    let few = NameQuery { most: 1, ..query("**/*.rs") };
    let found = find_files(&scope, &few, &AtomicBool::new(false)).unwrap();
    assert_eq!((found.files.len(), found.total), (1, 5));
}

#[test]
fn ignored_files_are_counted_and_hidden_ones_found_when_asked() {
    let tree = Tree::new(&[(".gitignore", "out/\n"), ("out/a.txt", ""), ("b.txt", ""), (".c.txt", "")]);
    let found = find_files(&tree.scope(), &query("**/*.txt"), &AtomicBool::new(false)).unwrap();
    assert_eq!((found.total, found.ignored), (1, 1));
    let all = Scope { hidden: true, ignored: IgnoreOptions::INCLUDED, ..tree.scope() };
    let mut all = names(&tree, &all, &query("**/*.txt"));
    all.sort();
    assert_eq!(all, [".c.txt", "b.txt", "out/a.txt"]);
}

#[test]
fn links_to_folders_are_not_entered_and_bad_globs_are_told() {
    let tree = Tree::new(&[("a/b.txt", "")]);
    std::os::unix::fs::symlink(tree.root().join("a"), tree.root().join("link")).unwrap();
    assert_eq!(names(&tree, &tree.scope(), &query("**/*.txt")), ["a/b.txt"]);
    let wrong = find_files(&tree.scope(), &query("a["), &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(wrong, SearchError::Glob { .. }));
}

#[test]
fn a_closed_folder_is_neither_found_nor_counted() {
    let tree = Tree::new(&[
        ("data/lathe/auth.json", "TOPSECRET\n"),
        ("data/lathe/server/tokens.json", "TOPSECRET\n"),
        ("src/a.json", "plain\n"),
    ]);
    std::os::unix::fs::symlink("data/lathe", tree.root().join("lnk")).unwrap();
    let closed = Some(tree.root().join("data/lathe"));
    let scope = Scope {
        excluded_folder: closed,
        hidden: true,
        ignored: lathe_search::IgnoreOptions::INCLUDED,
        ..tree.scope()
    };
    let stop = std::sync::atomic::AtomicBool::new(false);
    let query = NameQuery { count_ignored: true, ..query("**/*.json") };
    let found = find_files(&scope, &query, &stop).unwrap();
    assert_eq!((found.files.len(), found.total, found.ignored), (1, 1, 0));
    let text =
        lathe_search::TextQuery { pattern: "TOPSECRET|plain".to_owned(), most: 100, ..Default::default() };
    let found = lathe_search::find_text(&scope, &text, &stop).unwrap();
    assert_eq!((found.files.len(), found.matches, found.left_out, found.unreadable), (1, 1, 0, 0));
    for start in ["data/lathe", "data/lathe/server"] {
        let inside = Scope { start: tree.root().join(start), ..scope.clone() };
        assert!(find_files(&inside, &query, &stop).is_err(), "{start}");
        assert!(lathe_search::find_text(&inside, &text, &stop).is_err(), "{start}");
    }
}
