//! `rewind`, `undo` and `diff`: the changes of a session, undone or shown.

use std::io::IsTerminal as _;

use clap::Args;
use lathe_host::{Host, HostError, PathAct, RewindAction, RewindReport, RewindScope};
use lathe_protocol::{SessionId, StepNo};
use lathe_views::{Language, Say, Styled, Tell};
use serde_json::json;

use crate::exit::Exit;
use crate::terminal::output::{diff_json, print_json};
use crate::terminal::{self, Paint};

#[derive(Args)]
pub(crate) struct RewindArgs {
    /// Session: its id or the beginning of it; the newest in this folder if left out
    id: Option<String>,
    /// Return to the state after this step; 0 is the beginning
    #[arg(long, allow_negative_numbers = true)]
    to: u32,
    /// Restore files only
    #[arg(long, conflicts_with_all = ["conversation", "both"])]
    files: bool,
    /// Rewind the conversation only
    #[arg(long, conflicts_with = "both")]
    conversation: bool,
    /// Restore files and rewind the conversation (the default)
    #[arg(long)]
    both: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    preview: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct UndoArgs {
    /// Session: its id or the beginning of it; the newest of this folder if left out
    id: Option<String>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    preview: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct DiffArgs {
    /// Session: its id or the beginning of it; the newest of this folder if left out
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The most paths of one kind that are shown.
const SHOWN: usize = 20;

fn action(preview: bool) -> RewindAction {
    if preview { RewindAction::Preview } else { RewindAction::Apply }
}

pub(crate) fn rewind(host: &Host, args: &RewindArgs) -> Exit {
    let what = match (args.files, args.conversation) {
        (true, _) => RewindScope::Files,
        (_, true) => RewindScope::Conversation,
        (false, false) => RewindScope::Both,
    };
    let undone = session_here(host, args.id.as_deref())
        .and_then(|id| host.archive().rewind(&id, StepNo(args.to), what, action(args.preview), None));
    report_undone(undone, args.preview, args.json, &WayBack::Undo(args.id.clone()))
}

/// The session, which must belong to the current folder unless the user names one, so that files change only here.
fn session_here(host: &Host, id: Option<&str>) -> Result<SessionId, HostError> {
    host.archive().find_here(id, &std::env::current_dir().unwrap_or_default())
}

/// The command that reverses what was done. A session that the user named is named in it: in another folder, or next
/// to other sessions of the folder, the command would mean another one.
enum WayBack {
    Undo(Option<String>),
    Rewind(Option<String>),
}

impl WayBack {
    fn hint(&self, undone: &RewindReport, language: Language) -> Option<String> {
        let named = |id: &Option<String>| id.as_ref().map_or(String::new(), |id| format!(" {id}"));
        match self {
            WayBack::Undo(id) => {
                Some(Tell::UndoHint { command: &format!("lathe undo{}", named(id)) }.text(language))
            }
            WayBack::Rewind(id) => {
                let flags = undone.back.as_ref()?;
                let command = &format!("lathe rewind{} {flags}", named(id));
                Some(Tell::RedoHint { command }.text(language))
            }
        }
    }
}

pub(crate) fn undo(host: &Host, args: &UndoArgs) -> Exit {
    let undone = session_here(host, args.id.as_deref())
        .and_then(|id| host.archive().undo(&id, action(args.preview), None));
    report_undone(undone, args.preview, args.json, &WayBack::Rewind(args.id.clone()))
}

/// Reports what was undone. Files that were left as they are make the whole a failure, so that a script notices.
fn report_undone(
    undone: Result<RewindReport, HostError>,
    preview: bool,
    as_json: bool,
    back: &WayBack,
) -> Exit {
    let undone = match undone {
        Ok(undone) => undone,
        Err(error) => return Exit::host(&error),
    };
    if as_json {
        print_json(&json!({ "preview": preview, "undone": undone }));
    } else {
        terminal::out(&undone_text(&undone, preview, back));
    }
    let is_lost = undid_nothing(&undone) && !undone.not_undoable.is_empty();
    if undone.conflicts.is_empty() && !is_lost { Exit::Done } else { Exit::Failed }
}

fn undid_nothing(undone: &RewindReport) -> bool {
    undone.restored.is_empty() && undone.steps == 0
}

fn undone_text(undone: &RewindReport, preview: bool, back: &WayBack) -> String {
    let language = terminal::language();
    let paint = Paint::new(terminal::is_terminal());
    let say = |say: Say| say.text(language);
    let head = match preview {
        _ if undid_nothing(undone) => Say::NothingUndone,
        true => Say::WouldUndo,
        false => Say::Undone,
    };
    let place = format!("({} {}, {})", say(Say::Session), undone.session, terminal::name(&undone.folder));
    let mut out = format!("{}{} {}\n", head.label(language), undone.about, paint.dim(&place));
    let row = |act: &PathAct| {
        format!("  {}  {}\n", terminal::name(&act.path), paint.dim(&terminal::name(&act.act)))
    };
    undone.restored.iter().for_each(|act| out.push_str(&row(act)));
    if undone.restored.is_empty() {
        out.push_str(&format!("  {}\n", say(Say::NoFiles)));
    }
    if undone.steps > 0 {
        out.push_str(&format!("{}{}\n", Say::StepsDropped.label(language), undone.steps));
    }
    if !undone.conflicts.is_empty() {
        out.push_str(&format!("{}\n", paint.yellow(say(Say::LeftAlone))));
        undone.conflicts.iter().for_each(|act| out.push_str(&row(act)));
    }
    if !undone.others.is_empty() {
        out.push_str(&format!("{}\n", say(Say::OthersWrote)));
        undone.others.iter().for_each(|path| out.push_str(&format!("  {}\n", terminal::name(path))));
    }
    if !undone.unnamed.is_empty() {
        out.push_str(&format!("{}\n", paint.yellow(say(Say::MayBeOthers))));
        undone
            .unnamed
            .iter()
            .take(SHOWN)
            .for_each(|path| out.push_str(&format!("  {}\n", terminal::name(path))));
        if undone.unnamed.len() > SHOWN {
            out.push_str(&format!("  … {}\n", undone.unnamed.len() - SHOWN));
        }
    }
    for lost in &undone.not_undoable {
        let line = format!("{}{}", Say::NotUndoable.label(language), terminal::name(lost));
        out.push_str(&format!("{}\n", paint.yellow(&line)));
    }
    let hint = back.hint(undone, language).filter(|_| !preview);
    if let Some(hint) = hint.filter(|_| !undid_nothing(undone)) {
        out.push_str(&format!("{}\n", paint.dim(&hint)));
        if !undone.stays.is_empty() {
            let stays: Vec<String> = undone.stays.iter().map(|path| terminal::name(path)).collect();
            let paths = &stays.join(", ");
            out.push_str(&format!("{}\n", Tell::StaysWhole { paths }.text(language)));
        }
    }
    out
}

pub(crate) fn diff(host: &Host, args: &DiffArgs) -> Exit {
    let found = session_here(host, args.id.as_deref()).and_then(|id| {
        if args.id.is_none() {
            let folder = host.archive().workspace(&id)?.display().to_string();
            let session = Say::Session.text(terminal::language());
            terminal::err(&format!("{session} {id} ({})\n", terminal::name(&folder)));
        }
        crate::commands::show::note_unknown_events(&host.archive().events(&id)?);
        let diffs = host.archive().session_diffs(&id)?;
        // Another program gets the patch itself, byte by byte.
        let patch =
            (!args.json && !std::io::stdout().is_terminal()).then(|| host.archive().session_patch(&id));
        Ok((diffs, patch.transpose()?))
    });
    let (diffs, patch) = match found {
        Ok(found) => found,
        Err(error) => return Exit::host(&error),
    };
    if args.json {
        let rows: Vec<_> = diffs.iter().map(diff_json).collect();
        print_json(&json!(rows));
        return Exit::Done;
    }
    let paint = Paint::new(terminal::is_terminal());
    if diffs.is_empty() {
        terminal::out_line(Say::NoFiles.text(terminal::language()));
    }
    if let Some(patch) = patch {
        patch.notes.iter().for_each(|note| terminal::err_line(&terminal::clean(note)));
        // Git skips text that precedes a patch.
        let kept = diffs.iter().filter(|diff| diff.kept.is_some());
        kept.for_each(|diff| terminal::out(&terminal::clean(&diff.diff)));
        terminal::out_bytes(&patch.bytes);
        return Exit::Done;
    }
    for diff in &diffs {
        terminal::out(&paint.show(&Styled::diff(&terminal::clean_on_terminal(&diff.diff))));
    }
    Exit::Done
}
