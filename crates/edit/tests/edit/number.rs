use lathe_edit::number_lines;

#[test]
fn lines_are_numbered_to_six_columns_and_tabs_stay() {
    let rows: &[(&str, usize, &str)] = &[
        ("", 1, "     1\t"),
        ("a", 1, "     1\ta"),
        ("a\nb\n", 1, "     1\ta\n     2\tb\n     3\t"),
        ("\tx\ty", 99, "    99\t\tx\ty"),
        ("a\r\nb", 1, "     1\ta\n     2\tb"),
        ("a\nb", 999_999, "999999\ta\n1000000\tb"),
    ];
    for (text, first, wanted) in rows {
        assert_eq!(&number_lines(text, *first), wanted, "{text:?}");
    }
}
