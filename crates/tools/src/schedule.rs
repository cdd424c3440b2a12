//! Selects the calls of one answer that may start now. Pure.
//!
//! Calls start in their order. Readers next to each other run together; a call that may change something runs alone,
//! after all before it and before all after it, so every reader sees what it would have seen had the calls been made
//! one by one. `Last` calls run alone after everything else, wherever they stand.

use lathe_protocol::Lane;

/// The stages of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    Waiting(Lane),
    Running(Lane),
    Finished,
}

/// Indices of the calls to start.
pub fn startable(calls: &[Stage]) -> Vec<usize> {
    let mut start = Vec::new();
    for (at, stage) in calls.iter().enumerate() {
        match stage {
            Stage::Finished | Stage::Running(Lane::Reader) | Stage::Waiting(Lane::Last) => {}
            Stage::Running(Lane::Alone | Lane::Last) => return Vec::new(),
            Stage::Waiting(Lane::Reader) => start.push(at),
            Stage::Waiting(Lane::Alone) => {
                if start.is_empty() && !calls.iter().any(|stage| matches!(stage, Stage::Running(_))) {
                    start.push(at);
                }
                return start;
            }
        }
    }
    if start.is_empty() && !calls.iter().any(|stage| matches!(stage, Stage::Running(_))) {
        start.extend(calls.iter().position(|stage| *stage == Stage::Waiting(Lane::Last)));
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stage::{Finished, Running, Waiting};

    const READER: Stage = Waiting(Lane::Reader);
    const ALONE: Stage = Waiting(Lane::Alone);
    const LAST: Stage = Waiting(Lane::Last);

    #[test]
    fn readers_run_together_and_changers_alone_and_in_order() {
        for (calls, expected) in [
            (vec![], vec![]),
            (vec![READER, READER], vec![0, 1]),
            (vec![READER, ALONE, READER], vec![0]),
            (vec![Running(Lane::Reader), ALONE, READER], vec![]),
            (vec![Running(Lane::Reader), READER, ALONE], vec![1]),
            (vec![Finished, ALONE, READER], vec![1]),
            (vec![Finished, Running(Lane::Alone), READER], vec![]),
            (vec![Finished, Finished, READER], vec![2]),
            (vec![ALONE, ALONE], vec![0]),
            (vec![LAST, ALONE], vec![1]),
            (vec![LAST, Running(Lane::Alone)], vec![]),
            (vec![LAST, Finished], vec![0]),
            (vec![LAST, Running(Lane::Reader)], vec![]),
            (vec![Running(Lane::Last), LAST], vec![]),
            (vec![LAST, LAST], vec![0]),
            (vec![LAST, READER], vec![1]),
        ] {
            assert_eq!(startable(&calls), expected, "{calls:?}");
        }
    }
}
