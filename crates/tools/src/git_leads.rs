//! Repositories elsewhere that a `.git` of the workspace leads to.
//!
//! A `.git` may be a file or a link that names any repository of the user's, and a folder of objects may borrow from any other.
//! Git prints what is there as if it were of the workspace. A linked work tree and a submodule are ordinary: their repository
//! names them back, which nobody can make it do without having written into it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use lathe_git::{Found, Reached, parse_settings};
use lathe_workspace::read_regular;

/// Parts of a repository that git shows something of.
const PARTS: [&str; 8] =
    ["HEAD", "refs", "packed-refs", "logs", "index", "shallow", "objects", "objects/info"];

/// Folders of objects that borrow from each other, as git has it.
const DEEPEST: usize = 5;

/// Entries of a folder of objects that are looked at. Git packs loose objects long before there are so many.
const MOST: usize = 100_000;

/// Bytes of a file that is read.
const LONGEST: u64 = 1 << 20;

/// The place outside of the workspace that git would read from where it reaches these repositories, for people. None where
/// there is none.
pub(crate) fn git_leads(reached: &Reached, workspace: &Path) -> Option<String> {
    let workspace = workspace.canonicalize().ok()?;
    let is_ours = |found: &&Found| found.top.starts_with(&workspace) || workspace.starts_with(&found.top);
    let mut ours = reached.repositories.iter().filter(is_ours);
    ours.find_map(|found| Tree { top: &found.top, workspace: &workspace }.leads(found))
}

/// A work tree, and the workspace that it lies in or that lies in it.
#[derive(Clone, Copy)]
struct Tree<'a> {
    top: &'a Path,
    workspace: &'a Path,
}

impl Tree<'_> {
    fn leads(self, found: &Found) -> Option<String> {
        if !self.holds(&found.git_dir) || !self.holds(&found.common) {
            return (!self.is_named_back(found)).then(|| {
                let at = if self.holds(&found.git_dir) { &found.common } else { &found.git_dir };
                format!("`.git` leads to {}", at.display())
            });
        }
        let mut parts = [&found.git_dir, &found.common]
            .into_iter()
            .flat_map(|folder| PARTS.map(|part| folder.join(part)));
        let away = parts.find(|path| path.is_symlink() && !self.holds_real(path));
        away.map(|path| a_link(&path)).or_else(|| self.objects_lead(&found.common.join("objects"), DEEPEST))
    }

    /// The place elsewhere that a folder of objects has any of them from: by links in it, or because it borrows.
    fn objects_lead(self, objects: &Path, deeper: usize) -> Option<String> {
        let mut left = MOST;
        let mut folders = vec![objects.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                let Some(less) = left.checked_sub(1) else {
                    return Some(format!("{} holds more than is looked at", objects.display()));
                };
                left = less;
                match entry.file_type() {
                    Ok(kind) if kind.is_symlink() && !self.holds_real(&path) => return Some(a_link(&path)),
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    Ok(_) | Err(_) => {}
                }
            }
        }
        self.borrowed(objects, deeper)
    }

    fn holds(self, real: &Path) -> bool {
        real.starts_with(self.top) || real.starts_with(self.workspace)
    }

    /// A link that leads nowhere gives git nothing.
    fn holds_real(self, path: &Path) -> bool {
        path.canonicalize().is_ok_and(|real| self.holds(&real)) || path.metadata().is_err()
    }

    /// Tells whether a repository elsewhere knows this work tree as one of its own.
    fn is_named_back(self, found: &Found) -> bool {
        let is_top = |path: PathBuf| path.canonicalize().is_ok_and(|path| path == self.top);
        let Found { git_dir, common, .. } = found;
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

    /// The folder elsewhere that a folder of objects borrows from.
    fn borrowed(self, objects: &Path, deeper: usize) -> Option<String> {
        let list = objects.join("info/alternates");
        let away = || Some(format!("{} names a folder elsewhere", list.display()));
        let Ok(content) = read_regular(&list, LONGEST) else { return away() };
        for line in content.iter().flat_map(|content| content.split(|byte| *byte == b'\n')) {
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            // A path in quotes is not read here.
            if line.starts_with(b"\"") || deeper == 0 {
                return away();
            }
            // Git does without a folder that does not exist.
            let Ok(real) = objects.join(OsStr::from_bytes(line)).canonicalize() else { continue };
            if !self.holds(&real) {
                return away();
            }
            if let Some(further) = self.objects_lead(&real, deeper - 1) {
                return Some(further);
            }
        }
        None
    }
}

fn a_link(path: &Path) -> String {
    format!("{} is a link that leads elsewhere", path.display())
}

/// The path that a file of one line names.
fn one_path(file: &Path) -> Option<PathBuf> {
    let text = read_regular(file, LONGEST).ok()??;
    let path = text.trim_ascii_end();
    (!path.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(path)))
}
