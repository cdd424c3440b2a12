//! `models`: the providers, their keys and the models they offer.

use clap::Args;
use lathe_host::{Host, KeyFrom, ProviderRow};
use lathe_views::{Say, Tell};
use serde_json::json;

use crate::exit::Exit;
use crate::terminal::output::print_json;
use crate::terminal::{self, Paint};

#[derive(Args)]
pub(crate) struct ModelsArgs {
    /// Print a JSON array of objects
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
    let (paint, language) = (Paint::new(terminal::is_terminal()), terminal::language());
    for row in &rows {
        let ready = terminal::padded(Say::Ready.text(language), 5);
        let mark = if is_ready(row) { paint.green(&ready) } else { paint.dim("-    ") };
        let state = match &row.key {
            KeyFrom::Environment(variable) => Tell::KeyVariable { variable }.text(language),
            KeyFrom::Stored => Say::KeyStored.text(language).to_owned(),
            KeyFrom::NotNeeded if row.offers.is_empty() => Say::NoServer.text(language).to_owned(),
            KeyFrom::NotNeeded => row.offers.join(", "),
            KeyFrom::Missing => {
                let variable = row.provider.key_variables().into_iter().next().unwrap_or_default();
                Tell::SetVariable { variable: &variable }.text(language)
            }
        };
        terminal::out(&format!(
            "{mark}  {:<11} {:<10} {}\n",
            row.provider.name,
            row.provider.wire.as_str(),
            terminal::clean(&state)
        ));
    }
    terminal::out(&paint.dim(&format!("\n{}\n", Say::OtherServers.text(language))));
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
