use lathe_edit::MatchKind::{Exact, Indentation, LineEndings, TrailingBlanks};
use lathe_edit::Occurrence::{All, Unique};
use lathe_edit::{EditError, MatchKind, Nearest, Occurrence, replace};

/// A row: description, content, old, new, how, new content, rung.
type Row = (&'static str, &'static [u8], &'static str, &'static str, Occurrence, &'static [u8], MatchKind);

#[test]
fn the_old_text_is_replaced_and_nothing_else_changes() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("plain", b"a\nb\nc\n", "b", "x", Unique, b"a\nx\nc\n", Exact),
        ("several lines", b"a\nb\nc\n", "a\nb\n", "x\n", Unique, b"x\nc\n", Exact),
        ("the whole file", b"a\n", "a\n", "b\n", Unique, b"b\n", Exact),
        ("tabs are kept", b"all:\n\tcc a.c\n\tld\n", "a.c", "b.c", Unique, b"all:\n\tcc b.c\n\tld\n", Exact),
        ("tabs in old and new", b"\ta\n", "\ta", "\t\tb", Unique, b"\t\tb\n", Exact),
        ("dollar", b"a $& b\n", "$&", "$1$&\\0", Unique, b"a $1$&\\0 b\n", Exact),
        ("backslash", b"a\\nb\n", "\\n", "\\t", Unique, b"a\\tb\n", Exact),
        ("regex characters", b"f(.*)[x]\n", "(.*)[x]", "(a|b)+", Unique, b"f(a|b)+\n", Exact),
        ("final newline kept", b"a\nb\n", "b", "c", Unique, b"a\nc\n", Exact),
        ("no final newline kept", b"a\nb", "b", "c", Unique, b"a\nc", Exact),
        ("empty new deletes", b"a\nb\nc\n", "b\n", "", Unique, b"a\nc\n", Exact),
        ("empty new deletes all", b"xaxbx", "x", "", All, b"ab", Exact),
        ("all", b"a b a\na\n", "a", "c", All, b"c b c\nc\n", Exact),
        ("all with overlaps goes from the start", b"aaaa", "aa", "b", All, b"bb", Exact),
        ("all with one", b"a b", "b", "c", All, b"a c", Exact),
        ("new holds old", b"a", "a", "aa", All, b"aa", Exact),
        ("mark kept", b"\xef\xbb\xbfa\n", "a", "b", Unique, b"\xef\xbb\xbfb\n", Exact),
        ("mark in old kept", b"\xef\xbb\xbfa\n", "\u{feff}a", "b", Unique, b"\xef\xbb\xbfb\n", Exact),
        ("mark in old is the start", b"\xef\xbb\xbfa\na\n", "\u{feff}a", "\u{feff}b", Unique, b"\xef\xbb\xbfb\na\n", Exact),
        ("mark in the middle is text", b"a\xef\xbb\xbfb", "\u{feff}b", "c", Unique, b"ac", Exact),
        ("invalid bytes kept", b"\xc3\xa9\xc3\xa9\xc3\xa9\xff a \xc3\n\xe2\x82", "a", "\u{e9}", Unique, b"\xc3\xa9\xc3\xa9\xc3\xa9\xff \xc3\xa9 \xc3\n\xe2\x82", Exact),
        ("next to invalid bytes", b"\xe2\x82a\xff", "a", "b", Unique, b"\xe2\x82b\xff", Exact),
        ("not inside a character", b"\xc3\xa9\n", "\u{e9}", "e", Unique, b"e\n", Exact),
        ("a lone CR is text", b"a\rb\rc", "a\rb", "x", Unique, b"x\rc", Exact),
        ("CRLF kept around one word", b"a\r\nb\r\n", "a", "x", Unique, b"x\r\nb\r\n", Exact),
        ("lines in new get the place's CRLF", b"a\r\nb\r\n", "a", "x\ny", Unique, b"x\r\ny\r\nb\r\n", Exact),
        ("the same at the last line", b"a\r\nb", "b", "x\ny", Unique, b"a\r\nx\r\ny", Exact),
        ("explicit CRLF is literal", b"a\nb\n", "a", "x\r\ny", Unique, b"x\r\ny\nb\n", Exact),
        ("exact CRLF is literal", b"a\r\nb\r\n", "a\r\nb", "x\r\ny", Unique, b"x\r\ny\r\n", Exact),
        ("LF finds CRLF", b"a\r\nb\r\nc\r\n", "a\nb\n", "x\ny\nz\n", Unique, b"x\r\ny\r\nz\r\nc\r\n", LineEndings),
        ("LF finds CRLF inside lines", b"fa\r\nbg\r\n", "a\nb", "x\ny", Unique, b"fx\r\nyg\r\n", LineEndings),
        ("CRLF finds LF", b"a\nb\n", "a\r\nb", "x\r\ny", Unique, b"x\ny\n", LineEndings),
        ("a leading LF does not tear a CRLF", b"a\r\nb\r\n", "\nb", "\nc", Unique, b"a\r\nc\r\n", LineEndings),
        ("mixed: CRLF place", b"k\nj\na\r\nb\r\nl\n", "a\nb", "x\ny\nb", Unique, b"k\nj\nx\r\ny\r\nb\r\nl\n", LineEndings),
        ("mixed: LF place", b"k\r\na\nb\nl\r\n", "a\nb", "x\ny", Unique, b"k\r\nx\ny\nl\r\n", Exact),
        ("mixed: kept lines keep their own", b"a\r\nb\nc\r\n", "a\nb\nc", "a\nx\nc", Unique, b"a\r\nx\r\nc\r\n", LineEndings),
        ("all at a looser rung", b"a\r\nb\r\na\r\nb\r\n", "a\nb", "x\ny", All, b"x\r\ny\r\nx\r\ny\r\n", LineEndings),
        ("blanks in the file", b"a  \nb\t\nc\n", "a\nb\nc", "a\nx\nc", Unique, b"a  \nx\nc\n", TrailingBlanks),
        ("blanks in old", b"a\nb\nc\n", "a  \nb \n", "x\nb \n", Unique, b"x\nb\nc\n", TrailingBlanks),
        ("blanks after one line", b"  foo(a)\n", "foo(a)   ", "bar", Unique, b"  bar\n", TrailingBlanks),
        ("blanks and CRLF", b"a \r\nb\r\n", "a\nb", "x\nb", Unique, b"x\r\nb\r\n", TrailingBlanks),
        ("blank line with blanks", b"a\n    \nb\n", "a\n\nb", "a\n\nc", Unique, b"a\n    \nc\n", TrailingBlanks),
        (
            "spaces for tabs", b"fn f() {\n\tif a {\n\t\tb();\n\t}\n}\n",
            "    if a {\n        b();\n    }\n",
            "    if a {\n        if c {\n            b();\n        }\n    }\n",
            Unique, b"fn f() {\n\tif a {\n\t\tif c {\n\t\t\tb();\n\t\t}\n\t}\n}\n", Indentation,
        ),
        (
            "tabs for spaces", b"class A:\n  def f(self):\n    return 1\n",
            "\tdef f(self):\n\t\treturn 1\n",
            "\tdef f(self):\n\t\tif x:\n\t\t\treturn 1\n",
            Unique, b"class A:\n  def f(self):\n    if x:\n      return 1\n", Indentation,
        ),
        (
            "too shallow", b"class A:\n    def f():\n        pass\n",
            "def f():\n    pass",
            "def f():\n    if x:\n        pass",
            Unique, b"class A:\n    def f():\n        if x:\n            pass\n", Indentation,
        ),
        (
            "too deep, new steps out", b"def f():\n    a\n    b\n",
            "        a\n        b",
            "        a\n    c",
            Unique, b"def f():\n    a\nc\n", Indentation,
        ),
        ("one line", b"\tfoo()\n", "    foo()", "    bar()\n        baz()", Unique, b"\tbar()\n\t\tbaz()\n", Indentation),
        (
            "one level seen, tabs in the file", b"{\n\ta;  \n\tb;\n}\n",
            "a;\nb;",
            "a;\nif c {\n  d;\n}\nb;",
            Unique, b"{\n\ta;  \n\tif c {\n\t\td;\n\t}\n\tb;\n}\n", Indentation,
        ),
        ("CRLF as well", b"{\r\n\ta;\r\n\tb;\r\n}\r\n", "  a;\n  b;\n", "  c;\n  b;\n", Unique, b"{\r\n\tc;\r\n\tb;\r\n}\r\n", Indentation),
        ("line breaks around are no lines", b"x\n\ta\n\tb\ny\n", "\n  a\n  b\n", "\n  c\n", Unique, b"x\n\tc\ny\n", Indentation),
        ("invalid bytes in a neighbour line", b"\xff\n\ta\n\xfe", "  a\n", "  b\n", Unique, b"\xff\n\tb\n\xfe", Indentation),
        ("no final newline, looser", b"x\n\ta\n\tb", "  a\n  b", "  c", Unique, b"x\n\tc", Indentation),
        ("empty new deletes, looser", b"x\n\ta\n\tb\ny\n", "  a\n  b\n", "", Unique, b"x\ny\n", Indentation),
    ];
    for (name, content, old, new, how, wanted, matched) in rows {
        let edited = replace(content, old, new, *how).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let shown = String::from_utf8_lossy(&edited.content);
        assert_eq!(edited.content, *wanted, "{name}: {shown:?}");
        assert_eq!(edited.matched, *matched, "{name}");
    }
}

#[test]
fn an_edit_that_cannot_be_made_is_refused() {
    let ambiguous = |lines: &[usize]| EditError::Ambiguous { lines: lines.to_vec() };
    let none = EditError::NoMatch { nearest: None };
    #[rustfmt::skip]
    let rows: &[(&str, &[u8], &str, &str, EditError)] = &[
        ("empty old", b"a", "", "x", EditError::EmptyOld),
        ("the mark alone", b"\xef\xbb\xbfa", "\u{feff}", "x", EditError::EmptyOld),
        ("equal", b"a", "a", "a", EditError::NoChange),
        ("equal in the file", b"a\nb\n", "a \nb", "a\nb", EditError::NoChange),
        ("binary", b"a\0b", "a", "x", EditError::Binary),
        ("twice", b"a\nb\na\n", "a", "x", ambiguous(&[1, 3])),
        ("twice in a line", b"a a", "a", "x", ambiguous(&[1, 1])),
        ("several lines twice", b"k\na\nb\n\na\nb\n", "a\nb\n", "x", ambiguous(&[2, 5])),
        ("overlapping", b"k\naaa", "aa", "x", ambiguous(&[2, 2])),
        ("overlapping lines", b"a\na\na\n", "a\na\n", "x", ambiguous(&[1, 2])),
        ("twice with CRLF", b"a\r\nb\r\na\r\nb\r\n", "a\nb", "x", ambiguous(&[1, 3])),
        ("twice with blanks, each", b"a \nb\na\t\nb\n", "a\nb\n", "x", ambiguous(&[1, 3])),
        ("twice indented", b"{\n\ta\n\tb\n}\n{\n\t\ta\n\t\tb\n}\n", "  a\n  b\n", "x", ambiguous(&[2, 6])),
        ("other nesting", b"if x:\n\ta\nb\n", "  if x:\n  a\n  b\n", "y", none.clone()),
        ("flattened nesting", b"if x:\na\n", "if x:\n  a\n", "y", none.clone()),
        ("only blank lines", b"a\n\n\n", "\n \n \n", "x", none.clone()),
        ("longer than the file", b"a\n", "a\nb\nc\nd\n", "x", none.clone()),
        ("nothing like it", b"alpha\n", "0123456789", "x", none.clone()),
    ];
    for (name, content, old, new, wanted) in rows {
        match (replace(content, old, new, Unique), wanted) {
            (Err(EditError::NoMatch { .. }), EditError::NoMatch { .. }) => {}
            (got, wanted) => assert_eq!(got.as_ref(), Err(wanted), "{name}"),
        }
    }
    assert_eq!(replace(b"alpha\n", "0123456789", "x", Unique), Err(none));
}

#[test]
fn an_exact_match_wins_over_looser_ones() {
    let edited = replace(b"\ta\n  a\n", "  a", "  b", Unique).unwrap();
    assert_eq!((edited.content.as_slice(), edited.matched), (&b"\ta\n  b\n"[..], Exact));
}

#[test]
fn the_regions_are_the_lines_of_the_new_text() {
    /// Content, old, new, region of each place.
    type Case = (&'static [u8], &'static str, &'static str, &'static [(usize, usize)]);
    let rows: &[Case] = &[
        (b"a\nb\nc\n", "b", "x", &[(2, 3)]),
        (b"a\nb\nc\n", "b\n", "x\ny\n", &[(2, 4)]),
        (b"a\nb\nc\n", "b", "x\ny", &[(2, 4)]),
        (b"a\nb\nc\n", "b\n", "", &[(2, 2)]),
        (b"a\nb\na\n", "a", "x\ny", &[(1, 3), (4, 6)]),
        (b"\xef\xbb\xbfa\n", "a", "x", &[(1, 2)]),
        (b"k\r\na\r\nb\r\n", "a\nb\n", "x\ny\nz\n", &[(2, 5)]),
    ];
    for (content, old, new, wanted) in rows {
        let edited = replace(content, old, new, All).unwrap();
        let regions: Vec<(usize, usize)> = edited.regions.iter().map(|r| (r.start, r.end)).collect();
        assert_eq!(regions, *wanted, "{content:?} {old:?}");
        assert_eq!(edited.replaced, wanted.len());
    }
}

#[test]
fn the_nearest_place_is_named() {
    let content =
        b"fn main() {\n    let total = 0;\n    for item in items {\n        total += item.price;\n    }\n}\n";
    let nearest = |old: &str| match replace(content, old, "x", Unique) {
        Err(EditError::NoMatch { nearest }) => nearest,
        other => panic!("{other:?}"),
    };
    let found = Nearest { line: 4, text: String::from("        total += item.price;") };
    assert_eq!(nearest("        total += item.cost;"), Some(found.clone()));
    assert_eq!(nearest("total += items.price;\n"), Some(found));
    let two =
        Nearest { line: 3, text: String::from("    for item in items {\n        total += item.price;") };
    assert_eq!(nearest("    for item in list {\n        total += item.price;\n"), Some(two));
    assert_eq!(nearest("\n\n"), None);
}
