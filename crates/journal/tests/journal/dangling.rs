//! Calls that were in progress when the process ended.

use lathe_protocol::{
    CallFinished, CallId, Dangling, Event, EventPlace, Fact, Seq, StepNo, interrupted_result,
};

use crate::make::*;

fn open_call(step: u32, call: &str, started: bool) -> Dangling {
    Dangling { step: StepNo(step), call: CallId::new(call), name: format!("tool_{call}"), started }
}

fn results(events: &[Event]) -> Vec<(&EventPlace, &CallFinished)> {
    events
        .iter()
        .map(|event| match &event.fact {
            Fact::CallFinished(result) => (&event.place, result),
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn nothing_dangles_in_an_empty_a_fresh_and_a_finished_session() {
    let home = Home::new();
    let mut journal = home.create("s");
    assert_eq!(journal.dangling().unwrap(), []);
    append_all(&mut journal, [draft(opened("s")), draft(task("t"))]);
    assert_eq!(journal.repair(at(1)).unwrap(), []);
    append_all(&mut journal, [at_step(1, answer(&["a"])), at_call(1, "a", finished("tool_a"))]);
    append_all(&mut journal, [at_step(2, answer(&[]))]);
    assert_eq!(journal.repair(at(1)).unwrap(), []);
    assert_eq!(journal.last(), Seq(5));
}

#[test]
fn each_open_call_gets_one_result_that_says_whether_it_had_begun() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(
        &mut journal,
        [
            at_step(6, answer(&["a", "b"])), // an older answer, never closed, is not looked at
            at_step(7, answer(&["a", "b", "c", "d"])),
            at_call(7, "b", started()),
            at_call(7, "a", started()),
            at_call(7, "a", finished("tool_a")),
            at_call(7, "d", finished("tool_d")), // refused: a result without a start
        ],
    );
    drop(journal);

    let mut journal = home.open("s");
    let expected = [open_call(7, "b", true), open_call(7, "c", false)];
    assert_eq!(journal.dangling().unwrap(), expected);
    let closing = journal.repair(at(5)).unwrap();
    let place = |call| at_call(7, call, started()).place;
    assert_eq!(
        results(&closing),
        [
            (&place("b"), &interrupted_result("tool_b", true)),
            (&place("c"), &interrupted_result("tool_c", false)),
        ]
    );
    assert_eq!((closing[0].at, closing[1].seq, journal.last()), (at(5), Seq(8), Seq(8)));
    assert_eq!(journal.dangling().unwrap(), []);
    assert_eq!(journal.repair(at(6)).unwrap(), []);
    assert_eq!(journal.reader().unwrap().after(Seq(6), 9).unwrap(), closing);
}

#[test]
fn a_call_named_twice_in_one_answer_gets_one_result() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [at_step(1, answer(&["a", "a"]))]);
    assert_eq!(journal.repair(at(0)).unwrap().len(), 1);
}

#[test]
fn what_was_rewound_does_not_dangle() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(
        &mut journal,
        [
            draft(task("t")),
            at_step(1, answer(&["a"])),
            at_call(1, "a", finished("tool_a")),
            at_step(2, answer(&["b"])),
            at_call(2, "b", started()),
            draft(rewound(1)),
        ],
    );
    assert_eq!(journal.dangling().unwrap(), []);
    append_all(&mut journal, [draft(rewound(0))]);
    assert_eq!(journal.dangling().unwrap(), []);
}

#[test]
fn what_dangles_on_the_branch_rewound_to_is_found_there() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(
        &mut journal,
        [
            at_step(1, answer(&["a"])),
            at_call(1, "a", started()),
            at_step(2, answer(&["b"])),
            at_call(2, "b", finished("tool_b")),
            draft(rewound(1)),
        ],
    );
    assert_eq!(journal.dangling().unwrap(), [open_call(1, "a", true)]);
    assert_eq!(journal.repair(at(0)).unwrap().len(), 1);
    assert_eq!(journal.dangling().unwrap(), []);
}

#[test]
fn an_answer_after_a_rewind_is_looked_at_as_usual() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(
        &mut journal,
        [
            at_step(1, answer(&["a"])),
            at_call(1, "a", finished("tool_a")),
            at_step(2, answer(&["b"])),
            draft(rewound(1)),
            at_step(2, answer(&["b", "c"])),
            at_call(2, "b", finished("tool_b")),
        ],
    );
    assert_eq!(journal.dangling().unwrap(), [open_call(2, "c", false)]);
}
