//! The copy of a workspace that a session is run again in. It is whole in itself: nothing in it leads back.
//!
//! A copy of the files alone is not. A `.git` may be a file or a link that leads to the real repository, a repository names its
//! own places in its files, and links have absolute targets. All of that is turned to the copy here, and a copy in which git
//! would still work elsewhere is refused.

mod places;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use self::places::{
    behind, copied, has_signs, is_objects, is_of_name, is_of_work_tree, is_repository, led, quoted,
    real_place, refused, rewrite, rewritten_as_file, set, text_of, wrong,
};
use crate::error::HostError;
use crate::session::folder::shell_env;

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
        let said = lathe_git::git_folders(top, &self.environment(shell_env()))
            .map_err(|error| wrong(top, &error))?;
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
        let places = crate::rules::line_check::path_patterns(std::slice::from_ref(&self.original));
        format!(
            "[[rule]]\ndecision = \"deny\"\npath = [{}]\n\
             reason = \"a replay works in a copy, and never in the workspace itself\"\n",
            places.join(", ")
        )
    }
}
