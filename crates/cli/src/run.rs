//! A run from its first command to its exit code: `run`, `resume` and `demo` all go through here.

use std::time::Duration;

use lathe_host::{
    DEMO_TASK, Demo, Host, ModelRequest, ModelSource, Overrides, Pace, Session, SessionPlan, run_report,
};
use lathe_protocol::{
    Actor, Command, CommandBody, CommandId, EndingRule, EventStream, Fact, Limits, Mode, ReceiptAnswer, Seq,
    Update,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{DemoArgs, ModelArgs, OutputArg, ResumeArgs, RunArgs};
use crate::exit::Exit;
use crate::output::Output;
use crate::term;
use crate::words::Say;

pub(crate) async fn run(host: &Host, args: RunArgs) -> Exit {
    let task = match task_text(&args) {
        Ok(task) => task,
        Err(message) => return Exit::wrong_usage(&message),
    };
    let plan = SessionPlan {
        folder: args.working_dir,
        source: source(&args.model),
        // Without a sandbox nothing is changed unless somebody said so.
        mode: args.mode.map_or(Mode::Default, Mode::from),
        toolset: args.toolset.map(Into::into),
        limits: limits(args.max_steps),
        ending: EndingRule::Remind,
        record: args.model.record,
    };
    if args.show_request {
        return show_request(host, &plan, &task);
    }
    match host.start(plan).await {
        Ok(session) => work(host, session, CommandBody::GiveTask { text: task }, args.output).await,
        Err(error) => Exit::host(&error),
    }
}

pub(crate) async fn resume(host: &Host, args: ResumeArgs) -> Exit {
    let overrides = Overrides {
        source: source(&args.model),
        mode: args.mode.map(Mode::from),
        max_steps: args.max_steps,
        record: args.model.record,
    };
    let opened = async {
        let id = host.find(args.id.as_deref())?;
        host.resume(&id, overrides).await
    };
    let session = match opened.await {
        Ok(session) => session,
        Err(error) => return Exit::host(&error),
    };
    let body = match (args.task, session.unfinished) {
        (Some(text), _) => CommandBody::GiveTask { text },
        (None, true) => CommandBody::GoOn,
        (None, false) => {
            let output = Output::new(OutputArg::Text);
            let id = session.id.clone();
            term::err(&format!(
                "{}: lathe resume {id} \"...\"\n",
                output.word(Say::NothingToResume)
            ));
            return close(session).await.unwrap_or(Exit::Usage);
        }
    };
    work(host, session, body, args.output).await
}

pub(crate) async fn demo(host: &Host, args: DemoArgs) -> Exit {
    let demo = match Demo::make() {
        Ok(demo) => demo,
        Err(error) => return Exit::host(&error),
    };
    let output = Output::new(args.output);
    if output.is_text() {
        let folder = demo.folder.display();
        term::out(&format!(
            "{}\n{}: {folder}\n\n",
            output.word(Say::DemoIntro),
            output.word(Say::DemoFolder)
        ));
    }
    let pace = if args.slow { Pace::Slow } else { Pace::Instant };
    let session = match host.start(demo.plan(pace)).await {
        Ok(session) => session,
        Err(error) => return Exit::host(&error),
    };
    let id = session.id.clone();
    let exit = work(
        host,
        session,
        CommandBody::GiveTask {
            text: DEMO_TASK.to_owned(),
        },
        args.output,
    )
    .await;
    if exit != Exit::Done || !output.is_text() {
        return exit;
    }
    let ended = host.events(&id).and_then(|events| {
        let diff = output.diff(host, &run_report(&events, None))?;
        Ok((diff, demo.test()?))
    });
    match ended {
        Ok((diff, test)) => {
            term::out(&format!(
                "\n{diff}\n{}\n{}\n",
                output.heading(Say::DemoTest),
                term::clean(&test.output)
            ));
            let next = "lathe run --mode full-auto --model NAME \"your task\"";
            term::out(&output.dim(&format!("{}: {next}\n", output.word(Say::DemoNext))));
            if test.passed {
                Exit::Done
            } else {
                Exit::failed("the sample project's tests fail")
            }
        }
        Err(error) => Exit::host(&error),
    }
}

/// Gives a session its command, shows what happens until the run ends, and closes it.
async fn work(host: &Host, session: Session, body: CommandBody, kind: OutputArg) -> Exit {
    let mut output = Output::new(kind);
    output.opening(&session.options);
    let id = session.id.clone();
    // Going on shows the session from its beginning; another task shows only itself.
    let from = match (&body, host.events(&id)) {
        (CommandBody::GiveTask { .. }, Ok(events)) if kind == OutputArg::Text => {
            events.last().map_or(Seq(0), |event| event.seq)
        }
        _ => Seq(0),
    };
    let mut updates = session.handle().subscribe(from);
    let receipt = session.handle().submit(command(body)).await;
    if let ReceiptAnswer::Refused { reason } = receipt.answer {
        return match close(session).await {
            Some(exit) => exit,
            None => Exit::wrong_usage(&reason),
        };
    }
    let accepted = match receipt.answer {
        ReceiptAnswer::Accepted { seq } => seq,
        ReceiptAnswer::Refused { .. } => Seq(0),
    };
    host.note(&id);
    let ended = watch(&mut *updates, &mut output, &session, accepted).await;
    if let Some(exit) = close(session).await {
        return exit;
    }
    host.note(&id);
    let exit = ended.unwrap_or(Exit::Failed);
    let closed = host
        .events(&id)
        .and_then(|events| output.closing(host, &id, &run_report(&events, None), exit));
    match closed {
        Ok(()) => exit,
        Err(error) => Exit::host(&error),
    }
}

/// Shows updates until the run that was begun or gone on with has finished.
async fn watch(
    updates: &mut dyn EventStream,
    output: &mut Output,
    session: &Session,
    accepted: Seq,
) -> Option<Exit> {
    let mut stops = Stops::listen();
    loop {
        tokio::select! {
            update = updates.next() => {
                let update = update?;
                output.update(&update, session).await;
                if let Update::Event(event) = &update
                    && let Fact::TaskFinished(finished) = &event.fact
                    && event.seq > accepted
                {
                    return Some(finished.ending.into());
                }
            }
            count = stops.next() => {
                if count > 1 {
                    // Ending the process ends the supervisor, and with it everything it watches.
                    std::process::exit(i32::from(Exit::Cancelled.number()));
                }
                output.stopping();
                session.handle().submit(command(CommandBody::Cancel)).await;
            }
        }
    }
}

/// Ctrl-C and SIGTERM, counted.
struct Stops {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    count: u32,
}

impl Stops {
    fn listen() -> Self {
        Self {
            interrupt: signal(SignalKind::interrupt()).ok(),
            terminate: signal(SignalKind::terminate()).ok(),
            count: 0,
        }
    }

    async fn next(&mut self) -> u32 {
        async fn one(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => {
                    signal.recv().await;
                }
                None => std::future::pending().await,
            }
        }
        tokio::select! {
            () = one(&mut self.interrupt) => {}
            () = one(&mut self.terminate) => {}
        }
        self.count += 1;
        self.count
    }
}

/// Ends a session; says what was wrong, if something was.
async fn close(session: Session) -> Option<Exit> {
    // The shell is closed within moments; a hang here must not hold the user up.
    match tokio::time::timeout(Duration::from_secs(10), session.close()).await {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Exit::host(&error)),
        Err(_) => Some(Exit::failed(
            "the session did not close in time; it can be resumed",
        )),
    }
}

fn command(body: CommandBody) -> Command {
    use std::hash::{BuildHasher, RandomState};
    let id = CommandId::new(format!(
        "{:016x}",
        RandomState::new().hash_one(std::process::id())
    ));
    Command {
        id,
        actor: Actor::Person,
        body,
    }
}

fn task_text(args: &RunArgs) -> Result<String, String> {
    let text = match (&args.task, &args.file) {
        (Some(_), Some(_)) => return Err("give either a task or --file, not both".to_owned()),
        (None, None) => {
            return Err("what should be done? Give a task: lathe run \"...\", or --file FILE".to_owned());
        }
        (Some(task), None) => task.clone(),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|error| format!("the task cannot be read from {}: {error}", path.display()))?,
    };
    if text.trim().is_empty() {
        Err("the task is empty".to_owned())
    } else {
        Ok(text)
    }
}

fn source(args: &ModelArgs) -> ModelSource {
    match &args.replay {
        Some(cassette) => ModelSource::Replay {
            cassette: cassette.clone(),
            pace: Pace::Instant,
        },
        None => ModelSource::Ask(ModelRequest {
            provider: args.provider.clone(),
            model: args.model.clone(),
            base_url: args.model_base_url.clone(),
            api_key: args.api_key.clone(),
        }),
    }
}

fn limits(max_steps: Option<u32>) -> Limits {
    let standard = Limits::default();
    Limits {
        max_steps: max_steps.unwrap_or(standard.max_steps),
        ..standard
    }
}

fn show_request(host: &Host, plan: &SessionPlan, task: &str) -> Exit {
    match host.first_request(plan, task) {
        Ok(request) => {
            let (system, tools) = (request.system_chars / 4, request.tools_chars / 4);
            term::out(&format!("{}\n", String::from_utf8_lossy(&request.body)));
            term::err(&format!(
                "about {} tokens before the task: system {system}, tools {tools} (characters / 4)\n",
                system + tools
            ));
            Exit::Done
        }
        Err(error) => Exit::host(&error),
    }
}
