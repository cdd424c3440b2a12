//! kill -9 and torn logs.

use std::fs::{self, OpenOptions};
use std::process::Command;
use std::time::Duration;

use lathe_protocol::{Fact, Reflected, Seq};

use crate::child::Other;
use crate::make::*;

#[test]
fn no_acknowledged_event_is_lost_by_kill_nine() {
    let home = Home::new();
    home.create("s").close().unwrap();
    let mut acknowledged = 0u64;
    for round in 0..10u64 {
        let mut other = Other::start("append", home.path());
        acknowledged = other.next("ack").unwrap().parse().unwrap();
        // A different moment each time, from at once to a tenth of a second.
        std::thread::sleep(Duration::from_micros((round * 7919 % 10) * 11_003));
        other.child.kill().unwrap();
        while let Some(seq) = other.next("ack") {
            acknowledged = seq.parse().unwrap();
        }
        drop(other);

        let journal = home.open("s");
        let events = journal.reader().unwrap().all().unwrap();
        assert!(journal.last() >= Seq(acknowledged), "{} < {acknowledged}", journal.last());
        assert_eq!(events.len() as u64, journal.last().0);
        for (event, n) in events.iter().zip(1u64..) {
            let Fact::Reflected(Reflected { text }) = &event.fact else {
                panic!("{event:?}");
            };
            assert!(event.seq == Seq(n) && text.starts_with(&format!("{n} ")), "{n}");
        }
        if let Some((upto, state)) = journal.snapshot().unwrap() {
            assert_eq!(state, upto.to_string().as_bytes());
        }
    }
    assert!(acknowledged > 10, "the child hardly ran");
}

/// A copy of a session as a crash would leave it: the log is there, the writer is not. Copied by another
/// process, because closing a descriptor of the database here would drop SQLite's locks.
fn crashed(events: usize) -> Home {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, (0..events).map(|n| note(format!("{n} {}", "x".repeat(300)))));
    let copy = Home::new();
    fs::create_dir(copy.sessions()).unwrap();
    let status = Command::new("cp")
        .args([home.file("s.db"), home.file("s.db-wal"), copy.sessions()])
        .status()
        .unwrap();
    assert!(status.success());
    copy
}

#[test]
fn a_torn_log_keeps_its_whole_prefix_and_the_session_goes_on() {
    for cut in [1, 100, 4_000, 4_200, 20_000, 60_000] {
        let home = crashed(40);
        let wal = home.file("s.db-wal");
        let len = fs::metadata(&wal).unwrap().len();
        let file = OpenOptions::new().write(true).open(&wal).unwrap();
        file.set_len(len - cut).unwrap();

        let before = home.reader("s").all().unwrap();
        let mut journal = home.open("s");
        let kept = journal.last().0;
        assert!(kept < 40 && kept >= 40 - 1 - cut / 4_000, "cut {cut}: {kept} kept");
        assert_eq!(before.len() as u64, kept);
        append_all(&mut journal, [note("after")]);
        let events = journal.reader().unwrap().all().unwrap();
        assert_eq!((events.len() as u64, &events[..before.len()]), (kept + 1, &before[..]));
    }
}

#[test]
fn garbage_at_the_end_of_the_log_is_not_taken_for_events() {
    let home = crashed(5);
    let wal = home.file("s.db-wal");
    let mut bytes = fs::read(&wal).unwrap();
    bytes.extend(noise(10_000, 3).into_bytes());
    fs::write(&wal, bytes).unwrap();
    assert_eq!(home.reader("s").all().unwrap().len(), 5);
    assert_eq!(home.open("s").last(), Seq(5));
}

#[test]
fn a_creation_that_was_cut_short_leaves_nothing_in_the_way() {
    let home = Home::new();
    fs::create_dir(home.sessions()).unwrap();
    for name in [".s.new", ".s.new-wal", ".s.new-shm", "s.lock"] {
        fs::write(home.file(name), b"left over").unwrap();
    }
    let mut journal = home.create("s");
    append_all(&mut journal, [note("a")]);
    journal.close().unwrap();
    assert_eq!(home.reader("s").all().unwrap().len(), 1);
    assert!(!home.file(".s.new").exists() && !home.file(".s.new-wal").exists());
}
