//! `graph`: the code graph of a folder.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};
use lathe_host::{GraphExport, Host};
use lathe_views::{Noun, Tell};

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

#[derive(Debug, Args)]
pub(crate) struct GraphArgs {
    #[command(subcommand)]
    pub(crate) command: GraphCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Read what changed since the last time, and count the contents
    Build(FolderArgs),
    /// Query the graph: find, def, refs, callers, callees, implements, imports, tests-of, outline, map or impact
    #[command(
        after_help = "Examples:\n  lathe graph query callers Session.run\n  lathe graph query outline src/main.rs\n  lathe graph query map parser errors --budget 1000\n  lathe graph query impact              what the changes of the work tree can affect"
    )]
    Query(QueryArgs),
    /// Count the contents
    Stats(FolderArgs),
    /// Write out every definition, all calls, or a picture of one symbol
    #[command(
        after_help = "Examples:\n  lathe graph export | jq -r .name\n  lathe graph export --dot | dot -Tsvg > calls.svg\n  lathe graph export --picture Session.run > picture.html"
    )]
    Export(ExportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    /// The folder; the current one if left out
    folder: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// The kind of query
    question: String,
    /// A name, a file, or words, as the query needs it
    target: Vec<String>,
    /// The folder to query; the current one if left out
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// The approximate number of tokens that the reply may have
    #[arg(long, default_value_t = 2000)]
    budget: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The folder; the current one if left out
    folder: Option<PathBuf>,
    /// Print one JSON object per line, which is the default
    #[arg(long)]
    json: bool,
    /// Print every call and its meaning, one JSON object per line
    #[arg(long, conflicts_with = "dot")]
    calls: bool,
    /// Print all calls, for Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// Print a page about this symbol
    #[arg(long, value_name = "SYMBOL", conflicts_with_all = ["json", "dot"])]
    picture: Option<String>,
}

fn here(folder: Option<&PathBuf>) -> PathBuf {
    folder.cloned().unwrap_or_else(|| PathBuf::from("."))
}

pub(crate) fn graph(host: &Host, args: &GraphArgs) -> Exit {
    match &args.command {
        GraphCommand::Build(args) | GraphCommand::Stats(args) => statistics(host, args),
        GraphCommand::Query(args) => {
            let target = args.target.join(" ");
            match host.graphs().query(&here(args.folder.as_ref()), &args.question, &target, args.budget) {
                Ok(reply) if args.json => print_json(&reply.json),
                Ok(reply) => terminal::out(&terminal::clean_on_terminal(&reply.text)),
                Err(error) => return Exit::host(&error),
            }
            Exit::Done
        }
        GraphCommand::Export(args) => {
            let form = match (&args.picture, args.dot) {
                (Some(symbol), _) => GraphExport::Picture(symbol.clone()),
                (None, true) => GraphExport::Dot,
                (None, false) if args.calls => GraphExport::Calls,
                (None, false) => GraphExport::Lines,
            };
            match host.graphs().export(&here(args.folder.as_ref()), &form) {
                Ok(text) => terminal::out(&terminal::clean_on_terminal(&text)),
                Err(error) => return Exit::host(&error),
            }
            Exit::Done
        }
    }
}

fn statistics(host: &Host, args: &FolderArgs) -> Exit {
    let (started, language) = (Instant::now(), terminal::language());
    let progress = |done: usize, all: usize| {
        // A short build shows no progress.
        if started.elapsed().as_millis() > 700 && terminal::is_terminal() {
            let filled = (done * 30).checked_div(all).unwrap_or(30);
            let end = if done == all { "\n" } else { "" };
            let count = Tell::GraphProgress { done, all }.text(language);
            terminal::err(&format!("\r[{:<30}] {count}{end}", "#".repeat(filled)));
        }
    };
    let statistics = match host.graphs().build(&here(args.folder.as_ref()), &progress) {
        Ok(statistics) => statistics,
        Err(error) => return Exit::host(&error),
    };
    if args.json {
        print_json(&statistics);
        return Exit::Done;
    }
    let number = |key: &str| statistics[key].as_u64().unwrap_or(0);
    let count = |key: &str, noun: Noun| noun.count(number(key), language);
    let contents = Tell::GraphContents {
        files: &count("files", Noun::File),
        lines: &count("lines", Noun::Line),
        definitions: &count("definitions", Noun::Definition),
        uses: &count("uses", Noun::Use),
    };
    let work = Tell::GraphWork {
        parsed: &count("parsed", Noun::File),
        known: number("reused"),
        gone: number("removed"),
        total_ms: statistics["total_ms"].as_f64().unwrap_or(0.0),
        walk_ms: statistics["walk_ms"].as_f64().unwrap_or(0.0),
    };
    let database = terminal::name(statistics["database"].as_str().unwrap_or(""));
    terminal::out_line(&contents.text(language));
    terminal::out_line(&work.text(language));
    let kibibytes = number("bytes") / 1024;
    terminal::out_line(&format!("{database}, {kibibytes} KiB"));
    for file in statistics["left_out"].as_array().into_iter().flatten() {
        let path = &terminal::name(file["path"].as_str().unwrap_or(""));
        let left_out = Tell::LeftOut { path, reason: file["why"].as_str().unwrap_or("") };
        terminal::out_line(&left_out.text(language));
    }
    for note in statistics["notes"].as_array().into_iter().flatten() {
        terminal::out(&format!("note: {}\n", terminal::clean(note.as_str().unwrap_or(""))));
    }
    Exit::Done
}
