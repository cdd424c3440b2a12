//! A full disk and a read-only one: small file systems in a mount namespace of their own, so that nothing remains,
//! however the test ends.

use std::fs;
use std::path::Path;
use std::process::Command;

use lathe_blobs::Blobs;
use lathe_journal::{Index, Journal, JournalError, SessionReader};
use lathe_protocol::SessionId;

use crate::child::{Other, say};
use crate::make::*;

#[test]
fn a_full_disk_loses_nothing_and_is_left_behind_when_there_is_space_again() {
    let probe = Command::new("unshare").args(["--mount", "true"]).output();
    match probe {
        Ok(output) if output.status.success() => {}
        Ok(output) => return go_without(&String::from_utf8_lossy(&output.stderr)),
        Err(error) => return go_without(&format!("no unshare: {error}")),
    }
    let home = Home::new();
    let mut other = Other::start_through(&["unshare", "--mount"], "full disk", home.path());
    match other.next("disk").as_deref() {
        Some("ok") => assert!(other.child.wait().unwrap().success()),
        Some(why) => go_without(why),
        None => panic!("the child failed: {:?}", other.child.wait()),
    }
}

/// A test without its disk has shown nothing: it fails, unless the machine is known not to permit mounts.
fn go_without(why: &str) {
    let is_known = std::env::var("LATHE_TEST_WITHOUT_MOUNTS").is_ok_and(|value| value == "1");
    assert!(
        is_known,
        "no disk can be mounted here: run this as root, or set LATHE_TEST_WITHOUT_MOUNTS=1: {why}"
    );
}

fn mount(arguments: &[&str], dir: &Path) -> Result<(), String> {
    let output = Command::new("mount").args(arguments).arg(dir).output();
    let output = output.map_err(|error| error.to_string())?;
    let why = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(why) }
}

/// Takes all space that is left.
fn fill(path: &Path) {
    let mut size = 1 << 20;
    let mut content = fs::read(path).unwrap_or_default();
    while size > 0 {
        content.resize(content.len() + size, 1);
        if fs::write(path, &content).is_err() {
            content.truncate(content.len() - size);
            size /= 2;
        }
    }
    let _ = fs::write(path, &content);
}

/// The body of the child process.
pub fn on_a_small_disk(home: &Path) {
    if let Err(why) = mount(&["-t", "tmpfs", "-o", "size=4m", "tmpfs"], home) {
        return say("disk", why);
    }
    let (sessions, id) = (home.join("sessions"), SessionId::new("s"));
    let blobs = Blobs::open(home.join("blobs")).unwrap();
    let filler = home.join("filler");
    let mut journal = Journal::create(&sessions, &id, blobs.clone()).unwrap();
    append_all(&mut journal, (0..10).map(|n| note(n.to_string())));
    let index = Index::open(home).unwrap();

    for round in 0..3 {
        fill(&filler);
        let last = journal.last();
        // Small events may still fit into pages that are there; in the end one does not.
        let error = (0..1000).find_map(|_| journal.append(at(0), note("x".repeat(3000))).err()).unwrap();
        assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
        assert!(error.to_string().contains("no space left"), "{error}");
        let error = journal.append(at(0), note(noise(200_000, round))).unwrap_err();
        assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
        let error = journal.save_snapshot(journal.last(), &[7; 100_000]).unwrap_err();
        assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
        let error = Journal::create(&sessions, &SessionId::new("new"), blobs.clone()).unwrap_err();
        assert!(matches!(error, JournalError::NoSpace { .. }), "{error}");
        assert!(!sessions.join("new.db").exists() && !sessions.join(".new.new").exists());

        let events = journal.reader().unwrap().all().unwrap();
        assert_eq!(events.len() as u64, journal.last().0);
        assert!(journal.last() >= last);

        fs::remove_file(&filler).unwrap();
        append_all(&mut journal, [note("there is space again"), note(noise(200_000, round))]);
        journal.save_snapshot(journal.last(), b"state").unwrap();
    }
    let summary = lathe_journal::summarise(&[journal_opening()]).unwrap();
    index.upsert(&summary).unwrap();
    drop(index);

    // Closing on a full disk must not lose anything either.
    let last = journal.last();
    fill(&filler);
    let _ = journal.close();
    fill(&filler);
    let error = Journal::open(&sessions, &id, blobs.clone()).unwrap_err();
    assert!(matches!(error, JournalError::NoSpace { .. }), "{error:?}");
    fs::remove_file(&filler).unwrap();
    let reader = SessionReader::open(&sessions, &id, blobs.clone()).unwrap();
    assert_eq!(reader.all().unwrap().len() as u64, last.0);
    drop(reader);

    if let Err(why) = mount(&["-o", "remount,ro"], home) {
        return say("disk", why);
    }
    // The reader above left the files that reading needs next to the database.
    let reader = SessionReader::open(&sessions, &id, blobs.clone()).unwrap();
    assert_eq!(reader.last().unwrap(), last);
    for error in [
        Journal::open(&sessions, &id, blobs.clone()).unwrap_err(),
        Journal::create(&sessions, &SessionId::new("new"), blobs.clone()).unwrap_err(),
        Index::open(home).and_then(|index| index.upsert(&summary)).unwrap_err(),
        blobs.put(b"not there yet").unwrap_err().into(),
    ] {
        assert!(matches!(error, JournalError::Denied { .. }), "{error:?}");
    }
    say("disk", "ok");
}

fn journal_opening() -> lathe_protocol::Event {
    let draft = draft(opened("s"));
    lathe_protocol::Event { seq: lathe_protocol::Seq(1), at: at(0), place: draft.place, fact: draft.fact }
}
