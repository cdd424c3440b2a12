//! Sessions: started, opened, resumed. The archive lists and reads them.

pub(crate) mod extras;
pub(crate) mod first_request;
pub(crate) mod folder;
pub(crate) mod images;
pub(crate) mod machine;
pub(crate) mod patch;
pub(crate) mod secrets;

mod handle;
mod open;
mod plan;
mod session_model;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lathe_agent::{Actor, ActorSetup, Clock, OpenReader, PromptFacts};
use lathe_journal::{Journal, SessionReader};
use lathe_model::Variables;
use lathe_policy::Gate;
use lathe_protocol::{
    Draft, EventPlace, Fact, Limits, ReviewRule, RunNo, SessionId, SessionOpened, SessionOptions, ToolChoice,
};
use lathe_redact::Redactor;
use lathe_shell::StartFolder;
use lathe_tools::{OutputFiles, OutsideTool, Services, ShellPlan, Toolbox, Tracking};
use lathe_workspace::{WallsFound, Workspace};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

pub use self::open::OpenSession;
pub use self::plan::{Attended, ModeWish, ModelSource, Overrides, ReplayPlan, SessionPlan};
pub(crate) use self::session_model::{ModelSearch, ReadyModel, environment, ready_model};
use crate::archive::Archive;
use crate::aside::lakeview::summarise_each_step;
use crate::error::HostError;
use crate::home::Home;
use crate::models::Models;
use crate::rules::Rules;
use crate::session::extras::Extras;
use crate::session::folder::{
    current_opening, exact_identity, filter_env, identity, new_id, same_folder, set_toolset_variable,
    shell_env, working_folder,
};
use crate::session::handle::OpenHandle;
use crate::session::machine::{SystemClock, prompt_facts, surroundings};
use crate::session::secrets::{project_secrets as found_secrets, project_texts, redactor as secrets};
use crate::tools::graph::Graphs;
use crate::walls::{SandboxWish, mode_behind};

pub struct Host {
    archive: Archive,
    models: Models,
    rules: Rules,
    /// The walls of this machine, once they were looked for.
    pub(crate) walls: OnceCell<WallsFound>,
    /// Tokens of summaries that no event records, by session.
    pub(crate) unrecorded_tokens: Mutex<HashMap<SessionId, Arc<AtomicU64>>>,
}

/// The folder for outputs of a session's calls that are read again: the same whenever the session is resumed.
fn outputs_folder(id: &SessionId) -> PathBuf {
    let temp = std::env::temp_dir();
    temp.canonicalize().unwrap_or(temp).join(format!("lathe-{id}"))
}

/// A request as it would be sent, with its size.
pub struct ShownRequest {
    pub body: Vec<u8>,
    pub system_chars: usize,
    pub tools_chars: usize,
}

/// The settings for opening a session, apart from its model.
struct OpenSettings {
    tools: ToolChoice,
    review: Option<ReviewRule>,
    online: bool,
    /// New options, if it is resumed.
    options: Option<SessionOptions>,
    attended: Attended,
    extras: Extras,
    outside: Vec<OutsideTool>,
}

impl Host {
    pub fn new(home: Home) -> Self {
        let (models, rules) = (Models::new(home.clone()), Rules::new(home.clone()));
        Self {
            archive: Archive::new(home),
            models,
            rules,
            walls: OnceCell::new(),
            unrecorded_tokens: Mutex::default(),
        }
    }

    pub fn home(&self) -> &Home {
        self.archive.home()
    }

    /// The sessions of this home.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// The code graphs of this home.
    pub fn graphs(&self) -> Graphs {
        Graphs::new(self.home())
    }

    /// The models that can be asked from here.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The rules that apply here.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub async fn start(&self, plan: SessionPlan) -> Result<OpenSession, HostError> {
        let root = working_folder(&plan.folder)?;
        let surroundings = surroundings(&root);
        let variables = Arc::new(Variables::new(&surroundings));
        let mut known = plan.extras.secrets(self.home().path())?;
        known.extend(found_secrets(&root));
        let (stored, marks) = (self.models().stored_keys()?, self.models().marks());
        let search = ModelSearch {
            variables: &variables,
            stored: &stored,
            marks: &marks,
            workspace: &root,
            known: &known,
        };
        let ready = ready_model(&plan.source, plan.toolset, plan.record.as_deref(), &search, None)?;
        let wish = SandboxWish::of_plan(&plan);
        let (sandbox, (workspace, walls)) = (wish.sandbox, self.sandboxed(&root, wish).await?);
        let budget = self.models().priced(plan.limits.budget, &ready.choice)?;
        let options = SessionOptions {
            model: ready.choice.clone(),
            mode: mode_behind(plan.mode, plan.attended, &walls),
            sandbox,
            walls,
            toolset: ready.toolset,
            limits: Limits { budget, ..plan.limits },
            ending: plan.ending,
            patch: plan.patch,
            tools: plan.tools,
            review: plan.extras.review.rule.clone(),
            persona: plan.extras.persona.clone(),
            online: plan.extras.online.enabled,
            own_model: plan.own_model,
        };
        let outside = plan.extras.outside_tools(&workspace, self.home().path()).await?;
        plan.extras.checks()?; // Wrong settings leave no session behind.
        self.home().make()?;
        let id = new_id();
        let mut journal = Journal::create(&self.home().sessions(), &id, self.home().blobs()?)?;
        let opened = SessionOpened {
            session: id.clone(),
            workspace: root.display().to_string(),
            folder: identity(&root),
            options: options.clone(),
            parent: None,
            forked: None,
            surroundings: Some(surroundings),
            lathe: env!("CARGO_PKG_VERSION").to_owned(),
        };
        journal
            .append(SystemClock.now(), Draft { place: EventPlace::in_run(RunNo(0)), fact: opened.into() })?;
        self.open(
            id,
            journal,
            workspace,
            ready,
            variables,
            OpenSettings {
                tools: options.tools,
                review: options.review,
                online: options.online,
                options: None,
                attended: plan.attended,
                extras: plan.extras,
                outside,
            },
        )
    }

    /// Resumes a session. What was left open is closed as interrupted; a run that was under way can be resumed.
    pub async fn resume(&self, id: &SessionId, overrides: Overrides) -> Result<OpenSession, HostError> {
        let mut journal = Journal::open(&self.home().sessions(), id, self.home().blobs()?)?;
        self.archive().repair(&mut journal)?;
        let (opened, before) = opening_and_options(&journal.reader()?)?; // The actor reads the rest, once.
        let root = same_folder(&opened)?;
        let (variables, toolset) = (Arc::new(variables_of(&opened, &root)), Some(before.toolset));
        let mut known = overrides.extras.secrets(self.home().path())?;
        known.extend(found_secrets(&root));
        let (stored, marks) = (self.models().stored_keys()?, self.models().marks());
        let search = ModelSearch {
            variables: &variables,
            stored: &stored,
            marks: &marks,
            workspace: &root,
            known: &known,
        };
        let ready = ready_model(
            &overrides.source,
            toolset,
            overrides.record.as_deref(),
            &search,
            Some(&before.model),
        )?;
        let wish = SandboxWish::resumed(&overrides, before.sandbox);
        let (sandbox, (workspace, walls)) = (wish.sandbox, self.sandboxed(&root, wish).await?);
        let limits = before.limits.with_changes(overrides.limits);
        let budget = self.models().priced(limits.budget.clone(), &ready.choice)?;
        let limits = Limits { budget, ..limits };
        let options = SessionOptions {
            model: ready.choice.clone(),
            mode: overrides.mode.unwrap_or(before.mode),
            sandbox,
            walls,
            limits,
            own_model: before.own_model || overrides.own_model,
            tools: overrides.extras.narrowed_tools(opened.options.tools),
            ..before
        };
        let opening = OpenSettings {
            tools: options.tools.clone(),
            review: options.review.clone(),
            online: options.online,
            options: Some(options),
            attended: overrides.attended,
            outside: overrides.extras.outside_tools(&workspace, self.home().path()).await?,
            extras: overrides.extras,
        };
        self.open(id.clone(), journal, workspace, ready, variables, opening)
    }

    fn open(
        &self,
        id: SessionId,
        journal: Journal,
        workspace: Workspace,
        ready: ReadyModel,
        variables: Arc<Variables>,
        opening: OpenSettings,
    ) -> Result<OpenSession, HostError> {
        let OpenSettings { tools, review, online, options, attended, extras, outside } = opening;
        let workspace = self.home().recovered(workspace)?;
        let root = workspace.root();
        let mut known = extras.secrets(self.home().path())?;
        known.extend(ready.key.clone().map(|key| ("API_KEY".to_owned(), key)));
        known.extend(ready.known.iter().cloned());
        let redactor = Arc::new(secrets(None, &known));
        self.archive().remember_secrets(known);
        let outputs = self.archive().record_outputs(&id, root, &extras.outputs)?;
        let mut services = self
            .services(workspace.clone(), Arc::clone(&redactor))?
            .with_tracking(
                self.archive()
                    .tracker_options(&id, &workspace, [outputs, vec![outputs_folder(&id)]].concat())?
                    .map_or_else(Tracking::off, |options| {
                        Tracking::new(options).with_repositories(self.archive().quarantine().repositories())
                    }),
            )
            .with_keeper(self.archive().keeper(Some(&id)))
            .with_pledges(self.archive().pledges(&id))
            .with_checks(extras.checks()?);
        filter_env(&mut services.plan.env, &extras);
        set_toolset_variable(&mut services.plan.env, ready.toolset);
        let read_again = outputs_folder(&id);
        services.outputs = Some(OutputFiles::in_folder(read_again.clone()));
        let source = extras.review.source.as_ref();
        services.reviewer = self.reviewer(review.as_ref(), source, &ready, (&variables, root), &journal)?;
        if online {
            services.documents = Some(Arc::new(self.archive().shelf(&extras.online)?));
        }
        // The tree is secured while the first request is on its way.
        services.tracking.begin();
        let lakeview = self
            .lakeview(&extras.lakeview, &ready, &variables, (&id, root))
            .map_err(|error| error.to_string());
        let project = project_texts(&extras.instructions, &redactor);
        let (screen, known) = (Arc::clone(&redactor), Arc::clone(&redactor));
        let (place, shell, memory) = (workspace.clone(), services.plan.shell.clone(), self.home().memory());
        let unread = services.unread.clone();
        let toolbox = Arc::new(Toolbox::for_session(ready.toolset, Arc::new(services), tools, outside));
        let setup = ActorSetup {
            readers: self.readers(&id)?,
            patcher: Arc::new(self.archive().patcher(&id, workspace.clone())),
            journal,
            model: ready.client,
            toolbox: Arc::clone(&toolbox),
            gate: Gate {
                headless: attended != Attended::Person,
                outputs: Some(read_again),
                ..self.rules().gate(&workspace)
            },
            approvals: Arc::new(self.rules().approvals()),
            rules: Arc::new(toolbox.session_rules(self.rules().base_rules(&workspace, &extras)?)),
            clock: Arc::new(SystemClock),
            redactor,
            variables,
            facts: Box::new(move || PromptFacts {
                project: project.clone(),
                ..prompt_facts(&place, &shell, &memory, &known)
            }),
            attended: attended != Attended::Nobody,
        };
        let (actor, handle) = Actor::open(setup, options)?;
        let folder = root.to_string_lossy().into_owned();
        let handle =
            OpenHandle { actor: handle, workspace: folder.as_str().into(), display_redactor: screen };
        let state = actor.state();
        let (options, unfinished, can_go_on) =
            (state.options.clone(), state.is_unfinished(), state.can_resume());
        let tool_names: Vec<String> = toolbox.own_specs().into_iter().map(|spec| spec.name).collect();
        let tools = tool_names.len();
        let summing = lakeview.as_ref().ok().filter(|_| extras.lakeview.each_step);
        let summing = summing
            .map(|lakeview| summarise_each_step(Arc::new(handle.clone()), Arc::clone(lakeview), state.seq));
        let (actor, indexing) =
            (tokio::spawn(actor.run()), workspace.local().and_then(|tree| self.graphs().index(tree.root())));
        Ok(OpenSession {
            id,
            workspace: folder,
            options,
            unfinished,
            can_resume: can_go_on,
            tools,
            tool_names,
            handle,
            actor,
            indexing,
            unread,
            lakeview,
            summary_task: summing,
        })
    }

    pub(crate) fn services(
        &self,
        workspace: Workspace,
        redactor: Arc<Redactor>,
    ) -> Result<Services, HostError> {
        // A session inside another one does not write the facts of the user.
        let has_facts = self.home().refuse_inside_session("remember").is_ok();
        let plan = ShellPlan {
            home: self.home().path().to_owned(),
            shell: PathBuf::from("/bin/bash"),
            start: StartFolder::Is(exact_identity(workspace.root())?),
            env: shell_env(),
            memory: has_facts.then(|| self.home().memory()),
        };
        Ok(Services::new(workspace, self.home().blobs()?, redactor, plan))
    }

    fn readers(&self, id: &SessionId) -> Result<OpenReader, HostError> {
        let (sessions, id, blobs) = (self.home().sessions(), id.clone(), self.home().blobs()?);
        Ok(Arc::new(move || SessionReader::open(&sessions, &id, blobs.clone()).ok()))
    }
}

/// The time, for code that writes into a journal without an actor.
pub(crate) fn now() -> lathe_protocol::Timestamp {
    SystemClock.now()
}

/// The variables that were masked when the session began; only with the same ones are digests comparable.
pub(crate) fn variables_of(opened: &SessionOpened, root: &Path) -> Variables {
    opened.surroundings.as_ref().map_or_else(|| Variables::new(&surroundings(root)), Variables::new)
}

/// The opening of a session and its present options.
pub(crate) fn opening_and_options(
    reader: &SessionReader,
) -> Result<(SessionOpened, SessionOptions), HostError> {
    let events = reader.settings()?;
    let opened = current_opening(&events)?;
    let changed = events.into_iter().rev().find_map(|event| match event.fact {
        Fact::OptionsChanged(changed) => Some(changed.options),
        _ => None,
    });
    let options = changed.unwrap_or_else(|| opened.options.clone());
    Ok((opened, options))
}
