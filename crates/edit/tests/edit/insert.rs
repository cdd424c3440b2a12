use lathe_edit::{EditError, Edited, MatchKind, insert};

/// Content, after which line, text, new content, first line of the region, its end.
type Row = (&'static [u8], usize, &'static str, &'static [u8], usize, usize);

#[test]
fn text_is_inserted_as_whole_lines_with_the_files_endings() {
    let rows: &[Row] = &[
        (b"a\nb\n", 0, "x", b"x\na\nb\n", 1, 2),
        (b"a\nb\n", 1, "x", b"a\nx\nb\n", 2, 3),
        (b"a\nb\n", 1, "x\n", b"a\nx\nb\n", 2, 3),
        (b"a\nb\n", 1, "x\n\n", b"a\nx\n\nb\n", 2, 4),
        (b"a\nb\n", 1, "\n", b"a\n\nb\n", 2, 3),
        (b"a\nb\n", 2, "x", b"a\nb\nx\n", 3, 4),
        (b"a\nb\n", 3, "x", b"a\nb\nx\n", 3, 4),
        (b"a\nb", 2, "x", b"a\nb\nx", 3, 4),
        (b"a\nb", 2, "x\n", b"a\nb\nx", 3, 4),
        (b"a\nb", 2, "x\ny\n", b"a\nb\nx\ny", 3, 5),
        (b"a", 1, "x", b"a\nx", 2, 3),
        (b"a", 0, "x", b"x\na", 1, 2),
        (b"", 0, "x", b"x", 1, 2),
        (b"", 1, "x\ny\n", b"x\ny\n", 1, 3),
        (b"a\r\nb\r\n", 1, "x\ny", b"a\r\nx\r\ny\r\nb\r\n", 2, 4),
        (b"a\r\nb", 2, "x", b"a\r\nb\r\nx", 3, 4),
        (b"a\nb\n", 1, "x\r\ny", b"a\nx\ny\nb\n", 2, 4),
        (b"a\r\nb\nc\n", 1, "x", b"a\r\nx\r\nb\nc\n", 2, 3),
        (b"a\r\nb\nc\n", 2, "x", b"a\r\nb\nx\nc\n", 3, 4),
        (b"\xef\xbb\xbfa\n", 0, "x", b"\xef\xbb\xbfx\na\n", 1, 2),
        (b"\xff\n\xfe\n", 1, "\tx", b"\xff\n\tx\n\xfe\n", 2, 3),
    ];
    for (content, line, text, wanted, first, end) in rows {
        let edited = insert(content, *line, text).unwrap();
        assert!(edited.found.len() == 1 && edited.found[0].is_empty(), "{content:?}: {:?}", edited.found);
        let expected = Edited {
            content: wanted.to_vec(),
            matched: MatchKind::Exact,
            found: edited.found.clone(),
            regions: std::iter::once(*first..*end).collect(),
            replaced: 0,
        };
        assert_eq!(edited, expected, "{content:?} after {line}: {text:?}");
    }
}

#[test]
fn an_insertion_that_cannot_be_made_is_refused() {
    assert_eq!(insert(b"a\nb\n", 4, "x"), Err(EditError::LineOutOfRange { line: 4, lines: 3 }));
    assert_eq!(insert(b"a\nb", 3, "x"), Err(EditError::LineOutOfRange { line: 3, lines: 2 }));
    assert_eq!(insert(b"", 2, "x"), Err(EditError::LineOutOfRange { line: 2, lines: 1 }));
    assert_eq!(insert(b"a\n", 1, ""), Err(EditError::NoChange));
    assert_eq!(insert(b"a\0\n", 1, "x"), Err(EditError::Binary));
}
