//! Lists of warnings whose length is decided elsewhere.

/// The warnings of one list that are shown; of the others only their number is.
const TOLD: usize = 20;

/// The first of many warnings, and the number of the others.
pub fn list_warnings(warnings: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut warnings = warnings.into_iter();
    let mut told: Vec<String> = warnings.by_ref().take(TOLD).collect();
    let more = warnings.count();
    if more > 0 {
        told.push(format!("{more} more like these are not listed."));
    }
    told
}

/// A number with the counted noun: `1 file`, `2 files`, `1 entry`, `0 entries`.
pub fn counted(count: impl TryInto<u64>, one: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    if count == 1 {
        return format!("1 {one}");
    }
    match one.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        Some(_) | None => format!("{count} {one}s"),
    }
}

/// A number with its thousands separated.
pub fn grouped(number: impl TryInto<u64>) -> String {
    let digits = number.try_into().unwrap_or(u64::MAX).to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thing_is_told_as_one() {
        let told = [(0, "file"), (1, "file"), (2, "file"), (1, "entry"), (3, "entry"), (2, "day")];
        let told = told.map(|(count, one)| counted(count, one));
        assert_eq!(told, ["0 files", "1 file", "2 files", "1 entry", "3 entries", "2 days"]);
    }

    #[test]
    fn the_first_are_told_and_the_others_counted() {
        let words = |count: usize| (0..count).map(|number| number.to_string());
        assert_eq!(list_warnings(words(20)).len(), 20);
        let told = list_warnings(words(200_000));
        assert_eq!(
            (told.len(), told.last().unwrap().as_str()),
            (21, "199980 more like these are not listed.")
        );
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0_u64, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(grouped(number), text, "{number}");
        }
    }
}
