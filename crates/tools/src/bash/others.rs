//! Changes that were not the line's doing.
//!
//! A person, or another run, may write in the same folder while a line runs, and a look at the tree cannot tell whose doing a
//! change was. Where the text of the line says for certain which files it can write, whatever else is another then was
//! written by somebody else: it is told, and no way back of ours touches it. A line that starts programs which may write
//! anything (`make`, a script) says no such thing, and all that changed meanwhile counts as its doing.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use lathe_changes::TreeChange;
use lathe_protocol::CommandDecided;

/// Programs that write only what their operands, or redirections, name.
const BY_NAME: [&str; 9] = ["rm", "rmdir", "mv", "cp", "mkdir", "touch", "chmod", "tee", "truncate"];

/// Programs, words of bash and commands of the agent that write nothing, but by redirections or by their own account.
const READERS: &str = " : [ [[ apply_patch ask awk basename break case cat cd cmp code commands comm continue cut date declare df diff \
    dirname du echo edit egrep exit export false fgrep file find for git glob grep head hexdump hostname id if join jobs \
    json_edit let list local ls memory nl od paste popd printf ps pushd pwd read readlink realpath return rg search sed seq set \
    shift sleep sort stat tail test think time todo tr true type uname unset until view wait wc which while whoami write ";

/// Programs that write nothing whatever their words are.
const NEVER: &str = " : [ [[ basename cat comm cut dirname echo egrep fgrep grep head ls nl printf pwd rg seq tail test true wc ";

/// Names that a line can write, in its own spelling: any file with such a name at its end, or in its way, may be meant.
pub(crate) struct Certain(Vec<String>);

impl Certain {
    /// None where the line may write something that it does not name.
    pub(crate) fn of(commands: &[CommandDecided]) -> Option<Self> {
        let mut names = Vec::new();
        for command in commands {
            let effects = &command.effects;
            let program = command.words.first().map_or("", String::as_str);
            if effects.opaque || !effects.programs.is_empty() || !effects.hosts.is_empty() {
                return None;
            }
            let named = BY_NAME.contains(&program);
            if !named && !program.contains('=') && !READERS.contains(&format!(" {program} ")) {
                return None;
            }
            // What a word comes to may be an option, or several words.
            let is_open = |word: &String| word.contains(['$', '`', '…']);
            if command.words.iter().skip(1).any(is_open) && !NEVER.contains(&format!(" {program} ")) {
                return None;
            }
            // A backup has a name that the line does not say.
            let is_backup = |word: &String| {
                let short = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
                short.is_some_and(|letters| letters.contains(['b', 'S']))
                    || word.starts_with("--b")
                    || word.starts_with("--s")
            };
            if named && command.words.iter().any(is_backup) {
                return None;
            }
            let written = effects.writes.iter().filter(|name| !(named && name.starts_with('-')));
            for name in written {
                if !is_plain(name) || !(named || is_redirection(command, name)) {
                    return None;
                }
                names.push(name.clone());
            }
        }
        // A list that may have been cut says nothing for certain.
        (!commands.is_empty() && commands.len() < crate::commands::JUDGED).then_some(Self(names))
    }

    /// Takes those changes out that the line cannot have made. `own` are paths that its commands wrote by themselves.
    pub(crate) fn others(&self, changes: &mut Vec<TreeChange>, own: &[PathBuf]) -> Vec<TreeChange> {
        changes.extract_if(.., |change| !self.is_ours(change, own)).collect()
    }

    /// Tells whether the line can have made all of these changes.
    pub(crate) fn accounts_for(&self, changes: &[TreeChange], own: &[PathBuf]) -> bool {
        changes.iter().all(|change| self.is_ours(change, own))
    }

    fn is_ours(&self, change: &TreeChange, own: &[PathBuf]) -> bool {
        let below = |own: &PathBuf| own.starts_with(&change.path) || change.path.starts_with(own);
        own.iter().any(below) || self.0.iter().any(|name| may_be(&change.path, Path::new(name)))
    }

    /// The last parts of the names: where these are links, the line writes somewhere else.
    pub(crate) fn last_names(&self) -> Vec<&OsStr> {
        self.0.iter().filter_map(|name| Path::new(name).file_name()).collect()
    }

    /// Tells whether a name is a link outside of the tree, or was one that the line itself took away.
    pub(crate) fn leads_on(&self, changes: &[TreeChange], cwd: &Path) -> bool {
        let was_link = |change: &TreeChange| {
            let is_link = |mode: u32| mode & TYPE == LINK;
            is_link(change.mode) || change.mode_before.is_some_and(is_link)
        };
        let names = self.last_names();
        let removed = |change: &TreeChange| {
            was_link(change) && change.path.file_name().is_some_and(|name| names.contains(&name))
        };
        changes.iter().any(removed) || self.0.iter().any(|name| cwd.join(name).is_symlink())
    }
}

/// Tells whether the commands of a line write nothing but what its text names.
pub fn writes_only_what_it_names(commands: &[CommandDecided]) -> bool {
    Certain::of(commands).is_some()
}

// Parts of a mode.
const TYPE: u32 = 0o170_000;
const LINK: u32 = 0o120_000;

/// Whether bash takes it as it stands.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['$', '`', '*', '?', '[', '{', '~', '\\', '\'', '"', '…'])
}

/// Whether a command's write can only be its redirection: it is a reader by all other means.
fn is_redirection(command: &CommandDecided, name: &str) -> bool {
    !name.starts_with('-') && command.words.iter().skip(1).all(|word| word != name)
}

/// Whether a name of a line, in whatever folder, may mean this path or something above or below it.
fn may_be(path: &Path, name: &Path) -> bool {
    let parts: Vec<&OsStr> = name
        .components()
        .filter_map(|part| match part {
            Component::Normal(part) => Some(part),
            Component::RootDir | Component::CurDir | Component::Prefix(_) | Component::ParentDir => None,
        })
        .collect();
    let Some(last) = parts.last() else { return true };
    // Folders on the way to a file that the line made are its doing too.
    path.iter().any(|part| part == *last) || parts.iter().any(|part| path.file_name() == Some(*part))
}

#[cfg(test)]
mod tests {
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
        let certain = Certain(vec!["a.txt".to_owned()]);
        let others = certain.others(&mut changes, &["/w/own.txt".into()]);
        assert_eq!(others, [change("/w/theirs")]);
        assert_eq!(changes, [change("/w/a.txt"), change("/w/own.txt")]);
    }
}
