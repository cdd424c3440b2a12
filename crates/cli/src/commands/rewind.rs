//! `rewind`, `undo` and `diff`: what was changed, and the way back.

use std::io::IsTerminal as _;

use clap::Args;
use lathe_host::{Host, HostError, PathAct, Really, Undone, What};
use lathe_protocol::{SessionId, StepNo};
use lathe_views::{Language, Say, Styled};
use serde_json::json;

use crate::exit::Exit;
use crate::terminal::output::{diff_json, print_json};
use crate::terminal::{self, Paint};

#[derive(Args)]
pub(crate) struct RewindArgs {
    /// Session: its id or the beginning of it; the newest in this folder if left out
    id: Option<String>,
    /// The state after this step; 0 is the beginning
    #[arg(long, allow_negative_numbers = true)]
    to: u32,
    /// Only files go back
    #[arg(long, conflicts_with_all = ["conversation", "both"])]
    files: bool,
    /// Only the conversation goes back
    #[arg(long, conflicts_with = "both")]
    conversation: bool,
    /// Files and conversation go back (the default)
    #[arg(long)]
    both: bool,
    /// Only show what would be done
    #[arg(long)]
    preview: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct UndoArgs {
    /// Session: its id or the beginning of it; the newest of this folder if left out
    id: Option<String>,
    /// Only show what would be done
    #[arg(long)]
    preview: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub(crate) struct DiffArgs {
    /// Session: its id or the beginning of it; the newest of this folder if left out
    id: Option<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Paths of one kind that are shown.
const SHOWN: usize = 20;

fn really(preview: bool) -> Really {
    if preview { Really::Preview } else { Really::Do }
}

pub(crate) fn rewind(host: &Host, args: &RewindArgs) -> Exit {
    let what = match (args.files, args.conversation) {
        (true, _) => What::Files,
        (_, true) => What::Conversation,
        (false, false) => What::Both,
    };
    let undone = here(host, args.id.as_deref())
        .and_then(|id| host.archive().rewind(&id, StepNo(args.to), what, really(args.preview), None));
    tell(undone, args.preview, args.json, &WayBack::Undo(args.id.clone()))
}

/// Files are only changed where the user stands, unless a session is named.
fn here(host: &Host, id: Option<&str>) -> Result<SessionId, HostError> {
    host.archive().find_here(id, &std::env::current_dir().unwrap_or_default())
}

/// How what was done is taken back in its turn. A session that the user named is named again: elsewhere, and beside other
/// sessions of the folder, the command would mean another one.
enum WayBack {
    Undo(Option<String>),
    Rewind(Option<String>),
}

impl WayBack {
    fn words(&self, undone: &Undone, language: Language) -> Option<String> {
        let named = |id: &Option<String>| id.as_ref().map_or(String::new(), |id| format!(" {id}"));
        match self {
            WayBack::Undo(id) => Some(format!("`lathe undo{}` {}", named(id), Say::UndoHint.text(language))),
            WayBack::Rewind(id) => {
                let flags = undone.back.as_ref()?;
                Some(format!("`lathe rewind{} {flags}` {}", named(id), Say::RedoHint.text(language)))
            }
        }
    }
}

pub(crate) fn undo(host: &Host, args: &UndoArgs) -> Exit {
    let undone =
        here(host, args.id.as_deref()).and_then(|id| host.archive().undo(&id, really(args.preview), None));
    tell(undone, args.preview, args.json, &WayBack::Rewind(args.id.clone()))
}

/// What was left alone makes the whole a failure, so that a script notices.
fn tell(undone: Result<Undone, HostError>, preview: bool, as_json: bool, back: &WayBack) -> Exit {
    let undone = match undone {
        Ok(undone) => undone,
        Err(error) => return Exit::host(&error),
    };
    if as_json {
        print_json(&json!({ "preview": preview, "undone": undone }));
    } else {
        terminal::out(&words(&undone, preview, back));
    }
    let is_lost = took_nothing(&undone) && !undone.not_undoable.is_empty();
    if undone.conflicts.is_empty() && !is_lost { Exit::Done } else { Exit::Failed }
}

fn took_nothing(undone: &Undone) -> bool {
    undone.restored.is_empty() && undone.steps == 0
}

fn words(undone: &Undone, preview: bool, back: &WayBack) -> String {
    let language = terminal::language();
    let paint = Paint::new(terminal::is_terminal());
    let say = |say: Say| say.text(language);
    let head = match preview {
        _ if took_nothing(undone) => say(Say::TookNothing),
        true => say(Say::WouldTakeBack),
        false => say(Say::TookBack),
    };
    let place = format!("({} {}, {})", say(Say::Session), undone.session, terminal::name(&undone.folder));
    let mut out = format!("{head}: {} {}\n", undone.about, paint.dim(&place));
    let row = |act: &PathAct| {
        format!("  {}  {}\n", terminal::name(&act.path), paint.dim(&terminal::name(&act.act)))
    };
    undone.restored.iter().for_each(|act| out.push_str(&row(act)));
    if undone.restored.is_empty() {
        out.push_str(&format!("  {}\n", say(Say::NoFiles)));
    }
    if undone.steps > 0 {
        out.push_str(&format!("{}: {}\n", say(Say::StepsLeft), undone.steps));
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
        let words = format!("{}: {}", say(Say::NotUndoable), terminal::name(lost));
        out.push_str(&format!("{}\n", paint.yellow(&words)));
    }
    let hint = back.words(undone, language).filter(|_| !preview);
    if let Some(hint) = hint.filter(|_| !took_nothing(undone)) {
        out.push_str(&format!("{}\n", paint.dim(&hint)));
        if !undone.stays.is_empty() {
            let stays: Vec<String> = undone.stays.iter().map(|path| terminal::name(path)).collect();
            out.push_str(&format!("{} {}\n", say(Say::StaysWhole), stays.join(", ")));
        }
    }
    out
}

pub(crate) fn diff(host: &Host, args: &DiffArgs) -> Exit {
    let found = here(host, args.id.as_deref()).and_then(|id| {
        if args.id.is_none() {
            let folder = host.archive().workspace(&id)?.display().to_string();
            let session = Say::Session.text(terminal::language());
            terminal::err(&format!("{session} {id} ({})\n", terminal::name(&folder)));
        }
        crate::commands::show::tell_unknown(&host.archive().events(&id)?);
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
        terminal::out(&format!("{}\n", Say::NoFiles.text(terminal::language())));
    }
    if let Some(patch) = patch {
        patch.notes.iter().for_each(|note| terminal::err(&format!("{}\n", terminal::clean(note))));
        // Git passes over words ahead of a patch.
        let kept = diffs.iter().filter(|diff| diff.kept.is_some());
        kept.for_each(|diff| terminal::out(&terminal::clean(&diff.diff)));
        terminal::out_bytes(&patch.bytes);
        return Exit::Done;
    }
    for diff in &diffs {
        terminal::out(&paint.show(&Styled::diff(&terminal::foreign(&diff.diff))));
    }
    Exit::Done
}
