//! The calls of an answer: decides about them and runs them.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use lathe_protocol::{
    Actor as Who, CallDecided, CallFinished, CallId, CallStarted, Decision, Digest, Effects, Fact, FrameBody,
    OutputStream, Raw, RunNo, SeenFile, StepNo, ToolErrorKind, ToolKind, Verdict,
};
use lathe_redact::Redactor;
use lathe_tools::{
    Asker, CallGate, GateDecision, LiveOutput, OutputHandle, PreparedCall, Preview, REVIEW_TOOL, Recalled,
    RecordedOutput, ReviewRole, RunContext,
};
use tokio_util::sync::CancellationToken;

use super::{Actor, AgentError};
use crate::blocking::blocking;
use crate::effects::{self, PatchCheck};
use crate::running::{InboxAsker, InboxLedger};
use crate::state::{CallStage, DONE_TOOL};

/// A call of the last answer that has not begun.
pub(super) struct PendingCall {
    pub(super) prepared: Arc<PreparedCall>,
    pub(super) judged: GateDecision,
    /// The shell's folder at the first decision.
    decided_in: Option<PathBuf>,
    /// The preview that the user was shown, if it is the text of a file.
    pub(super) preview: Option<Preview>,
    /// The arguments for the user's version of that text, and the note about it.
    pub(super) modified: Option<(Raw, String)>,
    /// The file whose text the user changed, as it was then.
    pub(super) expected: Option<SeenFile>,
    /// The digest of the preview that the user was shown.
    pub(super) shown: Option<Digest>,
    /// The decision that the user was asked about.
    pub(super) asked: Option<Decision>,
    /// True if that question was answered.
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
        let pending = self.pending_call(prepared);
        let decided = decision_fact(&pending);
        self.prepared.insert(id, pending);
        self.append(place, decided)
    }

    /// Decides about a call in the folder that the shell is in.
    pub(super) fn pending_call(&self, prepared: PreparedCall) -> PendingCall {
        let judged = redacted(&self.setup.redactor, blocking(|| self.call_gate().decide_call(&prepared)));
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
    pub(super) fn decide_again(&self, pending: &PendingCall) -> GateDecision {
        let call_gate = self.call_gate();
        let now = blocking(|| call_gate.decide_call(&pending.prepared));
        let stricter = if self.is_moved(pending) {
            let before = blocking(|| call_gate.at(pending.decided_in.clone()).decide_call(&pending.prepared));
            if now.decision.verdict >= before.decision.verdict { now } else { before }
        } else {
            now
        };
        redacted(&self.setup.redactor, stricter)
    }

    /// Tells whether the shell is in another folder than at the first decision about the call.
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
            let again = self.decide_again(&pending);
            let is_answered = pending.answered && pending.asked.as_ref() == Some(&again.decision);
            match (again.decision.verdict, is_answered) {
                (Verdict::Allow, _) | (Verdict::Ask, true) => {}
                // An approval of the call as it was proposed does not cover the call as it would run now.
                (Verdict::Deny, _) | (Verdict::Ask, false) => {
                    let pending = PendingCall { judged: again, asked: None, answered: false, ..pending };
                    let fact = decision_fact(&pending);
                    self.prepared.insert(id.clone(), pending);
                    return self.append(self.at_call(id), fact);
                }
            }
        }
        let PendingCall { prepared, judged, shown, expected, .. } = pending;
        let Some(permit) = self.setup.gate.permit(&judged.decision, &judged.effects) else {
            return Ok(());
        };
        // The preview task ends before the user can approve, so this is the only owner.
        let Some(prepared) = Arc::into_inner(prepared) else {
            let message = "The call was still being looked at; nothing was done.";
            let failed =
                CallFinished::failed(&self.call_name(&id), ToolErrorKind::UnhandledException, message);
            return self.append(self.at_call(id), failed);
        };
        self.append(self.at_call(id.clone()), CallStarted {})?;
        let review = match self.review_role(&prepared) {
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
            let (patcher, look) = (Arc::clone(&self.setup.patcher), self.patch_check());
            let judged = effects::run_done_call(
                toolbox,
                prepared,
                permit,
                context,
                patcher,
                look,
                self.inbox_sender.clone(),
            );
            self.tasks.spawn(judged);
            return Ok(());
        }
        self.tasks.spawn(effects::run_call(toolbox, prepared, permit, context, self.inbox_sender.clone()));
        Ok(())
    }

    /// The part that a call has in reviews. The error is the reason why it may not run because of them.
    fn review_role(&self, prepared: &PreparedCall) -> Result<Option<ReviewRole>, String> {
        let Some(rule) = &self.state.options.review else { return Ok(None) };
        if prepared.tool == DONE_TOOL {
            return self.state.review_refusal().map_or(Ok(None), Err);
        }
        let left = self.state.reviews.budget_left(rule);
        if prepared.tool == REVIEW_TOOL {
            let none = "No more reviews in this run: their budget is used up. Go on without.";
            return left.map(|left| Some(ReviewRole::Asked(left))).ok_or_else(|| none.to_owned());
        }
        let judged = rule.after_edits && prepared.kind == ToolKind::Edit;
        Ok(left.filter(|_| judged).map(ReviewRole::AfterEdit))
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
            asker: self
                .setup
                .attended
                .then(|| Arc::new(InboxAsker(self.inbox_sender.clone())) as Arc<dyn Asker>),
            call_gate: self.call_gate(),
            ledger: Arc::new(InboxLedger { inbox: self.inbox_sender.clone(), cancel: self.cancel.clone() }),
        }
    }

    /// The handle by which later calls read the output of this one.
    fn handle(&self, call: &CallId) -> Option<OutputHandle> {
        let index = self.state.calls.iter().position(|known| known.id == *call)?;
        Some(OutputHandle { step: self.state.step.0, call: u32::try_from(index + 1).ok()? })
    }

    /// The gate with the present settings of the session.
    pub(super) fn call_gate(&self) -> CallGate {
        let (rules, fresh) = self.rules.current();
        CallGate {
            gate: self.setup.gate.clone(),
            rules,
            actor: Who::Model,
            mode: self.state.options.mode,
            fresh: Some(fresh),
        }
        .in_shell(self.setup.toolbox.services())
    }

    /// The files among these that the model has seen, and the state that a tool asked to be given again.
    pub(super) fn recall(&self, tool: &str, paths: Vec<String>) -> Recalled {
        let seen = paths.into_iter().filter_map(|path| {
            let hash = self.state.seen.get(&path)?.clone();
            Some(SeenFile { path, hash })
        });
        Recalled { seen: seen.collect(), memory: self.state.memory.get(tool).cloned() }
    }

    /// The output of a call of the live branch: that of the last answer of its step.
    pub(super) fn output(&self, handle: OutputHandle) -> Option<RecordedOutput> {
        let reader = self.setup.journal.reader().ok()?;
        let step = StepNo(handle.step);
        // Steps are numbered through the session, and mostly the step belongs to this run.
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
                    Some(cut) => RecordedOutput::Blob(cut.blob.clone()),
                    None => RecordedOutput::Text(finished.text.clone()),
                })
            }
            _ => None,
        })
    }

    pub(super) fn patch_check(&self) -> PatchCheck {
        PatchCheck {
            baseline: self.state.baseline.clone(),
            recorded: self.state.changed.iter().cloned().collect(),
        }
    }

    pub(super) fn live(&self, call: CallId) -> LiveOutput {
        let (watchers, step) = (self.watchers.clone(), self.state.step);
        Arc::new(move |stream: OutputStream, text: &str| {
            watchers.show(step, Some(call.clone()), FrameBody::Output { stream, text: text.to_owned() });
        })
    }
}

/// Redacts a decision: like everything else that is recorded, it holds no secret.
pub(super) fn redacted(redactor: &Redactor, mut judged: GateDecision) -> GateDecision {
    let clean = |text: &mut String| {
        if let Cow::Owned(cleaned) = redactor.redact_text(text) {
            *text = cleaned;
        }
    };
    clean(&mut judged.decision.reason);
    judged.each.iter_mut().flat_map(|each| &mut each.words).for_each(clean);
    judged
}

pub(super) fn decision_fact(PendingCall { prepared, judged, .. }: &PendingCall) -> CallDecided {
    CallDecided {
        tool: prepared.tool.to_owned(),
        about: prepared.about.clone(),
        effects: judged.effects.clone(),
        decision: judged.decision.clone(),
        lane: prepared.lane,
        each: judged.each.clone(),
    }
}
