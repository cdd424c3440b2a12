//! Before a line that takes something away: the guard's word again, from where the shell really is and by the names things
//! really have on the disk; then whatever the tracker of the workspace cannot bring back is kept in the quarantine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_changes::{Broken, Keeping, Kept, Note, Quarantine, SetAside, TreeChange};
use lathe_policy::{Gate, Losses, Rulebook};
use lathe_protocol::{Actor, Mode, Verdict};
use lathe_search::{GlobStyle, glob_matcher};

use crate::finish::recorded;
use crate::tool::RunContext;

/// Where things are kept, and for which session.
#[derive(Debug, Clone)]
pub struct Keeper {
    pub quarantine: Quarantine,
    pub session: Option<String>,
    /// The folder beneath `baselines` with what the tracker copies, where no session has it.
    pub scratch: Option<String>,
}

/// Paths that one pattern may stand for.
pub(crate) const MOST: usize = 50_000;

/// Files too large for a copy that get a second name before a line of which nobody knows what it does.
const MOST_HIDDEN: usize = 1_000;

/// What a line that may run now would take away.
#[derive(Debug, Default)]
pub(crate) struct Secured {
    losses: Losses,
    keeping: Option<Keeping>,
    note: Option<Note>,
    /// What could not be kept.
    pub(crate) not_kept: Vec<String>,
}

impl Secured {
    /// The same line with nothing secured.
    pub(crate) fn beside(&self) -> Self {
        Self { note: self.note.clone(), ..Self::default() }
    }

    /// Whether files of the workspace may be lost, so that they have to be tracked.
    pub(crate) fn needs_tracking(&self) -> bool {
        !self.losses.trees.is_empty() || self.losses.work
    }
}

/// Looks at a line that is about to run in `cwd`, if that is a folder of the host's. The error is why it may not.
pub(crate) async fn before(context: &RunContext, line: &str, cwd: Option<&Path>) -> Result<Secured, String> {
    let judge = &context.judge;
    let switched = context.services.switched();
    let gate = Gate { here: cwd.map(Path::to_owned), switched, ..judge.gate.clone() };
    let decided = gate.decide_line(&judge.rules, judge.actor, judge.mode, line).decision;
    // A call in between may have put a link where a file was. What the mode says was decided with the call.
    let by_mode = decided.rule.starts_with("mode.") || decided.rule == "headless";
    if decided.verdict == Verdict::Deny && !by_mode {
        return Err(decided.reason);
    }
    let losses = gate.losses(line);
    let tracking = &context.services.tracking;
    let harmless = || {
        // Not by rules of the user's: what is allowed may still take something away.
        let decided = gate.decide_line(&Rulebook::builtin(), Actor::Model, Mode::Default, line).decision;
        decided.verdict == Verdict::Allow
    };
    // Nobody knows what such a line takes away.
    let hidden = !harmless();
    if tracking.is_sparing() && (hidden || !losses.is_empty()) {
        tracking.before_git().await;
    }
    let Some(keeper) = context.services.keeper.clone().filter(|_| hidden || !losses.is_empty()) else {
        return Ok(Secured { losses, ..Secured::default() });
    };
    let note = Note {
        line: context.services.redactor.text(line).into_owned(),
        folder: gate.root.clone(),
        session: keeper.session.clone(),
        call: context.call.as_str().to_owned(),
    };
    let (root, actor, scratch) = (gate.root.clone(), judge.actor, keeper.scratch.clone());
    if tracking.is_sparing() && (losses.work || !losses.trees.is_empty()) {
        let full = "there is no room in Lathe's own folder for a copy of what it takes away";
        tracking.before(context.call.as_str()).await.map_err(|_| full.to_owned())?;
    }
    // What the tracker says it cannot bring back.
    let beyond = tracking.beyond().await;
    // Single files cost one more name each.
    let files = beyond.iter().filter(|path| hidden && path.is_file()).take(MOST_HIDDEN);
    let files: Vec<PathBuf> = files.cloned().collect();
    let (unknown, copied) = (losses.is_empty(), tracking.copied());
    if unknown && files.is_empty() && copied.is_empty() {
        return Ok(Secured { losses, note: Some(note), ..Secured::default() });
    }
    let keep = move || keep(&gate, &keeper.quarantine, losses, &root, (&beyond, &files), actor);
    let mut secured = tokio::task::spawn_blocking(keep).await.map_err(|error| error.to_string())??;
    if let Some(keeping) = &mut secured.keeping {
        if unknown {
            keeping.only_gone();
        }
        keeping.watch(copied, actor != Actor::Person && !tracking.is_sparing());
        let full = |error| format!("what it takes away cannot be secured first: {error}");
        keeping.begin(&note, scratch).map_err(full)?;
    }
    secured.note = Some(note);
    Ok(secured)
}

/// After the line, with the changes that no session knows and the repositories that it broke. Gives what is kept for good.
pub(crate) async fn after(
    secured: Secured,
    context: &RunContext,
    changes: Vec<TreeChange>,
    broken: Vec<Broken>,
) -> Option<Kept> {
    let keeper = context.services.keeper.clone()?;
    let note = secured.note.unwrap_or_else(|| Note {
        line: String::new(),
        folder: context.judge.gate.root.clone(),
        session: keeper.session.clone(),
        call: context.call.as_str().to_owned(),
    });
    let (keeping, call) = (secured.keeping, context.call.clone());
    let redactor = Arc::clone(&context.services.redactor);
    if keeping.is_none() && broken.is_empty() {
        return None;
    }
    let finish = move || {
        let mut keeping = keeping.or_else(|| keeper.quarantine.begin().ok())?;
        keeping.keep_repositories(&broken);
        let changes = recorded(changes, &call, &redactor);
        keeping.finish(note, changes).ok().flatten()
    };
    tokio::task::spawn_blocking(finish).await.ok().flatten()
}

/// What is said of repositories that are no longer whole.
pub(crate) fn told(broken: &[Broken], kept: Option<&Kept>) -> Vec<String> {
    let words = |one: &Broken| {
        let held = kept.filter(|kept| kept.repositories.iter().any(|held| held.path == one.path));
        let way = match held {
            Some(kept) => {
                let undo = if kept.session.is_some() { ", or `lathe undo`," } else { "" };
                let restore = format!("`lathe quarantine restore {}`{undo}", kept.id);
                format!("A copy from before the line is kept: {restore} brings it back.")
            }
            None => "There is no copy of it.".to_owned(),
        };
        format!("{} {}. {way}", one.path.display(), one.why)
    };
    broken.iter().map(words).collect()
}

const GIT_LATER: &str = ": this may make git run a program later, and lines do not write that. ";
const AS: &str = "It is set aside as ";
const BACK: &str = ", and what was there before is back. The user can put it in place.";
const NOT_ASIDE: &str = "It could not be set aside: ";

/// The words for something that git would have run later.
pub fn told_aside(one: &SetAside) -> String {
    let path = one.path.display();
    match &one.aside {
        Ok(aside) => {
            let name = aside.file_name().unwrap_or_default().to_string_lossy();
            format!("{path}{GIT_LATER}{AS}{name}{BACK}")
        }
        Err(why) => format!("{path}{GIT_LATER}{NOT_ASIDE}{why}."),
    }
}

/// Something that the words of a call's result say was set aside. A command can print the same words, so whoever tells a
/// person of it looks whether it is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ToldAside {
    pub path: PathBuf,
    /// The name beside it. None if it could not be set aside.
    pub name: Option<String>,
}

/// Reads from a call's result what was set aside.
pub fn told_aside_in(text: &str) -> Vec<ToldAside> {
    let notes = text.split('\n').filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let read = notes.filter_map(|note| {
        let (path, rest) = note.split_once(GIT_LATER)?;
        let name = rest.strip_prefix(AS).and_then(|rest| rest.strip_suffix(BACK)).map(str::to_owned);
        (name.is_some() || rest.starts_with(NOT_ASIDE)).then(|| ToldAside { path: path.into(), name })
    });
    read.collect()
}

fn keep(
    gate: &Gate,
    quarantine: &Quarantine,
    losses: Losses,
    root: &Path,
    (beyond, files): (&[PathBuf], &[PathBuf]),
    actor: Actor,
) -> Result<Secured, String> {
    let (mut paths, mut whole) = (Vec::new(), Vec::new());
    for lost in &losses.trees {
        let real = real_pattern(&lost.path);
        if let Some(denied) = gate.guard_path(&real).filter(|_| lost.whole) {
            return Err(denied.reason);
        }
        for path in expand(&real, losses.hidden) {
            if let Some(denied) = gate.guard_path(&path).filter(|_| lost.whole) {
                return Err(format!("{}: {}", path.display(), denied.reason));
            }
            // The tracker has what is in the workspace, as far as it can.
            if path.starts_with(root) {
                let inside =
                    beyond.iter().filter(|beyond| beyond.starts_with(&path) || path.starts_with(beyond));
                let inside = inside.map(|beyond| if beyond.starts_with(&path) { beyond } else { &path });
                paths.extend(inside.cloned());
            } else {
                if lost.whole {
                    whole.push(path.clone());
                }
                paths.push(path);
            }
        }
    }
    // The tracker, and what is beyond it, know those of the workspace.
    let over = losses.over.iter().flat_map(|path| expand(&real_pattern(path), losses.hidden));
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    paths.extend(over.filter(|path| is_file(path) && (!path.starts_with(root) || beyond.contains(path))));
    if losses.work {
        paths.extend(beyond.iter().cloned());
    }
    paths.sort();
    paths.dedup();
    // What is in a folder that is kept is kept with it.
    let mut tops: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !tops.last().is_some_and(|top| path.starts_with(top)) {
            tops.push(path);
        }
    }
    let mut keeping = quarantine.begin().map_err(|error| {
        format!("what it takes away cannot be secured first: the quarantine cannot be used: {error}")
    })?;
    let mut not_kept = Vec::new();
    for path in &tops {
        if let Err(not) = keeping.keep(path) {
            let words = format!("{}: {}", not.path.display(), not.why);
            if actor != Actor::Person && whole.contains(path) {
                keeping.forget();
                return Err(format!("it deletes what cannot be secured first: {words}"));
            }
            not_kept.push(words);
        }
    }
    let covered = |file: &&PathBuf| tops.iter().any(|top| file.starts_with(top));
    files.iter().filter(|file| !covered(file)).for_each(|file| keeping.link(file));
    if losses.refs {
        keeping.keep_names(root);
    }
    Ok(Secured { losses, keeping: Some(keeping), note: None, not_kept })
}

/// The path with the links resolved that lead to it, as far as it is no pattern.
fn real_pattern(path: &str) -> PathBuf {
    let path = Path::new(path);
    let is_pattern = |part: &std::ffi::OsStr| part.to_string_lossy().contains(['*', '?', '[']);
    let (mut fixed, mut rest) = (PathBuf::new(), PathBuf::new());
    let count = path.components().count();
    for (at, part) in path.components().enumerate() {
        // The last name itself is what goes, not what it leads to.
        if rest.as_os_str().is_empty() && !is_pattern(part.as_os_str()) && at + 1 < count {
            fixed.push(part);
        } else {
            rest.push(part);
        }
    }
    fixed.canonicalize().unwrap_or(fixed).join(rest)
}

/// The paths that a pattern stands for; with `hidden`, by `*` too those whose names begin with a dot. `.?` stands for the
/// folder above as well, by its real place.
pub(crate) fn expand(pattern: &Path, hidden: bool) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        if !name.contains(['*', '?', '[']) {
            found.iter_mut().for_each(|path| path.push(part));
            continue;
        }
        let Ok(matcher) = glob_matcher(&name, GlobStyle::default()) else { return Vec::new() };
        let fits = |entry: &std::fs::DirEntry| {
            let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
            (hidden || !is_hidden || name.starts_with('.')) && matcher.is_match(entry.file_name())
        };
        let entries = found.iter().flat_map(|path| std::fs::read_dir(path).into_iter().flatten().flatten());
        let listed: Vec<PathBuf> = entries.filter(fits).map(|entry| entry.path()).take(MOST).collect();
        // No folder lists them.
        let dots = ["..", "."].into_iter().filter(|dots| lathe_policy::may_mean_dots(&name, dots));
        let above = |dots: &str| -> Vec<PathBuf> {
            found.iter().filter_map(|path| path.join(dots).canonicalize().ok()).collect()
        };
        found = dots.flat_map(above).chain(listed).collect();
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_stands_for_the_folder_above_and_for_hidden_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("w/sub")).unwrap();
        std::fs::create_dir_all(root.join("far/in")).unwrap();
        for file in ["w/.env", "w/a.c", "home", "far/key"] {
            std::fs::write(root.join(file), "x").unwrap();
        }
        std::os::unix::fs::symlink(root.join("far/in"), root.join("w/link")).unwrap();
        for (pattern, hidden, expected) in [
            ("w/*.c", false, vec!["w/a.c"]),
            ("w/*v", false, vec![]),
            ("w/*v", true, vec!["w/.env"]),
            ("w/.?/home", false, vec!["home"]),
            ("w/.[.]/h*", false, vec!["home"]),
            ("w/.[!.]*", false, vec!["w/.env"]),
            // Behind a link it is the folder above the one that the link leads to.
            ("w/l*/.?/key", false, vec!["far/key"]),
            ("w/sub/.?/.?/home", false, vec!["home"]),
        ] {
            let found = expand(&root.join(pattern), hidden);
            assert_eq!(found, expected.iter().map(|path| root.join(path)).collect::<Vec<_>>(), "{pattern}");
        }
        let above = expand(&root.join("w/.*"), false);
        assert!([&root, &root.join("w"), &root.join("w/.env")].iter().all(|path| above.contains(path)));
    }

    #[test]
    fn a_pattern_without_bound_stands_for_nothing() {
        for (open, close) in [("{", "}"), ("{a,", "}"), ("[", ""), ("(", ")"), ("!", "")] {
            let pattern = format!("/tmp/*{}a{}", open.repeat(100_000), close.repeat(100_000));
            assert_eq!(expand(Path::new(&pattern), false), Vec::<PathBuf>::new(), "{open}");
        }
    }
}
