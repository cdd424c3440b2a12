//! Object folders that a repository borrows from.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;

use crate::folder::RepositoryFolder;
use crate::layout::LayoutCheck;
use crate::{Boundary, GitError};

/// The depth of borrowing that git allows.
const DEEPEST: usize = 5;

/// The file in an object folder that names the folders it borrows from.
const LIST: &str = "info/alternates";

/// The maximum size of such a file.
const LONGEST: u64 = 1 << 20;

/// Refuses an object folder with parts that lead elsewhere, and one that borrows from such a folder or from one
/// outside of the boundary.
pub(crate) fn check(objects: &RepositoryFolder, look: &mut LayoutCheck<'_>) -> Result<(), GitError> {
    check_at(objects, look, DEEPEST)
}

fn check_at(objects: &RepositoryFolder, look: &mut LayoutCheck<'_>, deeper: usize) -> Result<(), GitError> {
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
        // Inside of the roots no quoted path is needed, so quoted paths are not parsed.
        if line.starts_with(b"\"") || deeper == 0 {
            return Err(outside());
        }
        // Git ignores a folder that does not exist.
        let Ok(real) = named.canonicalize() else { continue };
        if !look.boundary().holds(&real) {
            return Err(outside());
        }
        check_at(&RepositoryFolder::hold(&real, look.boundary())?, look, deeper - 1)?;
    }
    Ok(())
}

/// A folder in the syntax of a folder list for git: quoted, because a colon would end it.
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
