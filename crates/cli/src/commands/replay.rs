//! `replay`: a session run again with its recorded answers, with recorded or with real tools.

use lathe_host::{Host, HostError, ReplayPlan};
use lathe_protocol::{Mode, SessionId};
use lathe_views::{Noun, Tell};

use crate::args::{ReplayArgs, ReplayTools};
use crate::commands::run::resumed_mode;
use crate::commands::settings::settle_quietly;
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::stops::Stops;

pub(crate) async fn replay(host: &Host, args: &ReplayArgs) -> Exit {
    let replayed = match host.archive().find(args.id.as_deref()) {
        Ok(id) => match args.tools {
            ReplayTools::Recorded => replay_recorded(host, &id),
            ReplayTools::Live => match live_plan(host, &id, args.mode.map(Mode::from)) {
                Ok(Ok(plan)) => replay_live(host, &id, plan).await,
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

fn replay_recorded(host: &Host, id: &SessionId) -> Result<Exit, HostError> {
    let verified = host.archive().replay_recorded(id)?;
    let language = terminal::language();
    for divergence in &verified.divergences {
        let (event, step) = (divergence.seq, divergence.step.unwrap_or_default());
        terminal::out_line(&Tell::Diverged { event, step }.text(language));
        print_both(&divergence.recorded, &divergence.now);
    }
    let total = Tell::Replayed {
        id: id.as_str(),
        requests: &Noun::Request.count(verified.requests, language),
        events: &Noun::Event.count(verified.events, language),
        divergences: &Noun::Divergence.count(verified.divergences.len(), language),
    };
    terminal::out_line(&total.text(language));
    Ok(if verified.divergences.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The limits of a replay with live tools: the journal alone gives it no more than the configuration does.
fn live_plan(host: &Host, id: &SessionId, mode: Option<Mode>) -> Result<Result<ReplayPlan, Exit>, HostError> {
    let folder = host.archive().workspace(id)?;
    let recorded = host.archive().options(id)?.mode;
    let settled = match settle_quietly(host, &folder) {
        Ok(settled) => settled,
        Err(exit) => return Ok(Err(exit)),
    };
    let mode = resumed_mode(recorded, settled.config.settings.run.mode, mode);
    let sandbox = settled.config.settings.run.sandbox;
    Ok(Ok(ReplayPlan { mode, sandbox, extras: settled.extras() }))
}

async fn replay_live(host: &Host, id: &SessionId, plan: ReplayPlan) -> Result<Exit, HostError> {
    // Signals are listened for from the start: a signal while the workspace is being copied must not leave the copy
    // behind.
    let mut stops = Stops::listen();
    let stop = async {
        stops.next().await;
    };
    let Some(replay) = host.replay_live(id, plan, stop).await? else {
        return Ok(Exit::Cancelled);
    };
    let language = terminal::language();
    for difference in &replay.differences {
        let step = difference.step.unwrap_or_default();
        terminal::out_line(&Tell::Differs { step, place: &difference.drift.place }.text(language));
        print_both(&difference.drift.recorded, &difference.drift.now);
    }
    if let Some(stopped) = &replay.stopped {
        terminal::out_line(&terminal::clean(stopped));
    }
    let total = Tell::RanAgain {
        id: id.as_str(),
        steps: &Noun::Step.count(replay.steps, language),
        differences: &Noun::Difference.count(replay.differences.len(), language),
    };
    terminal::out_line(&total.text(language));
    match &replay.kept {
        Some(folder) => {
            let folder = &folder.display().to_string();
            terminal::out_line(&Tell::CopyKept { folder }.text(language));
            Ok(Exit::Failed)
        }
        None => Ok(Exit::Done),
    }
}

/// Prints the recorded text of a difference and the one of now.
fn print_both(recorded: &str, now: &str) {
    let language = terminal::language();
    terminal::out_line(&Tell::RecordedAs { text: &terminal::clean(recorded) }.text(language));
    terminal::out_line(&Tell::NowIs { text: &terminal::clean(now) }.text(language));
}
