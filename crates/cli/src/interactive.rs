//! `interactive`: one task after the other in one session, with Trae's words at the prompt.

use std::io::BufRead;

use lathe_host::{Host, Session, SessionPlan, run_report};
use lathe_protocol::{CommandBody, EndingRule, EventStream, Mode, Seq};
use tokio::sync::mpsc;

use crate::args::{InteractiveArgs, OutputArg};
use crate::drive::{Performed, close, finish_trajectory, perform};
use crate::exit::Exit;
use crate::output::Output;
use crate::settings::{Given, absolute, limits, settings, source, toolset};
use crate::term;
use crate::words::{Language, Say};

pub(crate) async fn interactive(host: &Host, args: InteractiveArgs) -> Exit {
    let given = Given {
        model: Some(&args.model),
        max_steps: args.max_steps,
        mode: args.mode,
        toolset: args.toolset,
        trajectory: args.trajectory_file.as_deref(),
        ..Given::default()
    };
    let config = match settings(host, &args.working_dir, args.config_file.as_deref(), &given) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let plan = SessionPlan {
        folder: args.working_dir.clone(),
        source: source(&args.model, &config.settings),
        mode: config.settings.run.mode.unwrap_or(Mode::Default),
        toolset: toolset(&config),
        limits: limits(&config.settings),
        patch: None,
        // A conversation: an answer without calls ends the turn.
        ending: EndingRule::EndTurn,
        record: args.model.record.clone(),
    };
    let session = match host.start(plan).await {
        Ok(session) => session,
        Err(error) => return Exit::host(&error),
    };
    let mut output = Output::new(OutputArg::Text);
    output.opening(&session.options);
    let mut updates = session.handle().subscribe(Seq(1));
    let trajectory =
        config.settings.run.trajectory.as_deref().map(absolute).map(|path| session.write_trajectory(path));
    let mut lines = Lines::read();
    let ended = talk(host, &session, &mut *updates, &mut output, &mut lines).await;
    let closed = close(session).await;
    if let Some(trajectory) = trajectory {
        finish_trajectory(trajectory, &output).await;
    }
    match closed {
        Some(exit) => exit,
        None => ended,
    }
}

async fn talk(
    host: &Host,
    session: &Session,
    updates: &mut dyn EventStream,
    output: &mut Output,
    lines: &mut Lines,
) -> Exit {
    let language = Language::find();
    loop {
        term::out(&format!("\n{}: ", Say::AskTask.text(language)));
        let line = tokio::select! {
            line = lines.next() => line,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(line) = line else {
            term::out(&format!("{}\n", Say::Goodbye.text(language)));
            return Exit::Done;
        };
        match line.trim().to_lowercase().as_str() {
            "" => {}
            "exit" | "quit" => {
                term::out(&format!("{}\n", Say::Goodbye.text(language)));
                return Exit::Done;
            }
            "help" => term::out(&format!("{}\n", Say::InteractiveHelp.text(language))),
            "clear" => term::out(if term::is_terminal() { "\u{1b}[2J\u{1b}[H" } else { "\n" }),
            "status" => status(host, session, language),
            _ => {
                let body = CommandBody::GiveTask { text: line.trim().to_owned() };
                match perform(host, session, updates, output, body).await {
                    Performed::Ended(exit) => {
                        host.note(&session.id);
                        let shown = host.events(&session.id).and_then(|events| {
                            output.closing(host, &session.id, &run_report(&events, None), exit)
                        });
                        if let Err(error) = shown {
                            return Exit::host(&error);
                        }
                    }
                    Performed::Refused(reason) => term::err(&format!("{reason}\n")),
                    Performed::Lost => return Exit::Failed,
                }
            }
        }
    }
}

fn status(host: &Host, session: &Session, language: Language) {
    let options = &session.options;
    let report = host.events(&session.id).map(|events| run_report(&events, None));
    let rows = [
        (Say::Provider, options.model.provider.clone()),
        (Say::Model, options.model.model.clone()),
        (Say::Mode, options.mode.as_str().to_owned()),
        (Say::Tools, Host::tools(options.toolset).len().to_string()),
        (Say::Session, session.id.to_string()),
        (Say::Tasks, report.map_or(0, |report| report.run.0).to_string()),
    ];
    for (name, value) in rows {
        term::out(&format!("{}: {}\n", name.text(language), term::clean(&value)));
    }
}

/// Lines of standard input, read by a thread of their own: reading blocks, and a run must not.
struct Lines {
    lines: mpsc::Receiver<String>,
}

impl Lines {
    fn read() -> Self {
        let (sender, lines) = mpsc::channel(16);
        // The thread ends with the process; nothing it holds needs an end of its own.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines }
    }

    async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}
