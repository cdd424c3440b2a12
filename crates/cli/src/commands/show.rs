//! `show` and `sessions`: views of journals.

use std::path::Path;

use lathe_host::{Host, HostError, run_report};
use lathe_protocol::{Event, Fact, SessionId, SessionSummary, escape_unseen};
use lathe_views::{CacheMeter, Console, ModeSource, Noun, Say, Tell, cache_lines, opening};
use serde_json::json;

use crate::advice::with_advice;
use crate::args::{FormatArg, OutputArg, SessionsArgs, ShowArgs};
use crate::exit::Exit;
use crate::terminal::output::{RunOutput, print_json};
use crate::terminal::{self, Paint};

pub(crate) fn show(host: &Host, args: &ShowArgs) -> Exit {
    let shown = host.archive().find(args.id.as_deref()).and_then(|id| {
        let events = host.archive().events(&id)?;
        if args.format != FormatArg::Text {
            note_unknown_events(&events);
        }
        match args.format {
            FormatArg::Json => {
                print_json(&json!({ "session": id, "events": events }));
                Ok(())
            }
            FormatArg::Trajectory => {
                terminal::out_line(&escape_unseen(host.archive().trajectory(&id)?));
                Ok(())
            }
            FormatArg::Html => {
                terminal::out(&host.archive().html(&id, terminal::language())?);
                Ok(())
            }
            FormatArg::Text => show_text(host, &events),
        }
    });
    match shown {
        Ok(()) => Exit::Done,
        Err(error) => Exit::host(&error),
    }
}

fn show_text(host: &Host, events: &[Event]) -> Result<(), HostError> {
    let (language, paint) = (terminal::language(), Paint::new(terminal::is_terminal()));
    let mut console = Console::new(language);
    let mut workspace = "";
    for event in events {
        if let Fact::SessionOpened(opened) = &event.fact {
            workspace = &opened.workspace;
            let opening = opening(&opened.options, None, ModeSource::Settings, language);
            terminal::out(&paint.show(&opening));
        }
        let lines = console.event(event, &host.archive().recorded_diff(event, workspace)?);
        terminal::out(&paint.show(&lines));
    }
    let report = run_report(events, None);
    let Some(Fact::SessionOpened(opened)) = events.first().map(|event| &event.fact) else {
        return Ok(());
    };
    let output = RunOutput::new(OutputArg::Text);
    if report.finished.is_none() && !report.task.is_empty() && !host.archive().is_running(&opened.session) {
        terminal::out(&format!("\n{}\n", Say::Interrupted.text(language)));
    }
    output.closing_of_any(host, &opened.session, &report)?;
    terminal::out(&paint.show(&cache_lines(&CacheMeter::of(events), language)));
    Ok(())
}

/// Notes on standard error the events that cannot be shown.
pub(crate) fn note_unknown_events(events: &[Event]) {
    for event in events {
        if let Fact::Unknown(unknown) = &event.fact {
            terminal::err(&format!(
                "note: event {}: {}\n",
                event.seq,
                terminal::clean(&unknown.description())
            ));
        }
    }
}

pub(crate) fn sessions(host: &Host, args: &SessionsArgs) -> Exit {
    let mut sessions = match host.archive().sessions() {
        Ok(sessions) => sessions,
        Err(error) => return Exit::host(&error),
    };
    let unreadable = host.archive().unreadable(&sessions);
    let ids: Vec<SessionId> = unreadable.iter().map(|(id, _)| id.clone()).collect();
    // The index of sessions may still know an unreadable session: that is worth a line.
    let known = host.archive().indexed_summaries(&ids);
    for (id, error) in unreadable.iter().filter(|(id, _)| known.iter().all(|known| known.id != *id)) {
        terminal::err(&format!("note: session {id} is left out: {}\n", terminal::clean(&with_advice(error))));
    }
    sessions.extend(known);
    sessions.sort_by(|a, b| b.updated.cmp(&a.updated).then_with(|| b.id.cmp(&a.id)));
    if let Some(text) = &args.search {
        let text = text.to_lowercase();
        sessions.retain(|summary| {
            // The title is the beginning of the first task; it answers most searches without a journal.
            let holds = |task: &String| task.to_lowercase().contains(&text);
            holds(&summary.title)
                || host.archive().tasks(&summary.id).is_ok_and(|tasks| tasks.iter().any(holds))
        });
    }
    if let Some(folder) = &args.folder {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        sessions.retain(|summary| Path::new(&summary.workspace).starts_with(&folder));
    }
    sessions.truncate(args.limit.unwrap_or(usize::MAX));
    let damage = |summary: &SessionSummary| host.archive().damage(&summary.id);
    if args.json {
        let rows = sessions.iter().map(|summary| match damage(summary) {
            None => json!(summary),
            Some(why) => {
                let see = format!("lathe show {}", summary.id);
                let mut row = json!(summary);
                row["damaged"] = json!({ "reason": why, "see": see });
                row
            }
        });
        print_json(&rows.collect());
        return Exit::Done;
    }
    let filtered = args.search.is_some() || args.folder.is_some() || args.limit == Some(0);
    if sessions.is_empty() && filtered {
        terminal::out_line(Say::NoneMatches.text(terminal::language()));
    } else if sessions.is_empty() {
        terminal::out_line(Say::NoSessions.text(terminal::language()));
    }
    for summary in &sessions {
        terminal::out(&session_row(summary, damage(summary).is_some()));
    }
    Exit::Done
}

fn session_row(summary: &SessionSummary, is_damaged: bool) -> String {
    let language = terminal::language();
    let damaged = if is_damaged {
        format!("  {}", Tell::DamagedHint { id: summary.id.as_str() }.text(language))
    } else {
        String::new()
    };
    format!(
        "{}  {}  {:>3} {}  {}  {}{damaged}\n",
        summary.id,
        terminal::padded(
            if is_damaged { Say::Damaged } else { Say::state(summary.state) }.text(language),
            11
        ),
        summary.steps,
        Noun::Step.word(summary.steps, language),
        terminal::name(&summary.workspace),
        terminal::name(&summary.title)
    )
}
