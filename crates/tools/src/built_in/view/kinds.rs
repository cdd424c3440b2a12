//! Detects the type of a file by the beginning of its content. Its name is ignored: it may have been chosen to
//! mislead.

use super::bmp;

/// The kinds of content that are not plain text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Image(Image),
    Pdf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Image {
    Png,
    Jpeg,
    Gif,
    Webp,
    Bmp,
}

impl Image {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Png => "PNG",
            Self::Jpeg => "JPEG",
            Self::Gif => "GIF",
            Self::Webp => "WebP",
            Self::Bmp => "BMP",
        }
    }

    /// The MIME type of the content that the model is shown.
    pub(crate) fn mime(self) -> &'static str {
        match self {
            Self::Png | Self::Bmp => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Width and height in pixels, if the content has them.
    pub(crate) fn pixels(self, content: &[u8]) -> Option<(u32, u32)> {
        match self {
            Self::Png => Some((big(content, 16, 4)?, big(content, 20, 4)?)),
            Self::Gif => Some((little(content, 6, 2)?, little(content, 8, 2)?)),
            Self::Jpeg => jpeg(content),
            Self::Webp => webp(content),
            Self::Bmp => bmp::pixels(content),
        }
    }

    /// The content that the model is shown. None if it cannot be converted to a type that models accept.
    pub(crate) async fn shown(self, content: &[u8]) -> Option<Vec<u8>> {
        let content = content.to_vec();
        match self {
            Self::Png | Self::Jpeg | Self::Gif | Self::Webp => Some(content),
            Self::Bmp => tokio::task::spawn_blocking(move || bmp::to_png(&content)).await.ok().flatten(),
        }
    }
}

/// Detects content that can be shown as something other than text.
pub(crate) fn media(content: &[u8]) -> Option<Media> {
    let starts = |magic: &[u8]| content.starts_with(magic);
    if starts(b"\x89PNG\r\n\x1a\n") {
        return Some(Media::Image(Image::Png));
    }
    if starts(b"\xff\xd8\xff") {
        return Some(Media::Image(Image::Jpeg));
    }
    if starts(b"GIF87a") || starts(b"GIF89a") {
        return Some(Media::Image(Image::Gif));
    }
    if starts(b"RIFF") && content.get(8..12) == Some(b"WEBP") {
        return Some(Media::Image(Image::Webp));
    }
    if bmp::is_bitmap(content) {
        return Some(Media::Image(Image::Bmp));
    }
    starts(b"%PDF-").then_some(Media::Pdf)
}

/// The type of other binary content, if it is a common one.
pub(crate) fn binary_type(content: &[u8]) -> Option<&'static str> {
    const KNOWN: [(usize, &[u8], &str); 29] = [
        (0, b"\x7fELF", "ELF program or library"),
        (0, b"MZ", "Windows program"),
        (0, b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
        (0, b"\xca\xfe\xba\xbe", "Java class or universal Mach-O"),
        (0, b"\0asm", "WebAssembly module"),
        (0, b"PK\x03\x04", "ZIP archive (also jar, docx, xlsx, wheel)"),
        (0, b"PK\x05\x06", "empty ZIP archive"),
        (0, b"\x1f\x8b", "gzip archive"),
        (0, b"BZh", "bzip2 archive"),
        (0, b"\xfd7zXZ\0", "xz archive"),
        (0, b"\x28\xb5\x2f\xfd", "zstd archive"),
        (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
        (0, b"Rar!\x1a\x07", "RAR archive"),
        (257, b"ustar", "tar archive"),
        (0, b"!<arch>\n", "static library"),
        (0, b"SQLite format 3\0", "SQLite database"),
        (0, b"PAR1", "Parquet table"),
        (0, b"\x93NUMPY", "NumPy array"),
        (0, b"BM", "BMP image"),
        (0, b"II*\0", "TIFF image"),
        (0, b"MM\0*", "TIFF image"),
        (0, b"\0\0\x01\0", "icon"),
        (0, b"ID3", "MP3 audio"),
        (0, b"fLaC", "FLAC audio"),
        (0, b"OggS", "Ogg media"),
        (4, b"ftyp", "MP4 media"),
        (0, b"\x1a\x45\xdf\xa3", "Matroska or WebM media"),
        (0, b"wOF2", "WOFF2 font"),
        (0, b"\0\x01\0\0", "TrueType font"),
    ];
    let at = |offset: usize, magic: &[u8]| content.get(offset..offset + magic.len()) == Some(magic);
    KNOWN.iter().find(|(offset, magic, _)| at(*offset, magic)).map(|(_, _, name)| *name)
}

fn big(content: &[u8], at: usize, bytes: usize) -> Option<u32> {
    Some(content.get(at..at + bytes)?.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
}

fn little(content: &[u8], at: usize, bytes: usize) -> Option<u32> {
    Some(content.get(at..at + bytes)?.iter().rev().fold(0, |number, &byte| number << 8 | u32::from(byte)))
}

/// Skips segments until the one that begins a frame.
fn jpeg(content: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let marker = match content.get(at..at + 2)? {
            [0xff, 0xff] => {
                at += 1;
                continue;
            }
            [0xff, marker] => *marker,
            _ => return None,
        };
        match marker {
            0xc4 | 0xc8 | 0xcc => {}
            0xc0..=0xcf => return Some((big(content, at + 7, 2)?, big(content, at + 5, 2)?)),
            0x01 | 0xd0..=0xd8 => {
                at += 2;
                continue;
            }
            0xd9 | 0xda => return None,
            _ => {}
        }
        at += 2 + usize::try_from(big(content, at + 2, 2)?).ok()?;
    }
}

fn webp(content: &[u8]) -> Option<(u32, u32)> {
    match content.get(12..16)? {
        b"VP8 " => Some((little(content, 26, 2)? & 0x3fff, little(content, 28, 2)? & 0x3fff)),
        b"VP8L" => {
            let bits = little(content, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(content, 24, 3)? + 1, little(content, 27, 3)? + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_known_by_their_beginning_and_have_a_size() {
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08";
        let jpeg = b"\xff\xd8\xff\xe0\0\x04xx\xff\xff\xc0\0\x11\x08\x01\xe0\x02\x80\x03";
        let gif = b"GIF89a\x80\x02\xe0\x01";
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0\x30\x01\0\x9d\x01\x2a\x80\x02\xe0\x01";
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x7f\xc2\x77\0";
        let extended = b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x7f\x02\0\xdf\x01\0";
        for content in [&png[..], jpeg, gif, lossy, lossless, extended] {
            let Some(Media::Image(image)) = media(content) else { panic!("{content:?}") };
            assert_eq!(image.pixels(content), Some((640, 480)), "{image:?}");
            assert_eq!(image.pixels(&content[..10.min(content.len() - 1)]), None);
        }
    }

    #[test]
    fn other_content_is_named_if_it_is_common() {
        assert_eq!(binary_type(b"\x7fELF\0"), Some("ELF program or library"));
        assert_eq!(binary_type(&[&[0; 257][..], b"ustar\0"].concat()), Some("tar archive"));
        assert_eq!(binary_type(b"\0\0"), None);
        assert_eq!(media(b"%PDF-1.7"), Some(Media::Pdf));
        assert_eq!(media(b"text"), None);
    }
}
