//! Going back: files, conversation, or both, to the state after a step; and taking back the last change.
//!
//! What happened to files is one line of events, whatever branch of the conversation they belong to: a branch that was left
//! changed files all the same. So the way back to a step undoes every change recorded after the end of that step, newest
//! first. Only what those changes left is replaced; what somebody else changed meanwhile is a conflict, shown and kept.

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
    calls_of, changes_after, end_of, last_step, lost_after, lost_since, newest_act, note, reason,
};
use crate::archive::Archive;
use crate::archive::claims::unnamed;
use crate::archive::layouts::leave_repositories;
use crate::archive::quarantine::Exchange;
use crate::archive::restoring::{Restoring, shown};
use crate::error::HostError;
use crate::session::folder::{folder_or_gone, opened_in};
use crate::session::now;

/// What goes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Files,
    Conversation,
    Both,
}

impl What {
    fn files(self) -> bool {
        self != What::Conversation
    }

    fn conversation(self) -> bool {
        self != What::Files
    }
}

/// Whether it is done or only shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Really {
    Do,
    Preview,
}

/// What going back does, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undone {
    /// Files put back, each with what is done to it.
    pub restored: Vec<PathAct>,
    /// Paths that are left as they are, each with the reason.
    pub conflicts: Vec<PathAct>,
    /// Paths that somebody else wrote while a line ran: there is nothing of ours to take back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<String>,
    /// Files put back that the line did not name which changed them: somebody else may have written them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unnamed: Vec<String>,
    /// Steps of the conversation that are left behind.
    pub steps: u32,
    /// What was taken back, for people.
    pub about: String,
    /// What changed in that time and cannot be taken back, with the reason.
    pub not_undoable: Vec<String>,
    pub session: String,
    /// The folder whose files these are.
    pub folder: String,
    /// The last step there is.
    pub last: u32,
    /// Of an undo: the flags of the `rewind` that leads back to where the files and the conversation were. None if no rewind
    /// leads there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<String>,
    /// The paths that the way back does not take away again: a repository that was made whole from its parts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAct {
    /// From the workspace on.
    pub path: String,
    pub act: String,
}

/// The whole story of a session.
struct Story {
    opened: SessionOpened,
    all: Vec<Event>,
    last_run: RunNo,
}

impl Archive {
    /// The state after step `to`. The session must not be in use. A command that is repeated does nothing: what it did is
    /// told again.
    pub fn rewind(
        &self,
        id: &SessionId,
        to: StepNo,
        what: What,
        really: Really,
        command: Option<CommandId>,
    ) -> Result<Undone, HostError> {
        let mut held = match really {
            Really::Do => Some(Journal::open(&self.home().sessions(), id, self.home().blobs()?)?),
            Really::Preview => None,
        };
        match &mut held {
            Some(journal) => self.mend(journal)?,
            None => self.mend_left(id)?,
        }
        let story = self.story(id)?;
        if let Some(undone) = story.done_by(command.as_ref()) {
            return Ok(undone);
        }
        let branch = live_branch(story.all.clone());
        let last = last_step(&branch);
        if to > last {
            return Err(HostError::NoSuchStep { at: to, last });
        }
        let end = end_of(&story, to);
        let mut undone = Undone {
            not_undoable: lost_after(&story.all, end),
            ..story.undone(id, format!("to the end of step {to}"))
        };
        let rewound = (what.conversation() && to < last).then_some(to);
        undone.steps = rewound.map_or(0, |to| last.0 - to.0);
        if what.files() {
            let later = || story.all.iter().filter(|event| event.seq > end);
            let changes = changes_after(&story.all, end);
            let told = later().map(|event| event.seq).collect();
            let plan = self.plan_back(&story, &changes, &told, &mut undone)?;
            undone.leave_to_others(later());
            let calls = calls_of(story.all.iter().filter(|event| event.seq > end));
            let mut exchange = self.exchange_back_to(id, end, &calls);
            exchange.fit(&self.quarantine(), &plan, &mut undone);
            if let Some(journal) = &mut held {
                let restoring = story.restoring(journal, &plan, &exchange, &undone, &command);
                let restoring = Restoring { to: Some(to), rewound, ..restoring };
                self.put_back(journal, &story, &restoring, &mut undone)?;
            } else {
                exchange.preview(&mut undone);
            }
        } else if let (Some(journal), Some(to)) = (&mut held, rewound) {
            append(journal, story.last_run, Rewound { to })?;
        }
        self.done(held, &story, undone, command)
    }

    /// Takes back the newest act that changed files and was not taken back yet: a step's changes, or a rewind. A command that
    /// is repeated does nothing: what it did is told again.
    pub fn undo(
        &self,
        id: &SessionId,
        really: Really,
        command: Option<CommandId>,
    ) -> Result<Undone, HostError> {
        let mut held = match really {
            Really::Do => Some(Journal::open(&self.home().sessions(), id, self.home().blobs()?)?),
            Really::Preview => None,
        };
        match &mut held {
            Some(journal) => self.mend(journal)?,
            None => self.mend_left(id)?,
        }
        let story = self.story(id)?;
        if let Some(undone) = story.done_by(command.as_ref()) {
            return Ok(undone);
        }
        let kept: Vec<String> =
            self.kept_of(id, &calls_of(story.all.iter())).into_iter().map(|kept| kept.call).collect();
        let exchanging = self.exchanging_acts(id, &story.all);
        let Some(act) = newest_act(&story.all, &kept, &exchanging) else {
            return Err(HostError::NothingToUndo);
        };
        let mut undone = Undone { back: act.back.clone(), ..story.undone(id, act.about.clone()) };
        undone.not_undoable = lost_since(&story.all, &act);
        let is_of_act = |event: &&Event| {
            event.place.call.as_ref().is_some_and(|call| act.calls.iter().any(|known| known == call.as_str()))
        };
        let of_act = || story.all.iter().filter(is_of_act);
        let told = of_act().map(|event| event.seq).chain([act.seq]).collect();
        let plan = self.plan_back(&story, &act.changes, &told, &mut undone)?;
        undone.leave_to_others(of_act());
        let mut exchange = self.exchange_undoing(id, &story.all, act.seq, &act.calls);
        exchange.fit(&self.quarantine(), &plan, &mut undone);
        if let Some(journal) = &mut held {
            let restoring = Restoring {
                undoes: Some(act.seq),
                rewind: act.rewind,
                ..story.restoring(journal, &plan, &exchange, &undone, &command)
            };
            self.put_back(journal, &story, &restoring, &mut undone)?;
        } else {
            exchange.preview(&mut undone);
        }
        self.done(held, &story, undone, command)
    }

    /// Closes the journal of what was done, with the command that wanted it.
    fn done(
        &self,
        held: Option<Journal>,
        story: &Story,
        undone: Undone,
        command: Option<CommandId>,
    ) -> Result<Undone, HostError> {
        let undone = undone.cleaned(&self.screen());
        if let Some(mut journal) = held {
            if let Some(command) = command {
                append(&mut journal, story.last_run, taken(command, &undone))?;
            }
            journal.close()?;
            self.note(&story.opened.session);
        }
        Ok(undone)
    }

    /// The effect on the tree of undoing changes, oldest first in the list. `told` are the events that tell them.
    fn plan_back(
        &self,
        story: &Story,
        changes: &[TreeChange],
        told: &BTreeSet<Seq>,
        undone: &mut Undone,
    ) -> Result<Vec<Planned>, HostError> {
        let (root, blobs) = (&*folder_or_gone(&story.opened)?, self.home().blobs()?);
        let wrong = HostError::from;
        let mut wanted = net(changes);
        let (id, events) = (&story.opened.session, (story.all.as_slice(), told));
        let claims = self.leave_to_other_sessions(id, root, events, &mut wanted);
        let mut plan = restore::plan(&wanted, &blobs, root).map_err(wrong)?;
        leave_repositories(&mut plan, root);
        for planned in &plan {
            note(root, planned, &claims, undone);
        }
        let unnamed = unnamed(root, events, &wanted).into_iter().map(|path| shown(root, &path));
        undone.unnamed = unnamed.filter(|path| undone.restored.iter().any(|act| act.path == *path)).collect();
        Ok(plan)
    }

    fn put_back(
        &self,
        journal: &mut Journal,
        story: &Story,
        restoring: &Restoring,
        undone: &mut Undone,
    ) -> Result<(), HostError> {
        let root = &*folder_or_gone(&story.opened)?;
        let (applied, exchanged) = self.restore(journal, &story.opened, restoring)?;
        exchanged.tell(undone);
        // What changed between the plan and the act is a conflict too.
        for left in &applied.left {
            let path = shown(root, &left.wanted.path);
            undone.restored.retain(|act| act.path != path);
            if undone.conflicts.iter().all(|act| act.path != path) {
                undone.conflicts.push(PathAct { path, act: reason(&left.step) });
            }
        }
        Ok(())
    }

    fn story(&self, id: &SessionId) -> Result<Story, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let all = reader.all()?;
        let opened = opened_in(&all)?;
        let last_run = all.iter().map(|event| event.place.run).max().unwrap_or_default();
        Ok(Story { opened, last_run, all })
    }
}

impl Undone {
    /// Names what somebody else wrote while lines of these events ran: it is not touched.
    fn leave_to_others<'a>(&mut self, events: impl Iterator<Item = &'a Event>) {
        let finished = events.filter_map(|event| match &event.fact {
            Fact::CallFinished(finished) => Some(finished),
            _ => None,
        });
        let root = PathBuf::from(&self.folder);
        for path in finished.flat_map(|finished| &finished.others) {
            let path = shown(&root, Path::new(path));
            let is_told = self.conflicts.iter().any(|act| act.path == path);
            if !is_told && !self.others.contains(&path) {
                self.others.push(path);
            }
        }
    }

    /// The same with placeholders for secrets in names: all of it is for showing.
    fn cleaned(mut self, screen: &Redactor) -> Self {
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

impl Story {
    /// The answer to a command that was done before.
    fn done_by(&self, command: Option<&CommandId>) -> Option<Undone> {
        let command = command?;
        let receipt = self.all.iter().find_map(|event| match &event.fact {
            Fact::CommandTaken(taken) if taken.command == *command => taken.receipt.as_deref(),
            _ => None,
        });
        serde_json::from_str(receipt?).ok()
    }

    /// What a plan puts back, and nothing yet of why.
    fn restoring(
        &self,
        journal: &Journal,
        plan: &[Planned],
        exchange: &Exchange,
        undone: &Undone,
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
            taken: command.clone().map(|command| taken(command, undone)),
            conflicts: undone.conflicts.iter().map(|act| act.path.clone()).collect(),
            changes: chosen.map(|planned| planned.wanted.as_change().into_change(by.clone())).collect(),
        }
    }

    fn undone(&self, id: &SessionId, about: String) -> Undone {
        Undone {
            about,
            session: id.to_string(),
            folder: self.opened.workspace.clone(),
            last: last_step(&self.all).0,
            ..Undone::default()
        }
    }
}

/// The note of a command with what it did.
fn taken(command: CommandId, undone: &Undone) -> CommandTaken {
    CommandTaken { command, actor: Actor::Person, receipt: serde_json::to_string(undone).ok() }
}

fn append(journal: &mut Journal, run: RunNo, fact: impl Into<Fact>) -> Result<(), HostError> {
    journal.append(now(), Draft { place: EventPlace::in_run(run), fact: fact.into() })?;
    Ok(())
}
