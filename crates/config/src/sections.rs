//! Every option. A doc comment here is the help text of the reference.
//!
//! Next to a field stand `x-env`, the variable that sets it, and who may set it: `x-user-only` is the reason why a
//! project's file may not, `x-by-trust` says that it may with the user's trust in each entry, and `x-narrow-only`
//! that it may only narrow what the user allows (a smaller number, `false`, a shorter list, a text where the user
//! gives none). The forms that surfaces offer stand there too: `x-flag` is its flag with the name of the value,
//! `x-short` the short form, `x-trae` Trae's short form of two letters, `x-on` the commands that have the flag,
//! `x-flag-help` a help text other than the doc comment, `x-unit` the form of a number, `x-member` its name in a
//! request for a run, and `x-admin` marks a member that only admins may give. `options.rs` makes rows of these.
//!
//! `x-not-yet` marks a key that nothing reads in this version: it is refused by name. Remove the mark when the key
//! gets its reader; `readers.rs` among the tests of the command line compares the marks with the code.

use std::collections::BTreeMap;
use std::path::PathBuf;

use lathe_protocol::{Budget, LimitChanges, Limits, Mode, ReviewRule, Sandbox, Toolset};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::foreign::ForeignEndpoints;
use crate::sandbox::SandboxSection;
use crate::secret::Secret;

const ENDPOINT: &str = "a project may not choose where your code and your keys are sent";
const KEY: &str = "a project may not choose the key that is used";
const PROGRAM: &str = "a project may not choose what is started or connected to";
const ALLOWED: &str = "a project may not choose how much is allowed";
const HIDDEN: &str = "a project may not choose what is hidden from you and the model";
const ASKED: &str = "a project may not choose what else your model is asked";
const WRITTEN: &str = "a project may not choose which file is written";

/// The commands that open a session.
const SESSIONS: &str = "run interactive resume";
/// The commands that ask a model.
const WITH_MODEL: &str = "run interactive resume serve doctor show-config";

/// The whole configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Settings {
    /// The model that works on the task.
    pub model: ModelSection,
    /// The course of a run.
    pub run: RunSection,
    /// Limits of what the processes of a session use.
    #[schemars(extend("x-user-only" = ALLOWED))]
    pub sandbox: SandboxSection,
    /// Short summaries of the steps.
    pub lakeview: LakeviewSection,
    /// Reviews of edits by a judge.
    #[schemars(extend("x-user-only" = ASKED))]
    pub review: ReviewSection,
    /// Documents kept outside of the workspace, for `online_doc_tool`.
    #[schemars(extend("x-user-only" = ENDPOINT))]
    pub online: OnlineSection,
    /// Servers whose tools the model is given, by name.
    #[schemars(extend("x-user-only" = PROGRAM, "x-not-yet" = true))]
    pub mcp_servers: BTreeMap<String, McpServerSection>,
    /// Names of the MCP servers that are used. None are when the list is empty.
    #[schemars(extend("x-user-only" = PROGRAM, "x-not-yet" = true))]
    pub allow_mcp_servers: Vec<String>,
    /// Providers by a name of your own: an address and its key.
    #[schemars(extend("x-user-only" = ENDPOINT))]
    pub providers: BTreeMap<String, ProviderSection>,
    /// Models by a name of your own, which `model.name` and `lakeview.model` may give.
    #[schemars(extend("x-user-only" = ENDPOINT))]
    pub models: BTreeMap<String, ModelSection>,
    /// Tools that are not Lathe's own, and tools that are left out.
    pub tools: ToolsSection,
    /// Commands that check a file after a tool changed it, by glob, as `"*.py" = "mypy {file}"`. `{file}` is each changed file, `{files}` all of them. The model gets, with the change, what a command reports now and did not report before.
    #[schemars(extend("x-user-only" = PROGRAM, "x-by-trust" = true))]
    pub check: BTreeMap<String, String>,
    /// Values that are kept from the model, the journal and screens, in addition to those that Lathe finds by itself.
    pub secrets: SecretsSection,
    /// Domains of field commands, by name: `field:NAME:TOOL` in the shell, and tools of the model.
    #[schemars(extend("x-user-only" = PROGRAM, "x-by-trust" = true))]
    pub field: BTreeMap<String, FieldSection>,
    /// Endpoints of a Trae file that was trusted and not named.
    #[serde(skip)]
    pub foreign: ForeignEndpoints,
}

/// Secrets that you name. Each value becomes `«secret:NAME»` in everything that is shown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SecretsSection {
    /// Environment variables whose values are secrets, under any name.
    #[schemars(extend("x-user-only" = HIDDEN))]
    pub variables: Vec<String>,
    /// Files of secrets: each line is one, or `NAME=value`. A relative path begins at Lathe's folder.
    #[schemars(extend("x-user-only" = HIDDEN))]
    pub files: Vec<PathBuf>,
    /// Variables that programs of a session get although they are secrets, as `DATABASE_URL` for tests. What they hold is still shown nowhere.
    #[schemars(extend("x-user-only" = HIDDEN))]
    pub pass: Vec<String>,
}

/// A domain of field commands: tools declared in a file, run by a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FieldSection {
    /// The purpose of the domain, in a few words.
    pub about: String,
    /// JSON file of function-calling schemas, in the form of any provider. A relative path begins at Lathe's folder, in a project's file at the project.
    pub tools: PathBuf,
    /// Program that runs a tool: its name is the last argument, its arguments come as JSON on standard input. It is split into words, and no shell is used.
    pub command: String,
    /// Seconds a tool may take.
    #[schemars(range(min = 1))]
    pub seconds: u32,
}

impl Default for FieldSection {
    fn default() -> Self {
        Self { about: String::new(), tools: PathBuf::new(), command: String::new(), seconds: 120 }
    }
}

/// The model, its address, and the parameters of its requests.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelSection {
    /// The provider: a name under `providers`, a provider Lathe knows, or any name with a `base_url`.
    #[schemars(extend(
        "x-env" = "LATHE_PROVIDER", "x-user-only" = ENDPOINT,
        "x-flag" = "--provider PROVIDER", "x-short" = "p", "x-on" = WITH_MODEL, "x-member" = "provider",
        "x-flag-help" = "Who serves the model: one of `lathe models`, or any name with a base URL"
    ))]
    pub provider: Option<String>,
    /// The model as the provider names it, or a name under `models`.
    #[schemars(extend(
        "x-narrow-only" = true, "x-env" = "LATHE_MODEL",
        "x-flag" = "--model MODEL", "x-short" = "m", "x-on" = WITH_MODEL, "x-member" = "model",
        "x-flag-help" = "Name of the model"
    ))]
    pub name: Option<String>,
    /// Address of the server. The variable `<PROVIDER>_BASE_URL` sets it too.
    #[schemars(extend(
        "x-env" = "LATHE_BASE_URL", "x-user-only" = ENDPOINT,
        "x-flag" = "--model-base-url URL", "x-on" = WITH_MODEL, "x-member" = "model_base_url", "x-admin" = true,
        "x-flag-help" = "Address of the model's server. It is spoken to as --provider is (see `lathe models`); without a provider that Lathe knows, in OpenAI's Chat Completions. A provider's key is sent there only with --provider; else give --api-key or LATHE_API_KEY"
    ))]
    pub base_url: Option<String>,
    /// Key for the provider. The variable `<PROVIDER>_API_KEY` of a provider that Lathe knows sets it too, and is the better place.
    #[schemars(extend(
        "x-env" = "LATHE_API_KEY", "x-user-only" = KEY,
        "x-flag" = "--api-key KEY", "x-short" = "k", "x-on" = WITH_MODEL, "x-member" = "api_key", "x-admin" = true,
        "x-flag-help" = "Key for the model; better in the environment, as <PROVIDER>_API_KEY"
    ))]
    pub api_key: Option<Secret>,
    /// Variable of the environment that holds the key. It is for a provider that Lathe does not know: only known providers have a variable of their own.
    #[schemars(extend("x-user-only" = KEY))]
    pub key_variable: Option<String>,
    /// Version of the interface, where the provider wants one (Azure).
    #[schemars(extend("x-user-only" = ENDPOINT))]
    pub api_version: Option<String>,
    /// The randomness of answers. The provider decides if left out.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// Share of the likeliest words to choose from. The provider decides if left out.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub top_p: Option<f64>,
    /// The number of likeliest words to choose from. The provider decides if left out.
    pub top_k: Option<u32>,
    /// Tokens of one answer at most.
    #[schemars(range(min = 1), extend("x-narrow-only" = true))]
    pub max_tokens: Option<u32>,
    /// Tokens of one answer at most, thinking included. It comes before `max_tokens`.
    #[schemars(range(min = 1), extend("x-narrow-only" = true))]
    pub max_completion_tokens: Option<u32>,
    /// Allow several calls in one answer. The provider decides if left out.
    pub parallel_tool_calls: Option<bool>,
    /// The number of retries of a failed request.
    #[schemars(extend("x-narrow-only" = true, "default" = ModelSection::RETRIES))]
    pub max_retries: Option<u32>,
    /// Seconds of silence after which an answer counts as broken and is asked for again.
    #[schemars(range(min = 1), extend("x-narrow-only" = true, "default" = 120))]
    pub stall_seconds: Option<u32>,
    /// Seconds one answer may take in all.
    #[schemars(range(min = 1), extend("x-narrow-only" = true, "default" = 3600))]
    pub answer_seconds: Option<u32>,
    /// The longest a provider may make Lathe wait before it asks again.
    #[schemars(range(min = 1), extend("x-narrow-only" = true, "default" = 120))]
    pub longest_wait_seconds: Option<u32>,
    /// Tokens the model may think for before it answers, where that must be asked for (Anthropic).
    #[schemars(range(min = 1024), extend("x-user-only" = ALLOWED))]
    pub thinking_tokens: Option<u32>,
    /// Use Anthropic's own `bash` and text editor for the tools of those names (toolset `trae`).
    #[schemars(extend("default" = false))]
    pub provider_tools: Option<bool>,
    /// The model can call tools. If not, they are described to it in words.
    #[schemars(extend("default" = true))]
    pub supports_tool_calling: Option<bool>,
    /// The model takes images. If not, none is sent, and the model gets a line for each image that is not shown. Known text models take none unless this says so.
    pub supports_images: Option<bool>,
    /// The number of answers to ask for (Gemini).
    #[schemars(range(min = 1), extend("default" = 1, "x-narrow-only" = true))]
    pub candidate_count: Option<u32>,
    /// Texts at which the answer ends.
    pub stop_sequences: Option<Vec<String>>,
}

impl ModelSection {
    const RETRIES: u32 = 3;

    /// The number of retries of a failed request.
    pub fn retries(&self) -> u32 {
        self.max_retries.unwrap_or(Self::RETRIES)
    }

    /// Tokens of one answer at most, if there is a limit.
    pub fn output_limit(&self) -> Option<u32> {
        self.max_completion_tokens.or(self.max_tokens)
    }
}

/// The course of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RunSection {
    /// The mode, which says what may be done without asking: `plan`, `default`, `auto-edit` or `full-auto`. The command decides if left out.
    #[schemars(extend(
        "x-env" = "LATHE_MODE", "x-user-only" = ALLOWED,
        "x-flag" = "--mode MODE", "x-on" = SESSIONS, "x-member" = "mode",
        "x-flag-help" = "What may be done without asking"
    ))]
    pub mode: Option<Mode>,
    /// The reach of commands: `workspace`, `read-only` or `off`. The mode decides if left out.
    #[schemars(extend(
        "x-env" = "LATHE_SANDBOX", "x-user-only" = ALLOWED,
        "x-flag" = "--sandbox SANDBOX", "x-on" = SESSIONS, "x-member" = "sandbox",
        "x-flag-help" = "What commands can reach: off, workspace or read-only"
    ))]
    pub sandbox: Option<Sandbox>,
    /// Names and words of the tools.
    #[schemars(extend(
        "x-flag" = "--toolset TOOLSET", "x-on" = "run interactive tools", "x-member" = "toolset"
    ))]
    pub toolset: Toolset,
    /// Steps of one run at most.
    #[schemars(range(min = 1), extend(
        "x-narrow-only" = true,
        "x-flag" = "--max-steps N", "x-on" = "run interactive resume show-config", "x-unit" = "steps",
        "x-member" = "max_steps",
        "x-flag-help" = "Model answers at most, for each task"
    ))]
    pub max_steps: u32,
    /// Seconds a shell line may take unless the call says otherwise.
    #[schemars(range(min = 1), extend("x-narrow-only" = true))]
    pub line_seconds: u32,
    /// Seconds for which a shell line may print nothing: any output restarts them. No such limit if left out.
    #[schemars(range(min = 1), extend("x-user-only" = ALLOWED))]
    pub silent_seconds: Option<u32>,
    /// US dollars one run may cost.
    #[schemars(range(min = 0.0), extend(
        "x-user-only" = ALLOWED,
        "x-flag" = "--max-cost DOLLARS", "x-on" = SESSIONS, "x-unit" = "dollars",
        "x-flag-help" = "US dollars at most; a run that is stopped can be resumed with more"
    ))]
    pub max_cost: Option<f64>,
    /// Tokens one run may read and write, the cached ones included.
    #[schemars(range(min = 1), extend(
        "x-user-only" = ALLOWED,
        "x-flag" = "--max-tokens N", "x-on" = SESSIONS, "x-unit" = "tokens",
        "x-flag-help" = "Tokens at most, read and written"
    ))]
    pub max_tokens: Option<u64>,
    /// Seconds one run may take.
    #[schemars(range(min = 1), extend(
        "x-user-only" = ALLOWED,
        "x-flag" = "--max-time TIME", "x-on" = SESSIONS, "x-unit" = "time",
        "x-flag-help" = "Time at most: seconds, or 90s, 15m, 2h"
    ))]
    pub max_seconds: Option<u64>,
    /// The reaction to a model that cannot be reached: wait until it is back, or fail.
    #[schemars(extend(
        "x-user-only" = ALLOWED, "default" = "fail",
        "x-flag" = "--on-outage WHAT", "x-on" = SESSIONS,
        "x-flag-help" = "When the model cannot be reached: wait until it is back, or fail"
    ))]
    pub on_outage: Option<OnOutage>,
    /// Seconds a command under `check` may take.
    #[schemars(range(min = 1), extend("x-narrow-only" = true))]
    pub check_seconds: u32,
    /// The tools the model is given, by name. All of the toolset if left out.
    #[schemars(extend("x-narrow-only" = true, "x-member" = "tools"))]
    pub tools: Option<Vec<String>>,
    /// File to write the trajectory to, in Trae's format.
    #[schemars(extend(
        "x-user-only" = WRITTEN,
        "x-flag" = "--trajectory-file FILE", "x-short" = "t", "x-on" = SESSIONS,
        "x-flag-help" = "Write a trajectory in Trae's form here, one for each task"
    ))]
    pub trajectory: Option<PathBuf>,
    /// Fail a run that changed nothing.
    #[schemars(extend(
        "x-flag" = "--must-patch", "x-trae" = "-mp", "x-on" = "run", "x-member" = "must_patch",
        "x-flag-help" = "The task is not done without a change outside of tests (short: -mp); the mode is then full-auto unless one is set"
    ))]
    pub must_patch: bool,
    /// File to write the patch to.
    #[schemars(extend(
        "x-user-only" = WRITTEN,
        "x-flag" = "--patch-path FILE", "x-trae" = "-pp", "x-on" = "run resume",
        "x-flag-help" = "Write the patch of the run here (short: -pp)"
    ))]
    pub patch_path: Option<PathBuf>,
    /// The form in which steps are shown. The command decides if left out.
    #[schemars(extend("x-not-yet" = true))]
    pub console: Option<ConsoleStyle>,
}

impl Default for RunSection {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            mode: None,
            sandbox: None,
            toolset: Toolset::Lathe,
            max_steps: limits.max_steps,
            line_seconds: limits.line_seconds,
            silent_seconds: limits.silent_seconds,
            max_cost: None,
            max_tokens: None,
            max_seconds: None,
            on_outage: None,
            check_seconds: 60,
            tools: None,
            trajectory: None,
            must_patch: false,
            patch_path: None,
            console: None,
        }
    }
}

impl RunSection {
    /// The limits among the options that were given, by the names of their fields.
    pub fn limit_changes(given: impl Fn(&str) -> Option<serde_json::Value>) -> LimitChanges {
        fn read<T: serde::de::DeserializeOwned>(value: Option<serde_json::Value>) -> Option<T> {
            serde_json::from_value(value?).ok()
        }
        let section = Self {
            max_cost: read(given("run.max_cost")),
            max_tokens: read(given("run.max_tokens")),
            max_seconds: read(given("run.max_seconds")),
            ..Self::default()
        };
        LimitChanges { max_steps: read(given("run.max_steps")), budget: section.limits().budget }
    }

    pub fn limits(&self) -> Limits {
        let micro_dollars = |dollars: f64| (dollars * 1e6).round() as u64;
        let budget = Budget {
            cost: self.max_cost.map(micro_dollars),
            tokens: self.max_tokens,
            seconds: self.max_seconds,
            price: None,
        };
        Limits {
            max_steps: self.max_steps,
            line_seconds: self.line_seconds,
            silent_seconds: self.silent_seconds,
            budget,
        }
    }
}

/// Tools that are not Lathe's own, and tools that are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolsSection {
    /// Program that prints the tools there are, as a JSON list of function declarations. It is split into words, and no shell is used.
    #[schemars(extend("x-user-only" = PROGRAM))]
    pub discovery_command: Option<String>,
    /// Program that runs such a tool: its name is the last argument, its arguments come on standard input.
    #[schemars(extend("x-user-only" = PROGRAM))]
    pub call_command: Option<String>,
    /// Seconds such a tool may take.
    #[schemars(range(min = 1), extend("x-narrow-only" = true))]
    pub call_seconds: u32,
    /// Tools that are allowed without asking, by name, and commands of the shell as `bash(git push)`, as a rule of yours would. What is denied stays denied.
    #[schemars(extend(
        "x-user-only" = ALLOWED,
        "x-flag" = "--allowed-tools TOOL", "x-on" = "run interactive",
        "x-flag-help" = "Allow these tools without asking; of the shell, commands: `bash(git push)`. With commas, or repeated"
    ))]
    pub allowed: Vec<String>,
    /// Tools the model is not given, by name; `bash(git push)` forbids a command only. The lists of all files count together.
    pub exclude: Vec<String>,
}

impl Default for ToolsSection {
    fn default() -> Self {
        Self {
            discovery_command: None,
            call_command: None,
            call_seconds: 120,
            allowed: Vec::new(),
            exclude: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnOutage {
    /// Check repeatedly whether the server is back, then continue.
    Park,
    /// End the run.
    Fail,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsoleStyle {
    /// Lines of text.
    Simple,
    /// The terminal UI.
    Rich,
}

/// Short summaries of the steps, written by a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LakeviewSection {
    /// Summarise steps. It costs requests of its own.
    #[schemars(extend("x-narrow-only" = true, "x-member" = "lakeview"))]
    pub enabled: bool,
    /// A name under `models`, or another model of the same provider. The model of the task if left out.
    #[schemars(extend("x-user-only" = ASKED))]
    pub model: Option<String>,
    /// Tokens the summaries of one session may take.
    #[schemars(range(min = 1), extend("default" = 200_000, "x-user-only" = ALLOWED))]
    pub max_tokens: Option<u64>,
}

/// Reviews of edits by a judge: a model that looks at each edit by rules.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ReviewSection {
    /// Judge edits. It costs requests of its own.
    pub enabled: bool,
    /// The rules that edits are judged by.
    pub rules: String,
    /// A failing last verdict keeps the task from ending.
    pub gate: bool,
    /// Reviews of one run at most.
    #[schemars(range(min = 1))]
    pub max_reviews: u32,
    /// Tokens the reviews of one run may take.
    #[schemars(range(min = 1))]
    pub max_tokens: u64,
    /// A name under `models`, or another model of the same provider. The model of the task if left out.
    pub model: Option<String>,
}

impl Default for ReviewSection {
    fn default() -> Self {
        Self {
            enabled: false,
            rules: String::new(),
            gate: false,
            max_reviews: ReviewRule::max_reviews(),
            max_tokens: ReviewRule::max_tokens(),
            model: None,
        }
    }
}

/// Documents kept outside of the workspace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OnlineSection {
    /// Give the model `online_doc_tool`.
    #[schemars(extend("x-member" = "use_online_mode"))]
    pub enabled: bool,
    /// Address of a service that keeps the documents. Lathe keeps them itself if left out.
    #[schemars(extend("x-env" = "LATHE_ONLINE_BASE_URL"))]
    pub base_url: Option<String>,
    /// Variable of the environment that holds the key of that service.
    pub key_variable: Option<String>,
}

/// An MCP server: a program (`command`) or an address (`url`, `http_url`, `tcp`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpServerSection {
    /// Program to start; it speaks over its standard input and output.
    pub command: Option<String>,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Variables of the program. Values are kept as secrets.
    pub env: BTreeMap<String, Secret>,
    /// Folder the program starts in.
    pub cwd: Option<PathBuf>,
    /// Address of a server that sends events.
    pub url: Option<String>,
    /// Headers of every request. Values are kept as secrets.
    pub headers: BTreeMap<String, Secret>,
    /// Address of a server of the streamable HTTP kind.
    pub http_url: Option<String>,
    /// Address of a WebSocket server.
    pub tcp: Option<String>,
    /// Milliseconds a request may take.
    #[schemars(range(min = 1))]
    pub timeout: Option<u32>,
    /// Call its tools without asking.
    pub trust: bool,
    /// Its purpose.
    pub description: Option<String>,
}

/// A provider under a name of your own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProviderSection {
    /// The kind: a provider Lathe knows. Its own name if left out.
    pub provider: Option<String>,
    /// Its key.
    pub api_key: Option<Secret>,
    /// Variable of the environment that holds its key.
    pub key_variable: Option<String>,
    /// Its address.
    pub base_url: Option<String>,
    /// Version of the interface, where it wants one (Azure).
    pub api_version: Option<String>,
}

impl Settings {
    /// Every key there is, also of models that are not used, each with a name.
    pub(crate) fn keys(&self) -> Vec<(String, &Secret)> {
        let models = self.models.iter().map(|(name, model)| (name.as_str(), &model.api_key));
        let providers = self.providers.iter().map(|(name, provider)| (name.as_str(), &provider.api_key));
        let keys = models.chain(providers).chain([("model", &self.model.api_key)]);
        let keys = keys.filter_map(|(name, key)| Some((format!("{name}_API_KEY"), key.as_ref()?)));
        keys.map(|(name, key)| (name.to_uppercase(), key)).collect()
    }

    /// The variables that are named as holding a key.
    pub fn key_variables(&self) -> impl Iterator<Item = &String> {
        let models =
            self.models.values().chain([&self.model]).filter_map(|model| model.key_variable.as_ref());
        let providers = self.providers.values().filter_map(|provider| provider.key_variable.as_ref());
        models.chain(providers).chain(self.online.key_variable.as_ref())
    }

    /// The kind of the chosen provider: `openai` for a `[providers.work]` that says so, otherwise its name.
    pub fn provider_kind(&self) -> Option<&str> {
        let name = self.model.provider.as_deref()?;
        let entry = self.providers.get(name);
        entry.and_then(|entry| entry.provider.as_deref()).or(Some(name))
    }

    /// A model under `models`, complete with the address and key of its provider.
    pub fn model_named(&self, name: &str) -> Option<ModelSection> {
        let mut model = self.models.get(name)?.clone();
        model.name.get_or_insert_with(|| name.to_owned());
        let provider = match &model.provider {
            Some(provider) => provider.clone(),
            None => self.model.provider.clone()?,
        };
        // The provider of the task is shared with all that flags and variables said about it.
        let (key, url, version) = if self.model.provider.as_deref() == Some(provider.as_str()) {
            (&self.model.api_key, &self.model.base_url, &self.model.api_version)
        } else {
            match self.providers.get(&provider) {
                Some(entry) => (&entry.api_key, &entry.base_url, &entry.api_version),
                None => (&None, &None, &None),
            }
        };
        model.api_key = model.api_key.or_else(|| key.clone());
        model.base_url = model.base_url.or_else(|| url.clone());
        model.api_version = model.api_version.or_else(|| version.clone());
        model.provider = Some(provider);
        Some(model)
    }

    /// The model that writes the summaries, or nothing if there are none.
    pub fn lakeview_model(&self) -> Option<ModelSection> {
        self.lakeview.enabled.then(|| self.model_for_summaries())
    }

    /// The model for summaries, even if they are made only when a client asks for them.
    pub fn model_for_summaries(&self) -> ModelSection {
        self.lakeview.model.as_deref().map_or_else(|| self.model.clone(), |name| self.model_beside(name))
    }

    /// A name under `models`, or another model of the same provider.
    pub fn model_beside(&self, name: &str) -> ModelSection {
        self.model_named(name)
            .unwrap_or_else(|| ModelSection { name: Some(name.to_owned()), ..self.model.clone() })
    }
}
