//! Programs for git in repositories that a line made, moved or unpacked. There is no copy from before the line to
//! compare with, so such a repository is compared with an inert one: only what git's templates give a new repository
//! may be in it, and only settings that name no program.
//!
//! A repository that was moved is known by its copy: what that has is not new.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use lathe_git::{Setting, parse_settings, read_regular, user_setting};

use crate::TreeChange;
use crate::change::PathState;
use crate::layout::{led_to, modules, read_small};
use crate::linked_parts::{PARTS, PartKind};
use crate::programs::{SetAside, differs, entries, is_changed_hook, is_hook_name, is_inert, set_aside};
use crate::repository::{Repositories, is_same};
use crate::stat::PathKind;

/// The maximum number of bytes read from a configuration file.
const LONGEST: u64 = 1 << 20;

/// The maximum number of repositories that are inspected after one line.
const MOST: usize = 1_000;

/// The folder with git's own templates, if the user names no other.
const TEMPLATES: &str = "/usr/share/git-core/templates";

/// Entries that make a folder a repository.
const MAKING: [&str; 4] = ["HEAD", "objects", "refs", "commondir"];

/// The `.git` paths of a tree before and after a line.
#[derive(Debug, Clone, Copy)]
pub struct GitPaths<'a> {
    pub before: &'a [PathBuf],
    pub after: &'a [PathBuf],
}

impl Repositories {
    /// Sets aside what a line left for git to run in repositories that were not there before it. `changes` are the
    /// changes of the line in the tree, and `content` returns the earlier content of a path: they are needed for
    /// repositories without a `.git`.
    pub fn set_new_programs_aside(
        &self,
        root: &Path,
        paths: GitPaths<'_>,
        changes: &[TreeChange],
        content: impl Fn(&PathState) -> Option<Vec<u8>>,
    ) -> Vec<SetAside> {
        let Ok(real_root) = root.canonicalize() else { return Vec::new() };
        let mut search = Search::new(self, real_root, paths.before);
        let bare = bare_repositories(changes);
        for dot in paths.after {
            search.open.extend(git_folder(dot));
        }
        search.open.extend(self.folders().flat_map(modules));
        search.open.extend(bare.iter().filter(|(_, is_new)| *is_new).map(|(path, _)| path.clone()));
        if search.open.iter().all(|folder| search.is_known(folder)) && bare.is_empty() {
            return Vec::new();
        }
        let Ok(scratch) = tempfile::tempdir() else { return Vec::new() };
        let mut inert =
            Inert { gone: self.gone_copies(), templates: templates(), scratch: scratch.path(), count: 0 };
        let mut aside = Vec::new();
        while let Some(folder) = search.next() {
            inert.look_at(&folder, &mut aside);
            search.open.extend(modules(&folder));
            search.open.extend(common_of(&folder));
        }
        for (folder, _) in bare.iter().filter(|(_, is_new)| !is_new) {
            inert.look_at_changes(folder, changes, &content, &mut aside);
        }
        aside
    }
}

/// The search for repositories that are new.
struct Search {
    root: PathBuf,
    known: BTreeSet<PathBuf>,
    open: Vec<PathBuf>,
    seen: usize,
}

impl Search {
    fn new(repositories: &Repositories, root: PathBuf, before: &[PathBuf]) -> Self {
        // A link or a file in place of a known repository may lead to another one now.
        let known = before.iter().chain(repositories.seen()).filter_map(|path| plain_place(path));
        Self { known: known.collect(), root, open: Vec::new(), seen: 0 }
    }

    fn is_known(&self, folder: &Path) -> bool {
        folder.canonicalize().is_ok_and(|real| self.known.contains(&real))
    }

    /// The next folder that is new, by its real path. Lines cannot write outside of the tree.
    fn next(&mut self) -> Option<PathBuf> {
        while let Some(folder) = self.open.pop() {
            let Ok(real) = folder.canonicalize() else { continue };
            if real.starts_with(&self.root) && real.is_dir() && self.known.insert(real.clone()) {
                self.seen += 1;
                return (self.seen <= MOST).then_some(real);
            }
        }
        None
    }
}

/// Compares new repositories with an inert one.
struct Inert<'a> {
    /// The copies of repositories that are no longer at their paths: a line may have moved them.
    gone: Vec<PathBuf>,
    templates: Vec<PathBuf>,
    /// A folder for content that is to be put in place.
    scratch: &'a Path,
    count: usize,
}

impl Inert<'_> {
    fn look_at(&mut self, folder: &Path, aside: &mut Vec<SetAside>) {
        self.look_below(folder, Path::new(""), aside);
        for tree in entries(&folder.join("worktrees")) {
            self.look_below(
                folder,
                &Path::new("worktrees").join(tree.file_name().unwrap_or_default()),
                aside,
            );
        }
        let hooks = folder.join("hooks");
        match hooks.symlink_metadata() {
            Ok(found) if found.is_dir() => {
                for hook in entries(&hooks).into_iter().filter(|hook| is_hook_name(hook) && !hook.is_dir()) {
                    let rel = Path::new("hooks").join(hook.file_name().unwrap_or_default());
                    if !self.holders(&rel).any(|ours| !is_changed_hook(&ours, &hook)) {
                        aside.push(set_aside(&hook, &self.nothing()));
                    }
                }
            }
            Ok(_) if !self.holders(Path::new("hooks")).any(|ours| is_same(&ours, &hooks)) => {
                aside.push(set_aside(&hooks, &self.nothing()));
            }
            Ok(_) | Err(_) => {}
        }
    }

    fn look_below(&mut self, folder: &Path, base: &Path, aside: &mut Vec<SetAside>) {
        for (name, part) in PARTS {
            let (rel, theirs) = (base.join(name), folder.join(base).join(name));
            let is_there = theirs.symlink_metadata().is_ok();
            if !is_there || self.holders(&rel).any(|ours| is_same(&ours, &theirs)) {
                continue;
            }
            match part {
                PartKind::Config => aside.extend(self.look_at_config(folder, &rel, &theirs)),
                PartKind::Todo | PartKind::Attributes if differs(part, &self.nothing(), &theirs) => {
                    aside.push(set_aside(&theirs, &self.nothing()));
                }
                // The folder that it leads to is inspected too.
                PartKind::Todo | PartKind::Attributes | PartKind::Folder | PartKind::Hook => {}
            }
        }
    }

    /// Replaces a configuration that names a program by its other settings.
    fn look_at_config(&mut self, folder: &Path, rel: &Path, theirs: &Path) -> Option<SetAside> {
        let known: Vec<Setting> =
            self.gone.iter().flat_map(|copy| settings(&copy.join(rel)).unwrap_or_default()).collect();
        let is_fine = |setting: &Setting| {
            is_inert(setting)
                || leads_back(setting, folder)
                || known.iter().any(|one| {
                    (&one.section, &one.about, &one.key, &one.value)
                        == (&setting.section, &setting.about, &setting.key, &setting.value)
                })
        };
        let Some(now) = settings(theirs) else { return Some(set_aside(theirs, &self.nothing())) };
        if now.iter().all(is_fine) {
            return None;
        }
        let kept: String = now.iter().filter(|setting| is_fine(setting)).map(written).collect();
        let ours = self.nothing();
        let kept = fs::write(&ours, kept).map(|()| ours);
        Some(match kept {
            Ok(ours) => set_aside(theirs, &ours),
            Err(error) => SetAside { path: theirs.to_owned(), aside: Err(error.to_string()) },
        })
    }

    /// Compares the changed parts of a repository without a `.git`, which has no copy.
    fn look_at_changes(
        &mut self,
        folder: &Path,
        changes: &[TreeChange],
        content: impl Fn(&PathState) -> Option<Vec<u8>>,
        aside: &mut Vec<SetAside>,
    ) {
        for change in changes.iter().filter(|change| change.after.is_some()) {
            let Ok(rel) = change.path.strip_prefix(folder) else { continue };
            let part = PARTS.iter().find(|(name, _)| Path::new(name) == rel).map(|(_, part)| *part);
            let is_hook = rel.starts_with("hooks") && is_hook_name(&change.path) && !change.path.is_dir();
            let part = part.or(is_hook.then_some(PartKind::Hook));
            let Some(part) = part else { continue };
            let ours = self.nothing();
            if let Some(before) = change.state_before()
                && put(&ours, &before, &content).is_err()
            {
                let why = "its former content is not stored".to_owned();
                aside.push(SetAside { path: change.path.clone(), aside: Err(why) });
                continue;
            }
            let is_changed = match part {
                PartKind::Hook => is_changed_hook(&ours, &change.path),
                part => differs(part, &ours, &change.path),
            };
            if is_changed {
                aside.push(set_aside(&change.path, &ours));
            }
        }
    }

    /// Places in which the same file is not new: git's templates and the copies of repositories that are gone.
    fn holders(&self, rel: &Path) -> impl Iterator<Item = PathBuf> {
        let all = self.templates.iter().chain(&self.gone);
        all.map(|folder| folder.join(rel)).collect::<Vec<_>>().into_iter()
    }

    /// A path at which nothing is.
    fn nothing(&mut self) -> PathBuf {
        self.count += 1;
        self.scratch.join(self.count.to_string())
    }
}

/// Writes an earlier state to a path.
fn put(to: &Path, state: &PathState, content: impl Fn(&PathState) -> Option<Vec<u8>>) -> io::Result<()> {
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::PermissionsExt as _;
    let bytes = || content(state).ok_or(io::ErrorKind::NotFound);
    match PathKind::of(state.mode) {
        PathKind::File => {
            fs::write(to, bytes()?)?;
            fs::set_permissions(to, fs::Permissions::from_mode(state.mode & 0o777))
        }
        PathKind::Link => std::os::unix::fs::symlink(std::ffi::OsString::from_vec(bytes()?), to),
        PathKind::Folder => fs::create_dir(to),
        PathKind::Special => Ok(()),
    }
}

/// Folders with the layout of a repository that a line changed, apart from those named `.git`. True for those that
/// had no such layout before.
fn bare_repositories(changes: &[TreeChange]) -> Vec<(PathBuf, bool)> {
    let mut found: std::collections::BTreeMap<&Path, bool> = std::collections::BTreeMap::new();
    for change in changes.iter().filter(|change| change.after.is_some()) {
        let (Some(name), Some(parent)) = (change.path.file_name(), change.path.parent()) else { continue };
        let is_making = MAKING.iter().any(|making| name == *making);
        if is_making || name == "config" || name == "config.worktree" {
            *found.entry(parent).or_default() |= is_making && change.before.is_none();
        }
        let above = parent.file_name().is_some_and(|name| name == "hooks" || name == "info");
        if let Some(folder) = parent.parent().filter(|_| above) {
            found.entry(folder).or_default();
        }
    }
    let laid_out = found.into_iter().filter(|(folder, _)| is_laid_out(folder));
    laid_out.map(|(folder, is_new)| (folder.to_owned(), is_new)).collect()
}

/// Tells whether git may accept a folder as a repository.
fn is_laid_out(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).symlink_metadata().is_ok();
    has("HEAD") && (has("commondir") || (has("objects") && has("refs")))
}

/// The folders that a `.git` is or leads to.
fn git_folder(dot: &Path) -> Vec<PathBuf> {
    // A link may lead to a file, which git reads as if it were at the link.
    let Ok(real) = dot.canonicalize() else { return Vec::new() };
    if !real.is_file() {
        return vec![real];
    }
    let text = read_small(&real);
    let target = text.as_deref().and_then(|text| text.strip_prefix("gitdir:")).map(str::trim);
    let named = target.and_then(|target| Some(dot.parent()?.join(target)));
    named.into_iter().chain(led_to(dot)).collect()
}

/// The folder with the shared parts of a work tree's repository.
fn common_of(folder: &Path) -> Option<PathBuf> {
    Some(folder.join(read_small(&folder.join("commondir"))?.trim()))
}

/// The path of a known repository, as far as no link at the path itself changes it.
fn plain_place(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// Tells whether a setting names the work tree of a module, whose `.git` leads to the module.
fn leads_back(setting: &Setting, folder: &Path) -> bool {
    let tree =
        setting.value.as_deref().filter(|_| setting.is("core", "worktree")).map(|tree| folder.join(tree));
    tree.is_some_and(|tree| {
        git_folder(&tree.join(".git")).iter().any(|led| led.canonicalize().is_ok_and(|led| led == folder))
    })
}

/// The settings of a file. None for one that may contain anything.
fn settings(file: &Path) -> Option<Vec<Setting>> {
    file.symlink_metadata().ok().filter(fs::Metadata::is_file)?;
    parse_settings(&String::from_utf8_lossy(&read_regular(file, LONGEST).ok()??)).ok()
}

/// A setting as git writes it.
fn written(setting: &Setting) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let about = setting.about.as_deref().map(|about| format!(" \"{}\"", quoted(about))).unwrap_or_default();
    let value = setting
        .value
        .as_deref()
        .map(|value| format!(" = \"{}\"", quoted(value).replace('\n', "\\n").replace('\t', "\\t")));
    format!("[{}{about}]\n\t{}{}\n", setting.section, setting.key, value.unwrap_or_default())
}

/// The folders from which git fills a new repository.
fn templates() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let expand = |path: String| match (path.strip_prefix("~/"), &home) {
        (Some(rest), Some(home)) => home.join(rest),
        (Some(_) | None, _) => PathBuf::from(path),
    };
    let named = user_setting("init", "templatedir").map(expand);
    let given = std::env::var_os("GIT_TEMPLATE_DIR").map(PathBuf::from);
    [named, given, Some(PathBuf::from(TEMPLATES))]
        .into_iter()
        .flatten()
        .filter(|path| path.is_absolute())
        .collect()
}
