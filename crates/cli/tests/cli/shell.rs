//! The persistent bash through the whole agent, and several calls of one answer.

use std::time::Duration;

use lathe_testkit::{FakeModel, Fault, Script, TempRepo, call, done, eventually, no_process_with};
use serde_json::{Value, json};

use crate::lost::Place;
use crate::{bodies, play, result, results, run_in};

fn bash(id: &str, command: &str) -> lathe_testkit::FakeAnswer {
    call(id, "bash", json!({ "command": command }))
}

#[test]
fn folder_variables_and_functions_stay_for_the_next_call() {
    let repo = TempRepo::new(&[("sub/file", "")]);
    let script = Script::new()
        .answer(bash("c1", "cd sub; export A=1; B=2; greet() { echo \"hello $1\"; }"))
        .answer(bash("c2", "pwd; echo $A$B; greet you"))
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    assert!(result(&events, "c1").contains("now in "), "{}", result(&events, "c1"));
    let root = repo.path().canonicalize().unwrap();
    assert_eq!(
        result(&events, "c2"),
        format!("exit code 0\n<stdout>\n{}/sub\n12\nhello you\n</stdout>", root.display())
    );
}

#[test]
fn exit_gives_its_code_and_the_next_call_works_in_the_same_folder() {
    let repo = TempRepo::new(&[("sub/file", "")]);
    let script = Script::new()
        .answer(bash("c1", "cd sub; export A=1"))
        .answer(bash("c2", "exit 3"))
        .answer(bash("c3", "basename $PWD; echo $A"))
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    assert!(result(&events, "c2").starts_with("exit code 3"), "{}", result(&events, "c2"));
    assert_eq!(result(&events, "c3"), "exit code 0\n<stdout>\nsub\n1\n</stdout>");
}

#[test]
fn what_would_hang_other_shells_returns() {
    let repo = TempRepo::new(&[]);
    let script = Script::new()
        .answer(bash("quote", "echo 'never closed"))
        .answer(bash("cat", "cat; echo after"))
        .answer(bash("background", "sleep 98123 & echo hi"))
        .answer(bash("next", "echo fine"))
        .answer(done("ok"));
    let ran = play(repo.path(), script).expect_code(0);
    let events = ran.events();
    assert!(result(&events, "quote").contains("unexpected EOF"), "{}", result(&events, "quote"));
    assert_eq!(result(&events, "cat"), "exit code 0\n<stdout>\nafter\n</stdout>");
    assert!(result(&events, "background").contains("<stdout>\nhi\n</stdout>"));
    assert!(result(&events, "next").contains("fine"));
}

#[test]
fn a_command_in_the_background_belongs_to_its_line_and_finishes() {
    let place = Place::new();
    let before = place.tree();
    let lines = [
        "write soon.txt soon & echo x",
        "wait; cat soon.txt",
        "(while ! test -e go; do sleep 0.01; done; write late.txt late) > said 2>&1 & echo y",
        "touch go; while ! test -s said; do sleep 0.01; done; cat late.txt said",
    ];
    let (run, events) = place.run("full-auto", &lines);
    assert!(result(&events, "c1").contains("soon"), "{events:#?}");
    assert!(result(&events, "c3").contains("late"), "{events:#?}");
    let written = events.iter().filter(|event| event["body"]["argv"][0] == "write");
    let calls: Vec<&Value> = written.map(|event| &event["call"]).collect();
    assert_eq!(calls, ["c0", "c2"], "{events:#?}");
    let rewound = place.lathe().env("LATHE_HOME", run.home()).args(["rewind", "--to", "0"]).run();
    assert_eq!(rewound.code, 0, "{}{}", rewound.stdout, rewound.stderr);
    assert_eq!(place.tree(), before);
}

/// The model takes its time with its second answer, and meanwhile no line looks at the tree.
#[test]
fn what_a_command_in_the_background_writes_between_two_lines_can_be_taken_back() {
    let place = Place::new();
    let before = place.tree();
    let late = "(sleep 0.2; write late.txt late; write a.txt other -y) > /dev/null 2>&1 & echo begun";
    let busy = Fault::status(503, "busy").header("retry-after", "1");
    let script = Script::new()
        .answer(bash("c0", late))
        .answer(bash("c1", "wait; cat late.txt").fails(1, busy))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    let run = place.lathe().args(words).with_model(&model);
    let events = run.run().expect_code(0).events();
    assert!(result(&events, "c1").contains("late"), "{events:#?}");
    let rewound = place.lathe().env("LATHE_HOME", run.home()).args(["rewind", "--to", "0"]).run();
    assert_eq!(rewound.code, 0, "{}{}", rewound.stdout, rewound.stderr);
    assert_eq!(place.tree(), before, "{events:#?}");
}

#[test]
fn what_a_process_writes_between_two_lines_can_be_taken_back_beside_edits() {
    let place = Place::new();
    let before = place.tree();
    let late = "(sleep 0.2; echo late > late.txt; echo other > a.txt; rm untracked.txt) > /dev/null 2>&1 & echo begun";
    let busy = Fault::status(503, "busy").header("retry-after", "1");
    let edit = json!({ "path": "other.txt", "old_str": "o", "new_str": "edited" });
    let script = Script::new()
        .answer(bash("c0", late))
        .answer(call("e", "edit", edit).fails(1, busy))
        .answer(bash("c1", "wait; cat late.txt; echo more >> other.txt"))
        .answer(done("ok"));
    let model = FakeModel::serving(script);
    let words = ["run", "go", "--mode", "full-auto", "--output", "stream-json"];
    let run = place.lathe().args(words).with_model(&model);
    let events = run.run().expect_code(0).events();
    assert!(result(&events, "c1").contains("late"), "{events:#?}");
    let rewound = place.lathe().env("LATHE_HOME", run.home()).args(["rewind", "--to", "0"]).run();
    assert_eq!(rewound.code, 0, "{}{}", rewound.stdout, rewound.stderr);
    assert_eq!(place.tree(), before, "{events:#?}");
}

#[test]
fn no_process_is_left_after_the_run() {
    let repo = TempRepo::new(&[]);
    let script = Script::new()
        .answer(bash("c1", "setsid sleep 98231 & nohup sleep 98232 >/dev/null 2>&1 & (sleep 98233 &) ; setsid -f sleep 98234; echo started"))
        .answer(done("ok"));
    play(repo.path(), script).expect_code(0);
    for marker in ["98231", "98232", "98233", "98234"] {
        let marker = format!("sleep {marker}");
        eventually(Duration::from_secs(5), &marker, || no_process_with(&marker));
    }
}

#[test]
fn a_flood_of_output_is_cut_and_told_and_kept() {
    let repo = TempRepo::new(&[]);
    // A slow machine may take its time with it.
    let flood = json!({ "command": "yes | head -c 100000000", "timeout": 600 });
    let script = Script::new().answer(call("c1", "bash", flood)).answer(done("ok"));
    let model = FakeModel::serving(script);
    let running = run_in(repo.path(), &model).timeout(Duration::from_secs(280)).spawn();
    let mut most = 0;
    let pid = running.pid();
    // The program's memory is watched while 100 MB pass through it.
    while model.requests().len() < 2 && std::path::Path::new(&format!("/proc/{pid}")).exists() {
        most = most.max(resident(pid));
        std::thread::sleep(Duration::from_millis(5));
    }
    let ran = running.wait().expect_code(0);
    assert!(most < 160 << 20, "{most} bytes of memory");
    let events = ran.events();
    let text = result(&events, "c1");
    assert!(text.len() < 40_000 && text.contains("of 100000000 bytes left out"), "{}", &text[..200]);
    let finished = bodies(&events, "call_finished").remove(0);
    assert_eq!(finished["truncated"]["total"], 100_000_000);
    assert_eq!(finished["truncated"]["kept"], 64 << 20);
}

#[test]
fn a_noisy_command_is_not_slowed_down_by_the_console() {
    let repo = TempRepo::new(&[]);
    let flood = json!({ "command": "yes | head -c 30000000; echo finished", "timeout": 600 });
    let model = FakeModel::serving(Script::new().answer(call("c1", "bash", flood)).answer(done("ok")));
    let run = crate::lathe().in_dir(repo.path()).args(["run", "x", "--mode", "full-auto"]).with_model(&model);
    let ran = run.timeout(Duration::from_secs(280)).run().expect_code(0);
    assert!(ran.stdout.contains("more lines") && !ran.stdout.contains("took longer"), "{}", ran.stdout);
}

fn resident(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap_or(0) * 1024
}

#[test]
fn a_time_out_kills_the_tree_and_keeps_folder_and_environment() {
    let repo = TempRepo::new(&[("sub/file", "")]);
    let script = Script::new()
        .answer(bash("c1", "cd sub; export A=1"))
        .answer(call(
            "c2",
            "bash",
            json!({ "command": "bash -c 'sleep 98341 & sleep 98342'; touch went-on", "timeout": 1 }),
        ))
        .answer(bash("c3", "basename $PWD; echo $A; ls"))
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    assert!(result(&events, "c2").starts_with("timed out after 1 seconds"), "{}", result(&events, "c2"));
    assert!(no_process_with("sleep 98341") && no_process_with("sleep 98342"));
    assert_eq!(result(&events, "c3"), "exit code 0\n<stdout>\nsub\n1\nfile\n</stdout>");
}

#[test]
fn two_views_and_two_shell_lines_in_one_answer_have_the_right_results_in_order() {
    let repo = TempRepo::new(&[("a.txt", "alpha\n"), ("b.txt", "beta\n")]);
    let script = Script::new()
        .answer(
            call("v1", "view", json!({ "path": "a.txt" }))
                .call("b1", "bash", json!({ "command": "sleep 0.2; export N=one; echo first" }))
                .call("v2", "view", json!({ "path": "b.txt" }))
                .call("b2", "bash", json!({ "command": "echo second after $N" })),
        )
        .answer(done("ok"));
    let events = play(repo.path(), script).expect_code(0).events();
    let told: Vec<(String, String)> = results(&events).into_iter().take(4).collect();
    let ids: Vec<&str> = told.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["v1", "b1", "v2", "b2"]);
    assert!(told[0].1.contains("alpha") && told[2].1.contains("beta"));
    assert_eq!(told[1].1, "exit code 0\n<stdout>\nfirst\n</stdout>");
    assert_eq!(told[3].1, "exit code 0\n<stdout>\nsecond after one\n</stdout>");
}

#[test]
fn the_shell_sees_neither_the_models_key_nor_other_secrets() {
    let repo = TempRepo::new(&[]);
    let model = FakeModel::serving(Script::new().answer(bash("c1", "env")).answer(done("ok")));
    let ran = run_in(repo.path(), &model)
        .env("OPENAI_API_KEY", "sk-very-secret-1")
        .env("MY_TOKEN", "tok-very-secret-2")
        .run();
    let events = ran.expect_code(0).events();
    let env = result(&events, "c1");
    assert!(!env.contains("sk-very-secret-1") && !env.contains("tok-very-secret-2"), "{env}");
    // Nothing that is named like a secret is there at all.
    assert!(!env.contains("MY_TOKEN") && !env.contains("API_KEY"), "{env}");
}
