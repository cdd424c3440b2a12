//! `trust`, and what a session does about a project's own words and programs: asks, says so, or takes them.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lathe_config::{ProjectFiles, project_parts};
use lathe_host::{Host, HostError, Looked, ProjectLook, TRAE_FILES};
use lathe_plan::{PROJECT_FILE, look_at, untrusted_trae};
use lathe_protocol::{ItemKind, ItemState, TrustAnswer, visible};
use lathe_views::Say;
use serde_json::json;

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

/// Lines of an item that are shown before somebody asks for all.
const SHOWN: usize = 30;

/// Lines of a program that are shown where somebody asks for all.
const PROGRAM_SHOWN: usize = 200;

/// Characters of such a line.
const LINE_SHOWN: usize = 1000;

#[derive(Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    command: TrustCommand,
}

#[derive(Subcommand)]
enum TrustCommand {
    /// What a project brings along, and what of it you trust
    #[command(after_help = "Examples:\n  lathe trust list\n  lathe trust list ../other --json")]
    List {
        /// The folder of the project
        #[arg(value_name = "DIR", default_value = ".")]
        folder: PathBuf,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Trust what a project brings along, as it is now
    #[command(
        after_help = "Examples:\n  lathe trust add            shows every item and asks\n  lathe trust add ~/src/mine --yes\n  lathe trust add trae_config.yaml\n\nWhere nobody can be asked, --yes is needed.\n\nA Trae file is trusted by its own name only: then its providers count, and its addresses get no key but those in\nthe file and in the .env beside it. An item that changes later is asked about again; the others stay trusted."
    )]
    Add {
        /// The folder of the project, or its Trae file
        #[arg(value_name = "DIR|FILE", default_value = ".")]
        folder: PathBuf,
        /// Without a question
        #[arg(long)]
        yes: bool,
    },
    /// Forget what you said about a project
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
    /// See [`crate::inside::change`].
    pub(crate) fn change(&self) -> Option<&'static str> {
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
    /// Trust what the project brings along, this once: instructions, checks, field programs
    #[arg(long = "trust")]
    pub(crate) once: bool,
}

impl TrustFlag {
    /// For a command that is for people: on a terminal they are asked.
    pub(crate) fn asking(self) -> TrustAttendance {
        match (self.once, can_ask()) {
            (true, _) => TrustAttendance::TrustOnce,
            (false, true) => TrustAttendance::Ask,
            (false, false) => TrustAttendance::Tell,
        }
    }

    pub(crate) fn telling(self) -> TrustAttendance {
        if self.once { TrustAttendance::TrustOnce } else { TrustAttendance::Tell }
    }
}

/// What is done about items nobody has decided about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustAttendance {
    /// Somebody is there to say.
    Ask,
    /// They are left out, and that is said.
    Tell,
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
                let said = if count == 1 { "1 item".to_owned() } else { format!("{count} items") };
                terminal::out(&format!("forgotten: {said} of {}\n", shown_path(folder)));
                Exit::Done
            }
            Err(error) => Exit::host(&error),
        },
    }
}

/// Forgets what was said about a folder or its Trae file; how many items that were.
fn remove(host: &Host, path: &Path) -> Result<usize, HostError> {
    let Some((folder, name)) = trae_file(path) else { return host.rules().distrust(path) };
    let root = folder.canonicalize().unwrap_or(folder);
    host.rules().distrust_item(&root, ItemKind::TraeConfig, name).map(usize::from)
}

/// The folder and the name of a Trae file, if a path names one.
fn trae_file(path: &Path) -> Option<(PathBuf, &'static str)> {
    let name = path.file_name()?;
    let name = TRAE_FILES.into_iter().find(|known| name == *known)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((folder.to_owned(), name))
}

/// Looks at a folder for `trust` itself, whatever else may be wrong with its configuration.
fn look(host: &Host, folder: &Path) -> Result<ProjectLook, Exit> {
    let files = ProjectFiles::new(folder, host.home().path());
    let parts = project_parts(&folder.join(PROJECT_FILE), &files).map_err(|problem| {
        terminal::err(&format!("Error: {}\n", visible(&problem.to_string())));
        Exit::Usage
    })?;
    let look = look_at(host, folder, &parts).map_err(|error| Exit::host(&error))?;
    for reason in &look.unusable {
        terminal::err(&format!("warning: {}\n", visible(reason)));
    }
    Ok(look)
}

fn list(host: &Host, folder: &Path, as_json: bool) -> Exit {
    let look = match look(host, folder) {
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
            .chain(look.gone().map(|entry| {
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
    terminal::out(&format!("{}\n", shown_path(&look.root)));
    let row = |state: ItemState, kind: ItemKind, name: &str| {
        terminal::out(&format!("  {:<8} {:<14} {}\n", state.label(), kind.label(), visible(name)));
    };
    for looked in &look.items {
        row(looked.state, looked.item.kind, &looked.item.name);
    }
    if let Some(looked) = &look.trae {
        row(looked.state, looked.item.kind, &looked.item.name);
    }
    for entry in look.gone() {
        row(ItemState::Gone, entry.kind, &entry.name);
    }
    if look.items.is_empty() && look.trae.is_none() && look.gone().next().is_none() {
        terminal::out("  nothing here needs trust\n");
    }
    if !others.is_empty() {
        terminal::out("\nother folders you said something about:\n");
    }
    for (root, trusted) in others {
        terminal::out(&format!("  {} ({trusted} trusted)\n", shown_path(&root)));
    }
    Exit::Done
}

/// Trusts a Trae file that was named.
fn add_trae(host: &Host, folder: &Path, name: &str, yes: bool) -> Exit {
    let look = match look(host, folder) {
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
        terminal::out(&format!("{name} of {} is trusted already\n", shown_path(&look.root)));
        return Exit::Done;
    }
    terminal::err(&shown(looked, usize::MAX));
    if let Some(exit) = refused(yes) {
        return exit;
    }
    match host.rules().say_of_items(&look.root, [looked], TrustAnswer::Trusted) {
        Ok(()) => {
            terminal::out(&format!("trusted: {}\n", named(looked)));
            Exit::Done
        }
        Err(error) => Exit::host(&error),
    }
}

/// One line about a Trae file that is not trusted, with the command that changes it.
pub(crate) fn untrusted_trae_line(look: &ProjectLook) -> Option<String> {
    let looked = untrusted_trae(look)?;
    let name = if is_here(look) { PathBuf::new() } else { look.root.clone() }.join(&looked.item.name);
    let changed = match looked.state {
        ItemState::Changed => "it has changed since you trusted it",
        ItemState::New | ItemState::Refused | ItemState::Trusted | ItemState::Gone => {
            "you have not trusted it"
        }
    };
    let language = terminal::language();
    Some(format!(
        "The providers of {} are not used: {changed}. {}: lathe trust add {}\n",
        visible(&looked.item.name),
        Say::SeeAndTrust.text(language),
        shown_path(&name),
    ))
}

/// Tells whether the user stands in the folder that was looked at.
fn is_here(look: &ProjectLook) -> bool {
    std::env::current_dir().is_ok_and(|here| here.canonicalize().is_ok_and(|here| here == look.root))
}

fn can_ask() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks until there is a plain answer. The end of the input is no.
fn agreed() -> bool {
    let language = terminal::language();
    loop {
        terminal::err(&format!("{}: ", Say::AskTrustThese.text(language)));
        match answer(&mut std::io::stdin().lock()) {
            Some(TrustReply::Yes) => return true,
            Some(TrustReply::No) | None => return false,
            Some(TrustReply::Once | TrustReply::ShowAll | TrustReply::Unclear) => {}
        }
    }
}

/// Asks whether what is shown is to be trusted; none if it is.
fn refused(yes: bool) -> Option<Exit> {
    if yes {
        return None;
    }
    if !can_ask() {
        let why = "nobody can be asked here: give --yes to trust what is shown above";
        return Some(Exit::wrong_usage(why));
    }
    if agreed() {
        return None;
    }
    terminal::out("nothing was trusted\n");
    Some(Exit::Failed)
}

fn add(host: &Host, folder: &Path, yes: bool) -> Exit {
    let look = match look(host, folder) {
        Ok(look) => look,
        Err(exit) => return exit,
    };
    let trae = untrusted_trae_line(&look);
    if let Some(line) = &trae {
        terminal::err(line);
    }
    let wanted: Vec<&Looked> = look.left_out().collect();
    if look.items.is_empty() {
        let nothing = if trae.is_some() { "nothing else" } else { "nothing" };
        terminal::out(&format!("{nothing} in {} needs trust\n", shown_path(&look.root)));
        return Exit::Done;
    }
    if wanted.is_empty() {
        terminal::out(&format!("all of {} is trusted already\n", shown_path(&look.root)));
        return Exit::Done;
    }
    if !yes {
        for looked in &wanted {
            terminal::err(&shown(looked, usize::MAX));
        }
    }
    if let Some(exit) = refused(yes) {
        return exit;
    }
    if let Err(error) = host.rules().say_of_items(&look.root, wanted.iter().copied(), TrustAnswer::Trusted) {
        return Exit::host(&error);
    }
    for looked in wanted {
        terminal::out(&format!("trusted: {}\n{}", named(looked), loose(looked)));
    }
    Exit::Done
}

/// Asks about items nobody has decided about, or says that they are left out. What comes back says what is used.
pub(crate) fn decide(
    host: &Host,
    look: ProjectLook,
    asking: TrustAttendance,
) -> Result<ProjectLook, HostError> {
    for reason in &look.unusable {
        terminal::err(&format!("warning: {}\n", visible(reason)));
    }
    if asking == TrustAttendance::TrustOnce {
        return Ok(look.all_trusted());
    }
    if look.undecided().next().is_none() {
        return Ok(look);
    }
    if asking == TrustAttendance::Tell {
        terminal::err(&left_out(&look));
        return Ok(look);
    }
    let language = terminal::language();
    let mut lines = SHOWN;
    loop {
        terminal::err(&format!("\n{} ({})\n", Say::TrustThese.text(language), shown_path(&look.root)));
        for looked in look.undecided() {
            terminal::err(&shown(looked, lines));
        }
        let given = loop {
            terminal::err(&format!("{}: ", Say::AskTrust.text(language)));
            match answer(&mut std::io::stdin().lock()) {
                Some(TrustReply::Unclear) => {}
                given => break given,
            }
        };
        match given {
            Some(TrustReply::Yes) => {
                host.rules().say_of_items(&look.root, look.undecided(), TrustAnswer::Trusted)?;
                return Ok(look.undecided_trusted());
            }
            Some(TrustReply::Once) => return Ok(look.undecided_trusted()),
            Some(TrustReply::No) => {
                host.rules().say_of_items(&look.root, look.undecided(), TrustAnswer::Refused)?;
                return Ok(look);
            }
            Some(TrustReply::ShowAll) => lines = usize::MAX,
            // Nobody is there any more: nothing is used, and nothing is written down.
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

/// The end of the input is no answer.
fn answer(input: &mut impl BufRead) -> Option<TrustReply> {
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

/// One line about all that is not used, and what to do.
fn left_out(look: &ProjectLook) -> String {
    let names: Vec<String> = look.undecided().map(named).collect();
    let folder = if is_here(look) { String::new() } else { format!(" {}", shown_path(&look.root)) };
    let language = terminal::language();
    format!(
        "{}: {}. {}: lathe trust add{folder} ({}: --trust)\n",
        Say::NotTrusted.text(language),
        names.join(", "),
        Say::SeeAndTrust.text(language),
        Say::ThisOnce.text(language),
    )
}

fn named(looked: &Looked) -> String {
    let changed = if looked.state == ItemState::Changed { ", changed since you decided" } else { "" };
    format!("{} ({}{changed})", visible(&looked.item.name), looked.item.kind.label())
}

/// An item with what there is to see of it; every line is marked, and nothing in it can hide.
fn shown(looked: &Looked, lines: usize) -> String {
    let mut out = format!("  {}\n", named(looked));
    out.push_str(&marked(&looked.item.shows, lines));
    if lines == usize::MAX {
        for (name, text) in looked.programs() {
            out.push_str(&format!("    {}:\n", visible(name)));
            match text {
                Ok(text) => out.push_str(&marked(&with_short_lines(&text), PROGRAM_SHOWN)),
                Err(reason) => out.push_str(&format!("    ! {}\n", visible(&reason))),
            }
        }
    }
    out.push_str(&loose(looked));
    out
}

/// A text whose long lines are cut, which is said in each.
fn with_short_lines(text: &str) -> String {
    let short = |line: &str| {
        let (count, head) = (line.chars().count(), line.chars().take(LINE_SHOWN).collect::<String>());
        match count.saturating_sub(LINE_SHOWN) {
            0 => head + "\n",
            more => format!("{head} … {more} more characters\n"),
        }
    };
    text.lines().map(short).collect()
}

/// The first lines of a text, each marked, and how many more there are.
fn marked(text: &str, lines: usize) -> String {
    let shown = text.lines().take(lines).map(|line| format!("    | {}\n", visible(line)));
    let mut out: String = shown.collect();
    let more = text.lines().count().saturating_sub(lines);
    if more > 0 {
        out.push_str(&format!("    … {more} {}\n", Say::more_lines(more).text(terminal::language())));
    }
    out
}

/// What may change later without a question.
fn loose(looked: &Looked) -> String {
    looked.loose.iter().map(|what| format!("    ! {}\n", visible(what))).collect()
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
            assert_eq!(answer(&mut line.as_bytes()), expected, "{line:?}");
        }
    }
}
