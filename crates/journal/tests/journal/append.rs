//! Appending and reading back.

use lathe_blobs::Blobs;
use lathe_journal::{Journal, JournalError, SessionReader};
use lathe_protocol::{Event, Seq, SessionId};

use crate::make::*;

#[test]
fn events_are_numbered_from_one_and_read_back_equal() {
    let home = Home::new();
    let mut journal = home.create("s");
    assert_eq!((journal.last(), journal.id().as_str()), (Seq(0), "s"));
    let mut events =
        append_all(&mut journal, [draft(opened("s")), draft(task("t")), at_step(1, answer(&["a"]))]);
    events.push(journal.append(at(9), at_call(1, "a", finished("x"))).unwrap());
    let seqs: Vec<u64> = events.iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert_eq!(journal.last(), Seq(4));

    let reader = journal.reader().unwrap();
    assert_eq!(reader.all().unwrap(), events);
    assert_eq!(reader.live().unwrap(), events);
    assert_eq!(reader.last().unwrap(), Seq(4));
    assert_eq!(reader.after(Seq(1), 2).unwrap(), events[1..3]);
    assert_eq!(reader.after(Seq(4), 10).unwrap(), []);
    assert_eq!(reader.after(Seq(u64::MAX), usize::MAX).unwrap(), []);
}

#[test]
fn a_session_goes_on_where_it_was_when_it_is_opened_again() {
    let home = Home::new();
    let mut journal = home.create("s");
    let mut events = append_all(&mut journal, [note("1"), note("2")]);
    journal.close().unwrap();
    assert!(!home.file("s.db-wal").exists(), "the log was checked in");

    let mut journal = home.open("s");
    assert_eq!(journal.last(), Seq(2));
    events.extend(append_all(&mut journal, [note("3")]));
    drop(journal); // without close
    assert_eq!(home.reader("s").all().unwrap(), events);
    assert_eq!(home.open("s").last(), Seq(3));
}

#[test]
fn a_body_over_64_kib_goes_to_the_blobs_and_comes_back() {
    let home = Home::new();
    let mut journal = home.create("s");
    let around = r#"{"text":""}"#.len();
    let fits = note("x".repeat(64 * 1024 - around));
    let over = note("y".repeat(64 * 1024 - around + 1));
    let mut events = append_all(&mut journal, [fits]);
    assert!(!home.path().join("blobs").exists());
    events.extend(append_all(&mut journal, [over, note("small")]));
    let shards = std::fs::read_dir(home.path().join("blobs")).unwrap();
    let stored: usize = shards.map(|shard| std::fs::read_dir(shard.unwrap().path()).unwrap().count()).sum();
    assert_eq!(stored, 1);
    assert_eq!(journal.reader().unwrap().all().unwrap(), events);
}

#[test]
fn a_lost_blob_is_named_and_the_other_events_stay_readable() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [note("a"), note("b".repeat(70_000)), note("c")]);
    std::fs::remove_dir_all(home.path().join("blobs")).unwrap();
    let reader = journal.reader().unwrap();
    let error = reader.all().unwrap_err();
    assert!(matches!(error, JournalError::LostBody { seq: Seq(2), .. }), "{error}");
    assert_eq!(reader.after(Seq(2), 9).unwrap().len(), 1);
}

#[test]
fn files_are_for_their_owner_only() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [note("a")]);
    assert_eq!(mode(&home.sessions()), 0o700);
    for name in ["s.db", "s.db-wal", "s.db-shm", "s.lock", "s.mark"] {
        assert_eq!(mode(&home.file(name)), 0o600, "{name}");
    }
    let mut names: Vec<String> = std::fs::read_dir(home.sessions())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["s.db", "s.db-shm", "s.db-wal", "s.lock", "s.mark"]);
}

#[test]
fn ids_that_are_no_file_names_are_refused_before_anything_is_touched() {
    let home = Home::new();
    for id in ["", "..", ".hidden", "a/b", "../evil", "a b", &"x".repeat(65)] {
        let id = SessionId::new(id);
        for error in [
            Journal::create(&home.sessions(), &id, home.blobs()).unwrap_err(),
            Journal::open(&home.sessions(), &id, home.blobs()).unwrap_err(),
            SessionReader::open(&home.sessions(), &id, home.blobs()).unwrap_err(),
        ] {
            assert!(matches!(error, JournalError::BadId { .. }), "{error}");
        }
    }
    assert!(!home.sessions().exists());
}

#[test]
fn a_session_is_created_once_and_must_be_there_to_be_opened() {
    let home = Home::new();
    let id = SessionId::new("s");
    let error = Journal::open(&home.sessions(), &id, home.blobs()).unwrap_err();
    assert!(matches!(error, JournalError::NoSuchSession { .. }), "{error}");
    assert!(error.to_string().contains("lathe sessions"), "{error}");
    let error = SessionReader::open(&home.sessions(), &id, home.blobs()).unwrap_err();
    assert!(matches!(error, JournalError::NoSuchSession { .. }), "{error}");

    home.create("s").close().unwrap();
    assert_eq!(home.reader("s").all().unwrap(), []);
    let error = Journal::create(&home.sessions(), &id, home.blobs()).unwrap_err();
    assert!(matches!(error, JournalError::Exists { .. }), "{error}");
}

#[test]
fn data_version_changes_with_each_commit_of_another_connection() {
    let home = Home::new();
    let mut journal = home.create("s");
    let reader = journal.reader().unwrap();
    let before = reader.data_version().unwrap();
    assert_eq!(reader.data_version().unwrap(), before);
    append_all(&mut journal, [note("a")]);
    assert_ne!(reader.data_version().unwrap(), before);
}

#[test]
fn the_last_two_snapshots_are_kept_and_the_newest_is_given() {
    let home = Home::new();
    let mut journal = home.create("s");
    assert_eq!(journal.snapshot().unwrap(), None);
    append_all(&mut journal, [note("1"), note("2"), note("3")]);
    for upto in 1..=3u8 {
        journal.save_snapshot(Seq(upto.into()), &[upto; 3]).unwrap();
    }
    journal.save_snapshot(Seq(3), b"again").unwrap();
    assert_eq!(journal.snapshot().unwrap(), Some((Seq(3), b"again".to_vec())));
    let error = journal.save_snapshot(Seq(4), b"ahead").unwrap_err();
    assert!(matches!(error, JournalError::SnapshotAhead { .. }), "{error}");
    journal.close().unwrap();

    let kept: i64 = rusqlite::Connection::open(home.file("s.db"))
        .unwrap()
        .query_row("SELECT count(*) FROM snapshots", [], |row| row.get(0))
        .unwrap();
    assert_eq!(kept, 2);
    assert_eq!(home.open("s").snapshot().unwrap(), Some((Seq(3), b"again".to_vec())));
}

#[test]
fn a_syncer_works_from_another_thread_and_keeps_the_log_small() {
    let home = Home::new();
    let mut journal = home.create("s");
    let mut syncer = journal.syncer().unwrap();
    syncer.sync().unwrap();
    assert!(!syncer.checkpoint_if_large().unwrap());
    let wal = home.file("s.db-wal");
    let body = "z".repeat(50_000);
    let (ask, asked) = std::sync::mpsc::sync_channel::<()>(0);
    let (done, is_done) = std::sync::mpsc::sync_channel::<bool>(0);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            while asked.recv().is_ok() {
                syncer.sync().unwrap();
                done.send(syncer.checkpoint_if_large().unwrap()).unwrap();
            }
        });
        let mut checkpoints = 0;
        for _ in 0..100 {
            append_all(&mut journal, [note(body.clone())]);
            ask.send(()).unwrap();
            checkpoints += usize::from(is_done.recv().unwrap());
            assert!(std::fs::metadata(&wal).unwrap().len() < 2 * 1024 * 1024);
        }
        // The log restarts and is truncated after each: five megabytes need about five, not one per append.
        assert!((2..=10).contains(&checkpoints), "{checkpoints}");
        drop(ask);
    });
    assert_eq!(journal.reader().unwrap().all().unwrap().len(), 100);
}

#[test]
fn a_syncer_that_outlives_its_journal_is_content() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [note("a")]);
    let mut syncer = journal.syncer().unwrap();
    syncer.sync().unwrap();
    journal.close().unwrap();
    syncer.sync().unwrap();
    assert!(!syncer.checkpoint_if_large().unwrap());
}

#[test]
fn a_journal_is_closed_though_somebody_reads_it() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [note("a"), note("b")]);
    let reader = journal.reader().unwrap();
    journal.close().unwrap();
    assert_eq!(reader.all().unwrap().len(), 2);
    assert_eq!(home.open("s").last(), Seq(2));
}

#[test]
fn handles_can_be_moved_between_threads() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync + Clone>() {}
    is_send::<Journal>();
    is_send::<SessionReader>();
    is_send::<lathe_journal::Syncer>();
    is_send::<Vec<Event>>();
    is_shared::<Blobs>();
}
