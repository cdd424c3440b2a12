//! Lakeview as a service: who is asked, which steps, and where the answer is kept.
//!
//! A session that is open is told by a command, like everything else. One that is not gets the event through a writer of its
//! own, as a rewind does; whoever watches its journal sees the step again. A model that fails changes nothing.

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
    Host, ModelSearch, ModelSource, OpenSession, Overrides, Ready, beginning, now, ready, variables_of,
};

/// Tokens the summaries of one session may take, if nothing else is said.
const MAX_TOKENS: u64 = 200_000;

/// How steps are summed up.
#[derive(Debug, Clone)]
pub struct LakeviewPlan {
    /// Who is asked; the model of the session if left out.
    pub source: Option<ModelSource>,
    /// Tokens for one session.
    pub max_tokens: u64,
    /// Whether each step is summed up by itself when it has ended.
    pub each_step: bool,
}

impl Default for LakeviewPlan {
    fn default() -> Self {
        Self { source: None, max_tokens: MAX_TOKENS, each_step: false }
    }
}

/// A model that says what steps of a session were about.
#[derive(Clone)]
pub struct Summariser(pub(crate) Arc<Lakeview>);

/// Where a summary is kept.
#[derive(Clone, Copy)]
pub enum Keep<'a> {
    /// The session is open here.
    Session(&'a dyn SessionHandle),
    /// Nobody has it open.
    Journal,
    Nowhere,
}

/// The task that sums up the steps of a session. It ends with the session.
pub(crate) struct Summing {
    task: JoinHandle<()>,
    progress: SummingProgress,
}

/// How far the steps of a session were summed up.
#[derive(Debug, Clone)]
pub struct SummingProgress {
    /// The last event that was dealt with.
    seen: watch::Receiver<Seq>,
}

impl SummingProgress {
    /// Waits until every step that ended up to an event was summed up, or could not be.
    pub async fn reach(&self, seq: Seq) {
        let mut seen = self.seen.clone();
        // A task that is gone sums up nothing any more.
        let _ = seen.wait_for(|seen| *seen >= seq).await;
    }
}

impl Drop for Summing {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl OpenSession {
    /// Waits for the summaries of all steps that ended up to an event. Returns whether steps are summed up at all.
    pub async fn summed_up(&self, seq: Seq) -> bool {
        match &self.summing {
            Some(summing) => {
                summing.progress.reach(seq).await;
                true
            }
            None => false,
        }
    }

    /// How far its steps were summed up; none if they are not.
    pub fn summing(&self) -> Option<SummingProgress> {
        self.summing.as_ref().map(|summing| summing.progress.clone())
    }
}

impl Archive {
    /// The steps of the last run of a session that have ended.
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
    /// Who sums up the steps of a session that is not open here.
    pub fn lakeview_for(&self, id: &SessionId, overrides: &Overrides) -> Result<Summariser, HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        let (opened, before) = beginning(&reader)?;
        let root = same_folder(&opened)?;
        let variables = Arc::new(variables_of(&opened, &root));
        let stored = self.models().stored_keys()?;
        let mut known = overrides.extras.secrets(self.home().path())?;
        known.extend(crate::session::secrets::found(&root));
        let marks = self.models().marks();
        let asking = ModelSearch {
            variables: &variables,
            stored: &stored,
            marks: &marks,
            workspace: &root,
            known: &known,
        };
        let plan = &overrides.extras.lakeview;
        let source = plan.source.as_ref().unwrap_or(&overrides.source);
        let Ready { client, choice, .. } =
            ready(source, Some(before.toolset), None, &asking, Some(&before.model))?;
        let aside = Aside::new(client, choice.model, variables);
        Ok(Summariser(Arc::new(Lakeview::new(aside, plan.max_tokens, self.unkept(id)))))
    }

    /// Tokens that were spent on summaries of a session and are in no event of it, by all of this process.
    pub(crate) fn unkept(&self, id: &SessionId) -> Arc<AtomicU64> {
        let mut unkept = self.unkept.lock();
        Arc::clone(unkept.entry(id.clone()).or_default())
    }

    /// Sums up one step of the last run. What was said before is given back as it is, unless it is wanted `anew`.
    pub async fn summarise_step(
        &self,
        id: &SessionId,
        Summariser(lakeview): &Summariser,
        number: u32,
        anew: bool,
        keep: Keep<'_>,
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
        // Nothing is paid for what could not be kept.
        if matches!(keep, Keep::Journal) && self.archive().is_running(id) {
            return Err("another process works on this session; ask again when it has ended".to_owned());
        }
        let summary = lakeview.summarise(&steps, at, cancel).await?;
        match keep {
            // No event will tell of it, but it was paid for.
            Keep::Nowhere => lakeview.charge(&summary.usage),
            Keep::Session(handle) => submit(handle, step, &summary).await?,
            Keep::Journal => {
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

/// Sums up each step that ends after event `from`, one after the other, for as long as the session is open.
pub(crate) fn each_step(handle: Arc<dyn SessionHandle>, lakeview: Arc<Lakeview>, from: Seq) -> Summing {
    let updates = handle.subscribe(Seq(0));
    let (done, seen) = watch::channel(Seq(0));
    let task = tokio::spawn(follow(updates, handle, lakeview, from, done));
    Summing { task, progress: SummingProgress { seen } }
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
        // What cannot be summed up is left as it is.
        if let Some(last) = ended.filter(|_| ended != was && event.seq > from)
            && let Ok(summary) = lakeview.summarise(&steps, last - 1, &cancel).await
            && let Some(step) = steps.steps.get(last - 1)
        {
            let _ = submit(&*handle, step, &summary).await;
        }
        done.send_replace(event.seq);
    }
}
