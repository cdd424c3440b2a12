//! The losses that a line would cause, by the real names of things: the guard's final decision about the workspace,
//! the home folder and `.git`, and the list of files that have to be secured before the line runs.

use std::path::{Path, PathBuf};

use lathe_bash::normal_words;
use lathe_protocol::{Decision, Verdict};

use crate::dot_patterns::meanings;
use crate::gate::{Gate, decision};
use crate::git_option::may_be_option;
use crate::guard::{self, Spelled, is_recursive, operands};
use crate::patterns::glob;
use crate::places::{HERE, LATHE, Spent, UNKNOWN, Values, is_all, outside_proc, parts};
use crate::sets::simplified;

/// The losses that a line would cause, as far as they can be seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    /// Files and folders that are deleted, or searched for files to delete.
    pub trees: Vec<LostTree>,
    /// Files in whose place others are put, if they exist: absolute, each may be a pattern.
    pub replaced: Vec<String>,
    /// True if git, or a search, deletes or overwrites files of the workspace.
    pub work_tree: bool,
    /// True if branches, stashes or commits may have no name afterwards.
    pub refs: bool,
    /// True if patterns among these mean hidden names too.
    pub hidden_names: bool,
}

impl Losses {
    pub fn is_empty(&self) -> bool {
        self.trees.is_empty() && self.replaced.is_empty() && !self.work_tree && !self.refs
    }
}

/// A file, or a folder with all that is in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostTree {
    /// Absolute, without `.` and `..`; it may be a pattern.
    pub path: String,
    /// True if all of it is lost; otherwise only what a search finds in it.
    pub whole: bool,
}

/// The relation of a path, which may be a pattern, to a real one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathRelation {
    /// It is the place, or a folder above it.
    Above,
    /// It is everything in the place.
    Inside,
    Elsewhere,
}

fn relation(path: &str, real: &Path, hidden: bool) -> PathRelation {
    let wanted = real.to_string_lossy();
    let (pattern, real) = (parts(path), parts(&wanted));
    let same = |count: usize| {
        pattern.iter().zip(&real).take(count).all(|(pattern, name)| fits(pattern, name, hidden))
    };
    if real.is_empty() {
        return if pattern.is_empty() { PathRelation::Above } else { PathRelation::Elsewhere };
    }
    match pattern.len() {
        count if count <= real.len() && same(count) => PathRelation::Above,
        count
            if count == real.len() + 1
                && same(real.len())
                && pattern.last().is_some_and(|last| is_all(last)) =>
        {
            PathRelation::Inside
        }
        _ => PathRelation::Elsewhere,
    }
}

/// Tells whether a part of a path, which may be a pattern, means this name. Unless the shell says otherwise
/// (`hidden`), a pattern does not mean hidden names by itself.
pub(crate) fn fits(pattern: &str, name: &str, hidden: bool) -> bool {
    if !pattern.contains(['*', '?', '[']) {
        return pattern == name;
    }
    (hidden || pattern.starts_with('.') || !name.starts_with('.')) && glob(&simplified(pattern), name)
}

impl Gate {
    /// The real paths that a spelling may mean. `from` are the folders the line may be in.
    pub(crate) fn resolve(&self, spelling: &str, from: &[String]) -> Vec<String> {
        meanings(spelling).iter().flat_map(|meaning| self.resolve_as_spelled(meaning, from)).collect()
    }

    fn resolve_as_spelled(&self, spelling: &str, from: &[String]) -> Vec<String> {
        let spelling = spelling.replace(LATHE, &self.home.to_string_lossy());
        let spelling = outside_proc(spelling.strip_prefix("file://").unwrap_or(&spelling));
        // In the middle it stands for the name of the folder: `../$(basename $PWD)`.
        let name = self.here.as_ref().and_then(|here| here.file_name()).map(|name| name.to_string_lossy());
        let spelling = match (spelling.find(HERE), name) {
            (Some(at), Some(name)) if at > 0 => spelling.replace(HERE, &name),
            _ => spelling,
        };
        let spelling = spelling.as_str();
        if spelling.contains(UNKNOWN) {
            return Vec::new();
        }
        let one = |spelling: &str| -> Option<String> {
            let (begin, rest) = match spelling.chars().next()? {
                '/' => (String::new(), spelling),
                '~' => {
                    let end = spelling.find('/').unwrap_or(spelling.len());
                    // Another user's folder is not known.
                    let own = spelling.get(..end) == Some("~");
                    (self.user_home.as_ref().filter(|_| own)?.display().to_string(), spelling.get(end..)?)
                }
                _ if spelling.starts_with(HERE) => {
                    (self.here.as_ref()?.display().to_string(), spelling.get(HERE.len()..)?)
                }
                _ => return None,
            };
            Some(format!("/{}", parts(&format!("/{begin}/{rest}")).join("/")))
        };
        match one(spelling) {
            Some(path) => vec![path],
            None if spelling.starts_with(['/', '~']) || spelling.starts_with(HERE) => Vec::new(),
            None => from.iter().filter_map(|from| one(&format!("{from}/{spelling}"))).collect(),
        }
    }

    /// The denial of a deletion that is never allowed. A `relative` name may mean everything in the workspace, which
    /// can be restored; by an absolute name, that is never intended.
    pub(crate) fn never_deleted(&self, path: &str, relative: bool, dots: bool) -> Option<Decision> {
        let deny = |rule: &str, reason: &str| Some(decision(Verdict::Deny, rule, reason));
        let parts = parts(path);
        let git = |part: &&str| fits(&part.to_lowercase(), ".git", dots);
        if let Some(at) = parts.iter().position(git)
            && !parts.last().is_some_and(|last| at + 1 < parts.len() && last.ends_with(".lock"))
        {
            return deny("guard.git", "it deletes the history in .git");
        }
        if path_in(path, &self.home) || relation(path, &self.home, dots) == PathRelation::Above {
            return deny("guard.home", "this is Lathe's own folder; nothing but Lathe deletes there");
        }
        if self.root.parent().is_some() {
            match relation(path, &self.root, dots) {
                PathRelation::Above => return deny("guard.workspace", "it takes the whole workspace away"),
                PathRelation::Inside if !relative => {
                    return deny("guard.workspace", "it takes the whole workspace away");
                }
                PathRelation::Inside | PathRelation::Elsewhere => {}
            }
        }
        match self.user_home.as_deref().map(|home| relation(path, home, dots)) {
            Some(PathRelation::Above | PathRelation::Inside) => {
                deny("guard.destroy", "it deletes a home folder")
            }
            Some(PathRelation::Elsewhere) | None => None,
        }
    }

    /// The denial that no mode switches off, by the real names of what a command deletes or moves away.
    pub(crate) fn guard_losses(&self, command: &Spelled<'_>, from: &[String]) -> Option<Decision> {
        let dots = self.switched.hidden_names;
        let mut deleted = deleted(command, from);
        deleted.extend(crate::harm::spoiled_paths(command));
        let absolute = |spelling: &str| spelling.starts_with(['/', '~']) || spelling.starts_with(HERE);
        deleted.iter().find_map(|(spelling, whole)| {
            // Where not all of it is lost, only a file of git's, or of Lathe's own, is lost for good.
            let denied = |path: &String| {
                self.never_deleted(path, !absolute(spelling), dots && *whole)
                    .filter(|denied| *whole || denied.rule == "guard.git" || path_in(path, &self.home))
            };
            let system = || {
                let place = crate::places::vital_place(spelling, from)
                    .filter(|_| *whole && crate::harm::deletes_by_option(command))?;
                (place != crate::places::VitalPlace::Git).then(|| {
                    decision(Verdict::Deny, "guard.destroy", "it deletes the system or a home folder")
                })
            };
            self.resolve(spelling, from).iter().find_map(denied).or_else(system)
        })
    }

    /// Tells whether the home folder is this folder or lies in it, or the workspace lies in it.
    pub(crate) fn holds_home_or_workspace(&self, path: &str) -> bool {
        let home = self.user_home.as_deref().is_some_and(|home| home.starts_with(path));
        home || (self.root != Path::new(path) && self.root.starts_with(path))
    }

    /// The denial that no mode switches off, by the path that something really has on the disk.
    pub fn guard_path(&self, path: &Path) -> Option<Decision> {
        let path = path.to_string_lossy();
        crate::places::vital_place(&path, &[])
            .map(|_| decision(Verdict::Deny, "guard.destroy", "it deletes the system or a home folder"))
            .or_else(|| self.never_deleted(&path, true, false))
    }

    /// The losses that a line would cause.
    pub fn losses(&self, line: &str) -> Losses {
        let script = lathe_bash::read(line);
        let spent = Spent::default();
        let values = Values { assigned: &script.values, may_be_empty: false, line: None, spent: &spent };
        let own = self.switched_by(line, &script);
        let gate = own.as_ref().unwrap_or(self);
        let from = guard::folders(Some(gate), line, &script, &values).all;
        let mut losses = Losses { hidden_names: gate.switched.hidden_names, ..Losses::default() };
        for command in &script.commands {
            let spellings = guard::Spellings::of(command, &values);
            for spelled in spellings.each() {
                for (spelling, whole) in deleted(&spelled, &from) {
                    losses.trees.extend(
                        self.resolve(&spelling, &from).into_iter().map(|path| LostTree { path, whole }),
                    );
                }
                for spelling in replaced_files(&spelled) {
                    losses.replaced.extend(self.resolve(&spelling, &from));
                }
                if spelled.name == "git" {
                    self.git_losses(&spelled, &from, &mut losses);
                }
            }
        }
        losses.trees.dedup();
        losses
    }

    fn git_losses(&self, command: &Spelled<'_>, from: &[String], losses: &mut Losses) {
        let all: Vec<lathe_bash::Word> =
            ["git"].into_iter().chain(command.words.iter().copied()).map(lathe_bash::Word::text).collect();
        let normal = normal_words(&all);
        let words: Vec<&str> = normal.iter().skip(1).map(String::as_str).collect();
        let Some((sub, rest)) = words.split_first() else { return };
        let (work, refs) = lost_by_git(sub, rest);
        losses.work_tree |= work;
        losses.refs |= refs;
        // In another folder than the line's own.
        if work {
            for folder in worktrees(&command.words) {
                let paths = self.resolve(folder, from).into_iter();
                losses.trees.extend(paths.map(|path| LostTree { path, whole: false }));
            }
        }
    }
}

/// Tells whether a subcommand of git may delete or overwrite files of the work tree, and whether it may leave
/// branches, stashes or commits without a name.
pub(crate) fn lost_by_git(sub: &str, rest: &[&str]) -> (bool, bool) {
    let has = |options: &[&str]| rest.iter().any(|word| may_be_option(word, options));
    match sub {
        "clean" => (has(&["-f", "--force", "-d", "-x", "-X"]), false),
        "reset" => (has(&["--hard", "--merge", "--keep"]), true),
        "checkout" | "switch" => (true, has(&["-B", "-C", "-f"])),
        "restore" | "rm" | "mv" | "apply" | "am" | "read-tree" | "checkout-index" | "sparse-checkout" => {
            (true, false)
        }
        "stash" => (true, true),
        "rebase" | "merge" | "pull" | "cherry-pick" | "revert" | "filter-branch" | "filter-repo" => {
            (true, true)
        }
        "branch" => (false, has(&["-D", "-d", "-f", "-M", "-m", "--delete", "--force", "--move"])),
        "push" => (
            false,
            has(&["-f", "--force", "-d", "--delete", "--mirror", "--prune"])
                || rest.iter().any(|word| word.starts_with(['+', ':'])),
        ),
        "update-ref" | "reflog" | "gc" | "prune" | "commit" | "tag" | "fetch" | "symbolic-ref" => {
            (false, !matches!(sub, "commit" | "fetch") || has(&["--amend", "--prune", "-p", "-f", "--force"]))
        }
        "worktree" | "submodule" => (has(&["-f", "--force"]), false),
        _ => (false, false),
    }
}

/// The folders that git is told to work in.
pub(crate) fn worktrees<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let next = words.windows(2).filter(|pair| matches!(pair[0], "-C" | "--work-tree")).map(|pair| pair[1]);
    let glued =
        |word: &&'a str| word.strip_prefix("--work-tree=").or_else(|| word.strip_prefix("core.worktree="));
    next.chain(words.iter().filter_map(glued)).collect()
}

/// The paths that a command deletes, as they are spelled, each with true if all of it is lost.
pub(crate) fn deleted(command: &Spelled<'_>, from: &[String]) -> Vec<(String, bool)> {
    let words = command.words.as_slice();
    let operands = operands(words);
    let all = |paths: &[&str]| paths.iter().map(|path| ((*path).to_owned(), true)).collect();
    match command.name {
        "rm" | "srm" | "trash" | "unlink" | "rmdir" => {
            let folders = is_recursive(words) || command.name == "trash";
            operands.iter().map(|path| ((*path).to_owned(), folders)).collect()
        }
        "mv" if operands.len() > 1 => all(&guard::moved(words, &operands)),
        "find" => {
            let found = guard::find_parts(words);
            if !found.deletes {
                return Vec::new();
            }
            let starts = if found.starts.is_empty() && !from.is_empty() { vec!["."] } else { found.starts };
            starts.iter().map(|start| ((*start).to_owned(), !found.narrow)).collect()
        }
        "rsync" => {
            crate::harm::emptied_by_rsync(words).into_iter().map(|path| (path.to_owned(), false)).collect()
        }
        _ => Vec::new(),
    }
}

/// The places where a command puts a file over another: the old one is replaced, not written into.
fn replaced_files(command: &Spelled<'_>) -> Vec<String> {
    let words = command.words.as_slice();
    let named = match command.name {
        "mv" | "install" => crate::file_words::targets(command.name, words),
        "ln" => crate::file_words::targets("cp", words),
        _ => return Vec::new(),
    };
    let mut over = crate::file_words::made_by_copy(command.name, words, &named);
    over.extend(named.into_iter().map(str::to_owned));
    over
}

fn path_in(path: &str, folder: &Path) -> bool {
    folder.parent().is_some() && Path::new(path).starts_with(folder)
}

/// The folder as text, for the list of folders that a line may be in.
pub(crate) fn text_of(folder: Option<&Path>) -> Vec<String> {
    folder.map(PathBuf::from).map(|folder| folder.display().to_string()).into_iter().collect()
}
