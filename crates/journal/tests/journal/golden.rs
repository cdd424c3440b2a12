//! The shape of every event, kept permanently. If a line here must change, the change needs a new version of that
//! kind instead.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use lathe_protocol::{Draft, Event, Fact, Seq};

use crate::make::*;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn lines() -> Vec<String> {
    let text = fs::read_to_string(golden("v1.jsonl")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn written(events: &[Event]) -> Vec<String> {
    events.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
}

/// Appends the golden lines to a new session `golden`.
fn append_golden(home: &Home) {
    let mut journal = home.create("golden");
    for line in lines() {
        let Event { seq, at, place, fact } = serde_json::from_str(&line).unwrap();
        let event = journal.append(at, Draft { place, fact }).unwrap();
        assert_eq!(event.seq, seq);
    }
    journal.close().unwrap();
}

#[test]
fn every_kind_goes_through_a_journal_byte_for_byte() {
    let home = Home::new();
    append_golden(&home);
    assert_eq!(written(&home.reader("golden").all().unwrap()), lines());
}

#[test]
fn a_journal_of_every_format_is_read_for_ever() {
    // The newest is made again only when a kind is added to it before it is released.
    if std::env::var("UPDATE_GOLDEN").is_ok_and(|value| value == "1") {
        let home = Home::new();
        append_golden(&home);
        fs::copy(home.file("golden.db"), golden("v2.db")).unwrap();
    }
    // A format holds the kinds that there were when it was last written.
    for (format, count) in [("v1.db", 31), ("v2.db", 32)] {
        let lines = &lines()[..count];
        let home = Home::new();
        fs::create_dir(home.sessions()).unwrap();
        fs::copy(golden(format), home.file("golden.db")).unwrap();
        assert_eq!(written(&home.reader("golden").all().unwrap()), lines, "{format}");
        let mut journal = home.open("golden");
        assert_eq!(journal.last(), Seq(count as u64), "{format}");
        append_all(&mut journal, [note("it can be gone on with")]);
        journal.save_snapshot(Seq(count as u64 + 1), b"state").unwrap();
        journal.close().unwrap();
        let again = home.reader("golden").all().unwrap();
        assert_eq!((&written(&again)[..count], again.len()), (lines, count + 1), "{format}");
    }
}

#[test]
fn the_golden_lines_hold_every_kind() {
    // A new kind does not compile here: give it a line in v1.jsonl, then its number.
    let number = |fact: &Fact| match fact {
        Fact::SessionOpened(_) => 0,
        Fact::OptionsChanged(_) => 1,
        Fact::EpochStarted(_) => 2,
        Fact::TaskGiven(_) => 3,
        Fact::ModelAsked(_) => 4,
        Fact::ModelAnswered(_) => 5,
        Fact::ModelFailed(_) => 6,
        Fact::ReplayDrifted(_) => 7,
        Fact::CallDecided(_) => 8,
        Fact::CallStarted(_) => 9,
        Fact::CallFinished(_) => 10,
        Fact::Reflected(_) => 11,
        Fact::Reminded(_) => 12,
        Fact::TaskFinished(_) => 13,
        Fact::Rewound(_) => 14,
        Fact::CancelAsked(_) => 15,
        Fact::Unknown(_) => 16,
        Fact::BaselineTaken(_) => 17,
        Fact::RunResumed(_) => 18,
        Fact::RewindUndone(_) => 19,
        Fact::FilesRestored(_) => 20,
        Fact::QuestionAsked(_) => 21,
        Fact::CommandRan(_) => 22,
        Fact::ApprovalAsked(_) => 23,
        Fact::ApprovalGiven(_) => 24,
        Fact::ApprovalExpired(_) => 25,
        Fact::Steered(_) => 26,
        Fact::SessionNamed(_) => 27,
        Fact::StepSummarised(_) => 28,
        Fact::EditsReviewed(_) => 29,
        Fact::CommandTaken(_) => 30,
    };
    let seen: BTreeSet<i32> =
        lines().iter().map(|line| number(&serde_json::from_str::<Event>(line).unwrap().fact)).collect();
    assert_eq!(seen, (0..=30).collect());
}
