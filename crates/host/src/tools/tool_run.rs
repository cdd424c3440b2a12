//! Single calls of tools without a model: for users and scripts that want to see what the model would get.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lathe_edit::unified_diff;
use lathe_protocol::{
    Arguments, CallFinished, CallId, Digest, Limits, Mode, Raw, SeenFile, ToolCall, ToolChoice,
    ToolErrorKind, Toolset, Verdict,
};
use lathe_tools::{
    CallGate, LocalLedger, OutsideTool, PreparedCall, Preview, RunContext, Services, ToolAbout, Toolbox,
};
use tokio_util::sync::CancellationToken;

use crate::error::HostError;
use crate::session::extras::Extras;
use crate::session::folder::working_folder;
use crate::session::{Host, ModelSource, SessionPlan};

pub struct ToolRun {
    pub name: String,
    pub arguments: String,
    pub toolset: Option<Toolset>,
    /// The mode. Without one, a user's own call is limited by the guard only.
    pub mode: Option<Mode>,
    pub folder: PathBuf,
    pub cancel: CancellationToken,
    pub extras: Extras,
    /// Limits of a line of the shell.
    pub limits: Limits,
}

/// The result of previewing a call.
pub enum ToolPreview {
    /// The effect that it would have, as JSON.
    Preview(Raw),
    /// The call cannot be made.
    Refused(Box<CallFinished>),
}

/// Tools without a session: their descriptions, and single calls.
#[derive(Clone, Copy)]
pub struct ToolDesk<'a>(&'a Host);

impl Host {
    /// The tools, without a session.
    pub fn tools(&self) -> ToolDesk<'_> {
        ToolDesk(self)
    }
}

impl ToolDesk<'_> {
    /// Runs one call.
    pub async fn run(&self, run: ToolRun) -> Result<CallFinished, HostError> {
        let bench = self.prepare_run(run).await?;
        let finished = bench.run(&bench.call, Vec::new()).await;
        bench.services.close().await;
        Ok(finished)
    }

    /// Previews a call. Nothing is run.
    pub async fn preview(&self, run: ToolRun) -> Result<ToolPreview, HostError> {
        let bench = self.prepare_run(run).await?;
        Ok(match bench.preview().await {
            Ok(preview) => {
                let preview = Raw::from_serialize(&preview);
                ToolPreview::Preview(preview.map_err(|error| HostError::ToolArguments(error.to_string()))?)
            }
            Err(finished) => ToolPreview::Refused(finished),
        })
    }

    /// Runs a call with the text that a user made of its proposal. The result begins with the user's changes.
    pub async fn run_proposed(&self, run: ToolRun, proposed: &str) -> Result<CallFinished, HostError> {
        let bench = self.prepare_run(run).await?;
        let preview = match bench.preview().await {
            Ok(preview) => preview,
            Err(finished) => return Ok(*finished),
        };
        let not_possible = || HostError::NotModifiable(bench.call.name.clone());
        let Preview::Edit { path, proposed: offered, .. } = &preview else { return Err(not_possible()) };
        let arguments = bench.toolbox.modified(&bench.call, &preview, proposed);
        let call = ToolCall { arguments: arguments.ok_or_else(not_possible)?, ..bench.call.clone() };
        let mut finished = bench.run(&call, bench.seen_file(path).await).await;
        bench.services.close().await;
        let diff = unified_diff(Some(offered.as_bytes()), Some(proposed.as_bytes()), path);
        let changed = if diff.is_empty() {
            "The proposed text was taken as it is.".to_owned()
        } else {
            format!(
                "The proposed text was changed by the user before the call:\n<diff>\n{}\n</diff>",
                diff.trim_end()
            )
        };
        finished.text = format!("{}\n{}", bench.services.redactor.redact_text(&changed), finished.text);
        Ok(finished)
    }

    async fn prepare_run(&self, run: ToolRun) -> Result<PreparedRun, HostError> {
        let folder = run
            .folder
            .canonicalize()
            .map_err(|error| HostError::Folder { path: run.folder.clone(), reason: error.to_string() })?;
        let (toolset, built_in) = find_toolset(&run)?;
        let arguments = Arguments::from_text(&run.arguments);
        if let Arguments::Malformed(text) = &arguments {
            let reason = serde_json::from_str::<serde_json::Value>(text).err().map(|error| error.to_string());
            return Err(HostError::ToolArguments(reason.unwrap_or_else(|| "it is a string".to_owned())));
        }
        self.0.home().make()?;
        // No program is started for a tool of Lathe's own.
        let home = self.0.home().path();
        let workspace = self.0.home().workspace(&folder);
        let outside = if built_in {
            run.extras.declared_tools(&workspace, home)?
        } else {
            run.extras.outside_tools(&workspace, home).await?
        };
        let mut known = run.extras.secrets(home)?;
        known.extend(crate::session::secrets::project_secrets(&run.folder));
        let redactor = Arc::new(crate::session::secrets::redactor(None, &known));
        let mut services = self.0.user_services(workspace.clone(), &run.extras, redactor)?;
        crate::session::folder::set_toolset_variable(&mut services.plan.env, toolset);
        let services = Arc::new(services);
        let toolbox = Toolbox::for_session(toolset, Arc::clone(&services), ToolChoice::default(), outside);
        if !built_in && !toolbox.own_specs().iter().any(|spec| spec.name == run.name) {
            let known = toolbox.own_specs().into_iter().map(|spec| spec.name).collect();
            return Err(HostError::NoSuchTool { name: run.name, known });
        }
        let call = ToolCall { id: CallId::new("tool-run"), name: run.name, arguments, raw: None };
        let call_gate = self.0.rules().call_gate(&workspace, run.mode, &toolbox, &run.extras)?;
        Ok(PreparedRun { toolbox, services, call, call_gate, cancel: run.cancel, limits: run.limits })
    }
}

/// One call, with its toolbox.
struct PreparedRun {
    toolbox: Toolbox,
    services: Arc<Services>,
    call: ToolCall,
    call_gate: CallGate,
    cancel: CancellationToken,
    limits: Limits,
}

impl PreparedRun {
    async fn preview(&self) -> Result<Preview, Box<CallFinished>> {
        let prepared = self.toolbox.prepare(&self.call)?;
        let mut seen = Vec::new();
        for path in &prepared.effects.writes {
            seen.extend(self.seen_file(path).await);
        }
        prepared.preview(&self.context(seen)).await
    }

    async fn run(&self, call: &ToolCall, seen: Vec<SeenFile>) -> CallFinished {
        let prepared: PreparedCall = match self.toolbox.prepare(call) {
            Ok(prepared) => prepared,
            Err(finished) => return *finished,
        };
        let decided = self.call_gate.decide_call(&prepared);
        let Some(permit) = self.call_gate.gate.permit(&decided.decision, &decided.effects) else {
            debug_assert_ne!(decided.decision.verdict, Verdict::Allow);
            let message = format!("Tool execution denied by policy. {}", decided.decision.reason);
            return CallFinished::failed(&call.name, ToolErrorKind::PolicyViolation, message);
        };
        self.toolbox.run(prepared, permit, self.context(seen)).await
    }

    fn context(&self, seen: Vec<SeenFile>) -> RunContext {
        RunContext {
            services: Arc::clone(&self.services),
            call: self.call.id.clone(),
            live: Arc::new(|_, _| {}),
            cancel: self.cancel.clone(),
            seen,
            memory: None,
            shown: None,
            review: None,
            line_seconds: self.limits.line_seconds,
            silent_seconds: self.limits.silent_seconds,
            umask: None,
            handle: None,
            asker: None,
            call_gate: self.call_gate.clone(),
            ledger: Arc::new(LocalLedger::default()),
        }
    }

    /// The seen state of a file: a user who changed a proposal has seen the file it is for.
    async fn seen_file(&self, path: &str) -> Vec<SeenFile> {
        let content = self.services.workspace.files().read(Path::new(path), None).await;
        content
            .map(|content| SeenFile { path: path.to_owned(), hash: Digest::of(&content) })
            .into_iter()
            .collect()
    }
}

impl ToolDesk<'_> {
    /// Every tool that a session with this toolset may have, with the description for the model.
    pub fn all_tools(&self, toolset: Toolset) -> Vec<(String, String)> {
        let specs = Toolbox::specs(toolset).into_iter().chain(Toolbox::special_specs(toolset));
        specs.map(|spec| (spec.name, spec.description)).collect()
    }

    /// The tools that a session in a folder would have.
    pub async fn session_tools(
        &self,
        toolset: Toolset,
        folder: &Path,
        choice: ToolChoice,
        extras: &Extras,
    ) -> Result<Vec<ToolAbout>, HostError> {
        let root = working_folder(folder)?;
        let workspace = self.0.home().workspace(&root);
        Ok(Toolbox::about_session(
            toolset,
            choice,
            extras.outside_tools(&workspace, self.0.home().path()).await?,
        ))
    }

    /// Checks that a session with this plan has every tool that is named. Names are those of its toolset, of tools
    /// that only some sessions have, or of the user's own programs.
    pub async fn check(&self, plan: &SessionPlan, names: &[String]) -> Result<(), HostError> {
        // The toolset of a recording is known only to the recording.
        let sets = match (plan.toolset, &plan.source) {
            (Some(toolset), _) => vec![toolset],
            (None, ModelSource::Ask(_)) => vec![Toolset::Lathe],
            (None, _) => Toolset::ALL.to_vec(),
        };
        let mut outside = None;
        let own =
            sets.iter().flat_map(|set| Toolbox::specs(*set).into_iter().chain(Toolbox::special_specs(*set)));
        let own: HashSet<String> = own.map(|spec| spec.name).collect();
        let mut seen = HashSet::new();
        for name in names.iter().filter(|name| seen.insert(*name)) {
            if own.contains(name) {
                continue;
            }
            let chosen = || ToolChoice { core: vec![name.clone()], exclude: Vec::new() };
            let has = |outside: &[OutsideTool]| {
                sets.iter().any(|set| !Toolbox::about_session(*set, chosen(), outside.to_vec()).is_empty())
            };
            if has(&[]) {
                continue;
            }
            let outside = match &mut outside {
                Some(known) => known,
                None => {
                    let workspace = self.0.home().workspace(&working_folder(&plan.folder)?);
                    outside.insert(plan.extras.outside_tools(&workspace, self.0.home().path()).await?)
                }
            };
            if !has(outside) {
                let specs = sets.iter().flat_map(|set| {
                    Toolbox::specs(*set).into_iter().chain(Toolbox::special_specs(*set)).map(|spec| spec.name)
                });
                let mut known: Vec<String> =
                    specs.chain(outside.iter().map(|tool| tool.name.clone())).collect();
                known.sort();
                known.dedup();
                return Err(HostError::NoSuchTool { name: name.clone(), known });
            }
        }
        Ok(())
    }
}

/// The requested toolset, or the first that has a tool of this name; true if the tool is one of its own.
fn find_toolset(run: &ToolRun) -> Result<(Toolset, bool), HostError> {
    let has = |toolset: Toolset| Toolbox::specs(toolset).iter().any(|spec| spec.name == run.name);
    let candidates = run.toolset.map_or_else(|| Toolset::ALL.to_vec(), |toolset| vec![toolset]);
    if let Some(found) = candidates.iter().copied().find(|toolset| has(*toolset)) {
        return Ok((found, true));
    }
    if run.extras.discovery.is_some() || !run.extras.fields.is_empty() {
        return Ok((run.toolset.unwrap_or(Toolset::Lathe), false));
    }
    let mut known: Vec<String> =
        candidates.into_iter().flat_map(Toolbox::specs).map(|spec| spec.name).collect();
    known.sort();
    known.dedup();
    Err(HostError::NoSuchTool { name: run.name.clone(), known })
}
