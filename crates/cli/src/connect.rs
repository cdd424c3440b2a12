//! `connect`: a session of a server, watched and steered from a terminal elsewhere.
//!
//! The server has the truth. This client shows bubbles as they come and sends what is typed; when the connection drops it
//! comes back by its cursor, and sends again what was not acknowledged: commands have ids, so none counts twice.

mod address;
mod link;

use std::collections::HashMap;
use std::io::IsTerminal as _;
use std::time::Duration;

use clap::Args;
use lathe_protocol::{ApprovalAsked, Ending};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use self::address::Address;
use self::link::{Link, LinkError};
use crate::approval;
use crate::drive::Stops;
use crate::exit::Exit;
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
    /// Address of the server, as `lathe serve` prints it; the token may be in LATHE_TOKEN instead
    url: String,
    /// What is to be done; without it and without --session the sessions are listed
    task: Option<String>,
    /// A session to watch, or to give the task to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Where to work on the server: one of its roots or a folder inside
    #[arg(long, value_name = "DIR")]
    working_dir: Option<String>,
    /// Certificate in PEM that the server's is checked by, instead of those of the system
    #[arg(long, value_name = "FILE")]
    ca: Option<std::path::PathBuf>,
}

pub(crate) async fn connect(args: ConnectArgs) -> Exit {
    let token = std::env::var("LATHE_TOKEN").ok().filter(|token| !token.is_empty());
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
        asked: None,
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
            Say::Steps.text(Language::find()),
            text("workspace"),
            text("title")
        );
        term::out(&line);
    }
    Exit::Done
}

/// A question that waits for an answer here.
struct Question {
    call: Value,
    number: Value,
    can_remember: bool,
}

struct Client {
    address: Address,
    session: Option<String>,
    cursor: Option<String>,
    /// What was sent and not acknowledged, by its id.
    waiting: Vec<(String, Value)>,
    /// Each bubble as it was last printed.
    shown: HashMap<String, String>,
    asked: Option<Question>,
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
        let (mut lines, mut stops) = (Lines::read(), Stops::listen());
        let (mut wait, mut attempts) = (FIRST, 0);
        loop {
            let query = self.query(first.is_some());
            let opened = tokio::select! {
                opened = Link::open(&self.address, &query) => opened,
                _ = stops.next() => return Exit::Cancelled,
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
                _ = stops.next() => return Exit::Cancelled,
            }
            wait = (wait * 2).min(LONGEST);
        }
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
        stops: &mut Stops,
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
            let mut messages = Vec::new();
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
                    Some(line) => messages.extend(self.typed(line.trim())),
                    None if self.may_stay && !self.is_running => return Left::With(self.exit.unwrap_or(Exit::Done)),
                    // Nobody types any more; the run goes on.
                    None => ended.cancel(),
                },
                count = stops.next() => {
                    if count > 1 || !self.is_running {
                        return Left::With(Exit::Cancelled);
                    }
                    term::err(&format!("\n{}\n", Say::Cancelling.text(self.language)));
                    messages.push(json!({ "type": "cancel" }));
                }
            }
            for message in messages {
                let message = self.keep(message);
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
    fn typed(&mut self, line: &str) -> Option<Value> {
        if line.is_empty() {
            return None;
        }
        if let Some(question) = &self.asked {
            let Some(said) = approval::understood(line, question.can_remember) else {
                term::out(&format!("{}: ", self.hint(question.can_remember).text(self.language)));
                return None;
            };
            let answer = json!({
                "type": "approve", "call_id": question.call, "question": question.number,
                "answer": said.answer, "reason": said.reason,
            });
            self.asked = None;
            return Some(answer);
        }
        Some(match self.is_running {
            true => json!({ "type": "input", "text": line }),
            false => json!({ "type": "task", "task": line }),
        })
    }

    fn hint(&self, can_remember: bool) -> Say {
        if can_remember { Say::AskApproval } else { Say::AskOnce }
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
            "bubble" => self.bubble(frame),
            "start" | "resumed" => (self.is_running, self.awaits_start) = (true, false),
            "approval" => self.approval(data, lines),
            "input" => term::out(&format!("> {}\n", term::clean(data["text"].as_str().unwrap_or_default()))),
            "error" | "warning" => {
                let message = term::clean(data["message"].as_str().unwrap_or_default());
                term::err(&format!("{message}\n"));
                // Nothing was begun.
                if self.session.is_none() {
                    return Some(Exit::Usage);
                }
            }
            "receipt" => {
                self.waiting.retain(|(id, _)| data["id"] != id.as_str());
                if data["accepted"] == false {
                    term::err(&format!("{}\n", term::clean(data["reason"].as_str().unwrap_or_default())));
                }
            }
            "completed" => {
                self.is_running = false;
                let ending = serde_json::from_value::<Ending>(data["ending"].clone());
                self.exit = Some(ending.map_or(Exit::Failed, Exit::from));
            }
            "end" if !self.may_stay && self.cursor.is_some() && !self.is_past() => return self.exit,
            "status" if !self.awaits_start => return self.status(data),
            _ => {}
        }
        None
    }

    /// Whether more runs follow what is shown: only the status says that all was shown.
    fn is_past(&self) -> bool {
        self.exit.is_none()
    }

    fn status(&mut self, data: &Value) -> Option<Exit> {
        let state = data["state"].as_str().unwrap_or_default();
        self.is_running = state == "running";
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

    fn approval(&mut self, data: &Value, lines: &mut Lines) {
        let is_same = self.asked.as_ref().is_some_and(|question| question.number == data["question"]);
        if data["state"] != "asked" {
            if is_same {
                self.asked = None;
                term::out(&format!("\n{}\n", Say::AnsweredElsewhere.text(self.language)));
            }
            return;
        }
        let Ok(asked) = serde_json::from_value::<ApprovalAsked>(data.clone()) else { return };
        term::out(&format!("\n{}", approval::shown(&asked, self.language)));
        if !std::io::stdin().is_terminal() {
            term::out(&format!("{}\n", Say::WaitsForPerson.text(self.language)));
            return;
        }
        // What was typed before the question was seen is no answer to it.
        lines.forget();
        let can_remember = !asked.remember.is_empty();
        term::out(&format!("{}: ", self.hint(can_remember).text(self.language)));
        self.asked =
            Some(Question { call: data["call_id"].clone(), number: data["question"].clone(), can_remember });
    }
}
