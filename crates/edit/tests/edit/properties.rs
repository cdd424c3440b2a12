use lathe_edit::MatchKind::Exact;
use lathe_edit::Occurrence::{All, Unique};
use lathe_edit::patch::{Patch, plan};
use lathe_edit::{
    Edit, EditError, Edited, Encoding, Looseness, TextContent, edit_many, insert, replace, rewrite,
    unified_diff,
};

use crate::encodings::bytes;
use proptest::prelude::*;

#[test]
fn large_and_odd_content_does_not_take_long() {
    // One line of 32 MB, a file of equal lines, and an old text as long as a file.
    let line = vec![b'x'; 32 << 20];
    assert!(replace(&line, &"x".repeat(100_000), "", All).is_ok());
    let absent = format!("{}y", "x".repeat(100_000));
    assert_eq!(replace(&line, &absent, "z", Unique), Err(EditError::NoMatch { nearest: None }));
    let equal = "a\n".repeat(200_000);
    let absent = format!("{}b\n", "a\n".repeat(100_000));
    assert_eq!(replace(equal.as_bytes(), &absent, "z", Unique), Err(EditError::NoMatch { nearest: None }));
    let many = "a b c d e f\n".repeat(80_000);
    assert!(matches!(replace(many.as_bytes(), "a b c d f e", "z", Unique), Err(EditError::NoMatch { .. })));
}

#[test]
fn a_line_of_100_mb_is_edited() {
    let mut content = vec![b'x'; 100 << 20];
    content.extend_from_slice(b"end");
    let edited = replace(&content, "end", "$&", Unique).unwrap();
    assert_eq!((edited.content.len(), edited.regions), ((100 << 20) + 2, std::iter::once(1..2).collect()));
    assert!(edited.content.ends_with(b"x$&"));
}

/// UTF-8 with some broken bytes, and enough whole characters not to be taken for a legacy encoding.
fn mostly_utf8() -> impl Strategy<Value = Vec<u8>> {
    let broken = proptest::collection::vec(1_u8.., 0..40);
    broken.prop_map(|broken| ["\u{4e2d}\u{6587}".repeat(30).as_bytes(), broken.as_slice()].concat())
}

proptest! {
    /// The one invariant: everything but the slice stays, byte for byte.
    #[test]
    fn only_the_slice_changes(
        before in mostly_utf8(),
        old in "[a-c\\t \\r\\n\u{e9}]{1,12}",
        after in proptest::collection::vec(1_u8.., 0..8),
        new in "[a-d$&\\\\\\t \\r\\n\u{20ac}]{0,12}",
    ) {
        let content = [before.as_slice(), old.as_bytes(), after.as_slice()].concat();
        let places = content.windows(old.len()).filter(|window| *window == old.as_bytes()).count();
        prop_assume!(places == 1 && old != new);
        // Rules of their own: a CRLF torn apart, line feeds in CRLF text.
        prop_assume!(!(before.ends_with(b"\r") && old.starts_with('\n')));
        // An old text that begins inside an indentation is indented otherwise than the file.
        let line = before.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        let blank = |byte: u8| byte == b' ' || byte == b'\t';
        prop_assume!(line.is_empty() || !line.iter().all(|&byte| blank(byte)) || !blank(old.as_bytes()[0]));
        let literal = old.contains('\n') || !content.windows(2).any(|two| two == b"\r\n");
        let new = if literal { new } else { new.replace('\n', " ") };
        prop_assume!(old != new);

        let wanted = [before.as_slice(), new.as_bytes(), after.as_slice()].concat();
        let edited = replace(&content, &old, &new, Unique);
        prop_assert_eq!(edited.as_ref().map(|edited| &edited.content), Ok(&wanted));
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let lines = |text: &str| {
            let end = line + text.matches('\n').count() + usize::from(!text.is_empty() && !text.ends_with('\n'));
            std::iter::once(line..end).collect()
        };
        let all = Edited {
            content: wanted,
            matched: Exact,
            found: lines(&old),
            regions: lines(&new),
            replaced: 1,
        };
        prop_assert_eq!(replace(&content, &old, &new, All), Ok(all));
    }

    /// For any request, bytes before and after a looser match stay as well.
    #[test]
    fn a_looser_match_keeps_its_surroundings(
        before in "([a-z\\t ]{0,8}\r?\n){0,4}",
        after in "([a-z\\t ]{0,8}\r?\n){0,4}",
        indent in "[\\t ]{0,4}",
        ending in "\r?\n",
    ) {
        let content = format!("{before}{indent}ONE;  {ending}{indent}TWO;{ending}{after}");
        let edited = replace(content.as_bytes(), "  ONE;\n  TWO;\n", "  ONE;\n  SIX;\n", Unique);
        let wanted = format!("{before}{indent}ONE;  {ending}{indent}SIX;{ending}{after}");
        prop_assert_eq!(edited.map(|edited| edited.content), Ok(wanted.into_bytes()));
    }
}

/// Encodings, each with the characters the test writes in it.
const ENCODINGS: [(&str, &str); 8] = [
    ("utf-8+bom", "\u{e9}\u{4e2d}"),
    ("utf-16le+bom", "\u{e9}\u{1f600}"),
    ("utf-16be+bom", "\u{e9}\u{1f600}"),
    ("utf-32le+bom", "\u{e9}\u{1f600}"),
    ("utf-32be+bom", "\u{e9}\u{1f600}"),
    ("windows-1252", "\u{fc}\u{df}"),
    ("gbk", "\u{4e2d}\u{6587}"),
    ("shift_jis", "\u{8868}\u{65e5}"),
];

/// Enough text for a detector to know the encoding by.
const SAMPLES: [(&str, &str); 3] = [
    (
        "windows-1252",
        "Gr\u{fc}\u{df}e aus M\u{fc}nchen, sch\u{f6}ne Stra\u{df}en und \u{c4}pfel f\u{fc}r alle \u{dc}brigen\n",
    ),
    (
        "gbk",
        "\u{8fd9}\u{662f}\u{4e00}\u{4e2a}\u{7528}\u{6765}\u{6d4b}\u{8bd5}\u{7684}\u{4e2d}\u{6587}\u{6587}\u{4ef6}\u{ff0c}\u{91cc}\u{9762}\u{6709}\u{5f88}\u{591a}\u{5b57}\n",
    ),
    (
        "shift_jis",
        "\u{3053}\u{308c}\u{306f}\u{65e5}\u{672c}\u{8a9e}\u{306e}\u{30c6}\u{30b9}\u{30c8}\u{6587}\u{7ae0}\u{3067}\u{3059}\u{3002}\u{8868}\u{793a}\u{3059}\u{308b}\u{3082}\u{306e}\u{3067}\u{3059}\n",
    ),
];

fn line() -> impl Strategy<Value = String> {
    "[a-d \\t]{0,6}(\r?\n)?"
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The model of an edit, prefix + new + suffix, holds in every encoding.
    #[test]
    fn an_edit_is_prefix_new_suffix_in_every_encoding(
        which in 0..ENCODINGS.len(),
        before in "[a-c01 \\t\\n]{0,30}",
        old in "[d-f01]{1,6}",
        after in "[a-c01 \\t\\n]{0,30}",
        new in "[d-g$&\\\\01 ]{0,8}",
    ) {
        let (encoding, extra) = ENCODINGS[which];
        let mut letters = extra.chars();
        let (first, second) = (letters.next().unwrap(), letters.next().unwrap());
        let write = |text: &str| text.replace('0', &first.to_string()).replace('1', &second.to_string());
        let sample = SAMPLES.iter().find(|(name, _)| *name == encoding).map_or("", |(_, text)| *text);
        let (before, old) = (format!("{sample}{}", write(&before)), write(&old));
        let (after, new) = (write(&after), write(&new));
        let whole = format!("{before}{old}{after}");
        prop_assume!(old != new && whole.matches(old.as_str()).count() == 1);
        prop_assume!(whole.char_indices().filter(|(at, _)| whole[*at..].starts_with(old.as_str())).count() == 1);
        let content = bytes(encoding, &whole);
        // A legacy encoding is a guess, which unlikely text may mislead.
        let detected = Encoding::detect(&content).map(|(encoding, _)| encoding.name().to_lowercase());
        prop_assume!(detected.as_deref() == encoding.split('+').next());
        let edited = replace(&content, &old, &new, Unique);
        let wanted = bytes(encoding, &format!("{before}{new}{after}"));
        prop_assert_eq!(edited.map(|edited| edited.content), Ok(wanted));
    }

    /// A difference applied to the old content gives the new one.
    #[test]
    fn a_difference_is_a_patch(
        old in proptest::collection::vec(line(), 0..30),
        new in proptest::collection::vec(line(), 0..30),
        keep in proptest::collection::vec(any::<bool>(), 30),
    ) {
        let new: Vec<String> = new
            .into_iter()
            .enumerate()
            .map(|(at, line)| if keep[at] { old.get(at).cloned().unwrap_or(line) } else { line })
            .collect();
        let (old, new) = (old.concat(), new.concat());
        prop_assume!(old != new);
        let diff = unified_diff(Some(old.as_bytes()), Some(new.as_bytes()), "x");
        let patch = Patch::parse(&diff);
        prop_assert!(patch.is_ok(), "{:?} {}", patch, diff);
        let changes = plan(&patch.unwrap(), &|_| Some(old.clone().into_bytes()));
        let after = changes.map(|changes| {
            assert!(changes[0].loosened.is_empty(), "{:?}\n{diff}", changes[0].loosened);
            changes[0].after.clone()
        });
        prop_assert_eq!(after, Ok(Some(new.into_bytes())), "{}", diff);
    }

    /// Edits in one transaction are the edits one after the other.
    #[test]
    fn a_transaction_is_its_edits_in_order(
        content in "[a-c]{1,4}(\n[a-c]{0,4}){0,6}\n?",
        pairs in proptest::collection::vec(("[a-c]{1,2}", "[a-e]{0,3}"), 1..4),
    ) {
        let edits: Vec<Edit> = pairs
            .iter()
            .map(|(old, new)| Edit::Replace { old: old.clone(), new: new.clone(), how: All, loose: Looseness::Whitespace })
            .collect();
        let mut state = content.clone().into_bytes();
        let mut failed = None;
        for (at, (old, new)) in pairs.iter().enumerate() {
            match replace(&state, old, new, All) {
                Ok(edited) => state = edited.content,
                Err(_) => {
                    failed = Some(at + 1);
                    break;
                }
            }
        }
        match (edit_many(content.as_bytes(), &edits), failed) {
            (Ok(edited), None) => prop_assert_eq!(edited.content, state),
            (Err(EditError::In { edit, .. }), Some(at)) => prop_assert_eq!(edit, at),
            (Err(EditError::NoChange), None) => prop_assert_eq!(state, content.into_bytes()),
            (got, wanted) => prop_assert!(false, "{:?} {:?}", got, wanted),
        }
    }
}

/// Bytes that look like one encoding or another, and are not always.
fn odd_bytes() -> impl Strategy<Value = Vec<u8>> {
    let marks: [&[u8]; 6] =
        [b"", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\0\0", b"\0\0\xfe\xff"];
    let piece = prop_oneof![
        Just(b"a".to_vec()),
        Just(b"a\0".to_vec()),
        Just(b"\n\0".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\x95\x5c".to_vec()),
        Just("\u{e9}".as_bytes().to_vec()),
        proptest::collection::vec(any::<u8>(), 1..4),
    ];
    (0..marks.len(), proptest::collection::vec(piece, 0..24))
        .prop_map(move |(mark, pieces)| [marks[mark], &pieces.concat()].concat())
}

proptest! {
    /// For any bytes, an edit is refused or keeps the bytes outside of it.
    #[test]
    fn odd_bytes_are_kept_or_refused(
        content in odd_bytes(),
        old in "[a\\r\\n\u{e9}\u{fffd}]{1,3}",
        new in "[b\\n\u{e9}\u{4e2d}]{0,3}",
        line in 0..5_usize,
    ) {
        let _ = (insert(&content, line, &new), rewrite(&content, &new), unified_diff(Some(&content), None, "x"));
        if let (Ok(edited), Ok(text)) = (replace(&content, &old, &new, Unique), TextContent::decode(&content)) {
            let range = edited.found[0].clone();
            // The bytes of the lines before and after are there again.
            let before: usize = text.body().split_inclusive(|byte| *byte == b'\n').take(range.start - 1).map(<[u8]>::len).sum();
            if text.encoding() == Encoding::Utf8 {
                prop_assert!(edited.content.starts_with(&content[..before]));
            }
            let same_head = edited.content.iter().zip(&content).take_while(|(new, old)| new == old).count();
            let rest = content.len().min(edited.content.len()) - same_head;
            let same_tail = edited.content.iter().rev().zip(content.iter().rev()).take(rest).take_while(|(new, old)| new == old).count();
            // Nothing but the old text, at most four bytes for each character, is gone.
            prop_assert!(content.len() - same_head - same_tail <= 4 * (old.chars().count() + 4));
        }
    }

    #[test]
    fn no_patch_panics(text in "((--- a/x|\\+\\+\\+ b/x|@@ -1,2 \\+1 @@|@@|[ +-]a|[ +-]|\\\\ No|\\*\\*\\* Begin Patch|\\*\\*\\* Update File: x|\\*\\*\\* End Patch|rename to y|diff --git a/x b/x|new file mode 100644|b)\r?\n){0,12}") {
        if let Ok(patch) = Patch::parse(&text) {
            let _ = plan(&patch, &|path| (path == "x").then(|| b"a\na\r\n\nb".to_vec()));
        }
    }
}
