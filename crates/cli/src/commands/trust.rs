//! `trust`, and the handling of a project's own instructions and programs by a session: ask, report, or use them.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lathe_config::{ProjectFiles, project_parts};
use lathe_host::{Host, HostError, InspectedItem, ProjectInspection, TRAE_FILES};
use lathe_plan::{PROJECT_FILE, inspect_folder, untrusted_trae};
use lathe_protocol::{ItemKind, ItemState, TrustAnswer, visible};
use lathe_views::{Noun, Say, Tell};
use serde_json::json;

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

/// The lines of an item that are shown before the user asks for all.
const SHOWN: usize = 30;

/// The lines of a program that are shown after the user asked for all.
const PROGRAM_SHOWN: usize = 200;

/// The characters that are shown of such a line.
const LINE_SHOWN: usize = 1000;

#[derive(Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    command: TrustCommand,
}

#[derive(Subcommand)]
enum TrustCommand {
    /// List what a project contains that needs trust, and what of it you trust
    #[command(after_help = "Examples:\n  lathe trust list\n  lathe trust list ../other --json")]
    List {
        /// The folder of the project
        #[arg(value_name = "DIR", default_value = ".")]
        folder: PathBuf,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust what a project contains, as it is now
    #[command(
        after_help = "Examples:\n  lathe trust add            shows every item and asks\n  lathe trust add ~/src/mine --yes\n  lathe trust add trae_config.yaml\n\nWhere no question can be asked, --yes is needed.\n\nA Trae file is trusted only by its own name: then its providers are used, and its addresses get only the keys in\nthe file and in the .env next to it. An item that changes later is asked about again; the others stay trusted."
    )]
    Add {
        /// The folder of the project, or its Trae file
        #[arg(value_name = "DIR|FILE", default_value = ".")]
        folder: PathBuf,
        /// Trust without a question
        #[arg(long)]
        yes: bool,
    },
    /// Forget what you decided about a project
    #[command(
        after_help = "Examples:\n  lathe trust remove\n  lathe trust remove ~/src/theirs\n  lathe trust remove trae_config.yaml"
    )]
    Remove {
        /// The folder of the project, or its Trae file
        #[arg(value_name = "DIR|FILE", default_value = ".")]
        folder: PathBuf,
    },
}

impl TrustArgs {
    /// See [`crate::home_changes::changing_command`].
    pub(crate) fn changing_command(&self) -> Option<&'static str> {
        match self.command {
            TrustCommand::List { .. } => None,
            TrustCommand::Add { .. } => Some("lathe trust add"),
            TrustCommand::Remove { .. } => Some("lathe trust remove"),
        }
    }
}

/// The flag of every command that opens a session.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct TrustFlag {
    /// Trust what the project contains, this once: instructions, checks, field programs
    #[arg(long = "trust")]
    pub(crate) once: bool,
}

impl TrustFlag {
    /// For a command that is meant for people: it asks on a terminal.
    pub(crate) fn ask_on_terminal(self) -> TrustAttendance {
        match (self.once, can_ask()) {
            (true, _) => TrustAttendance::TrustOnce,
            (false, true) => TrustAttendance::Ask,
            (false, false) => TrustAttendance::Report,
        }
    }

    pub(crate) fn report_only(self) -> TrustAttendance {
        if self.once { TrustAttendance::TrustOnce } else { TrustAttendance::Report }
    }
}

/// The ways of handling items that the user has not decided about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAttendance {
    /// The user can be asked.
    Ask,
    /// The items are left out, and a message says so.
    Report,
    TrustOnce,
}

pub(crate) fn trust(host: &Host, args: &TrustArgs) -> Exit {
    match &args.command {
        TrustCommand::List { folder, json } => list(host, folder, *json),
        TrustCommand::Add { folder, yes } => match trae_file(folder) {
            Some((folder, name)) => add_trae(host, &folder, name, *yes),
            None => add(host, folder, *yes),
        },
        TrustCommand::Remove { folder } => match remove(host, folder) {
            Ok(count) => {
                let language = terminal::language();
                let items = &Noun::Item.count(count, language);
                terminal::out_line(&Tell::Forgotten { items, folder: &shown_path(folder) }.text(language));
                Exit::Done
            }
            Err(error) => Exit::host(&error),
        },
    }
}

/// Forgets the decisions about a folder or its Trae file; returns the number of items.
fn remove(host: &Host, path: &Path) -> Result<usize, HostError> {
    let Some((folder, name)) = trae_file(path) else { return host.rules().distrust(path) };
    let root = folder.canonicalize().unwrap_or(folder);
    host.rules().distrust_item(&root, ItemKind::TraeConfig, name).map(usize::from)
}

/// The folder and the name of a Trae file, if the path names one.
fn trae_file(path: &Path) -> Option<(PathBuf, &'static str)> {
    let name = path.file_name()?;
    let name = TRAE_FILES.into_iter().find(|known| name == *known)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((folder.to_owned(), name))
}

/// Inspects a folder for `trust` itself, even if its configuration has other problems.
fn inspect(host: &Host, folder: &Path) -> Result<ProjectInspection, Exit> {
    let files = ProjectFiles::new(folder, host.home().path());
    let parts = project_parts(&folder.join(PROJECT_FILE), &files).map_err(|problem| {
        terminal::err(&format!("Error: {}\n", visible(&problem.to_string())));
        Exit::Usage
    })?;
    let look = inspect_folder(host, folder, &parts).map_err(|error| Exit::host(&error))?;
    for reason in &look.unusable {
        terminal::err(&format!("warning: {}\n", visible(reason)));
    }
    Ok(look)
}

fn list(host: &Host, folder: &Path, as_json: bool) -> Exit {
    let look = match inspect(host, folder) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    let others: Vec<(PathBuf, usize)> =
        host.rules().trusted_folders().into_iter().filter(|(root, _)| *root != look.root).collect();
    if as_json {
        let items: Vec<_> = look
            .items
            .iter()
            .chain(&look.trae)
            .map(|looked| {
                let said = look.entry(looked.item.kind, &looked.item.name);
                json!({
                    "kind": looked.item.kind,
                    "name": looked.item.name,
                    "path": looked.item.path,
                    "state": looked.state,
                    "hash": looked.item.hash,
                    "by": said.map(|entry| &entry.by),
                    "at": said.map(|entry| &entry.at),
                })
            })
            .chain(look.missing_items().map(|entry| {
                json!({
                    "kind": entry.kind, "name": entry.name, "state": ItemState::Gone, "hash": entry.hash,
                    "by": entry.by, "at": entry.at,
                })
            }))
            .collect();
        let folders: Vec<_> =
            others.iter().map(|(root, trusted)| json!({ "folder": root, "trusted": trusted })).collect();
        let shown =
            json!({ "folder": look.root, "items": items, "unusable": look.unusable, "others": folders });
        print_json(&shown);
        return Exit::Done;
    }
    let language = terminal::language();
    terminal::out_line(&shown_path(&look.root));
    let row = |state: ItemState, kind: ItemKind, name: &str| {
        let state = terminal::padded(Say::item_state(state).text(language), 8);
        let kind = terminal::padded(Say::item_kind(kind).text(language), 14);
        terminal::out_line(&format!("  {state} {kind} {}", visible(name)));
    };
    for looked in &look.items {
        row(looked.state, looked.item.kind, &looked.item.name);
    }
    if let Some(looked) = &look.trae {
        row(looked.state, looked.item.kind, &looked.item.name);
    }
    for entry in look.missing_items() {
        row(ItemState::Gone, entry.kind, &entry.name);
    }
    if look.items.is_empty() && look.trae.is_none() && look.missing_items().next().is_none() {
        terminal::out_line(&format!("  {}", Say::NothingNeedsTrust.text(language)));
    }
    if !others.is_empty() {
        terminal::out(&format!("\n{}\n", Say::OtherFolders.text(language)));
    }
    for (root, count) in others {
        let trust = Tell::FolderTrust { folder: &shown_path(&root), count };
        terminal::out_line(&format!("  {}", trust.text(language)));
    }
    Exit::Done
}

/// Trusts a Trae file that the user named.
fn add_trae(host: &Host, folder: &Path, name: &str, yes: bool) -> Exit {
    let look = match inspect(host, folder) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    let Some(looked) = look.trae.as_ref().filter(|looked| looked.item.name == name) else {
        let instead = match &look.trae {
            Some(other) => format!("; {} is used there", visible(&other.item.name)),
            None => String::new(),
        };
        return Exit::wrong_usage(&format!(
            "there is no readable {name} in {}{instead}",
            shown_path(&look.root)
        ));
    };
    if looked.state == ItemState::Trusted {
        let trusted = Tell::AlreadyTrusted { name, folder: &shown_path(&look.root) };
        terminal::out_line(&trusted.text(terminal::language()));
        return Exit::Done;
    }
    terminal::err(&item_text(looked, usize::MAX));
    if let Some(exit) = confirm_trust(yes) {
        return exit;
    }
    match host.rules().record_answers(&look.root, [looked], TrustAnswer::Trusted) {
        Ok(()) => {
            print_trusted(looked);
            Exit::Done
        }
        Err(error) => Exit::host(&error),
    }
}

/// One line about a Trae file that is not trusted, with the command that changes that.
pub(crate) fn untrusted_trae_line(look: &ProjectInspection) -> Option<String> {
    let looked = untrusted_trae(look)?;
    let name = if is_here(look) { PathBuf::new() } else { look.root.clone() }.join(&looked.item.name);
    let (file, path) = (&*visible(&looked.item.name), &*shown_path(&name));
    let line = match looked.state {
        ItemState::Changed => Tell::TraeChanged { file, path },
        ItemState::New | ItemState::Refused | ItemState::Trusted | ItemState::Gone => {
            Tell::TraeNotTrusted { file, path }
        }
    };
    Some(format!("{}\n", line.text(terminal::language())))
}

/// True if the inspected folder is the current one.
fn is_here(look: &ProjectInspection) -> bool {
    std::env::current_dir().is_ok_and(|here| here.canonicalize().is_ok_and(|here| here == look.root))
}

fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks until there is a clear reply. The end of the input is a no.
fn ask_for_trust() -> bool {
    let language = terminal::language();
    loop {
        terminal::err(&Say::AskTrustThese.label(language));
        match read_reply(&mut std::io::stdin().lock()) {
            Some(TrustReply::Yes) => return true,
            Some(TrustReply::No) | None => return false,
            Some(TrustReply::Once | TrustReply::ShowAll | TrustReply::Unclear) => {}
        }
    }
}

/// Asks whether the shown items are to be trusted. None if they are; else the exit code.
fn confirm_trust(yes: bool) -> Option<Exit> {
    if yes {
        return None;
    }
    if !can_ask() {
        let why = "no question can be asked here: give --yes to trust what is shown above";
        return Some(Exit::wrong_usage(why));
    }
    if ask_for_trust() {
        return None;
    }
    terminal::out_line(Say::NothingTrusted.text(terminal::language()));
    Some(Exit::Failed)
}

fn add(host: &Host, folder: &Path, yes: bool) -> Exit {
    let look = match inspect(host, folder) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    let trae = untrusted_trae_line(&look);
    if let Some(line) = &trae {
        terminal::err(line);
    }
    let wanted: Vec<&InspectedItem> = look.left_out().collect();
    if look.items.is_empty() {
        let folder = &*shown_path(&look.root);
        let nothing = match trae {
            Some(_) => Tell::NothingElseToTrust { folder },
            None => Tell::NothingToTrust { folder },
        };
        terminal::out_line(&nothing.text(terminal::language()));
        return Exit::Done;
    }
    if wanted.is_empty() {
        let trusted = Tell::AllTrusted { folder: &shown_path(&look.root) };
        terminal::out_line(&trusted.text(terminal::language()));
        return Exit::Done;
    }
    if !yes {
        for looked in &wanted {
            terminal::err(&item_text(looked, usize::MAX));
        }
    }
    if let Some(exit) = confirm_trust(yes) {
        return exit;
    }
    if let Err(error) = host.rules().record_answers(&look.root, wanted.iter().copied(), TrustAnswer::Trusted)
    {
        return Exit::host(&error);
    }
    for looked in wanted {
        print_trusted(looked);
        terminal::out(&loose_lines(looked));
    }
    Exit::Done
}

/// Asks about items that the user has not decided about, or reports that they are left out. The result tells which
/// items are used.
pub(crate) fn decide(
    host: &Host,
    look: ProjectInspection,
    asking: TrustAttendance,
) -> Result<ProjectInspection, HostError> {
    for reason in &look.unusable {
        terminal::err(&format!("warning: {}\n", visible(reason)));
    }
    if asking == TrustAttendance::TrustOnce {
        return Ok(look.all_trusted());
    }
    if look.undecided().next().is_none() {
        return Ok(look);
    }
    if asking == TrustAttendance::Report {
        terminal::err(&left_out_line(&look));
        return Ok(look);
    }
    let language = terminal::language();
    let mut lines = SHOWN;
    loop {
        terminal::err(&format!("\n{} ({})\n", Say::TrustThese.text(language), shown_path(&look.root)));
        for looked in look.undecided() {
            terminal::err(&item_text(looked, lines));
        }
        let given = loop {
            terminal::err(&Say::AskTrust.label(language));
            match read_reply(&mut std::io::stdin().lock()) {
                Some(TrustReply::Unclear) => {}
                given => break given,
            }
        };
        match given {
            Some(TrustReply::Yes) => {
                host.rules().record_answers(&look.root, look.undecided(), TrustAnswer::Trusted)?;
                return Ok(look.undecided_trusted());
            }
            Some(TrustReply::Once) => return Ok(look.undecided_trusted()),
            Some(TrustReply::No) => {
                host.rules().record_answers(&look.root, look.undecided(), TrustAnswer::Refused)?;
                return Ok(look);
            }
            Some(TrustReply::ShowAll) => lines = usize::MAX,
            // The user is gone: nothing is used, and no decision is stored.
            Some(TrustReply::Unclear) | None => return Ok(look),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrustReply {
    Yes,
    Once,
    No,
    ShowAll,
    Unclear,
}

/// Reads a reply. The end of the input is not one.
fn read_reply(input: &mut impl BufRead) -> Option<TrustReply> {
    let mut line = String::new();
    match input.read_line(&mut line) {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(match line.trim().to_lowercase().as_str() {
            "y" | "yes" | "是" => TrustReply::Yes,
            "o" | "once" => TrustReply::Once,
            "n" | "no" | "否" => TrustReply::No,
            "s" | "show" => TrustReply::ShowAll,
            _ => TrustReply::Unclear,
        }),
    }
}

/// One line about all items that are not used, and what to do.
fn left_out_line(look: &ProjectInspection) -> String {
    let items: Vec<String> = look.undecided().map(item_label).collect();
    let folder = if is_here(look) { String::new() } else { format!(" {}", shown_path(&look.root)) };
    let line = Tell::NotTrusted { items: &items.join(", "), folder: &folder };
    format!("{}\n", line.text(terminal::language()))
}

fn print_trusted(looked: &InspectedItem) {
    let trusted = Tell::NowTrusted { item: &item_label(looked) };
    terminal::out_line(&trusted.text(terminal::language()));
}

fn item_label(looked: &InspectedItem) -> String {
    let language = terminal::language();
    let (name, kind) = (&*visible(&looked.item.name), Say::item_kind(looked.item.kind).text(language));
    let label = match looked.state {
        ItemState::Changed => Tell::ItemChangedLabel { name, kind },
        ItemState::Trusted | ItemState::Refused | ItemState::New | ItemState::Gone => {
            Tell::ItemLabel { name, kind }
        }
    };
    label.text(language)
}

/// The text of an item. Every line is marked, and nothing in it can hide.
fn item_text(looked: &InspectedItem, lines: usize) -> String {
    let mut out = format!("  {}\n", item_label(looked));
    out.push_str(&marked_lines(&looked.item.shows, lines));
    if lines == usize::MAX {
        for (name, text) in looked.programs() {
            out.push_str(&format!("    {}:\n", visible(name)));
            match text {
                Ok(text) => out.push_str(&marked_lines(&with_short_lines(&text), PROGRAM_SHOWN)),
                Err(reason) => out.push_str(&format!("    ! {}\n", visible(&reason))),
            }
        }
    }
    out.push_str(&loose_lines(looked));
    out
}

/// A text whose long lines are cut; each cut line says so.
fn with_short_lines(text: &str) -> String {
    let short = |line: &str| {
        let (count, head) = (line.chars().count(), line.chars().take(LINE_SHOWN).collect::<String>());
        match count.saturating_sub(LINE_SHOWN) {
            0 => head + "\n",
            more => format!("{head} … {}\n", Noun::HiddenCharacter.count(more, terminal::language())),
        }
    };
    text.lines().map(short).collect()
}

/// The first lines of a text, each marked, and the number of the others.
fn marked_lines(text: &str, lines: usize) -> String {
    let shown = text.lines().take(lines).map(|line| format!("    | {}\n", visible(line)));
    let mut out: String = shown.collect();
    let more = text.lines().count().saturating_sub(lines);
    if more > 0 {
        out.push_str(&format!("    … {}\n", Noun::HiddenLine.count(more, terminal::language())));
    }
    out
}

/// The parts of an item that may change later without a question.
fn loose_lines(looked: &InspectedItem) -> String {
    looked.unpinned.iter().map(|what| format!("    ! {}\n", visible(what))).collect()
}

fn shown_path(path: &Path) -> String {
    visible(&path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_word_is_trust() {
        for (line, expected) in [
            ("y\n", Some(TrustReply::Yes)),
            (" YES \n", Some(TrustReply::Yes)),
            ("o\n", Some(TrustReply::Once)),
            ("no\n", Some(TrustReply::No)),
            ("s\n", Some(TrustReply::ShowAll)),
            ("\n", Some(TrustReply::Unclear)),
            ("yes but\n", Some(TrustReply::Unclear)),
            ("", None),
        ] {
            assert_eq!(read_reply(&mut line.as_bytes()), expected, "{line:?}");
        }
    }
}
