//! Objects of a repository, looked up in its files if git cannot be asked.
//!
//! Only their presence is checked: a loose object by its file, a packed one by the index of its pack. An object
//! counts as missing only if everything that could hold it was searched.
//!
//! Rejected: a repository of our own that borrows the objects. It helps against a part of the user's repository that
//! stops git, but not where git is missing.

use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use lathe_git::{open_regular, read_regular};

/// The maximum number of object folders that borrow from each other, and the maximum size of a list of them.
const MOST_FOLDERS: usize = 64;
const LONGEST_LIST: u64 = 1 << 20;

/// The header of a pack index in the only version in use, and the offset of the object names.
const BEGIN: [u8; 8] = *b"\xfftOc\0\0\0\x02";
const NAMES: u64 = 8 + 256 * 4;

/// The objects among these that are in no file. An empty list if a file could not be read.
pub(crate) fn missing(objects: &Path, names: &[String]) -> Vec<String> {
    let Ok(folders) = folders(objects) else { return Vec::new() };
    let mut missing = Vec::new();
    for name in names {
        match is_stored(&folders, name) {
            Ok(true) => {}
            Ok(false) => missing.push(name.clone()),
            Err(_) => return Vec::new(),
        }
    }
    missing
}

/// A folder of objects, with its packs.
struct ObjectFolder {
    folder: PathBuf,
    packs: Vec<File>,
}

/// A folder of objects and all folders that it borrows from.
fn folders(objects: &Path) -> io::Result<Vec<ObjectFolder>> {
    let (mut found, mut open) = (Vec::<ObjectFolder>::new(), vec![objects.to_owned()]);
    while let Some(folder) = open.pop() {
        // A folder that is borrowed from need not exist; git only warns.
        let Ok(folder) = folder.canonicalize() else { continue };
        if found.iter().any(|one| one.folder == folder) {
            continue;
        }
        if found.len() == MOST_FOLDERS {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let list = read_regular(&folder.join("info/alternates"), LONGEST_LIST)?.unwrap_or_default();
        for line in list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && line[0] != b'#') {
            // A quoted path is rare, and is not parsed: then the result is unknown.
            if line[0] == b'"' {
                return Err(io::ErrorKind::Unsupported.into());
            }
            open.push(folder.join(std::ffi::OsStr::from_bytes(line)));
        }
        let packs = packs(&folder.join("pack"))?;
        found.push(ObjectFolder { folder, packs });
    }
    Ok(found)
}

/// The indexes of the packs in a folder.
fn packs(folder: &Path) -> io::Result<Vec<File>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let mut packs = Vec::new();
    for entry in listed {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "idx") && path.with_extension("pack").is_file() {
            packs.push(open_regular(&path)?);
        }
    }
    Ok(packs)
}

fn is_stored(folders: &[ObjectFolder], name: &str) -> io::Result<bool> {
    let digits = name.as_bytes().chunks(2).map(|two| u8::from_str_radix(&String::from_utf8_lossy(two), 16));
    let oid = digits.collect::<Result<Vec<u8>, _>>().map_err(io::Error::other)?;
    let (first, rest) = name.split_at_checked(2).ok_or(io::ErrorKind::InvalidInput)?;
    for one in folders {
        if one.folder.join(first).join(rest).is_file() {
            return Ok(true);
        }
        for pack in &one.packs {
            if is_packed(pack, &oid)? {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Tells whether the index of a pack has an object. Its names are sorted.
fn is_packed(index: &File, oid: &[u8]) -> io::Result<bool> {
    let mut begin = [0; 8];
    index.read_exact_at(&mut begin, 0)?;
    if begin != BEGIN {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let count = |byte: u8| -> io::Result<u64> {
        let mut number = [0; 4];
        index.read_exact_at(&mut number, 8 + u64::from(byte) * 4)?;
        Ok(u64::from(u32::from_be_bytes(number)))
    };
    let first = oid.first().copied().ok_or(io::ErrorKind::InvalidInput)?;
    let (mut low, mut high) = (first.checked_sub(1).map_or(Ok(0), count)?, count(first)?);
    let mut name = vec![0; oid.len()];
    while low < high {
        let middle = low + (high - low) / 2;
        index.read_exact_at(&mut name, NAMES + middle * oid.len() as u64)?;
        match name.as_slice().cmp(oid) {
            std::cmp::Ordering::Equal => return Ok(true),
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    Ok(false)
}
