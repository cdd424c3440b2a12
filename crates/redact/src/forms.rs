//! The forms in which a value may be written.

use crate::{SHORTEST, escapes};

/// The base64 or hex form of a value must be this long to count.
const SHORTEST_FORM: usize = 8;

/// A line of a value counts alone if it is this long.
const LINE: usize = 20;

/// Longer values are only known in forms that are not much longer than they are.
const LONG: usize = 512;

/// The longest form that is searched for as a whole; a longer one is searched for in pieces.
pub(crate) const PIECE: usize = 4096;

/// The most bytes of all forms of all values, besides the values themselves.
pub(crate) const ROOM: usize = 1 << 20;

/// The bytes that one byte of a value takes in all its forms, in those of a long one, and in the few that are tried
/// last.
const ALL: usize = 256;
const MANY: usize = 128;
const FEW: usize = 24;

/// The value itself and all its other forms, as far as there is room. A form may be there twice.
pub(crate) fn value_forms(value: &str, room: usize) -> Vec<String> {
    let whole = value.trim_end_matches(['\r', '\n']);
    let whole = if whole.len() < SHORTEST { value } else { whole };
    if !whole.contains('\n') {
        return spelled(whole, room);
    }
    let plain = whole.replace("\r\n", "\n");
    let mut forms = spelled(&plain, room / 2);
    forms.extend(spelled(&plain.replace('\n', "\r\n"), room / 2));
    // The frame of a key is not secret, and a line of words or of settings occurs elsewhere too.
    let is_alone = |line: &&str| {
        line.len() >= LINE && !line.starts_with("-----") && line.bytes().all(|byte| byte.is_ascii_graphic())
    };
    forms.extend(plain.lines().map(str::trim).filter(is_alone).map(str::to_owned));
    forms
}

/// A form in pieces that are short enough. All begin at the same places, so forms with the same beginning have the
/// same pieces.
pub(crate) fn pieces(form: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = form;
    while rest.len() > PIECE {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        pieces.push(piece);
        rest = behind;
    }
    if pieces.is_empty() || rest.len() >= SHORTEST_FORM {
        pieces.push(rest);
    }
    pieces
}

/// The forms for which there is room.
fn spelled(value: &str, room: usize) -> Vec<String> {
    let fits = |factor: usize| value.len().saturating_mul(factor) <= room;
    if fits(if value.len() <= LONG { ALL } else { MANY }) {
        return every(value);
    }
    let mut forms = if fits(FEW) { few(value) } else { Vec::new() };
    forms.push(value.to_owned());
    forms
}

/// Base64, hex and JSON: the forms that programs produce by default.
fn few(value: &str) -> Vec<String> {
    let mut forms: Vec<String> = (0..3).map(|before| inside_base64(value.as_bytes(), before)).collect();
    forms.push(hex(value, "", false));
    forms.push(escapes::json_plain(value));
    forms.retain(|form| form.len() >= SHORTEST_FORM);
    forms
}

/// All forms. They need not all differ from the value; that depends on its characters.
fn every(value: &str) -> Vec<String> {
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
    if value.len() <= LONG {
        forms.extend(turned(value));
        forms.extend((0..5).flat_map(|before| base32(value.as_bytes(), before)));
        forms.extend(escapes::each_character(value));
        forms.extend(
            [" ", ":"].into_iter().flat_map(|gap| [true, false].map(|upper| spaced_hex(value, gap, upper))),
        );
    }
    forms.extend(escapes::json(value));
    forms.extend(escapes::html(value));
    forms.extend(escapes::shell(value));
    forms.push(value.to_owned());
    forms.sort();
    forms.dedup();
    forms
}

/// The characters, besides letters and digits, that percent-encoding leaves as they are: by the standard, in browsers
/// for a part and for a whole address, in Python and in forms.
const KEPT: [&str; 5] = ["-._~", "-._~!*'()", "-._~!*'();/?:@&=+$,#", "-._~/", "-._*"];

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The base64 forms of a value at each of the three offsets it can have among other bytes, in both alphabets, then
/// the JSON, URL and base64 forms of these.
fn base64(value: &str) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let standard = inside_base64(value.as_bytes(), before);
        let for_urls = standard.replace('+', "-").replace('/', "_");
        if value.len() <= LONG {
            forms.extend((0..3).map(|before| inside_base64(standard.as_bytes(), before)));
            forms.extend((0..3).map(|before| inside_base64(for_urls.as_bytes(), before)));
            // In `base64 | base64`, the inner one has line breaks.
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

/// The characters of base64 that depend on the value alone, with `before` bytes in front of it.
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

/// A value must be this long to be recognised backwards or in another case: a short one is then a word of ordinary
/// text.
const TURNED: usize = 12;

/// The value backwards, and in the other cases.
fn turned(value: &str) -> Vec<String> {
    if value.len() < TURNED {
        return Vec::new();
    }
    vec![value.chars().rev().collect(), value.to_uppercase(), value.to_lowercase()]
}

/// The characters of base32 that depend on the value alone, with `before` bytes in front of it.
fn base32(value: &[u8], before: usize) -> Vec<String> {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bit = |at: usize| -> u8 {
        let byte = (at / 8).checked_sub(before).and_then(|byte| value.get(byte)).copied().unwrap_or(0);
        byte >> (7 - at % 8) & 1
    };
    let first = (before * 8).div_ceil(5);
    let last = (before + value.len()) * 8 / 5;
    let letter = |place: usize| {
        let index = (0..5).fold(0, |index, at| index << 1 | usize::from(bit(place * 5 + at)));
        LETTERS.get(index).map_or('A', |letter| char::from(*letter))
    };
    let upper: String = (first..last).map(letter).collect();
    if upper.len() < TURNED {
        return Vec::new();
    }
    vec![upper]
}

/// Hex with a separator between the bytes, in one line.
fn spaced_hex(value: &str, gap: &str, upper: bool) -> String {
    hex(value, gap, upper).get(gap.len()..).unwrap_or_default().to_owned()
}

/// Every byte in hex, also those that need no escape.
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

#[cfg(test)]
mod tests {
    use crate::Redactor;

    #[test]
    fn a_value_is_known_turned_wrapped_and_with_every_character_escaped() {
        let value = "sk-Planted/0123+xyz";
        let redactor = Redactor::new([("KEY".to_owned(), value.to_owned())]);
        for text in [
            "zyx+3210/detnalP-ks",
            "SK-PLANTED/0123+XYZ",
            "sk-planted/0123+xyz",
            "ONVS2UDMMFXHIZLEF4YDCMRTFN4HS6Q=",
            "PBZWWLKQNRQW45DFMQXTAMJSGMVXQ6L2", // "x" before it
            "\\u0073\\u006b\\u002d\\u0050\\u006c\\u0061\\u006e\\u0074\\u0065\\u0064\\u002f\\u0030\\u0031\\u0032\\u0033\\u002b\\u0078\\u0079\\u007a",
            "\\x73\\x6b\\x2d\\x50\\x6c\\x61\\x6e\\x74\\x65\\x64\\x2f\\x30\\x31\\x32\\x33\\x2b\\x78\\x79\\x7a",
            "\\163\\153\\055\\120\\154\\141\\156\\164\\145\\144\\057\\060\\061\\062\\063\\053\\170\\171\\172",
            "73 6b 2d 50 6c 61 6e 74 65 64 2f 30 31 32 33 2b 78 79 7a",
            "73:6B:2D:50:6C:61:6E:74:65:64:2F:30:31:32:33:2B:78:79:7A",
            "c2stUGxhbnR\nlZC8wMTIzK3\nh5eg==",
            "&#x73;&#x6b;&#x2d;&#x50;&#x6c;&#x61;&#x6e;&#x74;&#x65;&#x64;&#x2f;&#x30;&#x31;&#x32;&#x33;&#x2b;&#x78;&#x79;&#x7a;",
        ] {
            let clean = redactor.redact_text(text);
            assert!(clean.contains("«secret:KEY»"), "{text}: {clean}");
        }
        for text in ["planted 0123", "sk-Planted", "SK-", "zyx+3210"] {
            assert_eq!(redactor.redact_text(text), text);
        }
    }
}
