//! The encoding of a book's entries.
//!
//! An entry is encoded by its difference from the previous one in its frame: neighbours share folder, owner and time,
//! and a book is written as a whole before the first line may run. Books of older formats are read too, because an
//! older process may have been killed.

use std::sync::Arc;

use lathe_protocol::Digest;

use crate::NotUndoableReason;
use crate::attributes::Attributes;
use crate::frame::Cursor;
use crate::manifest::{Manifest, ManifestEntry, Oids, Preimage, from_hex};
use crate::pack::CopyLocation;
use crate::paths::{common, put_number, take_number};
use crate::stat::Stat;

/// The format in which entries are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The first format, without attributes.
    WithoutAttributes,
    /// The second format, in which every entry is complete.
    Whole,
    Newest,
}

impl Format {
    pub const ALL: [Self; 3] = [Self::WithoutAttributes, Self::Whole, Self::Newest];

    /// The first bytes of a book.
    pub fn head(self) -> &'static [u8] {
        match self {
            Self::WithoutAttributes => b"lathe baseline 1\n",
            Self::Whole => b"lathe baseline 2\n",
            Self::Newest => b"lathe baseline 3\n",
        }
    }
}

/// The contents of a book.
#[derive(Debug, Default)]
pub(crate) struct BookContents {
    pub manifest: Manifest,
    pub oids: Oids,
    /// The mark of the last line that began.
    pub line: Option<String>,
    /// The number of readable bytes.
    pub bytes: u64,
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

// Flags of an entry.
const WITH_ATTRIBUTES: u8 = 1;
const RACY: u8 = 2;
/// Mode, number of names and attributes are those of the previous entry.
const AS_BEFORE: u8 = 4;

/// The previous entry of the same frame.
#[derive(Debug, Default)]
pub(crate) struct EntryFrame {
    path: Vec<u8>,
    stat: Option<Stat>,
    attributes: Option<Arc<Attributes>>,
}

impl EntryFrame {
    /// Appends the mark of a line that begins.
    pub fn put_line(&mut self, out: &mut Vec<u8>, line: &[u8]) {
        out.push(Tag::Line as u8);
        self.put_path(out, line);
    }

    /// Appends the new state of an entry.
    pub fn put(&mut self, out: &mut Vec<u8>, rel: &[u8], entry: Option<&ManifestEntry>, oids: &Oids) {
        let Some(entry) = entry else {
            out.push(Tag::Gone as u8);
            return self.put_path(out, rel);
        };
        let (tag, content) = content(&entry.pre, oids);
        out.push(tag as u8);
        self.put_path(out, rel);
        let (stat, attributes) = (entry.stat, &entry.attributes);
        let is_like = |before: Stat| (before.mode, before.names) == (stat.mode, stat.names);
        let as_before = self.stat.is_some_and(is_like) && self.attributes == *attributes;
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        out.push(
            flag(attributes.is_some(), WITH_ATTRIBUTES) | flag(entry.racy, RACY) | flag(as_before, AS_BEFORE),
        );
        if !as_before {
            put_number(out, stat.mode.into());
            put_number(out, stat.names.into());
            if let Some(attributes) = attributes {
                attributes.encode(out);
            }
        }
        let (inode, modified) = self.stat.map_or((0, 0), |before| (before.inode, before.modified));
        put_signed(out, stat.inode.wrapping_sub(inode).cast_signed());
        put_number(out, stat.size);
        put_signed(out, stat.modified.wrapping_sub(modified));
        put_signed(out, stat.changed.wrapping_sub(stat.modified));
        put_number(out, content.len() as u64);
        out.extend_from_slice(&content);
        self.stat = Some(stat);
        if !as_before {
            self.attributes.clone_from(attributes);
        }
    }

    fn put_path(&mut self, out: &mut Vec<u8>, path: &[u8]) {
        let shared = common(&self.path, path);
        let rest = path.get(shared..).unwrap_or_default();
        put_number(out, shared as u64);
        put_number(out, rest.len() as u64);
        out.extend_from_slice(rest);
        self.path.truncate(shared);
        self.path.extend_from_slice(rest);
    }

    /// Reads an entry or a mark. None if another program than this wrote it.
    pub fn take(&mut self, cursor: &mut Cursor<'_>, format: Format, read: &mut BookContents) -> Option<()> {
        let [tag] = cursor.take()?;
        let tag = Tag::of(tag)?;
        self.take_path(cursor, format)?;
        match tag {
            Tag::Gone => {
                read.manifest.set(&self.path, None);
                return Some(());
            }
            Tag::Line => {
                read.line = Some(String::from_utf8_lossy(&self.path).into_owned());
                return Some(());
            }
            Tag::Folder | Tag::Git | Tag::Pack | Tag::Blob | Tag::Lost | Tag::Skipped => {}
        }
        let (stat, racy, attributes, content) = match format {
            Format::Newest => self.take_rest(cursor)?,
            Format::Whole | Format::WithoutAttributes => take_whole(cursor, format)?,
        };
        let pre = preimage(tag, content, format, &mut read.oids)?;
        read.manifest.set(&self.path, Some(ManifestEntry { stat, racy, pre, attributes }));
        Some(())
    }

    fn take_path(&mut self, cursor: &mut Cursor<'_>, format: Format) -> Option<()> {
        let shared = match format {
            Format::Newest => usize::try_from(take_number(&mut cursor.0)?).ok()?,
            Format::Whole | Format::WithoutAttributes => 0,
        };
        if shared > self.path.len() {
            return None;
        }
        self.path.truncate(shared);
        let rest = match format {
            Format::Newest => take_bytes(cursor)?,
            Format::Whole | Format::WithoutAttributes => cursor.bytes()?,
        };
        self.path.extend_from_slice(rest);
        Some(())
    }

    fn take_rest<'a>(&mut self, cursor: &mut Cursor<'a>) -> Option<Rest<'a>> {
        let [flags] = cursor.take()?;
        let (mode, names) = if flags & AS_BEFORE != 0 {
            let before = self.stat?;
            (before.mode, before.names)
        } else {
            let (mode, names) = (take_number(&mut cursor.0)?, take_number(&mut cursor.0)?);
            let has_attributes = flags & WITH_ATTRIBUTES != 0;
            self.attributes = if has_attributes { Some(Attributes::decode(cursor)?.shared()) } else { None };
            (mode.try_into().ok()?, names.try_into().ok()?)
        };
        let (inode, modified) = self.stat.map_or((0, 0), |before| (before.inode, before.modified));
        let inode = inode.wrapping_add(take_signed(cursor)?.cast_unsigned());
        let size = take_number(&mut cursor.0)?;
        let modified = modified.wrapping_add(take_signed(cursor)?);
        let changed = modified.wrapping_add(take_signed(cursor)?);
        let content = take_bytes(cursor)?;
        let (uid, gid) = owner(self.attributes.as_ref());
        let stat = Stat { mode, uid, gid, names, inode, size, modified, changed };
        self.stat = Some(stat);
        Some((stat, flags & RACY != 0, self.attributes.clone(), content))
    }
}

/// The fields after the path of an entry: its `stat`, true if it is racy, its attributes, and the location of its
/// content.
type Rest<'a> = (Stat, bool, Option<Arc<Attributes>>, &'a [u8]);

/// Reads the same fields in the older formats.
fn take_whole<'a>(cursor: &mut Cursor<'a>, format: Format) -> Option<Rest<'a>> {
    let mode = u32::from_le_bytes(cursor.take()?);
    let [flags] = cursor.take()?;
    let names = match format {
        Format::WithoutAttributes => 1 + u32::from(flags & 1),
        Format::Whole | Format::Newest => u32::from_le_bytes(cursor.take()?),
    };
    let (inode, size) = (cursor.number()?, cursor.number()?);
    let (modified, changed) = (cursor.number()?.cast_signed(), cursor.number()?.cast_signed());
    let content = cursor.bytes()?;
    let has_attributes = format != Format::WithoutAttributes && flags & WITH_ATTRIBUTES != 0;
    let attributes = if has_attributes { Some(Attributes::decode(cursor)?.shared()) } else { None };
    let (uid, gid) = owner(attributes.as_ref());
    let stat = Stat { mode, uid, gid, names, inode, size, modified, changed };
    Some((stat, flags & RACY != 0, attributes, content))
}

fn owner(attributes: Option<&Arc<Attributes>>) -> (u32, u32) {
    attributes.map_or((0, 0), |attributes| (attributes.uid, attributes.gid))
}

/// The location of content, as a tag and bytes.
fn content(pre: &Preimage, oids: &Oids) -> (Tag, Vec<u8>) {
    match pre {
        Preimage::Folder => (Tag::Folder, Vec::new()),
        // An unknown number stands for lost content.
        Preimage::Git(number) => match oids.get(*number) {
            Some(oid) => (Tag::Git, oid.to_vec()),
            None => (Tag::Lost, vec![NotUndoableReason::ObjectGone as u8]),
        },
        Preimage::Pack(place) => (Tag::Pack, place.to_bytes()),
        Preimage::Blob(digest) => (Tag::Blob, digest.as_str().as_bytes().to_vec()),
        Preimage::Lost(why) => (Tag::Lost, vec![*why as u8]),
        Preimage::Unkept(why, digest) => {
            let content = [&[*why as u8], digest.as_str().as_bytes()].concat();
            (Tag::Lost, content)
        }
        Preimage::Skipped(why) => (Tag::Skipped, vec![*why as u8]),
    }
}

fn preimage(tag: Tag, content: &[u8], format: Format, oids: &mut Oids) -> Option<Preimage> {
    let why = || content.first().and_then(|byte| NotUndoableReason::of(*byte));
    let digest = |bytes: &[u8]| Digest::parse(std::str::from_utf8(bytes).ok()?).map(Box::new);
    Some(match tag {
        Tag::Gone | Tag::Line => return None,
        Tag::Folder => Preimage::Folder,
        Tag::Git => {
            let number = match format {
                Format::Newest => oids.add(content),
                Format::Whole | Format::WithoutAttributes => from_hex(content).and_then(|oid| oids.add(&oid)),
            };
            number.map_or(Preimage::Lost(NotUndoableReason::ObjectGone), Preimage::Git)
        }
        Tag::Pack => Preimage::Pack(CopyLocation::from_bytes(content)?),
        Tag::Blob => Preimage::Blob(digest(content)?),
        Tag::Lost => match content.get(1..).unwrap_or_default() {
            [] => Preimage::Lost(why()?),
            bytes => Preimage::Unkept(why()?, digest(bytes)?),
        },
        Tag::Skipped => Preimage::Skipped(why()?),
    })
}

/// Appends a number of either sign, in few bytes if it is near zero.
fn put_signed(out: &mut Vec<u8>, number: i64) {
    put_number(out, (number << 1 ^ number >> 63).cast_unsigned());
}

fn take_signed(cursor: &mut Cursor<'_>) -> Option<i64> {
    let number = take_number(&mut cursor.0)?;
    Some((number >> 1).cast_signed() ^ -((number & 1).cast_signed()))
}

fn take_bytes<'a>(cursor: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let len = usize::try_from(take_number(&mut cursor.0)?).ok()?;
    let (taken, rest) = cursor.0.split_at_checked(len)?;
    cursor.0 = rest;
    Some(taken)
}

/// Appends an entry in the second format.
#[cfg(test)]
fn put_whole(out: &mut Vec<u8>, rel: &[u8], entry: &ManifestEntry, oids: &Oids) {
    let (tag, content) = content(&entry.pre, oids);
    let content = if matches!(tag, Tag::Git) { crate::manifest::hex(&content) } else { content };
    out.push(tag as u8);
    crate::frame::push_bytes(out, rel);
    out.extend_from_slice(&entry.stat.mode.to_le_bytes());
    out.push(u8::from(entry.attributes.is_some()) | u8::from(entry.racy) << 1);
    out.extend_from_slice(&entry.stat.names.to_le_bytes());
    let stat = entry.stat;
    for number in [stat.inode, stat.size, stat.modified.cast_unsigned(), stat.changed.cast_unsigned()] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    crate::frame::push_bytes(out, &content);
    if let Some(attributes) = &entry.attributes {
        attributes.encode(out);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn entries(oids: &mut Oids) -> Vec<(&'static [u8], ManifestEntry)> {
        let plain = Arc::new(Attributes { uid: 7, gid: 8, extended: BTreeMap::new() });
        let marked = BTreeMap::from([(b"user.x".to_vec(), b"y".to_vec())]);
        let marked = Arc::new(Attributes { uid: 7, gid: 8, extended: marked });
        let stat = |mode, inode, modified| Stat {
            mode,
            uid: 7,
            gid: 8,
            names: 1,
            inode,
            size: u64::from(u32::MAX) + 5,
            modified,
            changed: modified + 3,
        };
        let digest = || Box::new(Digest::of(b"x"));
        let git = oids.add(&[0xab; 20]).unwrap();
        let pres = [
            Preimage::Folder,
            Preimage::Git(git),
            Preimage::Pack(CopyLocation::from_bytes(&[3; 17]).unwrap()),
            Preimage::Blob(digest()),
            Preimage::Lost(NotUndoableReason::TooLarge),
            Preimage::Unkept(NotUndoableReason::OverTotal, digest()),
            Preimage::Skipped(NotUndoableReason::Git),
        ];
        let names: [&[u8]; 7] = [b"a", b"a/b", b"a/b\xff", b"a/c", b"b", b"b/.git", b"c"];
        let number = |at: usize| i64::try_from(at).unwrap();
        let all = names.into_iter().zip(pres).enumerate().map(|(at, (name, pre))| {
            let stat = stat(0o100_644 + at as u32 / 3, u64::MAX - at as u64 * 7, number(at) * 1_000 - 2_000);
            let attributes = [Some(&plain), Some(&marked), Some(&plain)][at % 3].cloned();
            (name, ManifestEntry { stat, racy: at % 2 == 1, pre, attributes })
        });
        all.collect()
    }

    fn describe(read: &BookContents) -> Vec<String> {
        let mut told = Vec::new();
        read.manifest.visit(|rel, known| {
            let entry = known.entry();
            let oid = match entry.pre {
                Preimage::Git(number) => read.oids.get(number).map(<[u8]>::to_vec),
                _ => None,
            };
            told.push(format!("{rel:?} {entry:?} {oid:?}"));
        });
        told
    }

    #[test]
    fn entries_are_read_as_they_were_written_in_every_format() {
        let mut oids = Oids::default();
        let entries = entries(&mut oids);
        let mut expected = BookContents::default();
        entries.iter().for_each(|(rel, entry)| drop(expected.manifest.set(rel, Some(entry.clone()))));
        expected.oids.add(&[0xab; 20]);
        let (mut newest, mut whole, mut frame) = (Vec::new(), Vec::new(), EntryFrame::default());
        for (rel, entry) in &entries {
            frame.put(&mut newest, rel, Some(entry), &oids);
            put_whole(&mut whole, rel, entry, &oids);
        }
        assert!(newest.len() < whole.len());
        for (bytes, format) in [(&newest, Format::Newest), (&whole, Format::Whole)] {
            let (mut read, mut frame, mut cursor) =
                (BookContents::default(), EntryFrame::default(), Cursor(bytes));
            while !cursor.0.is_empty() {
                frame.take(&mut cursor, format, &mut read).unwrap();
            }
            assert_eq!(describe(&read), describe(&expected), "{format:?}");
            for cut in 0..bytes.len() {
                let (mut read, mut frame) = (BookContents::default(), EntryFrame::default());
                let mut cursor = Cursor(&bytes[..cut]);
                while frame.take(&mut cursor, format, &mut read).is_some() {}
            }
        }
        let mut gone = newest.clone();
        frame.put(&mut gone, b"c", None, &oids);
        frame.put_line(&mut gone, b"call_1");
        let (mut read, mut frame, mut cursor) =
            (BookContents::default(), EntryFrame::default(), Cursor(&gone));
        while !cursor.0.is_empty() {
            frame.take(&mut cursor, Format::Newest, &mut read).unwrap();
        }
        assert_eq!((read.manifest.len(), read.line.as_deref()), (6, Some("call_1")));
    }
}
