//! `run`, `resume` and `demo`: open a session, give it its command, and run it to its end.

use std::path::{Path, PathBuf};

use lathe_host::{DEMO_TASK, Demo, Host, SessionPlan, TaskImage, TestRun, read_images, run_report};
use lathe_plan::{ConfigPlace, Wish};
use lathe_protocol::{CommandBody, Mode, ReplayPace};
use lathe_views::{Say, Tell};

use crate::args::{DemoArgs, OutputArg, ResumeArgs, RunArgs};
use crate::commands::settings::{absolute, note_idle_flags, settle, warn_of_notices};
use crate::drive::{RunFiles, close, run_to_end};
use crate::exit::{Exit, NO_PROCESS};
use crate::task::{self, Task, TaskInput};
use crate::terminal;
use crate::terminal::output::RunOutput;
use crate::terminal::stops::Stops;

pub(crate) async fn run(host: &Host, args: RunArgs) -> Exit {
    let input =
        TaskInput { task: args.task.as_deref(), file: args.file.as_deref(), folder: &args.working_dir };
    let Task { text: task, images: named } = match task::read(&input) {
        Ok(task) => task,
        Err(message) => return Exit::wrong_usage(&message),
    };
    note_idle_flags(args.console_type, args.agent_type);
    let given = args.options.0;
    let place = ConfigPlace::with_file(&args.working_dir, args.config_file.as_deref());
    let settled = match settle(host, place, &given, args.trust.ask_on_terminal()) {
        Ok(settled) => settled,
        Err(exit) => return exit,
    };
    let run = &settled.config.settings.run;
    let trajectory = match &run.trajectory {
        Some(path) => Some(path.clone()),
        None if args.show_request => None,
        None => settled.default_trajectory(),
    };
    let outputs = [args.cassette.record.clone(), run.patch_path.clone(), trajectory.clone()];
    let wish = Wish {
        own_model: given.names_own_model() || args.config_file.is_some(),
        given,
        cassette: args.cassette.wish(),
        record: args.cassette.record,
        outputs: outputs.into_iter().flatten().collect(),
        base_commit: args.base_commit.clone(),
        wants_patch: run.patch_path.is_some(),
        ..Wish::task(args.working_dir)
    };
    let (plan, mode_from) = (settled.plan(&wish), settled.mode(&wish).1);
    let images: Vec<PathBuf> = named.into_iter().chain(args.images).collect();
    let images = match read_images(&images) {
        Ok(images) => images,
        Err(reason) => return Exit::wrong_usage(&reason),
    };
    if args.show_request {
        return show_request(host, &plan, &task, &images).await;
    }
    if let Some(path) = run.patch_path.as_deref() {
        let folder = absolute(path).parent().map(Path::to_owned).unwrap_or_default();
        if !folder.is_dir() {
            return Exit::wrong_usage(&format!(
                "{} cannot be written: there is no folder {}",
                path.display(),
                folder.display()
            ));
        }
    }
    if let Some(name) = &args.base_commit
        && let Err(error) = host.archive().check_commit(&plan.folder, name).await
    {
        return Exit::host(&error);
    }
    let files = RunFiles {
        patch: run.patch_path.as_deref().map(absolute),
        trajectory: trajectory.as_deref().map(absolute),
    };
    let output = RunOutput::new(args.output).mode_from(mode_from);
    let notices = plan.extras.notices.clone();
    match host.start(plan).await {
        Ok(session) => {
            warn_of_notices(&notices);
            let body = match host.archive().store_images(images) {
                Ok(images) => CommandBody::GiveTask { text: task, images },
                Err(error) => return Exit::host(&error),
            };
            run_to_end(host, session, body, output, files).await
        }
        Err(error) => Exit::host(&error),
    }
}

pub(crate) async fn resume(host: &Host, args: ResumeArgs) -> Exit {
    let given = args.options.0;
    // Words in the place of an id are a task for the newest session.
    let (id, task) = match (args.id, args.task) {
        (Some(words), None) if words.trim().contains(' ') => (None, Some(words)),
        (id, task) => (id, task),
    };
    let found = host.archive().find(id.as_deref()).and_then(|id| Ok((host.archive().workspace(&id)?, id)));
    let (folder, id) = match found {
        Ok(found) => found,
        Err(error) => return Exit::host(&error),
    };
    // The options of a session are in the session; the configuration has its key, and options that the session does
    // not record.
    let settled = match settle(host, ConfigPlace::folder(&folder), &given, args.trust.ask_on_terminal()) {
        Ok(settled) => settled,
        Err(exit) => return exit,
    };
    let before = match host.archive().options(&id) {
        Ok(before) => before,
        Err(error) => return Exit::host(&error),
    };
    let mode = resumed_mode(before.mode, settled.config.settings.run.mode, given.get("run.mode"));
    let (patch, trajectory) =
        (given.get::<PathBuf>("run.patch_path"), given.get::<PathBuf>("run.trajectory"));
    let trajectory = trajectory.or_else(|| settled.default_trajectory());
    let outputs = [args.cassette.record.clone(), patch.clone(), trajectory.clone()];
    let wish = Wish {
        own_model: given.names_own_model(),
        given,
        cassette: args.cassette.wish(),
        record: args.cassette.record,
        outputs: outputs.into_iter().flatten().collect(),
        ..Wish::task(folder)
    };
    let overrides = settled.overrides(&wish, &before, Some(mode));
    let files =
        RunFiles { patch: patch.as_deref().map(absolute), trajectory: trajectory.as_deref().map(absolute) };
    let session = match host.resume(&id, overrides).await {
        Ok(session) => session,
        Err(error) => return Exit::host(&error),
    };
    let body = match (task, session.can_resume) {
        (Some(text), _) => CommandBody::GiveTask { text, images: Vec::new() },
        (None, true) => CommandBody::GoOn,
        (None, false) => {
            let output = RunOutput::new(OutputArg::Text);
            let id = session.id.clone();
            let has_task = host.archive().tasks(&id).is_ok_and(|tasks| !tasks.is_empty());
            let reason = if has_task { Say::NothingToResume } else { Say::NoTaskYet };
            terminal::err_line(&format!("{}lathe resume {id} \"...\"", output.label(reason)));
            return close(session, &mut Stops::listen()).await.unwrap_or(Exit::Usage);
        }
    };
    run_to_end(host, session, body, RunOutput::new(args.output), files).await
}

/// The mode of a resumed session. If it is lower than before, a message says so.
pub(crate) fn resumed_mode(recorded: Mode, configured: Option<Mode>, flag: Option<Mode>) -> Mode {
    let resumed = lathe_plan::resumed_mode(recorded, configured, flag);
    if let Some(recorded) = resumed.lowered_from {
        let lowered = Tell::ModeLowered { before: recorded.as_str(), now: resumed.mode.as_str() };
        terminal::err_line(&lowered.text(terminal::language()));
    }
    resumed.mode
}

pub(crate) async fn demo(host: &Host, args: DemoArgs) -> Exit {
    let demo = match Demo::make() {
        Ok(demo) => demo,
        Err(error) => return Exit::host(&error),
    };
    let output = RunOutput::new(args.output);
    if output.is_text() {
        let folder = demo.folder.display();
        terminal::out(&format!(
            "{}\n{}{folder}\n\n",
            output.word(Say::DemoIntro),
            output.label(Say::DemoFolder)
        ));
    }
    let pace = if args.slow { ReplayPace::Slow } else { ReplayPace::Instant };
    let session = match host.start(demo.plan(args.toolset.into(), pace)).await {
        Ok(session) => session,
        Err(error) => return Exit::host(&error),
    };
    let id = session.id.clone();
    let task = CommandBody::GiveTask { text: DEMO_TASK.to_owned(), images: Vec::new() };
    let exit = run_to_end(host, session, task, RunOutput::new(args.output), RunFiles::default()).await;
    if exit != Exit::Done || !output.is_text() {
        return exit;
    }
    let ended = host.archive().events(&id).and_then(|events| {
        let diff = output.diff(host, &run_report(&events, None))?;
        Ok((diff, demo.test()?))
    });
    match ended {
        Ok((diff, test)) => {
            terminal::out(&format!(
                "\n{diff}\n{}\n{}\n",
                output.heading(Say::DemoTest),
                terminal::clean(&test.output)
            ));
            let next = "lathe run --mode full-auto --model NAME \"your task\"";
            terminal::out_line(&output.dim(&format!("{}{next}", output.label(Say::DemoNext))));
            match test {
                TestRun { passed: true, .. } => Exit::Done,
                TestRun { starved: true, .. } => Exit::limits(NO_PROCESS),
                TestRun { .. } => Exit::failed("the sample project's tests fail"),
            }
        }
        Err(error) => Exit::host(&error),
    }
}

async fn show_request(host: &Host, plan: &SessionPlan, task: &str, images: &[TaskImage]) -> Exit {
    match host.first_request(plan, task, images).await {
        Ok(request) => {
            let (system, tools) = (request.system_chars / 4, request.tools_chars / 4);
            terminal::out_line(&String::from_utf8_lossy(&request.body));
            let size = Tell::RequestSize { tokens: system + tools, system, tools };
            terminal::err_line(&size.text(terminal::language()));
            Exit::Done
        }
        Err(error) => Exit::host(&error),
    }
}
