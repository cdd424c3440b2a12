//! A damaged store. Each case has its message, and no other data is lost.

use lathe_testkit::Lathe;
use serde_json::Value;

use crate::lathe;

fn home_with_two() -> (Lathe, String, String) {
    let lathe = lathe();
    lathe.clone().args(["demo", "--output", "json"]).run().expect_code(0);
    lathe.clone().args(["demo", "--output", "json"]).run().expect_code(0);
    let listed = lathe.clone().args(["sessions", "--json"]).run().expect_code(0);
    let sessions: Value = serde_json::from_str(&listed.stdout).unwrap();
    let id = |at: usize| sessions[at]["id"].as_str().unwrap().to_owned();
    (lathe, id(0), id(1))
}

fn spoil(lathe: &Lathe, id: &str, how: impl Fn(&std::path::Path)) {
    let db = lathe.home().join("sessions").join(format!("{id}.db"));
    for ending in ["db-wal", "db-shm"] {
        let _ = std::fs::remove_file(db.with_extension(ending));
    }
    how(&db);
}

#[test]
fn a_damaged_session_is_named_and_the_others_are_as_they_were() {
    let (lathe, good, bad) = home_with_two();
    spoil(&lathe, &bad, |db| {
        std::fs::write(db, b"this is no database, but it is long enough to be looked at").unwrap()
    });
    let shown = lathe.clone().args(["show", &bad]).run().expect_code(1);
    assert!(shown.stderr.contains("is damaged") && shown.stderr.contains(&bad), "{}", shown.stderr);
    lathe.clone().args(["show", &good]).run().expect_code(0);
    lathe.clone().args(["sessions"]).run().expect_code(0);
    let doctor = lathe.clone().arg("doctor").run().expect_code(1);
    assert!(
        doctor.stdout.contains("1 of 2 cannot be read") && doctor.stdout.contains(&bad),
        "{}",
        doctor.stdout
    );
}

#[test]
fn a_damaged_note_of_an_undo_that_was_cut_off_is_told_and_not_acted_on() {
    let (lathe, good, bad) = home_with_two();
    let folder = lathe.home().join("baselines").join(&bad);
    std::fs::create_dir_all(&folder).unwrap();
    let note = r#"{"pid":1,"after":1,"run":1,"to":null,"undoes":null,"rewind":null,"rewound":null,"conflicts":[],"changes":[]}"#;
    for damaged in [String::new(), note[..40].to_owned(), format!("{}\n{note}", "0".repeat(64))] {
        std::fs::write(folder.join("restoring"), &damaged).unwrap();
        for command in [&["show"][..], &["undo"], &["rewind", "--to", "0", "--files"]] {
            let mut words = vec![command[0], &bad];
            words.extend(&command[1..]);
            let ran = lathe.clone().args(&words).run();
            assert!(
                ran.code != 0 && ran.stderr.contains("is damaged"),
                "{words:?}: {}{}",
                ran.stdout,
                ran.stderr
            );
        }
        assert!(folder.join("restoring").exists());
    }
    lathe.clone().args(["show", &good]).run().expect_code(0);
    std::fs::remove_file(folder.join("restoring")).unwrap();
    lathe.clone().args(["show", &bad]).run().expect_code(0);
}

#[test]
fn a_session_of_a_newer_lathe_is_told_as_such() {
    let (lathe, _, bad) = home_with_two();
    spoil(&lathe, &bad, |db| {
        let mut bytes = std::fs::read(db).unwrap();
        // SQLite's user_version, big-endian at offset 60.
        bytes[60..64].copy_from_slice(&99_u32.to_be_bytes());
        std::fs::write(db, bytes).unwrap();
    });
    let shown = lathe.clone().args(["show", &bad]).run().expect_code(1);
    assert!(shown.stderr.contains("newer Lathe (format 99"), "{}", shown.stderr);
}

#[test]
fn a_vanished_blob_store_costs_the_diffs_and_nothing_else() {
    let (lathe, id, _) = home_with_two();
    std::fs::remove_dir_all(lathe.home().join("blobs")).unwrap();
    let shown = lathe.clone().args(["show", &id]).run().expect_code(0);
    assert!(shown.stdout.contains("✔ done"), "{}", shown.stdout);
    lathe.clone().args(["replay", &id]).run().expect_code(0);
    let live = lathe.clone().args(["replay", &id, "--tools", "live"]).run().expect_code(2);
    assert!(live.stderr.contains("the earlier content of"), "{}", live.stderr);
}

#[test]
fn an_index_that_is_gone_or_garbage_is_made_again() {
    let (lathe, _, _) = home_with_two();
    let index = lathe.home().join("index.db");
    for content in [None, Some("garbage")] {
        for ending in ["db", "db-wal", "db-shm"] {
            let _ = std::fs::remove_file(index.with_extension(ending));
        }
        if let Some(content) = content {
            std::fs::write(&index, content).unwrap();
        }
        let listed = lathe.clone().args(["sessions", "--json"]).run().expect_code(0);
        assert_eq!(serde_json::from_str::<Value>(&listed.stdout).unwrap().as_array().unwrap().len(), 2);
    }
    assert!(lathe.clone().arg("doctor").run().expect_code(0).stdout.contains("2 sessions listed"));
}

#[test]
fn a_clock_that_goes_back_changes_no_order() {
    // Events are ordered by their number; times are only shown.
    let (lathe, id, _) = home_with_two();
    mistreat(
        &lathe,
        &id,
        "for (seq,) in db.execute('SELECT seq FROM events WHERE seq > 20').fetchall():
    put({**row(seq), 'at': '2001-01-01T00:00:00Z'})",
    );
    let shown = lathe.clone().args(["show", &id, "--format", "json"]).run().expect_code(0);
    let json: Value = serde_json::from_str(&shown.stdout).unwrap();
    let seqs: Vec<u64> =
        json["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted() && seqs.len() > 40);
    lathe.clone().args(["show", &id]).run().expect_code(0);
    lathe.clone().args(["show", &id, "--format", "trajectory"]).run().expect_code(0);
    lathe.clone().args(["replay", &id]).run().expect_code(0);
}

/// Runs Python on a session's database: `db` is open, `row(seq)` reads a row, `put(row)` writes one with its checksum.
fn mistreat(lathe: &Lathe, id: &str, program: &str) {
    const HELP: &str = "
import sqlite3, struct, sys, zlib
db = sqlite3.connect(sys.argv[1])
names = 'seq at run agent step call cause kind v body blob'.split()
def row(seq):
    found = db.execute('SELECT ' + ','.join(names) + ' FROM events WHERE seq = ?', (seq,)).fetchone()
    return dict(zip(names, found))
def put(row):
    said = b''
    for name in ['seq', 'run', 'step', 'cause', 'v']:
        said += struct.pack('<Bq', row[name] is not None, row[name] or 0)
    for name in ['at', 'agent', 'call', 'kind', 'body', 'blob']:
        text = (row[name] or '').encode()
        said += struct.pack('<BQ', row[name] is not None, len(text)) + text
    values = [row[name] for name in names] + [zlib.crc32(said)]
    db.execute('INSERT OR REPLACE INTO events VALUES(?,?,?,?,?,?,?,?,?,?,?,?)', values)
";
    spoil(lathe, id, |db| {
        let program = format!("{HELP}{program}\ndb.commit()\n");
        let ran = std::process::Command::new("python3").args(["-c", &program]).arg(db).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    });
}

#[test]
fn an_event_that_is_not_what_was_written_is_never_shown_as_the_record() {
    for (program, word) in [
        ("db.execute(\"UPDATE events SET body = replace(body, 'e', 'f') WHERE seq = 5\")", "event 5"),
        ("db.execute(\"UPDATE events SET kind = 'dreamt' WHERE kind = 'call_finished'\")", "checksum"),
        ("db.execute(\"UPDATE events SET v = 99 WHERE kind = 'call_finished'\")", "checksum"),
        ("db.execute(\"DELETE FROM events WHERE kind = 'call_finished'\")", "not in it any more"),
        ("db.execute('DELETE FROM events WHERE seq > 6')", "ends with event 6"),
    ] {
        let (lathe, good, bad) = home_with_two();
        mistreat(&lathe, &bad, program);
        let commands: [&[&str]; 8] = [
            &["show"],
            &["show", "--format", "json"],
            &["show", "--format", "trajectory"],
            &["show", "--format", "html"],
            &["diff"],
            &["undo"],
            &["rewind", "--to", "0", "--files"],
            &["replay"],
        ];
        for command in commands {
            let mut args = vec![command[0], bad.as_str()];
            args.extend(&command[1..]);
            let ran = lathe.clone().args(&args).run();
            assert_ne!(ran.code, 0, "{program}: {args:?}: {}", ran.stdout);
            assert!(ran.stderr.contains(word), "{program}: {args:?}: {}", ran.stderr);
        }
        lathe.clone().args(["show", &good]).run().expect_code(0);
    }
}

#[test]
fn an_event_of_a_newer_lathe_is_told_by_all_that_leaves_it_out() {
    let (lathe, id, _) = home_with_two();
    mistreat(
        &lathe,
        &id,
        "last = db.execute('SELECT max(seq) FROM events').fetchone()[0]
new = row(last); new.update(seq=last + 1, kind='dreamt', v=9, body='{\"of\": 1}', step=None, call=None); put(new)",
    );
    for (args, on_error) in [
        (vec!["show", &id], false),
        (vec!["show", &id, "--format", "json"], true),
        (vec!["diff", &id], true),
        (vec!["rewind", &id, "--to", "0", "--files", "--preview"], false),
    ] {
        let ran = lathe.clone().args(&args).run().expect_code(0);
        let said = if on_error { &ran.stderr } else { &ran.stdout };
        assert!(
            said.contains("only a newer Lathe knows: dreamt v9"),
            "{args:?}: {} {}",
            ran.stdout,
            ran.stderr
        );
    }
}

/// An unreadable session may need any blob, so the collection fails; then it must not have removed a session either.
#[test]
fn gc_removes_no_session_while_another_cannot_be_read() {
    let (lathe, newer, older) = home_with_two();
    let journal = |id: &str| lathe.home().join("sessions").join(format!("{id}.db"));
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_600_000_000);
    let whole = std::fs::read(journal(&newer)).unwrap();
    spoil(&lathe, &newer, |db| std::fs::write(db, "not a journal").unwrap());
    spoil(&lathe, &older, |db| {
        std::fs::File::options().write(true).open(db).unwrap().set_modified(long_ago).unwrap();
    });
    let refused = lathe.clone().args(["gc", "--days", "30"]).run();
    assert_ne!(refused.code, 0, "{}", refused.stdout);
    assert!(journal(&older).exists(), "{}", refused.stderr);
    std::fs::write(journal(&newer), whole).unwrap();
    lathe.clone().args(["gc", "--days", "30"]).run().expect_code(0);
    assert!(journal(&newer).exists() && !journal(&older).exists());
}
