//! Ignore files that exist and cannot be read.
//!
//! A `.latheignore` keeps files from every model. If it cannot be read, the files it names are not known: then all of
//! its folder is excluded, and that is reported, because a folder without files looks like an empty one.
//! `.geminiignore` and git's files can be overridden by a parameter anyway; one that cannot be read is ignored, as in
//! git and Gemini CLI.

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

/// An ignore file that cannot be used, or only in part.
pub(crate) struct UnreadFile {
    reason: String,
    /// Its lines that are patterns, if it has any.
    pub(crate) rest: Option<Box<Gitignore>>,
}

/// Reads an ignore file of a folder. `None`: there is no file of this name.
pub(crate) fn read_ignore_file(folder: &Path, file: &Path) -> Result<Option<Gitignore>, UnreadFile> {
    let wrong = |reason: &str| UnreadFile { reason: reason.to_owned(), rest: None };
    match file.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        // If a file is in the place of a folder, there are no ignore files.
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

/// Reads a regular file of bounded length. A pipe is not waited for: the type of the opened file is checked.
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

/// Reads the text of a file that a walk takes rules from: the lines before the first one that is not UTF-8. `None`:
/// there is no such file, or it is a pipe, a device or too long.
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

/// The reason why the `.latheignore` of a folder cannot be used. `None`: it can, or there is none.
pub fn unread_own_file(folder: &Path) -> Option<String> {
    read_ignore_file(folder, &folder.join(OWN)).err().map(|unread| unread.reason)
}

/// The unusable `.latheignore` files that were found, each to be reported once. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct UnreadRules(Arc<Mutex<UnreadList>>);

#[derive(Debug, Default)]
struct UnreadList {
    files: BTreeMap<PathBuf, String>,
    /// Those that were reported to the model.
    told: BTreeSet<PathBuf>,
    /// Those that were reported to the person.
    warned: BTreeSet<PathBuf>,
}

impl UnreadRules {
    /// Checks one folder. Returns true if all of it is excluded.
    pub fn check(&self, folder: &Path) -> bool {
        let Some(reason) = unread_own_file(folder) else { return false };
        self.0.lock().files.insert(folder.to_owned(), reason);
        true
    }

    /// Checks a folder and those above it, up to the root. Returns true if all of it is excluded.
    pub fn check_above(&self, root: &Path, path: &Path) -> bool {
        let folders = path.ancestors().take_while(|folder| folder.starts_with(root));
        // Each is checked, because all of them are reported.
        folders.filter(|folder| self.check(folder)).count() > 0
    }

    /// A sentence for each file that was not reported to the model before; paths are relative to the root.
    pub fn take_unreported(&self, root: &Path) -> Vec<String> {
        let mut met = self.0.lock();
        let UnreadList { files, told, .. } = &mut *met;
        let fresh = files.iter().filter(|(folder, _)| told.insert((*folder).clone()));
        fresh.map(|(folder, reason)| unread_sentence(root, folder, reason)).collect()
    }

    /// A sentence for each file that was not reported to the person at the console before, who sees a report of the
    /// root's own file before the session begins.
    pub fn take_unwarned(&self, root: &Path) -> Vec<String> {
        let mut met = self.0.lock();
        let UnreadList { files, warned, .. } = &mut *met;
        let fresh = files.iter().filter(|(folder, _)| *folder != root && warned.insert((*folder).clone()));
        fresh.map(|(folder, reason)| unread_sentence(root, folder, reason)).collect()
    }
}

/// The sentence about a `.latheignore` that cannot be used.
pub fn unread_sentence(root: &Path, folder: &Path, reason: &str) -> String {
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
