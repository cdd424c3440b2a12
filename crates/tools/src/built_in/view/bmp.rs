//! Converts bitmaps of Windows to PNG, because no model accepts them directly.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::ZlibEncoder;

/// The most pixels of a bitmap that is shown.
const PIXELS: usize = 25_000_000;

/// Bytes before the header with the sizes.
const HEADER: usize = 14;

/// A bitmap as its header describes it.
struct Bitmap<'a> {
    content: &'a [u8],
    width: usize,
    height: usize,
    /// True if the first row is the top one.
    top_down: bool,
    bits: usize,
    /// The offset of the first row.
    rows: usize,
    /// The offset of the colour table that rows refer to.
    colours: usize,
}

/// Width and height, if the content has them.
pub(super) fn pixels(content: &[u8]) -> Option<(u32, u32)> {
    Some((number(content, 18, 4)?, number(content, 22, 4)?.cast_signed().unsigned_abs()))
}

/// Tells whether this is the beginning of a bitmap, and not of a text that begins with the same letters.
pub(super) fn is_bitmap(content: &[u8]) -> bool {
    let has_header = matches!(number(content, 14, 4), Some(40 | 52 | 56 | 64 | 108 | 124));
    content.starts_with(b"BM") && has_header && number(content, 26, 2) == Some(1)
}

/// Converts the picture to PNG. None if it is compressed, too large or incomplete.
pub(super) fn to_png(content: &[u8]) -> Option<Vec<u8>> {
    let bitmap = Bitmap::read(content)?;
    let (width, height) = (bitmap.width, bitmap.height);
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    for row in 0..height {
        packed.write_all(&bitmap.row(row)?).ok()?;
    }
    let mut header = Vec::with_capacity(13);
    for size in [width, height] {
        header.extend(u32::try_from(size).ok()?.to_be_bytes());
    }
    // Eight bits each of red, green and blue; the standard compression and filter methods, no interlacing.
    header.extend([8, 2, 0, 0, 0]);
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    for (name, data) in [(b"IHDR", header), (b"IDAT", packed.finish().ok()?), (b"IEND", Vec::new())] {
        chunk(&mut png, name, &data)?;
    }
    Some(png)
}

impl<'a> Bitmap<'a> {
    fn read(content: &'a [u8]) -> Option<Self> {
        let at = |at, bytes| number(content, at, bytes).and_then(|number| usize::try_from(number).ok());
        let (width, height) = pixels(content)?;
        let (width, height) = (usize::try_from(width).ok()?, usize::try_from(height).ok()?);
        let size = width.checked_mul(height).filter(|size| (1..=PIXELS).contains(size));
        let bits = at(28, 2)?;
        let masks = || [54, 58, 62].map(|place| number(content, place, 4));
        let plain = match at(30, 4)? {
            0 => matches!(bits, 1 | 4 | 8 | 24 | 32),
            3 => bits == 32 && masks() == [Some(0x00ff_0000), Some(0xff00), Some(0xff)],
            _ => false,
        };
        let top_down = number(content, 22, 4)?.cast_signed() < 0;
        let bitmap =
            Self { content, width, height, top_down, bits, rows: at(10, 4)?, colours: HEADER + at(14, 4)? };
        (is_bitmap(content) && plain && size.is_some()).then_some(bitmap)
    }

    /// One row from the top, as in PNG: a byte for "no filter", then its colours.
    fn row(&self, row: usize) -> Option<Vec<u8>> {
        let stored = if self.top_down { row } else { self.height - 1 - row };
        let wide = (self.bits * self.width).div_ceil(32) * 4;
        let begin = self.rows.checked_add(stored.checked_mul(wide)?)?;
        let bytes = self.content.get(begin..begin.checked_add(wide)?)?;
        let mut out = Vec::with_capacity(1 + 3 * self.width);
        out.push(0);
        for column in 0..self.width {
            let colour = match self.bits {
                24 | 32 => bytes.get(column * self.bits / 8..)?,
                bits => {
                    let byte = usize::from(*bytes.get(column * bits / 8)?);
                    let shift = 8 - bits - column * bits % 8;
                    let index = byte >> shift & ((1 << bits) - 1);
                    self.content.get(self.colours + 4 * index..)?
                }
            };
            let [blue, green, red, ..] = colour else { return None };
            out.extend([*red, *green, *blue]);
        }
        Some(out)
    }
}

fn chunk(png: &mut Vec<u8>, name: &[u8; 4], data: &[u8]) -> Option<()> {
    let mut sum = flate2::Crc::new();
    sum.update(name);
    sum.update(data);
    png.extend(u32::try_from(data.len()).ok()?.to_be_bytes());
    png.extend(name);
    png.extend(data);
    png.extend(sum.sum().to_be_bytes());
    Some(())
}

/// A little-endian number.
fn number(content: &[u8], at: usize, bytes: usize) -> Option<u32> {
    Some(content.get(at..at + bytes)?.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// A bitmap with this many bits for a pixel.
    fn bitmap(size: (i32, i32), bits: u16, colours: &[u8], rows: &[u8]) -> Vec<u8> {
        let begin = 54 + u32::try_from(colours.len()).unwrap();
        let mut out = b"BM\0\0\0\0\0\0\0\0".to_vec();
        out.extend(begin.to_le_bytes());
        out.extend(40_u32.to_le_bytes());
        out.extend(size.0.to_le_bytes());
        out.extend(size.1.to_le_bytes());
        out.extend(1_u16.to_le_bytes());
        out.extend(bits.to_le_bytes());
        out.extend([0; 24]);
        out.extend(colours);
        out.extend(rows);
        out
    }

    /// The colours of a picture, row by row.
    fn colours(png: &[u8]) -> Vec<u8> {
        assert!(png.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"));
        let at = png.windows(4).position(|name| name == b"IDAT").unwrap();
        let mut rows = Vec::new();
        flate2::read::ZlibDecoder::new(&png[at + 4..]).read_to_end(&mut rows).unwrap();
        rows
    }

    #[test]
    fn bitmaps_of_every_plain_form_become_the_same_picture() {
        let expected = [0, 255, 0, 0, 0, 255, 0, 0, 0, 0, 255, 255, 255, 255];
        let full = bitmap((2, 2), 24, &[], b"\xff\0\0\xff\xff\xff\0\0\0\0\xff\0\xff\0\0\0");
        let upright = bitmap((2, -2), 32, &[], b"\0\0\xff\0\0\xff\0\0\xff\0\0\0\xff\xff\xff\0");
        let table = b"\0\0\xff\0\0\xff\0\0\xff\0\0\0\xff\xff\xff\0";
        let indexed = bitmap((2, 2), 8, table, b"\x02\x03\0\0\0\x01\0\0");
        let small = bitmap((2, 2), 4, table, b"\x23\0\0\0\x01\0\0\0");
        for content in [&full, &upright, &indexed, &small] {
            let png = to_png(content).unwrap();
            assert_eq!(colours(&png), expected);
            assert_eq!(pixels(content), Some((2, 2)));
        }
        let bits = bitmap((2, 1), 1, &table[..8], b"\x40\0\0\0");
        assert_eq!(colours(&to_png(&bits).unwrap()), [0, 255, 0, 0, 0, 255, 0]);
    }

    #[test]
    fn what_is_no_whole_bitmap_is_none() {
        let content = bitmap((2, 2), 24, &[], b"\xff\0\0\xff\xff\xff\0\0");
        assert!(is_bitmap(&content) && to_png(&content).is_none());
        assert!(to_png(&bitmap((1 << 20, 1 << 20), 24, &[], b"")).is_none());
        assert!(to_png(&bitmap((0, 2), 24, &[], b"")).is_none());
        assert!(!is_bitmap(b"BM is how this text begins, and it is not a picture."));
    }
}
