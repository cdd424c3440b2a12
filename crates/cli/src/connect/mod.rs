//! `connect`: a session of a server, watched and steered from a terminal elsewhere.
//!
//! The server has the truth. A session of it is held like one of this process ([`RemoteHandle`]), and its events are shown by
//! the same console. This client sends what is typed.
//!
//! A line is an answer only to a question that was asked before the line came. What is typed ahead at a terminal is forgotten
//! when a question is shown. A pipe has no such moment: what it held before a question came up speaks to the run, or, if it
//! is only a yes or a no, to nobody. The one exception is a question that was open before this client came: a line that was
//! piped into `connect --session` is there for it.

mod address;
mod asked;
mod link;
mod remote;
mod signals;
mod wire;

use std::io::IsTerminal as _;

use clap::Args;
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use lathe_protocol::{BoxFuture, CommandBody, Event, Fact, ReceiptAnswer, Seq, SessionHandle as _, Update};
use lathe_views::{Language, Say, Tell};
use serde_json::json;

use self::address::Address;
use self::asked::{Meant, QuestionChange, Questions, is_bare_answer};
use self::remote::{News, Over, RemoteHandle};
use self::signals::{ClientStop, Signals};
use crate::args::OutputArg;
use crate::commands::interactive::is_leaving;
use crate::drive::command;
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::RunOutput;
use crate::terminal::question::Lines;

#[derive(Args)]
pub(crate) struct ConnectArgs {
    /// Address of the server. The token is best in LATHE_TOKEN or --token-file: other users can read a command line
    url: String,
    /// What is to be done; without it and without --session the sessions are listed
    task: Option<String>,
    /// A session to watch, or to give the task to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Where to work on the server: one of its roots or a folder inside
    #[arg(long, value_name = "DIR")]
    working_dir: Option<String>,
    /// File that holds the token; `-` reads it from standard input
    #[arg(long, value_name = "FILE")]
    token_file: Option<std::path::PathBuf>,
    /// Certificate in PEM that the server's is checked by, instead of those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
}

/// The token in a file, or in the first line of standard input.
fn token_of(file: &std::path::Path) -> Result<String, String> {
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
    let token = match args.token_file.as_deref().map(token_of).transpose() {
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
        return list(&address).await;
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
        asked: Questions::default(),
        held: watched_only.then(Vec::new),
        receipts: FuturesUnordered::new(),
        at_terminal: std::io::stdin().is_terminal(),
        // A task that is on its way counts as a run: nobody typing must not end it before it has begun.
        is_running: !watched_only,
        awaits_start: !watched_only,
        gave_task: false,
        exit: None,
        may_stay: watched_only && std::io::stdin().is_terminal(),
        language: terminal::language(),
    };
    client.work().await
}

/// The sessions of a server.
async fn list(address: &Address) -> Exit {
    let rows = match address.get("/api/sessions").await {
        Ok(rows) => rows,
        Err(reason) => return Exit::failed(&reason),
    };
    let rows = rows.as_array().cloned().unwrap_or_default();
    if rows.is_empty() {
        terminal::out(&format!("{}\n", Say::NoSessions.text(terminal::language())));
    }
    for row in rows {
        let text = |key: &str| terminal::clean(row[key].as_str().unwrap_or_default());
        let line = format!(
            "{}  {:<11}  {:>3} {}  {}  {}\n",
            text("id"),
            text("state"),
            row["steps"].as_u64().unwrap_or(0),
            Say::steps(row["steps"].as_u64().unwrap_or(0)).text(terminal::language()),
            text("workspace"),
            text("title")
        );
        terminal::out(&line);
    }
    Exit::Done
}

/// A refused command, as far as it matters here: whether it was a task.
struct Refused {
    reason: String,
    was_task: bool,
}

struct Client {
    handle: RemoteHandle,
    output: RunOutput,
    asked: Questions,
    /// Lines that came before all that had happened was shown; none when it has been.
    held: Option<Vec<String>>,
    /// Commands that were sent, until their receipts come; none for those that were taken.
    receipts: FuturesUnordered<BoxFuture<'static, Option<Refused>>>,
    at_terminal: bool,
    is_running: bool,
    /// A task was sent, and nothing of its run was seen so far.
    awaits_start: bool,
    /// A task was sent after the beginning.
    gave_task: bool,
    exit: Option<Exit>,
    /// Somebody at a terminal goes on when a run has ended.
    may_stay: bool,
    language: Language,
}

impl Client {
    async fn work(mut self) -> Exit {
        let (mut lines, mut stops) = (Lines::read(), Signals::listen());
        let mut stream = self.handle.stream(Seq(0));
        let mut input_ended = false;
        loop {
            let ended = tokio::select! {
                news = stream.next_news() => match news {
                    Some(news) => self.take(news, &mut lines).await,
                    None => Some(Exit::Failed),
                },
                line = lines.next(), if !input_ended => match line {
                    Some(line) if self.may_stay && !self.is_running && is_leaving(line.trim()) => {
                        Some(self.exit.unwrap_or(Exit::Done))
                    }
                    Some(line) => {
                        self.typed(line.trim());
                        None
                    }
                    None if self.may_stay && !self.is_running => Some(self.exit.unwrap_or(Exit::Done)),
                    // Nobody types any more; the run goes on.
                    None => {
                        input_ended = true;
                        None
                    }
                },
                Some(refused) = self.receipts.next() => refused.and_then(|refused| self.refused(&refused)),
                stop = stops.next() => self.stopped(stop),
            };
            if let Some(exit) = ended {
                return exit;
            }
        }
    }

    /// Ctrl-C is about the run, once. Whoever wants a client to end does not mean the run.
    fn stopped(&mut self, stop: ClientStop) -> Option<Exit> {
        let session = self.handle.session();
        match (stop, session) {
            (ClientStop::Cancel { first: true }, Some(_)) if self.is_running => {
                terminal::err(&format!("\n{}\n", Say::Cancelling.text(self.language)));
                self.send(CommandBody::Cancel);
                None
            }
            (ClientStop::Cancel { .. }, _) => Some(Exit::Cancelled),
            (ClientStop::Leave(code), Some(id)) => {
                let words = Tell::LeftRunning { id: &terminal::clean(&id) }.text(self.language);
                terminal::err(&format!("\n{words}\n"));
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
                ReceiptAnswer::Refused { reason } => Some(Refused { reason, was_task }),
            }
        }));
    }

    /// A command was refused. A task that was refused is not waited for.
    fn refused(&mut self, refused: &Refused) -> Option<Exit> {
        terminal::err(&format!("{}\n", terminal::clean(&refused.reason)));
        if refused.was_task && std::mem::take(&mut self.awaits_start) {
            self.is_running = false;
            return (!self.may_stay).then_some(Exit::Failed);
        }
        None
    }

    /// Does what a line means now: an answer, a word to the run, or a new task.
    fn typed(&mut self, line: &str) {
        if let Some(held) = &mut self.held {
            held.push(line.to_owned());
            return;
        }
        match self.asked.answer(line) {
            Meant::Answer(answer) => {
                self.send(answer);
                self.show_question();
            }
            Meant::Part => self.show_question(),
            Meant::NoAnswer if line.is_empty() => {}
            Meant::NoAnswer if self.at_terminal && !self.asked.is_empty() => {
                terminal::out(&self.asked.hint(self.language));
            }
            Meant::NoAnswer => self.told(line),
        }
    }

    /// Sends a line that is no answer.
    fn told(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if !self.at_terminal && is_bare_answer(line) {
            let words = Tell::NothingAsked { line: &terminal::clean(line) }.text(self.language);
            terminal::err(&format!("{words}\n"));
            return;
        }
        self.send(match self.is_running {
            true => CommandBody::Steer { text: line.to_owned() },
            false => CommandBody::GiveTask { text: line.to_owned(), images: Vec::new() },
        });
    }

    /// A question has come up. What was typed before it was seen is no answer to it.
    fn asked(&mut self, changed: &QuestionChange, lines: &mut Lines) {
        // While the past is shown, its questions are not asked again.
        if self.held.is_some() {
            return;
        }
        match changed {
            QuestionChange::Nothing => {}
            QuestionChange::Shown => {
                let early = lines.so_far();
                if !self.at_terminal {
                    early.iter().for_each(|line| self.told(line.trim()));
                }
                self.show_question();
            }
            QuestionChange::Elsewhere => {
                if self.at_terminal {
                    lines.forget();
                }
                terminal::out(&format!("\n{}\n", Say::AnsweredElsewhere.text(self.language)));
                self.show_question();
            }
        }
    }

    fn show_question(&self) {
        if self.asked.is_empty() {
            return;
        }
        terminal::out(&self.asked.shown(self.language));
        if !self.at_terminal {
            terminal::out(&format!("\n{}\n", Say::WaitsForPerson.text(self.language)));
        }
    }

    /// Shows news. Gives the end of the program where it is one.
    async fn take(&mut self, news: News, lines: &mut Lines) -> Option<Exit> {
        match news {
            News::Update(update) => {
                self.output.update(&update, &self.handle).await;
                match &update {
                    Update::Event(event) => return self.event(event, lines),
                    Update::Frame(_) => {}
                }
            }
            News::Session(id) => {
                terminal::err(&format!("{} {}\n", Say::Session.text(self.language), terminal::clean(&id)));
            }
            News::Status(state) if !self.awaits_start => return self.status(&state, lines),
            News::Status(_) => {}
            News::Words { message, is_error } => {
                terminal::err(&format!("{}\n", terminal::clean(&message)));
                // Nothing was begun.
                if is_error && self.handle.session().is_none() {
                    return Some(Exit::Usage);
                }
            }
            News::Lost(reason) => {
                let words = Tell::ConnectionLost { reason: &terminal::clean(&reason) }.text(self.language);
                terminal::err(&format!("{words}\n"));
            }
            News::Back => terminal::err(&format!("{}\n", Say::Reconnected.text(self.language))),
            News::Over(over) => return Some(self.over(&over)),
        }
        None
    }

    fn over(&self, over: &Over) -> Exit {
        match over {
            Over::Refused(reason) => Exit::failed(&terminal::clean(reason)),
            Over::Unreachable(reason) => {
                Exit::failed(&format!("the server cannot be reached: {}", terminal::clean(reason)))
            }
            Over::Gone(reason) => {
                let session = self.handle.session().unwrap_or_default();
                Exit::failed(&format!(
                    "the server is gone ({}). If the run goes on there, `lathe connect URL --session {session}` shows it",
                    terminal::clean(reason)
                ))
            }
        }
    }

    fn event(&mut self, event: &Event, lines: &mut Lines) -> Option<Exit> {
        let changed = self.asked.take(event);
        self.asked(&changed, lines);
        match &event.fact {
            Fact::TaskGiven(_) | Fact::RunResumed(_) => (self.is_running, self.awaits_start) = (true, false),
            Fact::TaskFinished(finished) => {
                self.is_running = false;
                self.asked.clear();
                self.exit = Some(Exit::from(finished.ending));
                // Whether more runs follow what is shown, only the status says.
                if !self.may_stay && self.held.is_none() {
                    return self.exit;
                }
            }
            _ => {}
        }
        None
    }

    fn status(&mut self, state: &str, lines: &mut Lines) -> Option<Exit> {
        self.is_running = state == "running";
        if let Some(held) = self.held.take() {
            self.caught_up(held, lines);
        }
        if state == "parked" {
            terminal::err(&format!("{}\n", Say::Parked.text(self.language)));
        }
        if self.is_running || self.may_stay {
            return None;
        }
        Some(match state {
            "parked" | "interrupted" => Exit::Failed,
            _ => self.exit.unwrap_or(Exit::Done),
        })
    }

    /// All that had happened is shown now. A question that is open was asked before this client came, so lines of a pipe are
    /// there for it; what was typed at a terminal came before its question was seen.
    fn caught_up(&mut self, held: Vec<String>, lines: &mut Lines) {
        self.show_question();
        for line in held {
            match self.at_terminal {
                false => self.typed(&line),
                true if self.asked.is_empty() => self.told(&line),
                true => {}
            }
        }
        if self.at_terminal && !self.asked.is_empty() {
            lines.forget();
        }
        if self.gave_task {
            (self.is_running, self.awaits_start) = (true, true);
        }
    }
}
