//! Acts of sessions on files, and the report about undoing them.

use std::path::Path;

use lathe_changes::TreeChange;
use lathe_changes::restore::{Planned, RestoreStep};
use lathe_journal::live_branch;
use lathe_protocol::{Event, EventPlace, Fact, Rewound, Seq, StepNo};

use super::{PathAct, RewindReport, SessionHistory};
use crate::archive::claims::Claim;
use crate::archive::restoring::relative_name;
use crate::session::now;

/// Changes of calls after an event that cannot be undone.
pub(super) fn lost_after(events: &[Event], end: Seq) -> Vec<String> {
    let later = events.iter().filter(|event| event.seq > end);
    later.flat_map(|event| event.fact.not_undoable()).collect()
}

/// The changes of an act's step, and of the steps after it, that cannot be undone.
pub(super) fn lost_since(events: &[Event], act: &Act) -> Vec<String> {
    let of = |event: &Event| (event.place.run, event.place.step);
    let step = events.iter().find(|event| event.seq == act.seq).map(of).filter(|(_, step)| step.is_some());
    let first = events.iter().find(|event| step == Some(of(event))).map_or(act.seq, |event| event.seq);
    lost_after(events, Seq(first.0.saturating_sub(1)))
}

pub(super) fn last_step(events: &[Event]) -> StepNo {
    events.iter().filter_map(|event| event.place.step).max().unwrap_or_default()
}

/// The last event that belongs to the state after step `to`: the end of what a rewind to it would keep.
pub(super) fn end_of(history: &SessionHistory, to: StepNo) -> Seq {
    let rewind = Event {
        seq: Seq(u64::MAX),
        at: now(),
        place: EventPlace::in_run(history.last_run),
        fact: Rewound { to }.into(),
    };
    let left = live_branch(history.all.iter().cloned().chain([rewind]));
    // Files restored after the step are not part of its state: a rewind to the step undoes that restoring.
    let is_own = |event: &&Event| !matches!(event.fact, Fact::FilesRestored(_) | Fact::RewindUndone(_));
    left.iter().rev().skip(1).find(is_own).map_or(Seq(0), |event| event.seq)
}

/// Every change after an event, on every branch.
pub(super) fn changes_after(events: &[Event], end: Seq) -> Vec<TreeChange> {
    let later = events.iter().filter(|event| event.seq > end);
    later.flat_map(|event| event.fact.changes()).map(TreeChange::from).collect()
}

/// An act that changed files.
pub(super) struct Act {
    /// Its last event.
    pub(super) seq: Seq,
    pub(super) about: String,
    pub(super) changes: Vec<TreeChange>,
    /// The rewind of the conversation that went with it.
    pub(super) rewind: Option<Seq>,
    /// The calls that made the changes.
    pub(super) calls: Vec<String>,
    /// The flags of the `rewind` that leads back to the state after it.
    pub(super) back: Option<String>,
}

/// The calls that ended in these events.
pub(super) fn calls_of<'a>(events: impl Iterator<Item = &'a Event>) -> Vec<String> {
    let ended = events.filter(|event| matches!(event.fact, Fact::CallFinished(_)));
    ended.filter_map(|event| Some(event.place.call.as_ref()?.as_str().to_owned())).collect()
}

/// The newest act that changed files and is not undone yet. `kept` are the calls for which the quarantine holds
/// something, `exchanging` the acts that moved something out of it or into it.
pub(super) fn newest_act(events: &[Event], kept: &[String], exchanging: &[Seq]) -> Option<Act> {
    let undone: Vec<Seq> = events
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::FilesRestored(restored) => restored.undoes,
            _ => None,
        })
        .collect();
    let conversation_undone = |rewind: Seq| {
        events
            .iter()
            .any(|event| matches!(&event.fact, Fact::RewindUndone(undone) if undone.rewind == rewind))
    };
    // The undo of a call also undoes what its step changed before the call ended, including background changes, and
    // names the call.
    let step_of = |event: &Event| (event.place.run, event.place.step);
    let is_call = |event: &Event| matches!(event.fact, Fact::CallFinished(_));
    let is_doing = |event: &Event| is_call(event) || matches!(event.fact, Fact::CommandRan(_));
    let calls = events.iter().filter(|event| undone.contains(&event.seq) && is_call(event));
    let steps: Vec<_> = calls.map(|event| (event.seq, step_of(event))).collect();
    let is_undone = |event: &Event| {
        let with_call = |(last, step): &(Seq, _)| event.seq < *last && step_of(event) == *step;
        undone.contains(&event.seq) || (is_doing(event) && steps.iter().any(with_call))
    };
    for (at, event) in events.iter().enumerate().rev() {
        if is_undone(event) {
            continue;
        }
        match &event.fact {
            Fact::Rewound(rewound) if !conversation_undone(event.seq) => {
                let before = at.checked_sub(1).and_then(|at| events.get(at));
                let files = before.filter(|before| matches!(&before.fact, Fact::FilesRestored(restored) if restored.to == Some(rewound.to)));
                let changes = files.map(|files| files.fact.changes().iter().map(TreeChange::from).collect());
                return Some(Act {
                    seq: files.map_or(event.seq, |files| files.seq),
                    about: format!("the rewind to step {}", rewound.to),
                    changes: changes.unwrap_or_default(),
                    rewind: Some(event.seq),
                    calls: Vec::new(),
                    back: Some(match files {
                        Some(_) => format!("--to {}", rewound.to),
                        None => format!("--to {} --conversation", rewound.to),
                    }),
                });
            }
            Fact::FilesRestored(restored)
                if restored.undoes.is_none()
                    && (!restored.changes.is_empty() || exchanging.contains(&event.seq)) =>
            {
                return Some(Act {
                    seq: event.seq,
                    about: match restored.to {
                        Some(to) => format!("the rewind of files to step {to}"),
                        None => "the rejection of edits".to_owned(),
                    },
                    changes: restored.changes.iter().map(TreeChange::from).collect(),
                    rewind: None,
                    calls: Vec::new(),
                    back: restored.to.map(|to| format!("--to {to} --files")),
                });
            }
            Fact::CommandRan(ran) if !event.fact.changes().is_empty() => {
                let name = ran.argv.first().map_or("a command", String::as_str);
                return Some(Act {
                    seq: event.seq,
                    about: format!("what `{name}` wrote in the background"),
                    changes: ran.changes.iter().map(TreeChange::from).collect(),
                    rewind: None,
                    calls: Vec::new(),
                    back: Some(format!("--to {} --files", last_step(events))),
                });
            }
            Fact::CallFinished(finished)
                if !finished.changes.is_empty()
                    || event
                        .place
                        .call
                        .as_ref()
                        .is_some_and(|call| kept.iter().any(|kept| kept == call.as_str())) =>
            {
                // All calls of the step whose changes are not undone yet.
                let same = |other: &&Event| {
                    other.place.step == event.place.step
                        && other.place.run == event.place.run
                        && !is_undone(other)
                };
                let changes = events.iter().filter(same).flat_map(|event| event.fact.changes());
                let step = event.place.step.unwrap_or_default();
                return Some(Act {
                    seq: event.seq,
                    about: format!("what step {step} changed"),
                    changes: changes.map(TreeChange::from).collect(),
                    rewind: None,
                    calls: calls_of(events.iter().filter(same)),
                    back: Some(format!("--to {step} --files")),
                });
            }
            _ => {}
        }
    }
    None
}

pub(super) fn add_planned(root: &Path, planned: &Planned, claims: &[Claim], report: &mut RewindReport) {
    let path = relative_name(root, &planned.wanted.path);
    let act = match (&planned.wanted.now, &planned.wanted.want) {
        (_, None) => "removed",
        (None, Some(_)) => "brought back",
        (Some(now), Some(want)) if now.digest == want.digest && now.mode != want.mode => "mode put back",
        (Some(now), Some(want)) if now.digest == want.digest && now.attributes != want.attributes => {
            "owner or attributes put back"
        }
        (Some(now), Some(want)) if now.digest == want.digest => "names put back",
        (Some(_), Some(_)) => "put back",
    };
    let is_of_path = |claim: &Claim| claim.path == planned.wanted.path;
    match &planned.step {
        RestoreStep::Restore => report.restored.push(PathAct { path, act: act.to_owned() }),
        RestoreStep::AlreadyThere => {}
        RestoreStep::Conflict { .. } if claims.iter().any(is_of_path) => {
            let other = claims.iter().find(|claim| is_of_path(claim));
            let other = other.map_or_else(String::new, |claim| claim.session.to_string());
            let act = format!("session {other} was at work at the same time, and wrote it or may have");
            report.conflicts.push(PathAct { path, act });
        }
        step => report.conflicts.push(PathAct { path, act: conflict_reason(step) }),
    }
}

pub(super) fn conflict_reason(step: &RestoreStep) -> String {
    match step {
        RestoreStep::Restore | RestoreStep::AlreadyThere => "changed while it was put back".to_owned(),
        RestoreStep::Conflict { found: None } => "somebody removed it meanwhile".to_owned(),
        RestoreStep::Conflict { found: Some(_) } => "somebody changed it meanwhile".to_owned(),
        RestoreStep::MissingBlob { .. } => "its earlier content is no longer stored".to_owned(),
        RestoreStep::FolderInUse => "the folder holds files somebody else made".to_owned(),
        RestoreStep::Refused => "it is not a path that is put back".to_owned(),
        RestoreStep::Failed { why } => why.clone(),
    }
}
