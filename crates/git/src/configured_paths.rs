//! Paths that the configuration of a repository names: the folder of hooks, and further configuration files.
//!
//! Files there are run, or decide what is run, like `.git/hooks` and `.git/config`. The configuration is parsed here;
//! git is not asked, because it would obey it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use lathe_workspace::read_regular;

use crate::config::{Setting, parse_settings, user_setting};

/// The maximum size of a configuration file.
const LONGEST: u64 = 1 << 20;

/// The depth of includes that git allows.
const DEEPEST: usize = 10;

/// The maximum number of files read for one repository.
const MOST: usize = 64;

/// Hooks that git runs by their names.
pub const HOOKS: [&str; 28] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "p4-changelist",
    "p4-post-changelist",
    "p4-pre-submit",
    "p4-prepare-changelist",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

/// Paths that a configuration names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfiguredPaths {
    /// Folders of hooks.
    pub hooks: Vec<PathBuf>,
    /// Configuration files. They need not exist.
    pub files: Vec<PathBuf>,
}

impl ConfiguredPaths {
    /// The paths that the configuration in the folder of a repository names, for a work tree.
    pub fn of(work_tree: &Path, git_dir: &Path) -> Self {
        let mut places = Self::default();
        // The user's own hooks folder for all repositories may be relative to the work tree too.
        let of_user = user_setting("core", "hookspath").and_then(|path| resolve_value(&path, work_tree));
        places.hooks.extend(of_user);
        for name in ["config", "config.worktree"] {
            places.read(work_tree, &git_dir.join(name), DEEPEST);
        }
        places
    }

    fn read(&mut self, work_tree: &Path, file: &Path, deeper: usize) {
        let Ok(Some(content)) = read_regular(file, LONGEST) else { return };
        let settings = parse_settings(&String::from_utf8_lossy(&content)).unwrap_or_default();
        let paths = |wanted: fn(&Setting) -> bool, from: &Path| -> Vec<PathBuf> {
            let values = settings.iter().filter(|one| wanted(one)).filter_map(|one| one.value.as_deref());
            values.filter_map(|value| resolve_value(value, from)).collect()
        };
        self.hooks.extend(paths(|one| one.is("core", "hookspath"), work_tree));
        let includes =
            |one: &Setting| matches!(one.section.as_str(), "include" | "includeif") && one.key == "path";
        for included in paths(includes, file.parent().unwrap_or(work_tree)) {
            if deeper > 0 && self.files.len() < MOST && !self.files.contains(&included) {
                self.files.push(included.clone());
                self.read(work_tree, &included, deeper - 1);
            }
        }
    }
}

/// The paths that the configuration of a repository names, in one list. If a folder of hooks contains the work tree,
/// only the hooks in it are listed.
pub fn configured_paths(work_tree: &Path, git_dir: &Path) -> Vec<PathBuf> {
    let ConfiguredPaths { hooks, files } = ConfiguredPaths::of(work_tree, git_dir);
    let tree = work_tree.canonicalize().unwrap_or_else(|_| work_tree.to_owned());
    let hooks = hooks.into_iter().flat_map(|folder| {
        let real = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        match tree.starts_with(real) {
            true => HOOKS.iter().map(|hook| folder.join(hook)).collect(),
            false => vec![folder],
        }
    });
    hooks.chain(files).collect()
}

/// The path that a value names, relative to `from`. None for an empty value, and for the home of another user.
fn resolve_value(value: &str, from: &Path) -> Option<PathBuf> {
    match value.strip_prefix("~/") {
        Some(rest) => Some(PathBuf::from(std::env::var_os("HOME")?).join(rest)),
        None if value.is_empty() || value.starts_with('~') => None,
        None => Some(from.join(OsStr::new(value))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn hooks_and_included_files_are_found_through_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let git = top.join(".git");
        fs::create_dir(&git).unwrap();
        let config = "[core]\n\thooksPath = hh\n[include]\n\tpath = ../team.cfg\n[includeIf \"onbranch:x\"]\npath = ../not-there\n";
        fs::write(git.join("config"), config).unwrap();
        fs::write(top.join("team.cfg"), "[core] HooksPath = \"deep/hooks\"\n[include]\npath = team.cfg\n")
            .unwrap();
        fs::write(git.join("config.worktree"), "[core]\nhooksPath = .\n").unwrap();
        let places = ConfiguredPaths::of(&top, &git);
        assert_eq!(places.hooks, ["hh", "deep/hooks", "."].map(|name| top.join(name)));
        assert_eq!(places.files, [git.join("../team.cfg"), git.join("../not-there")]);
        let all = configured_paths(&top, &git);
        assert!(all.contains(&top.join("./pre-commit")) && !all.contains(&top.join(".")), "{all:?}");
    }
}
