//! A small file that becomes larger than what is stored can be taken back: the limit is for what is kept, not for what took
//! its place.

use std::time::Duration;

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done, eventually};
use serde_json::json;

use crate::lathe;
use crate::whose::back_as_printed;

const LARGE: u64 = 66 << 20;

fn place() -> TempRepo {
    let repo = TempRepo::new(&[("a.txt", "precious original\n")]);
    let large = std::fs::File::create(repo.path().join("big.bin")).unwrap();
    large.set_len(LARGE).unwrap();
    repo
}

fn run(home: &Lathe, repo: &TempRepo, lines: &[&str]) {
    let mut script = Script::new();
    for (at, line) in lines.iter().enumerate() {
        script = script.answer(call(&format!("c{at}"), "bash", json!({ "command": line })));
    }
    let model = FakeModel::serving(script.answer(done("ok")));
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    home.clone().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
}

fn size(repo: &TempRepo, name: &str) -> u64 {
    repo.path().join(name).metadata().map_or(0, |found| found.len())
}

#[test]
fn a_file_that_outgrows_the_limit_goes_back_and_the_way_back_brings_the_large_one() {
    for line in [
        "cp big.bin a.txt",
        "head -c 70000000 /dev/zero >> a.txt",
        "dd if=/dev/zero of=a.txt bs=1M count=70 2>/dev/null",
        "mv big.bin a.txt",
        "truncate -s 2G a.txt",
    ] {
        // What really fills the disk is tried one way.
        let ways = if line.contains("/dev/zero") { 1 } else { 2 };
        for back in [&["undo"][..], &["rewind", "--to", "0", "--files"]].into_iter().take(ways) {
            let (repo, home) = (place(), lathe());
            run(&home, &repo, &[line]);
            let large = size(&repo, "a.txt");
            assert!(large >= LARGE, "{line}: {large}");
            let ran = home.clone().in_dir(repo.path()).args(back).run().expect_code(0);
            assert_eq!(repo.read("a.txt"), "precious original\n", "{line}: {}", ran.stdout);
            assert_eq!(size(&repo, "big.bin"), LARGE, "{line}: {}", ran.stdout);
            // Nothing is lost by trying: the large content comes back, and goes again.
            let again = back_as_printed(&home, repo.path(), &ran.stdout).expect_code(0);
            assert_eq!(size(&repo, "a.txt"), large, "{line}: {}", again.stdout);
            home.clone().in_dir(repo.path()).args(["rewind", "--to", "0", "--files"]).run().expect_code(0);
            assert_eq!(repo.read("a.txt"), "precious original\n", "{line}");
        }
    }
}

#[test]
fn the_original_comes_back_over_several_lines_and_from_a_pipe() {
    for lines in [
        &["cp big.bin a.txt", "echo small > a.txt"][..],
        &["cp big.bin a.txt", "head -c 1000 /dev/zero >> a.txt"],
        &["cp big.bin a.txt", "rm a.txt"],
        &["rm a.txt; mkfifo a.txt"],
    ] {
        let (repo, home) = (place(), lathe());
        run(&home, &repo, lines);
        let ran = home.clone().in_dir(repo.path()).args(["rewind", "--to", "0", "--files"]).run();
        assert_eq!(repo.read("a.txt"), "precious original\n", "{lines:?}: {}", ran.stdout);
        assert_eq!(ran.code, 0, "{lines:?}: {}", ran.stdout);
    }
}

#[test]
fn a_kill_after_the_file_outgrew_the_limit_loses_nothing() {
    let (repo, home) = (place(), lathe());
    let line = "cp big.bin a.txt; touch begun; sleep 60";
    let model = FakeModel::serving(Script::new().answer(call("c1", "bash", json!({ "command": line }))));
    let words = ["run", "go", "--mode", "full-auto"];
    let running = home.clone().in_dir(repo.path()).args(words).with_model(&model).spawn();
    eventually(Duration::from_secs(60), "the line", || repo.exists("begun"));
    running.kill9();
    running.wait();
    let ran = home.clone().in_dir(repo.path()).arg("undo").run().expect_code(0);
    assert_eq!(repo.read("a.txt"), "precious original\n", "{}", ran.stdout);
}

#[test]
fn a_rewind_that_takes_nothing_back_says_so() {
    let (repo, home) = (place(), lathe());
    run(&home, &repo, &["echo x >> big.bin"]);
    let ran = home.clone().in_dir(repo.path()).args(["rewind", "--to", "0", "--files"]).run().expect_code(1);
    assert!(ran.stdout.starts_with("Nothing was undone"), "{}", ran.stdout);
    assert!(ran.stdout.contains("big.bin: larger than the limit"), "{}", ran.stdout);
}
