//! Which command does what.

pub(crate) mod graph;
pub(crate) mod interactive;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod quarantine;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod travel;
pub(crate) mod trust;
pub(crate) mod upkeep;

use std::path::Path;

use clap::CommandFactory;
use lathe_host::{Check, CheckState, Home, Host, ToolLook, ToolRun};
use lathe_plan::{Absent, ConfigPlace, GivenOptions};
use lathe_protocol::{CallFinished, Toolset, escape_unseen};
use serde_json::json;

use crate::args::{Cli, CliCommand, ConfigCommand, DoctorArgs, ToolCommand, ToolRunArgs, ToolsArgs};
use crate::commands::trust::TrustAttendance;
use crate::exit::Exit;
use crate::inside;
use crate::terminal::output::print_json;
use crate::terminal::{self, Paint};

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
        CliCommand::Run(args) => run::run(&host, args).await,
        CliCommand::Demo(args) => run::demo(&host, args).await,
        CliCommand::Interactive(args) => interactive::interactive(&host, args).await,
        CliCommand::Resume(args) => run::resume(&host, args).await,
        CliCommand::Sessions(args) => show::sessions(&host, &args),
        CliCommand::Show(args) => show::show(&host, &args),
        CliCommand::Fork(args) => travel::fork(&host, &args),
        CliCommand::Rewind(args) => rewind::rewind(&host, &args),
        CliCommand::Undo(args) => rewind::undo(&host, &args),
        CliCommand::Diff(args) => rewind::diff(&host, &args),
        CliCommand::Watch(args) => travel::watch(&host, &args).await,
        CliCommand::Replay(args) => travel::replay(&host, &args).await,
        CliCommand::Tools(args) => tools(&host, &args).await,
        CliCommand::Tool(args) => match args.command {
            ToolCommand::Run(args) => tool_run(&host, args).await,
        },
        CliCommand::Shell(args) => crate::commands::shell::shell(&host, args).await,
        CliCommand::Graph(args) => crate::commands::graph::graph(&host, &args),
        CliCommand::Policy(args) => crate::commands::policy::policy(&host, &args),
        CliCommand::Serve(args) => crate::commands::serve::serve(host.home().clone(), args).await,
        CliCommand::Trust(args) => crate::commands::trust::trust(&host, &args),
        CliCommand::Quarantine(args) => crate::commands::quarantine::quarantine(&host, &args),
        CliCommand::Connect(args) => crate::connect::connect(args).await,
        CliCommand::Cost(args) => upkeep::cost(&host, &args),
        CliCommand::Gc(args) => upkeep::gc(&host, &args),
        CliCommand::Config(args) => match args.command {
            ConfigCommand::Show(args) => settings::config_show(&host, &args),
            ConfigCommand::Check(args) => settings::config_check(&host, &args),
            ConfigCommand::Reference => {
                terminal::out(&lathe_config::documentation());
                Exit::Done
            }
        },
        CliCommand::ShowConfig(args) => settings::show_config(&host, &args),
        CliCommand::Models(args) => models::models(&host, &args),
        CliCommand::Auth(args) => models::auth(&host, &args),
        CliCommand::Doctor(args) => doctor(&host, &args).await,
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "lathe", &mut script);
            terminal::out(&String::from_utf8_lossy(&script));
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
    let paint = Paint::new(terminal::is_terminal());
    for spec in specs {
        terminal::out(&format!(
            "{}\n  {}\n",
            paint.bold(&spec.spec.name),
            spec.spec.description.replace('\n', "\n  ")
        ));
    }
    Exit::Done
}

async fn tool_run(host: &Host, args: ToolRunArgs) -> Exit {
    let place = ConfigPlace::folder(&args.working_dir);
    let settled = match settings::settle(host, place, &GivenOptions::default(), args.trust.telling()) {
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
            terminal::out(&format!("{}\n", escape_unseen(preview.get().to_owned())));
            Exit::Done
        }
        Ok(ToolLook::Refused(finished)) => tool_finished(&finished, false),
        Err(error) => Exit::host(&error),
    }
}

fn tool_finished(finished: &CallFinished, cancelled: bool) -> Exit {
    let end = if finished.text.ends_with('\n') { "" } else { "\n" };
    terminal::out(&format!("{}{end}", terminal::foreign(&finished.text)));
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
    let extras =
        lathe_plan::settle(host, here, &GivenOptions::default(), &Absent).map(|settled| settled.extras());
    let mut checks = host.doctor(&folder, &extras.unwrap_or_default()).await;
    match settings::settle(host, here, &args.options.0, TrustAttendance::Tell) {
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
        let paint = Paint::new(terminal::is_terminal());
        for check in &checks {
            let mark = match check.state {
                CheckState::Good => paint.green("ok     "),
                CheckState::Note => paint.yellow("note   "),
                CheckState::Missing => paint.yellow("missing"),
                CheckState::Broken => paint.red("broken "),
            };
            terminal::out(&format!("{mark}  {:<8} {}\n", check.name, terminal::clean(&check.detail)));
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
