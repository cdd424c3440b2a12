//! Ignore files that are there and cannot be read.
//!
//! A `.latheignore` keeps files from every model. If it cannot be read, what it names is not known: then all of its folder is
//! left out, and that is told, because a folder without files looks like an empty one. `.geminiignore` and git's files are
//! lifted by a parameter anyway; one that cannot be read is passed over, as git and Gemini CLI do.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ignore::gitignore::Gitignore;
use nix::libc;
use parking_lot::Mutex;

use crate::globs::{StatedRules, ignore_rules};
use crate::ignored::OWN;

/// The longest ignore file that is read.
const LONGEST: u64 = 4 << 20;

/// An ignore file that cannot be used, or not all of it.
pub(crate) struct UnreadFile {
    reason: String,
    /// The lines of it that are patterns, if it has some.
    pub(crate) rest: Option<Box<Gitignore>>,
}

/// Reads an ignore file of a folder. None: there is no file of this name.
pub(crate) fn read_ignore_file(folder: &Path, file: &Path) -> Result<Option<Gitignore>, UnreadFile> {
    let wrong = |reason: &str| UnreadFile { reason: reason.to_owned(), rest: None };
    match file.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        // Where a file stands in the place of a folder, there are no ignore files.
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(wrong(&error.to_string())),
        Ok(found) if found.is_symlink() => return Err(wrong("it is a link, which is not followed")),
        Ok(found) if found.is_dir() => return Err(wrong("it is a folder")),
        Ok(_) => {}
    }
    let bytes = read_bounded(file, libc::O_NOFOLLOW).map_err(|reason| wrong(&reason))?;
    let text = match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => text,
        Ok(_) | Err(_) => return Err(wrong("it is not UTF-8 text")),
    };
    let stated = ignore_rules(folder, text.trim_start_matches('\u{feff}').lines());
    let StatedRules { rules, bad_line } = stated.map_err(|error| wrong(&error.to_string()))?;
    match bad_line {
        None => Ok(Some(rules)),
        Some(line) => {
            Err(UnreadFile { reason: format!("line {line} is not a pattern"), rest: Some(Box::new(rules)) })
        }
    }
}

/// Reads a regular file of bounded length. A pipe is not waited for: the open file is what is asked about.
fn read_bounded(file: &Path, flags: libc::c_int) -> Result<Vec<u8>, String> {
    let mut options = std::fs::File::options();
    options.read(true).custom_flags(flags | libc::O_NONBLOCK | libc::O_NOCTTY);
    let opened = options.open(file).map_err(|error| error.to_string())?;
    if !opened.metadata().is_ok_and(|found| found.is_file()) {
        return Err("it is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    opened.take(LONGEST + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    match bytes.len() as u64 > LONGEST {
        true => Err("it is larger than such a file can be".to_owned()),
        false => Ok(bytes),
    }
}

/// Reads the text of a file that a walk takes rules from: the lines before the first one that is not UTF-8. None: there is no
/// such file, or it is a pipe, a device or too long.
pub(crate) fn rule_text(file: &Path) -> Option<String> {
    // Most folders have no such file, and a device is not opened at all.
    std::fs::metadata(file).ok().filter(std::fs::Metadata::is_file)?;
    let mut bytes = read_bounded(file, 0).ok()?;
    if let Err(error) = std::str::from_utf8(&bytes) {
        let whole = bytes.iter().take(error.valid_up_to()).rposition(|&byte| byte == b'\n');
        bytes.truncate(whole.map_or(0, |end| end + 1));
    }
    String::from_utf8(bytes).ok()
}

/// The reason why the `.latheignore` of a folder cannot be used. None: it can, or there is none.
pub fn unread_own_file(folder: &Path) -> Option<String> {
    read_ignore_file(folder, &folder.join(OWN)).err().map(|unread| unread.reason)
}

/// The `.latheignore` files that were met and cannot be used, to be told once. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct UnreadRules(Arc<Mutex<Met>>);

#[derive(Debug, Default)]
struct Met {
    files: BTreeMap<PathBuf, String>,
    /// Those that the model was told of.
    told: BTreeSet<PathBuf>,
    /// Those that the person was told of.
    warned: BTreeSet<PathBuf>,
}

impl UnreadRules {
    /// Looks at one folder. Tells whether all of it is left out.
    pub fn meet(&self, folder: &Path) -> bool {
        let Some(reason) = unread_own_file(folder) else { return false };
        self.0.lock().files.insert(folder.to_owned(), reason);
        true
    }

    /// Looks at a folder and those above it, up to the root. Tells whether all of it is left out.
    pub fn meet_above(&self, root: &Path, path: &Path) -> bool {
        let folders = path.ancestors().take_while(|folder| folder.starts_with(root));
        // Each is looked at: all of them are told.
        folders.filter(|folder| self.meet(folder)).count() > 0
    }

    /// A sentence for each that was not told before; paths are named from the root.
    pub fn untold(&self, root: &Path) -> Vec<String> {
        let mut met = self.0.lock();
        let Met { files, told, .. } = &mut *met;
        let fresh = files.iter().filter(|(folder, _)| told.insert((*folder).clone()));
        fresh.map(|(folder, reason)| sentence(root, folder, reason)).collect()
    }

    /// The same for the person at the console, who is told of the root's own file before the session begins.
    pub fn unwarned(&self, root: &Path) -> Vec<String> {
        let mut met = self.0.lock();
        let Met { files, warned, .. } = &mut *met;
        let fresh = files.iter().filter(|(folder, _)| *folder != root && warned.insert((*folder).clone()));
        fresh.map(|(folder, reason)| sentence(root, folder, reason)).collect()
    }
}

/// The sentence about a `.latheignore` that cannot be used.
pub fn sentence(root: &Path, folder: &Path, reason: &str) -> String {
    let inside = folder.strip_prefix(root).unwrap_or(folder);
    let place = match inside.as_os_str().is_empty() {
        true => "this folder and below".to_owned(),
        false => format!("{} and below", inside.display()),
    };
    format!(
        "{} cannot be read: {reason}. What it keeps from the model is not known, so every file in {place} is left out.",
        inside.join(OWN).display()
    )
}
