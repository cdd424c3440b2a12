//! The forms in which a value may be written.

/// The value itself, then what base64 makes of it at each of the three places it can have among other bytes, in both
/// alphabets, then what URLs make of it.
pub(crate) fn of(value: &str) -> Vec<String> {
    let mut forms = vec![value.to_owned()];
    for before in 0..3 {
        let standard = inside_base64(value.as_bytes(), before);
        forms.push(standard.replace('+', "-").replace('/', "_"));
        forms.push(standard);
    }
    for (space, upper) in [("%20", true), ("%20", false), ("+", true)] {
        forms.push(percent(value, space, upper));
    }
    forms.extend([true, false].map(|upper| all_percent(value, upper)));
    let mut seen = std::collections::HashSet::new();
    forms.retain(|form| seen.insert(form.clone()));
    forms
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

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
fn all_percent(value: &str, upper: bool) -> String {
    let byte = |byte: u8| if upper { format!("%{byte:02X}") } else { format!("%{byte:02x}") };
    value.bytes().map(byte).collect()
}

fn percent(value: &str, space: &str, upper: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b' ' => out.push_str(space),
            b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => out.push(char::from(byte)),
            _ if upper => out.push_str(&format!("%{byte:02X}")),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}
