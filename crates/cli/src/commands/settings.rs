//! Settings at a terminal: problems are printed, and the user is asked about untrusted items or informed of them.
//! Also `config` and `show-config`.

use std::path::{Path, PathBuf};

use lathe_config::{Config, Problem, trae_show_config};
use lathe_host::{Extras, Host, HostError, Notices, ProjectInspection, shown_setting};
use lathe_plan::{Absent, ConfigPlace, GivenOptions, Person, SettleError, Settled, untrusted_trae};
use lathe_protocol::list_warnings;
use lathe_views::Say;
use serde_json::json;

use crate::args::{AgentArg, ConfigShowArgs, ConsoleArg, ShowConfigArgs};
use crate::commands::trust::{self, TrustAttendance};
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

/// The user at a terminal, or the reader of a run's standard error.
struct TerminalUser(TrustAttendance);

impl Person for TerminalUser {
    fn decide(&self, host: &Host, look: ProjectInspection) -> Result<ProjectInspection, HostError> {
        trust::decide(host, look, self.0)
    }

    fn warn(&self, warning: &str) {
        terminal::err(&format!("warning: {}\n", terminal::clean(warning)));
    }

    fn report_untrusted_trae(&self, look: &ProjectInspection) {
        if let Some(line) = trust::untrusted_trae_line(look) {
            terminal::err(&line);
        }
    }
}

/// Reads all settings of a folder and decides what of the project is trusted. Warnings go to standard error; errors
/// end the program.
pub(crate) fn settle(
    host: &Host,
    place: ConfigPlace<'_>,
    given: &GivenOptions,
    asking: TrustAttendance,
) -> Result<Settled, Exit> {
    lathe_plan::settle(host, place, given, &TerminalUser(asking)).map_err(settle_exit)
}

/// The settings of a folder, for commands that use nothing of a project that needs trust.
pub(crate) fn settings(host: &Host, place: ConfigPlace<'_>, given: &GivenOptions) -> Result<Config, Exit> {
    settle(host, place, given, TrustAttendance::Report).map(|settled| settled.config)
}

/// All of a folder's configuration, for commands that report nothing else about it: only unread files of rules are
/// reported. A configuration that cannot be used ends the program.
pub(crate) fn settle_quietly(host: &Host, folder: &Path) -> Result<Settled, Exit> {
    warn_of_unread_rules(host);
    lathe_plan::settle(host, ConfigPlace::folder(folder), &GivenOptions::default(), &Absent)
        .map_err(settle_exit)
}

/// The additions of a folder's configuration, in the same way.
pub(crate) fn extras_of(host: &Host, folder: &Path) -> Result<Extras, Exit> {
    settle_quietly(host, folder).map(|settled| settled.extras())
}

/// Warns of files in the folder of rules that are not read.
pub(crate) fn warn_of_unread_rules(host: &Host) {
    if let Some(words) = lathe_plan::unread_rules(host) {
        terminal::err(&format!("warning: {}\n", terminal::clean(&words)));
    }
}

fn settle_exit(error: SettleError) -> Exit {
    match error {
        SettleError::Config(errors) => {
            print_problems("Error", &errors.errors);
            Exit::Usage
        }
        SettleError::Host(error) => Exit::host(&error),
    }
}

fn print_problems<'a>(word: &str, problems: impl IntoIterator<Item = &'a Problem>) {
    for problem in list_warnings(problems.into_iter().map(ToString::to_string)) {
        terminal::err(&format!("{word}: {}\n", terminal::clean(&problem)));
    }
}

/// Notes which of Trae's flags have no effect here.
pub(crate) fn note_idle_flags(console: Option<ConsoleArg>, agent: Option<AgentArg>) {
    let console = match console {
        Some(ConsoleArg::Rich) => Some("--console-type rich"),
        Some(ConsoleArg::Simple) | None => None,
    };
    let agent = agent.map(|AgentArg::TraeAgent| "--agent-type");
    let idle: Vec<&str> = console.into_iter().chain(agent).collect();
    if !idle.is_empty() {
        let flags = idle.join(" and ");
        let change = if idle.len() == 1 { "changes" } else { "change" };
        terminal::err(&format!(
            "note: {flags} {change} nothing: this version has one console and one kind of agent\n"
        ));
    }
}

/// Warns of problems that came up when tools were discovered.
pub(crate) fn warn_of_notices(notices: &Notices) {
    for words in notices.take() {
        terminal::err(&format!("warning: {}\n", terminal::clean(&words)));
    }
}

/// The absolute form of a path of the command line, from the current folder.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// `config show`: every value with its source.
pub(crate) fn config_show(host: &Host, args: &ConfigShowArgs) -> Exit {
    let config = match settings(host, args.place(), &GivenOptions::default()) {
        Ok(config) => config,
        Err(exit) => return exit,
    };
    let rows = config.rows();
    if args.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| json!({ "key": row.key, "value": shown_setting(&row.value), "source": row.source.to_string() }))
            .collect();
        print_json(&json!(rows));
        return Exit::Done;
    }
    let width = rows.iter().map(|row| row.key.chars().count()).max().unwrap_or(0);
    for row in rows {
        let (key, value) = (terminal::clean(&row.key), terminal::clean(&shown_setting(&row.value)));
        terminal::out(&format!("{key:<width$}  {value}  ({})\n", terminal::clean(&row.source.to_string())));
    }
    Exit::Done
}

/// `config check`: only what is wrong.
pub(crate) fn config_check(host: &Host, args: &ConfigShowArgs) -> Exit {
    let place = args.place();
    if let Ok(settled) = lathe_plan::settle(host, place, &GivenOptions::default(), &Absent)
        && let Err(error) = host.rules().check_session(&args.working_dir, &settled.extras())
    {
        return Exit::host(&error);
    }
    match settle(host, place, &GivenOptions::default(), TrustAttendance::Report) {
        Ok(settled) if report_wrong_checks(&settled.config) => Exit::Usage,
        Ok(settled) if settled.config.warnings.is_empty() => {
            terminal::out_line(Say::ConfigurationGood.text(terminal::language()));
            Exit::Done
        }
        Ok(settled) => {
            // Warnings that the one line about a Trae file leaves out.
            if !place.names_a_file() && has_untrusted_trae(host, &args.working_dir) {
                print_problems("warning", settled.trae_warnings());
            }
            Exit::Done
        }
        Err(exit) => exit,
    }
}

/// True if a folder has a Trae file that is not trusted.
fn has_untrusted_trae(host: &Host, folder: &Path) -> bool {
    lathe_plan::inspect_folder(host, folder, &[]).is_ok_and(|look| untrusted_trae(&look).is_some())
}

/// Reports the rules of `[check]` that cannot be used, with file and line. True if there is one.
fn report_wrong_checks(config: &Config) -> bool {
    let mut wrong = false;
    for (glob, command) in &config.settings.check {
        let Some(reason) = Extras::check_error(glob, command) else { continue };
        wrong = true;
        let origin = config.origins.iter().find(|(key, _)| key.starts_with("check.") && key.contains(glob));
        let place = origin.map_or("the configuration".to_owned(), |(_, origin)| origin.to_string());
        let problem = format!("{place}: `check` {glob:?}: {reason}");
        terminal::err(&format!("Error: {}\n", terminal::clean(&problem)));
    }
    wrong
}

/// `show-config`, as Trae prints it.
pub(crate) fn show_config(host: &Host, args: &ShowConfigArgs) -> Exit {
    let place = ConfigPlace::with_file(Path::new("."), args.config_file.as_deref());
    match settings(host, place, &args.options.0) {
        Ok(config) => {
            terminal::out(&trae_show_config(&config));
            Exit::Done
        }
        Err(exit) => exit,
    }
}
