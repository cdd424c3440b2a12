//! Gives a session its command and shows updates until the run has ended.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lathe_host::{Host, OpenSession, TrajectoryFile, run_report_since};
use lathe_protocol::{
    Actor, ApprovalAsked, CallId, Command, CommandBody, CommandId, EventStream, Fact, Question,
    ReceiptAnswer, Seq, SessionId, Update,
};
use lathe_protocol::{Arguments, Block, Proposal, Raw};
use lathe_views::Tell;
use tokio::time::Instant;

use crate::exit::Exit;
use crate::terminal;
use crate::terminal::approval;
use crate::terminal::input::{TypedLines, ask_questions};
use crate::terminal::output::RunOutput;
use crate::terminal::stops::Stops;

/// The outcome of a command.
pub(crate) enum CommandOutcome {
    /// The run ended, with the event that ended it.
    Ended(Exit, Seq),
    Refused(String),
    /// The session stopped during the run; closing it reports the reason.
    Lost,
}

/// Files that a run leaves behind, under the names that the user gave.
#[derive(Default)]
pub(crate) struct RunFiles {
    pub(crate) patch: Option<PathBuf>,
    pub(crate) trajectory: Option<PathBuf>,
}

/// Gives a session its command, shows what happens until the run ends, and closes it.
pub(crate) async fn run_to_end(
    host: &Host,
    session: OpenSession,
    body: CommandBody,
    mut output: RunOutput,
    files: RunFiles,
) -> Exit {
    let mut stops = Stops::listen();
    output.opening(&session);
    output.print_remembered_facts(host.home().remembered_facts().as_ref());
    let id = session.id.clone();
    // A resumed run shows the session from its beginning; a new task shows only itself.
    let from = match (&body, host.archive().last_seq(&id)) {
        (CommandBody::GiveTask { .. }, Ok(last)) if !output.is_stream() => last,
        _ => Seq(0),
    };
    let before = host.archive().last_seq(&id).unwrap_or_default();
    let mut updates = session.handle().subscribe(from);
    let trajectory = files.trajectory.clone().map(|path| session.write_trajectory(path));
    if session.unfinished && matches!(body, CommandBody::GiveTask { .. }) {
        // The session's last task was interrupted: it is closed before the new task begins.
        session.handle().submit(command(CommandBody::Cancel)).await;
    }
    let performed = perform(host, &session, &mut *updates, &mut output, body, (None, &mut stops)).await;
    if let CommandOutcome::Ended(exit, seq) = &performed {
        show_last_summaries(host, &session, &mut *updates, &mut output, (*exit, *seq), &mut stops).await;
    }
    let closed = close(session, &mut stops).await;
    if let Some(trajectory) = trajectory {
        finish_trajectory(trajectory, &output).await;
    }
    if let Some(exit) = closed {
        return exit;
    }
    let exit = match performed {
        CommandOutcome::Ended(exit, _) => exit,
        CommandOutcome::Refused(reason) => return Exit::wrong_usage(&reason),
        CommandOutcome::Lost => Exit::Failed,
    };
    host.archive().update_index(&id);
    if let Some(path) = &files.patch {
        match write_patch(host, &id, path, &mut stops).await {
            Err(exit) => return exit,
            Ok(()) if output.is_text() => {
                let path = &path.display().to_string();
                terminal::out_line(&Tell::PatchSaved { path }.text(terminal::language()));
            }
            Ok(()) => {}
        }
    }
    let closed = host
        .archive()
        .last_run(&id)
        .and_then(|events| output.closing(host, &id, &run_report_since(&events, None, before), exit));
    match closed {
        Ok(()) => exit,
        Err(error) => Exit::host(&error),
    }
}

/// Waits for a trajectory and reports its path. If it cannot be written, a warning says so; the run and its journal
/// are complete without it.
pub(crate) async fn finish_trajectory(trajectory: TrajectoryFile, output: &RunOutput) {
    match trajectory.finish().await {
        Ok(path) if output.is_text() => {
            let path = &path.display().to_string();
            terminal::out_line(&Tell::TrajectorySaved { path }.text(terminal::language()));
        }
        Ok(_) => {}
        Err(error) => terminal::err(&format!("warning: the trajectory cannot be written: {error}\n")),
    }
}

async fn write_patch(host: &Host, id: &SessionId, path: &Path, stops: &mut Stops) -> Result<(), Exit> {
    let written = tokio::select! {
        written = host.archive().write_patch(id, path) => written.map_err(|error| Exit::host(&error))?,
        _ = stops.next() => return Err(Exit::Cancelled),
    };
    written
        .map_err(|error| Exit::failed(&format!("the patch cannot be written to {}: {error}", path.display())))
}

/// Waits for the summaries of the last steps of a run and shows them. A run that was stopped, or that has nothing
/// left to spend, waits for none.
pub(crate) async fn show_last_summaries(
    host: &Host,
    session: &OpenSession,
    updates: &mut dyn EventStream,
    output: &mut RunOutput,
    (exit, ended): (Exit, Seq),
    stops: &mut Stops,
) {
    match exit {
        Exit::Done | Exit::Failed | Exit::Denied => {}
        Exit::Usage
        | Exit::ModelUnavailable
        | Exit::UsedUp
        | Exit::DiskFull
        | Exit::Cancelled
        | Exit::Line(_) => return,
    }
    let has_more = tokio::select! {
        has_more = session.wait_for_summaries(ended) => has_more,
        _ = stops.next() => false,
    };
    let last = if has_more { host.archive().last_seq(&session.id).unwrap_or(ended) } else { ended };
    let mut shown = ended;
    while shown < last {
        let Some(update) = updates.next().await else { return };
        if let Update::Event(event) = &update {
            shown = event.seq;
        }
        show_update(output, &update, session).await;
    }
}

/// Submits a command and shows updates until the run that it began or resumed has finished. A user, if there is one,
/// answers the questions; a signal at a question stops the run like a signal anywhere else.
pub(crate) async fn perform(
    host: &Host,
    session: &OpenSession,
    updates: &mut dyn EventStream,
    output: &mut RunOutput,
    body: CommandBody,
    (mut person, stops): (Option<&mut TypedLines>, &mut Stops),
) -> CommandOutcome {
    stops.begin_task();
    let accepted = match session.handle().submit(command(body)).await.answer {
        ReceiptAnswer::Accepted { seq } => seq,
        ReceiptAnswer::Refused { reason } => return CommandOutcome::Refused(reason),
    };
    host.archive().update_index(&session.id);
    let mut proposed = HashMap::new();
    let mut patience = None;
    loop {
        tokio::select! {
            update = updates.next() => {
                let Some(update) = update else { return CommandOutcome::Lost };
                show_update(output, &update, session).await;
                if let (Some((call, seq, questions)), Some(lines)) = (asked_questions(&update), person.as_deref_mut()) {
                    let answers = tokio::select! {
                        answers = ask_questions(questions, lines) => Some(answers),
                        _ = stops.next() => None,
                    };
                    let body = match answers {
                        Some(answers) => CommandBody::Answer { call: call.clone(), question: seq, answers },
                        None => {
                            output.print_stopping();
                            CommandBody::Cancel
                        }
                    };
                    session.handle().submit(command(body)).await;
                }
                note_calls(&update, &mut proposed);
                if let (Some((call, seq, asked)), Some(lines)) = (approval_request(&update), person.as_deref_mut()) {
                    let arguments = proposed.get(call).filter(|_| !matches!(asked.what, Proposal::Command { .. }));
                    // The session may refuse the user's edit of a proposal; then the user is asked again.
                    loop {
                        let said = approval::ask(asked, arguments, (session, seq), lines, stops).await;
                        let edited = said.as_ref().is_some_and(|said| said.edited.is_some());
                        let body = match said {
                            Some(said) => CommandBody::Approve {
                                call: call.clone(),
                                question: seq,
                                answer: said.answer,
                                reason: said.reason,
                                edited: said.edited,
                            },
                            None => {
                                output.print_stopping();
                                CommandBody::Cancel
                            }
                        };
                        let receipt = session.handle().submit(command(body)).await;
                        let ReceiptAnswer::Refused { reason } = receipt.answer else { break };
                        terminal::err_line(&terminal::clean(&reason));
                        if !edited {
                            break;
                        }
                    }
                }
                if let Update::Event(event) = &update
                    && let Fact::TaskFinished(finished) = &event.fact
                    && event.seq > accepted
                {
                    return CommandOutcome::Ended(finished.ending.into(), event.seq);
                }
            }
            _ = stops.next() => match stops.count() {
                1 => {
                    output.print_stopping();
                    session.handle().submit(command(CommandBody::Cancel)).await;
                }
                // The running calls are being ended already, and their changes are recorded afterwards: that needs a
                // moment.
                2 => patience = Some(Instant::now() + PATIENCE),
                _ => end_now(),
            },
            () = sleep_until(patience) => end_now(),
        }
    }
}

/// Shows an update of a session that is open here.
async fn show_update(output: &mut RunOutput, update: &Update, session: &OpenSession) {
    // The model gets this in the result of the call; the user gets it once, whatever the output format.
    if let Update::Event(event) = update
        && matches!(event.fact, Fact::CallFinished(_))
    {
        for words in session.unread_ignore_files() {
            terminal::err(&format!("warning: {}\n", terminal::clean(&words)));
        }
    }
    output.update(update, session.handle()).await;
}

/// The longest wait for an orderly end after a second Ctrl-C.
const PATIENCE: Duration = Duration::from_secs(2);

async fn sleep_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Ends the process, and with it the supervisor and every process that it watches. Changes of a call that was cut off
/// are found when the session is next opened.
fn end_now() -> ! {
    std::process::exit(i32::from(Exit::Cancelled.number()))
}

/// Notes the arguments of the calls of an answer, because the user may edit them.
fn note_calls(update: &Update, proposed: &mut HashMap<CallId, Raw>) {
    let Update::Event(event) = update else { return };
    if let Fact::ModelAnswered(answered) = &event.fact {
        for block in &answered.blocks {
            if let Block::Call(call) = block
                && let Arguments::Json(arguments) = &call.arguments
            {
                proposed.insert(call.id.clone(), arguments.clone());
            }
        }
    }
}

/// The pending approval request in this update, if there is one.
fn approval_request(update: &Update) -> Option<(&CallId, Seq, &ApprovalAsked)> {
    match update {
        Update::Event(event) => match (&event.fact, &event.place.call) {
            (Fact::ApprovalAsked(asked), Some(call)) => Some((call, event.seq, asked)),
            _ => None,
        },
        Update::Frame(_) => None,
    }
}

/// The questions in this update that a call asks the user, if there are any.
fn asked_questions(update: &Update) -> Option<(&CallId, Seq, &[Question])> {
    match update {
        Update::Event(event) => match (&event.fact, &event.place.call) {
            (Fact::QuestionAsked(asked), Some(call)) => Some((call, event.seq, &asked.questions)),
            _ => None,
        },
        Update::Frame(_) => None,
    }
}

/// The longest that closing a session holds the user up. It takes moments; on a busy disk it may take longer.
const CLOSING: Duration = Duration::from_secs(30);

/// Closes a session and reports an error, if there is one. The ending of its run is in the journal by now, so a
/// session that does not close in time changes nothing about that: its supervisor ends the processes that it started.
pub(crate) async fn close(session: OpenSession, stops: &mut Stops) -> Option<Exit> {
    let mut closing = std::pin::pin!(tokio::time::timeout(CLOSING, session.close()));
    let closed = loop {
        tokio::select! {
            closed = &mut closing => break closed,
            _ = stops.next() => if stops.count() > 2 { end_now() },
        }
    };
    match closed {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Exit::host(&error)),
        Err(_) => {
            terminal::err(
                "warning: the session did not close in time; what it started is ended with this process\n",
            );
            None
        }
    }
}

/// A command of the user, with an id of its own.
pub(crate) fn command(body: CommandBody) -> Command {
    Command { id: CommandId::fresh(), actor: Actor::Person, body }
}
