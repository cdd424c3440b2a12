//! The output of a run in one of three formats: text for the user, one object, or every event as a line.

use std::path::Path;

use lathe_host::{Host, HostError, OpenSession, RememberedFacts, RunReport};
use lathe_protocol::{Event, SessionHandle, SessionId, Update, escape_unseen, json_text};
use lathe_views::{
    AsideFile, Closing, Console, FileDiff, Language, ModeSource, Say, Styled, Tell, opening, unusual_mode,
};
use serde_json::json;

use crate::args::OutputArg;
use crate::exit::Exit;
use crate::terminal::{self, Paint};

pub(crate) struct RunOutput {
    kind: OutputArg,
    console: Console,
    mode_from: ModeSource,
    language: Language,
    paint: Paint,
}

impl RunOutput {
    pub(crate) fn new(kind: OutputArg) -> Self {
        let (paint, language) = (Paint::new(terminal::is_terminal()), terminal::language());
        Self { kind, console: Console::new(language), mode_from: ModeSource::Settings, language, paint }
    }

    pub(crate) fn mode_from(self, mode_from: ModeSource) -> Self {
        Self { mode_from, ..self }
    }

    /// True if events are printed as they are, so that all events of a session are needed.
    pub(crate) fn is_stream(&self) -> bool {
        self.kind == OutputArg::StreamJson
    }

    pub(crate) fn is_text(&self) -> bool {
        self.kind == OutputArg::Text
    }

    fn show(&self, text: &Styled) {
        terminal::out(&self.paint.show(text));
    }

    pub(crate) fn opening(&self, session: &OpenSession) {
        let options = &session.options;
        if self.is_text() {
            let here = std::env::current_dir().and_then(|here| here.canonicalize()).unwrap_or_default();
            let elsewhere = Path::new(&session.workspace) != here && options.model.provider != "cassette";
            let folder = elsewhere.then_some(session.workspace.as_str());
            self.show(&opening(options, folder, self.mode_from, self.language));
        } else if let Some(mode) = unusual_mode(options, self.mode_from, self.language) {
            terminal::err(&format!("{mode}\n"));
        }
    }

    /// Prints the number of facts that enter the prompt of every session, so that the user knows of them.
    pub(crate) fn print_remembered_facts(&self, facts: Option<&RememberedFacts>) {
        let Some(facts) = facts.filter(|_| self.is_text()) else { return };
        let count = facts.count;
        let line = match &facts.newest_from {
            Some(folder) => Tell::RememberedFactsFrom { count, folder: &terminal::name(folder) },
            None => Tell::RememberedFacts { count },
        };
        terminal::out_line(&self.dim(&line.text(self.language)));
    }

    /// Shows an update of a session, local or remote.
    pub(crate) async fn update(&mut self, update: &Update, session: &dyn SessionHandle) {
        match (self.kind, update) {
            (OutputArg::Json, _) | (OutputArg::StreamJson, Update::Frame(_)) => {}
            (OutputArg::StreamJson, Update::Event(event)) => terminal::out(&json_line(event)),
            (OutputArg::Text, Update::Frame(frame)) => {
                let lines = self.console.frame(frame);
                self.show(&lines);
            }
            (OutputArg::Text, Update::Event(event)) => {
                let diff = session.diff(event).await;
                let lines = self.console.event(event, &diff);
                self.show(&lines);
            }
        }
    }

    pub(crate) fn print_stopping(&self) {
        terminal::err(&format!("\n{}\n", self.word(Say::Stopping)));
    }

    /// Prints the outcome of the last run of a session that may be another process's.
    pub(crate) fn closing_of_any(
        &self,
        host: &Host,
        id: &SessionId,
        report: &RunReport,
    ) -> Result<(), HostError> {
        // A process that only has the session open, as a server does, runs nothing.
        let running = report.finished.is_none() && host.archive().is_running(id);
        let aside = host.archive().set_aside(report);
        self.show(&closing((id, report, running), &host.archive().diffs(report)?, &aside, self.language));
        Ok(())
    }

    /// Prints the outcome of the run.
    pub(crate) fn closing(
        &self,
        host: &Host,
        id: &SessionId,
        report: &RunReport,
        exit: Exit,
    ) -> Result<(), HostError> {
        let (diffs, aside) = (host.archive().diffs(report)?, host.archive().set_aside(report));
        match self.kind {
            OutputArg::Text => self.show(&closing((id, report, false), &diffs, &aside, self.language)),
            OutputArg::Json => print_json(&closing_json(id, report, (&diffs, &aside), exit)),
            OutputArg::StreamJson => {}
        }
        Ok(())
    }

    /// The whole diff, for the end of the demo.
    pub(crate) fn diff(&self, host: &Host, report: &RunReport) -> Result<String, HostError> {
        let diffs = host.archive().diffs(report)?;
        Ok(diffs.iter().map(|diff| self.paint.show(&Styled::diff(&diff.diff))).collect())
    }

    pub(crate) fn heading(&self, say: Say) -> String {
        self.paint.bold(self.word(say))
    }

    pub(crate) fn dim(&self, text: &str) -> String {
        self.paint.dim(text)
    }

    pub(crate) fn word(&self, say: Say) -> &'static str {
        say.text(self.language)
    }

    /// The text as the label of the value that follows it.
    pub(crate) fn label(&self, say: Say) -> String {
        say.label(self.language)
    }
}

fn closing(
    (id, report, is_running): (&SessionId, &RunReport, bool),
    files: &[FileDiff],
    aside: &[AsideFile],
    language: Language,
) -> Styled {
    let closing = Closing {
        session: id.as_str(),
        is_running,
        has_task: !report.task.is_empty(),
        ended_well: report.finished.as_ref().is_some_and(|finished| finished.ending.is_success()),
        steps: report.steps,
        calls: report.calls,
        usage: report.usage,
        seconds: report.seconds(),
        denials: report.denials.len(),
        denied_by_mode: report.denied_by_mode,
        refused: report.refused,
        files,
        aside,
    };
    closing.text(language)
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
    terminal::out_line(&json_text(value));
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

/// A changed file. `kept` names the entry of the quarantine, if only the quarantine has the old content.
pub(crate) fn diff_json(diff: &FileDiff) -> serde_json::Value {
    let mut row =
        json!({ "path": diff.path, "added": diff.added, "removed": diff.removed, "diff": diff.diff });
    if let Some(kept) = &diff.kept {
        row["kept"] = json!(kept);
    }
    row
}
