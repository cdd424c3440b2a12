//! Where a run's updates go: text for people, one object, or every event as a line.

use std::path::Path;

use lathe_host::{AsideFile, FileDiff, Host, HostError, RememberedFacts, RunReport, Session};
use lathe_plan::ModeFrom;
use lathe_protocol::{Event, Fact, SessionId, Update, escape_unseen, json_text};
use serde_json::json;

use crate::args::OutputArg;
use crate::console::Console;
use crate::exit::Exit;
use crate::term::{self, Paint};
use crate::words::{Language, Say};

pub(crate) struct Output {
    kind: OutputArg,
    console: Console,
    language: Language,
    paint: Paint,
}

impl Output {
    pub(crate) fn new(kind: OutputArg) -> Self {
        let (color, language) = (term::is_terminal(), Language::find());
        Self { kind, console: Console::new(color, language), language, paint: Paint::new(color) }
    }

    pub(crate) fn mode_from(self, mode_from: ModeFrom) -> Self {
        Self { console: self.console.mode_from(mode_from), ..self }
    }

    fn say(&self, say: Say) -> &'static str {
        say.text(self.language)
    }

    /// Whether events are printed as they are, so that all of a session must come.
    pub(crate) fn is_stream(&self) -> bool {
        self.kind == OutputArg::StreamJson
    }

    pub(crate) fn is_text(&self) -> bool {
        self.kind == OutputArg::Text
    }

    pub(crate) fn opening(&self, session: &Session) {
        let options = &session.options;
        if self.is_text() {
            let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
            let elsewhere = Path::new(&session.workspace) != here && options.model.provider != "cassette";
            let folder = elsewhere.then_some(session.workspace.as_str());
            term::out(&self.console.opening(options, folder));
        } else if let Some(mode) = self.console.unusual_mode(options) {
            term::err(&format!("{mode}\n"));
        }
    }

    /// Facts that reach the prompt of every session, so that none stays there unseen.
    pub(crate) fn remembered(&self, facts: Option<&RememberedFacts>) {
        let Some(facts) = facts.filter(|_| self.is_text()) else { return };
        let from = facts.newest_from.as_ref().map_or_else(String::new, |folder| {
            format!(" ({} {})", self.word(Say::NewestFrom), term::name(folder))
        });
        term::out(&self.dim(&format!("{}: {}{from}\n", self.word(Say::RememberedFacts), facts.count)));
    }

    pub(crate) async fn update(&mut self, update: &Update, session: &Session) {
        // The model is told in the result of the call; the person once, whatever the output.
        if let Update::Event(event) = update
            && matches!(event.fact, Fact::CallFinished(_))
        {
            for words in session.unread_ignore_files() {
                term::err(&format!("warning: {}\n", term::clean(&words)));
            }
        }
        match (self.kind, update) {
            (OutputArg::Json, _) | (OutputArg::StreamJson, Update::Frame(_)) => {}
            (OutputArg::StreamJson, Update::Event(event)) => term::out(&json_line(event)),
            (OutputArg::Text, Update::Frame(frame)) => term::out(&self.console.frame(frame)),
            (OutputArg::Text, Update::Event(event)) => {
                let diff = lathe_host::event_diff(event, session).await;
                term::out(&self.console.event(event, &diff));
            }
        }
    }

    pub(crate) fn stopping(&self) {
        term::err(&format!("\n{}\n", self.say(Say::Stopping)));
    }

    /// What the run came to.
    /// The same for a session that may be another process's.
    pub(crate) fn closing_of_any(
        &self,
        host: &Host,
        id: &SessionId,
        report: &RunReport,
    ) -> Result<(), HostError> {
        // Who only has the session open, as a server does, works on nothing.
        let running = report.finished.is_none() && host.archive().is_running(id);
        let aside = host.archive().set_aside(report);
        term::out(&self.closing_text((id, report, running), &host.archive().diffs(report)?, &aside));
        Ok(())
    }

    pub(crate) fn closing(
        &self,
        host: &Host,
        id: &SessionId,
        report: &RunReport,
        exit: Exit,
    ) -> Result<(), HostError> {
        let (diffs, aside) = (host.archive().diffs(report)?, host.archive().set_aside(report));
        match self.kind {
            OutputArg::Text => term::out(&self.closing_text((id, report, false), &diffs, &aside)),
            OutputArg::Json => print_json(&closing_json(id, report, (&diffs, &aside), exit)),
            OutputArg::StreamJson => {}
        }
        Ok(())
    }

    fn closing_text(
        &self,
        (id, report, running): (&SessionId, &RunReport, bool),
        diffs: &[FileDiff],
        aside: &[AsideFile],
    ) -> String {
        let mut out = String::from("\n");
        if diffs.is_empty() {
            let never = !running && !report.task.is_empty() && report.steps == 0 && report.calls == 0;
            let words = if never { Say::NothingBegun } else { Say::NothingChanged };
            out.push_str(&format!("{}\n", self.paint.dim(self.say(words))));
        } else {
            out.push_str(&format!("{}\n", self.paint.bold(self.say(Say::Changed))));
            let width = diffs.iter().map(|diff| term::name(&diff.path).chars().count()).max().unwrap_or(0);
            for diff in diffs {
                if diff.kept.is_some() {
                    let kept = self.paint.red(self.say(Say::KeptAway));
                    out.push_str(&format!("  {:<width$}  {kept}\n", term::name(&diff.path)));
                    continue;
                }
                let (added, removed) = (format!("+{}", diff.added), format!("-{}", diff.removed));
                out.push_str(&format!(
                    "  {:<width$}  {} {}\n",
                    term::name(&diff.path),
                    self.paint.green(&added),
                    self.paint.red(&removed)
                ));
            }
        }
        if !report.denials.is_empty() && !running {
            let what = if report.denials.len() == 1 { Say::DeniedCall } else { Say::DeniedCalls };
            let hint = if report.denied_by_mode > 0 { self.say(Say::DeniedByMode) } else { "" };
            let line = format!("{} {}{hint}", report.denials.len(), self.say(what));
            out.push_str(&format!("\n{}\n", self.paint.yellow(&line)));
        }
        out.push_str(&self.aside_text(aside));
        if report.refused > 0 && !running {
            let word = if report.refused == 1 { Say::RefusedOnceByYou } else { Say::RefusedByYou };
            let line = format!("{} {}", report.refused, self.say(word));
            out.push_str(&format!("\n{}\n", self.paint.yellow(&line)));
        }
        let steps = Say::steps(report.steps.into());
        let line = format!(
            "{} {} · {} {}{}, {} {} · {:.1} s",
            report.steps,
            self.say(steps),
            thousands(report.usage.input_tokens),
            self.say(Say::TokensIn),
            crate::models::cached_share(&report.usage),
            thousands(report.usage.output_tokens),
            self.say(Say::TokensOut),
            report.seconds()
        );
        out.push_str(&format!("\n{}\n", self.paint.dim(&line)));
        out.push_str(&self.where_to_look(id, report, running));
        out
    }

    /// What was set aside: each with its name now and what to do.
    fn aside_text(&self, aside: &[AsideFile]) -> String {
        if aside.is_empty() {
            return String::new();
        }
        let mut out = format!("\n{}:\n", self.paint.yellow(self.say(Say::SetAside)));
        for file in aside {
            let now = file.set_aside_as.as_ref().map_or_else(String::new, |name| {
                format!(" ({}: {})", self.say(Say::SetAsideNow), term::name(name))
            });
            out.push_str(&format!("  {}{now}: {}\n", term::name(&file.path), file.advice));
        }
        out
    }

    fn where_to_look(&self, id: &SessionId, report: &RunReport, running: bool) -> String {
        if running {
            return format!(
                "{}\n",
                self.paint.dim(&format!("{}: lathe watch {id}", self.say(Say::StillRunning)))
            );
        }
        let session = self.say(Say::Session);
        let again = format!("{session} {id} · {}: lathe show {id}", self.say(Say::LookAgain));
        let ended_well = report.finished.as_ref().is_some_and(|finished| finished.ending.is_success());
        let go_on = if ended_well {
            String::new()
        } else {
            format!(" · {}: lathe resume {id}", self.say(Say::GoOn))
        };
        format!("{}\n", self.paint.dim(&format!("{again}{go_on}")))
    }

    /// The whole diff, as the demo ends with it.
    pub(crate) fn diff(&self, host: &Host, report: &RunReport) -> Result<String, HostError> {
        let diffs = host.archive().diffs(report)?;
        Ok(diffs.iter().map(|diff| self.paint.diff(&diff.diff)).collect())
    }

    pub(crate) fn heading(&self, say: Say) -> String {
        self.paint.bold(self.say(say))
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint.dim(text)
    }

    pub(crate) fn word(&self, say: Say) -> &'static str {
        self.say(say)
    }
}

pub(crate) fn json_line(event: &Event) -> String {
    match serde_json::to_string(event) {
        Ok(line) => format!("{}\n", escape_unseen(line)),
        Err(error) => {
            format!(
                "{}\n",
                json_text(&json!({ "unreadable_event": event.seq.0, "reason": error.to_string() }))
            )
        }
    }
}

/// Prints a value as one line of JSON.
pub(crate) fn print_json(value: &serde_json::Value) {
    term::out(&format!("{}\n", json_text(value)));
}

fn closing_json(
    id: &SessionId,
    report: &RunReport,
    (diffs, aside): (&[FileDiff], &[AsideFile]),
    exit: Exit,
) -> serde_json::Value {
    let changes: Vec<_> = diffs.iter().map(diff_json).collect();
    json!({
        "session": id,
        "run": report.run,
        "task": report.task,
        "ending": report.finished.as_ref().map(|finished| finished.ending),
        "result": report.finished.as_ref().map(|finished| &finished.result),
        "exit_code": exit.number(),
        "steps": report.steps,
        "calls": report.calls,
        "usage": report.usage,
        "seconds": report.seconds(),
        "changes": changes,
        "denials": report.denials,
        "set_aside": aside,
        "changed_by_others": report.others,
        "broken": report.broken,
    })
}

/// A changed file. `kept` names the entry of the quarantine, where nothing else has what was there.
pub(crate) fn diff_json(diff: &FileDiff) -> serde_json::Value {
    let mut row =
        json!({ "path": diff.path, "added": diff.added, "removed": diff.removed, "diff": diff.diff });
    if let Some(kept) = &diff.kept {
        row["kept"] = json!(kept);
    }
    row
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }
}
