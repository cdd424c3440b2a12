//! Checks that everything Lathe needs exists and works.

use std::path::Path;

use lathe_journal::{Index, SessionReader, session_ids};
use lathe_protocol::{SessionId, counted};
use lathe_workspace::{Level, Workspace, privileged_sockets};
use tokio_util::sync::CancellationToken;

use crate::error::HostError;

use crate::models::providers::{PROVIDERS, Provider};
use crate::session::Host;
use crate::session::extras::Extras;
use crate::tools::tool_run::ToolRun;

/// The result of one check.
pub struct Check {
    pub name: &'static str,
    pub state: CheckState,
    pub detail: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckState {
    Good,
    /// It works, with something the user should know.
    Note,
    /// Lathe works without it.
    Missing,
    Broken,
}

impl Host {
    pub async fn doctor(&self, folder: &Path, extras: &Extras) -> Vec<Check> {
        let workspace = self.home().workspace(folder);
        let mut checks = vec![self.check_home(), self.check_policy(&workspace, extras).await];
        let checked = extras.check(&workspace, self.home().path());
        if let Err(error) = checked.and_then(|()| extras.checks().map(drop)) {
            checks.push(broken("settings", error.to_string()));
        }
        checks.extend([self.check_sessions(), self.check_index(), self.check_shell(folder).await]);
        checks.extend([check_git(folder), check_model(), self.check_sandbox(folder).await]);
        checks
    }

    fn check_home(&self) -> Check {
        let probe = || -> Result<(), String> {
            self.home().make().map_err(|error| error.to_string())?;
            let file = self.home().path().join(format!(".doctor-{}", std::process::id()));
            std::fs::write(&file, b"ok").map_err(|error| error.to_string())?;
            std::fs::remove_file(&file).map_err(|error| error.to_string())
        };
        match probe() {
            Ok(()) => good("home", format!("{} can be written", self.home().path().display())),
            Err(reason) => broken("home", reason),
        }
    }

    /// Builds the walls of a session once, and reports why they are not stronger.
    async fn check_sandbox(&self, folder: &Path) -> Check {
        let found = match self.walls(folder).await {
            Ok(found) => found,
            Err(error) => return broken("sandbox", error.to_string()),
        };
        let why =
            if found.missing.is_empty() { String::new() } else { format!(": {}", found.missing.join("; ")) };
        let reachable = match found.level {
            Level::Walls => Vec::new(),
            Level::Off | Level::Limits | Level::Filters => {
                privileged_sockets(std::env::home_dir().as_deref())
            }
        };
        let reachable = match reachable.as_slice() {
            [] => String::new(),
            names => format!("; commands can reach {}", names.join(", ")),
        };
        let detail = format!("level {}{why}{reachable}", found.level.number());
        match found.level {
            Level::Walls => good("sandbox", detail),
            Level::Filters => noted("sandbox", detail),
            Level::Off | Level::Limits => {
                missing("sandbox", format!("{detail}; `run` changes nothing without --mode full-auto"))
            }
        }
    }

    /// Checks that the rule files can be read and that every tool they name exists. Tools of fields, servers and
    /// programs come and go, so a name that matches no tool at the moment is reported here and nowhere else.
    async fn check_policy(&self, workspace: &Workspace, extras: &Extras) -> Check {
        let rules = match self.rules().rulebook(workspace, extras) {
            Ok(rules) => rules,
            Err(error) => return broken("policy", error.to_string()),
        };
        let mut passing = rules.passing_names();
        let fields = extras.field_names().collect();
        let excluded = lathe_tools::transient_entries(&extras.exclude, &fields);
        passing.extend(excluded.into_iter().map(|name| (name, "tools.exclude".to_owned())));
        let allowed = lathe_tools::transient_entries(&extras.allowed, &fields);
        passing.extend(allowed.into_iter().map(|name| (name, "tools.allowed".to_owned())));
        if passing.is_empty() {
            return good("policy", "the rule files can be read".to_owned());
        }
        let outside = match extras.outside_tools(workspace, self.home().path()).await {
            Ok(outside) => outside,
            Err(error) => return broken("policy", error.to_string()),
        };
        let mut known: Vec<String> = outside.iter().flat_map(|tool| tool.own_command().also).collect();
        known.extend(lathe_tools::every_tool_name().map(str::to_owned));
        let idle: Vec<String> = passing
            .into_iter()
            .filter(|(name, _)| !known.iter().any(|known| lathe_policy::tool_name_matches(name, known)))
            .map(|(name, rule)| format!("`{name}` ({rule})"))
            .collect();
        match idle.as_slice() {
            [] => good("policy", "the rule files can be read".to_owned()),
            idle => noted(
                "policy",
                format!(
                    "the rules can be read, but these names in them match no tool now: {}",
                    idle.join(", ")
                ),
            ),
        }
    }

    /// Opens every journal and reads it to its end. A damaged one is named; nothing is done to it.
    fn check_sessions(&self) -> Check {
        let ids = session_ids(&self.home().sessions()).unwrap_or_default();
        let wrong: Vec<String> = ids
            .iter()
            .filter_map(|id| match self.read_through(id) {
                Ok(()) => None,
                Err(error) => Some(format!("{id}: {error}")),
            })
            .collect();
        match wrong.as_slice() {
            [] => good("sessions", format!("{} can be read", ids.len())),
            wrong => broken(
                "sessions",
                format!("{} of {} cannot be read: {}", wrong.len(), ids.len(), wrong.join("; ")),
            ),
        }
    }

    fn read_through(&self, id: &SessionId) -> Result<(), HostError> {
        let reader = SessionReader::open(&self.home().sessions(), id, self.home().blobs()?)?;
        Ok(reader.live_each(drop)?)
    }

    /// Rebuilds the index if it does not fit the journals; it can always be rebuilt.
    fn check_index(&self) -> Check {
        let home = self.home().path();
        if !self.home().sessions().exists() {
            return good("index", "nothing to list yet".to_owned());
        }
        let repair = || -> Result<String, HostError> {
            let journals = session_ids(&self.home().sessions())?.len();
            let mut index = Index::open(home)?;
            let listed = index.list(None)?.len();
            if listed == journals {
                return Ok(format!("{} listed", counted(listed, "session")));
            }
            let rebuilt = index.rebuild(&self.home().sessions(), &self.home().blobs()?)?;
            Ok(format!(
                "made again: it listed {listed} of {}, now {}",
                counted(journals, "session"),
                rebuilt.sessions
            ))
        };
        match repair() {
            Ok(detail) => good("index", detail),
            Err(error) => broken("index", error.to_string()),
        }
    }

    async fn check_shell(&self, folder: &Path) -> Check {
        let run = ToolRun {
            name: "bash".to_owned(),
            arguments: r#"{"command":"echo \"bash $BASH_VERSION\""}"#.to_owned(),
            toolset: None,
            mode: None,
            folder: folder.to_owned(),
            cancel: CancellationToken::new(),
            extras: Extras::default(),
            limits: lathe_protocol::Limits::default(),
        };
        match self.tools().run(run).await {
            Ok(finished) if finished.error.is_none() => {
                let version =
                    finished.text.lines().find(|line| line.starts_with("bash ")).unwrap_or("bash").to_owned();
                good("shell", format!("{version} runs under its supervisor"))
            }
            Ok(finished) => broken("shell", finished.text),
            Err(error) => broken("shell", error.to_string()),
        }
    }
}

fn check_git(folder: &Path) -> Check {
    match lathe_git::git_version(folder) {
        Some(version) => good("git", version),
        None => missing("git", "not found; Lathe works without it".to_owned()),
    }
}

fn check_model() -> Check {
    let keys: Vec<String> = PROVIDERS
        .iter()
        .flat_map(Provider::key_variables)
        .filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
        .collect();
    if keys.is_empty() {
        return missing(
            "model",
            "no key in the environment; set OPENAI_API_KEY or give --model-base-url".to_owned(),
        );
    }
    good("model", format!("key set: {}", keys.join(", ")))
}

fn good(name: &'static str, detail: String) -> Check {
    Check { name, state: CheckState::Good, detail }
}

fn noted(name: &'static str, detail: String) -> Check {
    Check { name, state: CheckState::Note, detail }
}

fn missing(name: &'static str, detail: String) -> Check {
    Check { name, state: CheckState::Missing, detail }
}

fn broken(name: &'static str, detail: String) -> Check {
    Check { name, state: CheckState::Broken, detail }
}
