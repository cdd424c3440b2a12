//! The binary `lathe`, started by a session's own shell: it does not change files of the user, however it was
//! started; in a home of its own it works as usual.

use lathe_testkit::{FakeModel, Script, TempRepo, call, done};
use serde_json::json;

use crate::{bodies, lathe, result};

/// Each way to start a program, around `COMMAND`. The session's shell must wait for all of them.
const STARTS: [&str; 6] = [
    "COMMAND",
    "env -i HOME=\"$HOME\" PATH=\"$PATH\" COMMAND",
    "env -u LATHE_SHELL setsid --wait env -i HOME=\"$HOME\" COMMAND",
    "(env -i HOME=\"$HOME\" nohup COMMAND)",
    "bash -c 'COMMAND; exit $?'",
    "env -i HOME=/nonexistent XDG_DATA_HOME=/nonexistent LATHE_HOME=OUTER COMMAND",
];

/// Commands that change what is the user's.
const CHANGES: [&str; 13] = [
    "auth login openai",
    "auth logout openai",
    "trust add . --yes",
    "trust remove .",
    "serve --port 0",
    "serve token add x --role admin",
    "serve token remove x",
    "policy revoke 1",
    "quarantine restore",
    "gc",
    "resume",
    "undo",
    "rewind --to 0",
];

/// Commands that change nothing of it.
const READS: [&str; 6] =
    ["sessions", "trust list", "policy list", "serve token list", "models", "config check"];

#[test]
fn a_sessions_shell_does_not_change_the_users_home_through_the_binary() {
    let repo = TempRepo::new(&[("AGENTS.md", "Obey.\n")]);
    let binary = env!("CARGO_BIN_EXE_lathe");
    let run = lathe().in_dir(repo.path());
    // The key that the user has already must stay, and the home is where no variable leads.
    std::fs::create_dir_all(run.home()).unwrap();
    std::fs::write(run.home().join("auth.json"), "{\"OPENAI_API_KEY\": \"before\"}").unwrap();
    let own = tempfile::tempdir().unwrap();
    let linked = own.path().join("linked");
    std::fs::create_dir(&linked).unwrap();
    std::os::unix::fs::symlink(run.home(), linked.join("server")).unwrap();
    let mut script = String::from("cd \"$(dirname \"$0\")\"\n");
    let mut line = |start: &str, command: &str| {
        let start = start.replace("OUTER", &run.home().display().to_string());
        let started = start.replace("COMMAND", &format!("{binary} {command}"));
        script
            .push_str(&format!("echo key | {started} >>said.txt 2>&1\necho \"$? {command}\" >>codes.txt\n"));
    };
    for start in STARTS {
        CHANGES.iter().for_each(|command| line(start, command));
    }
    let through_links = format!("env LATHE_HOME={} COMMAND", linked.display());
    line(&through_links, "serve token add x --role admin");
    let refused = STARTS.len() * CHANGES.len() + 1;
    READS.iter().for_each(|command| line("env LATHE_HOME=OUTER COMMAND", command));
    // Lathe that is tested by Lathe.
    let free = format!("env LATHE_HOME={} COMMAND", own.path().join("free").display());
    for command in ["auth login openai", "trust add . --yes", "serve token add x --role admin"] {
        line(&free, command);
    }
    repo.write("go.sh", &script);
    let model = FakeModel::serving(
        Script::new().answer(call("a", "bash", json!({ "command": "bash go.sh" }))).answer(done("x")),
    );
    let ran = run.clone().args(["run", "x", "--mode", "full-auto", "--output", "stream-json"]);
    let ran = ran.with_model(&model).run().expect_code(0);
    let (codes, said) = (repo.read("codes.txt"), repo.read("said.txt"));
    let codes: Vec<&str> = codes.lines().collect();
    assert_eq!(codes.len(), refused + READS.len() + 3, "{:?} {said}", result(&ran.events(), "a"));
    for code in &codes[..refused] {
        assert!(code.starts_with("5 "), "{code}\n{said}");
    }
    for code in &codes[refused..] {
        assert!(code.starts_with("0 "), "{code}\n{said}");
    }
    assert_eq!(said.matches("error[inside-session]").count(), refused, "{said}");
    assert_eq!(bodies(&ran.events(), "task_finished").len(), 1);
    assert_eq!(
        std::fs::read_to_string(run.home().join("auth.json")).unwrap(),
        "{\"OPENAI_API_KEY\": \"before\"}"
    );
    for made in ["trust", "server/tokens.json", "tokens.json"] {
        assert!(!run.home().join(made).exists(), "{made}");
    }
    assert!(
        own.path().join("free/auth.json").exists() && own.path().join("free/server/tokens.json").exists()
    );
}

#[test]
fn lathe_runs_inside_a_session_with_a_session_of_its_own_and_remembers_nothing_for_the_user() {
    let repo = TempRepo::new(&[]);
    let binary = env!("CARGO_BIN_EXE_lathe");
    let run = lathe().in_dir(repo.path());
    let inner = FakeModel::serving(Script::new().answer(done("inner")));
    let flags = format!("--model-base-url {} --model fake --api-key {}", inner.base_url(), inner.key());
    let home = run.home().display().to_string();
    repo.write(
        "go.sh",
        format!(
            "export LATHE_HOME={home}\n{binary} run x {flags} >out.txt 2>&1\necho $? >codes.txt\n\
             {binary} tool run remember --json '{{\"fact\": \"planted\"}}' >>out.txt 2>&1\necho $? >>codes.txt\n"
        ),
    );
    let model = FakeModel::serving(
        Script::new().answer(call("a", "bash", json!({ "command": "bash go.sh" }))).answer(done("x")),
    );
    run.clone().args(["run", "x", "--mode", "full-auto"]).with_model(&model).run().expect_code(0);
    let out = repo.read("out.txt");
    assert_eq!(repo.read("codes.txt"), "0\n1\n", "{out}");
    assert!(!run.home().join("memory.md").exists(), "{out}");
    assert_eq!(inner.requests().len(), 1);
}
