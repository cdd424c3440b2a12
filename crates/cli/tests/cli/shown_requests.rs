//! `run --show-request` prints the request that `run` sends: the very bytes of the body, on every wire.

use lathe_testkit::{FakeModel, Script, TempRepo, Wire, done};

use crate::lathe;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\0\0\0\x03\x01\x01\0\xc9\xfe\x92\xef\0\0\0\0IEND\xaeB`\x82";

#[test]
fn the_request_that_is_shown_is_the_request_that_is_sent() {
    let flags: [&[&str]; 6] = [
        &[],
        &["--mode", "full-auto"],
        &["--mode", "plan", "--toolset", "gemini"],
        &["--toolset", "trae", "--must-patch", "--max-steps", "7"],
        &["--toolset", "bash", "--max-tokens", "9000000"],
        &["--image", "a.png"],
    ];
    for wire in Wire::ALL {
        for flags in flags {
            let repo = TempRepo::new(&[("AGENTS.md", "Be kind.\n"), ("a.txt", "one\n")]);
            std::fs::write(repo.join("a.png"), PNG).unwrap();
            let model = FakeModel::serving(Script::new().answer(done("x")));
            let lathe = lathe().in_dir(repo.path()).env("SOME_SECRET_TOKEN", "a-secret-of-the-user-1");
            std::fs::create_dir_all(lathe.home()).unwrap();
            let config = "[run]\nmax_seconds = 600\n[model]\ntemperature = 0.3\n";
            std::fs::write(lathe.home().join("config.toml"), config).unwrap();
            std::fs::write(lathe.home().join("memory.md"), "## Facts\n\n- likes tea\n").unwrap();
            let task = "Do it with a-secret-of-the-user-1, please.";
            let run = lathe.clone().args(["run", task, "--trust"]).args(flags).with_wire(&model, wire);
            let shown = run.clone().arg("--show-request").run().expect_code(0);
            assert!(model.requests().is_empty(), "nothing is sent");
            run.run();
            let sent = &model.requests()[0];
            assert_eq!(
                shown.stdout.trim_end(),
                String::from_utf8_lossy(&sent.body).trim_end(),
                "{wire:?} {flags:?}"
            );
            assert!(!shown.stdout.contains(model.key()) && !shown.stderr.contains(model.key()), "{wire:?}");
        }
    }
}
