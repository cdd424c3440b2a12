//! The report of a run: its steps, tokens, time and changes, as a pure function of its events.

use std::collections::BTreeMap;

use lathe_blobs::Blobs;
use lathe_changes::{RestoreTarget, TreeChange, net};
use lathe_edit::{diff_stat, unified_diff};
use lathe_journal::SessionReader;
use lathe_protocol::{
    ApprovalAnswer, CallId, Change, Decision, Digest, Event, Fact, Mode, RunNo, Seq, SessionId, StepNo,
    TaskFinished, Timestamp, ToolErrorKind, Usage, Verdict,
};
use lathe_redact::Redactor;
use lathe_tools::{AsideNote, aside_notes};
use lathe_views::FileDiff;
use serde::Serialize;

use crate::archive::Archive;
use crate::error::HostError;
use crate::session::secrets::redacted_content;

pub struct RunReport {
    pub run: RunNo,
    pub task: String,
    pub steps: u32,
    pub calls: u32,
    /// Calls, and commands of lines, that the gate denied.
    pub denials: Vec<Denial>,
    /// The number of those that another mode would have allowed.
    pub denied_by_mode: u32,
    /// Approval requests that the user answered with no.
    pub refused: u32,
    pub usage: Usage,
    pub began: Option<Timestamp>,
    /// Milliseconds of the parts before the run was resumed.
    earlier_ms: i64,
    /// The beginning of the current part, and its last event so far.
    part: Option<(Timestamp, Timestamp)>,
    pub finished: Option<TaskFinished>,
    /// Net changes by path: the first content and the last.
    changes: BTreeMap<String, (Option<Digest>, Option<Digest>)>,
    pub(crate) workspace: String,
    mode: Option<Mode>,
    /// The notes about files set aside, in the results of calls.
    pub(crate) aside_notes: Vec<AsideNote>,
    /// Paths that were changed by other programs or sessions while calls ran.
    pub others: Vec<String>,
    /// Repositories that calls left broken, with what can be done.
    pub broken: Vec<String>,
    session: Option<SessionId>,
    ended_calls: Vec<String>,
}

/// A call or command that the gate denied, with the reason.
#[derive(Debug, Clone, Serialize)]
pub struct Denial {
    pub step: Option<StepNo>,
    pub call: Option<CallId>,
    pub about: String,
    pub rule: String,
    pub reason: String,
}

/// The report of a session's last run, or of the given one.
pub fn run_report(events: &[Event], run: Option<RunNo>) -> RunReport {
    run_report_since(events, run, Seq(0))
}

/// The same for a command that resumed the run after an event. Only denials and refusals since then are reported,
/// because the user may have answered the earlier denials by choosing another mode.
pub fn run_report_since(events: &[Event], run: Option<RunNo>, since: Seq) -> RunReport {
    let run = run.or_else(|| events.iter().map(|event| event.place.run).max()).unwrap_or_default();
    let mut report = RunReport {
        run,
        task: String::new(),
        steps: 0,
        calls: 0,
        denials: Vec::new(),
        denied_by_mode: 0,
        refused: 0,
        usage: Usage::default(),
        began: None,
        earlier_ms: 0,
        part: None,
        finished: None,
        changes: BTreeMap::new(),
        workspace: String::new(),
        mode: None,
        aside_notes: Vec::new(),
        others: Vec::new(),
        broken: Vec::new(),
        session: None,
        ended_calls: Vec::new(),
    };
    for event in events {
        if let Fact::SessionOpened(opened) = &event.fact {
            report.workspace.clone_from(&opened.workspace);
            report.session = Some(opened.session.clone());
            report.mode = Some(opened.options.mode);
        }
        if let Fact::OptionsChanged(changed) = &event.fact {
            report.mode = Some(changed.options.mode);
        }
        if event.place.run == run {
            report.take(event, event.seq > since);
        }
    }
    // The advice never names the mode that is already set.
    if report.mode == Some(Mode::FullAuto) {
        report.denied_by_mode = 0;
    }
    report
}

impl RunReport {
    fn take(&mut self, event: &Event, is_new: bool) {
        self.count_time(event);
        event.fact.changes().iter().for_each(|change| self.add_change(change));
        match &event.fact {
            Fact::TaskGiven(given) => {
                self.task.clone_from(&given.text);
                self.began = Some(event.at);
            }
            Fact::ModelAnswered(answered) => {
                self.steps += 1;
                self.usage += answered.usage;
            }
            Fact::ModelFailed(failed) => self.usage += failed.lost,
            Fact::RunResumed(_) => {
                self.denials.clear();
                (self.denied_by_mode, self.refused, self.finished) = (0, 0, None);
            }
            Fact::CallDecided(decided) if is_new => self.add_denial(event, &decided.about, &decided.decision),
            Fact::CommandRan(ran) if is_new => self.add_denial(event, &ran.argv.join(" "), &ran.decision),
            Fact::ApprovalGiven(given) if is_new && given.answer == ApprovalAnswer::No => self.refused += 1,
            Fact::CallFinished(finished) => {
                self.calls += 1;
                self.aside_notes.extend(aside_notes(&finished.text));
                self.others.extend(finished.others.iter().cloned());
                self.broken.extend(finished.broken.iter().cloned());
                self.ended_calls.extend(event.place.call.as_ref().map(|call| call.as_str().to_owned()));
            }
            Fact::TaskFinished(finished) => self.finished = Some(finished.clone()),
            _ => {}
        }
    }

    fn add_denial(&mut self, event: &Event, about: &str, decision: &Decision) {
        if decision.verdict != Verdict::Deny {
            return;
        }
        let by_mode = decision.rule.starts_with("mode.") || decision.rule == "headless";
        self.denied_by_mode += u32::from(by_mode && self.mode != Some(Mode::FullAuto));
        self.denials.push(Denial {
            step: event.place.step,
            call: event.place.call.clone(),
            about: about.to_owned(),
            rule: decision.rule.clone(),
            reason: decision.reason.clone(),
        });
    }

    fn add_change(&mut self, change: &Change) {
        if change.is_folder() {
            return;
        }
        let known = self.changes.entry(change.path.clone());
        known.or_insert_with(|| (change.before.clone(), None)).1.clone_from(&change.after);
    }

    /// Counts the time of the run itself; what the user does with the session afterwards is not counted.
    fn count_time(&mut self, event: &Event) {
        match &event.fact {
            Fact::TaskGiven(_) => self.part = Some((event.at, event.at)),
            Fact::RunResumed(_) => {
                self.earlier_ms += self.part_ms();
                self.part = Some((event.at, event.at));
            }
            // Written by the repair at the next reading of the session.
            Fact::CallFinished(finished)
                if finished.error.as_ref().is_some_and(|error| error.kind == ToolErrorKind::Interrupted) => {}
            Fact::ModelAsked(_)
            | Fact::ModelAnswered(_)
            | Fact::ModelFailed(_)
            | Fact::CallDecided(_)
            | Fact::CallStarted(_)
            | Fact::CallFinished(_)
            | Fact::CommandRan(_)
            | Fact::QuestionAsked(_)
            | Fact::ApprovalAsked(_)
            | Fact::ApprovalGiven(_)
            | Fact::ApprovalExpired(_)
            | Fact::Reflected(_)
            | Fact::Reminded(_)
            | Fact::Steered(_)
            | Fact::CancelAsked(_)
            | Fact::TaskFinished(_)
                if self.finished.is_none() =>
            {
                self.part = self.part.map(|(from, _)| (from, event.at));
            }
            _ => {}
        }
    }

    fn part_ms(&self) -> i64 {
        self.part.map_or(0, |(from, to)| to.as_millisecond() - from.as_millisecond())
    }

    pub fn seconds(&self) -> f64 {
        (self.earlier_ms + self.part_ms()) as f64 / 1000.0
    }
}

impl Archive {
    /// The changes of a run as diffs to be shown, by path. Secrets in them are redacted.
    pub fn diffs(&self, report: &RunReport) -> Result<Vec<FileDiff>, HostError> {
        let screen = self.display_redactor();
        let blobs = self.home().blobs()?;
        let mut diffs: Vec<FileDiff> = report
            .changes
            .iter()
            .filter(|(_, (before, after))| before != after)
            .map(|(path, (before, after))| {
                let shown = name_below(&report.workspace, path);
                let shown = screen.redact_text(shown);
                let sides = content(&blobs, before.as_ref())
                    .and_then(|before| Ok((before, content(&blobs, after.as_ref())?)));
                let (before, after) = match sides {
                    Ok(sides) => sides,
                    Err(LostContent) => {
                        let diff = lost_diff(&shown);
                        return FileDiff { path: shown.into_owned(), diff, added: 0, removed: 0, kept: None };
                    }
                };
                let stat = diff_stat(before.as_deref(), after.as_deref());
                let (before, after) =
                    (redacted_content(Some(&screen), before), redacted_content(Some(&screen), after));
                FileDiff {
                    diff: unified_diff(before.as_deref(), after.as_deref(), &shown),
                    path: shown.into_owned(),
                    added: stat.added,
                    removed: stat.removed,
                    kept: None,
                }
            })
            .collect();
        diffs.extend(self.kept_diffs(report));
        diffs.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(diffs)
    }

    /// Paths that calls removed and that only the quarantine holds.
    fn kept_diffs(&self, report: &RunReport) -> Vec<FileDiff> {
        let (Some(session), screen) = (&report.session, self.display_redactor()) else { return Vec::new() };
        let quarantine = self.quarantine();
        let mut diffs = Vec::new();
        for kept in self.entries_of_calls(session, &report.ended_calls) {
            for path in quarantine.missing_paths(&kept) {
                let path =
                    screen.redact_text(name_below(&report.workspace, &path.to_string_lossy())).into_owned();
                let way = format!("`lathe undo`, or `lathe quarantine restore {}`, brings it back", kept.id);
                let diff = format!("{path}: taken away, and kept in the quarantine: {way}\n");
                diffs.push(FileDiff { path, diff, added: 0, removed: 0, kept: Some(kept.id.clone()) });
            }
        }
        diffs
    }

    /// The changes of a session from its beginning to now, on every branch of its conversation.
    pub fn session_diffs(&self, id: &SessionId) -> Result<Vec<FileDiff>, HostError> {
        self.repair_leftovers(id)?;
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let (mut report, mut changes) = (run_report(&[], None), Vec::new());
        for event in reader.all()? {
            if let Fact::SessionOpened(opened) = &event.fact {
                report.workspace.clone_from(&opened.workspace);
                report.session = Some(opened.session.clone());
            }
            if matches!(event.fact, Fact::CallFinished(_)) {
                report.ended_calls.extend(event.place.call.as_ref().map(|call| call.as_str().to_owned()));
            }
            event.fact.changes().iter().for_each(|change| report.add_change(change));
            changes.extend(event.fact.changes().iter().map(TreeChange::from));
        }
        let mut diffs = self.diffs(&report)?;
        diffs.extend(self.mode_diffs(&report.workspace, &changes));
        diffs.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(diffs)
    }

    /// The paths of which only the mode changed, in git's notation.
    fn mode_diffs(&self, workspace: &str, changes: &[TreeChange]) -> Vec<FileDiff> {
        let screen = self.display_redactor();
        let other_mode = |wanted: RestoreTarget| {
            let (now, before) = (wanted.now?, wanted.want?);
            if now.digest != before.digest || now.mode == before.mode {
                return None;
            }
            let path =
                screen.redact_text(name_below(workspace, &wanted.path.display().to_string())).into_owned();
            let (old, new) = (before.mode, now.mode);
            let diff = format!("diff --git a/{path} b/{path}\nold mode {old:06o}\nnew mode {new:06o}\n");
            Some(FileDiff { path, diff, added: 0, removed: 0, kept: None })
        };
        net(changes).into_iter().filter_map(other_mode).collect()
    }

    /// The changes of a finished call of a session in this folder, from the journal alone.
    pub fn recorded_diff(&self, event: &Event, workspace: &str) -> Result<String, HostError> {
        if changes_of(event).next().is_none() {
            return Ok(String::new());
        }
        let blobs = self.home().blobs()?;
        Ok(event_diff(event, workspace, &self.display_redactor(), |id| blobs.get(id).ok().flatten()))
    }
}

fn shown_diff(screen: &Redactor, before: Option<Vec<u8>>, after: Option<Vec<u8>>, path: &str) -> String {
    let (before, after) = (redacted_content(Some(screen), before), redacted_content(Some(screen), after));
    unified_diff(before.as_deref(), after.as_deref(), &screen.redact_text(path))
}

/// The changes of a finished call as one diff to be shown; empty for any other event. `content` reads recorded
/// content.
pub(crate) fn event_diff(
    event: &Event,
    workspace: &str,
    screen: &Redactor,
    content: impl Fn(&Digest) -> Option<Vec<u8>>,
) -> String {
    let side = |id: Option<&Digest>| match id.map(&content) {
        None => Ok(None),
        Some(Some(content)) => Ok(Some(content)),
        Some(None) => Err(LostContent),
    };
    let diffs = changes_of(event).map(|change| {
        let path = name_below(workspace, &change.path);
        match (side(change.before.as_ref()), side(change.after.as_ref())) {
            (Ok(before), Ok(after)) => shown_diff(screen, before, after, path),
            (Err(LostContent), _) | (_, Err(LostContent)) => lost_diff(&screen.redact_text(path)),
        }
    });
    diffs.collect()
}

/// A path as named by a user who works in the folder.
pub(crate) fn name_below<'a>(workspace: &str, path: &'a str) -> &'a str {
    path.strip_prefix(workspace)
        .and_then(|rest| if workspace.ends_with('/') { Some(rest) } else { rest.strip_prefix('/') })
        .filter(|rest| !rest.is_empty())
        .unwrap_or(path)
}

/// Changes shown of one call: a line may change thousands of files.
const SHOWN: usize = 50;

fn changes_of(event: &Event) -> impl Iterator<Item = &Change> {
    let changes: &[Change] = match &event.fact {
        Fact::CallFinished(finished) => &finished.changes,
        _ => &[],
    };
    changes.iter().filter(|change| !change.is_folder()).take(SHOWN)
}

/// Marks a recorded content that is damaged or no longer stored.
struct LostContent;

fn content(blobs: &Blobs, id: Option<&Digest>) -> Result<Option<Vec<u8>>, LostContent> {
    match id.map(|id| blobs.get(id)) {
        None => Ok(None),
        Some(Ok(Some(content))) => Ok(Some(content)),
        Some(Ok(None) | Err(_)) => Err(LostContent),
    }
}

/// The text in place of a diff that cannot be made.
pub(crate) fn lost_diff(path: &str) -> String {
    format!(
        "{path}: it changed, but the recorded content is damaged or missing, so the change cannot be shown\n"
    )
}
