//! Little free space in Lathe's home: an action that could not be undone afterwards is not done.

use lathe_testkit::{FakeModel, Script, SmallDisk, TempRepo, call, differing_paths, done, size};
use serde_json::json;

use crate::rewinds::tree;
use crate::{lathe, run_in};

/// Calls that destroy something.
fn destroyers() -> [(&'static str, serde_json::Value); 5] {
    let content: String =
        (0..40_000_u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let patch = "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch\n";
    [
        ("bash", json!({ "command": "sed -i s/one/two/ a.txt; rm b.txt; echo x > new.txt" })),
        ("bash", json!({ "command": "python3 -c 'import os; os.remove(\"b.txt\")'" })),
        ("edit", json!({ "path": "a.txt", "old_str": "one", "new_str": "two" })),
        ("write", json!({ "path": "large.txt", "content": content })),
        ("apply_patch", json!({ "patch": patch })),
    ]
}

#[test]
fn with_little_room_for_copies_nothing_is_lost() {
    let disk_at = TempRepo::new(&[]);
    let home = disk_at.join("home");
    let Some(disk) = SmallDisk::mount(&home, "24m") else { return };
    // From too little for a journal up to what the first audit found to be enough for a journal, but not for copies.
    let kilobytes = [100, 150, 200, 250, 300, 400, 500, 600, 800, 1000, 1400, 2000];
    let calls = destroyers();
    for (round, kilobytes) in kilobytes.into_iter().enumerate() {
        for (number, (tool, arguments)) in calls.iter().enumerate() {
            if size(0, 1) == 0 && number != round % calls.len() && number != 0 {
                continue;
            }
            let about = format!("{kilobytes} KB, {tool} {number}");
            let repo = TempRepo::new(&[("a.txt", "one\n")]);
            // Nothing that git has, and nothing that packs well.
            let bytes: Vec<u8> = (0..300_000_u64)
                .map(|n| u8::try_from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56).unwrap())
                .collect();
            repo.write("b.txt", bytes);
            let first = tree(repo.path());
            disk.fill_except(kilobytes * 1024);
            let model = FakeModel::serving(
                Script::new().answer(call("c1", tool, arguments.clone())).answer(done("ok")),
            );
            let ran = run_in(repo.path(), &model).env("LATHE_HOME", &home).run();
            let left = tree(repo.path());
            disk.free();
            if *tool == "bash" {
                assert_eq!(ran.code, 54, "{about}: {}{}", ran.stdout, ran.stderr);
                assert_eq!(differing_paths(&left, &first), Vec::<String>::new(), "{about}");
                let said = format!("{}{}", ran.stdout, ran.stderr);
                assert!(said.contains("disk_full") || said.contains("disk-full"), "{about}: {said}");
            }
            // Every action that was done can be undone.
            if left != first {
                let back = lathe()
                    .env("LATHE_HOME", &home)
                    .in_dir(repo.path())
                    .args(["rewind", "--to", "0", "--files"])
                    .run();
                assert_eq!(back.code, 0, "{about}: {}{}", back.stdout, back.stderr);
                let mut now = tree(repo.path());
                // A new file of a file tool may stay where there was no room to record it, and that is reported.
                if now.remove("large.txt").is_some() {
                    assert!(ran.stdout.contains("could not be recorded"), "{about}: {}", ran.stdout);
                }
                assert_eq!(differing_paths(&now, &first), Vec::<String>::new(), "{about}");
            }
        }
    }
}

#[test]
fn issue_16_without_room_a_session_can_be_read_after_an_undo_that_failed() {
    let disk_at = TempRepo::new(&[]);
    let home = disk_at.join("home");
    let Some(disk) = SmallDisk::mount(&home, "40m") else { return };
    let repo = TempRepo::new(&[("a.txt", "one\n"), ("b.txt", "two\n")]);
    let first = tree(repo.path());
    let line = json!({ "command": "rm a.txt; echo q > b.txt" });
    let model = FakeModel::serving(Script::new().answer(call("c1", "bash", line)).answer(done("ok")));
    run_in(repo.path(), &model).env("LATHE_HOME", &home).run().expect_code(0);
    let changed = tree(repo.path());
    disk.fill_except(0);
    let lathe = |words: &[&str]| {
        lathe().in_dir(repo.path()).env("LATHE_HOME", &home).args(words.iter().copied()).run()
    };
    for words in [&["undo"][..], &["rewind", "--to", "0"], &["rewind", "--to", "0", "--files"], &["undo"]] {
        let ran = lathe(words);
        assert_eq!(ran.code, 54, "{words:?}: {}{}", ran.stdout, ran.stderr);
        assert_eq!(differing_paths(&tree(repo.path()), &changed), Vec::<String>::new(), "{words:?}");
        // What is freed by the failure is taken by others.
        disk.fill_except(0);
        for words in [&["show"][..], &["diff"], &["sessions"]] {
            let ran = lathe(words);
            assert_eq!(ran.code, 0, "{words:?}: {}{}", ran.stdout, ran.stderr);
        }
        assert!(lathe(&["diff"]).stdout.contains("-one"));
    }
    disk.free();
    lathe(&["undo"]).expect_code(0);
    assert_eq!(differing_paths(&tree(repo.path()), &first), Vec::<String>::new());
}
