//! Every way a run can end has its message and its exit code.

use std::time::Duration;

use lathe_testkit::{
    FakeModel, Fault, Options, Script, Signal, SmallDisk, TempRepo, call, done, eventually, no_process_with,
    say,
};
use serde_json::{Value, json};

use crate::{bodies, lathe, play, run_in};

#[test]
fn no_key_is_one_screen_that_says_what_to_do() {
    let repo = TempRepo::new(&[]);
    let ran = lathe().in_dir(repo.path()).args(["run", "do it"]).run().expect_code(2);
    assert!(ran.stderr.starts_with("error[no-model]: no model is set up."), "{}", ran.stderr);
    assert!(ran.stderr.contains("OPENAI_API_KEY") && ran.stderr.contains("lathe demo"));
    assert!(ran.stderr.lines().count() <= 24 && ran.stderr.lines().all(|line| line.chars().count() <= 120));
    assert_eq!(ran.stdout, "");
}

#[test]
fn a_wrong_key_is_told_in_the_providers_words_and_not_tried_again() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::start(
        Script::new().answer(done("ok")),
        Options { require_key: Some("sk-right-key-456".to_owned()), ..Options::default() },
    );
    let run = lathe().in_dir(repo.path()).args([
        "run",
        "do it",
        "--model",
        "fake",
        "--api-key",
        "sk-wrong-key-123",
    ]);
    let ran = run.args(["--model-base-url", &model.base_url()]).run().expect_code(3);
    assert!(ran.stdout.contains("Incorrect API key provided"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("sk-wrong-key-123") && !ran.stderr.contains("sk-wrong-key-123"));
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn nobody_listening_is_a_model_that_is_not_available() {
    let repo = TempRepo::new(&[]);
    let run = lathe().in_dir(repo.path()).args([
        "run",
        "do it",
        "--model",
        "x",
        "--model-base-url",
        "http://127.0.0.1:9/v1",
    ]);
    let ran = run.run().expect_code(3);
    assert!(
        ran.stdout.contains("cannot be reached") && ran.stdout.contains("asking the model again"),
        "{}",
        ran.stdout
    );
}

#[test]
fn used_up_steps_are_exit_4_and_more_can_be_given() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(
        Script::repeat(3, |k| call(&format!("c{k}"), "bash", json!({ "command": "echo on" })))
            .answer(done("ok")),
    );
    let run = run_in(repo.path(), &model).args(["--max-steps", "2"]);
    let events = run.run().expect_code(4).events();
    let finished = &bodies(&events, "task_finished")[0];
    assert_eq!(finished["result"], "Task execution exceeded maximum steps without completion.");
    assert_eq!(model.requests().len(), 2);
    // What was printed as the way to go on is one.
    let more =
        lathe().env("LATHE_HOME", run.home()).args(["resume", "--max-steps", "5", "--output", "stream-json"]);
    let events = more.with_model(&model).run().expect_code(0).events();
    assert_eq!(bodies(&events, "task_finished").last().unwrap()["ending"], "done");
    assert_eq!(bodies(&events, "run_resumed").len(), 1);
    assert_eq!(model.violations(), Vec::<String>::new());
    let done = lathe().env("LATHE_HOME", run.home()).arg("resume").with_model(&model).run().expect_code(2);
    assert!(done.stderr.contains("Give it another one"), "{}", done.stderr);
}

#[test]
fn a_model_that_says_nothing_twice_has_failed() {
    let repo = TempRepo::new(&[]);
    let script = Script::new().answer(say("x").fails(2, Fault::EmptyAnswer));
    let events = play(repo.path(), script).expect_code(1).events();
    let finished = &bodies(&events, "task_finished")[0];
    assert_eq!(finished["ending"], "failed");
}

#[test]
fn without_leave_nothing_is_changed_and_giving_up_is_exit_5() {
    let repo = TempRepo::new(&[("a.txt", "one\n")]);
    let script = Script::repeat(4, |k| {
        call(&format!("w{k}"), "write", json!({ "path": "new.txt", "content": "x" })).call(
            &format!("b{k}"),
            "bash",
            json!({ "command": "touch made" }),
        )
    });
    let model = FakeModel::serving(script);
    for mode in ["plan", "default"] {
        let run =
            lathe().in_dir(repo.path()).args(["run", "do it", "--mode", mode, "--output", "stream-json"]);
        let events = run.with_model(&model).run().expect_code(5).events();
        assert_eq!(bodies(&events, "task_finished")[0]["ending"], "denied");
        assert!(bodies(&events, "call_started").is_empty());
        assert!(!repo.exists("new.txt") && !repo.exists("made"));
    }
    assert_eq!(model.violations(), Vec::<String>::new());
    // The mode a run has when nothing is said, and what would let it work, are in its first lines.
    let said = lathe().in_dir(repo.path()).args(["run", "do it"]).with_model(&model).run().expect_code(5);
    assert!(
        said.stdout.contains("mode default") && said.stdout.contains("--mode full-auto"),
        "{}",
        said.stdout
    );
}

#[test]
fn a_run_whose_changes_were_all_denied_has_not_done_its_task_whatever_the_model_says() {
    let write = |id: &str| call(id, "write", json!({ "path": "hello.py", "content": "print('hello')\n" }));
    let look = || call("v", "view", json!({ "path": "a.txt" }));
    let gives_up = || Script::new().answer(write("c1")).answer(write("c2")).answer(look());
    let said = "I cannot create hello.py here.";
    let endings =
        [gives_up().answer(say(said)).answer(say(said)), gives_up().answer(done("Created hello.py."))];
    for script in endings {
        let repo = TempRepo::new(&[("a.txt", "one\n")]);
        let model = FakeModel::serving(script);
        let run = lathe().in_dir(repo.path()).args(["run", "create hello.py", "--mode", "default"]);
        let ran = run.args(["--output", "json"]).with_model(&model).run().expect_code(5);
        let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&result["ending"], &result["exit_code"]), (&json!("denied"), &json!(5)), "{result}");
        let denials = result["denials"].as_array().unwrap();
        assert_eq!(denials.len(), 2, "{result}");
        for (denial, id) in denials.iter().zip(["c1", "c2"]) {
            assert_eq!((&denial["call"], &denial["rule"]), (&json!(id), &json!("headless")), "{result}");
            assert!(denial["about"].as_str().unwrap().contains("hello.py"), "{result}");
        }
    }
    // A command of the agent in a line counts like its tool, in both toolsets that have lines.
    for (toolset, tool) in [("lathe", "bash"), ("bash", "Bash")] {
        let repo = TempRepo::new(&[]);
        let line = |id: &str, line: &str| call(id, tool, json!({ "command": line }));
        let gives_up = Script::new()
            .answer(line("c1", "write hello.py x"))
            .answer(line("c2", "printf 1 | write hello.py; true"))
            .answer(say(said))
            .answer(say(said));
        let model = FakeModel::serving(gives_up);
        let words = ["run", "go", "--mode", "default", "--output", "json", "--toolset", toolset];
        let ran = lathe().in_dir(repo.path()).args(words).with_model(&model).run().expect_code(5);
        let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(result["denials"].as_array().unwrap().len(), 2, "{toolset}: {result}");
    }
    // The same holds where a rule denies the line itself, by any name of the shell or by the name of its tool.
    for denied in ["bash", "run_shell_command", "write"] {
        for line in ["write hello.py x", "printf 1 | write hello.py; true", "view a.txt; edit a.txt one two"]
        {
            let (repo, lathe) = (TempRepo::new(&[("a.txt", "one\n")]), lathe());
            let tool = if line.contains("edit") && denied == "write" { "edit" } else { denied };
            std::fs::create_dir_all(lathe.home().join("policy")).unwrap();
            let rule = format!("[[rule]]\ndecision = \"deny\"\ntool = [\"{tool}\"]\n");
            std::fs::write(lathe.home().join("policy/mine.toml"), rule).unwrap();
            // A step with another call that succeeded comes between.
            let bash = call("c1", "bash", json!({ "command": line }));
            let script = Script::new().answer(bash).answer(call("t", "todo", json!({}))).answer(done("ok"));
            let model = FakeModel::serving(script);
            let words = ["run", "go", "--mode", "full-auto", "--output", "json"];
            let ran = lathe.in_dir(repo.path()).args(words).with_model(&model).run().expect_code(5);
            let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
            assert_eq!(result["ending"], "denied", "{tool}: {line}: {result}");
        }
    }
    // A run that changed something after all, and one that was only kept from reading, are done.
    let line = |id: &str, line: &str| call(id, "bash", json!({ "command": line }));
    for (mode, script, denials) in [
        (
            "auto-edit",
            Script::new().answer(line("c1", "touch /nowhere")).answer(write("c2")).answer(done("ok")),
            1,
        ),
        (
            "plan",
            Script::new().answer(line("c1", "cat /root/.ssh/id_rsa")).answer(look()).answer(done("ok")),
            1,
        ),
    ] {
        let repo = TempRepo::new(&[("a.txt", "one\n")]);
        let model = FakeModel::serving(script);
        let run = lathe().in_dir(repo.path()).args(["run", "look", "--mode", mode, "--output", "json"]);
        let ran = run.with_model(&model).run().expect_code(0);
        let result: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(result["denials"].as_array().unwrap().len(), denials, "{mode}: {result}");
    }
}

#[test]
fn a_folder_that_is_not_there_is_an_error_of_usage() {
    let ran = lathe().args([
        "run",
        "x",
        "--working-dir",
        "/nowhere/at/all",
        "--model",
        "m",
        "--model-base-url",
        "http://127.0.0.1:9",
    ]);
    let ran = ran.run().expect_code(2);
    assert!(
        ran.stderr.contains("error[folder]: the folder /nowhere/at/all cannot be worked in"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_folder_that_vanishes_during_the_run_is_told_to_the_model_and_the_journal_stays() {
    // In a script, because the guard sees it in a line.
    let outer = TempRepo::new(&[("work/a.txt", "one\n"), ("move.sh", "mv ../work ../gone\n")]);
    let folder = outer.join("work");
    let script = Script::new()
        .answer(call("c1", "bash", json!({ "command": "bash ../move.sh; echo gone" })))
        .answer(call("c2", "view", json!({ "path": "a.txt" })).call(
            "c3",
            "bash",
            json!({ "command": "echo still here" }),
        ))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let run = run_in(&folder, &model);
    let events = run.run().expect_code(0).events();
    assert_eq!(model.violations(), Vec::<String>::new());
    assert!(crate::result(&events, "c2").contains("does not exist"));
    assert!(crate::result(&events, "c3").contains("still here"), "{}", crate::result(&events, "c3"));
    let again = lathe()
        .env("LATHE_HOME", run.home())
        .env("LATHE_SANDBOX", "off")
        .args(["resume", "do more"])
        .with_model(&model)
        .run()
        .expect_code(2);
    assert!(again.stderr.contains("cannot be worked in"), "{}", again.stderr);
    lathe().env("LATHE_HOME", run.home()).arg("show").run().expect_code(0);
}

#[test]
fn a_full_disk_under_the_workspace_ends_the_run_with_54() {
    let repo = TempRepo::new(&[]);
    let disk = repo.join("disk");
    let Some(_mount) = SmallDisk::mount(&disk, "256k") else {
        return;
    };
    std::fs::write(disk.join("a.txt"), "old\n").unwrap();
    let script = Script::new()
        .answer(call("c1", "bash", json!({ "command": "head -c 300000 /dev/zero > fill; true" })))
        .answer(call(
            "c2",
            "edit",
            json!({ "path": "a.txt", "old_str": "old", "new_str": "x".repeat(100_000) }),
        ))
        .answer(done("never"));
    let model = FakeModel::serving(script);
    let run = run_in(&disk, &model);
    let events = run.run().expect_code(54).events();
    let finished = &bodies(&events, "task_finished")[0];
    assert_eq!(finished["ending"], "disk_full");
    assert!(finished["result"].as_str().unwrap().starts_with("No space left on the disk"));
    assert_eq!(std::fs::read_to_string(disk.join("a.txt")).unwrap(), "old\n");
    lathe().env("LATHE_HOME", run.home()).arg("show").run().expect_code(0);
}

#[test]
fn a_shell_that_has_no_room_for_its_own_ends_with_54() {
    let repo = TempRepo::new(&[]);
    let disk = repo.join("disk");
    let Some(_mount) = SmallDisk::mount(&disk, "64k") else {
        return;
    };
    let ran = lathe().env("LATHE_HOME", disk.join("home")).args(["shell", "-c", "echo ran"]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (54, ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("error[disk-full]"), "{}", ran.stderr);
}

#[test]
fn a_full_disk_under_the_journal_is_54_and_the_journal_stays_readable() {
    let repo = TempRepo::new(&[]);
    let disk = repo.join("disk");
    let Some(mount) = SmallDisk::mount(&disk, "3m") else {
        return;
    };
    // A line would not run with so little room; what the model says is written down all the same.
    let script = Script::repeat(200, |k| {
        let thought: String =
            (0..6000_u64).map(|n| format!("{:x} ", (n + 1).wrapping_mul(2_654_435_761 + k as u64))).collect();
        call(&format!("c{k}"), "think", json!({ "thought": thought }))
    });
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model).env("LATHE_HOME", &disk);
    let ran = run.run().expect_code(54);
    assert!(
        ran.stderr.contains("error[disk-full]") && ran.stderr.contains("free some space"),
        "{}",
        ran.stderr
    );
    // With a little space again, all that was acknowledged is there.
    let acknowledged = ran.events().len();
    mount.remount("size=8m");
    let shown = lathe().env("LATHE_HOME", &disk).args(["show", "--format", "json"]).run().expect_code(0);
    let json: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert!(json["events"].as_array().unwrap().len() >= acknowledged && acknowledged > 10);
    // The run can also be resumed.
    let more = FakeModel::serving(Script::repeat(acknowledged, |_| done("now it fits")));
    lathe().env("LATHE_HOME", &disk).arg("resume").with_model(&more).run().expect_code(0);
    assert_eq!(more.violations(), Vec::<String>::new());
}

#[test]
fn a_home_that_cannot_be_written_is_said_at_once() {
    let repo = TempRepo::new(&[("file", "")]);
    let ran = lathe().env("LATHE_HOME", repo.join("file/home")).args([
        "run",
        "x",
        "--model",
        "m",
        "--model-base-url",
        "http://127.0.0.1:9",
    ]);
    let ran = ran.run().expect_code(2);
    assert!(ran.stderr.contains("error[home]") && ran.stderr.contains("Set LATHE_HOME"), "{}", ran.stderr);
}

#[test]
fn a_read_only_workspace_is_told_to_the_model_and_nothing_else_breaks() {
    let repo = TempRepo::new(&[]);
    let disk = repo.join("disk");
    let Some(mount) = SmallDisk::mount(&disk, "1m") else {
        return;
    };
    std::fs::write(disk.join("a.txt"), "old\n").unwrap();
    mount.remount("ro");
    let script = Script::new()
        .answer(call("c1", "edit", json!({ "path": "a.txt", "old_str": "old", "new_str": "new" })).call(
            "c2",
            "bash",
            json!({ "command": "touch b" }),
        ))
        .answer(say("It is read-only."))
        .answer(say("It is read-only."));
    let events = play(&disk, script).expect_code(0).events();
    assert!(
        crate::result(&events, "c1").starts_with("No permission for "),
        "{}",
        crate::result(&events, "c1")
    );
    assert!(crate::result(&events, "c2").contains("Read-only file system"));
}

#[test]
fn ctrl_c_ends_a_waiting_model() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(
        Script::new().answer(say("slow").fails(9, Fault::Stall(Duration::from_secs(3600)))),
    );
    let run = run_in(repo.path(), &model);
    let running = run.spawn();
    model.wait_for_requests(1, Duration::from_secs(20));
    stop_and_check(&run, running);
}

#[test]
fn ctrl_c_ends_a_running_command_and_leaves_a_history_that_can_be_gone_on_with() {
    let repo = TempRepo::new(&[]);
    let script = Script::new()
        .answer(call("c1", "bash", json!({ "command": "echo begun; sleep 98450; touch went-on" })).call(
            "c2",
            "bash",
            json!({ "command": "touch never" }),
        ))
        .answer(done("afterwards"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    let running = run.spawn();
    running.wait_for_stdout("call_started", Duration::from_secs(20));
    eventually(Duration::from_secs(10), "the command runs", || !no_process_with("sleep 98450"));
    let events = stop_and_check(&run, running);
    assert!(no_process_with("sleep 98450"));
    assert!(!repo.exists("never") && !repo.exists("went-on"));
    assert_eq!(crate::results(&events).len(), 2);
    let again = lathe().env("LATHE_HOME", run.home()).args(["resume", "go on"]).with_model(&model);
    again.in_dir(repo.path()).run().expect_code(0);
    assert_eq!(model.violations(), Vec::<String>::new());
}

#[test]
fn a_cancelled_run_and_a_model_that_was_gone_can_be_gone_on_with() {
    let repo = TempRepo::new(&[]);
    let script = Script::new()
        .answer(call("c1", "bash", json!({ "command": "sleep 98470" })))
        .answer(call("c2", "bash", json!({ "command": "echo on" })).fails(1, Fault::status(400, "not now")))
        .answer(done("in the end"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    let running = run.spawn();
    eventually(Duration::from_secs(20), "the command runs", || !no_process_with("sleep 98470"));
    stop_and_check(&run, running);
    let resume = || {
        lathe().env("LATHE_HOME", run.home()).args(["resume", "--output", "stream-json"]).with_model(&model)
    };
    resume().run().expect_code(3);
    let events = resume().run().expect_code(0).events();
    assert_eq!(model.violations(), Vec::<String>::new());
    assert_eq!(bodies(&events, "task_finished").last().unwrap()["result"], "in the end");
    let replayed = lathe().env("LATHE_HOME", run.home()).arg("replay").run().expect_code(0);
    assert!(replayed.stdout.ends_with("0 divergences\n"), "{}", replayed.stdout);
}

#[test]
fn an_address_or_a_key_that_can_never_work_is_said_at_once() {
    let repo = TempRepo::new(&[]);
    for (url, key) in [("notaurl", "k"), ("ftp://x/y", "k"), ("http://127.0.0.1:9/v1", "k\nx")] {
        let run = lathe().in_dir(repo.path()).args([
            "run",
            "x",
            "--model",
            "m",
            "--model-base-url",
            url,
            "--api-key",
            key,
        ]);
        let ran = run.run().expect_code(2);
        assert!(ran.stderr.contains("error[bad-model]"), "{}", ran.stderr);
    }
}

#[test]
fn output_that_cannot_be_written_is_not_a_success() {
    let home = tempfile::tempdir().unwrap();
    let line = format!("{} demo > /dev/full", env!("CARGO_BIN_EXE_lathe"));
    let ran = std::process::Command::new("bash")
        .args(["-c", &line])
        .env("LATHE_HOME", home.path())
        .env("LATHE_SANDBOX", "off")
        .output()
        .unwrap();
    assert_eq!(ran.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&ran.stderr).contains("standard output cannot be written"));
}

fn stop_and_check(_run: &lathe_testkit::Lathe, running: lathe_testkit::RunningLathe) -> Vec<Value> {
    running.kill(Signal::Interrupt);
    let ran = running.wait().expect_code(130);
    let events = ran.events();
    let finished = &bodies(&events, "task_finished")[0];
    assert_eq!(finished["ending"], "cancelled");
    events
}

#[test]
fn ctrl_c_twice_ends_at_once_and_leaves_no_process() {
    let repo = TempRepo::new(&[]);
    let script = Script::new().answer(call(
        "c1",
        "bash",
        json!({ "command": "trap '' TERM INT; sleep 98460; sleep 98461" }),
    ));
    let script = script.answer(done("went on"));
    let model = FakeModel::serving(script);
    let run = run_in(repo.path(), &model);
    let running = run.spawn();
    eventually(Duration::from_secs(20), "the command runs", || !no_process_with("sleep 98460"));
    running.kill(Signal::Interrupt);
    running.kill(Signal::Interrupt);
    running.wait().expect_code(130);
    eventually(Duration::from_secs(5), "all is gone", || {
        no_process_with("sleep 98460") && no_process_with("sleep 98461")
    });
    // The run can be resumed at any stage of the cancelling.
    let resume =
        lathe().env("LATHE_HOME", run.home()).args(["resume", "--output", "stream-json"]).with_model(&model);
    let events = resume.run().expect_code(0).events();
    assert_eq!(bodies(&events, "task_finished").last().unwrap()["result"], "went on");
    assert_eq!(model.violations(), Vec::<String>::new());
}
