//! One writer, any number of readers.

use lathe_journal::{Journal, JournalError, SessionReader};
use lathe_protocol::{Seq, SessionId, Timestamp};

use crate::child::Other;
use crate::make::*;

fn held(home: &Home) -> JournalError {
    Journal::open(&home.sessions(), &SessionId::new("s"), home.blobs()).unwrap_err()
}

#[test]
fn the_loser_is_told_who_holds_the_session_and_can_still_read() {
    let home = Home::new();
    let mut journal = home.create("s");
    let events = append_all(&mut journal, [note("a")]);
    journal.close().unwrap();

    let mut other = Other::start("hold", home.path());
    let pid = other.next("held").unwrap();
    let error = held(&home);
    let JournalError::Held { holder: Some(holder), .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(holder.pid.to_string(), pid);
    let text = error.to_string();
    let start = format!("session s is in use by process {pid} (journal-");
    assert!(text.starts_with(&start) && text.contains(" …) since 20"), "{text}");

    let reader = SessionReader::open(&home.sessions(), &SessionId::new("s"), home.blobs()).unwrap();
    assert_eq!(reader.all().unwrap(), events);

    // It is killed: its lock and its note do not block the session.
    drop(other);
    let mut journal = home.open("s");
    append_all(&mut journal, [note("b")]);
    assert_eq!(journal.last(), Seq(2));
}

#[test]
fn the_same_process_cannot_open_it_twice_either() {
    let home = Home::new();
    let journal = home.create("s");
    let error = held(&home);
    assert!(
        matches!(&error, JournalError::Held { holder: Some(holder), .. } if holder.pid == std::process::id())
    );
    let id = SessionId::new("s");
    let error = Journal::create(&home.sessions(), &id, home.blobs()).unwrap_err();
    assert!(matches!(error, JournalError::Held { .. }), "{error}");
    journal.close().unwrap();
    home.open("s");
}

#[test]
fn a_lock_that_outlives_its_holder_for_a_moment_is_waited_for() {
    let home = Home::new();
    home.create("s").close().unwrap();
    // As after a kill: the note tells of a process that is gone, and one that it was about to start has the file open.
    let lock = std::fs::File::options().write(true).open(home.file("s.lock")).unwrap();
    lock.lock().unwrap();
    let mut gone = std::process::Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let note = serde_json::json!({ "pid": gone.id(), "since": Timestamp::now(), "what": "lathe serve …" });
    std::fs::write(home.file("s.lock"), note.to_string()).unwrap();
    let later = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        drop(lock);
    });
    home.open("s").close().unwrap();
    later.join().unwrap();
}

#[test]
fn a_note_that_cannot_be_read_does_not_hide_that_the_session_is_held() {
    let home = Home::new();
    let _journal = home.create("s");
    std::fs::write(home.file("s.lock"), b"{\"pid\":").unwrap();
    let error = held(&home);
    assert!(matches!(error, JournalError::Held { holder: None, .. }));
    assert!(error.to_string().contains("in use by another process"), "{error}");
}

#[test]
fn a_reader_in_another_process_tails_by_the_data_version() {
    let home = Home::new();
    let mut journal = home.create("s");
    append_all(&mut journal, [note("0")]);
    let mut other = Other::start("tail", home.path());
    other.next("ready").unwrap();
    while journal.last() < Seq(100) {
        append_all(&mut journal, [note("n")]);
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let mut seen = Vec::new();
    while let Some(cursor) = other.next("seen") {
        seen.push(cursor.parse::<u64>().unwrap());
    }
    assert_eq!(seen.last(), Some(&100));
    assert!(seen.len() > 3, "it saw them as they came: {seen:?}");
    assert!(other.child.wait().unwrap().success());
}
