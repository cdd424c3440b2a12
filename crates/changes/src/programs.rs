//! Detection of programs that git would run later: hooks, and settings that name a program or another file to read.
//!
//! The gate denies lines that write them, as far as a line can be analysed. A target that is known only while a line
//! runs cannot be denied. So after each line the repositories are compared with their copies: a hook that is new or
//! changed, and a configuration with a new setting that is not known to be inert, are set aside, and the earlier
//! content is restored. Nothing is deleted: the changed file lies next to the restored one, under a name that git
//! does not read.
//!
//! A part that is a link, or is reached through one, may have another target in the copy than in the repository. As
//! long as the link is the same, it is not compared here: `linked_parts` keeps its target.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use lathe_git::{Setting, parse_settings, read_regular};

use crate::layout::led_to;
use crate::linked_parts::{self, PARTS, PartKind, link_on_way};
use crate::outside_parts;
use crate::repository::{Repositories, is_same};

/// The suffix of files that were set aside. No hook has such a name.
const ASIDE: &str = "set-aside-by-lathe";

/// The maximum number of bytes read from a configuration file.
const LONGEST: u64 = 1 << 20;

/// The maximum number of entries examined in a folder.
const MOST: usize = 1_000;

/// Sections of git's configuration in which only the keys of [`PROGRAMS`] name a program.
const INERT: [&str; 46] = [
    "add",
    "advice",
    "am",
    "apply",
    "author",
    "blame",
    "branch",
    "checkout",
    "clean",
    "color",
    "column",
    "commit",
    "committer",
    "core",
    "diff",
    "extensions",
    "feature",
    "fetch",
    "format",
    "gc",
    "grep",
    "gui",
    "i18n",
    "index",
    "init",
    "log",
    "maintenance",
    "merge",
    "notes",
    "pack",
    "pull",
    "push",
    "rebase",
    "receive",
    "remote",
    "rerere",
    "stash",
    "status",
    "submodule",
    "svn",
    "svn-remote",
    "tag",
    "transfer",
    "user",
    "versionsort",
    "worktree",
];

/// Keys of these sections that name a program, or a file or an address to read from.
const PROGRAMS: [(&str, &str); 25] = [
    ("branch", "mergeoptions"),
    ("core", "alternaterefscommand"),
    ("core", "askpass"),
    ("core", "attributesfile"),
    ("core", "editor"),
    ("core", "fsmonitor"),
    ("core", "gitproxy"),
    ("core", "hookspath"),
    ("core", "pager"),
    ("core", "sshcommand"),
    ("core", "worktree"),
    ("diff", "command"),
    ("diff", "external"),
    ("diff", "orderfile"),
    ("diff", "textconv"),
    ("gc", "recentobjectshook"),
    ("gui", "editor"),
    ("init", "templatedir"),
    ("merge", "driver"),
    ("remote", "proxy"),
    ("remote", "receivepack"),
    ("remote", "uploadpack"),
    ("remote", "vcs"),
    ("submodule", "update"),
    ("svn", "authorsprog"),
];

/// Something in a repository that git would have run later, as a line left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    pub path: PathBuf,
    /// Its new path, or the reason why it is still at the old one.
    pub aside: Result<PathBuf, String>,
}

impl Repositories {
    /// Sets aside what a line left for git to run later, and restores what was there before. To be called after each
    /// line.
    pub fn set_programs_aside(&self) -> Vec<SetAside> {
        let mut aside = Vec::new();
        for (path, copy) in self.copies() {
            let is_folder = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_dir());
            // A `.git` folder that was moved within its tree, with a file or a link in its place, is still that
            // repository. The repository that a file led to before is another entry of the list, and any other folder
            // is another repository.
            let moved = (is_folder(copy) && !is_folder(path)).then(|| led_to(path)).flatten();
            let moved = moved.filter(|folder| is_within(folder, path.parent()));
            let path = moved.as_deref().unwrap_or(path);
            match (is_folder(path), is_folder(copy)) {
                (true, true) => set_aside_in(path, copy, Path::new(""), &mut aside),
                // A file or a link that now leads to another repository.
                (_, false) if path.symlink_metadata().is_ok() && !is_same(copy, path) && is_there(copy) => {
                    aside.push(set_aside(path, copy));
                }
                (true | false, false) | (false, true) => {}
            }
            if let Some(folder) = copy.parent() {
                outside_parts::set_aside_changes(folder, &mut aside);
                linked_parts::set_aside_changes(folder, &mut aside);
            }
            if !is_folder(copy) {
                continue;
            }
            for tree in entries(&path.join("worktrees")) {
                set_aside_in(
                    path,
                    copy,
                    &Path::new("worktrees").join(tree.file_name().unwrap_or_default()),
                    &mut aside,
                );
            }
        }
        aside
    }
}

/// Compares one folder of a repository with its copy: the repository's own folder, or that of a work tree.
fn set_aside_in(path: &Path, copy: &Path, base: &Path, aside: &mut Vec<SetAside>) {
    let is_held_elsewhere =
        |rel: &Path| link_on_way(copy, rel).is_some_and(|link| is_same(&copy.join(&link), &path.join(&link)));
    for (name, part) in PARTS {
        let rel = base.join(name);
        let (theirs, ours) = (path.join(&rel), copy.join(&rel));
        // A folder that was not there is a new work tree, which leads to the repository as it must.
        let is_new = part == PartKind::Folder && !is_there(&copy.join(base));
        if is_there(&theirs) && !is_held_elsewhere(&rel) && !is_new && differs(part, &ours, &theirs) {
            aside.push(set_aside(&theirs, &ours));
        }
    }
    let rel = base.join("hooks");
    let (theirs, ours) = (path.join(&rel), copy.join(&rel));
    match theirs.symlink_metadata() {
        Ok(found) if found.is_dir() && !is_held_elsewhere(&rel) => {
            look_at_hooks(&theirs, &ours, |_| true, aside);
        }
        Ok(found) if !found.is_dir() && !is_same(&ours, &theirs) => aside.push(set_aside(&theirs, &ours)),
        Ok(_) | Err(_) => {}
    }
}

/// Tells whether a part was changed so that git may run something that it did not run before.
pub(crate) fn differs(part: PartKind, ours: &Path, theirs: &Path) -> bool {
    !is_same(ours, theirs)
        && match part {
            PartKind::Config => names_more(ours, theirs),
            PartKind::Todo => runs_more(ours, theirs),
            PartKind::Folder | PartKind::Hook | PartKind::Attributes => true,
        }
}

/// Compares a configuration file with its copy.
pub(crate) fn look_at_config(theirs: &Path, ours: &Path, aside: &mut Vec<SetAside>) {
    if is_there(theirs) && differs(PartKind::Config, ours, theirs) {
        aside.push(set_aside(theirs, ours));
    }
}

/// Compares the relevant hooks of a folder with their copies.
pub(crate) fn look_at_hooks(
    theirs: &Path,
    ours: &Path,
    counts: impl Fn(&Path) -> bool,
    aside: &mut Vec<SetAside>,
) {
    for hook in entries(theirs).into_iter().filter(|hook| counts(hook) && is_hook_name(hook)) {
        let before = ours.join(hook.file_name().unwrap_or_default());
        if is_changed_hook(&before, &hook) {
            aside.push(set_aside(&hook, &before));
        }
    }
}

/// Tells whether a file in a folder of hooks is relevant: neither an example nor set aside.
pub(crate) fn is_hook_name(hook: &Path) -> bool {
    let name = hook.file_name().unwrap_or_default().to_string_lossy();
    !name.contains(".sample") && !name.contains(ASIDE)
}

/// Tells whether a hook was changed, or has become executable. A link is compared as such: it has no mode of its own.
pub(crate) fn is_changed_hook(ours: &Path, theirs: &Path) -> bool {
    !is_same(ours, theirs) || (is_executable(theirs) && !is_executable(ours))
}

/// Tells whether the command list of a rebase runs a command that the earlier list did not have.
fn runs_more(ours: &Path, theirs: &Path) -> bool {
    let commands = |path: &Path| -> Option<Vec<Vec<u8>>> {
        let content = read_regular(path, LONGEST).ok()?.unwrap_or_default();
        let lines = content.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
        let runs = |line: &&[u8]| {
            let word = line.split(u8::is_ascii_whitespace).next().unwrap_or_default();
            matches!(word, b"exec" | b"x")
        };
        Some(lines.filter(runs).map(<[u8]>::to_owned).collect())
    };
    let before = commands(ours).unwrap_or_default();
    // An unreadable list may contain anything.
    commands(theirs).is_none_or(|now| now.iter().any(|line| !before.contains(line)))
}

/// Tells whether a configuration has a new setting that may name a program.
fn names_more(ours: &Path, theirs: &Path) -> bool {
    let settings = |path: &Path| -> Option<Vec<Setting>> {
        let text = match read_regular(path, LONGEST) {
            Ok(Some(content)) => String::from_utf8_lossy(&content).into_owned(),
            Ok(None) => return Some(Vec::new()),
            Err(_) => return None,
        };
        parse_settings(&text).ok()
    };
    // An unreadable or irregular file may contain anything.
    let is_file = theirs.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(now) = settings(theirs).filter(|_| is_file) else { return true };
    let before = settings(ours).unwrap_or_default();
    let is_known = |setting: &Setting| {
        before.iter().any(|known| {
            (&known.section, &known.about, &known.key, &known.value)
                == (&setting.section, &setting.about, &setting.key, &setting.value)
        })
    };
    now.iter().any(|setting| !is_known(setting) && !is_inert(setting))
}

pub(crate) fn is_inert(setting: &Setting) -> bool {
    let names = PROGRAMS.contains(&(setting.section.as_str(), setting.key.as_str()));
    // `submodule.x.update = checkout`: only a value that begins with `!` is a program.
    let is_word =
        || setting.value.as_deref().is_some_and(|value| value.bytes().all(|c| c.is_ascii_lowercase()));
    let is_update = (setting.section.as_str(), setting.key.as_str()) == ("submodule", "update");
    INERT.contains(&setting.section.as_str()) && (!names || (is_update && is_word()))
}

/// Tells whether a folder, given by its real path, lies in another one.
fn is_within(folder: &Path, top: Option<&Path>) -> bool {
    top.and_then(|top| top.canonicalize().ok()).is_some_and(|top| folder.starts_with(top))
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

fn is_executable(path: &Path) -> bool {
    let runs = |found: fs::Metadata| found.is_file() && found.permissions().mode() & 0o111 != 0;
    path.symlink_metadata().is_ok_and(runs)
}

pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MOST);
    entries.map(|entry| entry.path()).collect()
}

/// Renames what a line left, and restores the earlier content at its path.
pub(crate) fn set_aside(theirs: &Path, ours: &Path) -> SetAside {
    let moved = free_name(theirs).and_then(|aside| {
        fs::rename(theirs, &aside)?;
        match ours.symlink_metadata() {
            Ok(kept) => copy_back(ours, theirs, &kept)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        Ok(aside)
    });
    SetAside { path: theirs.to_owned(), aside: moved.map_err(|error| error.to_string()) }
}

/// Copies the earlier content to its path. The copy itself stays for the next line.
fn copy_back(ours: &Path, theirs: &Path, kept: &fs::Metadata) -> io::Result<()> {
    if kept.is_dir() {
        fs::create_dir(theirs)?;
        for entry in entries(ours) {
            let to = theirs.join(entry.file_name().unwrap_or_default());
            copy_back(&entry, &to, &entry.symlink_metadata()?)?;
        }
        return Ok(());
    }
    if kept.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(ours)?, theirs);
    }
    fs::copy(ours, theirs).map(|_| ())
}

fn free_name(theirs: &Path) -> io::Result<PathBuf> {
    let name = theirs.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let names = (1..1_000).map(|count| match count {
        1 => format!("{name}.{ASIDE}"),
        count => format!("{name}.{ASIDE}-{count}"),
    });
    let free = names.map(|name| theirs.with_file_name(name)).find(|path| path.symlink_metadata().is_err());
    free.ok_or_else(|| io::Error::other("too many of its name were set aside already"))
}
