//! Approval requests: asked, answered, remembered, expired.
//!
//! A question is open from its event to the event that answers or ends it, and belongs to a call. The first answer
//! counts, from whichever client it comes. A standing approval is never wider than what was shown.

use std::collections::BTreeMap;
use std::sync::Arc;

use lathe_policy::{GateCall, StandingApproval};
use lathe_protocol::{
    Actor as Who, ApprovalAnswer, ApprovalAsked, ApprovalExpired, ApprovalGiven, Arguments, CallFinished,
    CallId, Command, CommandDecided, Decision, Effects, EventPlace, FrameBody, Proposal, ProposedText, Raw,
    ReceiptAnswer, SeenFile, Seq, ToolCall, ToolErrorKind, Verdict, visible,
};
use lathe_tools::{CommandApproval, PreparedCall, Preview};
use serde_json::Value;
use tokio::sync::oneshot;

use super::calls::{PendingCall, decision_fact};
use super::{Actor, AgentError};
use crate::blocking::blocking;
use crate::effects;
use crate::next::refusal;
use crate::running::refers_to;
use crate::state::{CallStage, QuestionState};

/// An approval request that waits for its answer.
pub(super) struct OpenApproval {
    call: CallId,
    grants: Vec<StandingApproval>,
    /// The command of a running line that waits. None if the call itself waits.
    reply: Option<oneshot::Sender<Decision>>,
}

/// The user's answer to one approval request.
pub(super) struct GivenApproval<'a> {
    pub(super) call: &'a CallId,
    pub(super) question: Seq,
    pub(super) answer: ApprovalAnswer,
    pub(super) reason: Option<&'a str>,
    /// The arguments that the user made of the proposal.
    pub(super) edited: Option<&'a Raw>,
}

impl Actor {
    /// Makes the preview of a call, to ask about it. An answer to another question may have decided the call
    /// meanwhile.
    pub(super) fn ask_approval(&mut self, id: CallId) -> Result<(), AgentError> {
        let Some(pending) = self.prepared.get(&id) else {
            let name = self.call_name(&id);
            let message = "The call is no longer known; nothing was done.";
            let failed = CallFinished::failed(&name, ToolErrorKind::Interrupted, message);
            return self.append(self.at_call(id), failed);
        };
        let judged = self.decide_again(pending);
        let verdict = judged.decision.verdict;
        let Some(pending) = self.prepared.get_mut(&id) else { return Ok(()) };
        pending.judged = judged;
        if verdict != Verdict::Ask {
            let fact = decision_fact(pending);
            return self.append(self.at_call(id), fact);
        }
        if self.previewing.insert(id.clone()) {
            let (prepared, effects) = (Arc::clone(&pending.prepared), pending.prepared.effects.clone());
            let context = self.context(id, prepared.tool, &effects, self.cancel.child_token());
            self.tasks.spawn(effects::preview(prepared, context, self.inbox_sender.clone()));
        }
        Ok(())
    }

    /// Opens the question about a call, with all of its effects. A call that cannot be done gets the reason as its
    /// result.
    pub(super) fn open_previewed(
        &mut self,
        id: CallId,
        preview: Result<Preview, Box<CallFinished>>,
    ) -> Result<(), AgentError> {
        self.previewing.remove(&id);
        let stage = self.state.calls.iter().find(|call| call.id == id).map(|call| &call.stage);
        let asks = matches!(
            stage,
            Some(CallStage::Decided { verdict: Verdict::Ask, asking: QuestionState::Not, .. })
        );
        if !asks || self.state.cancelled {
            return Ok(());
        }
        let preview = match preview {
            Ok(preview) => preview,
            Err(finished) => {
                self.prepared.remove(&id);
                return self.append(self.at_call(id), *finished);
            }
        };
        let Some(pending) = self.prepared.get_mut(&id) else { return Ok(()) };
        pending.shown = Some(preview.digest());
        pending.asked = Some(pending.judged.decision.clone());
        pending.preview = matches!(preview, Preview::Edit { .. }).then(|| preview.clone());
        let Some(PendingCall { prepared, judged, .. }) = &self.prepared.get(&id) else { return Ok(()) };
        let edit = |path: &str, diff: &str| {
            let diff = with_relative_names(&self.state.workspace, diff);
            Proposal::Edit { path: visible(&self.clean(path)), diff: visible_lines(&self.clean(&diff)) }
        };
        let what = match preview {
            Preview::Exec { command } => Proposal::Line {
                line: match self.folder_of(prepared) {
                    Some(folder) => visible(&self.clean(&format!("[in {folder}] {command}"))),
                    None => visible(&self.clean(&command)),
                },
                commands: judged.each.iter().map(|each| self.visible_command(each)).collect(),
                purpose: prepared.purpose.as_ref().map(|purpose| visible(&self.clean(purpose))),
            },
            Preview::Edit { path, diff, .. } => edit(&path, &diff),
            Preview::Patch { paths, diff, .. } => edit(&paths.join(", "), &diff),
            // The tool's own description, in full.
            Preview::Info { text } if text.is_empty() => {
                Proposal::Other { about: visible_lines(&self.clean(&prepared.about)) }
            }
            Preview::Info { text } => Proposal::Other { about: visible_lines(&self.clean(&text)) },
        };
        let (decision, grants) = (judged.decision.clone(), judged.narrowest.clone());
        self.open_question(id, what, &decision, grants, None)
    }

    /// The folder that a line would run in, if it is not the workspace itself.
    fn folder_of(&self, prepared: &PreparedCall) -> Option<String> {
        let line = prepared.line.as_ref()?;
        let services = self.setup.toolbox.services();
        let here = services.cwd().or_else(|| services.inside_cwd()).unwrap_or_default();
        let folder = line.folder.clone().unwrap_or_else(|| here.display().to_string());
        (folder != self.state.workspace).then_some(folder)
    }

    /// Handles the approval request of a command in a running line. It may have been allowed for the session since
    /// its line began.
    pub(super) fn handle_command_approval(
        &mut self,
        call: CallId,
        wanted: &CommandApproval,
        reply: oneshot::Sender<Decision>,
    ) -> Result<(), AgentError> {
        let call_gate = self.call_gate();
        let about = GateCall {
            tool: &wanted.tool,
            also: &wanted.also,
            kind: wanted.kind,
            kinds: &wanted.kinds,
            effects: &wanted.effects,
            arguments: &wanted.arguments,
        };
        let decision = blocking(|| {
            call_gate.gate.decide_call(&call_gate.rules, call_gate.actor, call_gate.mode, &about)
        });
        if decision.verdict != Verdict::Ask || self.state.cancelled {
            let _ = reply.send(decision);
            return Ok(());
        }
        let what = Proposal::Command {
            words: wanted.words.iter().map(|word| visible(&self.clean(word))).collect(),
            about: visible_lines(&self.clean(&with_relative_names(&self.state.workspace, &wanted.about))),
        };
        self.open_question(call, what, &decision, StandingApproval::of_call(&about), Some(reply))
    }

    fn open_question(
        &mut self,
        call: CallId,
        what: Proposal,
        decision: &Decision,
        grants: Vec<StandingApproval>,
        reply: Option<oneshot::Sender<Decision>>,
    ) -> Result<(), AgentError> {
        let asked = ApprovalAsked {
            what,
            rule: decision.rule.clone(),
            reason: decision.reason.clone(),
            remember: grants.iter().map(|grant| visible(&grant.description())).collect(),
        };
        self.append(self.at_call(call.clone()), asked)?;
        self.open_approvals.insert(self.state.seq, OpenApproval { call, grants, reply });
        Ok(())
    }

    pub(super) fn approve(
        &mut self,
        command: &Command,
        given: &GivenApproval<'_>,
    ) -> Result<ReceiptAnswer, AgentError> {
        let refused = |reason: &str| Ok(ReceiptAnswer::Refused { reason: reason.to_owned() });
        let seq = given.question;
        let open = self.open_approvals.get(&seq).filter(|open| refers_to(&open.call, given.call));
        let Some((call, grants)) = open.map(|open| (open.call.clone(), open.grants.clone())) else {
            return refused("the question was answered already, or is no longer asked");
        };
        match (command.actor, given.answer) {
            (Who::Model | Who::Project, _) => return refused("only a person can answer this"),
            (Who::Person, ApprovalAnswer::Session | ApprovalAnswer::Always) if grants.is_empty() => {
                return refused("nothing as narrow as this can be remembered; allow it once, or say no");
            }
            (Who::Person, answer) if given.edited.is_some() && answer != ApprovalAnswer::Once => {
                return refused("what was changed is allowed once");
            }
            (Who::Person, _) => {}
        }
        if let Some(edited) = given.edited
            && let Err(reason) = self.replace_arguments(seq, &call, edited)
        {
            return refused(&reason);
        }
        let Some(open) = self.open_approvals.remove(&seq) else { return refused("it is no longer asked") };
        self.remember(given.answer, &grants);
        let reason = given.reason.map(|reason| self.clean(reason));
        let fact = ApprovalGiven {
            answer: given.answer,
            reason: reason.clone(),
            by: command.actor,
            command: command.id.clone(),
            edited: given.edited.and_then(|edited| Raw::parse(&self.clean(edited.get())).ok()),
        };
        let place = EventPlace { cause: Some(seq), ..self.at_call(open.call.clone()) };
        self.append(place, fact)?;
        let decision = approval_decision(given.answer, reason.as_deref());
        match open.reply {
            // A command that has gone meanwhile gets no reply.
            Some(reply) => drop(reply.send(decision)),
            None => {
                if let Some(pending) = self.prepared.get_mut(&open.call) {
                    pending.judged.decision = decision;
                    pending.answered = true;
                }
            }
        }
        Ok(ReceiptAnswer::Accepted { seq: self.state.seq })
    }

    /// Replaces the model's arguments by the user's. A denial by the guard or by any rule holds for them too: the
    /// answer to a question does not bypass it. The error is the reason why it cannot be done: the question stays
    /// open.
    fn replace_arguments(&mut self, question: Seq, id: &CallId, edited: &Raw) -> Result<(), String> {
        if self.open_approvals.get(&question).is_none_or(|open| open.reply.is_some()) {
            return Err("a command of a running line cannot be changed; allow it, or say no".to_owned());
        }
        let call = self.calls.iter().find(|call| call.id == *id).ok_or("the call is no longer known")?;
        let arguments = Arguments::Json(edited.clone());
        let modified = self.prepared.get(id).and_then(|pending| pending.modified.clone());
        let note = match modified {
            Some((arguments, note)) if arguments.get() == edited.get() => note,
            Some(_) | None => argument_changes(&call.arguments, &arguments),
        };
        let call = ToolCall { arguments, ..call.clone() };
        let prepared = self.setup.toolbox.prepare(&call).map_err(|finished| finished.text)?;
        let mut pending = self.pending_call(prepared);
        let decision = &pending.judged.decision;
        if decision.verdict == Verdict::Deny {
            return Err(format!("denied by {}: {}", decision.rule, decision.reason));
        }
        pending.asked = Some(decision.clone());
        // The user saw the file as it was then.
        pending.expected = self.prepared.get(id).and_then(|before| match &before.preview {
            Some(Preview::Edit { path, before, .. }) => {
                Some(SeenFile { path: path.clone(), hash: before.clone() })
            }
            Some(_) | None => None,
        });
        self.edited.insert(id.clone(), self.clean(&note));
        self.prepared.insert(id.clone(), pending);
        Ok(())
    }

    /// The text that the call of an open question proposes. With `text`, the arguments by which the call would
    /// propose that text instead; they are then known when the question is answered with them.
    pub(super) fn proposed_text(&mut self, question: Seq, text: Option<String>) -> Option<ProposedText> {
        let open = self.open_approvals.get(&question).filter(|open| open.reply.is_none())?;
        let call = self.calls.iter().find(|call| call.id == open.call)?;
        let pending = self.prepared.get_mut(&open.call)?;
        let preview = pending.preview.as_ref()?;
        let Preview::Edit { path, current, proposed, diff, .. } = preview else { return None };
        let offered = ProposedText {
            path: path.clone(),
            current: current.clone(),
            proposed: proposed.clone(),
            arguments: None,
            diff: with_relative_names(&self.state.workspace, diff),
        };
        let Some(text) = text else {
            // A proposal that cannot be edited as text is not offered as text.
            return self.setup.toolbox.modified(call, preview, proposed).map(|_| offered);
        };
        let Arguments::Json(arguments) = self.setup.toolbox.modified(call, preview, &text)? else {
            return None;
        };
        let between = |from: &str| {
            let diff = Preview::diff(path, from, &text);
            with_relative_names(&self.state.workspace, &diff)
        };
        let (diff, own) = (between(current), between(proposed));
        let note = match own.is_empty() {
            true => "The proposed text was taken as it is.".to_owned(),
            false => format!(
                "The proposed text was changed by the user before the call:\n<diff>\n{}\n</diff>",
                own.trim_end()
            ),
        };
        pending.modified = Some((arguments.clone(), note));
        Some(ProposedText { arguments: Some(arguments), diff, proposed: text, ..offered })
    }

    /// Puts the note on the user's changes before the result of a call.
    pub(super) fn with_edit(&mut self, call: &CallId, mut result: Box<CallFinished>) -> Box<CallFinished> {
        if let Some(note) = self.edited.remove(call) {
            result.text = format!("{note}\n{}", result.text);
        }
        result
    }

    fn remember(&mut self, answer: ApprovalAnswer, grants: &[StandingApproval]) {
        let saved = match answer {
            ApprovalAnswer::Once | ApprovalAnswer::No => return,
            ApprovalAnswer::Session => {
                self.rules.remember_for_session(grants);
                return;
            }
            ApprovalAnswer::Always => self.rules.remember_always(grants),
        };
        if let Err(reason) = saved {
            let words = format!("the approval could not be stored, so it holds for this time only: {reason}");
            self.watchers.show(self.state.step, None, FrameBody::Warning(words));
        }
    }

    /// Ends the questions of a call, or all questions.
    pub(super) fn expire(&mut self, call: Option<&CallId>, reason: &str) -> Result<(), AgentError> {
        let ended: Vec<(Seq, CallId)> = self
            .state
            .approvals
            .iter()
            .filter(|(_, asked)| call.is_none_or(|call| call == *asked))
            .map(|(seq, asked)| (*seq, asked.clone()))
            .collect();
        for (seq, asked) in ended {
            self.open_approvals.remove(&seq);
            let place = EventPlace { cause: Some(seq), ..self.at_call(asked) };
            self.append(place, ApprovalExpired { reason: reason.to_owned() })?;
        }
        Ok(())
    }

    fn clean(&self, text: &str) -> String {
        self.setup.redactor.redact_text(text).into_owned()
    }

    fn visible_command(&self, each: &CommandDecided) -> CommandDecided {
        CommandDecided {
            words: each.words.iter().map(|word| visible(&self.clean(word))).collect(),
            effects: visible_effects(&each.effects),
            ..each.clone()
        }
    }
}

/// The effects with invisible characters written out.
fn visible_effects(effects: &Effects) -> Effects {
    let all = |things: &[String]| things.iter().map(|thing| visible(thing)).collect();
    Effects {
        reads: all(&effects.reads),
        writes: all(&effects.writes),
        programs: all(&effects.programs),
        hosts: all(&effects.hosts),
        environment: all(&effects.environment),
        opaque: effects.opaque,
    }
}

fn approval_decision(answer: ApprovalAnswer, reason: Option<&str>) -> Decision {
    let (verdict, reason) = match answer {
        ApprovalAnswer::Once => (Verdict::Allow, "allowed once by the user".to_owned()),
        ApprovalAnswer::Session => (Verdict::Allow, "allowed for this session by the user".to_owned()),
        ApprovalAnswer::Always => (Verdict::Allow, "always allowed by the user".to_owned()),
        ApprovalAnswer::No => (Verdict::Deny, refusal(reason.unwrap_or_default())),
    };
    Decision { verdict, rule: "approval".to_owned(), reason }
}

/// The user's changes of a call's arguments, member by member.
fn argument_changes(before: &Arguments, after: &Arguments) -> String {
    let members = |arguments: &Arguments| -> BTreeMap<String, Value> {
        let text = match arguments {
            Arguments::Json(raw) => raw.get(),
            Arguments::Malformed(text) => text,
        };
        serde_json::from_str(text).unwrap_or_default()
    };
    let (before, after) = (members(before), members(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort();
    names.dedup();
    let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    let mut text = "The user changed this call before it ran:".to_owned();
    for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
        text.push_str(&format!("\n- {name}: {} became {}", shown(before.get(name)), shown(after.get(name))));
    }
    text
}

/// A diff whose file name is relative to the workspace. Only the two names at its top change, not its lines.
fn with_relative_names(workspace: &str, diff: &str) -> String {
    let workspace = workspace.trim_matches('/');
    let (old, new) = (format!("--- a/{workspace}/"), format!("+++ b/{workspace}/"));
    let name = |line: &str| match (line.strip_prefix(&old), line.strip_prefix(&new)) {
        (Some(rest), _) => format!("--- a/{rest}"),
        (None, Some(rest)) => format!("+++ b/{rest}"),
        (None, None) => line.to_owned(),
    };
    let mut lines = diff.split_inclusive('\n');
    let top: String = lines.by_ref().take(2).map(name).collect();
    lines.fold(top, |text, line| text + line)
}

/// Text of several lines with invisible characters written out. Indentation stays.
fn visible_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' | ' '..='~' => out.push(c),
            c => out.push_str(&visible(c.encode_utf8(&mut [0; 4]))),
        }
    }
    out
}
