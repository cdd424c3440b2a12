//! `gc`: the removal of old sessions and of stored data that nothing needs.

use std::time::Duration;

use clap::Args;
use lathe_host::Host;
use lathe_views::{Noun, Tell};
use serde_json::json;

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

#[derive(Args)]
pub(crate) struct GcArgs {
    /// Remove sessions that were not used for this many days
    #[arg(long, value_name = "N", default_value_t = 90)]
    pub(crate) days: u64,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn gc(host: &Host, args: &GcArgs) -> Exit {
    let older = Duration::from_secs(args.days.saturating_mul(24 * 3600));
    let garbage = match host.archive().collect_garbage(older, !args.dry_run) {
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
    let language = terminal::language();
    let sessions = &Noun::Session.count(garbage.sessions.len(), language);
    let blobs = &Noun::Blob.count(garbage.blobs, language);
    let leftovers = &Noun::Leftover.count(garbage.other, language);
    let size = &megabytes(garbage.bytes);
    let collected = match args.dry_run {
        true => Tell::WouldCollect { sessions, blobs, leftovers, size },
        false => Tell::Collected { sessions, blobs, leftovers, size },
    };
    let kept = Tell::NotCollected {
        sessions: &Noun::Session.count(garbage.kept_sessions, language),
        size: &megabytes(garbage.kept_bytes),
    };
    terminal::out_line(&collected.text(language));
    terminal::out_line(&kept.text(language));
    Exit::Done
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MB", bytes as f64 / 1e6)
}
