//! The current branch of a session.
//!
//! A rewind is a fact like any other: `Rewound{to}` says that the branch goes on from the end of step `to`.
//! Nothing is removed, so the branch is computed: events are taken in order, and a `Rewound` first cuts what is
//! on the branch at that moment, then joins it. Hence:
//!
//! - A step number means the step of that number *on the branch as it is then*. It does not matter whether
//!   numbers are used again after a rewind or go on: the branch has each number once, ascending.
//! - A step that an earlier rewind left behind is not on the branch and cannot be brought back by going "to" it:
//!   such a rewind ends at the last step before it that is still there.
//! - **The end of step N** is where the first event of a later step, or the first task given after the last
//!   event of a step up to N, would stand. So results, reflections and the `TaskFinished` that followed step N
//!   stay; a later task goes with its steps. Step 0 ends before the first task.
//! - `TaskGiven` and `Rewound` belong to no step, whatever their place says: a task stands before its steps, a
//!   rewind between two.
//!
//! Applying it to its own result changes nothing.

use std::borrow::Borrow;

use lathe_protocol::{Event, Fact, Rewound, StepNo};

/// The current branch: all events, except those that a later [`Rewound`] left behind.
pub fn live(events: impl IntoIterator<Item = Event>) -> Vec<Event> {
    branch(events)
}

/// The same for borrowed events.
pub(crate) fn branch<E: Borrow<Event>>(events: impl IntoIterator<Item = E>) -> Vec<E> {
    let mut branch: Vec<E> = Vec::new();
    for event in events {
        if let Fact::Rewound(Rewound { to }) = &event.borrow().fact {
            branch.truncate(end_of_step(&branch, *to));
        }
        branch.push(event);
    }
    branch
}

/// How many events of the branch come before the end of step `to`.
fn end_of_step<E: Borrow<Event>>(branch: &[E], to: StepNo) -> usize {
    let later_step = |event: &E| step_of(event.borrow()).is_some_and(|step| step > to);
    let before_later = branch.iter().position(later_step).unwrap_or(branch.len());
    let worked = branch[..before_later]
        .iter()
        .rposition(|event| step_of(event.borrow()).is_some())
        .map_or(0, |last| last + 1);
    branch[worked..before_later]
        .iter()
        .position(|event| matches!(event.borrow().fact, Fact::TaskGiven(_)))
        .map_or(before_later, |task| worked + task)
}

fn step_of(event: &Event) -> Option<StepNo> {
    match event.fact {
        Fact::TaskGiven(_) | Fact::Rewound(_) => None,
        _ => event.place.step,
    }
}
