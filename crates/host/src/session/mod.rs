//! Sessions: started, opened, resumed. The archive lists and reads them.

pub(crate) mod extras;
pub(crate) mod facts;
pub(crate) mod first_request;
pub(crate) mod folder;
pub(crate) mod images;
pub(crate) mod patch;
pub(crate) mod secrets;

mod handle;
mod open;
mod plan;
mod ready;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use lathe_agent::{Actor, ActorSetup, Clock, OpenReader, PromptFacts};
use lathe_journal::{Journal, SessionReader};
use lathe_model::Variables;
use lathe_policy::Gate;
use lathe_protocol::{
    Draft, EventPlace, Fact, Limits, ReviewRule, RunNo, Sandbox, SessionId, SessionOpened, SessionOptions,
    ToolChoice,
};
use lathe_redact::Redactor;
use lathe_shell::StartFolder;
use lathe_tools::{OutputFiles, OutsideTool, Services, ShellPlan, Toolbox, Tracking};
use lathe_workspace::Workspace;
use parking_lot::Mutex;

pub use self::open::OpenSession;
pub use self::plan::{Attended, ModelSource, Overrides, SessionPlan};
pub(crate) use self::ready::{ModelSearch, Ready, environment, ready};
use crate::archive::Archive;
use crate::aside::lakeview::each_step;
use crate::error::HostError;
use crate::home::Home;
use crate::models::Models;
use crate::rules::Rules;
use crate::session::extras::Extras;
use crate::session::facts::{SystemClock, facts, surroundings};
use crate::session::folder::{
    exact_identity, fit_env, identity, name_toolset, new_id, opened_in, same_folder, shell_env,
    working_folder,
};
use crate::session::handle::OpenHandle;
use crate::session::secrets::{found as found_secrets, project_texts, redactor as secrets};
use crate::tools::graph::Graphs;

pub struct Host {
    archive: Archive,
    models: Models,
    rules: Rules,
    /// Tokens of summaries that are in no event, by session.
    pub(crate) unkept: Mutex<HashMap<SessionId, Arc<AtomicU64>>>,
}

/// Where outputs of a session's calls lie while they are read again: the same place whenever it is gone on with.
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

/// How a session is opened, beside its model.
struct Opening {
    tools: ToolChoice,
    review: Option<ReviewRule>,
    online: bool,
    /// New options, if it is opened again.
    options: Option<SessionOptions>,
    attended: Attended,
    extras: Extras,
    outside: Vec<OutsideTool>,
}

impl Host {
    pub fn new(home: Home) -> Self {
        let (models, rules) = (Models::new(home.clone()), Rules::new(home.clone()));
        Self { archive: Archive::new(home), models, rules, unkept: Mutex::default() }
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

    /// The rules that hold here.
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
        let asking = ModelSearch {
            variables: &variables,
            stored: &stored,
            marks: &marks,
            workspace: &root,
            known: &known,
        };
        let ready = ready(&plan.source, plan.toolset, plan.record.as_deref(), &asking, None)?;
        let budget = self.models().priced(plan.limits.budget, &ready.choice)?;
        let options = SessionOptions {
            model: ready.choice.clone(),
            mode: plan.mode,
            sandbox: Sandbox::Off,
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
        let workspace = self.home().workspace(&root);
        let outside = plan.extras.outside(&workspace, self.home().path()).await?;
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
            Opening {
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

    /// Opens a session again. What was left open is closed as interrupted; a run that was under way can be gone on with.
    pub async fn resume(&self, id: &SessionId, overrides: Overrides) -> Result<OpenSession, HostError> {
        let mut journal = Journal::open(&self.home().sessions(), id, self.home().blobs()?)?;
        self.archive().mend(&mut journal)?;
        let (opened, before) = beginning(&journal.reader()?)?; // The actor reads the rest, once.
        let root = same_folder(&opened)?;
        let (variables, toolset) = (Arc::new(variables_of(&opened, &root)), Some(before.toolset));
        let mut known = overrides.extras.secrets(self.home().path())?;
        known.extend(found_secrets(&root));
        let (stored, marks) = (self.models().stored_keys()?, self.models().marks());
        let asking = ModelSearch {
            variables: &variables,
            stored: &stored,
            marks: &marks,
            workspace: &root,
            known: &known,
        };
        let ready =
            ready(&overrides.source, toolset, overrides.record.as_deref(), &asking, Some(&before.model))?;
        let limits = before.limits.with_changes(overrides.limits);
        let budget = self.models().priced(limits.budget.clone(), &ready.choice)?;
        let limits = Limits { budget, ..limits };
        let options = SessionOptions {
            model: ready.choice.clone(),
            mode: overrides.mode.unwrap_or(before.mode),
            limits,
            own_model: before.own_model || overrides.own_model,
            tools: overrides.extras.narrowed(opened.options.tools),
            ..before
        };
        let workspace = self.home().workspace(&root);
        let opening = Opening {
            tools: options.tools.clone(),
            review: options.review.clone(),
            online: options.online,
            options: Some(options),
            attended: overrides.attended,
            outside: overrides.extras.outside(&workspace, self.home().path()).await?,
            extras: overrides.extras,
        };
        self.open(id.clone(), journal, workspace, ready, variables, opening)
    }

    fn open(
        &self,
        id: SessionId,
        journal: Journal,
        workspace: Workspace,
        ready: Ready,
        variables: Arc<Variables>,
        opening: Opening,
    ) -> Result<OpenSession, HostError> {
        let Opening { tools, review, online, options, attended, extras, outside } = opening;
        let workspace = self.home().recovered(workspace)?;
        let root = workspace.root();
        let mut known = extras.secrets(self.home().path())?;
        known.extend(ready.key.clone().map(|key| ("API_KEY".to_owned(), key)));
        known.extend(ready.known.iter().cloned());
        let redactor = Arc::new(secrets(None, &known));
        self.archive().meet(known);
        let outputs = self.archive().keep_outputs(&id, root, &extras.outputs)?;
        let mut services = self
            .services(workspace.clone(), Arc::clone(&redactor))?
            .with_tracking(
                self.archive()
                    .tracking(&id, &workspace, [outputs, vec![outputs_folder(&id)]].concat())?
                    .map_or_else(Tracking::off, |options| {
                        Tracking::new(options).with_repositories(self.archive().quarantine().repositories())
                    }),
            )
            .with_keeper(self.archive().keeper(Some(&id)))
            .with_pledges(self.archive().pledges(&id))
            .with_checks(extras.checks()?);
        fit_env(&mut services.plan.env, &extras);
        name_toolset(&mut services.plan.env, ready.toolset);
        let read_again = outputs_folder(&id);
        services.outputs = Some(OutputFiles::in_folder(read_again.clone()));
        let source = extras.review.source.as_ref();
        services.reviewer = self.reviewer(review.as_ref(), source, &ready, (&variables, root), &journal)?;
        if online {
            services.documents = Some(Arc::new(self.archive().shelf(&extras.online)?));
        }
        // The tree is secured beside the first request.
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
            approvals: Arc::new(self.rules().answers()),
            rules: Arc::new(toolbox.session_rules(self.rules().base_rules(&workspace, &extras)?)),
            clock: Arc::new(SystemClock),
            redactor,
            variables,
            facts: Box::new(move || PromptFacts {
                project: project.clone(),
                ..facts(&place, &shell, &memory, &known)
            }),
            attended: attended != Attended::Nobody,
        };
        let (actor, handle) = Actor::open(setup, options)?;
        let folder = root.to_string_lossy().into_owned();
        let handle = OpenHandle { actor: handle, workspace: folder.as_str().into(), screen };
        let state = actor.state();
        let (options, unfinished, can_go_on) =
            (state.options.clone(), state.is_unfinished(), state.can_resume());
        let tool_names: Vec<String> = toolbox.own_specs().into_iter().map(|spec| spec.name).collect();
        let tools = tool_names.len();
        let summing = lakeview.as_ref().ok().filter(|_| extras.lakeview.each_step);
        let summing =
            summing.map(|lakeview| each_step(Arc::new(handle.clone()), Arc::clone(lakeview), state.seq));
        let (actor, indexing) =
            (tokio::spawn(actor.run()), workspace.local().and_then(|tree| self.graphs().index(tree.root())));
        Ok(OpenSession {
            id,
            workspace: folder,
            options,
            unfinished,
            can_go_on,
            tools,
            tool_names,
            handle,
            actor,
            indexing,
            unread,
            lakeview,
            summing,
        })
    }

    pub(crate) fn services(
        &self,
        workspace: Workspace,
        redactor: Arc<Redactor>,
    ) -> Result<Services, HostError> {
        // A session does not write the facts of the user that an outer session works for.
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

/// The time, for whoever writes into a journal without an actor.
pub(crate) fn now() -> lathe_protocol::Timestamp {
    SystemClock.now()
}

/// What was masked when the session began; digests are comparable only with the same.
pub(crate) fn variables_of(opened: &SessionOpened, root: &Path) -> Variables {
    opened.surroundings.as_ref().map_or_else(|| Variables::new(&surroundings(root)), Variables::new)
}

/// The opening of a session and the options it has now.
pub(crate) fn beginning(reader: &SessionReader) -> Result<(SessionOpened, SessionOptions), HostError> {
    let events = reader.settings()?;
    let opened = opened_in(&events)?;
    let changed = events.into_iter().rev().find_map(|event| match event.fact {
        Fact::OptionsChanged(changed) => Some(changed.options),
        _ => None,
    });
    let options = changed.unwrap_or_else(|| opened.options.clone());
    Ok((opened, options))
}
