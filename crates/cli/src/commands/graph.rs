//! `graph`: the code graph of a folder.

use std::path::PathBuf;
use std::time::Instant;

use clap::{Args, Subcommand};
use lathe_host::{Export, Host};
use lathe_protocol::counted;

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
    /// Read what changed and count what is there
    Build(FolderArgs),
    /// Ask: find, def, refs, callers, callees, implements, imports, tests-of, outline, map or impact
    #[command(
        after_help = "Examples:\n  lathe graph query callers Session.run\n  lathe graph query outline src/main.rs\n  lathe graph query map parser errors --budget 1000\n  lathe graph query impact              what the changes of the work tree can reach"
    )]
    Query(QueryArgs),
    /// Count what is there
    Stats(FolderArgs),
    /// Write out every definition, all calls, or a picture of one symbol
    #[command(
        after_help = "Examples:\n  lathe graph export | jq -r .name\n  lathe graph export --dot | dot -Tsvg > calls.svg\n  lathe graph export --picture Session.run > picture.html"
    )]
    Export(ExportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct FolderArgs {
    /// The folder; this one if left out
    folder: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// The question
    question: String,
    /// A name, a file, or words, as the question wants it
    target: Vec<String>,
    /// The folder to ask about
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// About how many tokens the answer may have
    #[arg(long, default_value_t = 2000)]
    budget: usize,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The folder; this one if left out
    folder: Option<PathBuf>,
    /// One JSON object per line, which is what it does anyway
    #[arg(long)]
    json: bool,
    /// Every call and what it means, one JSON object per line
    #[arg(long, conflicts_with = "dot")]
    calls: bool,
    /// All calls, for Graphviz
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// A page about this symbol
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
                Ok(asked) if args.json => print_json(&asked.json),
                Ok(asked) => terminal::out(&terminal::foreign(&asked.text)),
                Err(error) => return Exit::host(&error),
            }
            Exit::Done
        }
        GraphCommand::Export(args) => {
            let form = match (&args.picture, args.dot) {
                (Some(symbol), _) => Export::Picture(symbol.clone()),
                (None, true) => Export::Dot,
                (None, false) if args.calls => Export::Calls,
                (None, false) => Export::Lines,
            };
            match host.graphs().export(&here(args.folder.as_ref()), &form) {
                Ok(text) => terminal::out(&terminal::foreign(&text)),
                Err(error) => return Exit::host(&error),
            }
            Exit::Done
        }
    }
}

fn statistics(host: &Host, args: &FolderArgs) -> Exit {
    let started = Instant::now();
    let progress = |done: usize, all: usize| {
        // Only for what takes long enough to wonder.
        if started.elapsed().as_millis() > 700 && terminal::is_terminal() {
            let filled = (done * 30).checked_div(all).unwrap_or(30);
            let end = if done == all { "\n" } else { "" };
            terminal::err(&format!("\r[{:<30}] {done} of {all} files{end}", "#".repeat(filled)));
        }
    };
    let statistics = match host.graphs().build(&here(args.folder.as_ref()), &progress) {
        Ok(counted) => counted,
        Err(error) => return Exit::host(&error),
    };
    if args.json {
        print_json(&statistics);
        return Exit::Done;
    }
    let number = |key: &str| statistics[key].as_u64().unwrap_or(0);
    terminal::out(&format!(
        "{}, {}, {}, {}\n{} parsed, {} known, {} gone; {:.0} ms, {:.0} ms of them looking at the files\n{}, {} KiB\n",
        counted(number("files"), "file"),
        counted(number("lines"), "line"),
        counted(number("definitions"), "definition"),
        counted(number("uses"), "use"),
        counted(number("parsed"), "file"),
        number("reused"),
        number("removed"),
        statistics["total_ms"].as_f64().unwrap_or(0.0),
        statistics["walk_ms"].as_f64().unwrap_or(0.0),
        terminal::name(statistics["database"].as_str().unwrap_or("")),
        number("bytes") / 1024,
    ));
    for out in statistics["left_out"].as_array().into_iter().flatten() {
        let (path, why) = (out["path"].as_str().unwrap_or(""), out["why"].as_str().unwrap_or(""));
        terminal::out(&format!("left out: {} ({why})\n", terminal::name(path)));
    }
    for note in statistics["notes"].as_array().into_iter().flatten() {
        terminal::out(&format!("note: {}\n", terminal::clean(note.as_str().unwrap_or(""))));
    }
    Exit::Done
}
