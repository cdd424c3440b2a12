//! `models` and `auth`: who can be asked, and with which key. A key is read from standard input, never from the command
//! line, where every user of the machine could see it.

use std::io::{BufRead, IsTerminal};

use clap::{Args, Subcommand};
use lathe_host::{Host, KeyFrom, ProviderRow};
use serde_json::json;

use crate::args::CassetteArgs;
use crate::args::options::{OfDoctor, OptionArgs};
use crate::exit::Exit;
use crate::terminal::output::print_json;
use crate::terminal::{self, Paint};

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

#[derive(Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) options: OptionArgs<OfDoctor>,
    #[command(flatten)]
    pub(crate) cassette: CassetteArgs,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    let paint = Paint::new(terminal::is_terminal());
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
        terminal::out(&format!(
            "{mark}  {:<11} {:<10} {}\n",
            row.provider.name,
            row.provider.wire.as_str(),
            terminal::clean(&state)
        ));
    }
    terminal::out(&paint.dim(
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
                terminal::err(&format!("The key for {provider}, then Enter (it will be seen): "));
            }
            let mut key = String::new();
            if let Err(error) = std::io::stdin().lock().read_line(&mut key) {
                return Exit::wrong_usage(&format!("the key cannot be read: {error}"));
            }
            match host.models().login(provider, &key) {
                Ok(path) => {
                    terminal::out(&format!("The key for {provider} is kept in {}.\n", path.display()));
                    Exit::Done
                }
                Err(error) => Exit::host(&error),
            }
        }
        AuthCommand::Logout { provider } => match host.models().logout(provider) {
            Ok(true) => {
                terminal::out(&format!("The key for {provider} is forgotten.\n"));
                Exit::Done
            }
            Ok(false) => {
                terminal::out(&format!("No key for {provider} was stored.\n"));
                Exit::Done
            }
            Err(error) => Exit::host(&error),
        },
    }
}
