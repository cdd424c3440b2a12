//! The current branch, as a table, and against every short history there is.

use lathe_journal::live_branch;
use lathe_protocol::{Draft, Ending, Event, Fact, OptionsChanged, Seq};

use crate::make::*;

/// A history in letters: `o` opened, `t` task, `f` finished, `c` options changed, a digit an event of that step,
/// `<N` rewound to N. Other forms: `!N` a task and `?N` a rewind to 1 whose place says step N.
fn history(text: &str) -> Vec<Event> {
    let mut drafts: Vec<Draft> = Vec::new();
    let mut signs = text.chars().filter(|sign| *sign != ' ');
    while let Some(sign) = signs.next() {
        let mut number = || signs.next().unwrap().to_digit(10).unwrap();
        drafts.push(match sign {
            'o' => draft(opened("s")),
            't' => draft(task("t")),
            'f' => draft(ended(Ending::Done)),
            'c' => draft(OptionsChanged { options: opened("s").options }),
            '<' => draft(rewound(number())),
            '!' => at_step(number(), task("t")),
            '?' => at_step(number(), rewound(1)),
            step => at_step(step.to_digit(10).unwrap(), answer(&[])),
        });
    }
    drafts
        .into_iter()
        .zip(1..)
        .map(|(draft, seq)| Event { seq: Seq(seq), at: at(0), place: draft.place, fact: draft.fact })
        .collect()
}

fn live_seqs(text: &str) -> Vec<u64> {
    live_branch(history(text)).iter().map(|event| event.seq.0).collect()
}

#[test]
fn the_live_branch_is_what_no_later_rewind_left_behind() {
    let table: &[(&str, &[u64], &str)] = &[
        ("", &[], "nothing"),
        ("ot1122f", &[1, 2, 3, 4, 5, 6, 7], "no rewind: all"),
        ("ot1122<1", &[1, 2, 3, 4, 7], "back to the end of step 1, all its events stay"),
        ("ot1122<2", &[1, 2, 3, 4, 5, 6, 7], "to the last step: nothing is left behind"),
        ("ot1122<9", &[1, 2, 3, 4, 5, 6, 7], "to a step that never was: nothing is left behind"),
        ("ot12<0", &[1, 5], "step 0 ends before the first task"),
        ("otc12<0", &[1, 6], "and what followed that task goes with it"),
        ("oct12<0", &[1, 2, 6], "but what came before it stays"),
        ("ot12f<2", &[1, 2, 3, 4, 5, 6], "the end of the task belongs to its last step"),
        ("ot12f<1", &[1, 2, 3, 6], "and goes when that step goes"),
        ("ot12ft34f<2", &[1, 2, 3, 4, 5, 10], "a later task goes with its steps"),
        ("ot12ft34f<3", &[1, 2, 3, 4, 5, 6, 7, 10], "a task whose first step stays, stays"),
        ("ot12ft<2", &[1, 2, 3, 4, 5, 7], "a later task without steps goes too"),
        ("ot12fct34<2", &[1, 2, 3, 4, 5, 6, 10], "options changed before that task stay"),
        ("ot12ftc34<2", &[1, 2, 3, 4, 5, 10], "options changed after it go"),
        ("ot123<1 23", &[1, 2, 3, 6, 7, 8], "numbers used again"),
        ("ot123<1 45", &[1, 2, 3, 6, 7, 8], "numbers going on"),
        ("ot123<1 23<2", &[1, 2, 3, 6, 7, 9], "a second rewind means the new step 2"),
        ("ot123<1 45<4", &[1, 2, 3, 6, 7, 9], "the same with numbers going on"),
        ("ot123<2<1", &[1, 2, 3, 7], "a deeper rewind takes the earlier one along"),
        ("ot123<1<1", &[1, 2, 3, 6, 7], "the same rewind twice"),
        ("ot123<1<3", &[1, 2, 3, 6, 7], "a step left behind does not come back"),
        ("ot123<1 45<3", &[1, 2, 3, 6, 9], "going to it ends at the last step before it that is there"),
        ("ot123<1 t4<1", &[1, 2, 3, 6, 9], "a task given after a rewind goes, the rewind stays"),
        ("ot123<1 t4<0", &[1, 9], "back to the start after all that"),
        ("ot1<0 t1f<1", &[1, 4, 5, 6, 7, 8], "a new beginning is a branch like any other"),
        ("ot12f!234<2", &[1, 2, 3, 4, 5, 9], "a task belongs to no step, whatever its place says"),
        ("ot123?323<2", &[1, 2, 3, 6, 7, 9], "a rewind neither"),
        ("<1 ot1", &[1, 2, 3, 4], "a rewind of nothing"),
    ];
    for (text, expected, why) in table {
        assert_eq!(live_seqs(text), *expected, "{text}: {why}");
    }
}

#[test]
fn an_event_of_an_earlier_step_that_came_late_goes_with_what_was_before_it() {
    assert_eq!(live_seqs("ot121<1"), [1, 2, 3, 6]);
}

/// Every history of up to six events: the branch keeps the order, ends with the last event, holds no step above
/// a rewind that follows it, and is its own branch.
#[test]
fn the_branch_of_every_short_history_is_sound() {
    let alphabet = ["t", "f", "1", "2", "3", "<0", "<1", "<2"];
    let mut texts = vec![String::new()];
    let mut done = 0;
    while done < texts.len() {
        let text = texts[done].clone();
        done += 1;
        check(&text);
        if history(&text).len() < 5 {
            texts.extend(alphabet.iter().map(|sign| format!("{text}{sign}")));
        }
    }
    assert!(done > 30_000);
}

fn check(text: &str) {
    let events = history(text);
    let branch = live_branch(events.clone());
    assert!(branch.windows(2).all(|pair| pair[0].seq < pair[1].seq), "{text}");
    assert_eq!(branch.last(), events.last(), "{text}");
    assert_eq!(live_branch(branch.clone()), branch, "{text}");
    for (position, event) in branch.iter().enumerate() {
        if let Fact::Rewound(rewound) = &event.fact {
            let before = &branch[..position];
            assert!(before.iter().all(|event| event.place.step.unwrap_or_default() <= rewound.to), "{text}");
        }
    }
}
