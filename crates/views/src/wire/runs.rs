//! The runs of a session with their steps, as far as frames need them.
//!
//! A step has two numbers. The journal counts steps through the whole session, and so do rewinds and forks. Trae's
//! clients count them from the beginning of a run. Both are known here, for the live branch: a rewind drops runs, and
//! undoing the rewind restores them.

use std::collections::BTreeMap;
use std::sync::Arc;

use lathe_protocol::{RunNo, Seq, StepNo, Timestamp};
use serde_json::{Value, json};

/// Both numbers of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepNumbers {
    /// Counted from the beginning of the run.
    pub in_run: u32,
    /// Counted through the whole session.
    pub in_session: StepNo,
}

#[derive(Debug, Clone)]
pub(super) struct Run {
    pub began: Timestamp,
    pub task: Arc<str>,
    /// The first frame of the run is still due: it names the tools, which come with the first request.
    pub start_due: bool,
    pub first: Option<StepNo>,
    pub last: Option<StepNo>,
    pub interactions: u32,
    pub ended: Option<(bool, Arc<str>)>,
    /// Error bubbles of the last step that had one, and the number of that step.
    errors: (u32, u32),
}

impl Run {
    pub fn new(began: Timestamp, task: &str) -> Self {
        Self {
            began,
            task: task.into(),
            start_due: true,
            first: None,
            last: None,
            interactions: 0,
            ended: None,
            errors: (0, 0),
        }
    }

    pub fn number(&self, step: StepNo) -> u32 {
        step.0.saturating_sub(self.first.unwrap_or(step).0) + 1
    }

    pub fn steps(&self) -> u32 {
        self.last.map_or(0, |last| self.number(last))
    }

    pub fn numbers(&self, step: StepNo) -> StepNumbers {
        StepNumbers { in_run: self.number(step), in_session: step }
    }

    /// The id of one more error bubble of a step. Each has its own, so that none replaces another.
    pub fn error_id(&mut self, number: u32) -> String {
        let (step, count) = self.errors;
        let count = if step == number { count + 1 } else { 1 };
        self.errors = (number, count);
        match count {
            1 => format!("taskdone-{number}-error"),
            count => format!("taskdone-{number}-error-{count}"),
        }
    }
}

/// The runs of the live branch.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    live: BTreeMap<RunNo, Run>,
    /// The runs before each rewind, by the number of its event.
    left: Vec<(Seq, BTreeMap<RunNo, Run>)>,
}

impl Runs {
    pub fn insert(&mut self, number: RunNo, run: Run) {
        self.live.insert(number, run);
    }

    pub fn get(&self, run: RunNo) -> Option<&Run> {
        self.live.get(&run)
    }

    pub fn get_mut(&mut self, run: RunNo) -> Option<&mut Run> {
        self.live.get_mut(&run)
    }

    pub fn first(&self) -> Option<RunNo> {
        self.live.keys().next().copied()
    }

    pub fn last(&self) -> Option<RunNo> {
        self.live.keys().next_back().copied()
    }

    /// Drops the runs and steps after a step.
    pub fn rewind(&mut self, rewind: Seq, to: StepNo) {
        self.left.push((rewind, self.live.clone()));
        self.live.retain(|_, run| run.first.is_some_and(|first| first <= to));
        for run in self.live.values_mut().filter(|run| run.last.is_some_and(|last| last > to)) {
            run.last = Some(to);
            run.ended = None;
        }
    }

    /// Makes the runs again what they were before a rewind.
    pub fn undo_rewind(&mut self, rewind: Seq) {
        if let Some((_, runs)) = self.left.iter().find(|(seq, _)| *seq == rewind) {
            self.live.clone_from(runs);
        }
    }

    /// The place of a step of the session, for clients that count by runs: `{run, step}`, or null.
    pub fn place_of(&self, step: StepNo) -> Value {
        let mut runs = self.live.iter().rev();
        let found = runs.find(|(_, run)| run.first.is_some_and(|first| first <= step));
        found.map_or(Value::Null, |(number, run)| json!({ "run": number.0, "step": run.number(step) }))
    }
}
