//! The copy of a workspace that a session is run again in. It is whole in itself: nothing in it leads back.
//!
//! A copy of the files alone is not. A `.git` may be a file or a link that leads to the real repository, a repository names its
//! own places in its files, and links have absolute targets. All of that is turned to the copy here, and a copy in which git
//! would still work elsewhere is refused.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use lathe_workspace::find_program;
use toml::de::{DeTable, DeValue};

use crate::error::HostError;
use crate::place::shell_env;

/// Asks `cp` for a copy of a folder as it is. Only that of GNU knows of copies that share their blocks.
const COPYING: &[&str] =
    if cfg!(target_os = "linux") { &["-a", "--reflink=auto", "--"] } else { &["-a", "--"] };

/// Files of a repository that name places.
const NAMING: [&str; 4] = ["gitdir", "commondir", "config", "config.worktree"];

/// Bytes of a file that holds one path.
const PATH_MAX: u64 = 64 << 10;

/// Parts of the repository of a linked work tree that only say where the rest is.
const LINKING: [&str; 3] = ["gitdir", "commondir", "locked"];

/// Variables by which git works in another place than the folder it stands in.
const PLACING: [&str; 8] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    CEILING,
];

/// Folders above which git looks for no repository.
const CEILING: &str = "GIT_CEILING_DIRECTORIES";

/// A workspace and its copy. Both are real paths.
#[derive(Debug, Clone)]
pub struct Replica {
    pub(crate) original: PathBuf,
    pub(crate) copy: PathBuf,
}

impl Replica {
    /// Copies the files.
    pub(crate) fn make(&self) -> Result<(), HostError> {
        copied(&self.original, &self.copy)
    }

    /// Turns everything that leads back into the real workspace, or to a repository behind it, to the copy.
    pub(crate) fn part(&self) -> Result<(), HostError> {
        let mut tops = Vec::new();
        let mut folders = vec![(self.copy.clone(), false)];
        while let Some((folder, in_git)) = folders.pop() {
            let in_git = in_git || is_repository(&folder);
            if is_repository(&folder) && !self.turn_names(&folder)? {
                continue;
            }
            for entry in std::fs::read_dir(&folder).map_err(|error| wrong(&folder, &error))? {
                let entry = entry.map_err(|error| wrong(&folder, &error))?;
                let (path, kind) = (entry.path(), entry.file_type());
                let is_git = entry.file_name().eq_ignore_ascii_case(".git");
                if is_git && !kind.map_err(|error| wrong(&path, &error))?.is_dir() {
                    self.bring_repository(&path)?;
                }
                if is_git {
                    tops.push(folder.clone());
                }
                if path.is_symlink() {
                    self.turn_link(&path, in_git)?;
                }
                if !path.is_symlink() && path.is_dir() && !is_objects(&path) {
                    folders.push((path, in_git));
                }
            }
        }
        tops.iter().try_for_each(|top| self.check(top))
    }

    /// The place in the copy of a place in the original.
    fn turned(&self, place: &Path) -> Option<PathBuf> {
        let below = place.strip_prefix(&self.original).ok()?;
        Some(if below.as_os_str().is_empty() { self.copy.clone() } else { self.copy.join(below) })
    }

    /// A text that names the original, with the copy in its place.
    pub(crate) fn turned_text(&self, text: &OsStr) -> Option<OsString> {
        let (bytes, from) = (text.as_bytes(), self.original.as_os_str().as_bytes());
        let mut out = Vec::new();
        let (mut at, mut found) = (0, false);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            let around = [before, rest.get(from.len())];
            let is_whole = around.into_iter().flatten().all(|byte| !is_of_name(*byte));
            if rest.starts_with(from) && is_whole {
                out.extend(self.copy.as_os_str().as_bytes());
                (at, found) = (at + from.len(), true);
            } else {
                out.extend(rest.first());
                at += 1;
            }
        }
        found.then(|| OsString::from_vec(out))
    }

    /// Turns a link to the copy. One in a repository that leads elsewhere becomes a copy of what it leads to: git would write
    /// there.
    fn turn_link(&self, link: &Path, in_git: bool) -> Result<(), HostError> {
        let failed = |error: std::io::Error| wrong(link, &error);
        let target = std::fs::read_link(link).map_err(failed)?;
        let real = real_place(&link.parent().unwrap_or(&self.copy).join(target));
        if let Some(to) = self.turned(&real) {
            std::fs::remove_file(link).map_err(failed)?;
            return std::os::unix::fs::symlink(to, link).map_err(failed);
        }
        if in_git && !real.starts_with(&self.copy) {
            std::fs::remove_file(link).map_err(failed)?;
            if real.exists() {
                copied(&real, link)?;
            }
        }
        Ok(())
    }

    /// Turns names of the original in the files of a repository, as `core.worktree` and the places of linked work trees.
    /// False if it was only the part of a work tree elsewhere, which is not in the copy any more.
    fn turn_names(&self, repository: &Path) -> Result<bool, HostError> {
        for name in NAMING {
            let file = repository.join(name);
            if !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let text = std::fs::read(&file).map_err(|error| wrong(&file, &error))?;
            let turned = self.turned_text(OsStr::from_bytes(&text));
            if let Some(text) = &turned {
                rewrite(&file, text.as_bytes())?;
            }
            let text = turned.as_deref().map_or(text.as_slice(), OsStr::as_bytes);
            let inside =
                real_place(&repository.join(OsStr::from_bytes(text.trim_ascii()))).starts_with(&self.copy);
            match name {
                "gitdir" if !inside && is_of_work_tree(repository) => {
                    std::fs::remove_dir_all(repository).map_err(|error| wrong(repository, &error))?;
                    return Ok(false);
                }
                "gitdir" | "commondir" if !inside => return Err(refused(repository)),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Makes the repository that a `.git` file or link leads to a part of the copy.
    fn bring_repository(&self, git: &Path) -> Result<(), HostError> {
        let Some(holder) = git.parent() else { return Ok(()) };
        let Ok(below) = git.strip_prefix(&self.copy) else { return Ok(()) };
        // Where it leads from its own place, and from here, which may not be the same.
        let from_there = led(&self.original.join(below));
        if let Some(inside) = from_there.as_deref().and_then(|real| self.turned(real)) {
            return rewritten_as_file(git, &inside);
        }
        if led(git).is_some_and(|real| real.starts_with(&self.copy)) {
            return Ok(());
        }
        let Some(real) = from_there.or_else(|| led(git)) else { return Ok(()) };
        let common = match lathe_git::read_regular(&real.join("commondir"), PATH_MAX) {
            Ok(Some(text)) => real_place(&real.join(OsStr::from_bytes(text.trim_ascii()))),
            Ok(None) => real.clone(),
            Err(error) => return Err(wrong(&real, &error)),
        };
        if common == self.original || self.copy.starts_with(&common) || !is_repository(&common) {
            return Err(refused(holder));
        }
        std::fs::remove_file(git).map_err(|error| wrong(git, &error))?;
        copied(&common, git)?;
        // The other work trees are not part of the copy.
        let others = git.join("worktrees");
        if others.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            std::fs::remove_dir_all(&others).map_err(|error| wrong(&others, &error))?;
        }
        if common != real {
            copied(&real.join("."), git)?;
            for name in LINKING {
                let _ = std::fs::remove_file(git.join(name));
            }
            set(&git.join("config"), "core.bare", Some("false"))?;
        }
        set(&git.join("config"), "core.worktree", None)?;
        set(&git.join("config.worktree"), "core.worktree", None)
    }

    /// Refuses a copy in which git would work elsewhere.
    fn check(&self, top: &Path) -> Result<(), HostError> {
        let said =
            lathe_git::places(top, &self.environment(shell_env())).map_err(|error| wrong(top, &error))?;
        // A `.git` that git does not take leads nowhere; a bare one has no work tree.
        let outside = |place: &PathBuf| !real_place(place).starts_with(&self.copy);
        match said.is_some_and(|places| places.iter().any(outside)) {
            true => Err(refused(top)),
            false => Ok(()),
        }
    }

    /// The environment of programs that work in the copy: nothing in it leads back.
    pub(crate) fn environment(&self, env: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let places = |name: &OsString| PLACING.iter().any(|placing| name == placing);
        let turned = |(name, value): (OsString, OsString)| {
            let value = self.turned_text(&value).unwrap_or(value);
            (name, value)
        };
        // A folder of temporary files may lie in a repository.
        let above = self.copy.parent().unwrap_or(&self.copy);
        let ceiling = (OsString::from(CEILING), above.as_os_str().to_owned());
        env.into_iter().filter(|(name, _)| !places(name)).map(turned).chain([ceiling]).collect()
    }

    /// Rules as they hold for the copy: what names the original names the copy too. Lines stay where they are.
    pub(crate) fn rules(&self, text: &str) -> String {
        let Ok(table) = DeTable::parse(text) else { return text.to_owned() };
        let rules = table.get_ref().iter().filter(|(key, _)| key.get_ref() == "rule");
        let rules = rules.filter_map(|(_, value)| match value.get_ref() {
            DeValue::Array(rules) => Some(rules.iter()),
            _ => None,
        });
        let mut added: Vec<(std::ops::Range<usize>, String)> = Vec::new();
        for rule in rules.flatten() {
            let DeValue::Table(rule) = rule.get_ref() else { continue };
            for (key, value) in rule.iter() {
                let key: &str = key.get_ref();
                if !["path", "workspace", "folder", "command"].contains(&key) {
                    continue;
                }
                let (items, is_list) = match value.get_ref() {
                    DeValue::Array(items) => (items.iter().collect(), true),
                    DeValue::String(_) => (vec![value], false),
                    _ => continue,
                };
                for item in items {
                    let DeValue::String(said) = item.get_ref() else { continue };
                    let also: Vec<String> = match key {
                        "path" => self.patterns(said),
                        "command" => self
                            .turned_text(OsStr::new(said.as_ref()))
                            .and_then(text_of)
                            .into_iter()
                            .collect(),
                        _ => self
                            .turned(Path::new(said.as_ref()))
                            .and_then(|place| text_of(place.into()))
                            .into_iter()
                            .collect(),
                    };
                    let also: Vec<String> = also.iter().map(|one| quoted(one)).collect();
                    let written = text.get(item.span()).unwrap_or_default();
                    if !also.is_empty() {
                        let all = format!("{written}, {}", also.join(", "));
                        added.push((item.span(), if is_list { all } else { format!("[{all}]") }));
                    }
                }
            }
        }
        added.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
        let mut text = text.to_owned();
        added.into_iter().for_each(|(span, words)| text.replace_range(span, &words));
        text
    }

    /// The meaning of a pattern for paths in the original, as patterns for the copy.
    fn patterns(&self, pattern: &str) -> Vec<String> {
        let home = std::env::home_dir().unwrap_or_default();
        let pattern = match pattern.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => PathBuf::from(pattern),
        };
        let is_bare = pattern.starts_with("**");
        if !pattern.is_absolute() && !is_bare {
            return Vec::new();
        }
        // The part without signs is a place, by whatever name.
        let parts: Vec<&OsStr> = pattern.iter().collect();
        let plain = parts.iter().take_while(|part| !has_signs(part)).collect::<PathBuf>();
        let rest = parts.iter().skip(plain.iter().count());
        let real = if is_bare { PathBuf::from("/") } else { real_place(&plain) };
        let parts: Vec<&OsStr> = real.iter().chain(rest.copied()).collect();
        let names: Vec<&OsStr> = self.original.iter().collect();
        let mut ends = Vec::new();
        behind(&parts, &names, &mut ends);
        let place = |end: Vec<&OsStr>| {
            text_of(end.iter().fold(self.copy.clone(), |all, part| all.join(part)).into_os_string())
        };
        let mut all: Vec<String> = ends.into_iter().filter_map(place).collect();
        all.sort();
        all.dedup();
        all
    }

    /// A denial of the real workspace, by its place: whatever is run again works in the copy.
    pub(crate) fn denial(&self) -> String {
        let places = crate::rules::policy::path_patterns(std::slice::from_ref(&self.original));
        format!(
            "[[rule]]\ndecision = \"deny\"\npath = [{}]\n\
             reason = \"a replay works in a copy, and never in the workspace itself\"\n",
            places.join(", ")
        )
    }
}

/// The rest of a pattern behind a whole path: all ways to match it. A pattern that ends before it means all below.
fn behind<'a>(pattern: &[&'a OsStr], names: &[&OsStr], ends: &mut Vec<Vec<&'a OsStr>>) {
    match (pattern.split_first(), names.split_first()) {
        (_, None) => ends.push(pattern.to_vec()),
        (None, Some(_)) => ends.push(Vec::new()),
        (Some((sign, rest)), Some((_, further))) if *sign == OsStr::new("**") => {
            behind(rest, names, ends);
            behind(pattern, further, ends);
        }
        (Some((part, rest)), Some((name, further))) => {
            if is_match(part.as_bytes(), name.as_bytes()) {
                behind(rest, further, ends);
            }
        }
    }
}

/// Tells whether a part of a pattern matches a name: `*` any characters, `?` one.
fn is_match(part: &[u8], name: &[u8]) -> bool {
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

fn has_signs(part: &OsStr) -> bool {
    part.as_bytes().iter().any(|byte| matches!(byte, b'*' | b'?'))
}

/// Bytes that go on with a name.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+' | b'~' | b'@') || byte >= 0x80
}

fn text_of(text: OsString) -> Option<String> {
    text.into_string().ok()
}

/// A text as TOML has it, which is as JSON has it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The place that a path leads to, as far as it is there; names that are not there stand at the end, without `.` and `..`.
fn real_place(path: &Path) -> PathBuf {
    let mut left: Vec<&OsStr> = Vec::new();
    let mut at = path;
    loop {
        if let Ok(real) = at.canonicalize() {
            return left.iter().rev().fold(real, |place, name| place.join(name));
        }
        // A link that leads to nothing yet leads there all the same.
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

/// A path without `.` and `..`, by its text.
fn lexical(path: &Path) -> PathBuf {
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
fn led(git: &Path) -> Option<PathBuf> {
    let real = git.canonicalize().ok()?;
    if real.is_dir() {
        return Some(real);
    }
    let text = lathe_git::read_regular(&real, PATH_MAX).ok()??;
    let named = text.trim_ascii().strip_prefix(b"gitdir:")?.trim_ascii();
    // A relative name begins where the link stands for git.
    let found = git.parent()?.join(OsStr::from_bytes(named)).canonicalize().ok()?;
    found.is_dir().then_some(found)
}

/// Tells whether a folder is a repository by what is in it.
fn is_repository(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// Tells whether a folder is what a repository knows of one of its linked work trees.
fn is_of_work_tree(folder: &Path) -> bool {
    folder.parent().and_then(Path::file_name).is_some_and(|name| name == "worktrees")
}

/// The folder of a repository with its many objects, in which nothing names a place.
fn is_objects(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == "objects") && folder.parent().is_some_and(is_repository)
}

fn rewritten_as_file(git: &Path, to: &Path) -> Result<(), HostError> {
    std::fs::remove_file(git).map_err(|error| wrong(git, &error))?;
    let text = [b"gitdir: ", to.as_os_str().as_bytes(), b"\n"].concat();
    std::fs::write(git, text).map_err(|error| wrong(git, &error))
}

/// Another file in the place of one, because that may have other names.
fn rewrite(file: &Path, text: &[u8]) -> Result<(), HostError> {
    let failed = |error: std::io::Error| wrong(file, &error);
    let mode = file.metadata().map_err(failed)?.permissions();
    std::fs::remove_file(file).map_err(failed)?;
    std::fs::write(file, text).map_err(failed)?;
    std::fs::set_permissions(file, mode).map_err(failed)
}

/// Sets a value in a file of git's, or takes it away.
fn set(file: &Path, key: &str, value: Option<&str>) -> Result<(), HostError> {
    if !file.exists() {
        return Ok(());
    }
    match lathe_git::set_in_file(file, key, value).map_err(|error| wrong(file, &error))? {
        true => Ok(()),
        false => Err(HostError::Replay(format!("{} cannot be changed by git", file.display()))),
    }
}

fn copied(from: &Path, to: &Path) -> Result<(), HostError> {
    let program = find_program("cp", from).unwrap_or_else(|| PathBuf::from("/bin/cp"));
    let words = match Command::new(program).args(COPYING).arg(from).arg(to).output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(HostError::Replay(format!("{} cannot be copied: {words}", from.display())))
}

fn wrong(path: &Path, error: &std::io::Error) -> HostError {
    HostError::Replay(format!("no copy can be made: {}: {error}", path.display()))
}

fn refused(top: &Path) -> HostError {
    HostError::Replay(format!(
        "no copy can be made that is whole in itself: git in {} would work in a repository outside of it",
        top.display()
    ))
}
