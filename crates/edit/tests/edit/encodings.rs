//! Files that are not plain UTF-8: found out, edited in place, written back.

use lathe_edit::Occurrence::{All, Exactly, Unique};
use lathe_edit::{EditError, Encoding, Occurrence, TextContent, insert, replace, rewrite, unified_diff};

/// A text in an encoding by name, with its mark where it has one.
pub(crate) fn bytes(encoding: &str, text: &str) -> Vec<u8> {
    let (name, mark) = match encoding.strip_suffix("+bom") {
        Some(name) => (name, "\u{feff}"),
        None => (encoding, ""),
    };
    let text = format!("{mark}{text}");
    match name {
        "utf-8" => text.into_bytes(),
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        "utf-32le" => text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect(),
        "utf-32be" => text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect(),
        legacy => {
            let encoding = encoding_rs::Encoding::for_label(legacy.as_bytes()).unwrap();
            let (bytes, _, unmappable) = encoding.encode(&text);
            assert!(!unmappable, "{legacy} {text}");
            bytes.into_owned()
        }
    }
}

const GERMAN: &str = "Gr\u{fc}\u{df}e aus M\u{fc}nchen\nzweite Zeile f\u{fc}r dich\n";
const CHINESE: &str = "\u{8fd9}\u{662f}\u{4e2d}\u{6587}\u{6587}\u{4ef6}\u{7684}\u{7b2c}\u{4e00}\u{884c}\nabc = 1\n\u{7b2c}\u{4e8c}\u{884c}\u{5185}\u{5bb9}\n";
const JAPANESE: &str = "\u{3053}\u{308c}\u{306f}\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30ad}\u{30b9}\u{30c8}\u{3067}\u{3059}\nabc = 1\n\u{8868}\u{793a}\u{3059}\u{308b}\u{3082}\u{306e}\n";
const RUSSIAN: &str = "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{43c}\u{438}\u{440}, \u{43a}\u{430}\u{43a} \u{434}\u{435}\u{43b}\u{430}\nx = 1\n";

/// A row: description, encoding, text, old, new, how, new text.
type Row = (&'static str, &'static str, &'static str, &'static str, &'static str, Occurrence, &'static str);

#[test]
fn an_edit_keeps_the_encoding_and_the_mark() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("UTF-8 with mark", "utf-8+bom", "a\nb\n", "b", "\u{e9}", Unique, "a\n\u{e9}\n"),
        ("UTF-16 LE", "utf-16le+bom", "a\nb\n", "b", "c", Unique, "a\nc\n"),
        ("UTF-16 BE", "utf-16be+bom", "a\nb\n", "b", "c", Unique, "a\nc\n"),
        ("UTF-16 LE, CRLF", "utf-16le+bom", "a\r\nb\r\n", "a\nb\n", "x\ny\nb\n", Unique, "x\r\ny\r\nb\r\n"),
        ("UTF-16 BE, CRLF", "utf-16be+bom", "a\r\nb\r\n", "a", "x\ny", Unique, "x\r\ny\r\nb\r\n"),
        ("UTF-16 beyond the plane", "utf-16le+bom", "a\u{1f600}b\u{1f601}c\n", "b", "\u{1f602}", Unique, "a\u{1f600}\u{1f602}\u{1f601}c\n"),
        ("UTF-16 LE without mark", "utf-16le", "hello\nworld\n", "world", "w\u{f6}rld", Unique, "hello\nw\u{f6}rld\n"),
        ("UTF-16 BE without mark", "utf-16be", "hello\nworld\n", "world", "there", Unique, "hello\nthere\n"),
        ("UTF-16 indentation", "utf-16le+bom", "{\n\ta();\n\tb();\n}\n", "  a();\n  b();\n", "  c();\n", Unique, "{\n\tc();\n}\n"),
        ("UTF-16 all", "utf-16le+bom", "a b a\n", "a", "\u{4e2d}", All, "\u{4e2d} b \u{4e2d}\n"),
        ("UTF-16 mark in old", "utf-16le+bom", "a\nb\n", "\u{feff}a", "c", Unique, "c\nb\n"),
        ("UTF-32 LE", "utf-32le+bom", "a\n\u{1f600}b\n", "b", "\u{e9}", Unique, "a\n\u{1f600}\u{e9}\n"),
        ("UTF-32 BE", "utf-32be+bom", "a\n\u{1f600}b\n", "b\n", "", Unique, "a\n\u{1f600}"),
        ("Latin-1", "windows-1252", GERMAN, "zweite", "dritte \u{e4}", Unique, "Gr\u{fc}\u{df}e aus M\u{fc}nchen\ndritte \u{e4} Zeile f\u{fc}r dich\n"),
        ("Latin-1, not ASCII in old", "windows-1252", GERMAN, "f\u{fc}r", "an", Unique, "Gr\u{fc}\u{df}e aus M\u{fc}nchen\nzweite Zeile an dich\n"),
        ("Latin-1, one letter", "windows-1252", "// von J\u{fc}rgen\nint x;\n", "int x;", "int y;", Unique, "// von J\u{fc}rgen\nint y;\n"),
        ("Latin-1, exact count", "windows-1252", GERMAN, "\u{fc}", "ue", Exactly(3), "Grue\u{df}e aus Muenchen\nzweite Zeile fuer dich\n"),
        ("Cyrillic", "windows-1251", RUSSIAN, "x = 1", "x = 2 # \u{434}\u{430}", Unique, "\u{43f}\u{440}\u{438}\u{432}\u{435}\u{442} \u{43c}\u{438}\u{440}, \u{43a}\u{430}\u{43a} \u{434}\u{435}\u{43b}\u{430}\nx = 2 # \u{434}\u{430}\n"),
        ("GBK", "gbk", CHINESE, "abc = 1", "abc = 2 // \u{4e2d}", Unique, "\u{8fd9}\u{662f}\u{4e2d}\u{6587}\u{6587}\u{4ef6}\u{7684}\u{7b2c}\u{4e00}\u{884c}\nabc = 2 // \u{4e2d}\n\u{7b2c}\u{4e8c}\u{884c}\u{5185}\u{5bb9}\n"),
        ("GBK inside a line", "gbk", CHINESE, "\u{5185}\u{5bb9}", "\u{6587}\u{4ef6}x", Unique, "\u{8fd9}\u{662f}\u{4e2d}\u{6587}\u{6587}\u{4ef6}\u{7684}\u{7b2c}\u{4e00}\u{884c}\nabc = 1\n\u{7b2c}\u{4e8c}\u{884c}\u{6587}\u{4ef6}x\n"),
        ("Shift-JIS", "shift_jis", JAPANESE, "abc = 1", "abc = 2", Unique, "\u{3053}\u{308c}\u{306f}\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30ad}\u{30b9}\u{30c8}\u{3067}\u{3059}\nabc = 2\n\u{8868}\u{793a}\u{3059}\u{308b}\u{3082}\u{306e}\n"),
        // The second byte of this character is a backslash, which must not be found.
        ("Shift-JIS, a byte like ASCII", "shift_jis", JAPANESE, "\u{8868}\u{793a}", "\u{65e5}", Unique, "\u{3053}\u{308c}\u{306f}\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30ad}\u{30b9}\u{30c8}\u{3067}\u{3059}\nabc = 1\n\u{65e5}\u{3059}\u{308b}\u{3082}\u{306e}\n"),
        ("EUC-JP", "euc-jp", JAPANESE, "abc", "\u{672c}", Unique, "\u{3053}\u{308c}\u{306f}\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30ad}\u{30b9}\u{30c8}\u{3067}\u{3059}\n\u{672c} = 1\n\u{8868}\u{793a}\u{3059}\u{308b}\u{3082}\u{306e}\n"),
    ];
    for (name, encoding, text, old, new, how, wanted) in rows {
        let content = bytes(encoding, text);
        let edited = replace(&content, old, new, *how).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let shown = TextContent::decode(&edited.content).map(|text| text.lossy().into_owned());
        assert_eq!(edited.content, bytes(encoding, wanted), "{name}: {shown:?}");
    }
}

#[test]
fn a_backslash_inside_a_shift_jis_character_is_not_found() {
    let content = bytes("shift_jis", JAPANESE);
    assert!(content.contains(&b'\\'));
    assert!(matches!(replace(&content, "\\", "/", Unique), Err(EditError::NoMatch { .. })));
}

/// Content, name of its encoding and length of its mark.
type DetectRow = (Vec<u8>, Option<(&'static str, usize)>);

#[test]
fn the_encoding_is_known() {
    let names = |content: &[u8]| Encoding::detect(content).map(|(encoding, mark)| (encoding.name(), mark));
    #[rustfmt::skip]
    let rows: Vec<DetectRow> = vec![
        (b"".to_vec(), Some(("UTF-8", 0))),
        (b"plain\n".to_vec(), Some(("UTF-8", 0))),
        (bytes("utf-8", CHINESE), Some(("UTF-8", 0))),
        (bytes("utf-8+bom", "a"), Some(("UTF-8", 3))),
        (bytes("utf-16le+bom", "a"), Some(("UTF-16LE", 2))),
        (bytes("utf-16be+bom", ""), Some(("UTF-16BE", 2))),
        (bytes("utf-16le", "some text\n"), Some(("UTF-16LE", 0))),
        (bytes("utf-16be", "some text\n"), Some(("UTF-16BE", 0))),
        (bytes("utf-32le+bom", "a"), Some(("UTF-32LE", 4))),
        (bytes("utf-32be+bom", "a"), Some(("UTF-32BE", 4))),
        (bytes("windows-1252", GERMAN), Some(("windows-1252", 0))),
        (bytes("windows-1251", RUSSIAN), Some(("windows-1251", 0))),
        (bytes("gbk", CHINESE), Some(("GBK", 0))),
        (bytes("shift_jis", JAPANESE), Some(("Shift_JIS", 0))),
        (bytes("euc-jp", JAPANESE), Some(("EUC-JP", 0))),
        (b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec(), None),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec(), None),
        (b"a\0b".to_vec(), None),
        // Three units, one of them a letter, are not a text.
        (b"a\0b\xff\xfe\n".to_vec(), None),
        (vec![0; 64], None),
        (vec![1, 0, 2, 0, 3, 0, 4, 0], None),
        // An odd number of bytes is not UTF-16, with any beginning.
        (b"\xff\xfeabc".to_vec(), Some(("windows-1254", 0))),
        // Mostly UTF-8 with a broken byte stays UTF-8.
        (b"caf\xc3\xa9 \xc3\xa9\xff\n".to_vec(), Some(("UTF-8", 0))),
        // Control characters are not text in a legacy encoding.
        (b"\xff\x01\x02".to_vec(), Some(("UTF-8", 0))),
    ];
    for (content, wanted) in rows {
        assert_eq!(names(&content), wanted, "{content:?}");
    }
}

#[test]
fn a_character_the_encoding_lacks_is_refused_by_name() {
    let latin = bytes("windows-1252", GERMAN);
    let wanted = |character, encoding| Err(EditError::Unencodable { character, encoding });
    assert_eq!(replace(&latin, "Zeile", "a \u{4e2d}", Unique), wanted('\u{4e2d}', "windows-1252"));
    assert_eq!(insert(&latin, 1, "\u{1f600}"), wanted('\u{1f600}', "windows-1252"));
    assert_eq!(rewrite(&latin, "\u{3b1}"), wanted('\u{3b1}', "windows-1252"));
    // encoding_rs would write the yen sign as a backslash.
    assert_eq!(
        replace(&bytes("shift_jis", JAPANESE), "abc", "\u{a5}", Unique),
        wanted('\u{a5}', "Shift_JIS")
    );
    assert_eq!(replace(&bytes("gbk", CHINESE), "abc", "\u{1f600}", Unique), wanted('\u{1f600}', "GBK"));
}

#[test]
fn lone_surrogates_and_odd_pairs_outside_the_region_stay() {
    // A lone surrogate, and a pair of Shift_JIS bytes that has another spelling.
    let mut content = bytes("utf-16le+bom", "ab\n");
    content.extend_from_slice(&[0x3d, 0xd8]);
    content.extend(bytes("utf-16le", "cd\n"));
    let edited = replace(&content, "cd", "x", Unique).unwrap().content;
    let mut wanted = bytes("utf-16le+bom", "ab\n");
    wanted.extend_from_slice(&[0x3d, 0xd8]);
    wanted.extend(bytes("utf-16le", "x\n"));
    assert_eq!(edited, wanted);

    let mut content = bytes("shift_jis", JAPANESE);
    content.extend_from_slice(b"\xfa\x54 tail\n");
    let edited = replace(&content, "tail", "end", Unique).unwrap().content;
    let mut wanted = bytes("shift_jis", JAPANESE);
    wanted.extend_from_slice(b"\xfa\x54 end\n");
    assert_eq!(edited, wanted);
}

#[test]
fn insertions_and_whole_files_keep_the_encoding() {
    let utf16 = bytes("utf-16le+bom", "a\r\nb\r\n");
    assert_eq!(insert(&utf16, 1, "x\ny").unwrap().content, bytes("utf-16le+bom", "a\r\nx\r\ny\r\nb\r\n"));
    assert_eq!(rewrite(&utf16, "x\ny\n").unwrap().content, bytes("utf-16le+bom", "x\r\ny\r\n"));
    let latin = bytes("windows-1252", GERMAN);
    assert_eq!(rewrite(&latin, "\u{fc}\n").unwrap().content, b"\xfc\n");
}

#[test]
fn differences_of_other_encodings_are_shown_as_text() {
    let (old, new) = (bytes("utf-16le+bom", "a\nb\n"), bytes("utf-16le+bom", "a\n\u{e9}\n"));
    let wanted = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+\u{e9}\n";
    assert_eq!(unified_diff(Some(&old), Some(&new), "x"), wanted);
    let other = bytes("utf-8", "a\nb\n");
    assert_eq!(unified_diff(Some(&old), Some(&other), "x"), "Binary files a/x and b/x differ\n");
}
