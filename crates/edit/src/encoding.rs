//! The encoding of a file's characters.
//!
//! UTF-8 files are never decoded: an edit searches their bytes, so invalid ones survive. Every other encoding is
//! decoded for the search, and the edited region is mapped back to the bytes it was read from; the bytes outside it
//! are copied from the file, not encoded again, because encoding again is not the identity (several byte pairs of
//! Shift_JIS mean one character).
//!
//! A guess is only made where nothing is certain. Bytes that are mostly UTF-8 with a few broken ones stay UTF-8; a
//! legacy encoding is accepted only when the whole file decodes without an error and without control characters. A
//! wrong guess between two similar legacy encodings can at worst refuse or misspell a new non-ASCII character: old
//! bytes are safe either way.
//! non-ASCII character: old bytes are safe either way.

use std::borrow::Cow;
use std::ops::Range;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{CoderResult, EncoderResult};

use crate::EditError;

const UTF8_BOM: &[u8] = b"\xef\xbb\xbf";
/// The bytes of a file that decide whether it is binary.
const PROBE: usize = 8 * 1024;
/// The bytes that the detector gets.
const SAMPLE: usize = 1024 * 1024;

/// The encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Perhaps with some invalid bytes.
    Utf8,
    Utf16Le,
    Utf16Be,
    Utf32Le,
    Utf32Be,
    /// An older encoding, guessed from the bytes.
    Legacy(&'static encoding_rs::Encoding),
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Utf32Le => "UTF-32LE",
            Self::Utf32Be => "UTF-32BE",
            Self::Legacy(encoding) => encoding.name(),
        }
    }

    /// The encoding of a content and the length of its byte order mark; `None` if it is binary. A prefix of a file
    /// gives the result for the file only if the prefix ends between two characters.
    pub fn detect(content: &[u8]) -> Option<(Self, usize)> {
        let nul = content[..content.len().min(PROBE)].contains(&0);
        if content.starts_with(UTF8_BOM) {
            return (!nul).then_some((Self::Utf8, UTF8_BOM.len()));
        }
        let marks: [(&[u8], Self); 4] = [
            (b"\xff\xfe\0\0", Self::Utf32Le),
            (b"\0\0\xfe\xff", Self::Utf32Be),
            (b"\xff\xfe", Self::Utf16Le),
            (b"\xfe\xff", Self::Utf16Be),
        ];
        for (mark, encoding) in marks {
            if let Some(rest) = content.strip_prefix(mark)
                && encoding.is_plausible(rest)
            {
                return Some((encoding, mark.len()));
            }
        }
        if nul {
            return [Self::Utf16Le, Self::Utf16Be]
                .into_iter()
                .find(|encoding| encoding.is_likely(content))
                .map(|encoding| (encoding, 0));
        }
        if std::str::from_utf8(content).is_ok() {
            return Some((Self::Utf8, 0));
        }
        Some((legacy(content).unwrap_or(Self::Utf8), 0))
    }

    /// The text of `raw` as UTF-8. Units that are not a character become U+FFFD, one for one; the bytes of a UTF-8
    /// text are returned as they are.
    pub fn decode(self, raw: &[u8]) -> Cow<'_, [u8]> {
        let text: String = match self {
            Self::Utf8 => return Cow::Borrowed(raw),
            Self::Utf16Le | Self::Utf16Be => utf16(self.units16(raw)),
            Self::Utf32Le | Self::Utf32Be => {
                self.units32(raw).map(|unit| char::from_u32(unit).unwrap_or('\u{fffd}')).collect()
            }
            Self::Legacy(encoding) => {
                return match encoding.decode_without_bom_handling(raw).0 {
                    Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
                    Cow::Owned(text) => Cow::Owned(text.into_bytes()),
                };
            }
        };
        Cow::Owned(text.into_bytes())
    }

    /// The bytes of a text, or the first character the encoding does not have.
    pub fn encode(self, text: &str) -> Result<Vec<u8>, EditError> {
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Utf16Le => Ok(text.encode_utf16().flat_map(u16::to_le_bytes).collect()),
            Self::Utf16Be => Ok(text.encode_utf16().flat_map(u16::to_be_bytes).collect()),
            Self::Utf32Le => Ok(text.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect()),
            Self::Utf32Be => Ok(text.chars().flat_map(|c| u32::from(c).to_be_bytes()).collect()),
            Self::Legacy(encoding) => {
                let whole = encode_legacy(encoding, text)
                    .filter(|bytes| encoding.decode_without_bom_handling(bytes).0 == text);
                if let Some(bytes) = whole {
                    return Ok(bytes);
                }
                // The encoder writes some characters as others that it considers alike (the yen sign of Shift_JIS as
                // a backslash), so each must come back.
                let missing = text.chars().find(|c| {
                    let one = c.to_string();
                    encode_legacy(encoding, &one)
                        .is_none_or(|bytes| encoding.decode_without_bom_handling(&bytes).0 != one)
                });
                let character = missing.unwrap_or(char::REPLACEMENT_CHARACTER);
                Err(EditError::Unencodable { character, encoding: self.name() })
            }
        }
    }

    /// The ranges in the bytes for ranges of the decoded text. The ranges are in order. A bound inside the characters
    /// that one group of bytes stands for has no place.
    pub(crate) fn map(
        self,
        raw: &[u8],
        body: &[u8],
        ranges: &[Range<usize>],
    ) -> Result<Vec<Range<usize>>, EditError> {
        if self == Self::Utf8 {
            return Ok(ranges.to_vec());
        }
        let mut walk = EncodingWalk { encoding: self, raw, body, raw_at: 0, body_at: 0 };
        let mut mapped = Vec::with_capacity(ranges.len());
        for range in ranges {
            let start = walk.to(range.start)?;
            mapped.push(start..walk.to(range.end)?);
        }
        Ok(mapped)
    }

    fn units16(self, raw: &[u8]) -> impl Iterator<Item = u16> {
        raw.chunks_exact(2).map(move |two| {
            let two = [two[0], two[1]];
            if self == Self::Utf16Be { u16::from_be_bytes(two) } else { u16::from_le_bytes(two) }
        })
    }

    fn units32(self, raw: &[u8]) -> impl Iterator<Item = u32> {
        raw.chunks_exact(4).map(move |four| {
            let four = [four[0], four[1], four[2], four[3]];
            if self == Self::Utf32Be { u32::from_be_bytes(four) } else { u32::from_le_bytes(four) }
        })
    }

    /// Tells whether the content after a byte order mark can be text in this encoding.
    fn is_plausible(self, rest: &[u8]) -> bool {
        match self {
            Self::Utf32Le | Self::Utf32Be => {
                rest.len().is_multiple_of(4)
                    && self.units32(rest).all(|unit| unit != 0 && char::from_u32(unit).is_some())
            }
            Self::Utf16Le | Self::Utf16Be => {
                rest.len().is_multiple_of(2) && self.units16(rest).take(PROBE).all(|unit| unit != 0)
            }
            Self::Utf8 | Self::Legacy(_) => true,
        }
    }

    /// Tells whether a content without a mark and with NULs is UTF-16: valid, no control characters, and enough
    /// ASCII, whose upper bytes are the NULs.
    fn is_likely(self, content: &[u8]) -> bool {
        if content.len() < 4 || !content.len().is_multiple_of(2) {
            return false;
        }
        let (mut all, mut ascii) = (0_usize, 0_usize);
        for unit in char::decode_utf16(self.units16(content)) {
            match unit {
                Ok(c) if is_control(c) || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{e000}'..='\u{f8ff}') => {
                    return false;
                }
                // A character with a line feed as one of its bytes may be the line end of a text in another encoding.
                Ok(c) if content.len() < 2 * FEW && is_line_end_inside(c) => return false,
                Ok(c) => {
                    all += 1;
                    ascii += usize::from(c.is_ascii());
                }
                Err(_) => return false,
            }
        }
        // In a few bytes, anything looks likely.
        ascii * if all < FEW { 2 } else { 10 } >= all
    }
}

fn is_line_end_inside(c: char) -> bool {
    !c.is_ascii() && u32::from(c) < 0x1_0000 && u32::from(c).to_be_bytes().contains(&b'\n')
}

/// A text with fewer units is too short to be recognised by one ASCII character among ten.
const FEW: usize = 32;

/// A position in a text, moving forward, in its bytes and in its decoded form.
struct EncodingWalk<'a> {
    encoding: Encoding,
    raw: &'a [u8],
    body: &'a [u8],
    raw_at: usize,
    body_at: usize,
}

impl EncodingWalk<'_> {
    fn to(&mut self, target: usize) -> Result<usize, EditError> {
        let between = String::from_utf8_lossy(&self.body[self.body_at..target]);
        match self.encoding {
            Encoding::Utf8 => self.raw_at += target - self.body_at,
            Encoding::Utf16Le | Encoding::Utf16Be => {
                self.raw_at += between.chars().map(|c| 2 * c.len_utf16()).sum::<usize>();
            }
            Encoding::Utf32Le | Encoding::Utf32Be => self.raw_at += 4 * between.chars().count(),
            Encoding::Legacy(encoding) if encoding.is_single_byte() => {
                self.raw_at += between.chars().count();
            }
            Encoding::Legacy(encoding) => return self.bytewise(encoding, target),
        }
        self.body_at = target;
        Ok(self.raw_at)
    }

    /// A line feed is a line feed in every encoding that the detector knows, never a part of another character, so
    /// whole lines are skipped and only the last is decoded.
    fn bytewise(
        &mut self,
        encoding: &'static encoding_rs::Encoding,
        target: usize,
    ) -> Result<usize, EditError> {
        let between = &self.body[self.body_at..target];
        if let Some(last) = between.iter().rposition(|&byte| byte == b'\n') {
            let lines = crate::text::newlines(between);
            let ends = self.raw[self.raw_at..].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            if let Some((end, _)) = ends.take(lines).last() {
                self.raw_at += end + 1;
                self.body_at += last + 1;
            }
        }
        let mut decoder = encoding.new_decoder_without_bom_handling();
        let mut out = [0; 64];
        let (mut raw_at, mut body_at) = (self.raw_at, self.body_at);
        while body_at < target && raw_at < self.raw.len() {
            let (result, read, written, _) =
                decoder.decode_to_utf8(&self.raw[raw_at..=raw_at], &mut out, false);
            debug_assert_eq!((result, read), (CoderResult::InputEmpty, 1));
            raw_at += 1;
            body_at += written;
        }
        if body_at != target {
            return Err(EditError::Unencodable {
                character: char::REPLACEMENT_CHARACTER,
                encoding: encoding.name(),
            });
        }
        (self.raw_at, self.body_at) = (raw_at, body_at);
        Ok(raw_at)
    }
}

fn utf16(units: impl Iterator<Item = u16>) -> String {
    char::decode_utf16(units).map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn encode_legacy(encoding: &'static encoding_rs::Encoding, text: &str) -> Option<Vec<u8>> {
    let mut encoder = encoding.new_encoder();
    let room = encoder.max_buffer_length_from_utf8_without_replacement(text.len())?;
    let mut bytes = Vec::with_capacity(room);
    match encoder.encode_from_utf8_to_vec_without_replacement(text, &mut bytes, true).0 {
        EncoderResult::InputEmpty => Some(bytes),
        EncoderResult::OutputFull | EncoderResult::Unmappable(_) => None,
    }
}

/// The legacy encoding of bytes that are not UTF-8, if they look like text in one.
fn legacy(content: &[u8]) -> Option<Encoding> {
    let (mut valid, mut broken) = (0_usize, 0_usize);
    let mut first = None;
    let mut at = 0;
    for chunk in content.utf8_chunks() {
        valid += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        at += chunk.valid().len();
        if !chunk.invalid().is_empty() {
            broken += 1;
            first = first.or(Some(at));
        }
        at += chunk.invalid().len();
    }
    if valid > 0 && valid >= broken {
        return None;
    }
    // Text before the first unusual byte would not help the detector.
    let first = first?;
    let start = content[..first].iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let start = start.max(first.saturating_sub(SAMPLE / 2));
    let sample = &content[start..content.len().min(start + SAMPLE)];
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, start + sample.len() == content.len());
    let guess = detector.guess(None, Utf8Detection::Deny);
    let text = guess.decode_without_bom_handling_and_without_replacement(content)?;
    (!text.chars().any(is_control)).then_some(Encoding::Legacy(guess))
}

/// Tells whether a character is a control character that no text file contains.
fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}' | '\u{1b}')
}
