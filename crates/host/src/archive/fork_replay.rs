//! Forks of sessions, watching one from another process, and replays.

use std::collections::{HashSet, VecDeque};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use lathe_agent::{Clock, History, Verification, verify};
use lathe_changes::restore::{self, RestoreStep};
use lathe_changes::{TreeChange, net};
use lathe_journal::{Journal, SessionReader, is_held, live_branch};
use lathe_model::{ModelAnswer, Variables, Wire, WireRequest, cassette_header, cassette_line};
use lathe_protocol::{
    Actor, AgentId, BoxFuture, CallDecided, CallId, Command, CommandBody, CommandId, Draft, Event,
    EventPlace, EventStream, Fact, Forked, ReplayDrifted, ReplayStrictness, Rewound, RunNo, Seq, SessionId,
    SessionOpened, StepNo, Update, Verdict,
};

use crate::archive::Archive;
use crate::archive::replica::Replica;
use crate::error::HostError;
use crate::session::extras::Extras;
use crate::session::folder::{current_opening, identity, new_id, same_folder, working_folder};
use crate::session::machine::SystemClock;
use crate::session::{
    Attended, Host, ModeWish, ModelSource, ReplayPlan, SessionPlan, opening_and_options, variables_of,
};

/// Number of events read at once.
const BATCH: usize = 256;

/// The interval between two reads of a watched journal.
const LOOK: Duration = Duration::from_millis(40);

/// A difference between a live replay and the recording.
pub struct ReplayDifference {
    pub step: Option<StepNo>,
    pub drift: ReplayDrifted,
}

/// The result of a replay with real tools.
pub struct LiveReplay {
    /// The copy of the workspace, kept for inspection because something differed. Otherwise it is removed.
    pub kept: Option<PathBuf>,
    pub steps: u32,
    pub differences: Vec<ReplayDifference>,
    /// The reason why the replay could not continue, if it could not.
    pub stopped: Option<String>,
}

impl Archive {
    /// Makes a session with everything up to the end of step `at` of another, or with all of it if no step is named.
    /// A repeated command makes no second fork: it returns the first.
    pub fn fork(
        &self,
        from: &SessionId,
        at: Option<StepNo>,
        command: Option<CommandId>,
    ) -> Result<SessionId, HostError> {
        let _one = self.fork_lock.lock();
        if let Some(command) = &command
            && let Some(made) = self.existing_fork(from, command)?
        {
            return Ok(made);
        }
        let events = self.events(from)?;
        let last = events.iter().filter_map(|event| event.place.step).max().unwrap_or_default();
        let at = at.unwrap_or(last);
        if at > last {
            return Err(HostError::NoSuchStep { at, last });
        }
        let kept = branch_up_to(events, at);
        let Some(Fact::SessionOpened(opened)) = kept.first().map(|event| event.fact.clone()) else {
            return Err(lathe_agent::AgentError::NoBeginning.into());
        };
        let id = new_id();
        let mut journal = Journal::create(&self.home().sessions(), &id, self.home().blobs()?)?;
        let forked = Some(Forked { from: from.clone(), at, command });
        let opened = SessionOpened {
            session: id.clone(),
            // A fork works in the folder that has the name now.
            folder: identity(Path::new(&opened.workspace)),
            forked,
            lathe: env!("CARGO_PKG_VERSION").to_owned(),
            ..opened
        };
        journal
            .append(SystemClock.now(), Draft { place: EventPlace::in_run(RunNo(0)), fact: opened.into() })?;
        for event in kept.into_iter().skip(1) {
            journal.append(event.at, Draft { place: event.place, fact: event.fact })?;
        }
        journal.close()?;
        self.update_index(&id);
        Ok(id)
    }

    /// The fork of a session that a command made before.
    fn existing_fork(&self, from: &SessionId, command: &CommandId) -> Result<Option<SessionId>, HostError> {
        let forks = self.sessions()?.into_iter();
        let forks = forks.filter(|fork| fork.forked.as_ref().is_some_and(|forked| forked.from == *from));
        for fork in forks {
            let reader = SessionReader::open(&self.home().sessions(), &fork.id, self.home().blobs()?)?;
            let made = opening_and_options(&reader)?.0.forked.and_then(|forked| forked.command);
            match made {
                Some(made) if made == *command => return Ok(Some(fork.id)),
                Some(made) if made.as_sent() == command.as_sent() => {
                    return Err(HostError::IdInUse(command.as_sent().to_owned()));
                }
                Some(_) | None => {}
            }
        }
        Ok(None)
    }

    /// The events of a session while another process writes them. Ends when no process writes and all were read.
    pub fn watch(&self, id: &SessionId) -> Result<Box<dyn EventStream>, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let (sessions, id) = (self.home().sessions(), id.clone());
        Ok(Box::new(Tail { reader, sessions, id, last: Seq(0), backlog: VecDeque::new(), version: None }))
    }

    /// Verifies a session with its recorded answers and results; nothing is run.
    pub fn replay_recorded(&self, id: &SessionId) -> Result<Verification, HostError> {
        let events = self.events(id)?;
        let history = History::new(Wire::Chat, AgentId::main(), variables(&events));
        Ok(verify(&events, history).ok_or(lathe_agent::AgentError::NoBeginning)?)
    }
}

impl Host {
    /// Runs a session's recorded answers again with real tools, in a copy of its workspace as it was before. None if
    /// `stop` came first. A journal may come from anywhere, so each call is decided by the rules that apply here and
    /// now, and Lathe's folder is guarded as in any session.
    pub async fn replay_live(
        &self,
        id: &SessionId,
        live: ReplayPlan,
        stop: impl Future<Output = ()>,
    ) -> Result<Option<LiveReplay>, HostError> {
        let events = self.archive().events(id)?;
        let opened = current_opening(&events)?;
        let no_place = |error| HostError::Replay(format!("no place for a copy: {error}"));
        // Files that only their owner may read must not become readable in the copy.
        let private = std::fs::Permissions::from_mode(0o700);
        let mut scratch = tempfile::Builder::new();
        let scratch =
            scratch.prefix("lathe-replay-").permissions(private.clone()).tempdir().map_err(no_place)?;
        let folder = working_folder(scratch.path())?.join("workspace");
        let replica = Replica { original: same_folder(&opened)?, copy: folder.clone() };
        self.copy_as_it_was(&replica, &events)?;
        // The store lies below Lathe's folder, so that a replayed call cannot reach its own journal.
        let mut store = tempfile::Builder::new();
        let store = store.prefix("replay-").permissions(private).tempdir_in(self.home().path());
        let store = store.map_err(no_place)?;
        let replaying = Host::new(self.home().storing_in(store.path().to_owned()));
        let plan = SessionPlan {
            own_model: false,
            folder: folder.clone(),
            source: ModelSource::Given {
                cassette: cassette_of(&events),
                strictness: ReplayStrictness::Lenient,
            },
            mode: ModeWish::Given(live.mode),
            sandbox: live.sandbox,
            toolset: Some(opened.options.toolset),
            limits: opened.options.limits.clone(),
            ending: opened.options.ending,
            patch: None,
            record: None,
            // What is excluded by now is denied; the tool list given to the model stays the recorded one.
            tools: Extras { core: live.extras.core.clone(), ..Extras::default() }
                .narrowed_tools(opened.options.tools.clone()),
            attended: Attended::Nobody,
            extras: Extras {
                // The persona's text is part of the first message.
                persona: opened.options.persona.clone(),
                replica: Some(replica),
                project_fields: live.extras.field_names().collect(),
                exclude: live.extras.exclude,
                allowed: live.extras.allowed,
                secret_variables: live.extras.secret_variables,
                secret_files: live.extras.secret_files,
                keys: live.extras.keys,
                passed_variables: live.extras.passed_variables,
                ..Extras::default()
            },
        };
        let tasks = events.iter().filter_map(|event| match &event.fact {
            Fact::TaskGiven(given) => Some((given.text.clone(), given.images.clone())),
            _ => None,
        });
        let session = replaying.start(plan).await?;
        let mut updates = session.handle().subscribe(Seq(0));
        let denied: HashSet<CallPlace> = events.iter().filter_map(denied_call).map(|(at, _)| at).collect();
        let mut replay = LiveReplay { kept: None, steps: 0, differences: Vec::new(), stopped: None };
        let replaying = async {
            for (number, (text, images)) in tasks.enumerate() {
                let id = CommandId::new(format!("replay-{number}"));
                let command =
                    Command { id, actor: Actor::Person, body: CommandBody::GiveTask { text, images } };
                session.handle().submit(command).await;
                if replay.watch(&mut *updates, &denied).await {
                    break;
                }
            }
        };
        let ended = tokio::select! {
            () = replaying => true,
            () = stop => false,
        };
        // Nothing may write there any more when the copy is removed.
        session.close().await?;
        if ended && !(replay.differences.is_empty() && replay.stopped.is_none()) {
            drop(scratch.keep());
            replay.kept = Some(folder);
        }
        Ok(ended.then_some(replay))
    }

    /// Makes a copy of a folder and undoes the recorded changes of these events in it.
    fn copy_as_it_was(&self, replica: &Replica, events: &[Event]) -> Result<(), HostError> {
        replica.make()?;
        // Once before anything is written in it, and once after, because restored files may lead elsewhere too.
        replica.detach()?;
        let (from, to) = (replica.original.as_path(), replica.copy.as_path());
        let blobs = self.home().blobs()?;
        let changes = events.iter().flat_map(|event| event.fact.changes());
        let moved = changes.map(TreeChange::from).filter_map(|change| {
            let path = to.join(change.path.strip_prefix(from).ok()?);
            Some(TreeChange { path, ..change })
        });
        let mut wanted = net(&moved.collect::<Vec<_>>());
        let wrong = |error: lathe_changes::ChangesError| HostError::Replay(error.to_string());
        // It is a copy: files that were changed since the recording may be overwritten.
        for planned in restore::plan(&wanted, &blobs, to).map_err(wrong)? {
            match planned.step {
                RestoreStep::Conflict { found } => {
                    let mut same = wanted.iter_mut().filter(|wanted| wanted.path == planned.wanted.path);
                    same.by_ref().for_each(|wanted| wanted.now.clone_from(&found));
                }
                RestoreStep::MissingBlob { .. } => {
                    let path = planned.wanted.path.display().to_string();
                    return Err(HostError::Replay(format!("the earlier content of {path} is lost")));
                }
                RestoreStep::Restore
                | RestoreStep::AlreadyThere
                | RestoreStep::FolderInUse
                | RestoreStep::Refused
                | RestoreStep::Failed { .. } => {}
            }
        }
        let plan = restore::plan(&wanted, &blobs, to).map_err(wrong)?;
        restore::apply(&plan, &blobs, to).map_err(wrong)?;
        replica.detach()
    }
}

impl LiveReplay {
    /// Takes updates until a task is finished; true if the replay cannot continue. `denied` are the calls that were
    /// denied when they were recorded.
    async fn watch(&mut self, updates: &mut dyn EventStream, denied: &HashSet<CallPlace>) -> bool {
        while let Some(update) = updates.next().await {
            let Update::Event(event) = update else { continue };
            if let Some((at, decided)) = denied_call(&event)
                && !denied.contains(&at)
            {
                let (rule, reason) = (&decided.decision.rule, &decided.decision.reason);
                let drift = ReplayDrifted {
                    place: format!("call {} ({})", at.1.as_ref().map_or("", CallId::as_str), decided.tool),
                    recorded: "it was not denied".to_owned(),
                    now: format!("denied now by {rule}: {reason}"),
                };
                self.differences.push(ReplayDifference { step: event.place.step, drift });
            }
            match &event.fact {
                Fact::ModelAnswered(_) => self.steps += 1,
                Fact::ReplayDrifted(drift) => {
                    self.differences.push(ReplayDifference { step: event.place.step, drift: drift.clone() });
                }
                Fact::ModelFailed(failed) => self.stopped = Some(failed.message.clone()),
                Fact::TaskFinished(_) => return self.stopped.is_some(),
                _ => {}
            }
        }
        true
    }
}

/// A call in a session: its step and its own id, which may occur again in another step.
type CallPlace = (Option<StepNo>, Option<CallId>);

/// The call that an event reports as denied, by a rule or because no user was there to approve it.
fn denied_call(event: &Event) -> Option<(CallPlace, &CallDecided)> {
    match &event.fact {
        Fact::CallDecided(decided) if decided.decision.verdict == Verdict::Deny => {
            Some(((event.place.step, event.place.call.clone()), decided))
        }
        _ => None,
    }
}

/// The live branch up to the end of a step: what a rewind to it would keep.
fn branch_up_to(events: Vec<Event>, at: StepNo) -> Vec<Event> {
    let Some(last) = events.last() else { return events };
    let rewound = Event {
        seq: last.seq.next(),
        at: last.at,
        place: EventPlace::in_run(last.place.run),
        fact: Rewound { to: at }.into(),
    };
    let mut kept = live_branch(events.into_iter().chain([rewound]));
    kept.pop();
    kept
}

fn variables(events: &[Event]) -> Arc<Variables> {
    let opened = events.first().and_then(|event| match &event.fact {
        Fact::SessionOpened(opened) => Some(opened),
        _ => None,
    });
    Arc::new(opened.map_or_else(Variables::none, |opened| variables_of(opened, Path::new("/"))))
}

/// A session converted to a cassette.
pub(crate) fn cassette_of(events: &[Event]) -> String {
    let variables = variables(events);
    let mut history = History::new(Wire::Chat, AgentId::main(), Arc::clone(&variables));
    let mut text = String::new();
    let mut pending: Option<WireRequest> = None;
    for event in events {
        match &event.fact {
            Fact::SessionOpened(opened) => text.push_str(&cassette_header(opened.options.toolset)),
            Fact::ModelAsked(_) => pending = Some(history.request(event.place.step.unwrap_or_default())),
            Fact::ModelAnswered(answered) => {
                if let Some(request) = pending.take() {
                    let answer = ModelAnswer {
                        blocks: answered.blocks.clone(),
                        stop: answered.stop.clone(),
                        usage: answered.usage,
                        model: answered.model.clone(),
                        drift: None,
                    };
                    text.push_str(&cassette_line(&request, &answer, &variables));
                }
            }
            _ => {}
        }
        history.take(event);
    }
    text
}

/// A journal followed from another process. Nothing is locked, and the writer does not notice.
struct Tail {
    reader: SessionReader,
    sessions: PathBuf,
    id: SessionId,
    last: Seq,
    backlog: VecDeque<Event>,
    /// The version of the journal that was last read to its end.
    version: Option<i64>,
}

impl Tail {
    async fn next_update(&mut self) -> Option<Update> {
        loop {
            if let Some(event) = self.backlog.pop_front() {
                self.last = event.seq;
                return Some(Update::Event(Arc::new(event)));
            }
            // The check for a writer comes before reading, so that the last events are not missed.
            let held = is_held(&self.sessions, &self.id);
            let version = self.reader.data_version().ok();
            if version.is_none() || version != self.version || !held {
                self.backlog.extend(self.reader.after(self.last, BATCH).ok()?);
                // After a full batch there may be more events.
                self.version = version.filter(|_| self.backlog.len() < BATCH);
            }
            if self.backlog.is_empty() {
                if !held {
                    return None;
                }
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}

impl EventStream for Tail {
    fn next(&mut self) -> BoxFuture<'_, Option<Update>> {
        Box::pin(self.next_update())
    }
}
