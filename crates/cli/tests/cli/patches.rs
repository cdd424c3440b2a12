//! The patch of a run in a folder without git is one that `git apply` takes.

use std::process::Command;

use lathe_testkit::{FakeModel, Script, TempRepo, call, differing_paths, done, listing};
use serde_json::json;

use crate::lathe;

#[test]
fn a_patch_of_a_folder_without_git_makes_the_same_tree_by_git_apply() {
    let files =
        [("mod.txt", "one\ntwo\n"), ("gone.txt", "x\n"), ("old.sh", "echo hi\n"), ("was.txt", "link\n")];
    let (repo, copy) = (TempRepo::new(&files), TempRepo::new(&files));
    let line = "echo hi > made.txt; : > empty; rm gone.txt; ln -s mod.txt lnk; chmod +x old.sh; \
                sed -i s/two/three/ mod.txt; mkdir sub; printf 'no end' > sub/x; rm was.txt; ln -s made.txt was.txt";
    let script = Script::new().answer(call("c1", "bash", json!({ "command": line }))).answer(done("ok"));
    let model = FakeModel::serving(script);
    let out = TempRepo::new(&[]);
    let patch = out.join("out.patch");
    let words = ["run", "go", "--mode", "full-auto", "--patch-path", patch.to_str().unwrap()];
    lathe().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
    let applied = Command::new("git").arg("apply").arg(&patch).current_dir(copy.path()).output().unwrap();
    let text = std::fs::read_to_string(&patch).unwrap();
    assert!(applied.status.success(), "{}{text}", String::from_utf8_lossy(&applied.stderr));
    assert_eq!(differing_paths(&listing(repo.path()), &listing(copy.path())), Vec::<String>::new(), "{text}");
}
