//! Patterns and ignore files that nest without end: each is refused or passed over, and the process goes on.

use std::sync::atomic::AtomicBool;
use std::time::SystemTime;

use lathe_search::{
    GlobStyle, IgnoreOptions, IgnoreRules, NameQuery, Scope, SearchError, TextQuery, find_files, find_text,
    glob_matcher, glob_set, ignored_names, is_ignored, is_ignored_by_git, unread_own_file,
};

use crate::Tree;

const DEEP: usize = 100_000;

/// Patterns of a hundred thousand openings, closed and open.
fn deep() -> Vec<String> {
    let nested = |open: &str, close: &str| format!("{}a{}", open.repeat(DEEP), close.repeat(DEEP));
    [("{", "}"), ("{a,", "}"), ("{", ""), ("[", "]"), ("[", ""), ("(", ")"), ("!", ""), ("\\[{]", "}")]
        .map(|(open, close)| nested(open, close))
        .to_vec()
}

fn names(glob: &str) -> NameQuery {
    NameQuery {
        glob: glob.to_owned(),
        case_sensitive: true,
        most: 100,
        count_ignored: true,
        now: SystemTime::UNIX_EPOCH,
    }
}

fn text(pattern: &str) -> TextQuery {
    TextQuery { pattern: pattern.to_owned(), most: 100, ..TextQuery::default() }
}

/// The names that a search in the scope finds, by text and by name.
fn found(tree: &Tree, scope: &Scope) -> Vec<String> {
    let go = AtomicBool::new(false);
    let by_text = find_text(scope, &text("needle"), &go).unwrap();
    let mut by_text: Vec<String> = by_text.files.iter().map(|file| tree.inside(&file.path)).collect();
    let by_name = find_files(scope, &names("**/*.txt"), &go).unwrap();
    let mut by_name: Vec<String> = by_name.files.iter().map(|file| tree.inside(&file.path)).collect();
    by_text.sort();
    by_name.sort();
    assert_eq!(by_text, by_name);
    by_text
}

#[test]
fn every_place_that_takes_a_glob_refuses_one_without_bound() {
    let tree = Tree::new(&[("a.txt", "needle\n")]);
    let go = AtomicBool::new(false);
    for pattern in deep() {
        let list = vec![pattern.clone()];
        let include = Scope { include: list.clone(), ..tree.scope() };
        let exclude = Scope { exclude: list.clone(), ..tree.scope() };
        let refused = [
            glob_matcher(&pattern, GlobStyle::default()).map(drop),
            glob_set(&list, GlobStyle::default()).map(drop),
            find_files(&tree.scope(), &names(&pattern), &go).map(drop),
            find_text(&include, &text("needle"), &go).map(drop),
            find_files(&include, &names("*"), &go).map(drop),
        ];
        for (at, refused) in refused.into_iter().enumerate() {
            assert!(matches!(refused, Err(SearchError::Glob { .. })), "{at} {}", &pattern[..8]);
        }
        // `!` says what an exclusion is, however often.
        let excluded = find_text(&exclude, &text("needle"), &go);
        assert_eq!(excluded.is_ok(), pattern.starts_with('!'), "{}", &pattern[..8]);
        assert!(find_text(&Scope { types: list, ..tree.scope() }, &text("needle"), &go).is_err());
    }
    let many: Vec<String> = (0..DEEP).map(|at| at.to_string()).collect();
    assert!(glob_set(&many, GlobStyle::default()).is_err());
}

#[test]
fn a_line_without_bound_is_not_a_pattern_and_the_other_lines_count() {
    for file in [".gitignore", ".ignore", ".geminiignore", ".git/info/exclude"] {
        for line in deep() {
            for folder in ["", "sub/", "sub/deep/"] {
                let tree = Tree::new(&[
                    ("top.txt", "needle\n"),
                    ("sub/deep/kept.txt", "needle\n"),
                    ("sub/deep/out.txt", "needle\n"),
                ]);
                tree.put(&format!("{folder}{file}"), format!("{line}\nout.*\n").as_bytes());
                let what = format!("{folder}{file} {}", &line[..8]);
                assert_eq!(found(&tree, &tree.scope()), ["sub/deep/kept.txt", "top.txt"], "{what}");
                let below = Scope::new(tree.root(), tree.root().join("sub/deep"));
                assert_eq!(found(&tree, &below), ["sub/deep/kept.txt"], "{what}");
                let out = tree.root().join("sub/deep/out.txt");
                assert!(is_ignored(&tree.root(), &out, IgnoreOptions::RESPECTED), "{what}");
                let listed = ignored_names(&tree.root(), out.parent().unwrap(), IgnoreOptions::RESPECTED);
                assert!(listed.contains(out.file_name().unwrap()), "{what}");
                let _ = is_ignored_by_git(&tree.root(), &out);
            }
        }
    }
}

#[test]
fn a_line_without_bound_in_lathes_own_ignore_file_keeps_its_folder_out() {
    for line in deep() {
        let tree = Tree::new(&[("top.txt", "needle\n"), ("sub/deep/kept.txt", "needle\n")]);
        tree.put("sub/.latheignore", format!("{line}\nother\n").as_bytes());
        let sub = tree.root().join("sub");
        assert_eq!(found(&tree, &tree.scope()), ["top.txt"]);
        assert_eq!(unread_own_file(&sub), Some("line 1 is not a pattern".to_owned()));
        assert!(IgnoreRules::new(&tree.root(), IgnoreOptions::INCLUDED).excludes(&sub.join("deep/kept.txt")));
        tree.put(".latheignore", line.as_bytes());
        assert_eq!(found(&tree, &tree.scope()), Vec::<String>::new());
    }
}

#[test]
fn ignore_files_above_the_tree_are_bounded_too() {
    let above = Tree::new(&[("tree/in.txt", "needle\n"), ("tree/out.txt", "needle\n")]);
    let root = above.root().join("tree");
    for line in deep() {
        for file in [".gitignore", ".ignore", ".geminiignore", ".latheignore", ".git/info/exclude"] {
            let written = above.put(file, format!("{line}\nout.*\n").as_bytes());
            assert_eq!(found(&above, &Scope::new(&root, &root)), ["tree/in.txt"], "{file}");
            std::fs::remove_file(written).unwrap();
        }
    }
}

#[test]
fn an_ignore_file_of_countless_patterns_ends_soon() {
    let lines: String = (0..400_000).map(|at| format!("*{at}*\n")).collect();
    assert!(lines.len() < 4 << 20);
    let tree = Tree::new(&[("a.txt", "needle\n")]);
    tree.put(".gitignore", lines.as_bytes());
    tree.put("sub/.latheignore", lines.as_bytes());
    tree.put("sub/b.txt", b"needle\n");
    assert_eq!(found(&tree, &tree.scope()), ["a.txt"]);
}

#[test]
fn a_long_comment_and_a_pattern_of_many_alternatives_are_ordinary() {
    let tree = Tree::new(&[("a.txt", "needle\n"), ("k7.txt", "needle\n"), ("{{x}}.txt", "needle\n")]);
    let alternatives: Vec<String> = (0..1000).map(|at| format!("k{at}")).collect();
    let lines = format!("#{}\n{{{}}}.txt\n[{{][{{]*\n", "{".repeat(DEEP), alternatives.join(","));
    tree.put(".latheignore", lines.as_bytes());
    assert_eq!(found(&tree, &tree.scope()), ["a.txt"]);
}

#[test]
fn expressions_are_bounded_by_their_length_and_by_what_they_compile_to() {
    let tree = Tree::new(&[("a.txt", "needle\n")]);
    let go = AtomicBool::new(false);
    let find = |pattern: &str| find_text(&tree.scope(), &text(pattern), &go);
    for pattern in deep() {
        assert!(matches!(find(&pattern), Err(SearchError::LargePattern(_))), "{}", &pattern[..8]);
    }
    for pattern in [r"\w{5000}", r"(?i)\pL{400}", r"(\w{50}){50}", &r"(?i)\w".repeat(1_500)] {
        assert!(matches!(find(pattern), Err(SearchError::LargePattern(_))), "{pattern:.20}");
    }
    let without = TextQuery { without: Some(r"\w{5000}".to_owned()), ..text("needle") };
    assert!(matches!(find_text(&tree.scope(), &without, &go), Err(SearchError::LargePattern(_))));
    assert!(matches!(find(&"(".repeat(1000)), Err(SearchError::Pattern(_))));
    // Large patterns of people and models.
    let words: Vec<String> = (0..900).map(|at| format!("identifier{at}")).collect();
    let words = words.join("|");
    let identifiers = vec![r"\b[A-Za-z_]\w*\b"; 20].join(r"\s*,\s*");
    for pattern in
        [&format!("needle|{}", &words[..9_900]), &format!("needle|{identifiers}"), r"\w{6}", r".{0,500}e{2}"]
    {
        assert_eq!(find(pattern).unwrap().matches, 1, "{pattern:.40}");
    }
}
