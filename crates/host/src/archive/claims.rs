//! Files that another session may have written too.
//!
//! Two sessions may work in one folder at the same time, and the scan of the tree after a line finds the changes of
//! both, so both journals record them. Each journal also records when each call ran and what its line names. When
//! calls of two sessions overlapped, a changed file belongs to the session that names it: through a file tool, an
//! agent command, or a line with the name in a redirection, an operand or the text of the program that it starts. A
//! file that the other session names, or that both or neither name, is not restored: it is a conflict that names the
//! other session. A line that still runs has reported nothing yet, and may have written anything that its text
//! allows. One case goes unnoticed: a program that writes a file which it does not name, at the same moment in which
//! a line of this session writes that file by name.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use lathe_blobs::Blobs;
use lathe_changes::{PathState, RestoreTarget, TreeChange};
use lathe_journal::SessionReader;
use lathe_protocol::{
    CallId, CommandDecided, Event, Fact, RunNo, Seq, SessionId, SessionState, StepNo, Timestamp,
};
use lathe_tools::writes_only_what_it_names;

use crate::archive::Archive;

/// Largest file that is read to see how it grew, in bytes.
const LARGEST: usize = 4 << 20;

const TYPE: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;

/// Programs whose first operand is a script.
const INTERPRETERS: [&str; 10] =
    ["python", "python3", "bash", "sh", "dash", "zsh", "node", "ruby", "perl", "source"];

/// Largest script that is searched for names, in bytes.
const LONGEST_SCRIPT: u64 = 256 << 10;

/// A path that another session wrote, or may have written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Claim {
    pub(crate) path: PathBuf,
    pub(crate) session: SessionId,
}

impl Archive {
    /// Marks as foreign what other sessions changed, or may have changed, while the calls of these events ran, and
    /// what still is as another session left it afterwards. `all` is the whole journal of the session. A journal that
    /// cannot be read claims nothing.
    pub(crate) fn mark_foreign_writes(
        &self,
        id: &SessionId,
        workspace: &Path,
        (all, undone): (&[Event], &BTreeSet<Seq>),
        wanted: &mut [RestoreTarget],
    ) -> Vec<Claim> {
        let mut own = write_spans(all, workspace);
        own.retain(|span| span.recorded_at.is_some_and(|seq| undone.contains(&seq)));
        let Some(since) = own.iter().map(|span| span.from).min() else { return Vec::new() };
        let (Ok(sessions), Ok(blobs), false) = (self.sessions(), self.home().blobs(), wanted.is_empty())
        else {
            return Vec::new();
        };
        let is_near = |other: &str| {
            let other = Path::new(other);
            other.starts_with(workspace) || workspace.starts_with(other)
        };
        let mut claims = Vec::new();
        for other in sessions {
            let is_over = match other.state {
                SessionState::Completed | SessionState::Error | SessionState::Cancelled => true,
                SessionState::New | SessionState::Running | SessionState::Interrupted => false,
            };
            if other.id == *id || (is_over && other.updated < since) || !is_near(&other.workspace) {
                continue;
            }
            let events = SessionReader::open(&self.home().sessions(), &other.id, blobs.clone())
                .and_then(|reader| reader.all());
            let events = without_shared(events.unwrap_or_default(), all);
            let theirs = write_spans(&events, Path::new(&other.workspace));
            // A folder that was made is removed only if it is empty.
            let is_made_folder = |wanted: &RestoreTarget| {
                wanted.want.is_none() && wanted.now.as_ref().is_some_and(|now| now.mode & TYPE == FOLDER)
            };
            for wanted in wanted.iter_mut().filter(|wanted| !is_made_folder(wanted)) {
                let is_claimed =
                    theirs.iter().any(|span| span.to >= since && span.claims(wanted, &own, &blobs));
                if is_claimed {
                    wanted.foreign = true;
                    claims.push(Claim { path: wanted.path.clone(), session: other.id.clone() });
                }
            }
        }
        claims
    }
}

/// The files among these that were changed by a line which may write anything and does not name them: another program
/// or session may have written them.
pub(crate) fn unnamed_changes(
    workspace: &Path,
    (all, undone): (&[Event], &BTreeSet<Seq>),
    wanted: &[RestoreTarget],
) -> Vec<PathBuf> {
    let mut own = write_spans(all, workspace);
    own.retain(|span| span.recorded_at.is_some_and(|seq| undone.contains(&seq)));
    let is_folder = |wanted: &RestoreTarget| {
        let mode = |state: &Option<PathState>| state.as_ref().is_none_or(|state| state.mode & TYPE == FOLDER);
        mode(&wanted.now) && mode(&wanted.want)
    };
    let is_unnamed = |wanted: &&RestoreTarget| {
        let path = wanted.path.as_path();
        let mut spans = own.iter().filter(|span| span.change(path).is_some()).peekable();
        let is_open = |span: &WriteSpan| {
            span.line.as_ref().is_some_and(|line| !line.certain && !line.names(path) && !line.hints_at(path))
        };
        !is_folder(wanted) && spans.peek().is_some() && spans.all(is_open)
    };
    wanted.iter().filter(is_unnamed).map(|wanted| wanted.path.clone()).collect()
}

/// A span of time in which a session changed files: a call, an agent command, or a rewind or undo.
struct WriteSpan {
    from: Timestamp,
    /// The far future while it runs.
    to: Timestamp,
    /// The event that records the changes. None while it runs.
    recorded_at: Option<Seq>,
    /// The line, if its changes were found by a scan of the tree.
    line: Option<LineWrites>,
    changes: Vec<TreeChange>,
}

/// The files that a line writes, as far as its text shows.
#[derive(Default)]
struct LineWrites {
    /// True if it writes nothing that it does not name.
    certain: bool,
    /// Files and folders that it writes, as it spells them.
    writes: Vec<PathBuf>,
    /// Possible file names in the text that it gives to programs.
    words: Vec<PathBuf>,
    /// Paths that its agent commands wrote themselves.
    own: Vec<PathBuf>,
}

impl LineWrites {
    fn of(commands: &[CommandDecided], root: &Path) -> Self {
        let mut line = Self { certain: writes_only_what_it_names(commands), ..Self::default() };
        for command in commands {
            let effects = &command.effects;
            line.writes
                .extend(effects.writes.iter().filter(|name| !name.starts_with('-')).map(PathBuf::from));
            if effects.opaque || !effects.programs.is_empty() || !effects.writes.is_empty() {
                let texts = command.words.iter().skip(1);
                line.words.extend(texts.flat_map(|text| text.split(ends_name)).filter_map(path_in));
                let script = script(&command.words, root).unwrap_or_default();
                line.words.extend(script.split(ends_name).filter_map(path_in));
            }
        }
        line
    }

    /// Tells whether a name that is only known when the line runs, such as `n$i` or `*.o`, may mean a path.
    fn hints_at(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let may_be = |hint: &PathBuf| {
            let hint = hint.file_name().unwrap_or_default().to_string_lossy();
            let open = hint.find(['$', '*', '?', '[', '{', '`']);
            open.is_some_and(|open| name.starts_with(hint.get(..open).unwrap_or_default()))
        };
        self.writes.iter().any(may_be)
    }

    fn names(&self, path: &Path) -> bool {
        let written = |name: &PathBuf| {
            let name = normal_parts(name);
            let ends = |path: &Path| !name.as_os_str().is_empty() && path.ends_with(&name);
            // The file, the content of a folder of that name, and the folders on the way to it.
            path.ancestors().any(ends)
                || name.ancestors().skip(1).any(|above| is_not_empty(above) && path.ends_with(above))
        };
        self.own.iter().any(|own| own == path)
            || self.writes.iter().any(written)
            || self.words.iter().any(|name| path.ends_with(normal_parts(name)))
    }
}

/// The current text of the script that a command runs.
fn script(words: &[String], root: &Path) -> Option<String> {
    let (program, rest) = words.split_first()?;
    let named = if INTERPRETERS.contains(&program.as_str()) {
        rest.iter().find(|word| !word.starts_with('-'))?
    } else {
        Some(program).filter(|program| program.contains('/'))?
    };
    let path = root.join(named);
    let found = path.metadata().ok()?;
    (found.is_file() && found.len() <= LONGEST_SCRIPT).then(|| std::fs::read_to_string(path).ok()).flatten()
}

fn is_not_empty(path: &Path) -> bool {
    !path.as_os_str().is_empty()
}

/// A name without root, `.` and `..`: any path that ends with it may be meant.
fn normal_parts(name: &Path) -> PathBuf {
    let normal = name.components().filter(|part| matches!(part, std::path::Component::Normal(_)));
    normal.collect()
}

/// Tells whether a character ends a name in the text of a program.
fn ends_name(c: char) -> bool {
    !(c.is_alphanumeric() || "._-+@/".contains(c))
}

fn path_in(word: &str) -> Option<PathBuf> {
    let name = normal_parts(Path::new(word));
    is_not_empty(&name).then_some(name)
}

impl WriteSpan {
    fn now(event: &Event) -> Self {
        let changes = event.fact.changes().iter().map(TreeChange::from).collect();
        Self { from: event.at, to: event.at, recorded_at: Some(event.seq), line: None, changes }
    }

    fn names(&self, path: &Path) -> bool {
        self.line.as_ref().is_none_or(|line| line.names(path))
    }

    fn change(&self, path: &Path) -> Option<&TreeChange> {
        self.changes.iter().find(|change| change.path == path)
    }

    /// Tells whether this span of another session changed a path, or may have.
    fn claims(&self, wanted: &RestoreTarget, own: &[WriteSpan], blobs: &Blobs) -> bool {
        let path = wanted.path.as_path();
        let change = self.change(path);
        let runs_on = self.recorded_at.is_none();
        let may_write = match &self.line {
            Some(line) => runs_on && (!line.certain || line.names(path)),
            None => false,
        };
        if change.is_none() && !may_write {
            return false;
        }
        let mut overlapping = own
            .iter()
            .filter(|span| span.change(path).is_some() && span.from <= self.to && self.from <= span.to)
            .peekable();
        let after = change.map(TreeChange::state_after);
        if overlapping.peek().is_none() {
            // It came later, and the path is still as it left it. An earlier one made the state that is restored.
            let ended = own.iter().filter(|span| span.change(path).is_some()).map(|span| span.to).max();
            return ended.is_some_and(|ended| self.from > ended) && after == Some(wanted.now.clone());
        }
        if self.names(path) || !overlapping.any(|span| span.names(path)) {
            return true;
        }
        // Only this session names it. The scan of the other one found its present state or an earlier stage of it.
        match (change, after) {
            (Some(change), Some(after)) => after != wanted.now && !grew(change, wanted, blobs),
            _ => false,
        }
    }
}

/// Tells whether a file only got longer: from the state before the other session's scan, to the one after it, to the
/// present one.
fn grew(change: &TreeChange, wanted: &RestoreTarget, blobs: &Blobs) -> bool {
    let content = |state: Option<&PathState>| match state {
        None => Some(Vec::new()),
        Some(state) => blobs.get(&state.digest).ok().flatten().filter(|content| content.len() <= LARGEST),
    };
    let (before, after) = (change.state_before(), change.state_after());
    let found = (content(before.as_ref()), content(after.as_ref()), content(wanted.now.as_ref()));
    match found {
        (Some(before), Some(after), Some(now)) => {
            !after.is_empty() && after.starts_with(&before) && now.starts_with(&after)
        }
        _ => false,
    }
}

/// The events of a session without those that it shares with `own`: a fork begins with copies of the events of its
/// origin, and two forks of one origin begin with the same ones. Their changes were made once.
fn without_shared(events: Vec<Event>, own: &[Event]) -> Vec<Event> {
    let mut by_time: HashMap<Timestamp, Vec<&Event>> = HashMap::new();
    for event in own {
        by_time.entry(event.at).or_default().push(event);
    }
    let is_shared = |event: &Event| {
        let at_once = by_time.get(&event.at).into_iter().flatten();
        at_once.into_iter().any(|own| own.place == event.place && own.fact == event.fact)
    };
    events.into_iter().filter(|event| !is_shared(event)).collect()
}

/// Everything that a session did to files, by its journal.
fn write_spans(events: &[Event], root: &Path) -> Vec<WriteSpan> {
    type At = (RunNo, Option<StepNo>, Option<CallId>);
    let mut open: HashMap<At, WriteSpan> = HashMap::new();
    let mut lines: HashMap<At, LineWrites> = HashMap::new();
    let mut done = Vec::new();
    for event in events {
        let at = (event.place.run, event.place.step, event.place.call.clone());
        match &event.fact {
            Fact::CallDecided(decided) if !decided.each.is_empty() => {
                lines.insert(at, LineWrites::of(&decided.each, root));
            }
            Fact::CallStarted(_) => {
                let (from, to) = (event.at, Timestamp::MAX);
                let line = lines.remove(&at);
                open.insert(at, WriteSpan { from, to, recorded_at: None, line, changes: Vec::new() });
            }
            Fact::CommandRan(ran) if ran.between_lines => done.push(WriteSpan::now(event)),
            Fact::CommandRan(ran) => {
                if let Some(line) = open.get_mut(&at).and_then(|span| span.line.as_mut()) {
                    line.own.extend(ran.changes.iter().map(|change| TreeChange::from(change).path));
                }
            }
            Fact::CallFinished(_) => {
                let begun = open.remove(&at);
                let now = WriteSpan::now(event);
                done.push(match begun {
                    Some(begun) => WriteSpan { from: begun.from, line: begun.line, ..now },
                    None => now,
                });
            }
            Fact::FilesRestored(_) => done.push(WriteSpan::now(event)),
            _ => {}
        }
    }
    done.extend(open.into_values());
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_names_what_it_writes_and_what_is_in_the_text_of_programs() {
        let line = LineWrites {
            writes: vec!["out".into(), "./x/y/z".into()],
            words: "open('made.txt', 'w'); import os".split(ends_name).filter_map(path_in).collect(),
            own: vec!["/w/own".into()],
            certain: false,
        };
        for (path, expected) in [
            ("/w/out", true),
            ("/w/out/deep/f", true),
            ("/w/x/y/z", true),
            ("/w/x/y", true),
            ("/w/x", true),
            ("/w/made.txt", true),
            ("/w/own", true),
            ("/w/other", false),
            ("/w/z", false),
        ] {
            assert_eq!(line.names(Path::new(path)), expected, "{path}");
        }
    }
}
