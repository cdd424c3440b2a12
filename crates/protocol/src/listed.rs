//! Lists of warnings whose length somebody else decides.

/// Warnings of one list that are told; of the others only their number.
const TOLD: usize = 20;

/// The first of many warnings, and how many more there are.
pub fn listed(warnings: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut warnings = warnings.into_iter();
    let mut told: Vec<String> = warnings.by_ref().take(TOLD).collect();
    let more = warnings.count();
    if more > 0 {
        told.push(format!("{more} more like these are not listed."));
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_are_told_and_the_others_counted() {
        let words = |count: usize| (0..count).map(|number| number.to_string());
        assert_eq!(listed(words(20)).len(), 20);
        let told = listed(words(200_000));
        assert_eq!(
            (told.len(), told.last().unwrap().as_str()),
            (21, "199980 more like these are not listed.")
        );
    }
}
