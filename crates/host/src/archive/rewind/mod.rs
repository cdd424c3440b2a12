//! Rewind of files, conversation, or both, to the state after a step; and undo of the last change.
//!
//! The changes of files form one sequence of events, across all branches of the conversation: a branch that was
//! dropped changed files all the same. So a rewind to a step undoes every change recorded after the end of that step,
//! newest first. Only what those changes left is replaced; a file with other changes since is a conflict, reported
//! and kept.

mod acts;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use lathe_changes::restore::{self, Planned, RestoreStep};
use lathe_changes::{TreeChange, net};
use lathe_journal::{Journal, SessionReader, live_branch};
use lathe_protocol::{
    Actor, CallId, CommandId, CommandTaken, Draft, Event, EventPlace, Fact, Rewound, RunNo, Seq, SessionId,
    SessionOpened, StepNo,
};
use lathe_redact::Redactor;
use serde::{Deserialize, Serialize};

use self::acts::{
    add_planned, calls_of, changes_after, conflict_reason, end_of, last_step, lost_after, lost_since,
    newest_act,
};
use crate::archive::Archive;
use crate::archive::claims::unnamed_changes;
use crate::archive::quarantine::Exchange;
use crate::archive::repository_guard::refuse_new_repositories;
use crate::archive::restoring::{Restoring, relative_name};
use crate::error::HostError;
use crate::session::folder::{current_opening, same_or_missing_folder};
use crate::session::now;

/// The parts that are rewound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindScope {
    Files,
    Conversation,
    Both,
}

impl RewindScope {
    fn files(self) -> bool {
        self != RewindScope::Conversation
    }

    fn conversation(self) -> bool {
        self != RewindScope::Files
    }
}

/// The choice between doing it and only showing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RewindAction {
    Apply,
    Preview,
}

/// The result of a rewind or undo, or of its preview.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewindReport {
    /// Restored files, each with what is done to it.
    pub restored: Vec<PathAct>,
    /// Paths that are left as they are, each with the reason.
    pub conflicts: Vec<PathAct>,
    /// Paths that another program or session wrote while a line ran: there is no change of this session to undo.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Restored files that were changed by a line which did not name them: another program may have written them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnamed: Vec<String>,
    /// Number of conversation steps that are dropped.
    pub steps: u32,
    /// A description of what was undone, for the user.
    pub about: String,
    /// Changes of that time that cannot be undone, each with the reason.
    pub not_undoable: Vec<String>,
    pub session: String,
    /// The folder that these files belong to.
    pub folder: String,
    /// The last step of the session.
    pub last: u32,
    /// For an undo: the flags of the `rewind` that leads back to the previous state of the files and the
    /// conversation. None if no rewind leads there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<String>,
    /// Paths that an undo of this one does not remove again: a repository that was put together from its parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAct {
    /// Relative to the workspace.
    pub path: String,
    pub act: String,
}

/// The whole history of a session.
struct SessionHistory {
    opened: SessionOpened,
    all: Vec<Event>,
    last_run: RunNo,
}

impl Archive {
    /// Rewinds a session to the state after step `to`. The session must not be in use. A repeated command does
    /// nothing: the report of the first one is returned.
    pub fn rewind(
        &self,
        id: &SessionId,
        to: StepNo,
        what: RewindScope,
        really: RewindAction,
        command: Option<CommandId>,
    ) -> Result<RewindReport, HostError> {
        let mut held = match really {
            RewindAction::Apply => Some(Journal::open(&self.home().sessions(), id, self.home().blobs()?)?),
            RewindAction::Preview => None,
        };
        match &mut held {
            Some(journal) => self.repair(journal)?,
            None => self.repair_leftovers(id)?,
        }
        let history = self.history(id)?;
        if let Some(report) = history.repeated_report(command.as_ref()) {
            return Ok(report);
        }
        let branch = live_branch(history.all.clone());
        let last = last_step(&branch);
        if to > last {
            return Err(HostError::NoSuchStep { at: to, last });
        }
        let end = end_of(&history, to);
        let mut report = RewindReport {
            not_undoable: lost_after(&history.all, end),
            ..history.empty_report(id, format!("to the end of step {to}"))
        };
        let rewound = (what.conversation() && to < last).then_some(to);
        report.steps = rewound.map_or(0, |to| last.0 - to.0);
        if what.files() {
            let later = || history.all.iter().filter(|event| event.seq > end);
            let changes = changes_after(&history.all, end);
            let recorded_by = later().map(|event| event.seq).collect();
            let plan = self.plan_restore(&history, &changes, &recorded_by, &mut report)?;
            report.add_others(later());
            let calls = calls_of(history.all.iter().filter(|event| event.seq > end));
            let mut exchange = self.exchange_for_rewind(id, end, &calls);
            exchange.fit_to_plan(&self.quarantine(), &plan, &mut report);
            if let Some(journal) = &mut held {
                let restoring = history.restoring(journal, &plan, &exchange, &report, &command);
                let restoring = Restoring { to: Some(to), rewound, ..restoring };
                self.restore_files(journal, &history, &restoring, &mut report)?;
            } else {
                exchange.add_preview(&mut report);
            }
        } else if let (Some(journal), Some(to)) = (&mut held, rewound) {
            append(journal, history.last_run, Rewound { to })?;
        }
        self.finish(held, &history, report, command)
    }

    /// Undoes the newest act that changed files and is not undone yet: a step's changes, or a rewind. A repeated
    /// command does nothing: the report of the first one is returned.
    pub fn undo(
        &self,
        id: &SessionId,
        really: RewindAction,
        command: Option<CommandId>,
    ) -> Result<RewindReport, HostError> {
        let mut held = match really {
            RewindAction::Apply => Some(Journal::open(&self.home().sessions(), id, self.home().blobs()?)?),
            RewindAction::Preview => None,
        };
        match &mut held {
            Some(journal) => self.repair(journal)?,
            None => self.repair_leftovers(id)?,
        }
        let history = self.history(id)?;
        if let Some(report) = history.repeated_report(command.as_ref()) {
            return Ok(report);
        }
        let kept: Vec<String> = self
            .entries_of_calls(id, &calls_of(history.all.iter()))
            .into_iter()
            .map(|kept| kept.call)
            .collect();
        let exchanging = self.exchanging_acts(id, &history.all);
        let Some(act) = newest_act(&history.all, &kept, &exchanging) else {
            return Err(HostError::NothingToUndo);
        };
        let mut report =
            RewindReport { back: act.back.clone(), ..history.empty_report(id, act.about.clone()) };
        report.not_undoable = lost_since(&history.all, &act);
        let is_of_act = |event: &&Event| {
            event.place.call.as_ref().is_some_and(|call| act.calls.iter().any(|known| known == call.as_str()))
        };
        let of_act = || history.all.iter().filter(is_of_act);
        let recorded_by = of_act().map(|event| event.seq).chain([act.seq]).collect();
        let plan = self.plan_restore(&history, &act.changes, &recorded_by, &mut report)?;
        report.add_others(of_act());
        let mut exchange = self.exchange_for_undo(id, &history.all, act.seq, &act.calls);
        exchange.fit_to_plan(&self.quarantine(), &plan, &mut report);
        if let Some(journal) = &mut held {
            let restoring = Restoring {
                undoes: Some(act.seq),
                rewind: act.rewind,
                ..history.restoring(journal, &plan, &exchange, &report, &command)
            };
            self.restore_files(journal, &history, &restoring, &mut report)?;
        } else {
            exchange.add_preview(&mut report);
        }
        self.finish(held, &history, report, command)
    }

    /// Closes the journal, with the command that requested the act and its report.
    fn finish(
        &self,
        held: Option<Journal>,
        history: &SessionHistory,
        report: RewindReport,
        command: Option<CommandId>,
    ) -> Result<RewindReport, HostError> {
        let report = report.redacted(&self.display_redactor());
        if let Some(mut journal) = held {
            if let Some(command) = command {
                append(&mut journal, history.last_run, command_receipt(command, &report))?;
            }
            journal.close()?;
            self.update_index(&history.opened.session);
        }
        Ok(report)
    }

    /// The plan that undoes these changes, which are listed oldest first. `recorded_by` are the events that record them.
    fn plan_restore(
        &self,
        history: &SessionHistory,
        changes: &[TreeChange],
        recorded_by: &BTreeSet<Seq>,
        report: &mut RewindReport,
    ) -> Result<Vec<Planned>, HostError> {
        let (root, blobs) = (&*same_or_missing_folder(&history.opened)?, self.home().blobs()?);
        let wrong = HostError::from;
        let mut wanted = net(changes);
        let (id, events) = (&history.opened.session, (history.all.as_slice(), recorded_by));
        let claims = self.mark_foreign_writes(id, root, events, &mut wanted);
        let mut plan = restore::plan(&wanted, &blobs, root).map_err(wrong)?;
        refuse_new_repositories(&mut plan, root);
        for planned in &plan {
            add_planned(root, planned, &claims, report);
        }
        let unnamed =
            unnamed_changes(root, events, &wanted).into_iter().map(|path| relative_name(root, &path));
        report.unnamed = unnamed.filter(|path| report.restored.iter().any(|act| act.path == *path)).collect();
        Ok(plan)
    }

    fn restore_files(
        &self,
        journal: &mut Journal,
        history: &SessionHistory,
        restoring: &Restoring,
        report: &mut RewindReport,
    ) -> Result<(), HostError> {
        let root = &*same_or_missing_folder(&history.opened)?;
        let (applied, exchanged) = self.restore(journal, &history.opened, restoring)?;
        exchanged.add_to_report(report);
        // A file that changed between the plan and its execution is a conflict too.
        for left in &applied.left {
            let path = relative_name(root, &left.wanted.path);
            report.restored.retain(|act| act.path != path);
            if report.conflicts.iter().all(|act| act.path != path) {
                report.conflicts.push(PathAct { path, act: conflict_reason(&left.step) });
            }
        }
        Ok(())
    }

    fn history(&self, id: &SessionId) -> Result<SessionHistory, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let all = reader.all()?;
        let opened = current_opening(&all)?;
        let last_run = all.iter().map(|event| event.place.run).max().unwrap_or_default();
        Ok(SessionHistory { opened, last_run, all })
    }
}

impl RewindReport {
    /// Adds the paths that others wrote while lines of these events ran: they are not touched.
    fn add_others<'a>(&mut self, events: impl Iterator<Item = &'a Event>) {
        let finished = events.filter_map(|event| match &event.fact {
            Fact::CallFinished(finished) => Some(finished),
            _ => None,
        });
        let root = PathBuf::from(&self.folder);
        for path in finished.flat_map(|finished| &finished.others) {
            let path = relative_name(&root, Path::new(path));
            let is_told = self.conflicts.iter().any(|act| act.path == path);
            if !is_told && !self.others.contains(&path) {
                self.others.push(path);
            }
        }
    }

    /// The report with secrets in names redacted: all of it is shown to the user.
    fn redacted(mut self, screen: &Redactor) -> Self {
        let clean = |text: &mut String| {
            if let Cow::Owned(hidden) = screen.redact_text(text) {
                *text = hidden;
            }
        };
        self.restored.iter_mut().chain(&mut self.conflicts).for_each(|act| clean(&mut act.path));
        self.not_undoable.iter_mut().chain(&mut self.others).for_each(clean);
        self.stays.iter_mut().chain(&mut self.unnamed).for_each(clean);
        self
    }
}

impl SessionHistory {
    /// The report of a command that was done before.
    fn repeated_report(&self, command: Option<&CommandId>) -> Option<RewindReport> {
        let command = command?;
        let receipt = self.all.iter().find_map(|event| match &event.fact {
            Fact::CommandTaken(taken) if taken.command == *command => taken.receipt.as_deref(),
            _ => None,
        });
        serde_json::from_str(receipt?).ok()
    }

    /// The note of what a plan restores, without the reason for it.
    fn restoring(
        &self,
        journal: &Journal,
        plan: &[Planned],
        exchange: &Exchange,
        report: &RewindReport,
        command: &Option<CommandId>,
    ) -> Restoring {
        let chosen = plan.iter().filter(|planned| planned.step == RestoreStep::Restore);
        let by = CallId::new("rewind");
        let (back, again) = exchange.ids();
        Restoring {
            back,
            again,
            pid: std::process::id(),
            after: journal.last(),
            run: self.last_run,
            to: None,
            undoes: None,
            rewind: None,
            rewound: None,
            taken: command.clone().map(|command| command_receipt(command, report)),
            conflicts: report.conflicts.iter().map(|act| act.path.clone()).collect(),
            changes: chosen.map(|planned| planned.wanted.as_change().into_change(by.clone())).collect(),
        }
    }

    fn empty_report(&self, id: &SessionId, about: String) -> RewindReport {
        RewindReport {
            about,
            session: id.to_string(),
            folder: self.opened.workspace.clone(),
            last: last_step(&self.all).0,
            ..RewindReport::default()
        }
    }
}

/// The receipt of a command, with its report.
fn command_receipt(command: CommandId, report: &RewindReport) -> CommandTaken {
    CommandTaken { command, actor: Actor::Person, receipt: serde_json::to_string(report).ok() }
}

fn append(journal: &mut Journal, run: RunNo, fact: impl Into<Fact>) -> Result<(), HostError> {
    journal.append(now(), Draft { place: EventPlace::in_run(run), fact: fact.into() })?;
    Ok(())
}
