//! The known word that a mistyped one was probably meant to be: the one implementation of "did you mean".

/// Levenshtein's distance in characters, one row at a time.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (slot, y) in row.iter_mut().skip(1).zip(&b) {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = *slot;
            left = substituted.min(*slot + 1).min(left + 1);
            *slot = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// The known word that was probably meant: the one fewest edits away, if these are few for a word of this length.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    let limit = match word.chars().count() {
        0..=3 => 1,
        4..=7 => 2,
        _ => 3,
    };
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(&word, &plain(candidate)), candidate))
        // A word that has hardly anything in common with a short one is not a suggestion for it.
        .filter(|(edits, candidate)| *edits <= limit && *edits < candidate.len())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

fn plain(word: &str) -> String {
    word.to_lowercase().replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_levenshteins() {
        for (a, b, expected) in [
            ("", "", 0),
            ("bash", "bash", 0),
            ("bash", "bsh", 1),
            ("view", "veiw", 2),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edit_distance(a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        let known = ["line_seconds", "mode", "model", "tools", "top_p"];
        for (word, meant) in [
            ("line_second", Some("line_seconds")),
            ("line-seconds", Some("line_seconds")),
            ("LineSeconds", Some("line_seconds")),
            ("toosl", Some("tools")),
            ("top_k", Some("top_p")),
            ("colour", None),
            ("x", None),
            ("", None),
            ("mcp:git:commit", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
