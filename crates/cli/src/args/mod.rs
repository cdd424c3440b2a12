//! The command line. Every command has examples; a flag exists only when it works.

pub(crate) mod options;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use lathe_plan::{CassetteWish, ConfigPlace, options};
use lathe_protocol::{Mode, Sandbox, Toolset};

use crate::args::options::{OfInteractive, OfResume, OfRun, OfShowConfig, OfTools, OptionArgs};
use crate::commands::rewind::{DiffArgs, RewindArgs, UndoArgs};
use crate::commands::watch::WatchArgs;

/// A software-engineering agent: give it a task and a repository.
#[derive(Parser)]
#[command(
    name = "lathe",
    version,
    arg_required_else_help = true,
    after_help = "Examples:\n  lathe demo                                   see it work, offline\n  lathe run --mode full-auto \"fix the failing test\"\n  lathe sessions                               sessions so far\n  lathe show                                   the last session again"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Replaces Trae's short flags of two letters, which no other program has, by their long form.
pub(crate) fn long_form(argument: OsString) -> OsString {
    match argument.to_str() {
        Some("-ct") => "--console-type".into(),
        Some("-at") => "--agent-type".into(),
        Some(short) if short.len() == 3 && short.starts_with('-') => {
            let mut flags = options().iter().filter_map(|row| row.flag.as_ref());
            let known = flags.find(|flag| flag.trae.as_deref() == Some(short));
            known.map_or(argument.clone(), |flag| format!("--{}", flag.long).into())
        }
        Some(_) | None => argument,
    }
}

/// The offset at which a secret begins in a word of the command line, given the word before it. A secret is a key, or
/// the token in an address.
pub(crate) fn secret_part(before: &[u8], word: &[u8]) -> Option<usize> {
    if matches!(before, b"--api-key" | b"-k") {
        return Some(0);
    }
    let after = |mark: &[u8]| word.starts_with(mark).then_some(mark.len());
    let token = || word.windows(TOKEN.len()).position(|part| part == TOKEN).map(|at| at + TOKEN.len());
    after(b"--api-key=").or_else(|| after(b"-k=")).or_else(|| after(b"-k")).or_else(token)
}

const TOKEN: &[u8] = b"#token=";

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Work on a task without asking the user, and show each step
    #[command(after_help = RUN_HELP)]
    Run(RunArgs),
    /// A real run, offline: sample project, real tools, recorded model
    #[command(
        after_help = "Examples:\n  lathe demo\n  lathe demo --slow              at reading speed\n  lathe demo --toolset gemini    the same in the words of Gemini CLI"
    )]
    Demo(DemoArgs),
    /// Give one task after another, in one session
    #[command(
        after_help = "Examples:\n  lathe interactive --mode full-auto\n\nWords at the prompt: help, status, clear, exit, quit"
    )]
    Interactive(InteractiveArgs),
    /// List sessions, newest first
    #[command(
        after_help = "Examples:\n  lathe sessions\n  lathe sessions --search parser --folder .\n  lathe sessions --json | jq '.[0].id'"
    )]
    Sessions(SessionsArgs),
    /// Show what a session did
    #[command(
        after_help = "Examples:\n  lathe show                 the newest session\n  lathe show 20261115-09     by the beginning of its id\n  lathe show --format json   every event"
    )]
    Show(ShowArgs),
    /// Resume a session: an interrupted task, or a new one
    #[command(
        after_help = "Examples:\n  lathe resume                            resume the newest session\n  lathe resume 20261115 \"now add a test\"   another task, with all that is known"
    )]
    Resume(ResumeArgs),
    /// Start a new session that begins like another one, up to a step
    #[command(
        after_help = "Examples:\n  lathe fork 20261115 --at 3\n  lathe resume $(lathe fork 20261115 --at 3) \"try it another way\""
    )]
    Fork(ForkArgs),
    /// Return to the state after a step: files, conversation, or both
    #[command(
        after_help = "Examples:\n  lathe rewind --to 3 --preview          what would be restored\n  lathe rewind 20261115 --to 3           files and conversation\n  lathe rewind --to 0 --files            all files as they were; the conversation stays\n\nFiles that another program or user changed meanwhile are shown and left as they are (exit 1). `lathe undo` undoes a rewind."
    )]
    Rewind(RewindArgs),
    /// Undo the last change of files: of a step, or a rewind
    #[command(after_help = "Examples:\n  lathe undo --preview\n  lathe undo")]
    Undo(UndoArgs),
    /// Show what a session changed
    #[command(
        after_help = "Examples:\n  lathe diff               the newest session\n  lathe diff 20261115 | git apply -R"
    )]
    Diff(DiffArgs),
    /// Follow a session that another process runs; read-only
    #[command(
        after_help = "Examples:\n  lathe watch              the newest session\n  lathe watch 20261115 --output stream-json"
    )]
    Watch(WatchArgs),
    /// Run a session again, with its recorded answers
    #[command(
        after_help = "Examples:\n  lathe replay 20261115                 nothing is run: is it exact?\n  lathe replay 20261115 --tools live    real tools, in a copy of the workspace\n  lathe replay 20261115 --tools live --mode full-auto\n\nWith live tools each call is decided by the rules that hold now; one that is denied now is a difference."
    )]
    Replay(ReplayArgs),
    /// List the tools that the model gets
    #[command(
        after_help = "Examples:\n  lathe tools\n  lathe tools --config-file trae_config.yaml\n  lathe tools --toolset trae --json"
    )]
    Tools(ToolsArgs),
    /// Run one tool without a model
    #[command(after_help = "Examples:\n  lathe tool run view --json '{\"path\":\"README.md\"}'")]
    Tool(ToolArgs),
    /// The three-layer shell without a model: programs, Lathe's commands and field commands in one bash
    #[command(
        after_help = "Examples:\n  lathe shell\n  lathe shell -c 'search -l main | xargs view'\n  lathe shell -c 'commands'\n  lathe shell --mode plan -c 'view README.md'"
    )]
    Shell(crate::commands::shell::ShellArgs),
    /// The code graph of a folder: definitions, uses, calls, tests
    #[command(
        after_help = "Examples:\n  lathe graph build\n  lathe graph query callers Session.run\n  lathe graph stats --json\n  lathe graph export . > definitions.jsonl"
    )]
    Graph(crate::commands::graph::GraphArgs),
    /// Try the rules: show what may be done without asking
    #[command(
        after_help = "Examples:\n  lathe policy check 'cargo test 2>&1 | grep FAIL'\n  lathe policy check --rules my.toml < lines.txt"
    )]
    Policy(crate::commands::policy::PolicyArgs),
    /// Serve sessions over HTTP and WebSocket
    #[command(
        after_help = "Examples:\n  lathe serve                         this folder, on 127.0.0.1:8090\n  lathe serve --root ~/code --open\n  lathe serve token add ci --role operator"
    )]
    Serve(crate::commands::serve::ServeArgs),
    /// Choose which instructions and programs of a project are used
    #[command(
        after_help = "Examples:\n  lathe trust list\n  lathe trust add\n  lathe trust remove ~/src/theirs"
    )]
    Trust(crate::commands::trust::TrustArgs),
    /// List what shell lines removed, and restore it
    #[command(after_help = "Examples:\n  lathe quarantine list\n  lathe quarantine restore")]
    Quarantine(crate::commands::quarantine::QuarantineArgs),
    /// Use a session of a server from here: give a task, watch, steer, approve
    #[command(
        after_help = "Examples:\n  lathe connect 'http://127.0.0.1:8090/#token=...'                the sessions there\n  lathe connect 'http://127.0.0.1:8090/#token=...' \"fix the test\"\n  LATHE_TOKEN=... lathe connect https://box.lan:8090 --session ID"
    )]
    Connect(crate::connect::ConnectArgs),
    /// Show what sessions have cost
    #[command(after_help = "Examples:\n  lathe cost\n  lathe cost --by model --json")]
    Cost(crate::commands::cost::CostArgs),
    /// Remove old sessions and stored data that nothing needs any more
    #[command(after_help = "Examples:\n  lathe gc --dry-run\n  lathe gc --days 30")]
    Gc(crate::commands::gc::GcArgs),
    /// Show, check or document the configuration
    #[command(
        after_help = "Examples:\n  lathe config show        every value and where it comes from\n  lathe config check       only what is wrong\n  lathe config reference   every key that can be set"
    )]
    Config(ConfigArgs),
    /// Show the configuration as Trae's table
    #[command(after_help = "Examples:\n  lathe show-config --config-file trae_config.yaml")]
    ShowConfig(ShowConfigArgs),
    /// List the providers that Lathe knows, and which of them can be used now
    #[command(after_help = "Examples:\n  lathe models\n  lathe models --json")]
    Models(crate::commands::models::ModelsArgs),
    /// Store the key of a provider, or remove it
    #[command(after_help = "Examples:\n  lathe auth login openai < key.txt\n  lathe auth logout openai")]
    Auth(crate::commands::auth::AuthArgs),
    /// Check that everything Lathe needs is here
    #[command(
        after_help = "Examples:\n  lathe doctor\n  lathe doctor --provider anthropic --model claude-sonnet-4-5    sends it one small request too"
    )]
    Doctor(crate::commands::doctor::DoctorArgs),
    /// Print a completion script for a shell
    #[command(
        after_help = "Examples:\n  lathe completions bash > ~/.local/share/bash-completion/completions/lathe"
    )]
    Completions { shell: clap_complete::Shell },
}

const RUN_HELP: &str = "Examples:
  lathe run --mode full-auto \"the build is red, fix it\"
  lathe run -f issue.md --model gpt-5.2 --max-steps 40
  lathe run \"rename the flag\" --model-base-url http://127.0.0.1:8080/v1 --model local
  lathe run \"...\" --replay demo.cassette --output stream-json

Exit codes: 0 done, 1 task failed, 2 usage or config, 3 model unavailable, 4 budget or steps used up,
5 denied by policy, 54 disk full, 130 cancelled";

/// Flags for a recording in place of a model, and for a recording of this run.
#[derive(Args, Default)]
pub(crate) struct CassetteArgs {
    /// Answer from this cassette instead of a model
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// With --replay: end the run where it differs from the recording
    #[arg(long, requires = "replay")]
    pub(crate) replay_strict: bool,
    /// Write a cassette of this run
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

impl CassetteArgs {
    pub(crate) fn wish(&self) -> Option<CassetteWish> {
        self.replay.clone().map(|path| CassetteWish { path, strict: self.replay_strict })
    }
}

#[derive(Args)]
pub(crate) struct RunArgs {
    /// The task
    pub(crate) task: Option<String>,
    /// Read the task from a file
    #[arg(long, short, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Show the model this image with the task: PNG, JPEG, GIF or WebP; may be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) options: OptionArgs<OfRun>,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
    /// The folder to work in
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub(crate) working_dir: PathBuf,
    /// Configuration: a Trae file, or a Lathe file if its name ends in .toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,
    /// Compare with this commit instead of the tree at the start
    #[arg(long, value_name = "COMMIT")]
    pub(crate) base_commit: Option<String>,
    /// Display of the run (short: -ct); there is one console so far
    #[arg(long, value_enum, ignore_case = true)]
    pub(crate) console_type: Option<ConsoleArg>,
    /// Trae's name for its agent (short: -at)
    #[arg(long, value_enum)]
    pub(crate) agent_type: Option<AgentArg>,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputArg::Text)]
    pub(crate) output: OutputArg,
    /// Print the first request and its size instead of sending it
    #[arg(long)]
    pub(crate) show_request: bool,
    #[command(flatten)]
    pub(crate) trust: crate::commands::trust::TrustFlag,
}

#[derive(Args)]
pub(crate) struct InteractiveArgs {
    /// Show the model this image with the first task: PNG, JPEG, GIF or WebP; may be repeated
    #[arg(long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) options: OptionArgs<OfInteractive>,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
    /// Configuration: a Trae file, or a Lathe file if its name ends in .toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,
    /// Display of runs (short: -ct); there is one console so far
    #[arg(long, value_enum, ignore_case = true)]
    pub(crate) console_type: Option<ConsoleArg>,
    /// Trae's name for its agent (short: -at)
    #[arg(long, value_enum)]
    pub(crate) agent_type: Option<AgentArg>,
    /// The folder to work in
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub(crate) working_dir: PathBuf,
    #[command(flatten)]
    pub(crate) trust: crate::commands::trust::TrustFlag,
}

#[derive(Args)]
pub(crate) struct DemoArgs {
    /// Run at reading speed
    #[arg(long)]
    pub(crate) slow: bool,
    /// Names and descriptions of the tools
    #[arg(long, value_enum, default_value_t = ToolsetArg::Lathe)]
    pub(crate) toolset: ToolsetArg,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputArg::Text)]
    pub(crate) output: OutputArg,
}

#[derive(Args)]
pub(crate) struct SessionsArgs {
    /// Print a JSON array of objects
    #[arg(long)]
    pub(crate) json: bool,
    /// List at most this many
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<usize>,
    /// List only sessions with a task that contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// List only sessions in this folder or below it
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// Session id or its beginning; the newest if left out
    pub(crate) id: Option<String>,
    #[arg(long, value_enum, default_value_t = FormatArg::Text)]
    pub(crate) format: FormatArg,
}

#[derive(Args)]
pub(crate) struct ResumeArgs {
    /// Session id or its beginning; the newest if left out
    pub(crate) id: Option<String>,
    /// A new task for the session
    pub(crate) task: Option<String>,
    #[command(flatten)]
    pub(crate) options: OptionArgs<OfResume>,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
    /// Output format
    #[arg(long, value_enum, default_value_t = OutputArg::Text)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) trust: crate::commands::trust::TrustFlag,
}

#[derive(Args)]
pub(crate) struct ForkArgs {
    /// Session id or its beginning
    pub(crate) id: String,
    /// The last step to keep; all steps if left out
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) at: Option<u32>,
    /// Print the new id as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ReplayArgs {
    /// Session id or its beginning; the newest if left out
    pub(crate) id: Option<String>,
    /// Source of the results
    #[arg(long, value_enum, default_value_t = ReplayTools::Recorded)]
    pub(crate) tools: ReplayTools,
    /// With live tools: what may be done without asking; else the smaller of the session's and the configured mode
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReplayTools {
    /// From the journal: nothing is run
    Recorded,
    /// From real tools, in a copy of the workspace
    Live,
}

#[derive(Args)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    pub(crate) options: OptionArgs<OfTools>,
    /// Configuration: a Trae file, or a Lathe file if its name ends in .toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,
    /// Print what the model gets, as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) trust: crate::commands::trust::TrustFlag,
}

#[derive(Args)]
pub(crate) struct ToolArgs {
    #[command(subcommand)]
    pub(crate) command: ToolCommand,
}

#[derive(Subcommand)]
pub(crate) enum ToolCommand {
    /// Run one tool and print what the model would see; exit 1 if it fails
    #[command(
        after_help = "Examples:\n  lathe tool run view --json '{\"path\":\"README.md\"}'\n  lathe tool run bash --json '{\"command\":\"ls\"}'"
    )]
    Run(ToolRunArgs),
}

#[derive(Args)]
pub(crate) struct ToolRunArgs {
    /// Name of the tool
    pub(crate) name: String,
    /// Arguments as a JSON object
    #[arg(long, default_value = "{}")]
    pub(crate) json: String,
    /// Toolset to take it from; the first that has the tool if left out
    #[arg(long, value_enum)]
    pub(crate) toolset: Option<ToolsetArg>,
    /// Decide as for a model in this mode
    #[arg(long, value_enum)]
    pub(crate) mode: Option<ModeArg>,
    /// The folder to work in
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub(crate) working_dir: PathBuf,
    /// Print what the tool would do, as JSON, and run nothing
    #[arg(long, conflicts_with = "proposed")]
    pub(crate) preview: bool,
    /// Run the call with the text of this file in place of the text that it proposes
    #[arg(long, value_name = "FILE")]
    pub(crate) proposed: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) trust: crate::commands::trust::TrustFlag,
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum SandboxArg {
    /// No walls
    Off,
    /// The workspace and a private /tmp can be written, and there is no network
    Workspace,
    /// Only a private /tmp can be written
    ReadOnly,
}

impl From<SandboxArg> for Sandbox {
    fn from(sandbox: SandboxArg) -> Self {
        match sandbox {
            SandboxArg::Off => Sandbox::Off,
            SandboxArg::Workspace => Sandbox::Workspace,
            SandboxArg::ReadOnly => Sandbox::ReadOnly,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ModeArg {
    /// Change nothing
    Plan,
    /// Ask about what no rule allows; without a user, deny it
    Default,
    /// Edit files of the workspace without asking; the rest as in default
    AutoEdit,
    /// Do not ask
    FullAuto,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Plan => Mode::Plan,
            ModeArg::Default => Mode::Default,
            ModeArg::AutoEdit => Mode::AutoEdit,
            ModeArg::FullAuto => Mode::FullAuto,
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum ToolsetArg {
    Lathe,
    Trae,
    Gemini,
    Bash,
}

impl From<ToolsetArg> for Toolset {
    fn from(toolset: ToolsetArg) -> Self {
        match toolset {
            ToolsetArg::Lathe => Toolset::Lathe,
            ToolsetArg::Trae => Toolset::Trae,
            ToolsetArg::Gemini => Toolset::Gemini,
            ToolsetArg::Bash => Toolset::Bash,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConsoleArg {
    Simple,
    Rich,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
pub(crate) enum AgentArg {
    TraeAgent,
}

#[derive(Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every value and its source; keys are masked
    #[command(
        after_help = "Examples:\n  lathe config show\n  lathe config show --config-file trae_config.yaml --json"
    )]
    Show(ConfigShowArgs),
    /// Show only what is wrong
    #[command(after_help = "Examples:\n  lathe config check")]
    Check(ConfigShowArgs),
    /// Print every key that can be set, as Markdown
    #[command(after_help = "Examples:\n  lathe config reference > reference.md")]
    Reference,
}

#[derive(Args)]
pub(crate) struct ConfigShowArgs {
    /// Configuration: a Trae file, or a Lathe file if its name ends in .toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,
    /// The folder whose project file is read
    #[arg(long, short, value_name = "DIR", default_value = ".")]
    pub(crate) working_dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl ConfigShowArgs {
    pub(crate) fn place(&self) -> ConfigPlace<'_> {
        ConfigPlace::with_file(&self.working_dir, self.config_file.as_deref())
    }
}

#[derive(Args)]
pub(crate) struct ShowConfigArgs {
    #[command(flatten)]
    pub(crate) options: OptionArgs<OfShowConfig>,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
    /// Configuration: a Trae file, or a Lathe file if its name ends in .toml
    #[arg(long, value_name = "FILE")]
    pub(crate) config_file: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputArg {
    /// Steps as they happen, for the user
    Text,
    /// One object at the end
    Json,
    /// Every event as one line of JSON
    StreamJson,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// As it was shown on the terminal
    Text,
    /// Every event, as JSON
    Json,
    /// Trae's trajectory of the last task
    Trajectory,
    /// One page that needs no other file
    Html,
}
