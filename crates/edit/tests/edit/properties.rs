use lathe_edit::MatchKind::Exact;
use lathe_edit::Occurrence::{All, Unique};
use lathe_edit::{EditError, Edited, replace};
use proptest::prelude::*;

#[test]
fn large_and_odd_content_does_not_take_long() {
    let started = std::time::Instant::now();
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
    // Generous for an unoptimised build on a busy machine.
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "{:?}", started.elapsed());
}

proptest! {
    /// The one invariant: everything but the slice stays, byte for byte.
    #[test]
    fn only_the_slice_changes(
        before in proptest::collection::vec(1_u8.., 0..60),
        old in "[a-c\\t \\r\\n\u{e9}]{1,12}",
        after in proptest::collection::vec(1_u8.., 0..60),
        new in "[a-d$&\\\\\\t \\r\\n\u{20ac}]{0,12}",
    ) {
        let content = [before.as_slice(), old.as_bytes(), after.as_slice()].concat();
        let places = content.windows(old.len()).filter(|window| *window == old.as_bytes()).count();
        prop_assume!(places == 1 && old != new);
        // Rules of their own: the mark, a CRLF torn apart, line feeds in CRLF text.
        prop_assume!(!content.starts_with(b"\xef\xbb\xbf"));
        prop_assume!(!(before.ends_with(b"\r") && old.starts_with('\n')));
        let literal = old.contains('\n') || !content.windows(2).any(|two| two == b"\r\n");
        let new = if literal { new } else { new.replace('\n', " ") };
        prop_assume!(old != new);

        let wanted = [before.as_slice(), new.as_bytes(), after.as_slice()].concat();
        let edited = replace(&content, &old, &new, Unique);
        prop_assert_eq!(edited.as_ref().map(|edited| &edited.content), Ok(&wanted));
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        let breaks = new.matches('\n').count();
        let end = line + breaks + usize::from(!new.is_empty() && !new.ends_with('\n'));
        let all = Edited {
            content: wanted,
            matched: Exact,
            regions: std::iter::once(line..end).collect(),
            replaced: 1,
        };
        prop_assert_eq!(replace(&content, &old, &new, All), Ok(all));
    }

    /// Whatever is asked, bytes before and after a looser match stay as well.
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
