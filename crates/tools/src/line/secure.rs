//! Secures a line that removes something. First the guard decides again, from the folder the shell really is in and
//! by the real names on the disk. Then everything that the tracker of the workspace cannot restore is kept in the
//! quarantine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_changes::{
    BrokenRepository, LineOrigin, OpenEntry, Quarantine, QuarantineEntry, SetAside, TreeChange,
};
use lathe_policy::{Gate, Losses, Rulebook, Walls};
use lathe_protocol::{Actor, Mode, Verdict};
use lathe_search::{GlobStyle, glob_matcher};

use crate::finish::journal_changes;
use crate::line::protected_names::RevertedPath;
use crate::tool::RunContext;

/// The quarantine, and the session it is used for.
#[derive(Debug, Clone)]
pub struct Keeper {
    pub quarantine: Quarantine,
    pub session: Option<String>,
    /// The folder beneath `baselines` with the tracker's copies, if no session has it.
    pub scratch: Option<String>,
}

/// Paths that one pattern may stand for.
pub(crate) const MOST: usize = 50_000;

/// Files too large for a copy that get a second name before a line with unknown effects.
const MOST_HIDDEN: usize = 1_000;

/// The losses that a line could cause that may run now, and what is kept of them.
#[derive(Debug, Default)]
pub(crate) struct SecuredLine {
    losses: Losses,
    keeping: Option<OpenEntry>,
    note: Option<LineOrigin>,
    /// Losses that could not be kept.
    pub(crate) not_kept: Vec<String>,
}

impl SecuredLine {
    /// The same line with nothing secured.
    pub(crate) fn without_secured(&self) -> Self {
        Self { note: self.note.clone(), ..Self::default() }
    }

    /// Tells whether files of the workspace may be lost, so that they must be tracked.
    pub(crate) fn needs_tracking(&self) -> bool {
        !self.losses.trees.is_empty() || self.losses.work_tree
    }
}

/// Secures a line that is about to run in `cwd`, if that is a folder of the host's. The error is the reason why it
/// may not run.
pub(crate) async fn secure_line(
    context: &RunContext,
    line: &str,
    cwd: Option<&Path>,
) -> Result<SecuredLine, String> {
    let call_gate = &context.call_gate;
    let switched = context.services.switched_options();
    let gate = Gate { here: cwd.map(Path::to_owned), switched, ..call_gate.gate.clone() };
    let decided = gate.decide_line(&call_gate.rules, call_gate.actor, call_gate.mode, line).decision;
    // A call in between may have put a link where a file was. The mode's part of the decision was made with the call.
    let by_mode = decided.rule.starts_with("mode.") || decided.rule == "headless";
    if decided.verdict == Verdict::Deny && !by_mode {
        return Err(decided.reason);
    }
    let losses = gate.losses(line);
    let tracking = &context.services.tracking;
    let harmless = || {
        // Rules of the user's do not count here, nor do walls: an allowed line may still remove something.
        let gate = Gate { walls: Walls::None, ..gate.clone() };
        let decided = gate.decide_line(&Rulebook::builtin(), Actor::Model, Mode::Default, line).decision;
        decided.verdict == Verdict::Allow
    };
    // The losses of such a line are not known.
    let hidden = !harmless();
    if tracking.is_sparing() && (hidden || !losses.is_empty()) {
        tracking.secure_git().await;
    }
    let Some(keeper) = context.services.keeper.clone().filter(|_| hidden || !losses.is_empty()) else {
        return Ok(SecuredLine { losses, ..SecuredLine::default() });
    };
    let note = LineOrigin {
        line: context.services.redactor.redact_text(line).into_owned(),
        folder: gate.root.clone(),
        session: keeper.session.clone(),
        call: context.call.as_str().to_owned(),
    };
    let (root, actor, scratch) = (gate.root.clone(), call_gate.actor, keeper.scratch.clone());
    if tracking.is_sparing() && (losses.work_tree || !losses.trees.is_empty()) {
        let full = "there is no room in Lathe's own folder for a copy of what it takes away";
        tracking.begin_line(context.call.as_str()).await.map_err(|_| full.to_owned())?;
    }
    // The paths that the tracker cannot restore.
    let beyond = tracking.untrackable_paths().await;
    // Single files cost only one more name each.
    let files = beyond.iter().filter(|path| hidden && path.is_file()).take(MOST_HIDDEN);
    let files: Vec<PathBuf> = files.cloned().collect();
    let (unknown, copied) = (losses.is_empty(), tracking.copied_repositories());
    if unknown && files.is_empty() && copied.is_empty() {
        return Ok(SecuredLine { losses, note: Some(note), ..SecuredLine::default() });
    }
    let keep = move || keep_losses(&gate, &keeper.quarantine, losses, &root, (&beyond, &files), actor);
    let mut secured = tokio::task::spawn_blocking(keep).await.map_err(|error| error.to_string())??;
    if let Some(keeping) = &mut secured.keeping {
        if unknown {
            keeping.keep_only_gone();
        }
        keeping.watch(copied, actor != Actor::Person && !tracking.is_sparing());
        let full = |error| format!("what it takes away cannot be secured first: {error}");
        keeping.begin(&note, scratch).map_err(full)?;
    }
    secured.note = Some(note);
    Ok(secured)
}

/// Finishes a line, with the changes that no session records and the repositories that it broke. Returns what is kept
/// for good.
pub(crate) async fn finish_line(
    secured: SecuredLine,
    context: &RunContext,
    changes: Vec<TreeChange>,
    broken: Vec<BrokenRepository>,
) -> Option<QuarantineEntry> {
    let keeper = context.services.keeper.clone()?;
    let note = secured.note.unwrap_or_else(|| LineOrigin {
        line: String::new(),
        folder: context.call_gate.gate.root.clone(),
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
        let changes = journal_changes(changes, &call, &redactor);
        keeping.finish(note, changes).ok().flatten()
    };
    tokio::task::spawn_blocking(finish).await.ok().flatten()
}

/// The notes on repositories that are no longer intact.
pub(crate) fn broken_notes(broken: &[BrokenRepository], kept: Option<&QuarantineEntry>) -> Vec<String> {
    let words = |one: &BrokenRepository| {
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

/// The note on a file that git would have run later.
pub fn aside_note(one: &SetAside) -> String {
    let path = one.path.display();
    match &one.aside {
        Ok(aside) => {
            let name = aside.file_name().unwrap_or_default().to_string_lossy();
            format!("{path}{GIT_LATER}{AS}{name}{BACK}")
        }
        Err(why) => format!("{path}{GIT_LATER}{NOT_ASIDE}{why}."),
    }
}

/// The note on a protected path that a line wrote.
pub(crate) fn reverted_note(one: &RevertedPath) -> String {
    let path = one.path.display();
    match &one.failure {
        None => format!(
            "{path} is protected, because other programs run or obey it: what the line wrote there was reverted. Ask the user to change it."
        ),
        Some(why) => {
            format!("{path} is protected, and what the line wrote there could not be reverted: {why}.")
        }
    }
}

/// The note on a protected path that was changed while a line ran that was never finished, or after it.
pub fn left_protected_note(path: &Path) -> String {
    let path = path.display();
    format!(
        "{path} is protected, because other programs run or obey it, and it has changed since the interrupted line began. It is not reverted: look at it before you use the folder. `lathe undo` takes it back."
    )
}

/// A file that the text of a call's result says was set aside. A command can print the same text, so a caller that
/// reports it to the user checks whether the file is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AsideNote {
    pub path: PathBuf,
    /// The new name in the same folder. None if the file could not be set aside.
    pub name: Option<String>,
}

/// Reads from the text of a call's result which files were set aside.
pub fn aside_notes(text: &str) -> Vec<AsideNote> {
    let notes = text.split('\n').filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
    let read = notes.filter_map(|note| {
        let (path, rest) = note.split_once(GIT_LATER)?;
        let name = rest.strip_prefix(AS).and_then(|rest| rest.strip_suffix(BACK)).map(str::to_owned);
        (name.is_some() || rest.starts_with(NOT_ASIDE)).then(|| AsideNote { path: path.into(), name })
    });
    read.collect()
}

fn keep_losses(
    gate: &Gate,
    quarantine: &Quarantine,
    losses: Losses,
    root: &Path,
    (beyond, files): (&[PathBuf], &[PathBuf]),
    actor: Actor,
) -> Result<SecuredLine, String> {
    let (mut paths, mut whole) = (Vec::new(), Vec::new());
    for lost in &losses.trees {
        let real = real_pattern(&lost.path);
        if let Some(denied) = gate.guard_path(&real).filter(|_| lost.whole) {
            return Err(denied.reason);
        }
        for path in expand(&real, losses.hidden_names) {
            if let Some(denied) = gate.guard_path(&path).filter(|_| lost.whole) {
                return Err(format!("{}: {}", path.display(), denied.reason));
            }
            // The tracker has the content of the workspace, as far as it can.
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
    // The tracker, and the paths beyond it, cover those of the workspace.
    let over = losses.replaced.iter().flat_map(|path| expand(&real_pattern(path), losses.hidden_names));
    let is_file = |path: &PathBuf| path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    paths.extend(over.filter(|path| is_file(path) && (!path.starts_with(root) || beyond.contains(path))));
    if losses.work_tree {
        paths.extend(beyond.iter().cloned());
    }
    paths.sort();
    paths.dedup();
    // The content of a kept folder is kept with it.
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
    Ok(SecuredLine { losses, keeping: Some(keeping), note: None, not_kept })
}

/// The path with the links resolved that lead to it, up to its first pattern.
fn real_pattern(path: &str) -> PathBuf {
    let path = Path::new(path);
    let is_pattern = |part: &std::ffi::OsStr| part.to_string_lossy().contains(['*', '?', '[']);
    let (mut fixed, mut rest) = (PathBuf::new(), PathBuf::new());
    let count = path.components().count();
    for (at, part) in path.components().enumerate() {
        // The last name itself is removed, not the target of its link.
        if rest.as_os_str().is_empty() && !is_pattern(part.as_os_str()) && at + 1 < count {
            fixed.push(part);
        } else {
            rest.push(part);
        }
    }
    fixed.canonicalize().unwrap_or(fixed).join(rest)
}

/// The paths that a pattern stands for. With `hidden`, `*` also stands for names that begin with a dot. `.?` also
/// stands for the folder above, by its real place.
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
        // No folder lists these.
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
            // Through a link it is the folder above the one that the link leads to.
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
