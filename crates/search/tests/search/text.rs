use std::sync::atomic::AtomicBool;

use lathe_search::{
    CaseMode, IgnoreOptions, LineKind, Scope, SearchError, TextFindings, TextQuery, find_text,
};

use crate::Tree;

fn query(pattern: &str) -> TextQuery {
    TextQuery { pattern: pattern.to_owned(), most: 100, ..TextQuery::default() }
}

fn find(scope: &Scope, query: &TextQuery) -> TextFindings {
    find_text(scope, query, &AtomicBool::new(false)).unwrap()
}

/// `file:line:text`, with `-` for lines around.
fn told(tree: &Tree, found: &TextFindings) -> Vec<String> {
    let mut out = Vec::new();
    for file in &found.files {
        for line in &file.lines {
            let mark = if line.kind == LineKind::Context { '-' } else { ':' };
            out.push(format!("{}{mark}{}{mark}{}", tree.inside(&file.path), line.number, line.text));
        }
    }
    out
}

fn tree() -> Tree {
    Tree::new(&[
        ("a.rs", "fn one() {}\nlet Two = 2;\nfn three() {}\n"),
        ("b/c.py", "def one():\r\n    return 'a.b'\r\n"),
        ("b/d.txt", "axb\n-e one\n$& (x\n"),
        (".hidden", "one\n"),
        (".gitignore", "ignored\n"),
        ("ignored/x.rs", "one\n"),
        ("deep/e.rs", "fn main() {\n    body\n}\n"),
    ])
}

#[test]
fn patterns_case_words_and_globs_do_what_they_say() {
    let tree = tree();
    let scope = tree.scope();
    let rust = Scope { types: vec!["rust".into()], ..scope.clone() };
    let python = Scope { include: vec!["*.py".into()], ..scope.clone() };
    let no_text = Scope { exclude: vec!["*.txt".into()], ..scope.clone() };
    let hidden = Scope { hidden: true, ..scope.clone() };
    let all = Scope { hidden: true, ignored: IgnoreOptions::INCLUDED, ..scope.clone() };
    let below = Scope::new(tree.root(), tree.root().join("b"));
    let one_file = Scope::new(tree.root(), tree.root().join("b/c.py"));
    for (scope, query, expected) in [
        (&scope, query("fn o"), vec!["a.rs:1:fn one() {}"]),
        (&scope, query("two"), vec![]),
        (&scope, TextQuery { case: CaseMode::Insensitive, ..query("two") }, vec!["a.rs:2:let Two = 2;"]),
        (&scope, TextQuery { case: CaseMode::Smart, ..query("two") }, vec!["a.rs:2:let Two = 2;"]),
        (&scope, TextQuery { case: CaseMode::Smart, ..query("TWO") }, vec![]),
        (&scope, query("a.b"), vec!["b/c.py:2:    return 'a.b'", "b/d.txt:1:axb"]),
        (&scope, TextQuery { literal: true, ..query("a.b") }, vec!["b/c.py:2:    return 'a.b'"]),
        (&scope, TextQuery { literal: true, ..query("$& (") }, vec!["b/d.txt:3:$& (x"]),
        (&scope, query("-e one"), vec!["b/d.txt:2:-e one"]),
        (&scope, TextQuery { words: true, ..query("thre") }, vec![]),
        (&scope, TextQuery { literal: true, ..query("--pre=sh") }, vec![]),
        (&rust, query("one"), vec!["a.rs:1:fn one() {}"]),
        (&python, query("one"), vec!["b/c.py:1:def one():"]),
        (&no_text, query("one"), vec!["a.rs:1:fn one() {}", "b/c.py:1:def one():"]),
        (&hidden, query("^one"), vec![".hidden:1:one"]),
        (&all, query("^one"), vec![".hidden:1:one", "ignored/x.rs:1:one"]),
        (&below, query("one"), vec!["b/c.py:1:def one():", "b/d.txt:2:-e one"]),
        (&one_file, query("one"), vec!["b/c.py:1:def one():"]),
        (
            &scope,
            TextQuery { before: 1, after: 1, ..query("Two") },
            vec!["a.rs-1-fn one() {}", "a.rs:2:let Two = 2;", "a.rs-3-fn three() {}"],
        ),
        (
            &scope,
            TextQuery { multiline: true, ..query(r"main\(\) \{\s+body") },
            vec!["deep/e.rs:1:fn main() {", "deep/e.rs:2:    body"],
        ),
    ] {
        let found = find(scope, &query);
        assert_eq!(told(&tree, &found), expected, "{query:?}");
        assert_eq!(found.left_out, 0);
    }
}

#[test]
fn what_is_left_out_is_counted_and_what_is_kept_does_not_depend_on_threads() {
    let tree = Tree::new(&[]);
    for file in 0..200 {
        tree.put(&format!("d{}/f{file:03}", file % 7), "hit\nmiss\nhit\n".as_bytes());
    }
    let capped = TextQuery { most: 5, ..query("hit") };
    let first = find(&tree.scope(), &capped);
    assert_eq!((first.matches, first.matching_files, first.left_out), (400, 200, 395));
    assert_eq!(told(&tree, &first).len(), 5);
    for _ in 0..5 {
        assert_eq!(find(&tree.scope(), &capped), first);
    }
    let one_each = TextQuery { most: 3, most_per_file: Some(1), ..query("hit") };
    assert_eq!(find(&tree.scope(), &one_each).files.len(), 3);
    let names = TextQuery { names_only: true, most: 1000, ..query("hit") };
    let found = find(&tree.scope(), &names);
    assert_eq!((found.files.len(), found.files[0].lines.len()), (200, 0));
}

#[test]
fn binary_files_links_and_special_files_are_passed_over() {
    let tree = Tree::new(&[("plain", "needle\n")]);
    let outside = Tree::new(&[("secret", "needle\n")]);
    tree.put("binary", b"needle\n\0\n");
    std::os::unix::fs::symlink(outside.root().join("secret"), tree.root().join("link")).unwrap();
    std::os::unix::fs::symlink(outside.root(), tree.root().join("folder")).unwrap();
    std::os::unix::fs::symlink(tree.root(), tree.root().join("loop")).unwrap();
    nix::unistd::mkfifo(&tree.root().join("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let found = find(&tree.scope(), &query("needle"));
    assert_eq!(told(&tree, &found), ["plain:1:needle"]);
}

/// The walk follows a `.git` file to more files that it reads.
#[test]
fn a_pipe_that_a_git_file_leads_to_is_not_waited_for() {
    for pipe in ["own/commondir", "own/info/exclude"] {
        let files = [("plain", "needle\n"), ("tree/.git", "gitdir: ../own\n"), ("own/info/x", "")];
        let tree = Tree::new(&files);
        nix::unistd::mkfifo(&tree.root().join(pipe), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let found = find(&tree.scope(), &query("needle"));
        assert_eq!(told(&tree, &found), ["plain:1:needle"], "{pipe}");
    }
}

#[test]
fn encodings_with_a_mark_are_searched_as_text() {
    let tree = Tree::new(&[]);
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain("naïve\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    tree.put("wide", &utf16);
    assert_eq!(told(&tree, &find(&tree.scope(), &query("na.ve"))), ["wide:1:naïve"]);
}

#[test]
fn what_cannot_be_looked_for_is_told() {
    let tree = tree();
    let cancel = AtomicBool::new(false);
    let wrong = |scope: &Scope, pattern: &str| find_text(scope, &query(pattern), &cancel).unwrap_err();
    assert!(matches!(wrong(&tree.scope(), "a("), SearchError::Pattern(_)));
    let missing = Scope::new(tree.root(), tree.root().join("none"));
    assert!(matches!(wrong(&missing, "a"), SearchError::NotFound(_)));
    let glob = Scope { include: vec!["a[".into()], ..tree.scope() };
    assert!(matches!(wrong(&glob, "a"), SearchError::Glob { .. }));
    let kind = Scope { types: vec!["nonsense".into()], ..tree.scope() };
    assert!(matches!(wrong(&kind, "a"), SearchError::Type(_)));
    cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(matches!(wrong(&tree.scope(), "a"), SearchError::Cancelled));
}

#[test]
fn a_very_long_line_is_cut() {
    let tree = Tree::new(&[]);
    tree.put("long", format!("needle{}\n", "x".repeat(1 << 20)).as_bytes());
    let found = find(&tree.scope(), &query("needle"));
    assert!(found.files[0].lines[0].text.len() <= 8 * 1024);
}
