//! The forms in which a value may be written.

use crate::{SHORTEST, escapes};

/// What base64 or hex makes of a value must be longer to count.
const SHORTEST_FORM: usize = 8;

/// A line of a value counts alone if it is this long.
const LINE: usize = 20;

/// Of longer values, only the forms that are not much longer still.
const LONG: usize = 512;

/// The value itself and all else it is known by. Some may be there twice.
pub(crate) fn of(value: &str) -> Vec<String> {
    let whole = value.trim_end_matches(['\r', '\n']);
    let whole = if whole.len() < SHORTEST { value } else { whole };
    if !whole.contains('\n') {
        return spelled(whole);
    }
    let plain = whole.replace("\r\n", "\n");
    let mut forms = spelled(&plain);
    forms.extend(spelled(&plain.replace('\n', "\r\n")));
    // What frames a key is no secret, and a line of words or of settings is like those of others.
    let is_alone = |line: &&str| {
        line.len() >= LINE && !line.starts_with("-----") && line.bytes().all(|byte| byte.is_ascii_graphic())
    };
    forms.extend(plain.lines().map(str::trim).filter(is_alone).map(str::to_owned));
    forms
}

/// Not all forms differ from the value: it depends on what is in it.
fn spelled(value: &str) -> Vec<String> {
    let mut forms = base64(value);
    if value.len() <= LONG {
        forms.extend([true, false].map(|upper| hex(value, "%", upper)));
    }
    forms.extend(
        [true, false]
            .map(|upper| hex(value, "", upper))
            .into_iter()
            .filter(|hex| hex.len() >= 2 * SHORTEST_FORM),
    );
    for kept in KEPT {
        let ways = [("%20", true), ("%20", false), ("+", true)];
        forms.extend(ways.map(|(space, upper)| percent(value, space, kept, upper)));
    }
    forms.extend(escapes::json(value));
    forms.extend(escapes::html(value));
    forms.extend(escapes::shell(value));
    forms.push(value.to_owned());
    forms.sort();
    forms.dedup();
    forms
}

/// What percent-encoding leaves beside letters and digits: by the standard, as browsers do it to a part and to a whole
/// address, as Python and as forms do it.
const KEPT: [&str; 5] = ["-._~", "-._~!*'()", "-._~!*'();/?:@&=+$,#", "-._~/", "-._*"];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// What base64 makes of a value at each of the three places it can have among other bytes, in both alphabets, then what
/// JSON, URLs and base64 itself make of that.
fn base64(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let standard = inside_base64(value.as_bytes(), before);
        let for_urls = standard.replace('+', "-").replace('/', "_");
        if value.len() <= LONG {
            forms.extend((0..3).map(|before| inside_base64(standard.as_bytes(), before)));
            forms.extend((0..3).map(|before| inside_base64(for_urls.as_bytes(), before)));
            // `base64 | base64` has line breaks in the inner one.
            let lines: Vec<&[u8]> = standard.as_bytes().chunks(76).collect();
            if before == 0 && lines.len() > 1 {
                forms.extend((0..3).map(|before| inside_base64(&lines.join(&b'\n'), before)));
            }
        }
        forms.push(standard.replace('/', "\\/"));
        forms.push(standard.replace('/', "%2F").replace('+', "%2B"));
        forms.push(standard.replace('/', "%2f").replace('+', "%2b"));
        forms.extend([standard, for_urls]);
    }
    forms.retain(|form| form.len() >= SHORTEST_FORM);
    forms
}

/// The characters of base64 that depend on the value alone, when `before` bytes stand in front of it.
fn inside_base64(value: &[u8], before: usize) -> String {
    let bits = |at: usize| -> Option<bool> {
        let (byte, bit) = ((at / 8).checked_sub(before)?, 7 - at % 8);
        Some(value.get(byte)? >> bit & 1 == 1)
    };
    let first = (before * 8).div_ceil(6);
    let last = (before + value.len()) * 8 / 6;
    let letter = |place: usize| {
        let index =
            (0..6).fold(0, |index, bit| index << 1 | usize::from(bits(place * 6 + bit).unwrap_or(false)));
        ALPHABET.get(index).map_or('A', |letter| char::from(*letter))
    };
    (first..last).map(letter).collect()
}

/// Every byte, also those that need it not.
fn hex(value: &str, mark: &str, upper: bool) -> String {
    let byte = |byte: u8| if upper { format!("{mark}{byte:02X}") } else { format!("{mark}{byte:02x}") };
    value.bytes().map(byte).collect()
}

fn percent(value: &str, space: &str, kept: &str, upper: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b' ' => out.push_str(space),
            _ if byte.is_ascii_alphanumeric() || kept.as_bytes().contains(&byte) => {
                out.push(char::from(byte));
            }
            _ if upper => out.push_str(&format!("%{byte:02X}")),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}
