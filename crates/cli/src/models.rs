//! `models` and `auth`: who can be asked, and with which key. A key is read from standard input, never from the command
//! line, where every user of the machine could see it.

use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use lathe_config::{Flag, ModelSection, OnOutage, RunSection, Settings};
use lathe_host::{
    CacheMeter, Check, Host, KeyFrom, ModelRequest, ModelSource, Outage, Params, Patience, ProviderRow,
};
use lathe_protocol::{Budget, Usage, counted};
use serde_json::json;

use crate::args::ModelArgs;
use crate::exit::Exit;
use crate::output::print_json;
use crate::settings::source;
use crate::term::{self, Paint};

#[derive(Args)]
pub(crate) struct ModelsArgs {
    /// As a JSON array of objects
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Subcommand)]
pub(crate) enum AuthCommand {
    /// Keep a key, read from standard input, in a file only you can read
    #[command(
        after_help = "Examples:\n  lathe auth login openai < key.txt\n  pass show anthropic | lathe auth login anthropic"
    )]
    Login {
        /// Whose key it is
        provider: String,
    },
    /// Forget a key
    #[command(after_help = "Examples:\n  lathe auth logout openai")]
    Logout {
        /// Whose key it is
        provider: String,
    },
}

/// What the settings say about answers.
pub(crate) fn request(model: &ModelSection) -> ModelRequest {
    let params = Params {
        temperature: model.temperature,
        top_p: model.top_p,
        top_k: model.top_k,
        max_tokens: model.output_limit(),
        parallel_calls: model.parallel_tool_calls,
        candidate_count: model.candidate_count,
        stop_sequences: model.stop_sequences.clone().unwrap_or_default(),
        thinking_tokens: model.thinking_tokens,
        own_tools: model.provider_tools.unwrap_or(false),
        images: model.supports_images,
        ..Params::default()
    };
    let seconds = |set: Option<u32>, usual: Duration| set.map_or(usual, |s| Duration::from_secs(s.into()));
    let usual = Patience::default();
    let total = seconds(model.answer_seconds, usual.total);
    let patience = Patience {
        stall: seconds(model.stall_seconds, usual.stall),
        first_byte: usual.first_byte.min(total),
        total,
        longest_wait: seconds(model.longest_wait_seconds, usual.longest_wait),
        attempts: model.max_retries.map_or(usual.attempts, |retries| retries.saturating_add(1)),
        ..usual
    };
    let mut request = ModelRequest { params, patience, ..ModelRequest::default() };
    if model.supports_tool_calling == Some(false) {
        request.describe_tools();
    }
    request
}

/// One small question to the model of the settings, if there is one.
pub(crate) async fn probe(host: &Host, args: &ModelArgs, settings: &Settings) -> Option<Check> {
    match source(args, settings) {
        ModelSource::Ask(request) => host.models().probe(&request).await,
        ModelSource::Replay { .. } | ModelSource::Given { .. } | ModelSource::BuiltIn { .. } => None,
    }
}

/// An amount of money: a finite number that is not negative. Anything else would be no cap.
fn dollars(text: &str) -> Result<f64, String> {
    let amount = text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "give an amount of US dollars: a number that is 0 or more, such as 2.50".to_owned())
}

#[derive(Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Leave besides that of the mode.
#[derive(Args)]
pub(crate) struct AllowArgs {
    /// Allow these tools without asking; of the shell, commands: `bash(git push)`. With commas, or repeated
    #[arg(long, value_name = "TOOL", value_delimiter = ',')]
    pub(crate) allowed_tools: Vec<String>,
}

/// What a run may spend.
#[derive(Args)]
pub(crate) struct LimitArgs {
    /// US dollars at most; a run that is stopped can be resumed with more
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, allow_hyphen_values = true)]
    pub(crate) max_cost: Option<f64>,
    /// Tokens at most, read and written
    #[arg(long, value_name = "N", value_parser = tokens, allow_hyphen_values = true)]
    pub(crate) max_tokens: Option<u64>,
    /// Time at most: seconds, or 90s, 15m, 2h
    #[arg(long, value_name = "TIME", value_parser = seconds, allow_hyphen_values = true)]
    pub(crate) max_time: Option<u64>,
    /// When the model cannot be reached: wait until it is back, or fail
    #[arg(long, value_enum)]
    pub(crate) on_outage: Option<OutageArg>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutageArg {
    Park,
    Fail,
}

impl ModelArgs {
    /// Tells whether these flags give a session an address or a key that the configuration does not give it.
    pub(crate) fn names_own_model(&self) -> bool {
        self.model_base_url.is_some() || self.api_key.is_some()
    }
}

/// A number of steps.
pub(crate) fn steps(text: &str) -> Result<u32, String> {
    let steps = text.parse().ok().filter(|steps| *steps > 0);
    steps.ok_or_else(|| format!("give a number of steps: a whole number from 1 to {}", u32::MAX))
}

/// A number of tokens.
fn tokens(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "give a number of tokens: a whole number that is 1 or more".to_owned())
}

fn seconds(text: &str) -> Result<u64, String> {
    let (number, unit) = match text.strip_suffix(['s', 'm', 'h']) {
        Some(number) => (number, text.chars().last()),
        None => (text, None),
    };
    let number: u64 = number.parse().map_err(|_| {
        "give a time that is 1 second or more: seconds as 90 or 90s, minutes as 15m, hours as 2h".to_owned()
    })?;
    Ok(number.saturating_mul(match unit {
        Some('h') => 3600,
        Some('m') => 60,
        Some(_) | None => 1,
    }))
}

impl LimitArgs {
    /// The caps that these flags name.
    pub(crate) fn budget(&self) -> Budget {
        let (max_cost, max_tokens, max_seconds) = (self.max_cost, self.max_tokens, self.max_time);
        RunSection { max_cost, max_tokens, max_seconds, ..RunSection::default() }.limits().budget
    }

    pub(crate) fn flags(&self) -> Vec<Flag> {
        let outage = self.on_outage.map(|outage| match outage {
            OutageArg::Park => "park",
            OutageArg::Fail => "fail",
        });
        let flags = [
            self.max_cost.map(|dollars| Flag::new("run.max_cost", dollars, "--max-cost")),
            self.max_tokens.map(|tokens| Flag::new("run.max_tokens", tokens, "--max-tokens")),
            self.max_time.map(|seconds| Flag::new("run.max_seconds", seconds, "--max-time")),
            outage.map(|word| Flag::new("run.on_outage", word, "--on-outage")),
        ];
        flags.into_iter().flatten().collect()
    }
}

pub(crate) fn outage(setting: Option<OnOutage>) -> Outage {
    match setting {
        Some(OnOutage::Park) => Outage::Park,
        Some(OnOutage::Fail) | None => Outage::Fail,
    }
}

/// The caps of a run, for its first line.
pub(crate) fn budget_words(budget: &Budget) -> String {
    let mut words = String::new();
    if let Some(micro) = budget.cost {
        words.push_str(&format!(", {}", lathe_protocol::dollars(micro)));
    }
    if let Some(tokens) = budget.tokens {
        words.push_str(&format!(", {}", counted(tokens, "token")));
    }
    if let Some(seconds) = budget.seconds {
        words.push_str(&format!(", {seconds} s"));
    }
    words
}

/// The share of the input that came from the provider's cache, where it tells.
pub(crate) fn cached_share(usage: &Usage) -> String {
    match usage.cache_read_input_tokens {
        0 => String::new(),
        read => format!(" ({} % cached)", read.saturating_mul(100) / usage.input_tokens.max(1)),
    }
}

/// How well the provider's cache was used, and what broke it.
pub(crate) fn cache_lines(meter: &CacheMeter) -> String {
    let Some(percent) = meter.percent() else { return String::new() };
    let paint = Paint::new(term::is_terminal());
    let mut out =
        format!("cache: {percent} % of the input was read from it, breaks: {}\n", meter.breaks.len());
    for broken in &meter.breaks {
        out.push_str(&format!("  step {}: {}\n", broken.step, broken.cause.words()));
    }
    paint.dim(&out)
}

pub(crate) fn models(host: &Host, args: &ModelsArgs) -> Exit {
    let rows = match host.models().providers() {
        Ok(rows) => rows,
        Err(error) => return Exit::host(&error),
    };
    if args.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                json!({
                    "provider": row.provider.name,
                    "wire": row.provider.wire.as_str(),
                    "base_url": row.provider.base_url,
                    "key_variables": row.provider.key_variables(),
                    "key": key_word(&row.key),
                    "ready": is_ready(row),
                    "models": row.offers,
                })
            })
            .collect();
        print_json(&json!(rows));
        return Exit::Done;
    }
    let paint = Paint::new(term::is_terminal());
    for row in &rows {
        let mark = if is_ready(row) { paint.green("ready") } else { paint.dim("-    ") };
        let state = match &row.key {
            KeyFrom::Environment(name) => format!("key in {name}"),
            KeyFrom::Stored => "key stored by `lathe auth login`".to_owned(),
            KeyFrom::NotNeeded if row.offers.is_empty() => "no server answers".to_owned(),
            KeyFrom::NotNeeded => row.offers.join(", "),
            KeyFrom::Missing => {
                format!("set {}", row.provider.key_variables().into_iter().next().unwrap_or_default())
            }
        };
        term::out(&format!(
            "{mark}  {:<11} {:<10} {}\n",
            row.provider.name,
            row.provider.wire.as_str(),
            term::clean(&state)
        ));
    }
    term::out(&paint.dim(
        "\nAny other server that speaks OpenAI's Chat Completions: --model-base-url http://HOST/v1 --model NAME\n",
    ));
    Exit::Done
}

fn is_ready(row: &ProviderRow) -> bool {
    match row.key {
        KeyFrom::Environment(_) | KeyFrom::Stored => true,
        KeyFrom::NotNeeded => !row.offers.is_empty(),
        KeyFrom::Missing => false,
    }
}

fn key_word(key: &KeyFrom) -> &'static str {
    match key {
        KeyFrom::Environment(_) => "environment",
        KeyFrom::Stored => "stored",
        KeyFrom::NotNeeded => "not needed",
        KeyFrom::Missing => "missing",
    }
}

pub(crate) fn auth(host: &Host, args: &AuthArgs) -> Exit {
    match &args.command {
        AuthCommand::Login { provider } => {
            if std::io::stdin().is_terminal() {
                term::err(&format!("The key for {provider}, then Enter (it will be seen): "));
            }
            let mut key = String::new();
            if let Err(error) = std::io::stdin().lock().read_line(&mut key) {
                return Exit::wrong_usage(&format!("the key cannot be read: {error}"));
            }
            match host.models().login(provider, &key) {
                Ok(path) => {
                    term::out(&format!("The key for {provider} is kept in {}.\n", path.display()));
                    Exit::Done
                }
                Err(error) => Exit::host(&error),
            }
        }
        AuthCommand::Logout { provider } => match host.models().logout(provider) {
            Ok(true) => {
                term::out(&format!("The key for {provider} is forgotten.\n"));
                Exit::Done
            }
            Ok(false) => {
                term::out(&format!("No key for {provider} was stored.\n"));
                Exit::Done
            }
            Err(error) => Exit::host(&error),
        },
    }
}
