//! Paths of a copy: the targets of links and of git's files, and their rewriting.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_workspace::{find_program, program_command};

use super::{COPYING, PATH_MAX};
use crate::error::HostError;

/// Collects the rests of a pattern after it has matched a whole path, one for each way to match it. A pattern that
/// ends before the path does means everything below it.
pub(super) fn collect_rests<'a>(pattern: &[&'a OsStr], names: &[&OsStr], ends: &mut Vec<Vec<&'a OsStr>>) {
    match (pattern.split_first(), names.split_first()) {
        (_, None) => ends.push(pattern.to_vec()),
        (None, Some(_)) => ends.push(Vec::new()),
        (Some((sign, rest)), Some((_, further))) if *sign == OsStr::new("**") => {
            collect_rests(rest, names, ends);
            collect_rests(pattern, further, ends);
        }
        (Some((part, rest)), Some((name, further))) => {
            if is_match(part.as_bytes(), name.as_bytes()) {
                collect_rests(rest, further, ends);
            }
        }
    }
}

/// Tells whether a part of a pattern matches a name: `*` stands for any characters, `?` for one.
pub(super) fn is_match(part: &[u8], name: &[u8]) -> bool {
    match (part.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), None) => is_match(rest, name),
        (Some((b'*', rest)), Some((_, further))) => is_match(rest, name) || is_match(part, further),
        // One character may have several bytes.
        (Some((b'?', rest)), Some((_, further))) => is_match(rest, further) || is_match(part, further),
        (Some((sign, rest)), Some((byte, further))) => sign == byte && is_match(rest, further),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

pub(super) fn has_wildcards(part: &OsStr) -> bool {
    part.as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?'))
}

/// Tells whether a byte continues a name.
pub(super) fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b'~' | b'@') || byte >= 0x80
}

pub(super) fn into_text(text: OsString) -> Option<String> {
    text.into_string().ok()
}

/// A text quoted for TOML, which is the same as for JSON.
pub(super) fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The real place that a path leads to, as far as it exists; the names that do not exist stand at the end, without
/// `.` and `..`.
pub(super) fn real_path(path: &Path) -> PathBuf {
    let mut left: Vec<&OsStr> = Vec::new();
    let mut at = path;
    loop {
        if let Ok(real) = at.canonicalize() {
            return left.iter().rev().fold(real, |place, name| place.join(name));
        }
        // A dangling link still leads to the place that it names.
        if let Ok(target) = std::fs::read_link(at)
            && let Some(holder) = at.parent().and_then(|holder| holder.canonicalize().ok())
            && left.len() < 64
        {
            let to = holder.join(&target);
            let is_same = to == at;
            let real = if is_same { to } else { lexical(&to) };
            return left.iter().rev().fold(real, |place, name| place.join(name));
        }
        match (at.parent(), at.file_name()) {
            (Some(above), Some(name)) => {
                left.push(name);
                at = above;
            }
            (Some(_), None) | (None, _) => return lexical(path),
        }
    }
}

/// A path without `.` and `..`, by its text alone.
pub(super) fn lexical(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                out.pop();
            }
            std::path::Component::CurDir => {}
            part => out.push(part),
        }
    }
    out
}

/// The real folder that a `.git` file or link leads to, if there is one.
pub(super) fn git_target(git: &Path) -> Option<PathBuf> {
    let real = git.canonicalize().ok()?;
    if real.is_dir() {
        return Some(real);
    }
    let text = lathe_git::read_regular(&real, PATH_MAX).ok()??;
    let named = text.trim_ascii().strip_prefix(b"gitdir:")?.trim_ascii();
    // Git takes a relative name from the folder of the link.
    let found = git.parent()?.join(OsStr::from_bytes(named)).canonicalize().ok()?;
    found.is_dir().then_some(found)
}

/// Tells whether a folder is a repository, by its content.
pub(super) fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// Tells whether a folder is a repository's entry for one of its linked work trees.
pub(super) fn is_work_tree_entry(folder: &Path) -> bool {
    folder.parent().and_then(Path::file_name).is_some_and(|name| name == "worktrees")
}

/// Tells whether a folder holds the objects of a repository: many files, none of which names a place.
pub(super) fn is_objects(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "objects") && folder.parent().is_some_and(is_repository)
}

pub(super) fn write_git_file(git: &Path, to: &Path) -> Result<(), HostError> {
    std::fs::remove_file(git).map_err(|error| copy_error(git, &error))?;
    let text = [b"gitdir: ", to.as_os_str().as_bytes(), b"\n"].concat();
    std::fs::write(git, text).map_err(|error| copy_error(git, &error))
}

/// Replaces a file by a new one, because the old one may be linked from elsewhere too.
pub(super) fn replace_file(file: &Path, text: &[u8]) -> Result<(), HostError> {
    let failed = |error: std::io::Error| copy_error(file, &error);
    let mode = file.metadata().map_err(failed)?.permissions();
    std::fs::remove_file(file).map_err(failed)?;
    std::fs::write(file, text).map_err(failed)?;
    std::fs::set_permissions(file, mode).map_err(failed)
}

/// Sets a value in a file of git's, or removes it.
pub(super) fn set_value(file: &Path, key: &str, value: Option<&str>) -> Result<(), HostError> {
    if !file.exists() {
        return Ok(());
    }
    match lathe_git::set_in_file(file, key, value).map_err(|error| copy_error(file, &error))? {
        true => Ok(()),
        false => Err(HostError::Replay(format!("{} cannot be changed by git", file.display()))),
    }
}

pub(super) fn copy_tree(from: &Path, to: &Path) -> Result<(), HostError> {
    let program = find_program("cp", from).unwrap_or_else(|| PathBuf::from("/bin/cp"));
    let words = match program_command(program).args(COPYING).arg(from).arg(to).output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(HostError::Replay(format!("{} cannot be copied: {words}", from.display())))
}

pub(super) fn copy_error(path: &Path, error: &std::io::Error) -> HostError {
    HostError::Replay(format!("no copy can be made: {}: {error}", path.display()))
}

pub(super) fn refused_copy(top: &Path) -> HostError {
    HostError::Replay(format!(
        "no self-contained copy can be made: git in {} would work in a repository outside of it",
        top.display()
    ))
}
