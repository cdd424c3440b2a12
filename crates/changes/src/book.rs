//! The manifest on disk: the state with which the tree is compared after a crash.
//!
//! The book is a file in the folder of the packs that is only appended to, in frames with a checksum each. A frame
//! records new states of entries, or that a line begins. A torn frame at the end was never finished and does not
//! count. The changes of a line are recorded when the *next* line begins: until the journal has the result, the book
//! still describes the tree as it was before the line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::beneath::Rel;
use crate::book_format::{BookContents, EntryFrame, Format};
use crate::frame::{self, Cursor};
use crate::manifest::{Manifest, ManifestEntry, Oids};

const NAME: &str = "book";

/// Entries in one frame: the loss from a torn end, and the memory needed to write one.
const PER_FRAME: usize = 4096;

/// A book that has grown to this many times the size of a fresh one is rewritten.
const GROWTH: u64 = 4;
const GROWTH_AT_LEAST: u64 = 16 << 20;

#[derive(Debug)]
pub(crate) struct Book {
    file: File,
    bytes: u64,
    /// The length of the file when it was last written as a whole.
    fresh: u64,
}

/// The file with the length of the book at the begin of the last line. A book that is shorter, or unreadable before
/// that length, is damaged.
const BEGUN: &str = "begun";

impl Book {
    /// Writes a new book with all that is known, in place of an existing one. It is not synced yet.
    pub fn write(folder: &Path, manifest: &Manifest, oids: &Oids) -> io::Result<Self> {
        let fresh = folder.join("book.new");
        let mut options = OpenOptions::new();
        let file = options.create(true).write(true).truncate(true).mode(0o600).open(&fresh)?;
        let mut book = Self { file, bytes: 0, fresh: 0 };
        book.put(Format::Newest.head())?;
        let mut frames = Frames::new(&mut book, oids);
        manifest.visit(|rel, known| frames.put(rel, Some(&known.entry())));
        frames.finish()?;
        // The recorded length belongs to the book that was there before.
        let _ = std::fs::remove_file(folder.join(BEGUN));
        std::fs::rename(&fresh, folder.join(NAME))?;
        book.fresh = book.bytes;
        Ok(book)
    }

    /// Records new states of entries.
    pub fn append<'a>(
        &mut self,
        entries: impl Iterator<Item = (&'a Rel, Option<ManifestEntry>)>,
        oids: &Oids,
    ) -> io::Result<()> {
        let mut frames = Frames::new(self, oids);
        entries.for_each(|(rel, entry)| frames.put(rel, entry.as_ref()));
        frames.finish()
    }

    /// Records that a line begins, and makes all of it durable. The length in [`BEGUN`] need not be durable: it only
    /// helps to notice damage, and undo does not depend on it.
    pub fn begin(&mut self, folder: &Path, line: &str) -> io::Result<()> {
        let mut payload = Vec::new();
        EntryFrame::default().put_line(&mut payload, line.as_bytes());
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

    /// Reads the book in a folder. Returns an error if it cannot be read up to the begin of the last line: then the
    /// state of the tree before that line is lost.
    pub fn read_whole(folder: &Path) -> io::Result<Option<BookContents>> {
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

    /// The contents of the book in a folder. None if there is no book, or the file is not one of ours.
    pub fn read(folder: &Path) -> io::Result<Option<BookContents>> {
        let bytes = match std::fs::read(folder.join(NAME)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut formats = Format::ALL.into_iter();
        let found = formats.find_map(|format| Some((bytes.strip_prefix(format.head())?, format)));
        let Some((mut rest, format)) = found else { return Ok(None) };
        let mut read = BookContents::default();
        while let Some((payload, after)) = frame::next(rest) {
            let (mut cursor, mut frame) = (Cursor(payload), EntryFrame::default());
            while !cursor.0.is_empty() {
                // A frame with a valid checksum that cannot be parsed was written by another program than this.
                let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a frame of another format");
                frame.take(&mut cursor, format, &mut read).ok_or_else(wrong)?;
            }
            read.manifest.settle();
            rest = after;
        }
        read.bytes = (bytes.len() - rest.len()) as u64;
        Ok(Some(read))
    }

    /// Removes book and packs.
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

/// Writer that groups entries into frames.
struct Frames<'a> {
    book: &'a mut Book,
    oids: &'a Oids,
    frame: EntryFrame,
    payload: Vec<u8>,
    count: usize,
    written: io::Result<()>,
}

impl<'a> Frames<'a> {
    fn new(book: &'a mut Book, oids: &'a Oids) -> Self {
        Self { book, oids, frame: EntryFrame::default(), payload: Vec::new(), count: 0, written: Ok(()) }
    }

    fn put(&mut self, rel: &[u8], entry: Option<&ManifestEntry>) {
        self.frame.put(&mut self.payload, rel, entry, self.oids);
        self.count += 1;
        if self.count == PER_FRAME {
            self.write();
        }
    }

    fn write(&mut self) {
        if self.written.is_ok() && !self.payload.is_empty() {
            self.written = self.book.frame(&self.payload);
        }
        (self.frame, self.count) = (EntryFrame::default(), 0);
        self.payload.clear();
    }

    fn finish(mut self) -> io::Result<()> {
        self.write();
        self.written
    }
}
