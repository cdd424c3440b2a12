//! How far two words are apart, for saying which one was probably meant.

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
}
