//! `connect`: a session of a server, watched and steered from a terminal elsewhere.
//!
//! The server has the truth. This client shows bubbles as they come and sends what is typed; when the connection drops it
//! comes back by its cursor, and sends again what was not acknowledged: commands have ids, so none counts twice.
//!
//! A line is an answer only to a question that was asked before the line came. What is typed ahead at a terminal is forgotten
//! when a question is shown. A pipe has no such moment: what it held before a question came up speaks to the run, or, if it
//! is only a yes or a no, to nobody. The one exception is a question that was open before this client came: a line that was
//! piped into `connect --session` is there for it.

mod address;
mod asked;
mod link;
mod signals;

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;
use lathe_protocol::Ending;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::address::Address;
use self::asked::{Changed, Meant, Questions, is_bare_answer};
use self::link::{Link, LinkError};
use self::signals::{Signals, Stop};
use crate::exit::Exit;
use crate::interactive::is_leaving;
use crate::question::Lines;
use crate::term;
use crate::words::{Language, Say};

/// Between two attempts to come back, at first and at most.
const FIRST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(10);
/// Attempts before the server is given up.
const ATTEMPTS: u32 = 40;

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
        term::err(
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
    let mut client = Client {
        address,
        session: args.session.clone(),
        cursor: None,
        waiting: Vec::new(),
        shown: HashMap::new(),
        asked: Questions::default(),
        held: watched_only.then(Vec::new),
        outgoing: Vec::new(),
        at_terminal: std::io::stdin().is_terminal(),
        is_running: !watched_only,
        awaits_start: false,
        exit: None,
        may_stay: watched_only && std::io::stdin().is_terminal(),
        language: Language::find(),
    };
    let first = match (&args.task, &args.session) {
        (Some(task), None) => Some(json!({ "task": task, "working_dir": args.working_dir })),
        (Some(task), Some(id)) => Some(json!({ "task": task, "session_id": id })),
        (None, _) => None,
    };
    client.work(first).await
}

/// The sessions of a server.
async fn list(address: &Address) -> Exit {
    let rows = match address.get("/api/sessions").await {
        Ok(rows) => rows,
        Err(reason) => return Exit::failed(&reason),
    };
    let rows = rows.as_array().cloned().unwrap_or_default();
    if rows.is_empty() {
        term::out(&format!("{}\n", Say::NoSessions.text(Language::find())));
    }
    for row in rows {
        let text = |key: &str| term::clean(row[key].as_str().unwrap_or_default());
        let line = format!(
            "{}  {:<11}  {:>3} {}  {}  {}\n",
            text("id"),
            text("state"),
            row["steps"].as_u64().unwrap_or(0),
            Say::steps(row["steps"].as_u64().unwrap_or(0)).text(Language::find()),
            text("workspace"),
            text("title")
        );
        term::out(&line);
    }
    Exit::Done
}

struct Client {
    address: Address,
    session: Option<String>,
    cursor: Option<String>,
    /// What was sent and not acknowledged, by its id.
    waiting: Vec<(String, Value)>,
    /// Each bubble as it was last printed.
    shown: HashMap<String, String>,
    asked: Questions,
    /// Lines that came before all that had happened was shown; none when it has been.
    held: Option<Vec<String>>,
    /// What is to be sent.
    outgoing: Vec<Value>,
    at_terminal: bool,
    is_running: bool,
    /// A task was sent, and nothing of its run was seen so far.
    awaits_start: bool,
    exit: Option<Exit>,
    /// Somebody at a terminal goes on when a run has ended.
    may_stay: bool,
    language: Language,
}

/// How a connection ended.
enum Left {
    /// There is nothing more to do.
    With(Exit),
    Dropped(String),
}

impl Client {
    async fn work(&mut self, mut first: Option<Value>) -> Exit {
        let (mut lines, mut stops) = (Lines::read(), Signals::listen());
        let (mut wait, mut attempts) = (FIRST, 0);
        loop {
            let query = self.query(first.is_some());
            let opened = tokio::select! {
                opened = Link::open(&self.address, &query) => opened,
                stop = stops.next() => return self.stopped(stop),
            };
            let reason = match opened {
                Ok(mut link) => {
                    if attempts > 0 {
                        term::err(&format!("{}\n", Say::Reconnected.text(self.language)));
                    }
                    (wait, attempts) = (FIRST, 0);
                    match self.watch(&mut link, first.take(), &mut lines, &mut stops).await {
                        Left::With(exit) => return exit,
                        Left::Dropped(reason) => reason,
                    }
                }
                Err(LinkError::Refused(reason)) => return Exit::failed(&term::clean(&reason)),
                Err(LinkError::Dropped(reason)) => reason,
            };
            let Some(session) = self.session.clone().filter(|_| first.is_none()) else {
                return Exit::failed(&format!("the server cannot be reached: {}", term::clean(&reason)));
            };
            attempts += 1;
            if attempts > ATTEMPTS {
                return Exit::failed(&format!(
                    "the server is gone ({}). If the run goes on there, `lathe connect URL --session {session}` shows it",
                    term::clean(&reason)
                ));
            }
            if attempts == 1 {
                term::err(&format!(
                    "{} ({})\n",
                    Say::ConnectionLost.text(self.language),
                    term::clean(&reason)
                ));
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                stop = stops.next() => return self.stopped(stop),
            }
            wait = (wait * 2).min(LONGEST);
        }
    }

    /// Goes away. Whoever wants a client to end does not mean the run.
    fn stopped(&self, stop: Stop) -> Exit {
        let Stop::Leave(code) = stop else { return Exit::Cancelled };
        match &self.session {
            Some(id) => term::err(&format!(
                "\n{}: lathe connect URL --session {}\n",
                Say::LeftRunning.text(self.language),
                term::clean(id)
            )),
            None => term::err(&format!("\n{}\n", Say::LeftEarly.text(self.language))),
        }
        Exit::Line(code)
    }

    /// A run is begun by the first message; else a session is attached to, from where it was seen.
    fn query(&self, begins: bool) -> String {
        match (&self.session, begins) {
            (Some(id), false) => {
                format!("?session_id={id}&from={}", self.cursor.as_deref().unwrap_or_default())
            }
            (Some(_) | None, _) => String::new(),
        }
    }

    async fn watch(
        &mut self,
        link: &mut Link,
        first: Option<Value>,
        lines: &mut Lines,
        stops: &mut Signals,
    ) -> Left {
        // A task that is on its way counts as a run: nobody typing must not end it before it has begun.
        self.is_running |= first.is_some();
        self.awaits_start |= first.is_some();
        let again = self.waiting.iter().map(|(_, message)| message.clone());
        for message in first.into_iter().chain(again) {
            if let Err(reason) = link.say(&message).await {
                return Left::Dropped(reason);
            }
        }
        let ended = CancellationToken::new();
        loop {
            tokio::select! {
                frame = link.next() => match frame {
                    Ok(Some(frame)) => {
                        if let Some(exit) = self.take(&frame, lines) {
                            return Left::With(exit);
                        }
                    }
                    Ok(None) => {}
                    Err(reason) => return Left::Dropped(reason),
                },
                line = lines.next(), if !ended.is_cancelled() => match line {
                    Some(line) if self.may_stay && !self.is_running && is_leaving(line.trim()) => {
                        return Left::With(self.exit.unwrap_or(Exit::Done));
                    }
                    Some(line) => self.typed(line.trim()),
                    None if self.may_stay && !self.is_running => return Left::With(self.exit.unwrap_or(Exit::Done)),
                    // Nobody types any more; the run goes on.
                    None => ended.cancel(),
                },
                stop = stops.next() => {
                    if !self.is_running || !matches!(stop, Stop::Cancel { first: true }) {
                        return Left::With(self.stopped(stop));
                    }
                    term::err(&format!("\n{}\n", Say::Cancelling.text(self.language)));
                    self.outgoing.push(json!({ "type": "cancel" }));
                }
            }
            let outgoing = std::mem::take(&mut self.outgoing);
            let kept: Vec<Value> = outgoing.into_iter().map(|message| self.keep(message)).collect();
            for message in kept {
                if let Err(reason) = link.say(&message).await {
                    return Left::Dropped(reason);
                }
            }
        }
    }

    /// Gives a message an id, and keeps it until it is acknowledged.
    fn keep(&mut self, mut message: Value) -> Value {
        use std::hash::{BuildHasher, RandomState};
        let id = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        message["id"] = Value::String(id.clone());
        self.waiting.push((id, message.clone()));
        message
    }

    /// What a line means now: an answer, a word to the run, or a new task.
    fn typed(&mut self, line: &str) {
        if let Some(held) = &mut self.held {
            held.push(line.to_owned());
            return;
        }
        match self.asked.answer(line) {
            Meant::Answer(answer) => {
                self.outgoing.push(answer);
                self.show_question();
            }
            Meant::Part => self.show_question(),
            Meant::NoAnswer if line.is_empty() => {}
            Meant::NoAnswer if self.at_terminal && !self.asked.is_empty() => {
                term::out(&self.asked.hint(self.language));
            }
            Meant::NoAnswer => self.told(line),
        }
    }

    /// A line that is no answer.
    fn told(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if !self.at_terminal && is_bare_answer(line) {
            let words = Say::NothingAsked.text(self.language);
            term::err(&format!("`{}` {words}\n", term::clean(line)));
            return;
        }
        self.outgoing.push(match self.is_running {
            true => json!({ "type": "input", "text": line }),
            false => json!({ "type": "task", "task": line }),
        });
    }

    /// A question has come up. What was typed before it was seen is no answer to it.
    fn asked(&mut self, changed: &Changed, lines: &mut Lines) {
        // While the past is shown, its questions are not asked again.
        if self.held.is_some() {
            return;
        }
        match changed {
            Changed::Nothing => {}
            Changed::Shown => {
                let early = lines.so_far();
                if !self.at_terminal {
                    early.iter().for_each(|line| self.told(line.trim()));
                }
                self.show_question();
            }
            Changed::Elsewhere => {
                if self.at_terminal {
                    lines.forget();
                }
                term::out(&format!("\n{}\n", Say::AnsweredElsewhere.text(self.language)));
                self.show_question();
            }
        }
    }

    fn show_question(&self) {
        if self.asked.is_empty() {
            return;
        }
        term::out(&self.asked.shown(self.language));
        if !self.at_terminal {
            term::out(&format!("\n{}\n", Say::WaitsForPerson.text(self.language)));
        }
    }

    /// Shows a frame. Gives the end of the program where it is one.
    fn take(&mut self, frame: &Value, lines: &mut Lines) -> Option<Exit> {
        if let (Some(cursor), Some(id)) = (frame["cursor"].as_str(), frame["session_id"].as_str()) {
            self.cursor = Some(cursor.to_owned());
            if self.session.as_deref() != Some(id) {
                self.session = Some(id.to_owned());
                term::err(&format!("{} {}\n", Say::Session.text(self.language), term::clean(id)));
            }
        }
        let data = &frame["data"];
        match frame["type"].as_str().unwrap_or_default() {
            "bubble" => {
                self.bubble(frame);
                let is_marked = data["content"].as_str().is_some_and(|text| text.ends_with(['✅', '❌']));
                if is_marked && data["call_id"].is_string() {
                    let changed = self.asked.call_ended(&data["call_id"]);
                    self.asked(&changed, lines);
                }
            }
            "start" | "resumed" => (self.is_running, self.awaits_start) = (true, false),
            "approval" => {
                let changed = self.asked.approval(data);
                self.asked(&changed, lines);
            }
            "question" => {
                let changed = self.asked.question(data);
                self.asked(&changed, lines);
            }
            "input" => term::out(&format!("> {}\n", term::clean(data["text"].as_str().unwrap_or_default()))),
            "error" | "warning" => {
                let message = term::clean(data["message"].as_str().unwrap_or_default());
                term::err(&format!("{message}\n"));
                // Nothing was begun.
                if frame["type"] == "error" && self.session.is_none() {
                    return Some(Exit::Usage);
                }
            }
            "receipt" => {
                self.waiting.retain(|(id, _)| data["id"] != id.as_str());
                if data["accepted"] == false {
                    term::err(&format!("{}\n", term::clean(data["reason"].as_str().unwrap_or_default())));
                    // A task that was refused is not waited for.
                    if data["command"] == "task" && std::mem::take(&mut self.awaits_start) {
                        self.is_running = false;
                        return (!self.may_stay).then_some(Exit::Failed);
                    }
                }
            }
            "completed" => {
                self.is_running = false;
                self.asked.clear();
                let ending = serde_json::from_value::<Ending>(data["ending"].clone());
                self.exit = Some(ending.map_or(Exit::Failed, Exit::from));
            }
            "end" if !self.may_stay && !self.is_past() => return self.exit,
            "status" if !self.awaits_start => return self.status(data, lines),
            _ => {}
        }
        None
    }

    /// Whether more runs follow what is shown: only the status says that all was shown.
    fn is_past(&self) -> bool {
        self.held.is_some() || self.exit.is_none()
    }

    fn status(&mut self, data: &Value, lines: &mut Lines) -> Option<Exit> {
        let state = data["state"].as_str().unwrap_or_default();
        self.is_running = state == "running";
        if let Some(held) = self.held.take() {
            self.caught_up(held, lines);
        }
        if state == "parked" {
            term::err(&format!("{}\n", Say::Parked.text(self.language)));
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
        if self.outgoing.iter().any(|message| message["type"] == "task") {
            (self.is_running, self.awaits_start) = (true, true);
        }
    }

    fn bubble(&mut self, frame: &Value) {
        let data = &frame["data"];
        let id = data["id"].as_str().unwrap_or_default();
        // The text of an answer is also in the bubble of its thought.
        if id.starts_with("llm-") {
            return;
        }
        let content = term::clean(data["content"].as_str().unwrap_or_default());
        let key = format!("{}:{id}", frame["run_id"].as_str().unwrap_or_default());
        if self.shown.get(&key) != Some(&content) {
            term::out(&format!("{content}\n"));
            self.shown.insert(key, content);
        }
    }
}
