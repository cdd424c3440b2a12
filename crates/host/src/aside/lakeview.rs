//! Lakeview as a service: the model that summarises, the steps, and the place where a summary is stored.
//!
//! An open session gets a summary by a command, like everything else. For a session that is not open the event is
//! written by a journal writer of its own, as for a rewind; a client that watches the journal sees the step again. A
//! failure of the model changes nothing.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lathe_agent::{Lakeview, StepText, StepTexts};
use lathe_journal::{Journal, SessionReader};
use lathe_model::Aside;
use lathe_protocol::{
    Actor, Command, CommandBody, CommandId, Draft, EventPlace, EventStream, ReceiptAnswer, Seq,
    SessionHandle, SessionId, StepSummarised, Update,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::archive::Archive;
use crate::blocking::blocking;
use crate::error::HostError;
use crate::session::folder::same_folder;
use crate::session::{
    Host, ModelSearch, ModelSource, OpenSession, Overrides, ReadyModel, now, opening_and_options,
    ready_model, variables_of,
};

/// Tokens that the summaries of one session may take, unless configured otherwise.
const MAX_TOKENS: u64 = 200_000;

/// Settings for summaries of steps.
#[derive(Debug, Clone)]
pub struct LakeviewPlan {
    /// The model; that of the session if left out.
    pub source: Option<ModelSource>,
    /// Token limit for one session.
    pub max_tokens: u64,
    /// True if each step is summarised automatically when it has ended.
    pub each_step: bool,
}

impl Default for LakeviewPlan {
    fn default() -> Self {
        Self { source: None, max_tokens: MAX_TOKENS, each_step: false }
    }
}

/// A model that summarises steps of a session.
#[derive(Clone)]
pub struct Summariser(pub(crate) Arc<Lakeview>);

/// The place where a summary is stored.
#[derive(Clone, Copy)]
pub enum SummaryDestination<'a> {
    /// The session is open in this process.
    Session(&'a dyn SessionHandle),
    /// The session is not open anywhere.
    Journal,
    Nowhere,
}

/// The task that summarises the steps of a session. It ends with the session.
pub(crate) struct SummaryTask {
    task: JoinHandle<()>,
    progress: SummaryProgress,
}

/// The progress of the summaries of a session.
#[derive(Debug, Clone)]
pub struct SummaryProgress {
    /// The last event that was processed.
    seen: watch::Receiver<Seq>,
}

impl SummaryProgress {
    /// Waits until every step that ended up to an event was summarised, or could not be.
    pub async fn reach(&self, seq: Seq) {
        let mut seen = self.seen.clone();
        // If the task has ended, no more summaries will come.
        let _ = seen.wait_for(|seen| *seen >= seq).await;
    }
}

impl Drop for SummaryTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl OpenSession {
    /// Waits for the summaries of all steps that ended up to an event. Returns false if steps are not summarised at
    /// all.
    pub async fn wait_for_summaries(&self, seq: Seq) -> bool {
        match &self.summary_task {
            Some(summing) => {
                summing.progress.reach(seq).await;
                true
            }
            None => false,
        }
    }

    /// The progress of the summaries; none if steps are not summarised.
    pub fn summary_progress(&self) -> Option<SummaryProgress> {
        self.summary_task.as_ref().map(|summing| summing.progress.clone())
    }
}

impl Archive {
    /// The numbers of the steps that have ended in the last run of a session.
    pub fn finished_steps(&self, id: &SessionId) -> Result<Vec<u32>, HostError> {
        let steps = self.step_texts(id)?.steps;
        Ok(steps.iter().filter(|step| step.is_finished()).map(|step| step.number).collect())
    }

    fn step_texts(&self, id: &SessionId) -> Result<StepTexts, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let mut steps = StepTexts::default();
        reader.live_each(|event| steps.take(&event))?;
        Ok(steps)
    }
}

impl Host {
    /// The summariser for the steps of a session that is not open in this process.
    pub fn summariser_for(&self, id: &SessionId, overrides: &Overrides) -> Result<Summariser, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let (opened, before) = opening_and_options(&reader)?;
        let root = same_folder(&opened)?;
        let variables = Arc::new(variables_of(&opened, &root));
        let stored = self.models().stored_keys()?;
        let mut known = overrides.extras.secrets(self.home().path())?;
        known.extend(crate::session::secrets::project_secrets(&root));
        let marks = self.models().marks();
        let search = ModelSearch {
            variables: &variables,
            stored: &stored,
            marks: &marks,
            workspace: &root,
            known: &known,
        };
        let plan = &overrides.extras.lakeview;
        let source = plan.source.as_ref().unwrap_or(&overrides.source);
        let ReadyModel { client, choice, .. } =
            ready_model(source, Some(before.toolset), None, &search, Some(&before.model))?;
        let aside = Aside::new(client, choice.model, variables);
        Ok(Summariser(Arc::new(Lakeview::new(aside, plan.max_tokens, self.unrecorded_tokens(id)))))
    }

    /// Tokens spent by this whole process on summaries of a session that no event of it records.
    pub(crate) fn unrecorded_tokens(&self, id: &SessionId) -> Arc<AtomicU64> {
        let mut unkept = self.unrecorded_tokens.lock();
        Arc::clone(unkept.entry(id.clone()).or_default())
    }

    /// Summarises one step of the last run. An existing summary is returned as it is, unless `anew` is true.
    pub async fn summarise_step(
        &self,
        id: &SessionId,
        Summariser(lakeview): &Summariser,
        number: u32,
        anew: bool,
        keep: SummaryDestination<'_>,
        cancel: &CancellationToken,
    ) -> Result<StepSummarised, String> {
        let steps = blocking(|| self.archive().step_texts(id)).map_err(|error| error.to_string())?;
        let at = steps.steps.iter().position(|step| step.number == number && step.is_finished());
        let Some((at, step)) = at.and_then(|at| Some((at, steps.steps.get(at)?))) else {
            return Err("there is no such step, or it has not ended".to_owned());
        };
        if let Some(known) = step.summary.clone().filter(|_| !anew) {
            return Ok(known);
        }
        // No tokens are spent on a summary that could not be stored.
        if matches!(keep, SummaryDestination::Journal) && self.archive().is_running(id) {
            return Err("another process works on this session; ask again when it has ended".to_owned());
        }
        let summary = lakeview.summarise(&steps, at, cancel).await?;
        match keep {
            // No event records it, but it was paid for.
            SummaryDestination::Nowhere => lakeview.charge(&summary.usage),
            SummaryDestination::Session(handle) => submit(handle, step, &summary).await?,
            SummaryDestination::Journal => {
                blocking(|| self.write_summary(id, step, &summary)).map_err(|error| error.to_string())?
            }
        }
        Ok(summary)
    }

    fn write_summary(
        &self,
        id: &SessionId,
        step: &StepText,
        summary: &StepSummarised,
    ) -> Result<(), HostError> {
        let mut journal = Journal::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let place = EventPlace::in_run(step.run).at_step(step.step);
        journal.append(now(), Draft { place, fact: summary.clone().into() })?;
        journal.close()?;
        Ok(())
    }
}

async fn submit(handle: &dyn SessionHandle, step: &StepText, summary: &StepSummarised) -> Result<(), String> {
    let body = CommandBody::Summarise { run: step.run, step: step.step, summary: summary.clone() };
    let id = CommandId::new(format!("lakeview-{}-{}-{}", step.run, step.step, now()));
    match handle.submit(Command { id, actor: Actor::Person, body }).await.answer {
        ReceiptAnswer::Accepted { .. } => Ok(()),
        ReceiptAnswer::Refused { reason } => Err(reason),
    }
}

/// Summarises each step that ends after event `from`, one at a time, for as long as the session is open.
pub(crate) fn summarise_each_step(
    handle: Arc<dyn SessionHandle>,
    lakeview: Arc<Lakeview>,
    from: Seq,
) -> SummaryTask {
    let updates = handle.subscribe(Seq(0));
    let (done, seen) = watch::channel(Seq(0));
    let task = tokio::spawn(follow(updates, handle, lakeview, from, done));
    SummaryTask { task, progress: SummaryProgress { seen } }
}

async fn follow(
    mut updates: Box<dyn EventStream>,
    handle: Arc<dyn SessionHandle>,
    lakeview: Arc<Lakeview>,
    from: Seq,
    done: watch::Sender<Seq>,
) {
    let mut steps = StepTexts::default();
    let cancel = CancellationToken::new();
    while let Some(update) = updates.next().await {
        let Update::Event(event) = update else { continue };
        let was = steps.steps.last().is_some_and(StepText::is_finished).then_some(steps.steps.len());
        steps.take(&event);
        let ended = steps.steps.last().is_some_and(StepText::is_finished).then_some(steps.steps.len());
        // A step that cannot be summarised is left without a summary.
        if let Some(last) = ended.filter(|_| ended != was && event.seq > from)
            && let Ok(summary) = lakeview.summarise(&steps, last - 1, &cancel).await
            && let Some(step) = steps.steps.get(last - 1)
        {
            let _ = submit(&*handle, step, &summary).await;
        }
        done.send_replace(event.seq);
    }
}
