//! The calls of an answer: decided, and run.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use lathe_protocol::{
    Actor as Who, CallDecided, CallFinished, CallId, CallStarted, Decision, Digest, Effects, Fact, FrameBody,
    Kind, OutputStream, Raw, RunNo, SeenFile, StepNo, ToolErrorKind, Verdict,
};
use lathe_redact::Redactor;
use lathe_tools::{
    Asker, Handle, Judge, Judged, LiveOutput, Output, Prepared, Preview, REVIEW_TOOL, Recalled, Review,
    RunContext,
};
use tokio_util::sync::CancellationToken;

use super::{Actor, AgentError};
use crate::blocking::blocking;
use crate::effects::{self, Look};
use crate::running::{InboxAsker, InboxLedger};
use crate::state::{CallStage, DONE_TOOL};

/// A call of the last answer that has not begun.
pub(super) struct PendingCall {
    pub(super) prepared: Arc<Prepared>,
    pub(super) judged: Judged,
    /// The folder of the shell when it was first decided.
    decided_in: Option<PathBuf>,
    /// The preview that a person was shown, if it is the text of a file.
    pub(super) preview: Option<Preview>,
    /// The arguments for the text that a person made of it, and the words about that.
    pub(super) modified: Option<(Raw, String)>,
    /// The file that a person changed the text of, as it was then.
    pub(super) expected: Option<SeenFile>,
    /// The digest of what a person was shown.
    pub(super) shown: Option<Digest>,
    /// The decision that a person was asked about.
    pub(super) asked: Option<Decision>,
    /// Whether that question was answered.
    pub(super) answered: bool,
}

impl Actor {
    pub(super) fn decide(&mut self, id: CallId) -> Result<(), AgentError> {
        let place = self.at_call(id.clone());
        let Some(call) = self.calls.iter().find(|call| call.id == id) else {
            return Ok(());
        };
        let prepared = match self.setup.toolbox.prepare(call) {
            Ok(prepared) => prepared,
            Err(finished) => return self.append(place, *finished),
        };
        let pending = self.pending(prepared);
        let decided = decided(&pending);
        self.prepared.insert(id, pending);
        self.append(place, decided)
    }

    /// Decides about a call in the folder the shell is in.
    pub(super) fn pending(&self, prepared: Prepared) -> PendingCall {
        let judged = cleaned(&self.setup.redactor, blocking(|| self.judge().call(&prepared)));
        let decided_in = self.setup.toolbox.services().cwd();
        PendingCall {
            prepared: Arc::new(prepared),
            judged,
            decided_in,
            preview: None,
            modified: None,
            expected: None,
            shown: None,
            asked: None,
            answered: false,
        }
    }

    /// Decides again when the turn of a call comes: an earlier call of the same answer may have moved the shell. The
    /// stricter decision of the folder it was proposed in and the folder it will run in counts.
    pub(super) fn judge_again(&self, pending: &PendingCall) -> Judged {
        let judge = self.judge();
        let now = blocking(|| judge.call(&pending.prepared));
        let stricter = if self.is_moved(pending) {
            let before = blocking(|| judge.at(pending.decided_in.clone()).call(&pending.prepared));
            if now.decision.verdict >= before.decision.verdict { now } else { before }
        } else {
            now
        };
        cleaned(&self.setup.redactor, stricter)
    }

    /// Whether the shell is in another folder than when the call was first decided.
    fn is_moved(&self, pending: &PendingCall) -> bool {
        self.setup.toolbox.services().cwd() != pending.decided_in
    }

    pub(super) fn run_call(&mut self, id: CallId) -> Result<(), AgentError> {
        let Some(pending) = self.prepared.remove(&id) else {
            return Ok(());
        };
        // An earlier call of this answer may have moved the shell, or put a link where a file was.
        let others_ran = self.state.calls.iter().any(|call| matches!(call.stage, CallStage::Finished { .. }));
        if others_ran || pending.answered {
            let again = self.judge_again(&pending);
            let is_answered = pending.answered && pending.asked.as_ref() == Some(&again.decision);
            match (again.decision.verdict, is_answered) {
                (Verdict::Allow, _) | (Verdict::Ask, true) => {}
                // What was allowed as it was proposed is not allowed as it would run now.
                (Verdict::Deny, _) | (Verdict::Ask, false) => {
                    let pending = PendingCall { judged: again, asked: None, answered: false, ..pending };
                    let fact = decided(&pending);
                    self.prepared.insert(id.clone(), pending);
                    return self.append(self.at_call(id), fact);
                }
            }
        }
        let PendingCall { prepared, judged, shown, expected, .. } = pending;
        let Some(permit) = self.setup.gate.permit(&judged.decision, &judged.effects) else {
            return Ok(());
        };
        // A look at it has ended before anybody could say yes.
        let Some(prepared) = Arc::into_inner(prepared) else {
            let message = "The call was still being looked at; nothing was done.";
            let failed =
                CallFinished::failed(&self.call_name(&id), ToolErrorKind::UnhandledException, message);
            return self.append(self.at_call(id), failed);
        };
        self.append(self.at_call(id.clone()), CallStarted {})?;
        let review = match self.review_of(&prepared) {
            Ok(review) => review,
            Err(reason) => {
                let failed = CallFinished::failed(prepared.name(), ToolErrorKind::ExecutionFailed, reason);
                return self.append(self.at_call(id), failed);
            }
        };
        let stop = self.running.begin(id.clone(), &self.cancel);
        let mut context =
            RunContext { shown, review, ..self.context(id, prepared.tool, &prepared.effects, stop) };
        if let Some(expected) = expected {
            context.seen.retain(|seen| seen.path != expected.path);
            context.seen.push(expected);
        }
        let toolbox = Arc::clone(&self.setup.toolbox);
        if prepared.tool == DONE_TOOL && self.state.must_patch() {
            let (patcher, look) = (Arc::clone(&self.setup.patcher), self.look());
            let judged =
                effects::judged_call(toolbox, prepared, permit, context, patcher, look, self.answers.clone());
            self.tasks.spawn(judged);
            return Ok(());
        }
        self.tasks.spawn(effects::call(toolbox, prepared, permit, context, self.answers.clone()));
        Ok(())
    }

    /// What a call means for reviews, or why it may not run because of them.
    fn review_of(&self, prepared: &Prepared) -> Result<Option<Review>, String> {
        let Some(rule) = &self.state.options.review else { return Ok(None) };
        if prepared.tool == DONE_TOOL {
            return self.state.review_refusal().map_or(Ok(None), Err);
        }
        let left = self.state.reviews.left(rule);
        if prepared.tool == REVIEW_TOOL {
            let none = "No more reviews in this run: their budget is used up. Go on without.";
            return left.map(|left| Some(Review::Asked(left))).ok_or_else(|| none.to_owned());
        }
        let judged = rule.after_edits && prepared.kind == Kind::Edit;
        Ok(left.filter(|_| judged).map(Review::AfterEdit))
    }

    pub(super) fn context(
        &self,
        call: CallId,
        tool: &str,
        effects: &Effects,
        cancel: CancellationToken,
    ) -> RunContext {
        let recalled = self.recall(tool, effects.reads.iter().chain(&effects.writes).cloned().collect());
        RunContext {
            services: Arc::clone(self.setup.toolbox.services()),
            handle: self.handle(&call),
            live: self.live(call.clone()),
            cancel,
            call,
            seen: recalled.seen,
            memory: recalled.memory,
            shown: None,
            review: None,
            line_seconds: self.state.options.limits.line_seconds,
            silent_seconds: self.state.options.limits.silent_seconds,
            umask: None,
            asker: self.setup.attended.then(|| Arc::new(InboxAsker(self.answers.clone())) as Arc<dyn Asker>),
            judge: self.judge(),
            ledger: Arc::new(InboxLedger { inbox: self.answers.clone(), cancel: self.cancel.clone() }),
        }
    }

    /// The name by which later calls read the output of this one.
    fn handle(&self, call: &CallId) -> Option<Handle> {
        let index = self.state.calls.iter().position(|known| known.id == *call)?;
        Some(Handle { step: self.state.step.0, call: u32::try_from(index + 1).ok()? })
    }

    /// Decides as the session is set now.
    pub(super) fn judge(&self) -> Judge {
        let (rules, fresh) = self.remembered.now();
        Judge {
            gate: self.setup.gate.clone(),
            rules,
            actor: Who::Model,
            mode: self.state.options.mode,
            fresh: Some(fresh),
        }
        .in_shell(self.setup.toolbox.services())
    }

    /// What is known of these files, and what a tool asked to be given again.
    pub(super) fn recall(&self, tool: &str, paths: Vec<String>) -> Recalled {
        let seen = paths.into_iter().filter_map(|path| {
            let hash = self.state.seen.get(&path)?.clone();
            Some(SeenFile { path, hash })
        });
        Recalled { seen: seen.collect(), memory: self.state.memory.get(tool).cloned() }
    }

    /// The output of a call of the live branch: that of the last answer its step had.
    pub(super) fn output(&self, handle: Handle) -> Option<Output> {
        let reader = self.setup.journal.reader().ok()?;
        let step = StepNo(handle.step);
        // Steps are numbered through the session, and most often it is one of this run.
        let mut events = Vec::new();
        for run in (0..=self.state.run.0).rev() {
            events = reader.of_step(RunNo(run), step).ok()?;
            if !events.is_empty() {
                break;
            }
        }
        let answer = events.iter().rposition(|event| matches!(event.fact, Fact::ModelAnswered(_)))?;
        let (before, after) = events.split_at(answer + 1);
        let Some(Fact::ModelAnswered(answered)) = before.last().map(|event| &event.fact) else { return None };
        let index = usize::try_from(handle.call.checked_sub(1)?).ok()?;
        let call = lathe_protocol::calls_of(&answered.blocks).nth(index)?;
        after.iter().find_map(|event| match &event.fact {
            Fact::CallFinished(finished) if event.place.call.as_ref() == Some(&call.id) => {
                Some(match &finished.truncated {
                    Some(cut) => Output::Blob(cut.blob.clone()),
                    None => Output::Text(finished.text.clone()),
                })
            }
            _ => None,
        })
    }

    pub(super) fn look(&self) -> Look {
        Look { baseline: self.state.baseline.clone(), recorded: self.state.changed.iter().cloned().collect() }
    }

    pub(super) fn live(&self, call: CallId) -> LiveOutput {
        let (watchers, step) = (self.watchers.clone(), self.state.step);
        Arc::new(move |stream: OutputStream, text: &str| {
            watchers.show(step, Some(call.clone()), FrameBody::Output { stream, text: text.to_owned() });
        })
    }
}

/// What is written down of a decision holds no secret, as nothing else does.
pub(super) fn cleaned(redactor: &Redactor, mut judged: Judged) -> Judged {
    let clean = |text: &mut String| {
        if let Cow::Owned(cleaned) = redactor.text(text) {
            *text = cleaned;
        }
    };
    clean(&mut judged.decision.reason);
    judged.each.iter_mut().flat_map(|each| &mut each.words).for_each(clean);
    judged
}

pub(super) fn decided(PendingCall { prepared, judged, .. }: &PendingCall) -> CallDecided {
    CallDecided {
        tool: prepared.tool.to_owned(),
        about: prepared.about.clone(),
        effects: judged.effects.clone(),
        decision: judged.decision.clone(),
        lane: prepared.lane,
        each: judged.each.clone(),
    }
}
