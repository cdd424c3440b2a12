//! A session's folder is known by what it is, not by its name.

use lathe_testkit::{FakeModel, Lathe, Script, TempRepo, call, done};
use serde_json::json;

use crate::{bodies, lathe, run_in};

fn at_home(run: &Lathe) -> Lathe {
    lathe().env("LATHE_HOME", run.home())
}

/// A finished session in the folder `work`, in whose place another folder is put.
fn session() -> (TempRepo, FakeModel, Lathe) {
    let world = TempRepo::new(&[("work/a.txt", "one\n"), ("other/a.txt", "changed\n")]);
    let edit = call("w", "bash", json!({ "command": "echo changed > a.txt" }));
    let model = FakeModel::serving(Script::new().answer(edit).answer(done("ok")).answer(done("again")));
    let run = run_in(&world.join("work"), &model);
    let events = run.run().expect_code(0).events();
    let folder = &bodies(&events, "session_opened")[0]["folder"];
    assert!(folder["device"].is_u64() && folder["inode"].is_u64(), "{folder}");
    std::fs::rename(world.join("work"), world.join("moved")).unwrap();
    std::fs::rename(world.join("other"), world.join("work")).unwrap();
    (world, model, run)
}

#[test]
fn another_folder_in_the_place_of_the_first_is_refused_and_a_fork_accepts_it() {
    let (world, model, run) = session();
    let work = world.join("work");
    for words in [&["resume"][..], &["undo"], &["rewind", "--to", "0", "--files"], &["undo", "--preview"]] {
        let mut again = at_home(&run).in_dir(&work).args(words);
        if words == ["resume"] {
            again = again.arg("20").arg("more").with_model(&model);
        }
        let ran = again.run();
        assert_ne!(ran.code, 0, "{words:?}: {}", ran.stdout);
        assert!(
            ran.stderr.contains("a different folder from the one session")
                && ran.stderr.contains("lathe fork"),
            "{words:?}: {} {}",
            ran.stdout,
            ran.stderr
        );
        assert_eq!(world.read("work/a.txt"), "changed\n");
    }
    // What the message names works.
    let id = at_home(&run).in_dir(&work).args(["fork", "20"]).run().expect_code(0).stdout;
    let ran = at_home(&run).in_dir(&work).args(["resume", id.trim(), "more"]).with_model(&model).run();
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
}

#[test]
fn a_folder_that_is_put_back_is_the_same_one() {
    let (world, _, run) = session();
    std::fs::rename(world.join("work"), world.join("other")).unwrap();
    std::fs::rename(world.join("moved"), world.join("work")).unwrap();
    at_home(&run).in_dir(world.join("work")).arg("undo").run().expect_code(0);
    assert_eq!((world.read("work/a.txt"), world.read("other/a.txt")), ("one\n".into(), "changed\n".into()));
}
