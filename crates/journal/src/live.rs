//! The live branch of a session.
//!
//! A rewind is a fact like any other: `Rewound{to}` means that the branch continues from the end of step `to`.
//! Nothing is removed, so the branch is computed: events are processed in order, and a `Rewound` first cuts the
//! branch as it is at that moment, then joins it. Hence:
//!
//! - A step number means the step with that number *on the branch at that time*. It does not matter whether numbers
//!   are reused after a rewind or continue: the branch has each number once, ascending.
//! - A step that an earlier rewind cut off is not on the branch and cannot be restored by rewinding "to" it: such a
//!   rewind ends at the last step before it that is still on the branch.
//! - **The end of step N** is the position at which the first event of a later step, or the first task given after
//!   the last event of a step up to N, is or would be. So results, reflections and the `TaskFinished` that followed
//!   step N stay; a later task is cut with its steps. Step 0 ends before the first task.
//! - `TaskGiven`, `Rewound` and `StepSummarised` belong to no step, even if their place names one: a task comes
//!   before its steps, a rewind between two, and a summary may come long after its step.
//!
//! - `RewindUndone` restores the branch from before that rewind, and joins it.
//!
//! Applying the computation to its own result changes nothing.

use std::borrow::Borrow;

use lathe_protocol::{Event, Fact, RewindUndone, Rewound, Seq, StepNo};

/// The live branch: all events, except those that a later [`Rewound`] cut off.
pub fn live_branch(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    cut_to_live_branch(events)
}

/// The same for borrowed events.
pub(crate) fn cut_to_live_branch<E: Borrow<Event>>(events: impl IntoIterator<Item = E>) -> Vec<E> {
    let mut all: Vec<Option<E>> = Vec::new();
    let mut branch: Vec<usize> = Vec::new();
    // The branch before each rewind, in case the rewind is undone.
    let mut before: Vec<(Seq, Vec<usize>)> = Vec::new();
    for event in events {
        match &event.borrow().fact {
            Fact::Rewound(Rewound { to }) => {
                before.push((event.borrow().seq, branch.clone()));
                branch.truncate(end_of_step(&all, &branch, *to));
            }
            Fact::RewindUndone(RewindUndone { rewind }) => {
                if let Some((_, left)) = before.iter().find(|(seq, _)| seq == rewind) {
                    branch.clone_from(left);
                }
            }
            _ => {}
        }
        branch.push(all.len());
        all.push(Some(event));
    }
    branch.into_iter().filter_map(|at| all.get_mut(at).and_then(Option::take)).collect()
}

/// The number of events of the branch before the end of step `to`.
fn end_of_step<E: Borrow<Event>>(all: &[Option<E>], branch: &[usize], to: StepNo) -> usize {
    let event = |at: &usize| all.get(*at).and_then(Option::as_ref).map(Borrow::borrow);
    let step = |at: &usize| event(at).and_then(step_of);
    let later_step = |at: &usize| step(at).is_some_and(|step| step > to);
    let before_later = branch.iter().position(later_step).unwrap_or(branch.len());
    let worked = branch[..before_later].iter().rposition(|at| step(at).is_some()).map_or(0, |last| last + 1);
    branch[worked..before_later]
        .iter()
        .position(|at| event(at).is_some_and(|event| matches!(event.fact, Fact::TaskGiven(_))))
        .map_or(before_later, |task| worked + task)
}

fn step_of(event: &Event) -> Option<StepNo> {
    match event.fact {
        Fact::TaskGiven(_)
        | Fact::Rewound(_)
        | Fact::RewindUndone(_)
        | Fact::FilesRestored(_)
        | Fact::StepSummarised(_) => None,
        _ => event.place.step,
    }
}
