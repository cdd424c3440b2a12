//! Places elsewhere that git reads from because of what is in a repository of the workspace.
//!
//! A `.git` may be a file or a link that names any repository of the user's, a folder of objects may borrow from any
//! other, a file of settings may include any file, and every file that git reads in a repository may be a link: a
//! broken list of alternates, the reason why a work tree is locked or the plan of a rebase is printed line by line.
//! Git prints the content as if it belonged to the workspace. A linked work tree and a submodule are ordinary: their
//! repository names them back, which cannot be achieved without having written into it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_git::{FoundRepository, ReachableRepositories, Setting, parse_settings};
use lathe_policy::Lead;
use lathe_workspace::read_regular;

/// Folders of a repository whose content git does not print.
const NOT_SHOWN: [&str; 3] = ["hooks", "lfs", "annex"];

/// Levels of object folders that borrow from each other, as in git.
const DEEPEST: usize = 5;

/// Entries of a repository's folder that are inspected. Git packs loose objects long before there are so many.
const MOST: usize = 100_000;

/// Files of settings that are inspected.
const MOST_SETTINGS: usize = 1024;

/// Bytes of a file that are read.
const LONGEST: u64 = 1 << 20;

/// The places outside of the workspace that git would read from if it reaches these repositories.
pub(crate) fn git_leads(reached: &ReachableRepositories, workspace: &Path) -> Vec<Lead> {
    let Ok(workspace) = workspace.canonicalize() else { return Vec::new() };
    let is_ours =
        |found: &&FoundRepository| found.top.starts_with(&workspace) || workspace.starts_with(&found.top);
    let ours: Vec<&FoundRepository> = reached.repositories.iter().filter(is_ours).collect();
    let mut leads = Vec::new();
    for found in &ours {
        Tree { top: &found.top, workspace: &workspace }.add_leads(found, &mut leads);
    }
    if let Some(found) = ours.first() {
        Tree { top: &found.top, workspace: &workspace }.add_included(&reached.settings, &mut leads);
    }
    leads
}

/// A work tree, and the workspace that it lies in or that lies in it.
#[derive(Clone, Copy)]
struct Tree<'a> {
    top: &'a Path,
    workspace: &'a Path,
}

impl Tree<'_> {
    fn add_leads(self, found: &FoundRepository, leads: &mut Vec<Lead>) {
        let away = [&found.git_dir, &found.common].into_iter().find(|folder| !self.holds(folder));
        if let Some(away) = away {
            if !self.is_named_back(found) {
                let shown = format!("`.git` leads to {}", away.display());
                leads.push(Lead { shown, place: Some(away.clone()) });
            }
            return;
        }
        self.add_links(&found.git_dir, leads);
        if found.common != found.git_dir {
            self.add_links(&found.common, leads);
        }
        self.add_borrowed(&found.common.join("objects"), DEEPEST, leads);
    }

    fn holds(self, real: &Path) -> bool {
        real.starts_with(self.top) || real.starts_with(self.workspace)
    }

    /// Adds the targets of links anywhere in a folder of a repository. A link that leads nowhere gives git nothing.
    fn add_links(self, folder: &Path, leads: &mut Vec<Lead>) {
        let (mut open, mut left) = (vec![folder.to_owned()], MOST);
        while let Some(inner) = open.pop() {
            for entry in std::fs::read_dir(&inner).into_iter().flatten().flatten() {
                let path = entry.path();
                let Some(less) = left.checked_sub(1) else {
                    leads.push(unclear(format!("{} holds more than is looked at", folder.display())));
                    return;
                };
                left = less;
                let not_shown = || inner == folder && NOT_SHOWN.iter().any(|name| entry.file_name() == *name);
                match entry.file_type() {
                    Ok(_) if not_shown() => {}
                    Ok(kind) if kind.is_symlink() => match path.canonicalize() {
                        Ok(real) if !self.holds(&real) => {
                            let shown = format!("{} is a link that leads elsewhere", path.display());
                            leads.push(Lead { shown, place: Some(real) });
                        }
                        Ok(_) | Err(_) => {}
                    },
                    Ok(kind) if kind.is_dir() => open.push(path),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }

    /// Tells whether a repository elsewhere knows this work tree as one of its own.
    fn is_named_back(self, found: &FoundRepository) -> bool {
        let is_top = |path: PathBuf| path.canonicalize().is_ok_and(|path| path == self.top);
        let FoundRepository { git_dir, common, .. } = found;
        if git_dir != common {
            let dot = one_path(&git_dir.join("gitdir")).map(|path| git_dir.join(path));
            let named = dot.and_then(|dot| Some(dot.parent()?.to_owned()));
            return git_dir.parent() == Some(&common.join("worktrees")) && named.is_some_and(is_top);
        }
        let is_module = git_dir.ancestors().skip(1).any(|above| {
            above.file_name().is_some_and(|name| name == "modules") && above.with_file_name("HEAD").is_file()
        });
        let text = read_regular(&git_dir.join("config"), LONGEST).ok().flatten().unwrap_or_default();
        let settings = parse_settings(&String::from_utf8_lossy(&text)).unwrap_or_default();
        let tree = settings.into_iter().rfind(|one| one.is("core", "worktree")).and_then(|one| one.value);
        is_module && tree.is_some_and(|tree| is_top(git_dir.join(tree)))
    }

    /// Adds the folders elsewhere that a folder of objects borrows from.
    fn add_borrowed(self, objects: &Path, deeper: usize, leads: &mut Vec<Lead>) {
        let list = objects.join("info/alternates");
        let shown = || format!("{} names a folder elsewhere", list.display());
        let Ok(content) = read_regular(&list, LONGEST) else { return leads.push(unclear(shown())) };
        for line in content.iter().flat_map(|content| content.split(|byte| *byte == b'\n')) {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            // A path in quotes is not parsed here.
            if line.starts_with(b"\"") || deeper == 0 {
                return leads.push(unclear(shown()));
            }
            // Git ignores a folder that does not exist.
            let Ok(real) = objects.join(OsStr::from_bytes(line)).canonicalize() else { continue };
            if !self.holds(&real) {
                leads.push(Lead { shown: shown(), place: Some(real) });
                continue;
            }
            self.add_links(&real, leads);
            self.add_borrowed(&real, deeper - 1, leads);
        }
    }

    /// Adds the files elsewhere that settings include, directly or through each other: `git config --list` prints
    /// their content.
    fn add_included(self, settings: &[PathBuf], leads: &mut Vec<Lead>) {
        let (mut open, mut looked) = (settings.to_vec(), 0);
        while let Some(file) = open.pop() {
            looked += 1;
            if looked > MOST_SETTINGS {
                return leads.push(unclear("more files of settings than are looked at".to_owned()));
            }
            let Ok(Some(text)) = read_regular(&file, LONGEST) else { continue };
            let Ok(all) = parse_settings(&String::from_utf8_lossy(&text)) else { continue };
            let includes = |setting: &&Setting| {
                matches!(setting.section.as_str(), "include" | "includeif") && setting.key == "path"
            };
            for setting in all.iter().filter(includes) {
                let named = setting.value.as_deref().unwrap_or_default();
                let shown = format!("{} includes {named}", file.display());
                if named.starts_with(['~', '%', ':']) {
                    leads.push(unclear(shown));
                    continue;
                }
                let Ok(real) = file.with_file_name(named).canonicalize() else { continue };
                match self.holds(&real) {
                    true => open.push(real),
                    false => leads.push(Lead { shown, place: Some(real) }),
                }
            }
        }
    }
}

fn unclear(shown: String) -> Lead {
    Lead { shown, place: None }
}

/// The path that a file of one line names.
fn one_path(file: &Path) -> Option<PathBuf> {
    let text = read_regular(file, LONGEST).ok()??;
    let path = text.trim_ascii_end();
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}
