//! The last rung: lines that are nearly the wanted ones.
//!
//! The measure is Gemini CLI's, so that its toolset finds the same: the edit distance without whitespace plus a tenth
//! of the distance that whitespace adds, relative to the length of the wanted text. It differs in one point: it never
//! chooses between two places that are equally near.

use crate::TextContent;
use crate::find::MatchSpan;
use crate::text::{TextLine, trim_end};

/// A shorter text is near too many others.
const SHORTEST: usize = 10;
/// Bounds the work: lines of the file times the square of the wanted length.
const MOST_WORK: usize = 400_000_000;
/// The largest distance of a match, in thousandths of the text's length.
const NEAR: usize = 100;

/// The places near enough, in order. With `best`, only the nearest one, or all that share the first place.
pub(crate) fn find(
    text: &TextContent<'_>,
    lines: &[TextLine],
    pieces: &[&str],
    best: bool,
    allowed: impl Fn(&MatchSpan) -> bool,
) -> Vec<MatchSpan> {
    // A blank first or last piece is the line break before or after the lines.
    let blank = |piece: Option<&&str>| piece.is_some_and(|piece| trim_end(piece.as_bytes()).is_empty());
    let lead = usize::from(pieces.len() > 1 && blank(pieces.first()));
    let trail = usize::from(pieces.len() > 1 + lead && blank(pieces.last()));
    let wanted: Vec<char> = pieces[lead..pieces.len() - trail].join("\n").chars().collect();
    let work = wanted.len().saturating_mul(wanted.len()).saturating_mul(lines.len());
    let bare: Vec<char> = wanted.iter().copied().filter(|c| !c.is_whitespace()).collect();
    if wanted.len() < SHORTEST || bare.is_empty() || work > MOST_WORK {
        return Vec::new();
    }

    let body = text.body();
    let mut near: Vec<(usize, MatchSpan)> = Vec::new();
    for (index, window) in lines.windows(pieces.len()).enumerate() {
        let inner = &window[lead..window.len() - trail];
        let start = if lead == 1 { window[0].end } else { window[0].start };
        let last = &window[window.len() - 1];
        let end = if trail == 1 { last.start } else { last.end };
        let place = MatchSpan { start, end, line: index, lines: pieces.len() };
        if let Some(distance) = distance(body, inner, &wanted, &bare)
            && allowed(&place)
        {
            near.push((distance, place));
        }
    }
    near.sort_by_key(|(distance, place)| (*distance, place.start));
    let Some((nearest, _)) = near.first().copied() else {
        return Vec::new();
    };
    let mut chosen: Vec<MatchSpan> = Vec::new();
    for (distance, place) in near {
        let apart = chosen.iter().all(|other| place.end <= other.start || other.end <= place.start);
        if if best { distance == nearest } else { apart } {
            chosen.push(place);
        }
    }
    chosen.sort_by_key(|place| place.start);
    chosen
}

/// Ten times the weighted distance, if it is near enough.
fn distance(body: &[u8], lines: &[TextLine], wanted: &[char], bare: &[char]) -> Option<usize> {
    let mut window: Vec<char> = Vec::with_capacity(wanted.len() * 2);
    for (at, line) in lines.iter().enumerate() {
        if at > 0 {
            window.push('\n');
        }
        // Bytes bound characters, so a line of megabytes is not even decoded.
        let content = line.content(body);
        if content.len() > wanted.len() * 8 {
            return None;
        }
        window.extend(String::from_utf8_lossy(content).chars());
    }
    if window.len().abs_diff(wanted.len()) > wanted.len() {
        return None;
    }
    let most = wanted.len() * NEAR / 1000;
    let without: Vec<char> = window.iter().copied().filter(|c| !c.is_whitespace()).collect();
    let inner = levenshtein(&without, bare, most)?;
    // The rest has a weight of a tenth, so it may be ten times the remaining distance.
    let outer = levenshtein(&window, wanted, inner + 10 * (most + 1 - inner))?;
    let weighed = 10 * inner + outer.saturating_sub(inner);
    (weighed * 1000 <= 10 * NEAR * wanted.len()).then_some(weighed)
}

/// The edit distance, if it is at most `most`: only the band of the table is computed that such a distance can pass
/// through.
fn levenshtein(a: &[char], b: &[char], most: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > most {
        return None;
    }
    const FAR: usize = usize::MAX / 2;
    let mut before: Vec<usize> = (0..=b.len()).map(|at| if at <= most { at } else { FAR }).collect();
    let mut row = vec![FAR; b.len() + 1];
    for (i, from) in a.iter().enumerate() {
        let (low, high) = ((i + 1).saturating_sub(most).max(1), (i + 1 + most).min(b.len()));
        row[low - 1] = if low == 1 && i < most { i + 1 } else { FAR };
        for j in low..=high {
            let swapped = before[j - 1] + usize::from(*from != b[j - 1]);
            row[j] = swapped.min(before[j] + 1).min(row[j - 1] + 1);
        }
        if high < b.len() {
            row[high + 1] = FAR;
        }
        std::mem::swap(&mut before, &mut row);
    }
    before.get(b.len()).copied().filter(|distance| *distance <= most)
}

#[cfg(test)]
mod tests {
    use super::levenshtein;

    #[test]
    fn the_band_gives_the_true_distance_or_nothing() {
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        for (a, b, distance) in [
            ("", "", 0),
            ("abc", "abc", 0),
            ("kitten", "sitting", 3),
            ("abc", "", 3),
            ("abcdef", "xabcde", 2),
        ] {
            for most in 0..10 {
                let wanted = (distance <= most).then_some(distance);
                assert_eq!(levenshtein(&chars(a), &chars(b), most), wanted, "{a} {b} {most}");
                assert_eq!(levenshtein(&chars(b), &chars(a), most), wanted, "{b} {a} {most}");
            }
        }
    }

    fn plainly(a: &[char], b: &[char]) -> usize {
        let mut row: Vec<usize> = (0..=b.len()).collect();
        for (i, from) in a.iter().enumerate() {
            let mut corner = i;
            row[0] = i + 1;
            for j in 1..=b.len() {
                let next = (corner + usize::from(*from != b[j - 1])).min(row[j] + 1).min(row[j - 1] + 1);
                corner = std::mem::replace(&mut row[j], next);
            }
        }
        row[b.len()]
    }

    proptest::proptest! {
        #[test]
        fn the_band_agrees_with_the_whole_table(a in "[a-c]{0,12}", b in "[a-c]{0,12}", most in 0..14_usize) {
            let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
            let distance = plainly(&a, &b);
            proptest::prop_assert_eq!(levenshtein(&a, &b, most), (distance <= most).then_some(distance));
        }
    }
}
