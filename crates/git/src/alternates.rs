//! Folders of objects that a repository borrows from.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use crate::folder::Folder;
use crate::layout::Look;
use crate::{Boundary, GitError};

/// Folders that borrow from each other, as git has it.
const DEEPEST: usize = 5;

/// The file of a folder of objects that names the folders it borrows from.
const LIST: &str = "info/alternates";

/// Bytes of a list of folders.
const LONGEST: u64 = 1 << 20;

/// Refuses a folder of objects with parts that lead elsewhere, and one that borrows from such a folder or from one outside
/// of the boundary.
pub(crate) fn check(objects: &Folder, look: &mut Look<'_>) -> Result<(), GitError> {
    check_at(objects, look, DEEPEST)
}

fn check_at(objects: &Folder, look: &mut Look<'_>, deeper: usize) -> Result<(), GitError> {
    look.objects(objects)?;
    if matches!(look.boundary(), Boundary::Anywhere) {
        return Ok(());
    }
    let file = objects.name.join(LIST);
    let content = objects
        .read(LIST, LONGEST)
        .map_err(|error| GitError::refused(&file, format!("cannot be read: {error}")))?;
    for line in content.iter().flat_map(|content| content.split(|byte| *byte == b'\n')) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let named = objects.name.join(OsStr::from_bytes(line));
        let outside =
            || GitError::refused(&file, "borrows objects from a folder that is not below the roots");
        // A quoted path is not needed inside of the roots, so it is not read.
        if line.starts_with(b"\"") || deeper == 0 {
            return Err(outside());
        }
        // Git does without a folder that does not exist.
        let Ok(real) = named.canonicalize() else { continue };
        if !look.boundary().holds(&real) {
            return Err(outside());
        }
        check_at(&Folder::hold(&real, look.boundary())?, look, deeper - 1)?;
    }
    Ok(())
}

/// A folder as git takes it in a list of folders: in quotes, because a colon would end it.
pub(crate) fn quoted(folder: &Path) -> OsString {
    let mut text = vec![b'"'];
    for byte in folder.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b'\n' => text.extend(b"\\n"),
            byte => text.push(*byte),
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
}
