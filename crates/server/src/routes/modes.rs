//! Agent modes: prompts, rules and tools of the user's for a kind of work, stored under a name; and the prompts that
//! they replace.

use std::collections::BTreeMap;
use std::path::Path;

use axum::extract::State;
use lathe_host::{HostError, blocking};
use lathe_protocol::{Persona, Toolset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::fields;
use super::runs::client_wish;
use crate::api::{Api, Endpoint, Exact, ExactResult, Input, PathOf, QueryOf, parse};
use crate::app::App;
use crate::error::ApiError;
use crate::settings::{good_name, unknown_setting};

const FILE: &str = "modes.json";
/// Modes that are kept.
const MODES_MAX: usize = 500;
/// Characters of a system prompt.
const PROMPT_MAX: usize = 100_000;
/// Characters of instructions: they go with the first task, which they must not drown.
const INSTRUCTIONS_MAX: usize = 8_000;
/// Characters of rules for reviews.
pub(crate) const RULES_MAX: usize = 20_000;

/// The names of the server fork for prompts that are built in.
const TRAE: &str = "TRAE_AGENT_SYSTEM_PROMPT";
const DOCUMENT: &str = "DOCUMENT_AGENT_SYSTEM_PROMPT";

const DOCUMENT_PROMPT: &str = "You write and revise documents for a user, with tools that read and change files and documents.\n\
Read what there is before you write. Keep to the subject, the structure and the language the user has chosen. Headings begin \
with ## or ###; a chapter says something a reader could not have guessed. Change only what the task asks for, and keep the \
rest as it is, word for word. State no fact that you cannot find in the material or know for certain; where something is \
missing, say so in the text. When the document is done, read it once as its reader would, mend what you find, and end the \
task with a summary of what you changed.";

/// A user's prompts, rules and tools for a kind of work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AgentMode {
    #[serde(default)]
    pub mode_name: String,
    /// The whole system text, or the name of one that is built in. Lathe's own if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Sent to the model with the first task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enable_quality_review: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality_review_rules: Option<String>,
    /// A failing verdict keeps the task from ending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quality_review_gate: Option<bool>,
    /// Only these tools, and the one that ends the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_whitelist: Option<Vec<String>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Modes {
    modes: Vec<AgentMode>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Deleted {
    deleted: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct PromptQuery {
    /// `TRAE_AGENT_SYSTEM_PROMPT`, `DOCUMENT_AGENT_SYSTEM_PROMPT`, a toolset, or an agent mode.
    name: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Prompt {
    prompt: String,
}

type StoredModes = BTreeMap<String, AgentMode>;

pub(crate) fn add(api: &mut Api) {
    api.add(Endpoint::get("/api/modes", "The agent modes").response::<Modes>(), list)
        .add(Endpoint::get("/api/modes/{name}", "One agent mode").response::<AgentMode>(), get)
        .add(
            Endpoint::put("/api/modes/{name}", "Store an agent mode")
                .body::<AgentMode>()
                .response::<AgentMode>(),
            put,
        )
        .add(Endpoint::delete("/api/modes/{name}", "Delete an agent mode").response::<Deleted>(), delete)
        .add(
            Endpoint::get("/agent/prompt", "A system prompt").query::<PromptQuery>().response::<Prompt>(),
            prompt,
        );
}

impl AgentMode {
    fn check(&self) -> Result<(), ApiError> {
        let long = |text: &Option<String>, most: usize| {
            text.as_ref().is_some_and(|text| text.chars().count() > most)
        };
        for (name, text, most) in [
            ("system_prompt", &self.system_prompt, PROMPT_MAX),
            ("custom_instructions", &self.custom_instructions, INSTRUCTIONS_MAX),
            ("quality_review_rules", &self.quality_review_rules, RULES_MAX),
        ] {
            if long(text, most) {
                return Err(ApiError::unprocessable(format!("`{name}` may have {most} characters.")));
            }
        }
        check_tool_count("tool_whitelist", self.tool_whitelist.as_deref())
    }

    /// The persona of the agent; none for Lathe's own.
    pub fn persona(&self) -> Option<Persona> {
        let given = |text: &Option<String>| text.clone().filter(|text| !text.trim().is_empty());
        let system = given(&self.system_prompt).and_then(|text| match text.trim() {
            TRAE => None,
            DOCUMENT => Some(DOCUMENT_PROMPT.to_owned()),
            _ => Some(text),
        });
        let instructions = given(&self.custom_instructions);
        let named = system.is_some() || instructions.is_some();
        named.then(|| Persona { name: self.mode_name.clone(), system, instructions })
    }

    /// The tools that the mode allows; none if it allows all.
    pub fn tools(&self) -> Option<Vec<String>> {
        let mut tools = self.tool_whitelist.clone().filter(|tools| !tools.is_empty())?;
        // Without it no task could be ended.
        if !tools.iter().any(|tool| tool == "task_done") {
            tools.push("task_done".to_owned());
        }
        Some(tools)
    }
}

/// Names of tools in one list.
const TOOLS_MAX: usize = 256;

/// Refuses a list of more tools than any session has.
pub(crate) fn check_tool_count(name: &str, tools: Option<&[String]>) -> Result<(), ApiError> {
    match tools.is_some_and(|tools| tools.len() > TOOLS_MAX) {
        true => Err(ApiError::unprocessable(format!("`{name}` may have {TOOLS_MAX} names."))),
        false => Ok(()),
    }
}

/// The agent mode of a run: the one it contains, or the one it names; a prompt given with it counts where the mode
/// has none.
pub(crate) fn chosen_mode(
    app: &App,
    name: Option<&str>,
    given: Option<&AgentMode>,
    prompt: Option<&str>,
) -> Result<AgentMode, ApiError> {
    let mut mode = match (given, name) {
        (Some(given), _) => given.clone(),
        (None, Some(name)) => {
            let all: StoredModes = blocking(|| app.settings.read(FILE))?;
            all.get(name).cloned().ok_or_else(|| unknown_setting("agent_mode", name, all.keys()))?
        }
        (None, None) => AgentMode::default(),
    };
    if mode.system_prompt.as_ref().is_none_or(|text| text.trim().is_empty()) {
        mode.system_prompt = prompt.map(str::to_owned);
    }
    mode.check()?;
    Ok(mode)
}

fn stored_mode(app: &App, name: &str) -> Result<AgentMode, ApiError> {
    let kept: StoredModes = app.settings.read(FILE)?;
    kept.get(name).cloned().ok_or_else(|| ApiError::not_found("There is no such agent mode."))
}

async fn list(State(app): State<App>) -> ExactResult<Modes> {
    let kept: StoredModes = blocking(|| app.settings.read(FILE))?;
    Ok(Exact(Modes { modes: kept.into_values().collect() }))
}

async fn get(State(app): State<App>, PathOf(name): PathOf<String>) -> ExactResult<AgentMode> {
    Ok(Exact(blocking(|| stored_mode(&app, &name))?))
}

async fn put(
    State(app): State<App>,
    PathOf(name): PathOf<String>,
    Input(given): Input<Map<String, Value>>,
) -> ExactResult<AgentMode> {
    good_name(&name)?;
    let given = Value::Object(given);
    // A stored entry is used later, where no one reads warnings.
    if let Some(unknown) = fields::unknown_of_mode::<AgentMode>(&given).into_iter().next() {
        return Err(ApiError::unprocessable(unknown));
    }
    let mut mode: AgentMode = parse(given.to_string().as_bytes())?;
    mode.check()?;
    check_tools(&app, mode.tool_whitelist.as_deref().unwrap_or_default()).await?;
    mode.mode_name.clone_from(&name);
    let done = mode.clone();
    blocking(|| {
        app.settings.change(FILE, |kept: &mut StoredModes| {
            if kept.len() >= MODES_MAX && !kept.contains_key(&name) {
                return Err(ApiError::conflict(format!("There are {MODES_MAX} agent modes already.")));
            }
            kept.insert(name, mode);
            Ok(())
        })
    })?;
    Ok(Exact(done))
}

/// A mode may be used with any toolset: a tool is known if one of them has it.
async fn check_tools(app: &App, names: &[String]) -> Result<(), ApiError> {
    if names.is_empty() {
        return Ok(());
    }
    let wish = client_wish(app.folder(Path::new(""))?);
    let mut plan = app.plans.plan(&wish).map_err(ApiError::bad)?;
    for name in names {
        let mut refused = None;
        for set in Toolset::ALL {
            plan.toolset = Some(set);
            match app.host.tools().check(&plan, std::slice::from_ref(name)).await {
                Ok(()) => {
                    refused = None;
                    break;
                }
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match refused {
            None => {}
            Some(error @ HostError::NoSuchTool { .. }) => {
                return Err(ApiError::unprocessable(format!("`tool_whitelist`: {error}")));
            }
            Some(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn delete(State(app): State<App>, PathOf(name): PathOf<String>) -> ExactResult<Deleted> {
    let deleted =
        blocking(|| app.settings.change(FILE, |kept: &mut StoredModes| Ok(kept.remove(&name).is_some())))?;
    if deleted {
        Ok(Exact(Deleted { deleted }))
    } else {
        Err(ApiError::not_found("There is no such agent mode."))
    }
}

async fn prompt(State(app): State<App>, QueryOf(asked): QueryOf<PromptQuery>) -> ExactResult<Prompt> {
    let folder = app.folder(Path::new(""))?;
    let built_in = |toolset: Toolset| app.host.archive().system_text(toolset, &folder);
    let of_toolset = || Toolset::ALL.into_iter().find(|toolset| toolset.as_str() == asked.name);
    let prompt = match asked.name.as_str() {
        TRAE => built_in(Toolset::Trae),
        DOCUMENT => DOCUMENT_PROMPT.to_owned(),
        name => match of_toolset() {
            Some(toolset) => built_in(toolset),
            None => blocking(|| stored_mode(&app, name))?
                .system_prompt
                .ok_or_else(|| ApiError::not_found("That agent mode has no prompt of its own."))?,
        },
    };
    Ok(Exact(Prompt { prompt }))
}
