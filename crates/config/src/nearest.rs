//! Which known word was probably meant.

use lathe_protocol::edit_distance;

/// The candidate that is fewest edits away, if that is few for a word of this length.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    let limit = match word.chars().count() {
        0..=3 => 1,
        4..=7 => 2,
        _ => 3,
    };
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(&word, &plain(candidate)), candidate))
        // A word that shares hardly anything with a short one is no suggestion for it.
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
    fn distances() {
        for (left, right, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("max_step", "max_steps", 1),
            ("modle", "model", 2),
            ("flaw", "lawn", 2),
        ] {
            assert_eq!(edit_distance(&plain(left), &plain(right)), edits, "{left} {right}");
        }
    }

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        let known = ["max_steps", "mode", "model", "tools", "top_p"];
        for (word, meant) in [
            ("max_step", Some("max_steps")),
            ("max-steps", Some("max_steps")),
            ("MaxSteps", Some("max_steps")),
            ("toosl", Some("tools")),
            ("top_k", Some("top_p")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
    }
}
