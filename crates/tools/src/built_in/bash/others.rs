//! Changes that the line did not make.
//!
//! A person, or another run, may write in the same folder while a line runs, and a scan of the tree cannot tell who
//! made a change. If the text of the line says for certain which files it can write, every other change was made by
//! others: the result reports it, and undo never touches it. A line that starts programs which may write anything
//! (`make`, a script) gives no such certainty, and everything that changed meanwhile counts as its doing.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use lathe_changes::TreeChange;
use lathe_protocol::CommandDecided;

use super::RunLine;
use super::loops::LoopVariables;
use super::written_names::{NameEffect, WrittenName, names_of};
use crate::tool::{RunContext, ShellLine};

/// Names that a line can write, in its own spelling. Any file with such a name at its end, or on its way, may be
/// meant.
pub(crate) struct CertainWrites {
    names: Vec<WrittenName>,
    /// True if the line starts git, which may run hooks, filters and other programs that the repository names.
    git: bool,
}

impl CertainWrites {
    /// Determines the names. None if the line may write something that it does not name. `text` is the line, if it is
    /// known.
    pub(crate) fn of(commands: &[CommandDecided], text: &str) -> Option<Self> {
        let loops = LoopVariables::of(text);
        let (mut names, mut git) = (Vec::new(), false);
        for command in commands {
            names.extend(names_of(command, &loops)?);
            git |= !command.effects.programs.is_empty();
        }
        // A write by the name of a link goes elsewhere.
        let is_through = |link: &WrittenName| {
            let name = Path::new(&link.name).file_name();
            let others = names.iter().filter(|other| *other != link);
            others.flat_map(|other| Path::new(&other.name).iter()).any(|part| Some(part) == name)
        };
        if names.iter().filter(|named| named.may == NameEffect::Link).any(is_through) {
            return None;
        }
        // A list that may have been cut is not certain.
        (!commands.is_empty() && commands.len() < crate::commands::JUDGED).then_some(Self { names, git })
    }

    /// Removes the changes that the line cannot have made, and returns their paths. `own` are the paths that its
    /// commands wrote by themselves. A file that the line removed and others created again counts for both.
    pub(crate) fn take_foreign(&self, changes: &mut Vec<TreeChange>, own: &[PathBuf]) -> Vec<PathBuf> {
        let mut others = Vec::new();
        changes.retain_mut(|change| {
            if self.is_ours(change, own) {
                return true;
            }
            others.push(change.path.clone());
            match change.removal().filter(|_| self.removes(&change.path)) {
                Some(removal) => {
                    *change = removal;
                    true
                }
                None => false,
            }
        });
        others
    }

    /// Tells whether the line can have made all of these changes.
    pub(crate) fn accounts_for(&self, changes: &[TreeChange], own: &[PathBuf]) -> bool {
        changes.iter().all(|change| self.is_ours(change, own))
    }

    fn is_ours(&self, change: &TreeChange, own: &[PathBuf]) -> bool {
        let below = |own: &PathBuf| own.starts_with(&change.path) || change.path.starts_with(own);
        let is_gone = change.after.is_none();
        let named = |named: &WrittenName| match named.may {
            NameEffect::Change | NameEffect::Link => may_be(&change.path, Path::new(&named.name)),
            NameEffect::Remove => is_gone && may_be(&change.path, Path::new(&named.name)),
            NameEffect::RemoveLike => {
                is_gone && change.path.file_name().is_some_and(|name| is_like(&named.name, name))
            }
        };
        own.iter().any(below) || self.names.iter().any(named)
    }

    /// Tells whether the line removes a path, or a folder around it, by its spelling.
    fn removes(&self, path: &Path) -> bool {
        let is_like = |named: &WrittenName| {
            named.may == NameEffect::RemoveLike
                && path.file_name().is_some_and(|name| is_like(&named.name, name))
        };
        if self.names.iter().any(is_like) {
            return true;
        }
        let path: Vec<&OsStr> = path.iter().collect();
        let removed = self.names.iter().filter(|named| named.may == NameEffect::Remove);
        removed.map(|named| normal(Path::new(&named.name))).any(|name| {
            let is_same = |parts: &[&OsStr]| parts.iter().zip(&name).all(|(part, name)| is_part(name, part));
            !name.is_empty() && path.windows(name.len()).any(is_same)
        })
    }

    /// The last parts of the names. If one of them is a link, the line writes somewhere else.
    pub(crate) fn last_names(&self) -> Vec<&OsStr> {
        // The command that creates a link does not write through it.
        let written =
            self.names.iter().filter(|named| !matches!(named.may, NameEffect::RemoveLike | NameEffect::Link));
        written.filter_map(|named| Path::new(&named.name).file_name()).collect()
    }

    /// Tells whether a name is a link outside of the tree, or was one that the line itself removed.
    pub(crate) fn leads_outside(&self, changes: &[TreeChange], cwd: &Path) -> bool {
        let was_link = |change: &TreeChange| {
            let is_link = |mode: u32| mode & TYPE == LINK;
            is_link(change.mode) || change.mode_before.is_some_and(is_link)
        };
        let is_made = |change: &TreeChange| {
            let links = self.names.iter().filter(|named| named.may == NameEffect::Link);
            let mut names = links.filter_map(|named| Path::new(&named.name).file_name());
            change.before.is_none() && names.any(|name| change.path.file_name() == Some(name))
        };
        let names: Vec<&OsStr> =
            self.names.iter().filter_map(|named| Path::new(&named.name).file_name()).collect();
        let removed = |change: &TreeChange| {
            let is_named = change.path.file_name().is_some_and(|name| names.contains(&name));
            was_link(change) && !is_made(change) && is_named
        };
        let made: Vec<&TreeChange> = changes.iter().filter(|change| is_made(change)).collect();
        let is_new =
            |name: &str| made.iter().any(|change| change.path.file_name() == Path::new(name).file_name());
        let leads = |named: &WrittenName| {
            let is_taken_away = matches!(named.may, NameEffect::Remove | NameEffect::RemoveLike);
            let is_made = named.may == NameEffect::Link && is_new(&named.name);
            !is_taken_away && !is_made && cwd.join(&named.name).is_symlink()
        };
        changes.iter().any(removed) || self.names.iter().any(leads)
    }

    /// Tells whether the line starts git in a repository that may start something else with it.
    pub(crate) fn starts_more(&self, cwd: &Path) -> bool {
        let Some(folder) = cwd.ancestors().map(|folder| folder.join(".git")).find(|git| git.exists()) else {
            return self.git;
        };
        self.git && !is_bare_of_hooks(&folder)
    }
}

/// Tells whether git starts no program in a repository. A linked work tree is not inspected, and counts as no.
fn is_bare_of_hooks(git: &Path) -> bool {
    let Ok(config) = std::fs::read_to_string(git.join("config")) else { return false };
    let config = config.to_ascii_lowercase();
    let is_plain =
        ["filter", "hookspath", "fsmonitor", "include", "gpg"].iter().all(|word| !config.contains(word));
    let hooks = std::fs::read_dir(git.join("hooks")).into_iter().flatten().flatten();
    is_plain && hooks.map(|hook| hook.file_name()).all(|name| name.as_encoded_bytes().ends_with(b".sample"))
}

/// Tells whether the commands of a line write only what its text names.
pub fn writes_only_what_it_names(commands: &[CommandDecided]) -> bool {
    CertainWrites::of(commands, "").is_some()
}

// Parts of a mode.
const TYPE: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// Tells whether a name of a line, in any folder, may mean this path or something above or below it.
fn may_be(path: &Path, name: &Path) -> bool {
    let parts = normal(name);
    let Some(last) = parts.last() else { return true };
    // Folders on the way to a file that the line created are its doing too.
    let is_on_the_way = |name: &OsStr| parts.iter().any(|part| is_part(part, name));
    path.iter().any(|part| is_part(last, part)) || path.file_name().is_some_and(is_on_the_way)
}

/// The normal parts of a name, without `..`, `.` and the root.
fn normal(name: &Path) -> Vec<&OsStr> {
    let part = |part| match part {
        Component::Normal(part) => Some(part),
        Component::RootDir | Component::CurDir | Component::Prefix(_) | Component::ParentDir => None,
    };
    name.components().filter_map(part).collect()
}

fn is_part(name: &OsStr, part: &OsStr) -> bool {
    name == part || name.to_str().is_some_and(|name| is_like(name, part))
}

/// Tells whether a name matches a pattern of stars and question marks.
fn is_like(pattern: &str, name: &OsStr) -> bool {
    fn fits(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern.split_first(), name.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) if fits(rest, name) => true,
            (Some((b'*', _)), Some((_, name))) => fits(pattern, name),
            // A character may be several bytes.
            (Some((b'?', rest)), Some((_, name))) => fits(rest, name) || fits(pattern, name),
            (Some((a, pattern)), Some((b, name))) => a == b && fits(pattern, name),
            (Some(_), None) | (None, Some(_)) => false,
        }
    }
    let stars = pattern.bytes().filter(|byte| matches!(byte, b'*' | b'?')).count();
    // With more wildcards the match may take too long, so it counts as possible.
    stars > 4 || fits(pattern.as_bytes(), name.as_encoded_bytes())
}

impl RunLine {
    /// Removes from `changes` what others changed while the line ran, as far as the text of the line is certain about
    /// its own writes.
    pub(super) async fn take_foreign_changes(
        &self,
        context: &RunContext,
        cwd: &Path,
        changes: &mut Vec<TreeChange>,
        own: &[PathBuf],
        had_jobs: bool,
    ) -> Vec<String> {
        // Processes that an earlier line left belong to the session too.
        if changes.is_empty() || had_jobs {
            return Vec::new();
        }
        let line = ShellLine { text: self.command.clone(), folder: self.folder.clone() };
        let Some(certain) = CertainWrites::of(&context.call_gate.decide_line(&line).each, &self.command)
        else {
            return Vec::new();
        };
        let is_all_ours = certain.accounts_for(changes, own);
        if is_all_ours || certain.leads_outside(changes, cwd) || certain.starts_more(cwd) {
            return Vec::new();
        }
        // Through another name of a file, a line writes a file that it does not name.
        if context.services.tracking.is_alias(&certain.last_names()).await {
            return Vec::new();
        }
        let others = certain.take_foreign(changes, own);
        others.iter().map(|path| path.display().to_string()).collect()
    }
}

#[cfg(test)]
mod tests {
    use lathe_protocol::Digest;

    use super::*;

    fn change(path: &str) -> TreeChange {
        TreeChange { path: path.into(), ..TreeChange::default() }
    }

    #[test]
    fn a_name_may_mean_what_ends_with_it_and_what_lies_below() {
        for (path, name, expected) in [
            ("/w/a.txt", "a.txt", true),
            ("/w/sub/a.txt", "a.txt", true),
            ("/w/sub/a.txt", "../sub/a.txt", true),
            ("/w/d/e/f", "d", true),
            ("/w/x", "x/y/z", true),
            ("/w/x/y", "x/y/z", true),
            ("/w/b.txt", "a.txt", false),
            ("/w/b.txt", "/w/a.txt", false),
            ("/w/anything", ".", true),
        ] {
            assert_eq!(may_be(Path::new(path), Path::new(name)), expected, "{path} {name}");
        }
    }

    #[test]
    fn what_no_name_and_no_command_accounts_for_is_somebody_elses() {
        let mut changes = vec![change("/w/a.txt"), change("/w/theirs"), change("/w/own.txt")];
        let certain = CertainWrites {
            names: vec![WrittenName { name: "a.txt".to_owned(), may: NameEffect::Change }],
            git: false,
        };
        let others = certain.take_foreign(&mut changes, &["/w/own.txt".into()]);
        assert_eq!(others, [PathBuf::from("/w/theirs")]);
        assert_eq!(changes, [change("/w/a.txt"), change("/w/own.txt")]);
    }

    #[test]
    fn what_takes_away_makes_nothing() {
        let (old, new) = (Some(Digest::of(b"old")), Some(Digest::of(b"new")));
        let change = |path: &str, before: &Option<Digest>, after: &Option<Digest>| TreeChange {
            path: path.into(),
            before: before.clone(),
            after: after.clone(),
            mode: 0o100_644,
            ..TreeChange::default()
        };
        let names = ["d", "p.txt"].map(|name| WrittenName { name: name.to_owned(), may: NameEffect::Remove });
        let certain = CertainWrites { names: names.to_vec(), git: false };
        let mut changes = vec![
            change("/w/d/gone", &old, &None),
            change("/w/d/new", &None, &new),
            change("/w/p.txt", &old, &new),
            change("/w/q.txt", &old, &None),
        ];
        let others = certain.take_foreign(&mut changes, &[]);
        assert_eq!(others, ["/w/d/new", "/w/p.txt", "/w/q.txt"].map(PathBuf::from));
        assert_eq!(changes, [change("/w/d/gone", &old, &None), change("/w/p.txt", &old, &None)]);
    }

    #[test]
    fn stars_stand_for_what_they_do_in_bash() {
        for (pattern, name, expected) in [
            ("*.o", "a.o", true),
            ("*.o", "a.oo", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("n*", "n1", true),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(is_like(pattern, OsStr::new(name)), expected, "{pattern} {name}");
        }
    }
}
