//! The text that `printf` and `echo -e` make of their words: escapes and formats, without running anything. For
//! denials only.
//!
//! Shells decode different escapes. Where they differ, the one that decodes most is followed: too much is read, never
//! too little.

/// The most bytes that a format may grow beyond its own words.
const MOST: usize = 8192;

/// The widest field that is padded.
const WIDEST: usize = 64;

/// The program that decodes a text; it decides how many digits follow `\0`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decoder {
    /// The format of `printf`: three digits in all.
    Format,
    /// `echo -e` and `%b`: three digits after the zero.
    Echo,
}

/// A text with its escapes decoded.
pub(crate) fn decoded(text: &str, by: Decoder) -> String {
    let mut out = Vec::with_capacity(text.len());
    decode(text, by, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn decode(text: &str, by: Decoder, out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before.as_bytes());
        rest = escape(after.get(1..).unwrap_or_default(), by, out);
    }
    out.extend_from_slice(rest.as_bytes());
}

/// Decodes the escape after a backslash, and returns the rest after it.
fn escape<'a>(text: &'a str, by: Decoder, out: &mut Vec<u8>) -> &'a str {
    let Some(c) = text.chars().next() else {
        out.push(b'\\');
        return text;
    };
    let rest = text.get(c.len_utf8()..).unwrap_or_default();
    let simple = match c {
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 27,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' => b'\\',
        '\'' => b'\'',
        '"' => b'"',
        '?' => b'?',
        // Nothing more is printed; text after it is read by itself.
        'c' => b'\n',
        'x' => return number(rest, 16, 2, out, "x"),
        'u' => return number(rest, 16, 4, out, "u"),
        'U' => return number(rest, 16, 8, out, "U"),
        '0' if by == Decoder::Echo => return number(rest, 8, 3, out, ""),
        '0'..='7' => return number(text, 8, 3, out, ""),
        _ => {
            out.push(b'\\');
            return text;
        }
    };
    out.push(simple);
    rest
}

/// Decodes the digits of a character, and returns the rest after them. After `u` and `U` it is a character, not a
/// byte.
fn number<'a>(text: &'a str, radix: u32, most: usize, out: &mut Vec<u8>, sign: &str) -> &'a str {
    let digits = text.bytes().take(most).take_while(|byte| char::from(*byte).is_digit(radix)).count();
    let (digits, rest) = text.split_at(digits);
    match u32::from_str_radix(digits, radix) {
        Err(_) if radix == 8 => out.push(0),
        Err(_) => {
            out.push(b'\\');
            out.extend_from_slice(sign.as_bytes());
        }
        Ok(number) if matches!(sign, "u" | "U") => {
            let c = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(number) => out.push(u8::try_from(number & 0xff).unwrap_or_default()),
    }
    rest
}

/// A program of another language with those characters decoded that its texts write as numbers: `\x72`, `\162`,
/// `\u0072`, `\u{72}`, `\x{72}`. Signs that separate texts stay as they are written, so that each text still ends
/// where it did.
pub(crate) fn spelled_out(program: &str) -> String {
    let mut out = String::with_capacity(program.len());
    let mut rest = program;
    while let Some(at) = rest.find('\\') {
        let (before, after) = rest.split_at(at);
        out.push_str(before);
        let behind = after.get(1..).unwrap_or_default();
        match numbered(behind).filter(|(c, _)| c.is_alphanumeric() || "/._- ~>".contains(*c)) {
            Some((c, left)) => {
                out.push(c);
                rest = left;
            }
            None => {
                let length = behind.chars().next().map_or(0, char::len_utf8);
                let (escaped, left) = after.split_at(1 + length);
                out.push_str(escaped);
                rest = left;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The character whose number follows a backslash, and the rest after it.
fn numbered(text: &str) -> Option<(char, &str)> {
    let sign = text.chars().next()?;
    let behind = text.get(sign.len_utf8()..)?;
    let (radix, most) = match sign {
        'x' => (16, 2),
        'u' => (16, 4),
        'U' => (16, 8),
        'o' => (8, 0),
        '0'..='7' => (8, 3),
        _ => return None,
    };
    let braced = behind.strip_prefix('{').filter(|_| sign.is_alphabetic());
    let (digits, rest) = match braced {
        Some(inside) => inside.split_once('}')?,
        None => {
            let text = if sign.is_alphabetic() { behind } else { text };
            let digits = text.bytes().take(most).take_while(|byte| char::from(*byte).is_digit(radix));
            text.split_at(digits.count())
        }
    };
    let number = u32::from_str_radix(digits.trim(), radix).ok()?;
    Some((char::from_u32(number)?, rest))
}

/// The text that `printf` prints of a format and its words. Surplus words go through the format again; words that
/// would make the text too long are only appended.
pub(crate) fn formatted(format: &str, words: &[String]) -> String {
    let given: usize = words.iter().map(String::len).sum();
    let most = format.len() + given + MOST;
    let mut out = Vec::with_capacity(format.len());
    let mut left = words;
    loop {
        let before = left.len();
        pass(format, &mut left, &mut out);
        if left.is_empty() {
            break;
        }
        if left.len() == before || out.len() > most {
            for word in left {
                out.push(b'\n');
                out.extend_from_slice(word.as_bytes());
            }
            break;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Goes through a format once.
fn pass(format: &str, words: &mut &[String], out: &mut Vec<u8>) {
    let mut rest = format;
    while let Some(at) = rest.find(['\\', '%']) {
        let (before, after) = rest.split_at(at);
        out.extend_from_slice(before.as_bytes());
        let behind = after.get(1..).unwrap_or_default();
        rest = match after.starts_with('\\') {
            true => escape(behind, Decoder::Format, out),
            false => directive(behind, words, out),
        };
    }
    out.extend_from_slice(rest.as_bytes());
}

/// The width of a field, and the length of the word in it.
#[derive(Default)]
struct Field {
    left: bool,
    zero: bool,
    width: usize,
    most: Option<usize>,
}

/// Writes the value of a directive, and returns the rest after it.
fn directive<'a>(text: &'a str, words: &mut &[String], out: &mut Vec<u8>) -> &'a str {
    let mut field = Field::default();
    let flags = text.len() - text.trim_start_matches(['-', '+', ' ', '#', '0', '\'']).len();
    let (flags, mut rest) = text.split_at(flags);
    field.left = flags.contains('-');
    field.zero = flags.contains('0');
    field.width = size(&mut rest, words).unwrap_or(0);
    if let Some(behind) = rest.strip_prefix('.') {
        rest = behind;
        field.most = Some(size(&mut rest, words).unwrap_or(0));
    }
    // `%(x)T`: a time in a format of its own, whose plain text stays.
    if let Some((time, behind)) = rest.strip_prefix('(').and_then(|time| time.split_once(")T")) {
        take(words);
        put(time, &field, out);
        return behind;
    }
    rest = rest.trim_start_matches(['h', 'l', 'L', 'j', 'z', 't']);
    let Some(c) = rest.chars().next() else {
        out.push(b'%');
        out.extend_from_slice(text.as_bytes());
        return "";
    };
    let behind = rest.get(c.len_utf8()..).unwrap_or_default();
    match c {
        '%' => out.push(b'%'),
        's' | 'q' | 'Q' => put(take(words), &field, out),
        'b' => put(&decoded(take(words), Decoder::Echo), &field, out),
        'c' => {
            let word = take(words);
            let first = word.chars().next().map_or(0, char::len_utf8);
            put(word.get(..first).unwrap_or_default(), &Field { most: None, ..field }, out);
        }
        'd' | 'i' | 'u' | 'o' | 'x' | 'X' => {
            let word = take(words);
            let shown = match (integer(word), c) {
                (None, _) => word.to_owned(),
                (Some(number), 'o') => format!("{number:o}"),
                (Some(number), 'x') => format!("{number:x}"),
                (Some(number), 'X') => format!("{number:X}"),
                (Some(number), _) => number.to_string(),
            };
            put(&shown, &Field { most: None, ..field }, out);
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' | 'a' | 'A' => {
            put(take(words), &Field { most: None, ..field }, out)
        }
        'n' => {
            take(words);
        }
        _ => {
            out.push(b'%');
            return text;
        }
    }
    behind
}

/// The next word; empty where none is left.
fn take<'a>(words: &mut &'a [String]) -> &'a str {
    let Some((first, rest)) = words.split_first() else { return "" };
    *words = rest;
    first
}

/// A number in a format, or the word that `*` stands for.
fn size(rest: &mut &str, words: &mut &[String]) -> Option<usize> {
    if let Some(behind) = rest.strip_prefix('*') {
        *rest = behind;
        return take(words).trim_start_matches('-').parse().ok();
    }
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, behind) = rest.split_at(digits);
    *rest = behind;
    // A number that does not fit is larger than any word.
    (!digits.is_empty()).then(|| digits.parse().unwrap_or(usize::MAX))
}

/// The integer that a word means to `printf`: `0x2f`, `057`, `'/`.
fn integer(word: &str) -> Option<i64> {
    let word = word.trim();
    if let Some(c) = word.strip_prefix(['\'', '"']).and_then(|rest| rest.chars().next()) {
        return Some(i64::from(u32::from(c)));
    }
    let (sign, digits) = word.strip_prefix('-').map_or((1, word), |rest| (-1, rest));
    let lower = digits.to_ascii_lowercase();
    let number = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(hex), _) => i64::from_str_radix(hex, 16),
        (None, Some(octal)) if !octal.is_empty() => i64::from_str_radix(octal, 8),
        (None, _) if lower.is_empty() => return Some(0),
        (None, _) => lower.parse(),
    };
    number.ok().and_then(|number| number.checked_mul(sign))
}

fn put(text: &str, field: &Field, out: &mut Vec<u8>) {
    let end = field.most.and_then(|most| text.char_indices().nth(most)).map_or(text.len(), |(at, _)| at);
    let text = text.get(..end).unwrap_or(text);
    let fill = field.width.min(WIDEST).saturating_sub(text.chars().count());
    let with = if field.zero && !field.left { b'0' } else { b' ' };
    if !field.left {
        out.extend(std::iter::repeat_n(with, fill));
    }
    out.extend_from_slice(text.as_bytes());
    if field.left {
        out.extend(std::iter::repeat_n(with, fill));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printf(words: &[&str]) -> String {
        let rest: Vec<String> = words.iter().skip(1).map(|word| (*word).to_owned()).collect();
        formatted(words[0], &rest)
    }

    #[test]
    fn a_format_prints_what_bash_prints() {
        for (words, expected) in [
            (vec!["\\x72m"], "rm"),
            (vec!["\\162\\155"], "rm"),
            (vec!["\\0162"], "\u{e}2"),
            (vec!["%b", "\\0162m\\x20x"], "rm x"),
            (vec!["\\u0072\\U0000006d"], "rm"),
            (vec!["%c%c -rf %s", "rx", "my", "/"], "rm -rf /"),
            (vec!["%.2s|%5s|%-3s|", "rmx", "a", "b"], "rm|    a|b  |"),
            (vec!["%.*s", "2", "rmx"], "rm"),
            (vec!["%d %x %o %X %03d", "0x2f", "47", "8", "255", "7"], "47 2f 10 FF 007"),
            (vec!["%d", "'/"], "47"),
            (vec!["%s-", "a", "b"], "a-b-"),
            (vec!["100%% \\\\ \\\" \\q"], "100% \\ \" \\q"),
            (vec!["%(rm)T", "0"], "rm"),
            (vec!["\\xc3\\xa4"], "ä"),
            (vec!["a\\0b"], "a\0b"),
            (vec!["x", "y"], "x\ny"),
        ] {
            assert_eq!(printf(&words), expected, "{words:?}");
        }
    }

    #[test]
    fn no_format_fails_or_grows_without_end() {
        for format in [
            "%999999999d",
            "%-999999999999999999999999s",
            "%.99999999999999999999s",
            "%*d",
            "%",
            "%l",
            "%(",
            "%(x",
            "\\",
            "\\x",
            "\\u",
            "\\U",
            "\\Uffffffff",
            "\\ud800",
            "\\xc3",
            "\\xff\\xfe",
            "\\0",
            "\\777",
            "%ä",
            "\\ä",
            "%5",
            "%.",
            "%z",
            "%.*",
            "%b\\c",
        ] {
            for words in
                [vec![], vec!["ä"; 3], vec!["99999999999999999999"; 3], vec!["-9223372036854775808"; 3]]
            {
                let given: Vec<&str> = [format].into_iter().chain(words).collect();
                assert!(printf(&given).len() < 2000, "{given:?}");
            }
        }
        let long = "x".repeat(4000) + "%s";
        let words = vec![String::from("y"); 4000];
        let text = formatted(&long, &words);
        assert!(text.len() < 200_000);
        assert_eq!(text.matches('y').count(), 4000);
        assert!(formatted(&"%64s".repeat(30_000), &[]).len() <= 64 * 30_000);
    }

    #[test]
    fn a_program_is_spelled_out_and_its_texts_keep_their_ends() {
        for (program, expected) in [
            (r"os.system('\x72m -rf \57')", "os.system('rm -rf /')"),
            (r"f('\u0072\u{6d}\x{20}\o{55}\162f')", "f('rm -rf')"),
            (r"f('a\'b\\x72\n\x27\x')", r"f('a\'b\\x72\n\x27\x')"),
            (r"f('\u{', '\", r"f('\u{', '\"),
            (r"'\ä\u{110000}\U00110000'", r"'\ä\u{110000}\U00110000'"),
        ] {
            assert_eq!(spelled_out(program), expected, "{program}");
        }
    }

    #[test]
    fn echo_decodes_three_digits_behind_the_zero() {
        assert_eq!(decoded("\\0162m\\x20-rf\\t\\057\\\\", Decoder::Echo), "rm -rf\t/\\");
        assert_eq!(decoded("a\\cb \\0c", Decoder::Echo), "a\nb \0c");
    }
}
