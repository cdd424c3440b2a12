//! Files that are not what they should be.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use lathe_journal::{Journal, JournalError, SessionReader};
use lathe_protocol::SessionId;

use crate::make::*;

/// The errors of opening to write and opening to read.
fn errors(home: &Home) -> [JournalError; 2] {
    let id = SessionId::new("s");
    [
        Journal::open(&home.sessions(), &id, home.blobs()).unwrap_err(),
        SessionReader::open(&home.sessions(), &id, home.blobs()).and_then(|reader| reader.all()).unwrap_err(),
    ]
}

#[test]
fn a_file_that_is_no_journal_is_called_damaged() {
    let whole = {
        let home = Home::new();
        home.create("s").close().unwrap();
        fs::read(home.file("s.db")).unwrap()
    };
    let mut broken_root = whole.clone();
    broken_root[4096..4200].fill(0xff); // the page of the events
    for content in [&b""[..], b"garbage", noise(20_000, 1).as_bytes(), &whole[..100], &broken_root] {
        let home = Home::new();
        fs::create_dir(home.sessions()).unwrap();
        fs::write(home.file("s.db"), content).unwrap();
        for error in errors(&home) {
            assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
            assert!(error.to_string().contains("s.db is damaged"), "{error}");
        }
        assert_eq!(fs::read(home.file("s.db")).unwrap(), content, "it is left as it is");
    }
}

#[test]
fn a_folder_in_place_of_the_file_is_called_damaged() {
    let home = Home::new();
    fs::create_dir_all(home.file("s.db")).unwrap();
    for error in errors(&home) {
        assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    }
}

#[test]
fn garbage_in_the_middle_is_found_when_it_is_read_and_named() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, (0..200).map(|n| note(format!("{n} {}", "x".repeat(500)))));
    journal.close().unwrap();
    let mut bytes = fs::read(home.file("s.db")).unwrap();
    let middle = bytes.len() / 2 / 4096 * 4096;
    bytes[middle..middle + 4096].fill(0xa5);
    fs::write(home.file("s.db"), bytes).unwrap();
    let error = home.reader("s").all().unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
    assert_eq!(home.open("s").last().0, 200, "the end is intact and can be gone on with");
}

#[test]
fn a_body_that_is_not_what_its_kind_says_is_called_damaged_by_its_number() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [note("a"), note("b")]);
    journal.close().unwrap();
    let spoil = |sql: &str| {
        rusqlite::Connection::open(home.file("s.db")).unwrap().execute_batch(sql).unwrap();
        let error = home.reader("s").all().unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }), "{sql}: {error}");
        error.to_string()
    };
    assert!(spoil("UPDATE events SET body = '{\"te' WHERE seq = 2").contains("event 2"));
    assert!(spoil("UPDATE events SET at = 'noon' WHERE seq = 2").contains("event 2"));
    assert!(spoil("UPDATE events SET body = NULL WHERE seq = 2").contains("event 2"));
    spoil("UPDATE events SET run = -1 WHERE seq = 2");
}

#[test]
fn a_hostile_digest_in_the_blob_column_reaches_no_file() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [note("a")]);
    journal.close().unwrap();
    fs::write(home.path().join("secret"), b"{}").unwrap();
    rusqlite::Connection::open(home.file("s.db"))
        .unwrap()
        .execute_batch("UPDATE events SET body = NULL, blob = '../secret'")
        .unwrap();
    let error = home.reader("s").all().unwrap_err();
    assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
}

#[test]
fn a_journal_of_a_newer_lathe_is_refused_with_both_numbers() {
    let home = Home::new();
    home.create("s").close().unwrap();
    rusqlite::Connection::open(home.file("s.db")).unwrap().execute_batch("PRAGMA user_version = 7").unwrap();
    for error in errors(&home) {
        assert!(matches!(error, JournalError::NewerFormat { found: 7, known: 2, .. }), "{error}");
        assert!(error.to_string().contains("update Lathe"), "{error}");
    }
}

#[test]
fn a_journal_that_was_copied_open_to_all_is_closed_to_others_when_opened() {
    let home = Home::new();
    home.create("s").close().unwrap();
    fs::set_permissions(home.file("s.db"), fs::Permissions::from_mode(0o644)).unwrap();
    let mut journal = home.open("s");
    append_all(&mut journal, [note("a")]);
    for name in ["s.db", "s.db-wal", "s.db-shm"] {
        assert_eq!(mode(&home.file(name)), 0o600, "{name}");
    }
}

#[test]
fn a_failed_append_leaves_the_journal_usable_and_the_number_right() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [note("a")]);
    // The blobs cannot be written: a file is where their folder should be.
    fs::write(home.path().join("blobs"), b"").unwrap();
    let error = journal.append(at(0), note("b".repeat(70_000))).unwrap_err();
    assert!(matches!(error, JournalError::Blob(_)), "{error}");
    assert_eq!(journal.last().0, 1);
    append_all(&mut journal, [note("c")]);
    fs::remove_file(home.path().join("blobs")).unwrap();
    append_all(&mut journal, [note("d".repeat(70_000))]);
    assert_eq!(journal.reader().unwrap().all().unwrap().len(), 3);
}
