//! Damage on disk: bits that flip, files that are cut, rows that are removed. Each is reported or changes nothing
//! that is read; none is shown as the record.

use std::fs;
use std::path::Path;

use lathe_journal::{Journal, JournalError, SessionReader};
use lathe_protocol::{Ending, Reflected, RunNo, SessionId, StepNo};

use crate::make::*;

/// A session with every kind of read in it: a task, steps, a large body, a saved state, an end.
fn filled() -> Home {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [draft(opened("s")), draft(task("do it"))]);
    append_all(
        &mut journal,
        (1..60).map(|n| at_step(n, Reflected { text: format!("{n} {}", noise(300, n.into())) })),
    );
    append_all(&mut journal, [note("y".repeat(100_000))]);
    journal.save_snapshot(journal.last(), noise(5_000, 7).as_bytes()).unwrap();
    append_all(&mut journal, [draft(ended(Ending::Done))]);
    journal.close().unwrap();
    home
}

/// All that a reader gives, each read by itself; an error is its own answer.
fn reads(home: &Path) -> Vec<Option<String>> {
    let blobs = lathe_blobs::Blobs::open(home.join("blobs")).unwrap();
    let Ok(reader) = SessionReader::open(&home.join("sessions"), &SessionId::new("s"), blobs) else {
        return vec![None; 7];
    };
    vec![
        reader.all().ok().map(|events| format!("{events:?}")),
        reader.live().ok().map(|events| format!("{events:?}")),
        reader.last_run().ok().map(|events| format!("{events:?}")),
        reader.settings().ok().map(|events| format!("{events:?}")),
        reader.of_step(RunNo(1), StepNo(9)).ok().map(|events| format!("{events:?}")),
        reader.tasks().ok().map(|tasks| format!("{tasks:?}")),
        reader.summary().ok().map(|summary| format!("{summary:?}")),
    ]
}

/// Steps through the same numbers on every machine.
fn dice(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

#[test]
fn a_flipped_bit_or_a_cut_is_told_or_changes_nothing_that_is_read() {
    let home = filled();
    let whole = fs::read(home.file("s.db")).unwrap();
    let right = reads(home.path());
    assert!(right.iter().all(Option::is_some));
    let mut dice = dice(1);
    let (mut told, mut harmless) = (0, 0);
    for round in 0..600 {
        let mut bytes = whole.clone();
        if round % 6 == 0 {
            bytes.truncate(dice(whole.len()));
        } else {
            bytes[dice(whole.len())] ^= 1 << dice(8);
        }
        fs::write(home.file("s.db"), &bytes).unwrap();
        let _ = fs::remove_file(home.file("s.db-shm"));
        let seen = reads(home.path());
        for (seen, right) in seen.iter().zip(&right) {
            assert!(seen.is_none() || seen == right, "round {round}: {seen:?}\n{right:?}");
        }
        *if seen.contains(&None) { &mut told } else { &mut harmless } += 1;
    }
    // A body lies in half of the bytes, so a test that sees no damage looks at nothing.
    assert!(told > 200 && harmless > 20, "{told} told, {harmless} harmless");
}

#[test]
fn a_saved_state_that_is_damaged_is_passed_over() {
    let home = filled();
    let spoil = |sql: &str| {
        rusqlite::Connection::open(home.file("s.db")).unwrap().execute_batch(sql).unwrap();
    };
    let state = home.open("s").snapshot().unwrap().unwrap();
    let mut journal = home.open("s");
    journal.save_snapshot(journal.last(), b"newer").unwrap();
    journal.close().unwrap();
    spoil("UPDATE snapshots SET state = x'00' WHERE upto = (SELECT max(upto) FROM snapshots)");
    assert_eq!(home.open("s").snapshot().unwrap(), Some(state));
    spoil("UPDATE snapshots SET upto = upto - 1");
    assert_eq!(home.open("s").snapshot().unwrap(), None);
}

#[test]
fn an_event_that_was_changed_moved_or_taken_out_is_told_by_every_reader() {
    for (sql, word) in [
        ("UPDATE events SET body = replace(body, 'do it', 'do no') WHERE seq = 2", "event 2"),
        ("UPDATE events SET kind = 'dreamt' WHERE seq = 2", "event 2"),
        ("UPDATE events SET v = 99 WHERE seq = 2", "event 2"),
        ("UPDATE events SET sum = NULL WHERE seq = 2", "event 2"),
        ("UPDATE events SET at = '2026-11-15T08:00:00Z' WHERE seq = 2", "event 2"),
        ("DELETE FROM events WHERE seq = 2", "event"),
        ("DELETE FROM events WHERE seq > 50", "ends with event 50"),
        ("UPDATE seal SET last = 3", "the seal"),
        ("DELETE FROM seal", "the seal"),
    ] {
        let home = filled();
        rusqlite::Connection::open(home.file("s.db")).unwrap().execute_batch(sql).unwrap();
        let open = || SessionReader::open(&home.sessions(), &SessionId::new("s"), home.blobs());
        for error in [
            open().and_then(|reader| reader.all()).unwrap_err(),
            open().and_then(|reader| reader.tasks()).unwrap_err(),
            open().and_then(|reader| reader.summary()).unwrap_err(),
        ] {
            assert!(matches!(error, JournalError::Damaged { .. }), "{sql}: {error}");
            assert!(error.to_string().contains(word), "{sql}: {error}");
        }
    }
}

#[test]
fn a_session_that_is_killed_has_no_seal_and_is_read_to_its_last_event() {
    let home = filled();
    let mut journal = home.open("s");
    append_all(&mut journal, [note("not closed")]);
    drop(journal);
    assert_eq!(home.reader("s").all().unwrap().len(), 64);
    let journal = Journal::open(&home.sessions(), &SessionId::new("s"), home.blobs()).unwrap();
    assert_eq!(journal.last().0, 64);
}

#[test]
fn damage_in_the_log_of_a_killed_process_is_told_or_changes_nothing_that_is_read() {
    let home = filled();
    let mut journal = home.open("s");
    append_all(&mut journal, (1..20).map(|n| note(format!("{n} {}", noise(900, n)))));
    let syncer = journal.syncer().unwrap().sync();
    syncer.unwrap();
    append_all(&mut journal, (20..30).map(|n| note(format!("{n} {}", noise(900, n)))));
    let right = reads(home.path());
    assert!(right.iter().all(Option::is_some));
    // As kill -9 leaves them.
    let names = ["s.db", "s.db-wal", "s.mark"];
    let left = names.map(|name| (name, fs::read(home.file(name)).unwrap()));
    let mut dice = dice(3);
    let (mut told, mut harmless) = (0, 0);
    for round in 0..60 {
        let killed = Home::new();
        fs::create_dir_all(killed.sessions()).unwrap();
        std::os::unix::fs::symlink(home.path().join("blobs"), killed.path().join("blobs")).unwrap();
        for (at, (name, bytes)) in left.iter().enumerate() {
            let mut bytes = bytes.clone();
            // Mostly the log, now and then the mark; one of them at a time.
            if at == 1 && round % 8 != 0 || at == 2 && round % 8 == 0 {
                match round % 5 {
                    0 => bytes.truncate(dice(bytes.len())),
                    _ => {
                        let place = dice(bytes.len());
                        bytes[place] ^= 1 << dice(8);
                    }
                }
            }
            fs::write(killed.file(name), bytes).unwrap();
        }
        // Twice: the first look must not make it look whole.
        for _ in 0..2 {
            let seen = reads(killed.path());
            for (seen, right) in seen.iter().zip(&right) {
                assert!(seen.is_none() || seen == right, "round {round}: {seen:?}\n{right:?}");
            }
            *if seen.contains(&None) { &mut told } else { &mut harmless } += 1;
            let opened = Journal::open(&killed.sessions(), &SessionId::new("s"), killed.blobs());
            assert_eq!(opened.is_ok(), !seen.contains(&None), "round {round}");
        }
    }
    assert!(told > 40 && harmless > 12, "{told} told, {harmless} harmless");
}

#[test]
fn what_was_not_synced_may_be_lost_with_the_power() {
    let home = filled();
    let mut journal = home.open("s");
    append_all(&mut journal, [note("synced")]);
    journal.syncer().unwrap().sync().unwrap();
    let (db, log) = (fs::read(home.file("s.db")).unwrap(), fs::read(home.file("s.db-wal")).unwrap());
    append_all(&mut journal, [note("not synced")]);
    // The mark as another boot of the machine left it: the writer's number does not count then.
    let mut mark = fs::read(home.file("s.mark")).unwrap();
    mark[..64].fill(0);
    drop(journal);
    for (log, is_whole) in [(&log[..], true), (&log[..log.len() / 2], false)] {
        fs::write(home.file("s.db"), &db).unwrap();
        fs::write(home.file("s.db-wal"), log).unwrap();
        fs::write(home.file("s.mark"), &mark).unwrap();
        let _ = fs::remove_file(home.file("s.db-shm"));
        assert_eq!(reads(home.path()).iter().all(Option::is_some), is_whole);
    }
}
