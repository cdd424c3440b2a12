use lathe_edit::{EditError, LineEnding, TextContent};

/// Content, byte order mark, dominant ending, mixed, final newline, lines.
type Row = (&'static [u8], bool, LineEnding, bool, bool, usize);

#[test]
fn a_text_remembers_what_must_be_kept() {
    use LineEnding::{CrLf, Lf};
    let rows: &[Row] = &[
        (b"", false, Lf, false, false, 1),
        (b"a", false, Lf, false, false, 1),
        (b"a\n", false, Lf, false, true, 2),
        (b"a\r\nb\r\n", false, CrLf, false, true, 3),
        (b"a\r\nb\r\nc\n", false, CrLf, true, true, 4),
        (b"a\nb\r\n", false, Lf, true, true, 3),
        (b"a\rb", false, Lf, false, false, 1),
        (b"\xef\xbb\xbfa\n", true, Lf, false, true, 2),
        (b"\xff\xfe\n", false, Lf, false, true, 2),
    ];
    for (content, bom, ending, mixed, newline, lines) in rows {
        let text = TextContent::decode(content).unwrap();
        let seen =
            (text.has_bom(), text.ending(), text.is_mixed(), text.ends_with_newline(), text.line_count());
        assert_eq!(seen, (*bom, *ending, *mixed, *newline, *lines), "{content:?}");
    }
}

#[test]
fn a_nul_in_the_first_8_kib_is_binary_and_a_later_one_is_not() {
    let mut content = vec![b'a'; 8 * 1024];
    content.push(0);
    assert!(TextContent::decode(&content).is_ok());
    content[8 * 1024 - 1] = 0;
    assert_eq!(TextContent::decode(&content).unwrap_err(), EditError::Binary);
}

#[test]
fn the_body_leaves_the_mark_out_and_shows_invalid_bytes_as_replacement() {
    let text = TextContent::decode(b"\xef\xbb\xbfa\xff\n").unwrap();
    assert_eq!(text.body(), b"a\xff\n");
    assert_eq!(text.lossy(), "a\u{fffd}\n");
    assert_eq!(text.as_str(), None);
    assert_eq!(TextContent::decode(b"\xff\xfea\0").unwrap().as_str(), Some("a"));
}
