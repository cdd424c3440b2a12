//! The decisions that a rule file would have made about the calls of past sessions.

use std::path::Path;

use lathe_journal::{SessionReader, session_ids};
use lathe_policy::{Gate, GateCall, Rulebook};
use lathe_protocol::{Actor, CallDecided, Effects, Fact, Mode, SessionId, ToolKind, Verdict};
use serde::Serialize;

use crate::error::HostError;
use crate::rules::Rules;
use crate::rules::line_check::with_file;
use crate::session::extras::Extras;

/// The tool whose calls are shell lines.
const SHELL: &str = "bash";

/// The result of trying a rule file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PolicyReplay {
    pub sessions: usize,
    pub calls: usize,
    /// Calls that would be decided differently, in the order in which they were made.
    pub changed: Vec<ChangedDecision>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedDecision {
    pub session: String,
    pub step: u32,
    pub call: String,
    pub tool: String,
    /// The line, or the subject of the call.
    pub about: String,
    pub was: Verdict,
    pub was_by: String,
    pub would_be: Verdict,
    pub would_be_by: String,
}

impl Rules {
    /// Decides every recorded call again, with the rules that apply here and this file. All sessions if none is
    /// named.
    pub fn policy_replay(
        &self,
        file: &Path,
        sessions: &[SessionId],
        extras: &Extras,
    ) -> Result<PolicyReplay, HostError> {
        let here = std::env::current_dir().unwrap_or_default();
        let here = self.home().workspace(&here);
        let rules = with_file(self.rulebook(&here, extras)?, file, None)?;
        let all = if sessions.is_empty() && self.home().sessions().exists() {
            session_ids(&self.home().sessions())?
        } else {
            sessions.to_vec()
        };
        let mut replay = PolicyReplay::default();
        for id in all {
            let reader = SessionReader::open(&self.home().sessions(), &id, self.home().blobs()?)?;
            replay.sessions += 1;
            self.replay_one(&rules, &id, &reader, &mut replay)?;
        }
        Ok(replay)
    }

    fn replay_one(
        &self,
        rules: &Rulebook,
        id: &SessionId,
        reader: &SessionReader,
        replay: &mut PolicyReplay,
    ) -> Result<(), HostError> {
        let (mut mode, mut root) = (Mode::Default, std::path::PathBuf::from("/"));
        for event in reader.all()? {
            match &event.fact {
                Fact::SessionOpened(opened) => {
                    mode = opened.options.mode;
                    root = Path::new(&opened.workspace).to_owned();
                }
                Fact::OptionsChanged(changed) => mode = changed.options.mode,
                Fact::CallDecided(decided) => {
                    replay.calls += 1;
                    // The decision itself shows whether a user could be asked.
                    let headless = decided.decision.rule == "headless";
                    let gate = Gate { headless, ..self.gate(&self.home().workspace(&root)) };
                    let again = decide(&gate, rules, mode, decided);
                    if again.verdict != decided.decision.verdict {
                        replay.changed.push(ChangedDecision {
                            session: id.to_string(),
                            step: event.place.step.unwrap_or_default().0,
                            call: event.place.call.as_ref().map(ToString::to_string).unwrap_or_default(),
                            tool: decided.tool.clone(),
                            about: decided.about.clone(),
                            was: decided.decision.verdict,
                            was_by: decided.decision.rule.clone(),
                            would_be: again.verdict,
                            would_be_by: again.rule,
                        });
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}

fn decide(gate: &Gate, rules: &Rulebook, mode: Mode, decided: &CallDecided) -> lathe_protocol::Decision {
    if decided.tool == SHELL && !decided.each.is_empty() {
        // The agent's commands are recognised by their decisions.
        let own = decided.each.iter().filter(|each| each.decision.rule == "builtin.agent");
        let names: Vec<String> = own.filter_map(|each| each.words.first().cloned()).collect();
        let known = lathe_tools::built_in_commands().into_iter().filter(|own| names.contains(&own.name));
        let rules = rules.clone().with_own_commands(names.clone()).with_own_commands(known);
        return gate.decide_line(&rules, Actor::Model, mode, &decided.about).decision;
    }
    let call = GateCall {
        tool: &decided.tool,
        also: &[],
        kind: kind(&decided.effects),
        kinds: &[],
        effects: &decided.effects,
        // The journal does not record them with a decision.
        arguments: &[],
    };
    gate.decide_call(rules, Actor::Model, mode, &call)
}

/// The kind of a call, derived from its effects: the journal does not record it.
fn kind(effects: &Effects) -> ToolKind {
    match effects {
        Effects { opaque: true, .. } => ToolKind::Execute,
        Effects { programs, .. } if !programs.is_empty() => ToolKind::Execute,
        Effects { writes, .. } if !writes.is_empty() => ToolKind::Edit,
        Effects { hosts, .. } if !hosts.is_empty() => ToolKind::Fetch,
        Effects { reads, .. } if !reads.is_empty() => ToolKind::Read,
        _ => ToolKind::Other,
    }
}
