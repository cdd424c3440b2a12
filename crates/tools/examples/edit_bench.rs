//! Measures the cost of an edit of a file of 1 MB, compared with a plain write of the same bytes: to another name,
//! synced, renamed; and with one that syncs the folder too, which makes the rename survive a loss of power.
//! `scripts/bench --edit` runs it. All are timed to the microsecond, in turns, each on an idle disk.

#![allow(clippy::print_stdout)]

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lathe_blobs::Blobs;
use lathe_policy::{Gate, Rulebook};
use lathe_protocol::{Actor, Arguments, CallId, Digest, Mode, Raw, SeenFile, ToolCall, Toolset};
use lathe_redact::Redactor;
use lathe_tools::{CallGate, LocalLedger, RunContext, Services, ShellPlan, Toolbox};
use lathe_workspace::Workspace;

const ROUNDS: usize = 60;
/// Rounds that warm up.
const COLD: usize = 10;
const GOAL: f64 = 3.0;

type Failure = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let folder = tempfile::tempdir_in(std::env::current_dir()?)?;
    let root = folder.path().canonicalize()?.join("work");
    std::fs::create_dir(&root)?;
    let services = Services::new(
        Workspace::folder(root.clone(), None),
        Blobs::open(folder.path().join("blobs"))?,
        Arc::new(Redactor::new([])),
        ShellPlan {
            start: lathe_shell::StartFolder::Any,
            home: folder.path().join("home"),
            shell: "/bin/bash".into(),
            env: Vec::new(),
            memory: None,
        },
    );
    let toolbox = Toolbox::new(Toolset::Lathe, Arc::new(services));
    let gate = Gate {
        home: folder.path().join("home"),
        root: "/".into(),
        user_home: None,
        here: None,
        outputs: None,
        headless: true,
        disk: lathe_policy::OnDisk::default(),
        switched: lathe_policy::ShellSwitches::default(),
        walls: lathe_policy::Walls::None,
    };
    let mut text: String =
        (0..20_000).map(|n| format!("line {n:06} of a file that is edited, and edited again\n")).collect();
    text.push_str("marker 000\n");
    let path = root.join("large.txt");
    std::fs::write(&path, &text)?;
    let mut seen = HashMap::from([(path.display().to_string(), Digest::of(text.as_bytes()))]);
    let (mut edits, mut writes, mut safe) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let edit = serde_json::json!({
            "path": path,
            "old_str": format!("marker {round:03}"),
            "new_str": format!("marker {:03}", round + 1),
        });
        let arguments = Arguments::Json(Raw::from_serialize(&edit)?);
        let call = ToolCall { id: CallId::new("c"), name: "edit".to_owned(), arguments, raw: None };
        settle()?;
        let began = Instant::now();
        let prepared = toolbox.prepare(&call).map_err(|finished| finished.text)?;
        let decision = gate.decide(Actor::Model, Mode::FullAuto, &prepared.effects);
        let permit = gate.permit(&decision, &prepared.effects).ok_or("denied")?;
        let known =
            seen.iter().map(|(path, hash)| SeenFile { path: path.clone(), hash: hash.clone() }).collect();
        let finished = toolbox.run(prepared, permit, context(&toolbox, &gate, known)).await;
        let took = began.elapsed();
        if let Some(error) = finished.error {
            return Err(error.message.into());
        }
        seen.extend(finished.seen.into_iter().map(|seen| (seen.path, seen.hash)));
        let content = std::fs::read(&path)?;
        settle()?;
        let bare = plain(&root.join("beside.txt"), &content, Folder::Left)?;
        settle()?;
        let whole = plain(&root.join("beside.txt"), &content, Folder::Synced)?;
        if round >= COLD {
            edits.push(took);
            writes.push(bare);
            safe.push(whole);
        }
    }
    let (edit, write, safe) = (middle(edits), middle(writes), middle(safe));
    let ratio = edit.as_secs_f64() / write.as_secs_f64();
    let met = if ratio <= GOAL { "met" } else { "NOT met" };
    println!(
        "edit of {:.2} MB: {:.2} ms; temp+fsync+rename: {:.2} ms; {ratio:.2}x, goal {GOAL}x: {met} (with the folder synced {:.2} ms: {:.2}x)",
        std::fs::metadata(&path)?.len() as f64 / 1e6,
        edit.as_secs_f64() * 1e3,
        write.as_secs_f64() * 1e3,
        safe.as_secs_f64() * 1e3,
        edit.as_secs_f64() / safe.as_secs_f64(),
    );
    Ok(())
}

fn context(toolbox: &Toolbox, gate: &Gate, seen: Vec<SeenFile>) -> RunContext {
    RunContext {
        services: Arc::clone(toolbox.services()),
        call: CallId::new("c"),
        live: Arc::new(|_, _| {}),
        cancel: Default::default(),
        seen,
        memory: None,
        shown: None,
        review: None,
        line_seconds: 60,
        silent_seconds: None,
        umask: None,
        handle: None,
        asker: None,
        call_gate: CallGate {
            gate: gate.clone(),
            rules: Arc::new(Rulebook::builtin()),
            actor: Actor::Model,
            mode: Mode::FullAuto,
            fresh: None,
        },
        ledger: Arc::new(LocalLedger::default()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Folder {
    Left,
    Synced,
}

fn plain(path: &Path, content: &[u8], folder: Folder) -> Result<Duration, Failure> {
    let temporary = path.with_extension("new");
    let began = Instant::now();
    let mut file = std::fs::File::create(&temporary)?;
    std::io::Write::write_all(&mut file, content)?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    if folder == Folder::Synced {
        std::fs::File::open(path.parent().ok_or("no folder")?)?.sync_all()?;
    }
    Ok(began.elapsed())
}

/// Lets the disk finish its pending work, so that it is not counted in a measurement.
fn settle() -> Result<(), Failure> {
    std::process::Command::new("sync").status()?;
    Ok(())
}

/// The median.
fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
