//! `cost` and `gc`.

use std::time::Duration;

use clap::{Args, ValueEnum};
use lathe_host::Host;
use lathe_protocol::{Usage, counted};
use lathe_views::{Beside, By, CostRow};
use serde_json::json;

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

#[derive(Args)]
pub(crate) struct CostArgs {
    /// How to group
    #[arg(long, value_enum, default_value_t = ByArg::Day)]
    pub(crate) by: ByArg,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ByArg {
    Day,
    Model,
    Repo,
}

#[derive(Args)]
pub(crate) struct GcArgs {
    /// Remove sessions that nobody touched for this many days
    #[arg(long, value_name = "N", default_value_t = 90)]
    pub(crate) days: u64,
    /// Only say what would be removed
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// As JSON
    #[arg(long)]
    pub(crate) json: bool,
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
    for row in rows.iter().chain([&CostRow { key: "total".to_owned(), ..total }]) {
        terminal::out(&row_text(row, width));
    }
    Exit::Done
}

fn row_text(row: &CostRow, width: usize) -> String {
    let unknown = if tokens(&row.unpriced) > 0 {
        let models: Vec<&str> = row.unpriced_models.iter().map(String::as_str).collect();
        format!(
            "  and {} of unknown price ({})",
            counted(tokens(&row.unpriced), "token"),
            terminal::clean(&models.join(", "))
        )
    } else {
        String::new()
    };
    let parts: String = [("Lakeview", &row.lakeview), ("reviews", &row.review)]
        .into_iter()
        .filter(|(_, part)| part.answers > 0)
        .map(|(name, part)| {
            let (input, output) = (part.usage.input_tokens, part.usage.output_tokens);
            format!("{:<width$}  of that {name}: {input} in, {output} out, {}\n", "", part.cost)
        })
        .collect();
    format!(
        "{:<width$}  {:>4} sessions  {:>11} in  {:>9} out  {:>10}{unknown}\n{parts}",
        terminal::clean(&row.key),
        row.sessions,
        row.usage.input_tokens,
        row.usage.output_tokens,
        row.cost.to_string(),
    )
}

fn tokens(usage: &Usage) -> u64 {
    usage.tokens()
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

fn part_json(part: &Beside) -> serde_json::Value {
    json!({ "answers": part.answers, "usage": part.usage, "micro_dollars": part.cost.micro_dollars() })
}

pub(crate) fn gc(host: &Host, args: &GcArgs) -> Exit {
    let older = Duration::from_secs(args.days.saturating_mul(24 * 3600));
    let garbage = match host.archive().collect(older, !args.dry_run) {
        Ok(garbage) => garbage,
        Err(error) => return Exit::host(&error),
    };
    if args.json {
        let value = json!({
            "removed": !args.dry_run,
            "sessions": garbage.sessions,
            "blobs": garbage.blobs,
            "other": garbage.other,
            "bytes": garbage.bytes,
            "kept_sessions": garbage.kept_sessions,
            "kept_bytes": garbage.kept_bytes,
        });
        print_json(&value);
        return Exit::Done;
    }
    let verb = if args.dry_run { "would remove" } else { "removed" };
    terminal::out(&format!(
        "{verb} {}, {} and {}: {}\nkept {}: {}\n",
        counted(garbage.sessions.len(), "session"),
        counted(garbage.blobs, "blob"),
        counted(garbage.other, "leftover"),
        megabytes(garbage.bytes),
        counted(garbage.kept_sessions, "session"),
        megabytes(garbage.kept_bytes)
    ));
    Exit::Done
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
