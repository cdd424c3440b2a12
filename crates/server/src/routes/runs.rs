//! Runs: a task is given and driven to its end, with Trae's request and response.

use std::path::PathBuf;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use lathe_host::{Attended, HostError, ModelSource, PROVIDERS, blocking};
use lathe_plan::{ConfigText, GivenOptions, ReviewRules, Wish, options};
use lathe_protocol::{
    CommandBody, CommandId, EventStream, Fact, Mode, ReceiptAnswer, Sandbox, Seq, TaskFinished, Update,
};
use lathe_views::Projector;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::modes::{self, AgentMode, RULES_MAX};
use super::{fields, models, tools};
use crate::access::{Identity, Role};
use crate::api::{Api, ApiResult, Endpoint, Input, Json, QueryOf, parse};
use crate::app::App;
use crate::error::ApiError;
use crate::live::{LiveSession, RoleNeeds, SessionWork, client_id, new_command_id};

/// Bytes of a file that a request names.
const NAMED_FILE_MAX: u64 = 1 << 20;

/// A task, and the settings for its run. Members that name paths of the server, endpoints or keys are for admins.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(transform = describe_options)]
pub(crate) struct RunRequest {
    /// The task.
    #[serde(default)]
    task: Option<String>,
    /// A file of the server that holds the task (admin).
    #[serde(default)]
    file_path: Option<String>,
    /// The folder to work in: one of the roots of the server or a folder inside.
    #[serde(default)]
    working_dir: Option<String>,
    /// A configuration file of the server (admin).
    #[serde(default)]
    config_file: Option<String>,
    /// The name of a stored model.
    #[serde(default)]
    model_config_name: Option<String>,
    /// A system prompt, for an agent mode that has none.
    #[serde(default)]
    prompt: Option<String>,
    /// The name of an agent mode.
    #[serde(default)]
    agent_mode: Option<String>,
    /// An agent mode for this run only.
    #[serde(default)]
    agent_mode_config: Option<AgentMode>,
    /// Judge edits by rules: `quality_review_rules`, or those of the agent mode or the configuration.
    #[serde(default)]
    enable_quality_review: Option<bool>,
    #[serde(default)]
    quality_review_rules: Option<String>,
    /// A failing verdict keeps the task from ending.
    #[serde(default)]
    quality_review_gate: Option<bool>,
    /// The options, by the names that the rows of the settings give them.
    #[serde(flatten)]
    #[schemars(skip)]
    options: serde_json::Map<String, Value>,
}

/// Describes the options among the members.
fn describe_options(schema: &mut schemars::Schema) {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (row, member) in options().iter().filter_map(|row| Some((row, row.member.as_ref()?))) {
        properties.insert(member.name.clone(), member.schema(row));
    }
}

impl RunRequest {
    /// The options that were given. A member of the wrong type is refused; a value that does not fit is refused when the
    /// settings are loaded.
    fn given_options(&self) -> Result<GivenOptions, ApiError> {
        let mut given = Vec::new();
        for (row, member) in options().iter().filter_map(|row| Some((row, row.member.as_ref()?))) {
            let Some(value) = self.options.get(&member.name).filter(|value| !value.is_null()) else {
                continue;
            };
            if let Err(expected) = row.accepts(value) {
                return Err(ApiError::unprocessable(format!("`{}`: expected {expected}", member.name)));
            }
            given.push(row.from_member(value.clone()));
        }
        Ok(given.into_iter().collect())
    }

    /// The member that only admins may give, if there is one among those that were given.
    fn admin_member(&self) -> Option<&'static str> {
        let members = options().iter().filter_map(|row| row.member.as_ref());
        let mut given =
            members.filter(|member| self.options.get(&member.name).is_some_and(|value| !value.is_null()));
        let option = given.find(|member| member.admin).map(|member| member.name.as_str());
        option.or_else(|| self.config_file.is_some().then_some("config_file"))
    }
}

/// A task for a session that was started before.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(crate) struct TaskRequest {
    session_id: String,
    /// A repeated request with the same id does not give the task again, and gets the same run in its response.
    #[serde(default)]
    id: Option<String>,
    /// The task.
    #[serde(default)]
    task: Option<String>,
    /// A file of the server that holds the task (admin).
    #[serde(default)]
    file_path: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SessionQuery {
    session_id: String,
}

/// The result of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct RunResult {
    session_id: String,
    run_id: String,
    trajectory_file: String,
    working_dir: String,
    success: bool,
    final_result: String,
    agent_state: &'static str,
    execution_time: f64,
    steps_count: u32,
    /// Members of the request that were ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct StartedRun {
    session_id: String,
    trajectory_file: String,
    working_dir: String,
    /// Members of the request that were ignored.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// A task that was given to a session.
pub(crate) struct StartedTask {
    pub live: Arc<LiveSession>,
    /// The event that gave it.
    pub given: Seq,
    /// Members of the request that were ignored.
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ClosedSession {
    session_id: String,
    closed: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SessionStatus {
    provider: String,
    model: String,
    max_steps: u32,
    mode: String,
    toolset: String,
    tools: Vec<String>,
    working_dir: String,
    trajectory_file: String,
    running: bool,
    clients: usize,
}

pub(crate) fn add(api: &mut Api) {
    api.add(
        Endpoint::post("/agent/run", "Run a task to its end").body::<RunRequest>().response::<RunResult>(),
        run,
    )
    .add(
        Endpoint::post("/api/agent/run", "Run a task to its end")
            .body::<RunRequest>()
            .response::<RunResult>(),
        run,
    )
    .add(
        Endpoint::post("/agent/interactive/start", "Open a session")
            .body::<RunRequest>()
            .response::<StartedRun>(),
        start,
    )
    .add(
        Endpoint::post("/agent/interactive/task", "Run a task in a session to its end")
            .body::<TaskRequest>()
            .response::<RunResult>(),
        task,
    )
    .add(
        Endpoint::get("/agent/interactive/status", "The options and the state of a session")
            .query::<SessionQuery>()
            .response::<SessionStatus>(),
        status,
    )
    .add(
        Endpoint::post("/agent/interactive/close", "Close a session; a run in it is cancelled")
            .query::<SessionQuery>()
            .response::<ClosedSession>(),
        close,
    );
}

async fn run(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Input(request): Input<Value>,
) -> ApiResult<RunResult> {
    result(&app, start_run(&app, &identity, request).await?).await
}

async fn start(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Input(request): Input<Value>,
) -> ApiResult<StartedRun> {
    let warnings = fields::unknown_of_run::<RunRequest, AgentMode>(&request);
    let request: RunRequest = parse_request(request)?;
    if request.task.is_some() || request.file_path.is_some() {
        return Err(ApiError::unprocessable("A session is started without a task; give it one afterwards."));
    }
    let live = open_session(&app, &identity, &request, true).await?;
    let trajectory_file =
        app.host.archive().trajectories().join(format!("{}.json", live.id)).display().to_string();
    let working_dir = live.folder.display().to_string();
    Ok(Json(StartedRun { session_id: live.id.to_string(), trajectory_file, working_dir, warnings }))
}

async fn task(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    Input(request): Input<Value>,
) -> ApiResult<RunResult> {
    result(&app, session_task(&app, &identity, request).await?).await
}

async fn status(State(app): State<App>, QueryOf(asked): QueryOf<SessionQuery>) -> ApiResult<SessionStatus> {
    let id = app.session(&asked.session_id)?;
    let live = app.sessions.get(&id).ok_or_else(|| ApiError::not_found("The session is not open here."))?;
    let options = &live.options;
    Ok(Json(SessionStatus {
        provider: options.model.provider.clone(),
        model: options.model.model.clone(),
        max_steps: options.limits.max_steps,
        mode: options.mode.as_str().to_owned(),
        toolset: options.toolset.as_str().to_owned(),
        tools: live.tools.clone(),
        working_dir: live.folder.display().to_string(),
        trajectory_file: app.host.archive().trajectories().join(format!("{id}.json")).display().to_string(),
        running: live.hub.is_running(),
        clients: live.hub.listeners(),
    }))
}

async fn close(
    State(app): State<App>,
    Extension(identity): Extension<Identity>,
    QueryOf(asked): QueryOf<SessionQuery>,
) -> ApiResult<ClosedSession> {
    let id = app.session(&asked.session_id)?;
    // A run is cancelled first, so that it has an end and is not taken for one that was cut off.
    if let Some(live) = app.sessions.get(&id).filter(|live| live.hub.is_running()) {
        let mut updates = live.subscribe(app.host.archive().last_seq(&id)?);
        let command = new_command_id()?;
        live.submit(&identity, command, CommandBody::Cancel).await?;
        let _ = tokio::time::timeout(std::time::Duration::from_secs(5), end_of_run(&mut *updates)).await;
    }
    let closed = app.sessions.close(&id).await?;
    Ok(Json(ClosedSession { session_id: id.to_string(), closed }))
}

/// Starts a session and gives it its task, from the first message of a connection.
pub(crate) async fn start_run(
    app: &App,
    identity: &Identity,
    request: Value,
) -> Result<StartedTask, ApiError> {
    let warnings = fields::unknown_of_run::<RunRequest, AgentMode>(&request);
    let request: RunRequest = parse_request(request)?;
    let text = task_text(app, identity, request.task.as_deref(), request.file_path.as_deref()).await?;
    let live = open_session(app, identity, &request, false).await?;
    submit(app, identity, live, new_command_id()?, text, warnings).await
}

/// Gives a session a task, from the first message of a connection.
pub(crate) async fn give_task(
    app: &App,
    identity: &Identity,
    request: Value,
) -> Result<StartedTask, ApiError> {
    // Without a session this is a run of its own.
    if request.get("session_id").is_none_or(Value::is_null) {
        return start_run(app, identity, request).await;
    }
    session_task(app, identity, request).await
}

fn parse_request<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    parse(value.to_string().as_bytes())
}

async fn session_task(app: &App, identity: &Identity, request: Value) -> Result<StartedTask, ApiError> {
    let warnings = fields::unknown_of_task::<TaskRequest>(&request);
    let request: TaskRequest = parse_request(request)?;
    let text = task_text(app, identity, request.task.as_deref(), request.file_path.as_deref()).await?;
    let id = app.session(&request.session_id)?;
    let live = app.open(identity, &id).await?;
    let command = request.id.map_or_else(new_command_id, client_id)?;
    submit(app, identity, live, command, text, warnings).await
}

async fn submit(
    app: &App,
    identity: &Identity,
    live: Arc<LiveSession>,
    command: CommandId,
    text: String,
    warnings: Vec<String>,
) -> Result<StartedTask, ApiError> {
    match live.submit(identity, command, CommandBody::GiveTask { text, images: Vec::new() }).await?.answer {
        ReceiptAnswer::Accepted { seq } => {
            app.counts.runs.add(1);
            Ok(StartedTask { live, given: seq, warnings })
        }
        ReceiptAnswer::Refused { reason } => Err(ApiError::conflict(reason)),
    }
}

async fn task_text(
    app: &App,
    identity: &Identity,
    task: Option<&str>,
    file: Option<&str>,
) -> Result<String, ApiError> {
    match (task.filter(|task| !task.trim().is_empty()), file) {
        (Some(task), None) => Ok(task.to_owned()),
        (None, Some(file)) => {
            require_admin(identity, "file_path")?;
            let (host, roots, file) = (Arc::clone(&app.host), app.roots.clone(), PathBuf::from(file));
            let read =
                tokio::task::spawn_blocking(move || host.rules().named_text(&roots, &file, NAMED_FILE_MAX))
                    .await;
            let read = read.map_err(|_| ApiError::unavailable("The file cannot be read."))?;
            read.map_err(|error| field_error("file_path", error.into()))
        }
        (Some(_), Some(_)) => Err(ApiError::bad("Give `task` or `file_path`, not both.")),
        (None, None) => Err(ApiError::bad("Give `task` or `file_path`.")),
    }
}

/// An error about one field of a request.
fn field_error(field: &str, error: ApiError) -> ApiError {
    ApiError { detail: format!("`{field}`: {}", error.detail), ..error }
}

pub(super) fn require_admin(identity: &Identity, field: &str) -> Result<(), ApiError> {
    if identity.role >= Role::Admin {
        return Ok(());
    }
    Err(ApiError::forbidden(format!("`{field}` is for tokens with the role admin.")))
}

async fn open_session(
    app: &App,
    identity: &Identity,
    request: &RunRequest,
    conversation: bool,
) -> Result<Arc<LiveSession>, ApiError> {
    app.access.check(identity)?;
    let for_admins = request.admin_member();
    if let Some(field) = for_admins {
        require_admin(identity, field)?;
    }
    let own_model = for_admins.is_some();
    let mut given = request.given_options()?;
    // Switching questions off needs the role that may answer all of them.
    if given.get("run.mode") == Some(Mode::FullAuto) {
        require_admin(identity, "mode: full-auto")?;
    }
    modes::check_tool_count("tools", given.get::<Vec<String>>("run.tools").as_deref())?;
    let folder = app.folder(&PathBuf::from(request.working_dir.clone().unwrap_or_default()))?;
    let mode = modes::chosen_mode(
        app,
        request.agent_mode.as_deref(),
        request.agent_mode_config.as_ref(),
        request.prompt.as_deref(),
    )?;
    if let Some(tools) = mode.tools().filter(|_| !given.has("run.tools")) {
        given.set("run.tools", tools);
    }
    if let Some(name) = &request.model_config_name {
        blocking(|| models::choose(app, name, &mut given))?;
    }
    if let Some(url) = given.text("model.base_url") {
        models::no_secret_inside(url)?;
        models::check_address(app, url)?;
    }
    let tools: Vec<String> = given.get("run.tools").unwrap_or_default();
    let removes_walls = given.get("run.sandbox") == Some(Sandbox::Off);
    let mut wish = Wish {
        given,
        conversation,
        own_model,
        review: review_rules(request, &mode)?,
        persona: mode.persona(),
        ..client_wish(folder)
    };
    if let Some(path) = request.config_file.clone().map(PathBuf::from) {
        let (host, roots) = (&app.host, &app.roots);
        let read = blocking(|| host.rules().named_config(roots, &path, NAMED_FILE_MAX));
        let text = read.map_err(|error| field_error("config_file", error.into()))?;
        wish.config_file = Some(ConfigText { path, text });
    }
    let mut plan = blocking(|| app.plans.plan(&wish)).map_err(ApiError::bad)?;
    if let (ModelSource::Ask(asking), Some(name)) = (&mut plan.source, &request.model_config_name) {
        blocking(|| models::use_named(app, name, asking))?;
    }
    app.host.tools().check(&plan, &tools).await.map_err(unknown_name)?;
    plan.tools.exclude.extend(blocking(|| tools::disabled_tools(app))?);
    // This holds even if the configuration says so: only a client that may work in a session may begin it.
    RoleNeeds { mode: plan.mode.strongest(), own_model }.check(identity, SessionWork::Drive)?;
    if removes_walls && identity.role < Role::Admin {
        return Err(ApiError::forbidden(format!(
            "A session without a sandbox needs a token with the role {}; {} has the role {}.",
            Role::Admin,
            identity.name,
            identity.role
        )));
    }
    let seat = app.sessions.make_room(identity).await?;
    app.sessions.start(plan, seat).await.map_err(unknown_name)
}

/// The wish of a client, which has a user who may be asked.
pub(super) fn client_wish(folder: PathBuf) -> Wish {
    Wish { attended: Attended::Person, ..Wish::task(folder) }
}

/// Unknown names are refused with a list of those that are known.
fn unknown_name(error: HostError) -> ApiError {
    match error {
        HostError::NoSuchTool { .. } => ApiError::unprocessable(format!("`tools`: {error}")),
        HostError::UnknownProvider(name) => {
            let known: Vec<&str> = PROVIDERS.iter().map(|provider| provider.name).collect();
            ApiError::unprocessable(format!(
                "`provider`: `{name}` is not known and has no `model_base_url`. There are: {}",
                known.join(", ")
            ))
        }
        error => error.into(),
    }
}

/// The rules edits are judged by if none are given: to the point, with substance, and sound.
const USUAL_RULES: &str = "The edit serves the task it was made for. It is complete: no placeholder, no part that only promises. It is sound: nothing in it contradicts itself or what stands around it.";

fn review_rules(request: &RunRequest, mode: &AgentMode) -> Result<Option<ReviewRules>, ApiError> {
    let given = |rules: &Option<String>| rules.clone().filter(|rules| !rules.trim().is_empty());
    let gate = request.quality_review_gate.or(mode.quality_review_gate).unwrap_or(false);
    let rules = given(&request.quality_review_rules).or_else(|| given(&mode.quality_review_rules));
    match (request.enable_quality_review.or(mode.enable_quality_review), rules) {
        (Some(false), _) => Ok(Some(ReviewRules::default())),
        (_, Some(rules)) if rules.chars().count() > RULES_MAX => {
            Err(ApiError::unprocessable(format!("`quality_review_rules` may have {RULES_MAX} characters.")))
        }
        (Some(true), rules) => {
            Ok(Some(ReviewRules { rules: rules.unwrap_or_else(|| USUAL_RULES.to_owned()), gate }))
        }
        (None, _) => Ok(None),
    }
}

/// Waits for the end of the run that began with event `given`.
async fn result(app: &App, begun: StartedTask) -> ApiResult<RunResult> {
    let StartedTask { live, given, warnings } = begun;
    let mut updates = live.subscribe(Seq(given.0.saturating_sub(1)));
    let Some((finished, began, ended, run, steps)) = end_of_run(&mut *updates).await else {
        live.ended_by_fault().await?;
        return Err(ApiError::unavailable(
            "The session was closed before the run had ended; it can be resumed.",
        ));
    };
    let id = live.id.clone();
    let ending = if run <= 1 { String::new() } else { format!("-{run}") };
    let success = finished.ending.is_success();
    Ok(Json(RunResult {
        session_id: id.to_string(),
        run_id: format!("{id}.{run}"),
        trajectory_file: app
            .host
            .archive()
            .trajectories()
            .join(format!("{id}{ending}.json"))
            .display()
            .to_string(),
        working_dir: live.folder.display().to_string(),
        success,
        final_result: Projector::shown(&finished.result).into_owned(),
        agent_state: if success { "completed" } else { "error" },
        execution_time: (ended - began) as f64 / 1e6,
        steps_count: steps,
        warnings,
    }))
}

/// The ending of the run, its start and end in microseconds, its number, and its number of steps.
async fn end_of_run(updates: &mut dyn EventStream) -> Option<(TaskFinished, i64, i64, u32, u32)> {
    let mut began = None;
    let mut steps = std::collections::BTreeSet::new();
    while let Some(update) = updates.next().await {
        let Update::Event(event) = update else { continue };
        let at = event.at.as_microsecond();
        let began = *began.get_or_insert(at);
        match &event.fact {
            Fact::ModelAsked(_) => steps.extend(event.place.step),
            Fact::TaskFinished(finished) => {
                let steps = u32::try_from(steps.len()).unwrap_or(u32::MAX);
                return Some((finished.clone(), began, at, event.place.run.0, steps));
            }
            _ => {}
        }
    }
    None
}
