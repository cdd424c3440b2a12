//! Git commands that only read, in a repository whose own configuration makes git run a program.

use std::path::PathBuf;

use lathe_bash::{FloorRule, SimpleCommand, Word};
use lathe_protocol::{Decision, Verdict};

use crate::Depth;
use crate::disk::{GitReach, Lead};
use crate::gate::{Gate, decision};
use crate::reading::{Region, reading};
use crate::rules::Setting;

/// The most folders of one command that are inspected.
const FOLDERS: usize = 32;

/// Subcommands of git that run no program of a repository's, whatever its configuration says. Those that sort or
/// format may check signatures because of a setting alone (`tag.sort`, `pretty.x`), and a reflog has diffs.
const GIT_PLAIN: [&str; 12] = [
    "rev-parse",
    "remote",
    "config",
    "version",
    "show-ref",
    "merge-base",
    "name-rev",
    "count-objects",
    "ls-tree",
    "check-ignore",
    "worktree",
    "--version",
];

/// The question about git in a repository whose own configuration makes git run a program, or that leads to another
/// one: even a command that only reads is asked about. `from` are the folders that the command may run in.
pub(crate) fn git_asks(
    gate: &Gate,
    command: &SimpleCommand,
    from: &[String],
    setting: Setting<'_>,
    decided: &Decision,
) -> Option<Decision> {
    if decided.verdict != Verdict::Allow || command.program_name() != Some("git") {
        return None;
    }
    let normal = lathe_bash::normal_words(&command.words);
    let sub = normal.get(1).map(String::as_str);
    if matches!(sub, Some("version" | "--version")) {
        return None;
    }
    let here = in_all_folders(gate, command, from)?;
    let outside = |lead: &Lead| {
        let shown = format!("what git would read here ({})", lead.shown);
        let region = lead.place.as_ref().map_or(Region::Elsewhere, |place| gate.region(place, Depth::All));
        reading((region, false), setting.actor, setting.mode, &shown)
    };
    let strictest = here.leads.iter().filter_map(outside).max_by_key(|decision| decision.verdict);
    if strictest.is_some() {
        return strictest;
    }
    // Behind walls such a program runs inside.
    let runs = here.runs.filter(|_| !setting.is_walled);
    let setting = runs.filter(|_| !sub.is_some_and(|sub| GIT_PLAIN.contains(&sub)))?;
    let why = format!("the repository's own configuration makes git run a program ({setting})");
    Some(decision(Verdict::Ask, FloorRule::Option.as_str(), &why))
}

/// Git's acts in any of the folders that the command may work in. `None` where the disk is unknown.
fn in_all_folders(gate: &Gate, command: &SimpleCommand, from: &[String]) -> Option<GitReach> {
    let disk = gate.disk.get()?;
    let words: Vec<Option<&str>> = command.words.iter().map(Word::literal).collect();
    let named = words.windows(2).filter(|pair| pair.first() == Some(&Some("-C")));
    let named: Vec<&str> = named.filter_map(|pair| *pair.get(1)?).collect();
    // Each `-C` begins where the one before it led.
    let all = named.iter().fold(PathBuf::new(), |path, next| path.join(next));
    let here = gate.here.iter().cloned().chain(from.iter().map(PathBuf::from));
    let mut folders: Vec<PathBuf> = here.flat_map(|folder| [folder.join(&all), folder]).collect();
    folders.sort();
    folders.dedup();
    if folders.len() > FOLDERS {
        let many = "more folders than are looked at".to_owned();
        return Some(GitReach { runs: Some(many.clone()), leads: vec![Lead { shown: many, place: None }] });
    }
    let mut found = GitReach::default();
    for folder in &folders {
        let GitReach { runs, leads } = disk.git(folder, &gate.root);
        found.runs = found.runs.or(runs);
        found.leads.extend(leads);
    }
    Some(found)
}
