//! An empty id is not the beginning of any.

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::lathe;

#[test]
fn an_empty_id_means_no_session_wherever_one_is_named() {
    let (repo, elsewhere, home) = (TempRepo::new(&[("a.txt", "a\n")]), TempRepo::new(&[]), lathe());
    let answer = call("c1", "bash", json!({ "command": "echo x > a.txt; rm -f nothing" }));
    let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
    let words = ["run", "go", "--mode", "full-auto"];
    home.clone().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
    for words in [
        &["undo", ""][..],
        &["undo", "", "--preview"],
        &["rewind", "", "--to", "0"],
        &["show", ""],
        &["resume", ""],
        &["resume", "", "go on"],
        &["fork", "", "--at", "1"],
        &["diff", ""],
        &["watch", ""],
        &["replay", ""],
        &["quarantine", "restore", ""],
    ] {
        let ran = home.clone().in_dir(elsewhere.path()).args(words).run();
        assert_eq!(ran.code, 2, "{words:?}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("the id is empty"), "{words:?}: {}", ran.stderr);
    }
    assert_eq!(repo.read("a.txt"), "x\n");
    home.clone().in_dir(elsewhere.path()).args(["quarantine", "restore", "nope"]).run().expect_code(2);
}
