//! `interactive`: one task after another in one session, with Trae's words at the prompt.

use std::io::IsTerminal;

use lathe_host::{Attended, Host, OpenSession, read_images, run_report, trajectories_of_tasks};
use lathe_plan::{ConfigPlace, Wish};
use lathe_protocol::{Attachment, CommandBody, EventStream, Seq};
use lathe_views::{Language, ModeSource, Say};

use crate::args::{InteractiveArgs, OutputArg};
use crate::commands::settings::{absolute, note_idle_flags, settle, warn_of_notices};
use crate::drive::{CommandOutcome, close, finish_trajectory, perform, show_last_summaries};
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::input::TypedLines;
use crate::terminal::output::RunOutput;
use crate::terminal::stops::{Stop, Stops};

pub(crate) async fn interactive(host: &Host, args: InteractiveArgs) -> Exit {
    note_idle_flags(args.console_type, args.agent_type);
    let given = args.options.0;
    let place = ConfigPlace::with_file(&args.working_dir, args.config_file.as_deref());
    let settled = match settle(host, place, &given, args.trust.ask_on_terminal()) {
        Ok(settled) => settled,
        Err(exit) => return exit,
    };
    let trajectory = settled.config.settings.run.trajectory.clone().or_else(|| settled.default_trajectory());
    let trajectories = trajectory.as_deref().map(trajectories_of_tasks).unwrap_or_default();
    // A pipe can answer the model, but an approval is given only by a user who sees the proposal.
    let (attended, mode_from) = if std::io::stdin().is_terminal() {
        (Attended::Person, ModeSource::Asked)
    } else {
        (Attended::Answers, ModeSource::Settings)
    };
    let plan = settled.plan(&Wish {
        own_model: given.names_own_model() || args.config_file.is_some(),
        given,
        cassette: args.cassette.wish(),
        outputs: args.cassette.record.iter().cloned().chain(trajectories).collect(),
        record: args.cassette.record,
        // An answer without calls ends the turn.
        conversation: true,
        attended,
        ..Wish::task(args.working_dir)
    });
    let images = match read_images(&args.images) {
        Ok(images) => images,
        Err(reason) => return Exit::wrong_usage(&reason),
    };
    let mut images = match host.archive().store_images(images) {
        Ok(images) => images,
        Err(error) => return Exit::host(&error),
    };
    let notices = plan.extras.notices.clone();
    let session = match host.start(plan).await {
        Ok(session) => session,
        Err(error) => return Exit::host(&error),
    };
    warn_of_notices(&notices);
    let mut stops = Stops::listen();
    let mut output = RunOutput::new(OutputArg::Text).mode_from(mode_from);
    output.opening(&session);
    output.print_remembered_facts(host.home().remembered_facts().as_ref());
    let mut updates = session.handle().subscribe(Seq(1));
    let trajectory = trajectory.as_deref().map(absolute).map(|path| session.write_trajectory(path));
    let mut lines = TypedLines::read();
    let heard = (&mut lines, &mut stops);
    let ended = prompt_loop(host, &session, &mut *updates, &mut output, heard, &mut images).await;
    let closed = close(session, &mut stops).await;
    if let Some(trajectory) = trajectory {
        finish_trajectory(trajectory, &output).await;
    }
    match closed {
        Some(exit) => exit,
        None => ended,
    }
}

async fn prompt_loop(
    host: &Host,
    session: &OpenSession,
    updates: &mut dyn EventStream,
    output: &mut RunOutput,
    (lines, stops): (&mut TypedLines, &mut Stops),
    images: &mut Vec<Attachment>,
) -> Exit {
    let language = terminal::language();
    // The terminal discards a half-typed line at Ctrl-C and does not report whether there was one. So the first
    // Ctrl-C only prompts again, and a second one with no line in between leaves.
    let mut may_leave = !std::io::stdin().is_terminal();
    loop {
        terminal::out(&format!("\n{}", Say::TaskLabel.label(language)));
        let line = tokio::select! {
            line = lines.next() => line,
            stop = stops.next() => match stop {
                Stop::Interrupt if !may_leave => {
                    may_leave = true;
                    terminal::out(&format!("\n{}\n", Say::OnceMoreToLeave.text(language)));
                    continue;
                }
                Stop::Interrupt => None,
                Stop::Leave => {
                    terminal::out(&format!("\n{}\n", Say::Goodbye.text(language)));
                    return Exit::Cancelled;
                }
            },
        };
        may_leave = !std::io::stdin().is_terminal();
        let Some(line) = line else {
            terminal::out_line(Say::Goodbye.text(language));
            return Exit::Done;
        };
        match prompt_word(line.trim()).as_str() {
            "" => {}
            _ if is_leaving(line.trim()) => {
                terminal::out_line(Say::Goodbye.text(language));
                return Exit::Done;
            }
            "help" => terminal::out_line(Say::InteractiveHelp.text(language)),
            "clear" => terminal::out(if terminal::is_terminal() { "\u{1b}[2J\u{1b}[H" } else { "\n" }),
            "status" => print_status(host, session, language),
            _ => {
                // The images of the command line belong to the first task.
                let images = std::mem::take(images);
                let body = CommandBody::GiveTask { text: line.trim().to_owned(), images };
                match perform(host, session, updates, output, body, (Some(lines), stops)).await {
                    CommandOutcome::Ended(exit, seq) => {
                        show_last_summaries(host, session, updates, output, (exit, seq), stops).await;
                        host.archive().update_index(&session.id);
                        let shown = host.archive().events(&session.id).and_then(|events| {
                            output.closing(host, &session.id, &run_report(&events, None), exit)
                        });
                        if let Err(error) = shown {
                            return Exit::host(&error);
                        }
                    }
                    CommandOutcome::Refused(reason) => terminal::err(&format!("{reason}\n")),
                    CommandOutcome::Lost => return Exit::Failed,
                }
                if stops.is_leaving() {
                    terminal::out_line(Say::Goodbye.text(language));
                    return Exit::Cancelled;
                }
            }
        }
    }
}

/// A word of the prompt in the form that is compared. Users of other agents write it with a slash.
fn prompt_word(line: &str) -> String {
    let line = line.to_lowercase();
    line.strip_prefix('/').unwrap_or(&line).to_owned()
}

/// True if a line asks to leave.
pub(crate) fn is_leaving(line: &str) -> bool {
    matches!(prompt_word(line).as_str(), "exit" | "quit")
}

fn print_status(host: &Host, session: &OpenSession, language: Language) {
    let options = &session.options;
    let report = host.archive().events(&session.id).map(|events| run_report(&events, None));
    let rows = [
        (Say::Provider, options.model.provider.clone()),
        (Say::Model, options.model.model.clone()),
        (Say::Mode, options.mode.as_str().to_owned()),
        (Say::Tools, session.tools.to_string()),
        (Say::Folder, session.workspace.clone()),
        (Say::Session, session.id.to_string()),
        (Say::Tasks, report.map_or(0, |report| report.run.0).to_string()),
    ];
    for (name, value) in rows {
        terminal::out_line(&format!("{}{}", name.label(language), terminal::clean(&value)));
    }
}
