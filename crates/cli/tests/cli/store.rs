//! Part 2: a store that was treated badly. Each case has its words, and nothing else is lost.

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
    let db = lathe.home().join("sessions").join(format!("{id}.db"));
    let set_back = std::process::Command::new("python3")
        .args(["-c", "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute(\"update events set at='2001-01-01T00:00:00Z' where seq>20\"); c.commit()"])
        .arg(&db)
        .status()
        .unwrap();
    assert!(set_back.success());
    let shown = lathe.clone().args(["show", &id, "--format", "json"]).run().expect_code(0);
    let json: Value = serde_json::from_str(&shown.stdout).unwrap();
    let seqs: Vec<u64> =
        json["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert!(seqs.is_sorted() && seqs.len() > 40);
    lathe.clone().args(["show", &id]).run().expect_code(0);
    lathe.clone().args(["show", &id, "--format", "trajectory"]).run().expect_code(0);
    lathe.clone().args(["replay", &id]).run().expect_code(0);
}
