//! Exact counts, the fuzzy rung, whole files and transactions.

use lathe_edit::MatchKind::{Exact, Fuzzy, Indentation};
use lathe_edit::Occurrence::{All, Exactly, Unique};
use lathe_edit::{Edit, EditError, Looseness, Occurrence, edit_many, replace, replace_loosely, rewrite};

/// A row: description, content, old text, count, new content or the lines found.
type CountRow = (&'static str, &'static [u8], &'static str, usize, Result<&'static [u8], &'static [usize]>);
/// A row: description, content, old text, new text, new content.
type FuzzyRow = (&'static str, &'static str, &'static str, &'static str, Result<&'static str, EditError>);
/// A row: description, content, text, new content.
type WholeRow = (&'static str, &'static [u8], &'static str, Result<&'static [u8], EditError>);
/// A row: description, content, edits, new content.
type ManyRow = (&'static str, &'static [u8], Vec<Edit>, Result<&'static [u8], EditError>);

fn change(old: &str, new: &str) -> Edit {
    many(old, new, Unique)
}

fn many(old: &str, new: &str, how: Occurrence) -> Edit {
    Edit::Replace { old: old.to_owned(), new: new.to_owned(), how, loose: Looseness::Whitespace }
}

fn lines(range: std::ops::Range<usize>, text: &str) -> Edit {
    Edit::Lines { lines: range, text: text.to_owned() }
}

fn put(after_line: usize, text: &str) -> Edit {
    Edit::Insert { after_line, text: text.to_owned() }
}

fn whole(text: &str) -> Edit {
    Edit::Whole { text: text.to_owned() }
}

fn one(range: std::ops::Range<usize>) -> Vec<std::ops::Range<usize>> {
    std::iter::once(range).collect()
}

#[test]
fn an_exact_count_is_met_or_refused() {
    #[rustfmt::skip]
    let rows: &[CountRow] = &[
        ("one of one", b"a b", "a", 1, Ok(b"X b")),
        ("two of two", b"a b\na", "a", 2, Ok(b"X b\nX")),
        ("one of two", b"a b\na", "a", 1, Err(&[1, 2])),
        ("three of two", b"a b\na", "a", 3, Err(&[1, 2])),
        ("two that overlap are one", b"aaa", "aa", 2, Err(&[1])),
        ("one that overlaps is two", b"aaa", "aa", 1, Err(&[1, 1])),
        ("none of one", b"a", "a", 0, Err(&[1])),
        ("two at a looser rung", b"a\r\nb\r\na\r\nb\r\n", "a\nb\n", 2, Ok(b"XX")),
        ("one of two at a looser rung", b"a\r\nb\r\na\r\nb\r\n", "a\nb\n", 1, Err(&[1, 3])),
    ];
    for (name, content, old, count, wanted) in rows {
        let got = replace(content, old, "X", Exactly(*count)).map(|edited| edited.content);
        match wanted {
            Ok(wanted) => assert_eq!(got, Ok(wanted.to_vec()), "{name}"),
            Err(at) => {
                assert_eq!(got, Err(EditError::WrongCount { wanted: *count, lines: at.to_vec() }), "{name}");
            }
        }
    }
    assert_eq!(replace(b"b", "a", "X", Exactly(1)), Err(EditError::NoMatch { nearest: None }));
}

const CODE: &[u8] =
    b"fn area(width: u32, height: u32) -> u32 {\n    let result = width * height;\n    result\n}\n";

#[test]
fn a_fuzzy_match_is_made_only_when_asked_for_and_told() {
    let old = "    let reslt = width * heigth;\n";
    let new = "    let result = width + height;\n";
    assert!(matches!(replace(CODE, old, new, Unique), Err(EditError::NoMatch { nearest: Some(_) })));
    let edited = replace_loosely(CODE, old, new, Unique, Looseness::Fuzzy).unwrap();
    let wanted =
        "fn area(width: u32, height: u32) -> u32 {\n    let result = width + height;\n    result\n}\n";
    assert_eq!(String::from_utf8_lossy(&edited.content), wanted);
    assert_eq!((edited.matched, edited.found, edited.regions), (Fuzzy, one(2..3), one(2..3)));
}

#[test]
fn the_fuzzy_rung_has_its_bounds() {
    #[rustfmt::skip]
    let rows: &[FuzzyRow] = &[
        ("whitespace inside counts a tenth", "call( alpha,beta,  c );\n", "cal(alpha, beta, c);", "done();", Ok("done();\n")),
        ("too short", "abcdefghi\n", "abcdefghj", "x", Err(EditError::NoMatch { nearest: None })),
        ("too far", "let alpha = beta;\n", "let gamma = zeta;", "x", Err(EditError::NoMatch { nearest: None })),
        ("the nearer of two", "the_long_value_of_the_item_one = 100\nthe_long_value_of_the_item_two = 100\n", "the_long_value_of_the_item_onx = 100", "x", Ok("x\nthe_long_value_of_the_item_two = 100\n")),
        ("two the same", "some value = 10\nother\nsome value = 10\n", "some valie = 10", "x", Err(EditError::Ambiguous { lines: vec![1, 3] })),
        ("other number of lines", "alpha beta gamma\ndelta\n", "alpha beta gamma delta epsilon\nzeta\neta", "x", Err(EditError::NoMatch { nearest: None })),
        ("lines kept keep the file's bytes", "first line here\t\nsecond lime here\n", "first line here\nsecond line here\n", "first line here\nthird line\n", Ok("first line here\t\nthird line\n")),
        ("indentation is learned", "\tif ready(now) {\n\t\tstart(now);\n\t}\n", "    if ready(nov) {\n        start(now);\n    }\n", "    if ready(now) {\n        stop(now);\n    }\n", Ok("\tif ready(now) {\n\t\tstop(now);\n\t}\n")),
    ];
    for (name, content, old, new, wanted) in rows {
        let got = replace_loosely(content.as_bytes(), old, new, Unique, Looseness::Fuzzy);
        match (got, wanted) {
            (Err(EditError::NoMatch { .. }), Err(EditError::NoMatch { .. })) => {}
            (Ok(edited), Ok(wanted)) => {
                assert_eq!(String::from_utf8_lossy(&edited.content), *wanted, "{name}");
                assert_eq!(edited.matched, Fuzzy, "{name}");
            }
            (got, Err(wanted)) => assert_eq!(got.as_ref(), Err(wanted), "{name}"),
            (got, Ok(wanted)) => panic!("{name}: {got:?}, not {wanted}"),
        }
    }
    // A tighter rung wins even where fuzzy is allowed.
    let edited =
        replace_loosely(b"\tsome(text);\n", "  some(text);", "  other();", Unique, Looseness::Fuzzy).unwrap();
    assert_eq!((edited.content.as_slice(), edited.matched), (&b"\tother();\n"[..], Indentation));
    // All near places, where all are asked for.
    let content = b"some value = 10;\nother\nsome value = 10;\n";
    let edited = replace_loosely(content, "some valie = 10;", "x", All, Looseness::Fuzzy).unwrap();
    assert_eq!((edited.content.as_slice(), edited.replaced), (&b"x\nother\nx\n"[..], 2));
    // Too much work is not begun.
    let content = "some value = 10;\n".repeat(50_000);
    let old = "some other value = 1;\n".repeat(200);
    let got = replace_loosely(content.as_bytes(), &old, "x", Unique, Looseness::Fuzzy);
    assert!(matches!(got, Err(EditError::NoMatch { .. })));
}

#[test]
fn a_whole_file_keeps_mark_and_line_ending() {
    #[rustfmt::skip]
    let rows: &[WholeRow] = &[
        ("LF", b"a\n", "b\n", Ok(b"b\n")),
        ("CRLF", b"a\r\nb\r\n", "x\ny\n", Ok(b"x\r\ny\r\n")),
        ("mostly CRLF", b"a\r\nb\r\nc\n", "x\ny", Ok(b"x\r\ny")),
        ("mostly LF", b"a\nb\nc\r\n", "x\ny\n", Ok(b"x\ny\n")),
        ("CRLF given", b"a\n", "x\r\ny\n", Ok(b"x\r\ny\n")),
        ("mark", b"\xef\xbb\xbfa\n", "b\n", Ok(b"\xef\xbb\xbfb\n")),
        ("mark given", b"\xef\xbb\xbfa\n", "\u{feff}b\n", Ok(b"\xef\xbb\xbfb\n")),
        ("final newline as given", b"a\n", "b", Ok(b"b")),
        ("final newline added", b"a", "b\n", Ok(b"b\n")),
        ("to nothing", b"a\n", "", Ok(b"")),
        ("from nothing", b"", "a\n", Ok(b"a\n")),
        ("binary is replaced", b"\0\x01\x02", "a\n", Ok(b"a\n")),
        ("no change", b"a\r\n", "a\n", Err(EditError::NoChange)),
        ("dollar and backslash", b"a", "$& \\1 $1", Ok(b"$& \\1 $1")),
    ];
    for (name, content, text, wanted) in rows {
        let got = rewrite(content, text).map(|edited| edited.content);
        assert_eq!(got, wanted.clone().map(<[u8]>::to_vec), "{name}");
    }
}

#[test]
fn several_edits_are_made_in_order_or_not_at_all() {
    let failed = |edit, error| EditError::In { edit, error: Box::new(error) };
    let range = |line, lines| EditError::LineOutOfRange { line, lines };
    #[rustfmt::skip]
    let rows: Vec<ManyRow> = vec![
        ("two texts", b"a\nb\nc\n", vec![change("a", "x"), change("c", "z")], Ok(b"x\nb\nz\n")),
        ("the second edits what the first wrote", b"a\n", vec![change("a", "bb"), change("bb", "c")], Ok(b"c\n")),
        ("the first makes the second ambiguous", b"a\nb\n", vec![change("a", "b"), change("b", "c")], Err(failed(2, EditError::Ambiguous { lines: vec![1, 2] }))),
        ("the second is not found", b"a\nb\n", vec![change("a", "x"), change("zz", "y")], Err(failed(2, EditError::NoMatch { nearest: None }))),
        ("the first is empty", b"a\n", vec![change("", "x"), change("a", "y")], Err(failed(1, EditError::EmptyOld))),
        ("line numbers mean the old lines", b"a\nb\nc\n", vec![put(1, "x\ny"), put(2, "z")], Ok(b"a\nx\ny\nb\nz\nc\n")),
        ("backwards too", b"a\nb\nc\n", vec![put(2, "z"), put(1, "x\ny")], Ok(b"a\nx\ny\nb\nz\nc\n")),
        ("twice after one line", b"a\nb\n", vec![put(1, "x"), put(1, "y")], Ok(b"a\nx\ny\nb\n")),
        ("twice at the end without newline", b"a", vec![put(1, "x"), put(1, "y")], Ok(b"a\nx\ny")),
        ("lines", b"a\nb\nc\nd\n", vec![lines(1..2, "x"), lines(3..5, "y\n")], Ok(b"x\nb\ny\n")),
        ("lines deleted", b"a\nb\nc\n", vec![lines(2..3, "")], Ok(b"a\nc\n")),
        ("last line deleted, no newline", b"a\nb\nc", vec![lines(3..4, "")], Ok(b"a\nb")),
        ("all lines deleted", b"a\nb", vec![lines(1..3, "")], Ok(b"")),
        ("last line replaced, no newline", b"a\nb", vec![lines(2..3, "x\ny\n")], Ok(b"a\nx\ny")),
        ("lines with CRLF", b"a\r\nb\r\n", vec![lines(1..2, "x\ny")], Ok(b"x\r\ny\r\nb\r\n")),
        ("empty range inserts", b"a\nb\n", vec![lines(2..2, "x")], Ok(b"a\nx\nb\n")),
        ("ranges that touch", b"a\nb\nc\n", vec![lines(1..2, "x"), lines(2..3, "y")], Ok(b"x\ny\nc\n")),
        ("ranges that overlap", b"a\nb\nc\n", vec![lines(1..3, "x"), lines(2..4, "y")], Err(EditError::Overlap { first: 1, second: 2 })),
        ("the same range", b"a\nb\n", vec![lines(1..2, "x"), lines(1..2, "y")], Err(EditError::Overlap { first: 1, second: 2 })),
        ("insertion into a range", b"a\nb\nc\n", vec![lines(1..4, "x"), put(2, "y")], Err(EditError::Overlap { first: 1, second: 2 })),
        ("insertion beside a range", b"a\nb\nc\n", vec![lines(1..3, "x"), put(2, "y")], Ok(b"x\ny\nc\n")),
        ("a text inside a later range", b"a\nb\nc\n", vec![change("b", "x"), lines(2..3, "y")], Err(EditError::Overlap { first: 1, second: 2 })),
        ("a text above a later range", b"a\nb\nc\n", vec![change("a", "x\nx\nx"), lines(2..3, "y")], Ok(b"x\nx\nx\ny\nc\n")),
        ("a text in an earlier range", b"a\nb\nc\n", vec![lines(2..3, "y"), change("y", "z")], Ok(b"a\nz\nc\n")),
        ("whole, then text", b"a\n", vec![whole("b\nc\n"), change("b", "d")], Ok(b"d\nc\n")),
        ("whole under a range", b"a\nb\nc\n", vec![whole("x\n"), lines(2..3, "y")], Err(EditError::Overlap { first: 1, second: 2 })),
        ("past the end", b"a\nb\n", vec![lines(2..4, "x")], Err(failed(1, range(3, 2)))),
        ("line zero", b"a\n", vec![lines(0..1, "x")], Err(failed(1, range(0, 1)))),
        ("insertion past the end", b"a\n", vec![change("a", "b"), put(9, "x")], Err(failed(2, range(9, 2)))),
        ("all and then back", b"a\n", vec![change("a", "b"), change("b", "a")], Err(EditError::NoChange)),
        ("no edits", b"a\n", vec![], Err(EditError::NoChange)),
        ("binary", b"a\0b", vec![change("a", "b")], Err(EditError::Binary)),
        ("mark", b"\xef\xbb\xbfa\nb\n", vec![put(0, "x"), change("b", "y")], Ok(b"\xef\xbb\xbfx\na\ny\n")),
        ("count in one", b"a\na\n", vec![many("a", "b", Exactly(2)), put(2, "c")], Ok(b"b\nb\nc\n")),
        ("two insertions into nothing", b"", vec![put(0, "a"), put(0, "b")], Err(EditError::Overlap { first: 1, second: 2 })),
        ("the second cannot be encoded", b"von J\xfcrgen\nb\n", vec![change("von", "an"), change("b", "\u{4e2d}")], Err(failed(2, EditError::Unencodable { character: '\u{4e2d}', encoding: "windows-1252" }))),
        // After the first edit the bytes alone would be taken for UTF-8.
        ("the encoding stays what it was", b"J\xfcrgen\nb\n", vec![change("J\u{fc}rgen", "x"), change("b", "\u{e9}")], Ok(b"x\n\xe9\n")),
    ];
    for (name, content, edits, wanted) in rows {
        let got = edit_many(content, &edits).map(|edited| edited.content);
        match (got, wanted) {
            (Err(EditError::In { edit, error }), Err(EditError::In { edit: at, error: why }))
                if matches!((&*error, &*why), (EditError::NoMatch { .. }, EditError::NoMatch { .. })) =>
            {
                assert_eq!(edit, at, "{name}");
            }
            (got, wanted) => assert_eq!(got, wanted.map(<[u8]>::to_vec), "{name}"),
        }
    }
}

#[test]
fn the_regions_of_several_edits_are_lines_of_the_result() {
    let edited = edit_many(
        b"a\nb\nc\nd\n",
        &[change("c", "x\ny\nz"), put(0, "top"), change("y", "yy"), lines(4..5, "")],
    )
    .unwrap();
    assert_eq!(edited.content, b"top\na\nb\nx\nyy\nz\n");
    assert_eq!(edited.regions, [1..2, 4..7, 7..7]);
    assert_eq!((edited.matched, edited.replaced), (Exact, 3));
}
