use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use lathe_search::{Ignored, NameQuery, Scope, SearchError, find_files};

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
    let all = Scope { hidden: true, ignored: Ignored::INCLUDED, ..tree.scope() };
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
