//! Calls without a result. Every provider refuses a history with such a call, so a journal that was cut off is
//! repaired before the session is resumed.

use std::collections::HashSet;

use lathe_protocol::{Dangling, Event, Fact, ModelAnswered, calls_of};

/// The calls of `answer` without a result among the events after it, in the order of the calls.
pub(crate) fn dangling(answer: &Event, after: &[Event]) -> Vec<Dangling> {
    let Fact::ModelAnswered(ModelAnswered { blocks, .. }) = &answer.fact else {
        return Vec::new();
    };
    let (mut started, mut finished) = (HashSet::new(), HashSet::new());
    for event in after {
        match (&event.fact, &event.place.call) {
            (Fact::CallStarted(_), Some(call)) => started.insert(call),
            (Fact::CallFinished(_), Some(call)) => finished.insert(call),
            _ => false,
        };
    }
    let mut seen = HashSet::new();
    calls_of(blocks)
        .filter(|call| !finished.contains(&call.id) && seen.insert(&call.id))
        .map(|call| Dangling {
            step: answer.place.step.unwrap_or_default(),
            call: call.id.clone(),
            name: call.name.clone(),
            started: started.contains(&call.id),
        })
        .collect()
}
