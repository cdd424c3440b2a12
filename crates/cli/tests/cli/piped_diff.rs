//! `lathe diff | git apply -R`, as the help shows it, for content of every kind.

use std::process::{Command, Stdio};

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::lathe;

#[test]
fn a_piped_diff_is_a_patch_that_git_takes_back() {
    for (name, line) in [
        ("an escape", "printf 'a\\033[1mx\\n' > c.txt"),
        ("a form feed", "printf 'a\\014b\\n' > c.txt"),
        ("line ends", "printf 'one\\r\\nTWO\\r\\n' > crlf.txt"),
        ("a zero byte", "printf 'a\\0b\\n' > c.bin"),
        ("Latin-1", "printf 'caf\\351\\n' > a.txt"),
        ("a direction mark", "printf 'a\\342\\200\\256b\\n' > c.txt"),
        ("an image", "printf '\\211PNG\\r\\n\\032\\n\\0\\0' > c.png"),
        (
            "a larger binary",
            "head -c 200000 /dev/zero > big.bin; printf x >> big.bin; printf '\\0y' > old.bin",
        ),
        ("a mode", "chmod +x a.txt"),
        ("a link", "ln -s a.txt l"),
        ("no line end", "printf x > c.txt"),
        ("an empty file", ": > c.txt"),
        ("a removal", "rm a.txt old.bin"),
        ("a name", "echo x > 'ü b.txt'; echo y > \"q\\\"t\""),
        ("a name that is not text", "echo x > $'n\\xff'"),
    ] {
        for git in [true, false] {
            let files = [("a.txt", "a\n"), ("crlf.txt", "one\r\ntwo\r\n"), ("old.bin", "o\0ld\n")];
            let repo = if git { TempRepo::with_git(&files) } else { TempRepo::new(&files) };
            let home = lathe();
            let answer = call("c1", "bash", json!({ "command": line }));
            let model = FakeModel::serving(Script::new().answer(answer).answer(done("ok")));
            let words = ["run", "go", "--mode", "full-auto"];
            let before = crate::rewinds::tree(repo.path());
            home.clone().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(0);
            assert_ne!(crate::rewinds::tree(repo.path()), before, "{name}");
            let patch = home.clone().in_dir(repo.path()).arg("diff").command().output().unwrap();
            assert!(patch.status.success(), "{name}");
            let mut apply = Command::new("git")
                .args(["apply", "-R", "--whitespace=nowarn"])
                .current_dir(repo.path())
                .stdin(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            std::io::Write::write_all(&mut apply.stdin.take().unwrap(), &patch.stdout).unwrap();
            let applied = apply.wait_with_output().unwrap();
            let told = String::from_utf8_lossy(&applied.stderr);
            assert!(applied.status.success(), "{name}: {told}\n{}", String::from_utf8_lossy(&patch.stdout));
            assert_eq!(crate::rewinds::tree(repo.path()), before, "{name}");
        }
    }
}
