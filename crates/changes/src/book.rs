//! The manifest on disk: what a look at the tree after a crash is compared with.
//!
//! A file that is only appended to, in frames with a checksum each, beside the packs. A frame says what became of entries,
//! or that a line begins; a torn one at the end was never finished and counts for nothing. What a line changed is written
//! down when the *next* line begins: until the journal has the result, the book still says how the tree was before.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use lathe_protocol::Digest;

use crate::Why;
use crate::attributes::Attributes;
use crate::beneath::Rel;
use crate::frame::{self, Cursor};
use crate::manifest::{Entry, Manifest, Oids, Preimage};
use crate::pack::Place;
use crate::stat::Stat;

const NAME: &str = "book";
const HEAD: &[u8] = b"lathe baseline 2\n";

/// The format that knew no attributes.
const WITHOUT_ATTRIBUTES: &[u8] = b"lathe baseline 1\n";

/// Entries in one frame: what a torn end costs, and what is held in memory to write one.
const PER_FRAME: usize = 4096;

/// A book that grew to this many times what a fresh one would take is written anew.
const GROWTH: u64 = 4;
const GROWTH_AT_LEAST: u64 = 16 << 20;

#[derive(Debug)]
pub(crate) struct Book {
    file: File,
    bytes: u64,
    /// How long it was when it was last written as a whole.
    fresh: u64,
}

/// What a book says.
#[derive(Debug, Default)]
pub(crate) struct Read {
    pub manifest: Manifest,
    pub oids: Oids,
    /// The mark of the last line that began.
    pub line: Option<String>,
    /// Bytes that could be read.
    pub bytes: u64,
}

/// The file that says how long the book was when the last line began: one that is shorter, or unreadable before that, is
/// damaged.
const BEGUN: &str = "begun";

impl Book {
    /// A new book with all that is known, in place of one that may be there. It is not synced yet.
    pub fn write(folder: &Path, manifest: &Manifest, oids: &Oids) -> io::Result<Self> {
        let fresh = folder.join("book.new");
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).truncate(true).mode(0o600).open(&fresh)?;
        let mut book = Self { file, bytes: 0, fresh: 0 };
        book.put(HEAD)?;
        book.append(manifest.iter().map(|(rel, entry)| (rel, Some(entry))), oids)?;
        // What it says is of the book that was there.
        let _ = std::fs::remove_file(folder.join(BEGUN));
        std::fs::rename(&fresh, folder.join(NAME))?;
        book.fresh = book.bytes;
        Ok(book)
    }

    /// Says what became of entries.
    pub fn append<'a>(
        &mut self,
        entries: impl Iterator<Item = (&'a Rel, Option<&'a Entry>)>,
        oids: &Oids,
    ) -> io::Result<()> {
        let (mut payload, mut count) = (Vec::new(), 0);
        for (rel, entry) in entries {
            encode(&mut payload, rel, entry, oids);
            count += 1;
            if count == PER_FRAME {
                self.frame(&payload)?;
                payload.clear();
                count = 0;
            }
        }
        if payload.is_empty() { Ok(()) } else { self.frame(&payload) }
    }

    /// Says that a line begins, and makes all of it durable. What is said of the book's length need not be: it is there to
    /// notice damage, not for the way back.
    pub fn begin(&mut self, folder: &Path, line: &str) -> io::Result<()> {
        let mut payload = vec![Tag::Line as u8];
        frame::bytes(&mut payload, line.as_bytes());
        self.frame(&payload)?;
        self.sync()?;
        let mut begun = Vec::new();
        frame::push(&mut begun, &self.bytes.to_le_bytes())?;
        let mut options = OpenOptions::new();
        let mut file =
            options.create(true).write(true).truncate(true).mode(0o600).open(folder.join(BEGUN))?;
        file.write_all(&begun)
    }

    /// The length of the book when the last line began.
    fn begun(folder: &Path) -> Option<u64> {
        let bytes = std::fs::read(folder.join(BEGUN)).ok()?;
        frame::next(&bytes)?.0.try_into().ok().map(u64::from_le_bytes)
    }

    /// Reads the book in a folder. If it cannot be read up to the line that began last, that is an error: how the tree
    /// was before the line is lost.
    pub fn read_whole(folder: &Path) -> io::Result<Option<Read>> {
        let read = Self::read(folder)?;
        let readable = read.as_ref().map_or(0, |read| read.bytes);
        if Self::begun(folder).is_some_and(|len| readable < len) {
            let why = "the record of how the files were before the line is damaged";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(read)
    }

    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    pub fn has_outgrown(&self) -> bool {
        self.bytes > GROWTH_AT_LEAST.max(self.fresh.saturating_mul(GROWTH))
    }

    /// What the book in a folder says; nothing if there is none, or it is none of ours.
    pub fn read(folder: &Path) -> io::Result<Option<Read>> {
        let bytes = match std::fs::read(folder.join(NAME)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let (mut rest, format) = match (bytes.strip_prefix(HEAD), bytes.strip_prefix(WITHOUT_ATTRIBUTES)) {
            (Some(rest), _) => (rest, Format::Newest),
            (None, Some(rest)) => (rest, Format::WithoutAttributes),
            (None, None) => return Ok(None),
        };
        let mut read = Read::default();
        while let Some((payload, after)) = frame::next(rest) {
            let mut cursor = Cursor(payload);
            while !cursor.0.is_empty() {
                // A frame whose checksum holds and that cannot be read is of another program than this.
                let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a frame of another format");
                decode(&mut cursor, format, &mut read).ok_or_else(wrong)?;
            }
            rest = after;
        }
        read.bytes = (bytes.len() - rest.len()) as u64;
        Ok(Some(read))
    }

    /// Takes book and packs away.
    pub fn discard(folder: &Path) -> io::Result<()> {
        match std::fs::remove_dir_all(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }

    fn frame(&mut self, payload: &[u8]) -> io::Result<()> {
        let mut framed = Vec::with_capacity(payload.len() + 16);
        frame::push(&mut framed, payload)?;
        self.put(&framed)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// The form in which entries are written.
#[derive(Debug, Clone, Copy)]
enum Format {
    WithoutAttributes,
    Newest,
}

#[derive(Debug, Clone, Copy)]
#[repr(u8)]
enum Tag {
    Gone,
    Folder,
    Git,
    Pack,
    Blob,
    Lost,
    Skipped,
    Line,
}

impl Tag {
    const ALL: [Self; 8] =
        [Self::Gone, Self::Folder, Self::Git, Self::Pack, Self::Blob, Self::Lost, Self::Skipped, Self::Line];

    fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| *tag as u8 == byte)
    }
}

fn encode(out: &mut Vec<u8>, rel: &[u8], entry: Option<&Entry>, oids: &Oids) {
    let Some(entry) = entry else {
        out.push(Tag::Gone as u8);
        return frame::bytes(out, rel);
    };
    let (tag, content): (Tag, Vec<u8>) = match &entry.pre {
        Preimage::Folder => (Tag::Folder, Vec::new()),
        // A number that means nothing is no content at all.
        Preimage::Git(number) => match oids.get(*number) {
            Some(oid) => (Tag::Git, oid.to_vec()),
            None => (Tag::Lost, vec![Why::ObjectGone as u8]),
        },
        Preimage::Pack(place) => (Tag::Pack, place.to_bytes()),
        Preimage::Blob(digest) => (Tag::Blob, digest.as_str().as_bytes().to_vec()),
        Preimage::Lost(why) => (Tag::Lost, vec![*why as u8]),
        Preimage::Unkept(why, digest) => {
            let content = [&[*why as u8], digest.as_str().as_bytes()].concat();
            (Tag::Lost, content)
        }
        Preimage::Skipped(why) => (Tag::Skipped, vec![*why as u8]),
    };
    out.push(tag as u8);
    frame::bytes(out, rel);
    let stat = &entry.stat;
    out.extend_from_slice(&stat.mode.to_le_bytes());
    out.push(u8::from(entry.attributes.is_some()) | u8::from(entry.racy) << 1);
    out.extend_from_slice(&stat.names.to_le_bytes());
    for number in [stat.inode, stat.size, stat.modified.cast_unsigned(), stat.changed.cast_unsigned()] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    frame::bytes(out, &content);
    if let Some(attributes) = &entry.attributes {
        attributes.encode(out);
    }
}

fn decode(cursor: &mut Cursor<'_>, format: Format, read: &mut Read) -> Option<()> {
    let [tag] = cursor.take()?;
    let tag = Tag::of(tag)?;
    let rel = cursor.bytes()?;
    match tag {
        Tag::Gone => {
            read.manifest.set(rel, None);
            return Some(());
        }
        Tag::Line => {
            read.line = Some(String::from_utf8_lossy(rel).into_owned());
            return Some(());
        }
        Tag::Folder | Tag::Git | Tag::Pack | Tag::Blob | Tag::Lost | Tag::Skipped => {}
    }
    let mode = u32::from_le_bytes(cursor.take()?);
    let [flags] = cursor.take()?;
    let names = match format {
        Format::Newest => u32::from_le_bytes(cursor.take()?),
        Format::WithoutAttributes => 1 + u32::from(flags & 1),
    };
    let (inode, size) = (cursor.number()?, cursor.number()?);
    let (modified, changed) = (cursor.number()?.cast_signed(), cursor.number()?.cast_signed());
    let content = cursor.bytes()?;
    let attributes = match format {
        Format::Newest if flags & 1 != 0 => Some(Attributes::decode(cursor)?.shared()),
        Format::Newest | Format::WithoutAttributes => None,
    };
    let (uid, gid) = attributes.as_ref().map_or((0, 0), |attributes| (attributes.uid, attributes.gid));
    let stat = Stat { mode, uid, gid, names, inode, size, modified, changed };
    let why = || content.first().and_then(|byte| Why::of(*byte));
    let pre = match tag {
        Tag::Gone | Tag::Line => return None,
        Tag::Folder => Preimage::Folder,
        Tag::Git => read.oids.add(content).map_or(Preimage::Lost(Why::ObjectGone), Preimage::Git),
        Tag::Pack => Preimage::Pack(Place::from_bytes(content)?),
        Tag::Blob => Preimage::Blob(Box::new(Digest::parse(std::str::from_utf8(content).ok()?)?)),
        Tag::Lost => match content.get(1..).unwrap_or_default() {
            [] => Preimage::Lost(why()?),
            digest => Preimage::Unkept(why()?, Box::new(Digest::parse(std::str::from_utf8(digest).ok()?)?)),
        },
        Tag::Skipped => Preimage::Skipped(why()?),
    };
    read.manifest.set(rel, Some(Entry { stat, racy: flags & 2 != 0, pre, attributes }));
    Some(())
}
