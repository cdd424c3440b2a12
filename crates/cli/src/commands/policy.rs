//! `policy`: decisions of the gate, tried, replayed, listed and revoked.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use lathe_host::{Host, HostError, LineCheckResult, PolicyCheck};
use lathe_protocol::{Mode, SessionId, StepNo, Verdict, json_text, list_warnings, visible};
use lathe_views::{Language, Noun, Say, Tell};
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
    /// Show the decision about shell lines, command by command, with the rule that makes it
    #[command(
        after_help = "Examples:\n  lathe policy check 'git log --output=x'\n  lathe policy check --rules my.toml 'make test'\n  printf '%s\\n' '\"ls\"' '{\"command\": \"rm x\"}' | lathe policy check --json\n\nWithout a command, lines are read from the standard input: with --json one JSON value each, a text or an object with `command`."
    )]
    Check(CheckArgs),
    /// Show how a rule file would have decided the calls of past sessions
    #[command(
        after_help = "Examples:\n  lathe policy replay my.toml\n  lathe policy replay my.toml 20261115-1 --json\n\nThe rules that hold here and the file are applied to every recorded call again, in the mode of its session."
    )]
    Replay {
        /// The rule file
        file: PathBuf,
        /// Sessions: their ids or the beginnings of them; all if left out
        sessions: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// List standing approvals: what you always allow
    List {
        /// Print a JSON array of texts
        #[arg(long)]
        json: bool,
    },
    /// Revoke a standing approval
    Revoke {
        /// The number that `policy list` shows
        number: usize,
    },
}

impl PolicyArgs {
    /// See [`crate::home_changes::changing_command`].
    pub(crate) fn changing_command(&self) -> Option<&'static str> {
        match self.command {
            PolicyCommand::Check(_) | PolicyCommand::Replay { .. } | PolicyCommand::List { .. } => None,
            PolicyCommand::Revoke { .. } => Some("lathe policy revoke"),
        }
    }
}

#[derive(Args)]
struct CheckArgs {
    /// The line; if left out, lines are read from standard input
    command: Option<String>,
    /// Use only the rules of this file, in place of those that hold here
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Decide in this mode
    #[arg(long, value_name = "MODE")]
    mode: Option<ModeArg>,
    /// Decide as behind the walls of this level of the sandbox: 0 to 3
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true, value_parser = clap::value_parser!(u8).range(0..=3))]
    level: u8,
    /// Print one JSON object per line
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
                let revoked = Tell::Revoked { rule: &visible(&revoked) };
                terminal::out_line(&revoked.text(terminal::language()));
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
    let counts = |name: fn(Verdict) -> &'static str| {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for changed in &replay.changed {
            *counts.entry(format!("{} -> {}", name(changed.was), name(changed.would_be))).or_default() += 1;
        }
        counts
    };
    if as_json {
        let counts = counts(verdict_word);
        print_json(&json!({ "replay": replay, "counts": counts }));
        return Exit::Done;
    }
    let language = terminal::language();
    for changed in &replay.changed {
        let row = Tell::DecisionChanged {
            before: &decision_column(changed.was),
            now: &decision_column(changed.would_be),
            about: &visible(&changed.about),
            rule: &visible(&changed.was_by),
            new_rule: &visible(&changed.would_be_by),
            session: &changed.session,
            step: StepNo(changed.step),
        };
        terminal::out_line(&row.text(language));
    }
    let total = Tell::DecisionsReplayed {
        calls: &Noun::Call.count(replay.calls, language),
        sessions: &Noun::Session.count(replay.sessions, language),
        same: replay.calls - replay.changed.len(),
    };
    terminal::out_line(&total.text(language));
    for (way, count) in counts(|decision| Say::decision(decision).text(terminal::language())) {
        terminal::out_line(&format!("  {way}{}{count}", language.colon()));
    }
    Exit::Done
}

fn list(host: &Host, as_json: bool) -> Exit {
    match host.rules().standing_approvals() {
        Ok(allowed) if as_json => print_json(&json!(allowed)),
        Ok(allowed) if allowed.is_empty() => {
            terminal::out_line(Say::NoStandingApprovals.text(terminal::language()));
        }
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
    let check = match host.rules().policy_check(args.rules.as_deref(), &extras, args.level) {
        Ok(check) => check,
        Err(error) => return Exit::host(&error),
    };
    let mode = args.mode.map_or(Mode::Default, Into::into);
    if let Some(command) = &args.command {
        terminal::out(&line_reply(&check, mode, Ok(command), args.json));
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
            answers.push_str(&empty_line_reply(text, args.json));
            continue;
        }
        let command = if args.json { from_json(text) } else { Ok(text.to_owned()) };
        if command.is_err() {
            wrong.push(format!("line {number} {NOT_A_COMMAND}"));
        }
        answers.push_str(&line_reply(&check, mode, command.as_deref().map_err(|_| text), args.json));
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

/// The reason for which an input line holds no command.
const NOT_A_COMMAND: &str = "is neither a JSON text nor an object with `command`";

fn from_json(text: &str) -> Result<String, ()> {
    match serde_json::from_str(text) {
        Ok(Value::String(command)) => Ok(command),
        Ok(Value::Object(object)) => {
            object.get("command").and_then(Value::as_str).map(str::to_owned).ok_or(())
        }
        Ok(_) | Err(_) => Err(()),
    }
}

/// The reply to one line. A line that holds no command gets one too, so that replies stay in step with the input.
fn line_reply(check: &PolicyCheck, mode: Mode, command: Result<&str, &str>, as_json: bool) -> String {
    let command = match command {
        Ok(command) => command,
        Err(text) => {
            let because = format!("this {NOT_A_COMMAND}");
            let value = json!({ "command": text, "decision": "deny", "because": because, "commands": [] });
            return format!("{}\n", json_text(&value));
        }
    };
    let decided = check.decide_line(mode, command);
    if as_json { format!("{}\n", json_text(&to_json(command, &decided))) } else { to_text(command, &decided) }
}

/// The reply to an empty line.
fn empty_line_reply(text: &str, as_json: bool) -> String {
    let because = Say::NothingToRun;
    if as_json {
        let because = because.text(Language::English);
        let value = json!({ "command": text, "decision": "allow", "because": because, "commands": [] });
        return format!("{}\n", json_text(&value));
    }
    let because = because.text(terminal::language());
    format!("{}  {}  ({because})\n", decision_column(Verdict::Allow), visible(text))
}

fn decision_reason(decided: &LineCheckResult) -> String {
    format!("{}: {}", decided.decision.rule, decided.decision.reason)
}

fn to_json(command: &str, decided: &LineCheckResult) -> Value {
    let commands: Vec<Value> = decided
        .commands
        .iter()
        .map(|each| {
            json!({
                "words": each.words,
                "decision": verdict_word(each.decision.verdict),
                "rule": each.decision.rule,
                "reason": each.decision.reason,
                "effects": each.effects,
            })
        })
        .collect();
    json!({
        "command": command,
        "decision": verdict_word(decided.decision.verdict),
        "because": decision_reason(decided),
        "commands": commands,
    })
}

fn to_text(command: &str, decided: &LineCheckResult) -> String {
    let reason = visible(&decision_reason(decided));
    format!("{}  {}  ({reason})\n", decision_column(decided.decision.verdict), visible(command))
}

/// The decision as a column of a table for people.
fn decision_column(decision: Verdict) -> String {
    terminal::padded(Say::decision(decision).text(terminal::language()), 5)
}

/// The decision as JSON names it.
fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    }
}
