//! Which command does what.

use std::path::Path;

use clap::CommandFactory;
use lathe_host::{Check, CheckState, Home, Host, ToolLook, ToolRun};
use lathe_plan::{Absent, ConfigPlace, Given};
use lathe_protocol::{CallFinished, Toolset, escape_unseen};
use serde_json::json;

use crate::args::{Cli, Command, ConfigCommand, DoctorArgs, ToolCommand, ToolRunArgs, ToolsArgs};
use crate::exit::Exit;
use crate::output::print_json;
use crate::term::{self, Paint};
use crate::trust::Asking;
use crate::{inside, interactive, models, rewind, run, settings, show, travel, upkeep};

pub(crate) async fn dispatch(cli: Cli) -> Exit {
    let host = match Home::find() {
        Ok(home) => Host::new(home),
        Err(error) => return Exit::host(&error),
    };
    if let Some(change) = inside::change(&cli.command)
        && let Err(error) = host.home().refuse_inside_session(change)
    {
        return Exit::host(&error);
    }
    match cli.command {
        Command::Run(args) => run::run(&host, args).await,
        Command::Demo(args) => run::demo(&host, args).await,
        Command::Interactive(args) => interactive::interactive(&host, args).await,
        Command::Resume(args) => run::resume(&host, args).await,
        Command::Sessions(args) => show::sessions(&host, &args),
        Command::Show(args) => show::show(&host, &args),
        Command::Fork(args) => travel::fork(&host, &args),
        Command::Rewind(args) => rewind::rewind(&host, &args),
        Command::Undo(args) => rewind::undo(&host, &args),
        Command::Diff(args) => rewind::diff(&host, &args),
        Command::Watch(args) => travel::watch(&host, &args).await,
        Command::Replay(args) => travel::replay(&host, &args).await,
        Command::Tools(args) => tools(&host, &args).await,
        Command::Tool(args) => match args.command {
            ToolCommand::Run(args) => tool_run(&host, args).await,
        },
        Command::Shell(args) => crate::shell::shell(&host, args).await,
        Command::Graph(args) => crate::graph::graph(&host, &args),
        Command::Policy(args) => crate::policy::policy(&host, &args),
        Command::Serve(args) => crate::serve::serve(host.home().clone(), args).await,
        Command::Trust(args) => crate::trust::trust(&host, &args),
        Command::Quarantine(args) => crate::quarantine::quarantine(&host, &args),
        Command::Connect(args) => crate::connect::connect(args).await,
        Command::Cost(args) => upkeep::cost(&host, &args),
        Command::Gc(args) => upkeep::gc(&host, &args),
        Command::Config(args) => match args.command {
            ConfigCommand::Show(args) => settings::config_show(&host, &args),
            ConfigCommand::Check(args) => settings::config_check(&host, &args),
            ConfigCommand::Reference => {
                term::out(&lathe_config::documentation());
                Exit::Done
            }
        },
        Command::ShowConfig(args) => settings::show_config(&host, &args),
        Command::Models(args) => models::models(&host, &args),
        Command::Auth(args) => models::auth(&host, &args),
        Command::Doctor(args) => doctor(&host, &args).await,
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "lathe", &mut script);
            term::out(&String::from_utf8_lossy(&script));
            Exit::Done
        }
    }
}

async fn tools(host: &Host, args: &ToolsArgs) -> Exit {
    let here = ConfigPlace::with_file(Path::new("."), args.config_file.as_deref());
    let settled = match settings::settle(host, here, &args.options.0, args.trust.telling()) {
        Ok(settled) => settled,
        Err(exit) => return exit,
    };
    let extras = settled.extras();
    let toolset = settled.toolset().unwrap_or(Toolset::Lathe);
    let specs = match host.tools().listed(toolset, Path::new("."), settled.tool_choice(), &extras).await {
        Ok(specs) => specs,
        Err(error) => return Exit::host(&error),
    };
    settings::tell_notices(&extras.notices);
    if args.json {
        print_json(&json!(specs));
        return Exit::Done;
    }
    let paint = Paint::new(term::is_terminal());
    for spec in specs {
        term::out(&format!(
            "{}\n  {}\n",
            paint.bold(&spec.spec.name),
            spec.spec.description.replace('\n', "\n  ")
        ));
    }
    Exit::Done
}

async fn tool_run(host: &Host, args: ToolRunArgs) -> Exit {
    let place = ConfigPlace::folder(&args.working_dir);
    let settled = match settings::settle(host, place, &Given::default(), args.trust.telling()) {
        Ok(settled) => settled,
        Err(exit) => return exit,
    };
    let proposed = match args.proposed.as_ref().map(std::fs::read_to_string).transpose() {
        Ok(proposed) => proposed,
        Err(error) => return Exit::wrong_usage(&format!("--proposed cannot be read: {error}")),
    };
    let cancel = tokio_util::sync::CancellationToken::new();
    let run = ToolRun {
        name: args.name,
        arguments: args.json,
        toolset: args.toolset.map(Into::into),
        mode: args.mode.map(Into::into),
        extras: settled.extras(),
        folder: args.working_dir,
        cancel: cancel.clone(),
        limits: settled.limits(),
    };
    if args.preview {
        return tool_preview(host, run).await;
    }
    let running = async {
        match &proposed {
            Some(proposed) => host.tools().run_proposed(run, proposed).await,
            None => host.tools().run(run).await,
        }
    };
    tokio::pin!(running);
    let ran = tokio::select! {
        ran = &mut running => ran,
        _ = tokio::signal::ctrl_c() => {
            cancel.cancel();
            running.await
        }
    };
    match ran {
        Ok(finished) => tool_finished(&finished, cancel.is_cancelled()),
        Err(error) => Exit::host(&error),
    }
}

async fn tool_preview(host: &Host, run: ToolRun) -> Exit {
    match host.tools().preview(run).await {
        Ok(ToolLook::Preview(preview)) => {
            term::out(&format!("{}\n", escape_unseen(preview.get().to_owned())));
            Exit::Done
        }
        Ok(ToolLook::Refused(finished)) => tool_finished(&finished, false),
        Err(error) => Exit::host(&error),
    }
}

fn tool_finished(finished: &CallFinished, cancelled: bool) -> Exit {
    let end = if finished.text.ends_with('\n') { "" } else { "\n" };
    term::out(&format!("{}{end}", term::foreign(&finished.text)));
    match finished.error {
        None if failed_command(finished) => Exit::Failed,
        None => Exit::Done,
        Some(_) if cancelled => Exit::Cancelled,
        Some(_) => Exit::Failed,
    }
}

/// Tells whether a tool that ran a command reports another exit code than 0.
fn failed_command(finished: &CallFinished) -> bool {
    let data = finished.data.as_ref().and_then(|data| data.to_value().ok());
    data.and_then(|data| data.get("exit_code")?.as_i64()).is_some_and(|code| code != 0)
}

async fn doctor(host: &Host, args: &DoctorArgs) -> Exit {
    let folder = std::env::current_dir().unwrap_or_else(|_| std::env::temp_dir());
    let here = ConfigPlace::folder(&folder);
    let extras = lathe_plan::settle(host, here, &Given::default(), &Absent).map(|settled| settled.extras());
    let mut checks = host.doctor(&folder, &extras.unwrap_or_default()).await;
    match settings::settle(host, here, &args.options.0, Asking::Tell) {
        // A cassette is not asked whether it answers.
        Ok(_) if args.cassette.replay.is_some() => {}
        Ok(settled) => checks.extend(host.models().probe(&settled.model_request()).await),
        // Its own message named file and line; the other checks do not depend on it.
        Err(_) => checks.push(Check {
            name: "config",
            state: CheckState::Broken,
            detail: "the configuration cannot be used; the message above says why".to_owned(),
        }),
    }
    let broken = checks.iter().any(|check| check.state == CheckState::Broken);
    if args.json {
        let rows: Vec<_> = checks
            .iter()
            .map(|check| json!({ "name": check.name, "state": state_word(check.state), "detail": check.detail }))
            .collect();
        print_json(&json!(rows));
    } else {
        let paint = Paint::new(term::is_terminal());
        for check in &checks {
            let mark = match check.state {
                CheckState::Good => paint.green("ok     "),
                CheckState::Note => paint.yellow("note   "),
                CheckState::Missing => paint.yellow("missing"),
                CheckState::Broken => paint.red("broken "),
            };
            term::out(&format!("{mark}  {:<8} {}\n", check.name, term::clean(&check.detail)));
        }
    }
    if broken { Exit::Failed } else { Exit::Done }
}

fn state_word(state: CheckState) -> &'static str {
    match state {
        CheckState::Good => "ok",
        CheckState::Note => "note",
        CheckState::Missing => "missing",
        CheckState::Broken => "broken",
    }
}
