//! What the gate would say about a line.

use std::path::Path;
use std::sync::Arc;

use lathe_policy::{Gate, LineDecision, Rulebook, Tier};
use lathe_protocol::{Actor, Mode};
use lathe_tools::Judge;

use crate::error::HostError;
use crate::session::Host;

/// Rules that can be tried on lines.
pub struct PolicyCheck {
    gate: Gate,
    rules: Rulebook,
}

impl Host {
    /// The rules of a file alone, or those that hold here: the built-in ones and the user's (`policy/*.toml`).
    pub fn policy_check(&self, rules: Option<&Path>) -> Result<PolicyCheck, HostError> {
        let gate = Gate { headless: false, ..self.gate(&std::env::current_dir().unwrap_or_default()) };
        let rules = match rules {
            Some(file) => with_file(Rulebook::empty(), file)?,
            None => self.rulebook()?,
        };
        Ok(PolicyCheck { gate, rules })
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
            rules: Arc::new(self.rulebook()?.knowing(commands)),
            actor: if mode.is_some() { Actor::Model } else { Actor::Person },
            mode: mode.unwrap_or(Mode::Default),
        })
    }

    /// The rules that hold on this machine.
    pub(crate) fn rulebook(&self) -> Result<Rulebook, HostError> {
        let mut files: Vec<_> = std::fs::read_dir(self.home().path().join("policy"))
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
            .collect();
        files.sort();
        files.iter().try_fold(Rulebook::builtin(), |rules, file| with_file(rules, file))
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
