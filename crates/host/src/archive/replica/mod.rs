//! The copy of a workspace in which a session is replayed. It is self-contained: nothing in it leads back to the
//! original.
//!
//! A plain copy of the files is not. A `.git` may be a file or a link that leads to the real repository, a repository
//! names its own paths in its files, and links have absolute targets. All of these are redirected to the copy here,
//! and a copy in which git would still work elsewhere is refused.

mod paths;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use self::paths::{
    collect_rests, continues_name, copy_error, copy_tree, git_target, has_wildcards, into_text, is_objects,
    is_repository, is_work_tree_entry, quote, real_path, refused_copy, replace_file, set_value,
    write_git_file,
};
use crate::error::HostError;
use crate::session::folder::shell_env;

/// Arguments with which `cp` copies a folder unchanged. Only GNU's `cp` knows copies that share their blocks.
const COPYING: &[&str] =
    if cfg!(target_os = "linux") { &["-a", "--reflink=auto", "--"] } else { &["-a", "--"] };

/// Files of a repository that name paths.
const NAMING: [&str; 4] = ["gitdir", "commondir", "config", "config.worktree"];

/// Largest file that holds one path, in bytes.
const PATH_MAX: u64 = 64 << 10;

/// Parts of the repository of a linked work tree that only name the place of the rest.
const LINKING: [&str; 3] = ["gitdir", "commondir", "locked"];

/// Variables that make git work in another place than its current folder.
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

/// Names the folders above which git does not look for a repository.
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
        copy_tree(&self.original, &self.copy)
    }

    /// Redirects to the copy everything that leads back into the real workspace, or to a repository that it refers
    /// to.
    pub(crate) fn detach(&self) -> Result<(), HostError> {
        let mut tops = Vec::new();
        let mut folders = vec![(self.copy.clone(), false)];
        while let Some((folder, in_git)) = folders.pop() {
            let in_git = in_git || is_repository(&folder);
            if is_repository(&folder) && !self.redirect_names(&folder)? {
                continue;
            }
            for entry in std::fs::read_dir(&folder).map_err(|error| copy_error(&folder, &error))? {
                let entry = entry.map_err(|error| copy_error(&folder, &error))?;
                let (path, kind) = (entry.path(), entry.file_type());
                let is_git = entry.file_name().eq_ignore_ascii_case(".git");
                if is_git && !kind.map_err(|error| copy_error(&path, &error))?.is_dir() {
                    self.copy_repository(&path)?;
                }
                if is_git {
                    tops.push(folder.clone());
                }
                if path.is_symlink() {
                    self.redirect_link(&path, in_git)?;
                }
                if !path.is_symlink() && path.is_dir() && !is_objects(&path) {
                    folders.push((path, in_git));
                }
            }
        }
        tops.iter().try_for_each(|top| self.check(top))
    }

    /// The place in the copy of a place in the original.
    fn in_copy(&self, place: &Path) -> Option<PathBuf> {
        let below = place.strip_prefix(&self.original).ok()?;
        Some(if below.as_os_str().is_empty() { self.copy.clone() } else { self.copy.join(below) })
    }

    /// A text that names the original, changed to name the copy; none if it does not name the original.
    pub(crate) fn text_for_copy(&self, text: &OsStr) -> Option<OsString> {
        let (bytes, from) = (text.as_bytes(), self.original.as_os_str().as_bytes());
        let mut out = Vec::new();
        let (mut at, mut found) = (0, false);
        while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            let around = [before, rest.get(from.len())];
            let is_whole = around.into_iter().flatten().all(|byte| !continues_name(*byte));
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

    /// Redirects a link to the copy. A link in a repository that leads elsewhere is replaced by a copy of its target,
    /// because git would write to the target.
    fn redirect_link(&self, link: &Path, in_git: bool) -> Result<(), HostError> {
        let failed = |error: std::io::Error| copy_error(link, &error);
        let target = std::fs::read_link(link).map_err(failed)?;
        let real = real_path(&link.parent().unwrap_or(&self.copy).join(target));
        if let Some(to) = self.in_copy(&real) {
            std::fs::remove_file(link).map_err(failed)?;
            return std::os::unix::fs::symlink(to, link).map_err(failed);
        }
        if in_git && !real.starts_with(&self.copy) {
            std::fs::remove_file(link).map_err(failed)?;
            if real.exists() {
                copy_tree(&real, link)?;
            }
        }
        Ok(())
    }

    /// Redirects names of the original in the files of a repository, such as `core.worktree` and the places of linked
    /// work trees. Returns false if the folder was only the entry of a work tree elsewhere; that entry is removed
    /// from the copy.
    fn redirect_names(&self, repository: &Path) -> Result<bool, HostError> {
        for name in NAMING {
            let file = repository.join(name);
            if !file.symlink_metadata().is_ok_and(|found| found.is_file()) {
                continue;
            }
            let text = std::fs::read(&file).map_err(|error| copy_error(&file, &error))?;
            let turned = self.text_for_copy(OsStr::from_bytes(&text));
            if let Some(text) = &turned {
                replace_file(&file, text.as_bytes())?;
            }
            let text = turned.as_deref().map_or(text.as_slice(), OsStr::as_bytes);
            let inside =
                real_path(&repository.join(OsStr::from_bytes(text.trim_ascii()))).starts_with(&self.copy);
            match name {
                "gitdir" if !inside && is_work_tree_entry(repository) => {
                    std::fs::remove_dir_all(repository).map_err(|error| copy_error(repository, &error))?;
                    return Ok(false);
                }
                "gitdir" | "commondir" if !inside => return Err(refused_copy(repository)),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Makes the repository that a `.git` file or link leads to a part of the copy.
    fn copy_repository(&self, git: &Path) -> Result<(), HostError> {
        let Some(holder) = git.parent() else { return Ok(()) };
        let Ok(below) = git.strip_prefix(&self.copy) else { return Ok(()) };
        // The target as seen from the original place and from here; the two may differ.
        let from_there = git_target(&self.original.join(below));
        if let Some(inside) = from_there.as_deref().and_then(|real| self.in_copy(real)) {
            return write_git_file(git, &inside);
        }
        if git_target(git).is_some_and(|real| real.starts_with(&self.copy)) {
            return Ok(());
        }
        let Some(real) = from_there.or_else(|| git_target(git)) else { return Ok(()) };
        let common = match lathe_git::read_regular(&real.join("commondir"), PATH_MAX) {
            Ok(Some(text)) => real_path(&real.join(OsStr::from_bytes(text.trim_ascii()))),
            Ok(None) => real.clone(),
            Err(error) => return Err(copy_error(&real, &error)),
        };
        if common == self.original || self.copy.starts_with(&common) || !is_repository(&common) {
            return Err(refused_copy(holder));
        }
        std::fs::remove_file(git).map_err(|error| copy_error(git, &error))?;
        copy_tree(&common, git)?;
        // The other work trees are not part of the copy.
        let others = git.join("worktrees");
        if others.symlink_metadata().is_ok_and(|found| found.is_dir()) {
            std::fs::remove_dir_all(&others).map_err(|error| copy_error(&others, &error))?;
        }
        if common != real {
            copy_tree(&real.join("."), git)?;
            for name in LINKING {
                let _ = std::fs::remove_file(git.join(name));
            }
            set_value(&git.join("config"), "core.bare", Some("false"))?;
        }
        set_value(&git.join("config"), "core.worktree", None)?;
        set_value(&git.join("config.worktree"), "core.worktree", None)
    }

    /// Refuses a copy in which git would work elsewhere.
    fn check(&self, top: &Path) -> Result<(), HostError> {
        let folders = lathe_git::git_folders(top, &self.environment(shell_env()))
            .map_err(|error| copy_error(top, &error))?;
        // A `.git` that git does not accept leads nowhere; a bare one has no work tree.
        let outside = |place: &PathBuf| !real_path(place).starts_with(&self.copy);
        match folders.is_some_and(|places| places.iter().any(outside)) {
            true => Err(refused_copy(top)),
            false => Ok(()),
        }
    }

    /// The environment of programs that work in the copy: nothing in it leads back to the original.
    pub(crate) fn environment(&self, env: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
        let places = |name: &OsString| PLACING.iter().any(|placing| name == placing);
        let turned = |(name, value): (OsString, OsString)| {
            let value = self.text_for_copy(&value).unwrap_or(value);
            (name, value)
        };
        // The folder of temporary files may itself lie in a repository.
        let above = self.copy.parent().unwrap_or(&self.copy);
        let ceiling = (OsString::from(CEILING), above.as_os_str().to_owned());
        env.into_iter().filter(|(name, _)| !places(name)).map(turned).chain([ceiling]).collect()
    }

    /// Rules adapted to the copy: one that names the original names the copy too. Lines keep their numbers.
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
                    let DeValue::String(literal) = item.get_ref() else { continue };
                    let also: Vec<String> = match key {
                        "path" => self.patterns_for_copy(literal),
                        "command" => self
                            .text_for_copy(OsStr::new(literal.as_ref()))
                            .and_then(into_text)
                            .into_iter()
                            .collect(),
                        _ => self
                            .in_copy(Path::new(literal.as_ref()))
                            .and_then(|place| into_text(place.into()))
                            .into_iter()
                            .collect(),
                    };
                    let also: Vec<String> = also.iter().map(|one| quote(one)).collect();
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

    /// The patterns for the copy that correspond to a pattern for paths in the original.
    fn patterns_for_copy(&self, pattern: &str) -> Vec<String> {
        let home = std::env::home_dir().unwrap_or_default();
        let pattern = match pattern.strip_prefix("~/") {
            Some(rest) => home.join(rest),
            None => PathBuf::from(pattern),
        };
        let is_bare = pattern.starts_with("**");
        if !pattern.is_absolute() && !is_bare {
            return Vec::new();
        }
        // The part without wildcards is a place, by whatever name it is spelled.
        let parts: Vec<&OsStr> = pattern.iter().collect();
        let plain = parts.iter().take_while(|part| !has_wildcards(part)).collect::<PathBuf>();
        let rest = parts.iter().skip(plain.iter().count());
        let real = if is_bare { PathBuf::from("/") } else { real_path(&plain) };
        let parts: Vec<&OsStr> = real.iter().chain(rest.copied()).collect();
        let names: Vec<&OsStr> = self.original.iter().collect();
        let mut ends = Vec::new();
        collect_rests(&parts, &names, &mut ends);
        let place = |end: Vec<&OsStr>| {
            into_text(end.iter().fold(self.copy.clone(), |all, part| all.join(part)).into_os_string())
        };
        let mut all: Vec<String> = ends.into_iter().filter_map(place).collect();
        all.sort();
        all.dedup();
        all
    }

    /// A rule that denies the real workspace by its place: a replayed call works in the copy only.
    pub(crate) fn denial_rule(&self) -> String {
        let places = crate::rules::line_check::path_patterns(std::slice::from_ref(&self.original));
        format!(
            "[[rule]]\ndecision = \"deny\"\npath = [{}]\n\
             reason = \"a replay works in a copy, and never in the workspace itself\"\n",
            places.join(", ")
        )
    }
}
