//! Settings at a terminal: what is wrong is told, and what is not trusted is asked about or told. Also `config` and
//! `show-config`.

use std::path::{Path, PathBuf};

use lathe_config::{Config, Problem, trae_show_config};
use lathe_host::{Extras, Host, HostError, Notices, ProjectLook, shown_setting};
use lathe_plan::{Absent, ConfigPlace, GivenOptions, Person, SettleError, Settled, untrusted_trae};
use lathe_protocol::list_warnings;
use serde_json::json;

use crate::args::{AgentArg, ConfigShowArgs, ConsoleArg, ShowConfigArgs};
use crate::commands::trust::{self, TrustAttendance};
use crate::exit::Exit;
use crate::terminal;
use crate::terminal::output::print_json;

/// The user at a terminal, or behind the standard error of a run.
struct Terminal(TrustAttendance);

impl Person for Terminal {
    fn decide(&self, host: &Host, look: ProjectLook) -> Result<ProjectLook, HostError> {
        trust::decide(host, look, self.0)
    }

    fn warn(&self, warning: &str) {
        terminal::err(&format!("warning: {}\n", terminal::clean(warning)));
    }

    fn tell_untrusted_trae(&self, look: &ProjectLook) {
        if let Some(line) = trust::untrusted_trae_line(look) {
            terminal::err(&line);
        }
    }
}

/// Reads everything there is to read for a folder and finds out what of the project's is trusted. Warnings go to standard
/// error; errors end the program.
pub(crate) fn settle(
    host: &Host,
    place: ConfigPlace<'_>,
    given: &GivenOptions,
    asking: TrustAttendance,
) -> Result<Settled, Exit> {
    lathe_plan::settle(host, place, given, &Terminal(asking)).map_err(ended)
}

/// The settings of a folder, for what uses nothing of a project's that needs trust.
pub(crate) fn settings(host: &Host, place: ConfigPlace<'_>, given: &GivenOptions) -> Result<Config, Exit> {
    settle(host, place, given, TrustAttendance::Tell).map(|settled| settled.config)
}

/// All of a folder's configuration, for commands that say nothing else about it: only files of rules that are not read are
/// told. A configuration that cannot be used ends the program.
pub(crate) fn settle_or_tell(host: &Host, folder: &Path) -> Result<Settled, Exit> {
    tell_unread_rules(host);
    lathe_plan::settle(host, ConfigPlace::folder(folder), &GivenOptions::default(), &Absent).map_err(ended)
}

/// The additions of a folder's configuration, in the same way.
pub(crate) fn extras_of(host: &Host, folder: &Path) -> Result<Extras, Exit> {
    settle_or_tell(host, folder).map(|settled| settled.extras())
}

/// Tells of files in the folder of rules that are not read.
pub(crate) fn tell_unread_rules(host: &Host) {
    if let Some(words) = lathe_plan::unread_rules(host) {
        terminal::err(&format!("warning: {}\n", terminal::clean(&words)));
    }
}

fn ended(error: SettleError) -> Exit {
    match error {
        SettleError::Config(errors) => {
            tell("Error", &errors.errors);
            Exit::Usage
        }
        SettleError::Host(error) => Exit::host(&error),
    }
}

fn tell<'a>(word: &str, problems: impl IntoIterator<Item = &'a Problem>) {
    for problem in list_warnings(problems.into_iter().map(ToString::to_string)) {
        terminal::err(&format!("{word}: {}\n", terminal::clean(&problem)));
    }
}

/// Says which of Trae's flags change nothing here.
pub(crate) fn tell_idle_flags(console: Option<ConsoleArg>, agent: Option<AgentArg>) {
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

/// Tells what was noticed about tools when they were found.
pub(crate) fn tell_notices(notices: &Notices) {
    for words in notices.take() {
        terminal::err(&format!("warning: {}\n", terminal::clean(&words)));
    }
}

/// A path of the command line, from where the user stands.
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
    match settle(host, place, &GivenOptions::default(), TrustAttendance::Tell) {
        Ok(settled) if has_wrong_checks(&settled.config) => Exit::Usage,
        Ok(settled) if settled.config.warnings.is_empty() => {
            terminal::out("the configuration is good\n");
            Exit::Done
        }
        Ok(settled) => {
            // What the one line about a Trae file leaves out.
            if !place.names_a_file() && is_untrusted(host, &args.working_dir) {
                tell("warning", settled.trae_warnings());
            }
            Exit::Done
        }
        Err(exit) => exit,
    }
}

/// Tells whether a folder has a Trae file that is not trusted.
fn is_untrusted(host: &Host, folder: &Path) -> bool {
    lathe_plan::look_at(host, folder, &[]).is_ok_and(|look| untrusted_trae(&look).is_some())
}

/// Whether a rule of `[check]` cannot be used; each is said, with its file and line.
fn has_wrong_checks(config: &Config) -> bool {
    let mut wrong = false;
    for (glob, command) in &config.settings.check {
        let Some(reason) = Extras::wrong_check(glob, command) else { continue };
        wrong = true;
        let origin = config.origins.iter().find(|(key, _)| key.starts_with("check.") && key.contains(glob));
        let place = origin.map_or("the configuration".to_owned(), |(_, origin)| origin.to_string());
        terminal::err(&format!(
            "Error: {}\n",
            terminal::clean(&format!("{place}: `check` {glob:?}: {reason}"))
        ));
    }
    wrong
}

/// Trae's `show-config`.
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
