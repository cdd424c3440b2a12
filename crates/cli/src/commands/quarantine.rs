//! `quarantine`: files that shell lines removed, listed and restored.

use clap::{Args, Subcommand};
use lathe_host::{Host, KeptEntry};
use lathe_protocol::visible;
use lathe_views::{Language, Noun, Say, Tell};
use serde_json::json;

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

/// The most git names that are listed of one entry.
const NAMED: usize = 10;

#[derive(Args)]
pub(crate) struct QuarantineArgs {
    #[command(subcommand)]
    command: QuarantineCommand,
}

#[derive(Subcommand)]
enum QuarantineCommand {
    /// List what shell lines removed and the quarantine still keeps
    List {
        /// Print a JSON array of objects
        #[arg(long)]
        json: bool,
    },
    /// Restore what a shell line removed
    #[command(
        after_help = "Examples:\n  lathe quarantine list\n  lathe quarantine restore 1794\n\nA file that would replace another one is not restored, and its entry is kept."
    )]
    Restore {
        /// The entry: its id or the beginning of it; the newest of this folder if left out
        id: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl QuarantineArgs {
    /// See [`crate::home_changes::changing_command`].
    pub(crate) fn changing_command(&self) -> Option<&'static str> {
        match self.command {
            QuarantineCommand::List { .. } => None,
            QuarantineCommand::Restore { .. } => Some("lathe quarantine restore"),
        }
    }
}

pub(crate) fn quarantine(host: &Host, args: &QuarantineArgs) -> Exit {
    match &args.command {
        QuarantineCommand::List { json } => list(&host.archive().quarantine_list(), *json),
        QuarantineCommand::Restore { id, json } => restore(host, id.as_deref(), *json),
    }
}

fn list(entries: &[KeptEntry], as_json: bool) -> Exit {
    if as_json {
        print_json(&json!(entries));
        return Exit::Done;
    }
    let language = terminal::language();
    if entries.is_empty() {
        terminal::out_line(Say::NothingKept.text(language));
    }
    for entry in entries {
        let kept = Tell::KeptEntry {
            id: entry.id(),
            contents: &contents(entry, language),
            folder: &terminal::name(&entry.folder().display().to_string()),
        };
        let line = terminal::name(&visible(entry.line()));
        terminal::out(&format!("{}\n    {line}\n", kept.text(language)));
    }
    Exit::Done
}

/// The contents of an entry: its counts, its repositories and some of its git names.
fn contents(entry: &KeptEntry, language: Language) -> String {
    let counts = Tell::KeptContents {
        files: &Noun::File.count(entry.files(), language),
        changes: &Noun::Change.count(entry.changes(), language),
        names: &Noun::Name.count(entry.names().len(), language),
    };
    let mut text = counts.text(language);
    for path in entry.repositories() {
        let path = &terminal::name(&path.display().to_string());
        text.push_str(&Tell::KeptRepository { path }.text(language));
    }
    for name in entry.names().filter(|name| *name != "HEAD").take(NAMED) {
        text.push_str(&Tell::KeptName { name: &terminal::name(name) }.text(language));
    }
    text
}

fn restore(host: &Host, id: Option<&str>, as_json: bool) -> Exit {
    let back = match host.archive().restore_entry(id, &std::env::current_dir().unwrap_or_default()) {
        Ok(restored) => restored,
        Err(error) => return Exit::host(&error),
    };
    if as_json {
        let left: Vec<_> = back.left.iter().map(|(path, why)| json!({ "path": path, "why": why })).collect();
        print_json(&json!({ "id": back.id, "restored": back.done, "left": left }));
    } else {
        let language = terminal::language();
        for path in &back.done {
            let restored = Tell::Restored { path: &terminal::name(path) };
            terminal::out_line(&format!("  {}", restored.text(language)));
        }
        for (path, reason) in &back.left {
            let left = Tell::NotRestored { path: &terminal::name(path), reason: &terminal::name(reason) };
            terminal::out_line(&format!("  {}", left.text(language)));
        }
    }
    if back.left.is_empty() { Exit::Done } else { Exit::Failed }
}
