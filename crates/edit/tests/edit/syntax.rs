//! The errors that a grammar finds after an edit.

use lathe_edit::syntax::{SkipReason, Syntax, SyntaxCache, SyntaxError, added_errors, syntax_errors};
use lathe_grammars::Language;

fn error(line: usize, column: usize, near: &str) -> SyntaxError {
    SyntaxError { line, column, near: near.to_owned() }
}

#[test]
fn errors_are_named_with_their_place() {
    assert_eq!(syntax_errors(Language::Rust, b"fn f() {}\n"), Syntax::Checked(vec![]));
    let Syntax::Checked(errors) = syntax_errors(Language::Rust, b"fn f() {\n    g(1;\n}\n") else { panic!() };
    assert!(!errors.is_empty() && errors[0].line == 2, "{errors:?}");
    let missing = syntax_errors(Language::C, b"int a = 1\nint b;\n");
    assert_eq!(missing, Syntax::Checked(vec![error(1, 10, "missing ;")]));
    // Columns are characters, and other encodings are read.
    let utf16: Vec<u8> =
        "\u{feff}/* \u{e9}\u{1f600} */ int a = 1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(syntax_errors(Language::C, &utf16), Syntax::Checked(vec![error(1, 19, "missing ;")]));
}

#[test]
fn what_cannot_be_checked_is_said() {
    assert_eq!(syntax_errors(Language::C, b"a\0b"), Syntax::Skipped(SkipReason::Binary));
    let large = vec![b'\n'; 2 * 1024 * 1024 + 1];
    assert_eq!(syntax_errors(Language::C, &large), Syntax::Skipped(SkipReason::TooLarge));
    let Syntax::Checked(errors) = syntax_errors(Language::Json, "{]\n".repeat(5_000).as_bytes()) else {
        panic!()
    };
    assert!(errors.len() <= 100);
}

#[test]
fn only_what_an_edit_made_worse_counts() {
    let (a, b, c) = (error(1, 1, "a"), error(2, 1, "b"), error(3, 1, "c"));
    let moved = error(9, 1, "a");
    assert_eq!(added_errors(&[], &[]), []);
    assert_eq!(added_errors(std::slice::from_ref(&a), std::slice::from_ref(&a)), []);
    assert_eq!(added_errors(&[a.clone(), b.clone()], std::slice::from_ref(&c)), []);
    assert_eq!(added_errors(std::slice::from_ref(&a), &[b.clone(), moved]), vec![b.clone()]);
    assert_eq!(added_errors(&[], &[a.clone(), b.clone()]), [a, b]);
}

#[test]
fn parsing_from_the_tree_before_gives_what_parsing_anew_gives() {
    let mut cache = SyntaxCache::default();
    let line = "fn f(a: u32) -> u32 { if a > 1 { g(a) } else { 2 } }\n";
    let base = line.repeat(300);
    for (at, old, new) in [(10, "a > 1", "a > "), (250, "g(a)", "g(a"), (0, "fn", "fun"), (299, "}\n", "")] {
        let start: usize = line.len() * at;
        let place = start + base[start..].find(old).unwrap();
        let after = format!("{}{new}{}", &base[..place], &base[place + old.len()..]);
        let (before, edited) = cache.check_edit(Language::Rust, base.as_bytes(), after.as_bytes());
        assert_eq!(before, Syntax::Checked(vec![]));
        let Syntax::Checked(errors) = edited else { panic!() };
        assert!(!errors.is_empty(), "{old} -> {new}");
        let Syntax::Checked(anew) = syntax_errors(Language::Rust, after.as_bytes()) else { panic!() };
        assert_eq!(errors.is_empty(), anew.is_empty());
        assert_eq!(errors[0].line, anew[0].line);
        // Back again, from the broken one: the answer is kept.
        assert_eq!(cache.check(Language::Rust, base.as_bytes()), Syntax::Checked(vec![]));
    }
}
