//! The commands of the program.

pub(crate) mod auth;
pub(crate) mod cost;
pub(crate) mod doctor;
pub(crate) mod fork;
pub(crate) mod gc;
pub(crate) mod graph;
pub(crate) mod interactive;
pub(crate) mod models;
pub(crate) mod policy;
pub(crate) mod quarantine;
pub(crate) mod replay;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod settings;
pub(crate) mod shell;
pub(crate) mod show;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod watch;

use clap::CommandFactory;
use lathe_host::{Home, Host};

use crate::args::{Cli, CliCommand, ConfigCommand, ToolCommand};
use crate::exit::Exit;
use crate::home_changes;
use crate::terminal;

pub(crate) async fn dispatch(cli: Cli) -> Exit {
    let host = match Home::find() {
        Ok(home) => Host::new(home),
        Err(error) => return Exit::host(&error),
    };
    if let Some(change) = home_changes::changing_command(&cli.command)
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
        CliCommand::Fork(args) => fork::fork(&host, &args),
        CliCommand::Rewind(args) => rewind::rewind(&host, &args),
        CliCommand::Undo(args) => rewind::undo(&host, &args),
        CliCommand::Diff(args) => rewind::diff(&host, &args),
        CliCommand::Watch(args) => watch::watch(&host, &args).await,
        CliCommand::Replay(args) => replay::replay(&host, &args).await,
        CliCommand::Tools(args) => tools::tools(&host, &args).await,
        CliCommand::Tool(args) => match args.command {
            ToolCommand::Run(args) => tools::tool_run(&host, args).await,
        },
        CliCommand::Shell(args) => shell::shell(&host, args).await,
        CliCommand::Graph(args) => graph::graph(&host, &args),
        CliCommand::Policy(args) => policy::policy(&host, &args),
        CliCommand::Serve(args) => serve::serve(host.home().clone(), args).await,
        CliCommand::Trust(args) => trust::trust(&host, &args),
        CliCommand::Quarantine(args) => quarantine::quarantine(&host, &args),
        CliCommand::Connect(args) => crate::connect::connect(args).await,
        CliCommand::Cost(args) => cost::cost(&host, &args),
        CliCommand::Gc(args) => gc::gc(&host, &args),
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
        CliCommand::Auth(args) => auth::auth(&host, &args),
        CliCommand::Doctor(args) => doctor::doctor(&host, &args).await,
        CliCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "lathe", &mut script);
            terminal::out(&String::from_utf8_lossy(&script));
            Exit::Done
        }
    }
}
