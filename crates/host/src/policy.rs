//! What the gate would say about a line.

use std::path::Path;
use std::sync::Arc;

use lathe_policy::{Gate, LineDecision, Rulebook, Tier};
use lathe_protocol::{Actor, Mode};
use lathe_tools::Judge;
use lathe_workspace::LocalFiles;

use crate::error::HostError;
use crate::gitrules;
use crate::session::Host;
use crate::trust::text_of;

/// The rules of a project. They need no trust, because they cannot loosen anything.
const PROJECT_RULES: &str = ".lathe/policy.toml";

/// Rules that can be tried on lines.
pub struct PolicyCheck {
    gate: Gate,
    rules: Rulebook,
}

impl Host {
    /// The rules of a file alone, or those that hold here: the built-in ones and the user's (`policy/*.toml`).
    pub fn policy_check(&self, rules: Option<&Path>) -> Result<PolicyCheck, HostError> {
        let root = std::env::current_dir().unwrap_or_default();
        let gate = Gate { headless: false, ..self.gate(&root) };
        Ok(match rules {
            // A file is tried for no folder in particular: a relative name in a line means no place then.
            Some(file) => PolicyCheck {
                gate: Gate { here: None, user_home: None, git_runs: None, ..gate },
                rules: with_file(Rulebook::empty(), file)?,
            },
            None => PolicyCheck { gate, rules: self.rulebook(&root)? },
        })
    }

    /// Decides about what a person does without a model: limited by the guard only, unless a mode is named.
    pub(crate) fn judge(
        &self,
        root: &Path,
        mode: Option<Mode>,
        commands: Vec<String>,
    ) -> Result<Judge, HostError> {
        Ok(Judge {
            gate: self.gate(root),
            rules: Arc::new(self.rulebook(root)?.knowing(commands)),
            actor: if mode.is_some() { Actor::Model } else { Actor::Person },
            mode: mode.unwrap_or(Mode::Default),
        })
    }

    /// The rules that hold in a folder: the built-in ones, the user's, and the project's, which only tighten.
    pub(crate) fn rulebook(&self, root: &Path) -> Result<Rulebook, HostError> {
        let mut files: Vec<_> = std::fs::read_dir(self.home().path().join("policy"))
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .collect();
        files.sort();
        let rules = files.iter().try_fold(Rulebook::builtin(), |rules, file| with_file(rules, file))?;
        let rules = match gitrules::rules(root) {
            Some(text) => rules
                .with(Tier::Project, "git", &text)
                .map_err(|error| HostError::Policy(error.to_string()))?,
            None => rules,
        };
        let wrong = |reason: String| HostError::Policy(format!("{PROJECT_RULES}: {reason}"));
        match text_of(&LocalFiles::new(root.to_owned()), Path::new(PROJECT_RULES)).map_err(wrong)? {
            Some(text) => rules
                .with(Tier::Project, PROJECT_RULES, &text)
                .map_err(|error| HostError::Policy(error.to_string())),
            None => Ok(rules),
        }
    }
}

fn with_file(rules: Rulebook, file: &Path) -> Result<Rulebook, HostError> {
    let name = file.display().to_string();
    let text =
        std::fs::read_to_string(file).map_err(|error| HostError::Policy(format!("{name}: {error}")))?;
    rules.with(Tier::User, &name, &text).map_err(|error| HostError::Policy(error.to_string()))
}

impl PolicyCheck {
    pub fn line(&self, mode: Mode, line: &str) -> LineDecision {
        self.gate.decide_line(&self.rules, Actor::Model, mode, line)
    }
}
