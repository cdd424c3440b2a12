//! `policy`: what the gate would say.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lathe_host::{Host, HostError, LineChecked, PolicyCheck};
use lathe_protocol::{Mode, SessionId, Verdict, counted, json_text, list_warnings, visible};
use serde_json::{Value, json};

use crate::args::ModeArg;
use crate::commands::settings::extras_of;
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

#[derive(Args)]
pub(crate) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Subcommand)]
enum PolicyCommand {
    /// What is decided about shell lines, command by command, and by which rule
    #[command(
        after_help = "Examples:\n  lathe policy check 'git log --output=x'\n  lathe policy check --rules my.toml 'make test'\n  printf '%s\\n' '\"ls\"' '{\"command\": \"rm x\"}' | lathe policy check --json\n\nWithout a command, lines are read from the standard input: with --json one JSON value each, a text or an object with `command`."
    )]
    Check(CheckArgs),
    /// What a rule file would have decided about the calls of past sessions
    #[command(
        after_help = "Examples:\n  lathe policy replay my.toml\n  lathe policy replay my.toml 20261115-1 --json\n\nThe rules that hold here and the file are asked again about every recorded call, in the mode of its session."
    )]
    Replay {
        /// The rule file
        file: PathBuf,
        /// Sessions: their ids or the beginnings of them; all if left out
        sessions: Vec<String>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// What you have allowed for ever
    List {
        /// A JSON array of texts
        #[arg(long)]
        json: bool,
    },
    /// Takes back what you have allowed for ever
    Revoke {
        /// The number that `policy list` shows
        number: usize,
    },
}

impl PolicyArgs {
    /// See [`crate::inside::change`].
    pub(crate) fn change(&self) -> Option<&'static str> {
        match self.command {
            PolicyCommand::Check(_) | PolicyCommand::Replay { .. } | PolicyCommand::List { .. } => None,
            PolicyCommand::Revoke { .. } => Some("lathe policy revoke"),
        }
    }
}

#[derive(Args)]
struct CheckArgs {
    /// The line; left out, lines come from the standard input
    command: Option<String>,
    /// Only the rules of this file, in place of those that hold here
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// In this mode
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeArg>,
    /// One JSON object per line
    #[arg(long)]
    json: bool,
}

pub(crate) fn policy(host: &Host, args: &PolicyArgs) -> Exit {
    match &args.command {
        PolicyCommand::Check(args) => check(host, args),
        PolicyCommand::Replay { file, sessions, json } => replay(host, file, sessions, *json),
        PolicyCommand::List { json } => list(host, *json),
        PolicyCommand::Revoke { number } => match host.rules().revoke(*number) {
            Ok(revoked) => {
                terminal::out(&format!("no longer allowed: {}\n", visible(&revoked)));
                Exit::Done
            }
            Err(error) => Exit::host(&error),
        },
    }
}

fn replay(host: &Host, file: &Path, sessions: &[String], as_json: bool) -> Exit {
    let ids: Result<Vec<SessionId>, HostError> =
        sessions.iter().map(|id| host.archive().find(Some(id.as_str()))).collect();
    let extras = match extras_of(host, Path::new(".")) {
        Ok(extras) => extras,
        Err(exit) => return exit,
    };
    let replay = match ids.and_then(|ids| host.rules().policy_replay(file, &ids, &extras)) {
        Ok(replay) => replay,
        Err(error) => return Exit::host(&error),
    };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for changed in &replay.changed {
        *counts.entry(format!("{} -> {}", word(changed.was), word(changed.would_be))).or_default() += 1;
    }
    if as_json {
        print_json(&json!({ "replay": replay, "counts": counts }));
        return Exit::Done;
    }
    for changed in &replay.changed {
        terminal::out(&format!(
            "{:<5} -> {:<5}  {}  ({} -> {}; session {} step {})\n",
            word(changed.was),
            word(changed.would_be),
            visible(&changed.about),
            visible(&changed.was_by),
            visible(&changed.would_be_by),
            changed.session,
            changed.step
        ));
    }
    let same = replay.calls - replay.changed.len();
    terminal::out(&format!(
        "{} of {}: {same} as before\n",
        counted(replay.calls, "call"),
        counted(replay.sessions, "session")
    ));
    counts.iter().for_each(|(way, count)| terminal::out(&format!("  {way}: {count}\n")));
    Exit::Done
}

fn list(host: &Host, as_json: bool) -> Exit {
    match host.rules().allowed_for_ever() {
        Ok(allowed) if as_json => print_json(&json!(allowed)),
        Ok(allowed) if allowed.is_empty() => terminal::out("nothing was allowed for ever\n"),
        Ok(allowed) => {
            for (at, allowed) in allowed.iter().enumerate() {
                terminal::out(&format!("{:>3}. {}\n", at + 1, visible(allowed)));
            }
        }
        Err(error) => return Exit::host(&error),
    }
    Exit::Done
}

fn check(host: &Host, args: &CheckArgs) -> Exit {
    let extras = match extras_of(host, Path::new(".")) {
        Ok(extras) => extras,
        Err(exit) => return exit,
    };
    let check = match host.rules().policy_check(args.rules.as_deref(), &extras) {
        Ok(check) => check,
        Err(error) => return Exit::host(&error),
    };
    let mode = args.mode.map_or(Mode::Default, Into::into);
    if let Some(command) = &args.command {
        terminal::out(&answer(&check, mode, Ok(command), args.json));
        return Exit::Done;
    }
    let (mut input, mut line, mut answers) = (std::io::stdin().lock(), Vec::new(), String::new());
    let (mut number, mut wrong) = (0_usize, Vec::new());
    loop {
        line.clear();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return Exit::failed(&format!("the standard input cannot be read: {error}")),
        }
        let text = String::from_utf8_lossy(&line);
        let text = text.strip_suffix('\n').unwrap_or(&text);
        number += 1;
        if text.trim().is_empty() {
            answers.push_str(&nothing(text, args.json));
            continue;
        }
        let command = if args.json { from_json(text) } else { Ok(text.to_owned()) };
        if command.is_err() {
            wrong.push(format!("line {number} {NO_LINE}"));
        }
        answers.push_str(&answer(&check, mode, command.as_deref().map_err(|_| text), args.json));
        if answers.len() > 64 * 1024 {
            terminal::out(&answers);
            answers.clear();
        }
    }
    terminal::out(&answers);
    match wrong.is_empty() {
        true => Exit::Done,
        false => Exit::wrong_usage(&list_warnings(wrong).join("; ")),
    }
}

/// What is said of a line that asks nothing.
const NO_LINE: &str = "is neither a JSON text nor an object with `command`";

fn from_json(text: &str) -> Result<String, ()> {
    match serde_json::from_str(text) {
        Ok(Value::String(command)) => Ok(command),
        Ok(Value::Object(object)) => {
            object.get("command").and_then(Value::as_str).map(str::to_owned).ok_or(())
        }
        Ok(_) | Err(_) => Err(()),
    }
}

/// The answer to one line; to what is no line as well, so that answers stay in step with questions.
fn answer(check: &PolicyCheck, mode: Mode, command: Result<&str, &str>, as_json: bool) -> String {
    let command = match command {
        Ok(command) => command,
        Err(text) => {
            let because = format!("this {NO_LINE}");
            let value = json!({ "command": text, "decision": "deny", "because": because, "commands": [] });
            return format!("{}\n", json_text(&value));
        }
    };
    let decided = check.line(mode, command);
    if as_json {
        format!("{}\n", json_text(&to_json(command, &decided)))
    } else {
        readable(command, &decided)
    }
}

/// The answer to a line with nothing on it.
fn nothing(text: &str, as_json: bool) -> String {
    const WORDS: &str = "nothing to run";
    if as_json {
        let value = json!({ "command": text, "decision": "allow", "because": WORDS, "commands": [] });
        return format!("{}\n", json_text(&value));
    }
    format!("{:<5}  {}  ({WORDS})\n", word(Verdict::Allow), visible(text))
}

fn because(decided: &LineChecked) -> String {
    format!("{}: {}", decided.decision.rule, decided.decision.reason)
}

fn to_json(command: &str, decided: &LineChecked) -> Value {
    let commands: Vec<Value> = decided
        .commands
        .iter()
        .map(|each| {
            json!({
                "words": each.words,
                "decision": word(each.decision.verdict),
                "rule": each.decision.rule,
                "reason": each.decision.reason,
                "effects": each.effects,
            })
        })
        .collect();
    json!({
        "command": command,
        "decision": word(decided.decision.verdict),
        "because": because(decided),
        "commands": commands,
    })
}

fn readable(command: &str, decided: &LineChecked) -> String {
    format!("{:<5}  {}  ({})\n", word(decided.decision.verdict), visible(command), visible(&because(decided)))
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    }
}
