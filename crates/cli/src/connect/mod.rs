//! `connect`: a session of a server, watched and steered from another terminal.
//!
//! The server has the truth. A session of the server is used like one of this process ([`RemoteHandle`]), and its
//! events are shown by the same console. This client sends the lines that the user types.
//!
//! A line is an answer only to a question that was asked before the line came. Lines that were typed ahead at a
//! terminal are discarded when a question is shown. A pipe has no such moment: the lines it held before a question
//! came up steer the run, except a mere yes or no, which is discarded. The one exception is a question that was open
//! before this client connected: a line that was piped into `connect --session` is meant for it.

mod address;
mod link;
mod questions;
mod remote;
mod signals;
mod wire;

use std::io::IsTerminal as _;

use clap::Args;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use lathe_protocol::{
    BoxFuture, CommandBody, Event, Fact, ReceiptAnswer, Seq, SessionHandle as _, SessionState, Update,
};
use lathe_views::{Language, Noun, Say, Tell};
use serde::Deserialize as _;
use serde_json::json;

use self::address::Address;
use self::questions::{LineMeaning, PendingQuestions, QuestionChange, is_bare_answer};
use self::remote::{News, RemoteEnd, RemoteHandle};
use self::signals::{ClientStop, Signals};
use crate::args::OutputArg;
use crate::commands::interactive::is_leaving;
use crate::drive::command;
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::input::TypedLines;
use crate::terminal::output::RunOutput;

#[derive(Args)]
pub(crate) struct ConnectArgs {
    /// Address of the server. The token is best in LATHE_TOKEN or --token-file: other users can read a command line
    url: String,
    /// The task; without it and without --session the sessions are listed
    task: Option<String>,
    /// A session to watch, or to give the task to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Folder to work in on the server: one of its roots or a folder inside
    #[arg(long, value_name = "DIR")]
    working_dir: Option<String>,
    /// File that holds the token; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    token_file: Option<std::path::PathBuf>,
    /// Certificate in PEM that the server's certificate is checked against, instead of those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
}

/// The token in a file, or in the first line of standard input.
fn read_token(file: &std::path::Path) -> Result<String, String> {
    let read = if file == std::path::Path::new("-") {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    } else {
        std::fs::read_to_string(file)
    };
    let text = read.map_err(|error| format!("the token in {} cannot be read: {error}", file.display()))?;
    Ok(text.trim().to_owned())
}

pub(crate) async fn connect(args: ConnectArgs) -> Exit {
    let token = match args.token_file.as_deref().map(read_token).transpose() {
        Ok(token) => token.or_else(|| std::env::var("LATHE_TOKEN").ok().filter(|token| !token.is_empty())),
        Err(reason) => return Exit::wrong_usage(&reason),
    };
    if args.url.contains("#token=") {
        terminal::err(
            "warning: the token stood in the command line, where other users of this machine could read it for a moment; put it into LATHE_TOKEN or --token-file\n",
        );
    }
    let address = match Address::read(&args.url, token, args.ca.as_deref()) {
        Ok(address) => address,
        Err(reason) => return Exit::wrong_usage(&reason),
    };
    if args.task.is_none() && args.session.is_none() {
        return list_sessions(&address).await;
    }
    let watched_only = args.task.is_none();
    let first = match (&args.task, &args.session) {
        (Some(task), None) => Some(json!({ "task": task, "working_dir": args.working_dir })),
        (Some(task), Some(id)) => Some(json!({ "task": task, "session_id": id })),
        (None, _) => None,
    };
    let client = Client {
        handle: RemoteHandle::new(address, args.session.clone(), first),
        output: RunOutput::new(OutputArg::Text),
        questions: PendingQuestions::default(),
        early_lines: watched_only.then(Vec::new),
        receipts: FuturesUnordered::new(),
        at_terminal: std::io::stdin().is_terminal(),
        // A task that was sent counts as a run: the end of the input must not end the client before the run has
        // begun.
        is_running: !watched_only,
        awaits_start: !watched_only,
        gave_task: false,
        exit: None,
        may_stay: watched_only && std::io::stdin().is_terminal(),
        language: terminal::language(),
    };
    client.work().await
}

/// Lists the sessions of a server.
async fn list_sessions(address: &Address) -> Exit {
    let rows = match address.get("/api/sessions").await {
        Ok(rows) => rows,
        Err(reason) => return Exit::failed(&reason),
    };
    let rows = rows.as_array().cloned().unwrap_or_default();
    let language = terminal::language();
    if rows.is_empty() {
        terminal::out_line(Say::NoSessions.text(language));
    }
    for row in rows {
        let text = |key: &str| terminal::clean(row[key].as_str().unwrap_or_default());
        // A state that only servers have is shown as the server names it.
        let state = SessionState::deserialize(&row["state"]).map(|state| Say::state(state).text(language));
        let steps = row["steps"].as_u64().unwrap_or(0);
        let line = format!(
            "{}  {}  {steps:>3} {}  {}  {}",
            text("id"),
            terminal::padded(state.unwrap_or(&text("state")), 11),
            Noun::Step.word(steps, language),
            text("workspace"),
            text("title")
        );
        terminal::out_line(&line);
    }
    Exit::Done
}

/// A refused command, and whether it was a task.
struct RefusedCommand {
    reason: String,
    was_task: bool,
}

struct Client {
    handle: RemoteHandle,
    output: RunOutput,
    questions: PendingQuestions,
    /// Lines that came before the past of the session was shown completely; None after that.
    early_lines: Option<Vec<String>>,
    /// The receipts of commands that were sent; None for each command that was accepted.
    receipts: FuturesUnordered<BoxFuture<'static, Option<RefusedCommand>>>,
    at_terminal: bool,
    is_running: bool,
    /// A task was sent, and no event of its run has come so far.
    awaits_start: bool,
    /// A task was sent after the client had connected.
    gave_task: bool,
    exit: Option<Exit>,
    /// The client stays after a run has ended: a user at a terminal may give another task.
    may_stay: bool,
    language: Language,
}

impl Client {
    async fn work(mut self) -> Exit {
        let (mut lines, mut stops) = (TypedLines::read(), Signals::listen());
        let mut stream = self.handle.stream(Seq(0));
        let mut input_ended = false;
        loop {
            let ended = tokio::select! {
                news = stream.next_news() => match news {
                    Some(news) => self.show_news(news, &mut lines).await,
                    None => Some(Exit::Failed),
                },
                line = lines.next(), if !input_ended => match line {
                    Some(line) if self.may_stay && !self.is_running && is_leaving(line.trim()) => {
                        Some(self.exit.unwrap_or(Exit::Done))
                    }
                    Some(line) => {
                        self.handle_line(line.trim());
                        None
                    }
                    None if self.may_stay && !self.is_running => Some(self.exit.unwrap_or(Exit::Done)),
                    // The input has ended; the run continues.
                    None => {
                        input_ended = true;
                        None
                    }
                },
                Some(refused) = self.receipts.next() => refused.and_then(|refused| self.report_refusal(&refused)),
                stop = stops.next() => self.handle_signal(stop),
            };
            if let Some(exit) = ended {
                return exit;
            }
        }
    }

    /// Handles a signal. Ctrl-C cancels the run, once; the signals that end a client leave the run alone.
    fn handle_signal(&mut self, stop: ClientStop) -> Option<Exit> {
        let session = self.handle.session();
        match (stop, session) {
            (ClientStop::Cancel { first: true }, Some(_)) if self.is_running => {
                terminal::err(&format!("\n{}\n", Say::Cancelling.text(self.language)));
                self.send(CommandBody::Cancel);
                None
            }
            (ClientStop::Cancel { .. }, _) => Some(Exit::Cancelled),
            (ClientStop::Leave(code), Some(id)) => {
                let line = Tell::LeftRunning { id: &terminal::clean(&id) }.text(self.language);
                terminal::err(&format!("\n{line}\n"));
                Some(Exit::Line(code))
            }
            (ClientStop::Leave(code), None) => {
                terminal::err(&format!("\n{}\n", Say::LeftEarly.text(self.language)));
                Some(Exit::Line(code))
            }
        }
    }

    fn send(&mut self, body: CommandBody) {
        let was_task = matches!(body, CommandBody::GiveTask { .. });
        self.gave_task |= was_task;
        let (handle, command) = (self.handle.clone(), command(body));
        self.receipts.push(Box::pin(async move {
            match handle.submit(command).await.answer {
                ReceiptAnswer::Accepted { .. } => None,
                ReceiptAnswer::Refused { reason } => Some(RefusedCommand { reason, was_task }),
            }
        }));
    }

    /// Reports a refused command. A refused task is not waited for.
    fn report_refusal(&mut self, refused: &RefusedCommand) -> Option<Exit> {
        terminal::err_line(&terminal::clean(&refused.reason));
        if refused.was_task && std::mem::take(&mut self.awaits_start) {
            self.is_running = false;
            return (!self.may_stay).then_some(Exit::Failed);
        }
        None
    }

    /// Sends a line with the meaning it has now: an answer, a message to the run, or a new task.
    fn handle_line(&mut self, line: &str) {
        if let Some(held) = &mut self.early_lines {
            held.push(line.to_owned());
            return;
        }
        match self.questions.answer(line) {
            LineMeaning::Answer(answer) => {
                self.send(answer);
                self.show_question();
            }
            LineMeaning::Part => self.show_question(),
            LineMeaning::NoAnswer if line.is_empty() => {}
            LineMeaning::NoAnswer if self.at_terminal && !self.questions.is_empty() => {
                terminal::out(&self.questions.hint(self.language));
            }
            LineMeaning::NoAnswer => self.send_line(line),
        }
    }

    /// Sends a line that is not an answer.
    fn send_line(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if !self.at_terminal && is_bare_answer(line) {
            let asked = Tell::NothingAsked { line: &terminal::clean(line) };
            terminal::err_line(&asked.text(self.language));
            return;
        }
        self.send(match self.is_running {
            true => CommandBody::Steer { text: line.to_owned() },
            false => CommandBody::GiveTask { text: line.to_owned(), images: Vec::new() },
        });
    }

    /// Shows a question that has come up. Lines that were typed before it was shown are not answers to it.
    fn show_change(&mut self, changed: &QuestionChange, lines: &mut TypedLines) {
        // Questions of the past are not asked again while the past is shown.
        if self.early_lines.is_some() {
            return;
        }
        match changed {
            QuestionChange::Nothing => {}
            QuestionChange::Shown => {
                let early = lines.take_typed();
                if !self.at_terminal {
                    early.iter().for_each(|line| self.send_line(line.trim()));
                }
                self.show_question();
            }
            QuestionChange::Elsewhere => {
                if self.at_terminal {
                    lines.discard();
                }
                terminal::out(&format!("\n{}\n", Say::AnsweredElsewhere.text(self.language)));
                self.show_question();
            }
        }
    }

    fn show_question(&self) {
        if self.questions.is_empty() {
            return;
        }
        terminal::out(&self.questions.text(self.language));
        if !self.at_terminal {
            terminal::out(&format!("\n{}\n", Say::WaitsForPerson.text(self.language)));
        }
    }

    /// Shows news of the stream. Returns the exit code if the client ends with it.
    async fn show_news(&mut self, news: News, lines: &mut TypedLines) -> Option<Exit> {
        match news {
            News::Update(update) => {
                self.output.update(&update, &self.handle).await;
                match &update {
                    Update::Event(event) => return self.apply_event(event, lines),
                    Update::Frame(_) => {}
                }
            }
            News::Session(id) => {
                terminal::err(&format!("{} {}\n", Say::Session.text(self.language), terminal::clean(&id)));
            }
            News::Status(state) if !self.awaits_start => return self.apply_status(&state, lines),
            News::Status(_) => {}
            News::Notice { message, is_error } => {
                terminal::err_line(&terminal::clean(&message));
                // No run was begun.
                if is_error && self.handle.session().is_none() {
                    return Some(Exit::Usage);
                }
            }
            News::Disconnected(reason) => {
                let lost = Tell::ConnectionLost { reason: &terminal::clean(&reason) };
                terminal::err_line(&lost.text(self.language));
            }
            News::Reconnected => terminal::err_line(Say::Reconnected.text(self.language)),
            News::Ended(end) => return Some(self.report_end(&end)),
        }
        None
    }

    fn report_end(&self, end: &RemoteEnd) -> Exit {
        match end {
            RemoteEnd::Refused(reason) => Exit::failed(&terminal::clean(reason)),
            RemoteEnd::Unreachable(reason) => {
                Exit::failed(&format!("the server cannot be reached: {}", terminal::clean(reason)))
            }
            RemoteEnd::Gone(reason) => {
                let session = self.handle.session().unwrap_or_default();
                Exit::failed(&format!(
                    "the server is gone ({}). If the run goes on there, `lathe connect URL --session {session}` shows it",
                    terminal::clean(reason)
                ))
            }
        }
    }

    fn apply_event(&mut self, event: &Event, lines: &mut TypedLines) -> Option<Exit> {
        let changed = self.questions.apply(event);
        self.show_change(&changed, lines);
        match &event.fact {
            Fact::TaskGiven(_) | Fact::RunResumed(_) => (self.is_running, self.awaits_start) = (true, false),
            Fact::TaskFinished(finished) => {
                self.is_running = false;
                self.questions.clear();
                self.exit = Some(Exit::from(finished.ending));
                // Only the status tells whether more runs follow in the past that is being shown.
                if !self.may_stay && self.early_lines.is_none() {
                    return self.exit;
                }
            }
            _ => {}
        }
        None
    }

    fn apply_status(&mut self, state: &str, lines: &mut TypedLines) -> Option<Exit> {
        self.is_running = state == "running";
        if let Some(held) = self.early_lines.take() {
            self.caught_up(held, lines);
        }
        if state == "parked" {
            terminal::err_line(Say::Parked.text(self.language));
        }
        if self.is_running || self.may_stay {
            return None;
        }
        Some(match state {
            "parked" | "interrupted" => Exit::Failed,
            _ => self.exit.unwrap_or(Exit::Done),
        })
    }

    /// Handles the lines that were held back until the past was shown. An open question was asked before this client
    /// connected, so lines of a pipe are meant for it; lines typed at a terminal came before the user saw the
    /// question.
    fn caught_up(&mut self, held: Vec<String>, lines: &mut TypedLines) {
        self.show_question();
        for line in held {
            match self.at_terminal {
                false => self.handle_line(&line),
                true if self.questions.is_empty() => self.send_line(&line),
                true => {}
            }
        }
        if self.at_terminal && !self.questions.is_empty() {
            lines.discard();
        }
        if self.gave_task {
            (self.is_running, self.awaits_start) = (true, true);
        }
    }
}
