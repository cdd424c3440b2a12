//! One tool without a model: for people and scripts who want to see what the model would get.

use std::path::PathBuf;
use std::sync::Arc;

use lathe_protocol::{
    Actor, Arguments, CallFinished, CallId, Mode, ToolCall, ToolErrorKind, Toolset, Verdict,
};
use lathe_redact::Redactor;
use lathe_tools::{RunContext, ToolAbout, Toolbox};
use tokio_util::sync::CancellationToken;

use crate::error::HostError;
use crate::session::Host;

pub struct ToolRun {
    pub name: String,
    pub arguments: String,
    pub toolset: Option<Toolset>,
    /// A person's own call is limited by the guard only, unless a mode is named.
    pub mode: Option<Mode>,
    pub folder: PathBuf,
    pub cancel: CancellationToken,
}

impl Host {
    pub fn tools(toolset: Toolset) -> Vec<ToolAbout> {
        Toolbox::about(toolset)
    }

    pub async fn run_tool(&self, run: ToolRun) -> Result<CallFinished, HostError> {
        let folder = run
            .folder
            .canonicalize()
            .map_err(|error| HostError::Folder { path: run.folder.clone(), reason: error.to_string() })?;
        let toolset = find_toolset(&run)?;
        let arguments = Arguments::from_text(&run.arguments);
        if let Arguments::Malformed(text) = &arguments {
            let reason = serde_json::from_str::<serde_json::Value>(text).err().map(|error| error.to_string());
            return Err(HostError::ToolArguments(reason.unwrap_or_else(|| "it is a string".to_owned())));
        }
        self.home().make()?;
        let services = Arc::new(self.services(&folder, Arc::new(Redactor::new([])))?);
        let toolbox = Toolbox::new(toolset, Arc::clone(&services));
        let call = ToolCall { id: CallId::new("tool-run"), name: run.name.clone(), arguments, raw: None };
        let prepared = match toolbox.prepare(&call) {
            Ok(prepared) => prepared,
            Err(finished) => return Ok(*finished),
        };
        let actor = if run.mode.is_some() { Actor::Model } else { Actor::Person };
        let gate = self.gate();
        let decision = gate.decide(actor, run.mode.unwrap_or(Mode::Default), &prepared.effects);
        let Some(permit) = gate.permit(&decision, &prepared.effects) else {
            debug_assert_ne!(decision.verdict, Verdict::Allow);
            let message = format!("Tool execution denied by policy. {}", decision.reason);
            return Ok(CallFinished::failed(&run.name, ToolErrorKind::PolicyViolation, message));
        };
        let context = RunContext {
            services: Arc::clone(&services),
            call: call.id,
            live: Arc::new(|_, _| {}),
            cancel: run.cancel,
            seen: Vec::new(),
            memory: None,
            line_seconds: lathe_protocol::Limits::default().line_seconds,
            asker: None,
        };
        let finished = toolbox.run(prepared, permit, context).await;
        services.close().await;
        Ok(finished)
    }
}

/// The toolset asked for, or the first that has a tool of this name.
fn find_toolset(run: &ToolRun) -> Result<Toolset, HostError> {
    let has = |toolset: Toolset| Toolbox::specs(toolset).iter().any(|spec| spec.name == run.name);
    let candidates = run.toolset.map_or_else(|| Toolset::ALL.to_vec(), |toolset| vec![toolset]);
    if let Some(found) = candidates.iter().copied().find(|toolset| has(*toolset)) {
        return Ok(found);
    }
    let mut known: Vec<String> =
        candidates.into_iter().flat_map(Toolbox::specs).map(|spec| spec.name).collect();
    known.sort();
    known.dedup();
    Err(HostError::NoSuchTool { name: run.name.clone(), known })
}
