//! The network of a line behind walls: the hosts of the user's list, and every public one if the user was asked about a
//! line that uses the network, and approved it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lathe_policy::{Gate, Rulebook};
use lathe_protocol::{Actor, Mode, Verdict, counted};
use lathe_workspace::NetworkDoor;

use crate::tool::RunContext;

/// The most hosts that a result names.
const NAMED: usize = 20;

/// The rule of a question about the network.
const NETWORK: &str = "walls.network";

/// The way out while a line runs. It is closed again when this is dropped.
pub(super) struct LineNetwork(Option<Arc<dyn NetworkDoor>>);

impl LineNetwork {
    pub(super) fn begin(context: &RunContext, line: &str) -> Self {
        let door = context.services.workspace.network().cloned();
        if let Some(door) = &door {
            door.set_open(is_approved(context, line));
        }
        Self(door)
    }

    /// Ends the line. Returns the note on its connections.
    pub(super) fn end(self) -> Option<String> {
        let door = self.0.as_ref()?;
        door.set_open(false);
        let mut hosts: BTreeMap<(String, bool), (u64, String)> = BTreeMap::new();
        for visit in door.take_visits() {
            let entry = hosts.entry((visit.host, visit.is_allowed)).or_default();
            entry.0 += visit.bytes_up + visit.bytes_down;
            entry.1 = visit.reason;
        }
        let words =
            |((host, is_allowed), (bytes, reason)): (&(String, bool), &(u64, String))| match is_allowed {
                true => format!("{host} ({} bytes)", bytes),
                false => format!("{host} was refused: {reason}"),
            };
        let mut named: Vec<String> = hosts.iter().take(NAMED).map(words).collect();
        if hosts.len() > NAMED {
            named.push(format!("and {} more", counted(hosts.len() - NAMED, "host")));
        }
        (!named.is_empty()).then(|| format!("network: {}", lathe_protocol::visible(&named.join("; "))))
    }
}

impl Drop for LineNetwork {
    fn drop(&mut self) {
        if let Some(door) = &self.0 {
            door.set_open(false);
        }
    }
}

/// Tells whether a line uses the network and runs because the user approved that, now or by a rule. In `full-auto` the
/// user was not asked.
fn is_approved(context: &RunContext, line: &str) -> bool {
    let asks = match context.call_gate.mode {
        Mode::Default | Mode::AutoEdit => context.call_gate.actor == Actor::Model,
        Mode::Plan | Mode::FullAuto => false,
    };
    let gate = Gate { headless: false, ..context.call_gate.gate.clone() };
    asks && {
        let decided = gate.decide_line(&Rulebook::builtin(), Actor::Model, Mode::Default, line);
        let uses = |verdict: Verdict, rule: &str| verdict == Verdict::Ask && rule == NETWORK;
        decided.commands.iter().any(|each| uses(each.decision.verdict, &each.decision.rule))
    }
}
