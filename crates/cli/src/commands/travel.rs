//! `fork`, `watch` and `replay`.

use clap::Args;
use lathe_host::{Host, HostError, LivePlan};
use lathe_protocol::{Mode, SessionId, StepNo, Update, counted};
use lathe_views::{Console, Tell};
use serde_json::json;

use crate::args::{ForkArgs, OutputArg, ReplayArgs, ReplayTools};
use crate::commands::run::resumed_mode;
use crate::commands::settings::settle_or_tell;
use crate::exit::Exit;
use crate::terminal::output::{json_line, print_json};
use crate::terminal::stops::Stops;
use crate::terminal::{self, Paint};

#[derive(Args)]
pub(crate) struct WatchArgs {
    /// Session id or its beginning; the newest if left out
    pub(crate) id: Option<String>,
    /// What is printed
    #[arg(long, value_enum, default_value_t = OutputArg::Text)]
    pub(crate) output: OutputArg,
}

pub(crate) fn fork(host: &Host, args: &ForkArgs) -> Exit {
    let forked = host
        .archive()
        .find(Some(&args.id))
        .and_then(|id| host.archive().fork(&id, args.at.map(StepNo), None));
    match forked {
        Ok(id) if args.json => {
            print_json(&json!({ "id": id }));
            Exit::Done
        }
        Ok(id) => {
            terminal::out(&format!("{id}\n"));
            let go_on = Tell::ResumeHint { id: id.as_str() }.text(terminal::language());
            terminal::err(&format!("{go_on} [\"...\"]\n"));
            Exit::Done
        }
        Err(error) => Exit::host(&error),
    }
}

pub(crate) async fn watch(host: &Host, args: &WatchArgs) -> Exit {
    let opened = host
        .archive()
        .find(args.id.as_deref())
        .and_then(|id| Ok((host.archive().watch(&id)?, host.archive().workspace(&id)?)));
    let (mut updates, workspace) = match opened {
        Ok(opened) => opened,
        Err(error) => return Exit::host(&error),
    };
    let (mut console, paint) = (Console::new(terminal::language()), Paint::new(terminal::is_terminal()));
    loop {
        let update = tokio::select! {
            update = updates.next() => update,
            _ = tokio::signal::ctrl_c() => return Exit::Cancelled,
        };
        let Some(Update::Event(event)) = update else {
            return Exit::Done;
        };
        match args.output {
            OutputArg::StreamJson | OutputArg::Json => terminal::out(&json_line(&event)),
            OutputArg::Text => match host.archive().recorded_diff(&event, &workspace.to_string_lossy()) {
                Ok(diff) => terminal::out(&paint.show(&console.event(&event, &diff))),
                Err(error) => return Exit::host(&error),
            },
        }
    }
}

pub(crate) async fn replay(host: &Host, args: &ReplayArgs) -> Exit {
    let replayed = match host.archive().find(args.id.as_deref()) {
        Ok(id) => match args.tools {
            ReplayTools::Recorded => recorded(host, &id),
            ReplayTools::Live => match live_plan(host, &id, args.mode.map(Mode::from)) {
                Ok(Ok(plan)) => live(host, &id, plan).await,
                Ok(Err(exit)) => return exit,
                Err(error) => Err(error),
            },
        },
        Err(error) => Err(error),
    };
    match replayed {
        Ok(exit) => exit,
        Err(error) => Exit::host(&error),
    }
}

fn recorded(host: &Host, id: &SessionId) -> Result<Exit, HostError> {
    let verified = host.archive().replay_recorded(id)?;
    for divergence in &verified.divergences {
        terminal::out(&format!(
            "event {}, step {}: this version would have done something else\n  recorded: {}\n  now:      {}\n",
            divergence.seq,
            divergence.step.unwrap_or_default(),
            terminal::clean(&divergence.recorded),
            terminal::clean(&divergence.now)
        ));
    }
    terminal::out(&format!(
        "{id}: {} and {} replayed, {}\n",
        counted(verified.requests, "request"),
        counted(verified.events, "event"),
        counted(verified.divergences.len(), "divergence")
    ));
    Ok(if verified.divergences.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The limits of a replay with live tools: a journal alone gives it no more than the configuration does.
fn live_plan(host: &Host, id: &SessionId, mode: Option<Mode>) -> Result<Result<LivePlan, Exit>, HostError> {
    let folder = host.archive().workspace(id)?;
    let recorded = host.archive().options(id)?.mode;
    let settled = match settle_or_tell(host, &folder) {
        Ok(settled) => settled,
        Err(exit) => return Ok(Err(exit)),
    };
    let mode = resumed_mode(recorded, settled.config.settings.run.mode, mode);
    Ok(Ok(LivePlan { mode, extras: settled.extras() }))
}

async fn live(host: &Host, id: &SessionId, plan: LivePlan) -> Result<Exit, HostError> {
    // Listened for from the start: a signal while the workspace is copied must not leave the copy either.
    let mut stops = Stops::listen();
    let stop = async {
        stops.next().await;
    };
    let Some(replay) = host.replay_live(id, plan, stop).await? else {
        return Ok(Exit::Cancelled);
    };
    for difference in &replay.differences {
        terminal::out(&format!(
            "step {}: {} differs\n  recorded: {}\n  now:      {}\n",
            difference.step.unwrap_or_default(),
            difference.drift.place,
            terminal::clean(&difference.drift.recorded),
            terminal::clean(&difference.drift.now)
        ));
    }
    if let Some(stopped) = &replay.stopped {
        terminal::out(&format!("{}\n", terminal::clean(stopped)));
    }
    terminal::out(&format!(
        "{id}: {} run again in a copy of the workspace, {}\n",
        counted(replay.steps, "step"),
        counted(replay.differences.len(), "difference")
    ));
    match &replay.kept {
        Some(folder) => {
            terminal::out(&format!("the copy is kept to be looked at: {}\n", folder.display()));
            Ok(Exit::Failed)
        }
        None => Ok(Exit::Done),
    }
}
