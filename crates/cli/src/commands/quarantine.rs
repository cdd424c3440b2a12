//! `quarantine`: what lines took away, and the way back.

use clap::{Args, Subcommand};
use lathe_host::{Host, KeptEntry};
use lathe_protocol::counted;
use serde_json::json;

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

/// Names of git's that are listed of one entry.
const NAMED: usize = 10;

#[derive(Args)]
pub(crate) struct QuarantineArgs {
    #[command(subcommand)]
    command: QuarantineCommand,
}

#[derive(Subcommand)]
enum QuarantineCommand {
    /// What lines took away and is still kept
    List {
        /// A JSON array of objects
        #[arg(long)]
        json: bool,
    },
    /// Puts back what a line took away
    #[command(
        after_help = "Examples:\n  lathe quarantine list\n  lathe quarantine restore 1794\n\nWhat is somewhere in the way is left, and the entry with it."
    )]
    Restore {
        /// The entry: its id or the beginning of it; the newest of this folder if left out
        id: Option<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

impl QuarantineArgs {
    /// See [`crate::inside::change`].
    pub(crate) fn change(&self) -> Option<&'static str> {
        match self.command {
            QuarantineCommand::List { .. } => None,
            QuarantineCommand::Restore { .. } => Some("lathe quarantine restore"),
        }
    }
}

pub(crate) fn quarantine(host: &Host, args: &QuarantineArgs) -> Exit {
    match &args.command {
        QuarantineCommand::List { json } => list(&host.archive().kept_entries(), *json),
        QuarantineCommand::Restore { id, json } => restore(host, id.as_deref(), *json),
    }
}

fn list(entries: &[KeptEntry], as_json: bool) -> Exit {
    if as_json {
        print_json(&json!(entries));
        return Exit::Done;
    }
    if entries.is_empty() {
        terminal::out("nothing is kept\n");
    }
    for kept in entries {
        let mut what = format!(
            "{}, {}, {} of git",
            counted(kept.files(), "file"),
            counted(kept.changes(), "change"),
            counted(kept.names().len(), "name")
        );
        for path in kept.repositories() {
            what.push_str(&format!(", the repository {}", terminal::name(&path.display().to_string())));
        }
        let names = kept.names().filter(|name| *name != "HEAD");
        for one in names.take(NAMED) {
            what.push_str(&format!(", {}", terminal::name(one)));
        }
        let folder = kept.folder().display().to_string();
        let line = lathe_protocol::visible(kept.line());
        terminal::out(&format!(
            "{}  {what}  in {}\n    {}\n",
            kept.id(),
            terminal::name(&folder),
            terminal::name(&line)
        ));
    }
    Exit::Done
}

fn restore(host: &Host, id: Option<&str>, as_json: bool) -> Exit {
    let back = match host.archive().restore_kept(id, &std::env::current_dir().unwrap_or_default()) {
        Ok(restored) => restored,
        Err(error) => return Exit::host(&error),
    };
    if as_json {
        let left: Vec<_> = back.left.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect();
        print_json(&json!({ "id": back.id, "restored": back.done, "left": left }));
    } else {
        back.done
            .iter()
            .for_each(|path| terminal::out(&format!("  {}  brought back\n", terminal::name(path))));
        for (path, why) in &back.left {
            terminal::out(&format!("  {}  left: {}\n", terminal::name(path), terminal::name(why)));
        }
    }
    if back.left.is_empty() { Exit::Done } else { Exit::Failed }
}
