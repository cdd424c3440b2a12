//! `cost`: the cost of sessions.

use clap::{Args, ValueEnum};
use lathe_host::Host;
use lathe_views::{By, CostRow, Noun, OutsideCost, Say, Tell};
use serde_json::json;

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

#[derive(Args)]
pub(crate) struct CostArgs {
    /// Grouping of the rows
    #[arg(long, value_enum, default_value_t = ByArg::Day)]
    pub(crate) by: ByArg,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArg {
    Day,
    Model,
    Repo,
}

pub(crate) fn cost(host: &Host, args: &CostArgs) -> Exit {
    let report = match host.archive().cost() {
        Ok(report) => report,
        Err(error) => return Exit::host(&error),
    };
    let by = match args.by {
        ByArg::Day => By::Day,
        ByArg::Model => By::Model,
        ByArg::Repo => By::Repo,
    };
    let (rows, total) = (report.rows(by), report.total());
    if args.json {
        let rows: Vec<_> = rows.iter().map(row_json).collect();
        print_json(&json!({ "rows": rows, "total": row_json(&total) }));
        return Exit::Done;
    }
    let width = rows.iter().map(|row| row.key.chars().count()).max().unwrap_or(0).max(5);
    for row in
        rows.iter().chain([&CostRow { key: Say::Total.text(terminal::language()).to_owned(), ..total }])
    {
        terminal::out(&row_text(row, width));
    }
    Exit::Done
}

fn row_text(row: &CostRow, width: usize) -> String {
    let language = terminal::language();
    let line = Tell::CostRow {
        key: &terminal::padded(&terminal::clean(&row.key), width),
        sessions: row.sessions,
        input: row.usage.input_tokens,
        output: row.usage.output_tokens,
        cost: &row.cost.to_string(),
    };
    let mut text = line.text(language);
    let unpriced = row.unpriced.tokens();
    if unpriced > 0 {
        let models: Vec<&str> = row.unpriced_models.iter().map(String::as_str).collect();
        let unpriced = Tell::CostUnpriced {
            tokens: &Noun::Token.count(unpriced, language),
            models: &terminal::clean(&models.join(", ")),
        };
        text.push_str(&format!("  {}", unpriced.text(language)));
    }
    text.push('\n');
    let parts = [("Lakeview", &row.lakeview), (Say::Reviews.text(language), &row.review)];
    for (name, part) in parts.into_iter().filter(|(_, part)| part.answers > 0) {
        let line = Tell::CostPart {
            part: name,
            input: part.usage.input_tokens,
            output: part.usage.output_tokens,
            cost: &part.cost.to_string(),
        };
        text.push_str(&format!("{:<width$}  {}\n", "", line.text(language)));
    }
    text
}

fn row_json(row: &CostRow) -> serde_json::Value {
    json!({
        "key": row.key,
        "sessions": row.sessions,
        "answers": row.answers,
        "usage": row.usage,
        "micro_dollars": row.cost.micro_dollars(),
        "lakeview": part_json(&row.lakeview),
        "review": part_json(&row.review),
        "unpriced": row.unpriced,
        "unpriced_models": row.unpriced_models,
    })
}

fn part_json(part: &OutsideCost) -> serde_json::Value {
    json!({ "answers": part.answers, "usage": part.usage, "micro_dollars": part.cost.micro_dollars() })
}
